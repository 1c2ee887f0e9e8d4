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


if __name__ == "__main__":
    answer({"fit": fit})
