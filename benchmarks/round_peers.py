"""Methods that need many rounds of a cluster: gradients of all rows a round, and weights that are averaged.

A round is a broadcast of the weights and a sum of as many numbers over all workers. What happens on a worker does not
depend on where it runs, so all of it is done here, in one process. A method has arrived when its primal objective,
which costs it nothing here, is within a given share of the optimum.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from cluster_fits import examples
from scipy.optimize import minimize
from sklearn.linear_model import SGDClassifier

from maxmargin import LinearSVC

C = 1.0
STEPS = [1e3, 1e4, 1e5]  # step t of subgradients is 1 / (t + this)
RATES: list[dict[str, Any]] = [
    {"learning_rate": "optimal"},
    {"learning_rate": "invscaling", "power_t": 0.5, "eta0": 0.3},
    {"learning_rate": "invscaling", "power_t": 0.5, "eta0": 3.0},
    {"learning_rate": "invscaling", "power_t": 0.5, "eta0": 30.0},
]


def optimum(data: str, rows: int, loss: str) -> dict[str, Any]:
    """Close bounds on it."""
    X, y = examples(data, rows)
    bounds = LinearSVC(C=C, loss=loss, fit_intercept=False, tol=1e-5, random_state=0).fit(X, y).certificate_
    return {"lower": bounds.lower, "upper": bounds.upper}


def gradients(data: str, rows: int, goal: float, most: int) -> dict[str, Any]:
    """L-BFGS on the squared hinge, which is smooth; every evaluation is a round, those of line searches too."""
    X, y = examples(data, rows)
    path = _Path(goal, most)

    def function(w: np.ndarray) -> tuple[float, np.ndarray]:
        short = np.maximum(1.0 - y * (X @ w), 0.0)
        value = 0.5 * w @ w + C * (short @ short)
        path.add(value)
        return value, w - 2.0 * C * (X.T @ (y * short))

    with contextlib.suppress(_ThereError):
        minimize(function, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": most, "maxfun": most})
    return path.found(X.shape[1])


def subgradients(data: str, rows: int, goal: float, most: int) -> dict[str, Any]:
    """Steps against a subgradient of the hinge; the best of several lengths."""
    X, y = examples(data, rows)
    return _best([lambda path, late=late: _descend(X, y, late, path) for late in STEPS], goal, most, X.shape[1])


def averaging(data: str, rows: int, goal: float, most: int, workers: int) -> dict[str, Any]:
    """Each worker runs an epoch of scikit-learn's SGD on its rows, then weights are averaged; the best of several."""
    X, y = examples(data, rows)
    parts = np.array_split(np.arange(len(y)), workers)
    pieces = [(X[part], y[part]) for part in parts]
    tries = [lambda path, rate=rate: _average(X, y, pieces, rate, path) for rate in RATES]
    return _best(tries, goal, most, X.shape[1]) | {"workers": workers}


class _ThereError(Exception):
    """The goal is reached, or no more rounds are allowed."""


class _Path:
    def __init__(self, goal: float, most: int) -> None:
        self.goal, self.most = goal, most
        self.values: list[float] = []

    def add(self, value: float) -> None:
        self.values.append(float(value))
        if value <= self.goal or len(self.values) >= self.most:
            raise _ThereError

    def found(self, width: int) -> dict[str, Any]:
        least = min(self.values)
        return {
            "rounds": len(self.values),
            "objective": least,
            "arrived": least <= self.goal,
            "bytes_per_worker": len(self.values) * 2 * 8 * width,
        }


def _best(tries: list[Callable[[_Path], None]], goal: float, most: int, width: int) -> dict[str, Any]:
    found = []
    for attempt in tries:
        path = _Path(goal, most)
        with contextlib.suppress(_ThereError):
            attempt(path)
        found.append(path.found(width))
    return min(found, key=lambda run: (not run["arrived"], run["rounds"], run["objective"]))


def _hinge(X: sp.csr_matrix, y: np.ndarray, w: np.ndarray) -> tuple[float, np.ndarray]:
    short = 1.0 - y * (X @ w)
    return 0.5 * w @ w + C * float(np.maximum(short, 0.0).sum()), short > 0


def _descend(X: sp.csr_matrix, y: np.ndarray, late: float, path: _Path) -> None:
    w = np.zeros(X.shape[1])
    for t in range(path.most + 1):
        value, violated = _hinge(X, y, w)
        path.add(value)
        w -= (w - C * (X.T @ (y * violated))) / (t + 1 + late)


def _average(
    X: sp.csr_matrix, y: np.ndarray, pieces: list[tuple[sp.csr_matrix, np.ndarray]], rate: dict[str, Any], path: _Path
) -> None:
    settings = {"loss": "hinge", "alpha": 1.0 / (C * len(y)), "fit_intercept": False, "random_state": 0}
    models = [SGDClassifier(**settings, **rate) for _ in pieces]
    w = np.zeros(X.shape[1])
    for _ in range(path.most + 1):
        for model, (x, labels) in zip(models, pieces, strict=True):
            if hasattr(model, "coef_"):
                model.coef_ = np.ascontiguousarray(w[None], dtype=model.coef_.dtype)
            model.partial_fit(x, labels, classes=[-1.0, 1.0])
        w = np.mean([model.coef_[0] for model in models], axis=0, dtype=np.float64)
        path.add(_hinge(X, y, w)[0])
