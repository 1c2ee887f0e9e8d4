"""The peer: MI-SVM as one would write it around scikit-learn's LinearSVC (LIBLINEAR), mining and training in turns.

    start       LinearSVC of the means of all bags
    outer loop  the best instance of every positive bag is its example, until F no longer falls by a share of 1e-3
    inner loop  negatives="bag": the best instance of every negative bag joins the examples, until none is new
                negatives="instances": all instances of negative bags are examples, and there is nothing to mine

LIBLINEAR knows no slack that several rows share: instances of one bag that were mined pay one by one, which is the
usual way, and F, the objective of both sides, is computed from the definition.
"""

import itertools
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

MOST_ROUNDS = 50


def objective(table: Any, first: np.ndarray, positive: np.ndarray, C: float, negatives: str, w: Any, b: float) -> float:
    """F(w) in plain NumPy: the same for both sides."""
    scores = np.asarray(table @ w).ravel() + b
    top = np.maximum.reduceat(scores, first[:-1])
    loss = np.maximum(0.0, 1.0 - top[positive]).sum()
    if negatives == "bag":
        loss += np.maximum(0.0, 1.0 + top[~positive]).sum()
    else:
        loss += np.maximum(0.0, 1.0 + scores[np.repeat(~positive, np.diff(first))]).sum()
    return float(0.5 * (w @ w + b * b) + C * loss)


def mine_and_retrain(X: list[Any], positive: np.ndarray, C: float, negatives: str, tol: float) -> tuple[Any, float]:
    sparse = sp.issparse(X[0])
    table = sp.vstack(X, format="csr") if sparse else np.concatenate(X)
    first = np.concatenate([[0], np.cumsum([x.shape[0] for x in X])])
    means = sp.vstack([sp.csr_matrix(x.mean(axis=0)) for x in X]) if sparse else np.array([x.mean(axis=0) for x in X])
    solver = LinearSVC(C=C, loss="hinge", tol=tol, max_iter=100_000, random_state=0)

    def train(rows: Any, labels: np.ndarray) -> tuple[np.ndarray, float]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solver.fit(rows, labels)
        return solver.coef_[0], float(solver.intercept_[0])

    def tops(w: np.ndarray, b: float) -> tuple[np.ndarray, np.ndarray]:
        """The row of the best instance of every bag, and its score."""
        scores = np.asarray(table @ w).ravel() + b
        rows = np.array([a + np.argmax(scores[a:z]) for a, z in itertools.pairwise(first)])
        return rows, scores[rows]

    w, b = train(means, positive)
    best: tuple[float, Any, float] = (np.inf, w, b)
    last = np.inf
    rows, _ = tops(w, b)
    everything = np.flatnonzero(np.repeat(~positive, np.diff(first)))
    mined = rows[~positive] if negatives == "bag" else everything
    for _ in range(MOST_ROUNDS):
        chosen = rows[positive]
        for _ in range(MOST_ROUNDS):
            labels = np.concatenate([np.ones(chosen.size), -np.ones(mined.size)])
            w, b = train(table[np.concatenate([chosen, mined])], labels)
            rows, scores = tops(w, b)
            hard = rows[~positive & (scores > -1.0)]
            new = np.setdiff1d(hard, mined)
            if negatives == "instances" or not new.size:
                break
            mined = np.union1d(mined, new)
        F = objective(table, first, positive, C, negatives, w, b)
        best = min(best, (F, w, b), key=lambda one: one[0])
        if last - F < 1e-3 * F:
            break
        last = F
    return best[1], best[2]
