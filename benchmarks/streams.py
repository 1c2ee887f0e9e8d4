"""One pass over a stream of chunks: how far from the optimum, beside scikit-learn's stochastic gradient descent.

C = 1 and no intercept; rows of unit norm (news20, MNIST) or standardised columns (covtype), in random order.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from datasets import Matrix, folder, mnist
from sklearn.linear_model import SGDClassifier

from maxmargin import LinearSVC

CHUNK = 1000
OPTIMUM = 1e-4  # relative gap of the fit in memory
STEPS: dict[str, dict[str, Any]] = {"optimal": {"learning_rate": "optimal"}} | {
    f"eta0 = {eta:g}": {"learning_rate": "invscaling", "eta0": eta, "power_t": 0.5} for eta in (0.001, 0.01, 0.1, 1.0)
}


def _news20() -> tuple[Matrix, np.ndarray]:
    """All 18846 texts, logarithmic tf-idf."""
    with np.load(folder() / "news20_bydate_counts.npz") as z:
        x = sp.csr_matrix((z["data"].astype(np.float64), z["indices"], z["indptr"]), shape=tuple(z["shape"]))
        y = z["y"]
    idf = np.log(x.shape[0] / (1 + np.bincount(x.indices, minlength=x.shape[1])))
    x.data = (1 + np.log(x.data)) * idf[x.indices]
    norms = np.sqrt(np.asarray(x.multiply(x).sum(axis=1)).ravel())
    x.data /= np.repeat(norms, np.diff(x.indptr))
    return x.astype(np.float32), y


def _covtype() -> tuple[Matrix, np.ndarray]:
    """Class 2 against the rest, every column standardised."""
    with np.load(folder() / "covtype.npz") as z:
        rows = np.arange(len(z["y"]))
        x = np.zeros((rows.size, 54))
        x[:, :10] = z["num"]
        x[rows, 10 + z["wild"].astype(int)] = 1
        x[rows, 14 + z["soil"].astype(int)] = 1
        y = z["y"] == 2
    x -= x.mean(axis=0)
    x /= x.std(axis=0) + 1e-9
    return x.astype(np.float32), y.astype(np.int64)


SETS: dict[str, Callable[[], tuple[Matrix, np.ndarray]]] = {"news20": _news20, "covtype": _covtype, "mnist": mnist}


def measure(name: str, rows: int | None, repeats: int, budget: float) -> dict[str, Any]:
    """Everything about one data set. Two classes are one problem; more are Crammer-Singer, and one-vs-rest too."""
    X, y = SETS[name]()
    order = np.random.default_rng(0).permutation(len(y))[:rows]
    X, y = X[order], y[order]
    parts = [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]
    size = sum(part.nbytes for part in parts)
    kinds = ["ovr"] if np.unique(y).size == 2 else ["crammer_singer", "ovr"]
    _warm_up(X, y, kinds)
    found: dict[str, Any] = {"n": len(y), "features": X.shape[1], "classes": np.unique(y).size, "size": size}
    return found | {"problems": {kind: _problem(kind, X, y, size, repeats, budget) for kind in kinds}}


def _warm_up(X: Matrix, y: np.ndarray, kinds: list[str]) -> None:
    """Compiled code is loaded before the clock starts."""
    for kind in kinds:
        _svm(kind).fit(X[:300], y[:300])
        _stream(_svm(kind), X[:300], y[:300], np.unique(y))


def _svm(kind: str, **settings: Any) -> LinearSVC:
    return LinearSVC(C=1.0, fit_intercept=False, random_state=0, multi_class=kind, **settings)


def _problem(kind: str, X: Matrix, y: np.ndarray, size: int, repeats: int, budget: float) -> dict[str, Any]:
    start = time.perf_counter()
    best = _svm(kind, tol=OPTIMUM).fit(X, y)
    seconds, bounds = time.perf_counter() - start, best.certificate_
    runs: dict[str, dict[str, Any]] = {}
    for _ in range(repeats):
        for name, make, objective in _rivals(kind, len(y), size):
            known = runs.setdefault(name, {"seconds": []})
            if known["seconds"] and known["seconds"][0] > budget / 2:
                continue
            start = time.perf_counter()
            model = _stream(make(), X, y, best.classes_)
            known["seconds"].append(time.perf_counter() - start)
            known["objective"] = objective(model, X, y)
    optimum = {"seconds": seconds, "lower": bounds.lower, "upper": bounds.upper}
    return {"optimum": optimum, "runs": runs}


def _rivals(kind: str, n: int, size: int) -> Iterator[tuple[str, Callable[[], Any], Callable[..., float]]]:
    """Name, a new model, and how to find its objective; gradient descent knows one-vs-rest only."""

    def certified(model: LinearSVC, X: Matrix, y: np.ndarray) -> float:
        return model.certify(X, y).upper

    yield "maxmargin", lambda: _svm(kind), certified
    yield "maxmargin, memory = data / 10", lambda: _svm(kind, memory=size // 10), certified
    if kind == "ovr":
        for name, steps in STEPS.items():
            yield f"SGD, {name}", lambda steps=steps: _sgd(n, steps), one_vs_rest


def _sgd(n: int, steps: dict[str, Any]) -> SGDClassifier:
    return SGDClassifier(loss="hinge", alpha=1 / n, fit_intercept=False, random_state=0, **steps)


def _stream(model: Any, X: Matrix, y: np.ndarray, classes: np.ndarray) -> Any:
    for a in range(0, len(y), CHUNK):
        model.partial_fit(X[a : a + CHUNK], y[a : a + CHUNK], classes=classes)
    return model


def one_vs_rest(model: Any, X: Matrix, y: np.ndarray) -> float:
    """Sum over classes of 1/2 |w|^2 + sum of hinge losses, in float64; two classes are one problem."""
    positives = model.classes_ if len(model.classes_) > 2 else model.classes_[1:]
    total = 0.0
    for w, positive in zip(model.coef_.astype(np.float64), positives, strict=True):
        scores = np.where(y == positive, 1.0, -1.0) * (X @ w)
        total += 0.5 * w @ w + np.maximum(0.0, 1.0 - scores).sum()
    return float(total)
