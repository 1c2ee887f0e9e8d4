from __future__ import annotations

import numpy as np

from ..constraints import Classes
from ..problem import Rows


def multiclass(rows: Rows, label: np.ndarray, cost: np.ndarray, budget: np.ndarray) -> Classes:
    """Crammer–Singer: w_{y_i}·x_i ≥ w_k·x_i + cost[y_i, k] − ξ_i for every other class k.

    Parameters
    ----------
    rows : Rows
    label : int array (n,)
        Classes as 0 … K−1.
    cost : array (K, K)
        Zero on the diagonal, not negative elsewhere.
    budget : array (n,) or (1,)
    """
    cost = np.ascontiguousarray(cost, dtype=np.float64)
    if cost.ndim != 2 or cost.shape[0] != cost.shape[1]:
        raise ValueError(f"The cost matrix must be square, got shape {cost.shape}.")
    if np.diagonal(cost).any() or not (cost >= 0).all() or not np.isfinite(cost).all():
        raise ValueError("The cost matrix must be finite and not negative, with zeros on the diagonal.")
    return Classes(rows, np.ascontiguousarray(label, dtype=np.int32), cost, budget)
