"""Search through everything: for small problems, and to test cleverer searches against."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from ..kernels.multilabel import best_subsets


def best_labelling(
    score: Callable[[np.ndarray], float], n_nodes: int, n_labels: int, limit: int = 10_000_000
) -> tuple[np.ndarray, float]:
    """The first labelling of the highest score among all n_labels ** n_nodes, and that score.

    >>> best_labelling(lambda y: -abs(y.sum() - 3), n_nodes=2, n_labels=3)
    (array([1, 2]), 0.0)
    """
    if n_labels**n_nodes > limit:
        raise ValueError(f"{n_labels}^{n_nodes} labellings are more than {limit}: too many to try them all.")
    best, highest = None, -np.inf
    for labels in product(range(n_labels), repeat=n_nodes):
        y = np.array(labels, dtype=np.int64)
        value = float(score(y))
        if best is None or value > highest:
            best, highest = y, value
    assert best is not None, "product never comes without an item"
    return best, highest


def best_binary(gain: np.ndarray, joint: np.ndarray) -> tuple[np.ndarray, float]:
    """The 0/1 vector y that maximises gain·y + Σ_{a<b} joint[a, b] y_a y_b, and that value.

    All 2^L vectors are tried, in the order of the Gray code: from one to the next a single entry changes, so that
    each costs about L additions. Twenty entries take some ten milliseconds.

    Parameters
    ----------
    gain : array (L,)
    joint : array (L, L)
        Only the part above the diagonal counts.

    >>> best_binary(np.array([1.0, 1.0, -1.0]), np.array([[0, -3.0, 2.0], [0, 0, 0], [0, 0, 0]]))
    (array([1, 0, 1], dtype=int8), 2.0)
    """
    gain = np.ascontiguousarray(gain, dtype=np.float64).reshape(-1, 1)
    above = np.triu(np.asarray(joint, dtype=np.float64), 1)
    if gain.size > 30:
        raise ValueError(f"2^{gain.size} vectors are too many to try them all.")
    labels = np.empty((1, gain.size), np.int8)
    best_subsets(gain, above + above.T, labels)
    y = labels[0].astype(np.float64)
    return labels[0], float(gain[:, 0] @ y + y @ above @ y)
