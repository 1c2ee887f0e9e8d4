"""One fit on bags in a process of its own: seconds, and the objective that was reached."""

import functools
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from bag_data import DATA
from own_process import answer
from peer_bags import mine_and_retrain, objective

import maxmargin as mm

BOUNDS = {"cccp": mm.latent.CCCP(), "multi-fold": mm.latent.MultiFold(4)}


def ours(
    X: list[Any], positive: np.ndarray, C: float, negatives: str, tol: float, bound: str
) -> tuple[np.ndarray, float]:
    svm = mm.LatentSVC(C=C, negatives=negatives, bound=BOUNDS[bound], tol=tol, bound_tol=1e-3, random_state=0)
    svm.fit(X, positive)
    return svm.coef_[0], float(svm.intercept_[0])


WORKERS = {
    "maxmargin": functools.partial(ours, bound="cccp"),
    "maxmargin, multi-fold": functools.partial(ours, bound="multi-fold"),
    "scikit-learn": mine_and_retrain,
}


def fit(who: str, data: str, n: int, C: float, negatives: str, tol: float) -> dict[str, Any]:
    X, positive = DATA[data](n)
    small, labels = DATA[data](20, seed=1)
    WORKERS[who](small, labels, 1.0, negatives, 0.1)  # compiled code is loaded before the clock starts
    wall, cpu = time.perf_counter(), time.process_time()
    w, b = WORKERS[who](X, positive, C, negatives, tol)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    table = sp.vstack(X, format="csr") if sp.issparse(X[0]) else np.concatenate(X)
    first = np.concatenate([[0], np.cumsum([x.shape[0] for x in X])])
    return {
        "seconds": cpu,
        "wall": wall,
        "objective": objective(table, first, positive, C, negatives, w, b),
        "instances": int(first[-1]),
    }


def predict(n: int, n_states: int, d: int, kept: int, repeats: int) -> dict[str, Any]:
    """Seconds to predict bags with all states of both classes, and with all but ``kept`` of them dropped."""
    rng = np.random.default_rng(0)
    model = mm.models.Bags(2, d, states="separate", n_states=n_states)
    X = rng.normal(size=(n, n_states, d)).astype(np.float32)
    full = rng.normal(size=(2 * n_states, d + 1))
    few = np.where(rng.permutation(2 * n_states)[:, None] < kept, full, 0.0)
    seconds = {}
    for name, w in (("full", full.ravel()), ("few", few.ravel())):
        model.predict_all(X[:10], w)
        times = []
        for _ in range(repeats):
            begin = time.process_time()
            model.predict_all(X, w)
            times.append(time.process_time() - begin)
        seconds[name] = times
    return seconds


if __name__ == "__main__":
    answer({"fit": fit, "predict": predict})
