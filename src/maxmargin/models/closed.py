"""Problems whose constraints are all listed: two classes, several, and regression. ``ranking`` is the fourth."""

from __future__ import annotations

import numpy as np

from ..constraints import Classes, Scalar
from ..losses import EpsilonInsensitive
from ..problem import Rows
from ..protocols import Loss
from .labelling import check_loss

_BOTH_SIDES = np.zeros(1, np.int8)


def binary(
    rows: Rows,
    sign: np.ndarray,
    budget: np.ndarray,
    *,
    margin: np.ndarray | None = None,
    loss: Loss | None = None,
) -> Scalar:
    """Two classes: y_i·(w·x_i) ≥ margin_i − ξ_i.

    Parameters
    ----------
    rows : Rows
    sign : int8 array (n,)
        +1 or −1.
    budget : array (n,) or (1,)
        C_i.
    margin : array (n,) or None
        How far each example must lie on its side; 1 by default.
    loss : Loss or None
        What ξ costs, in units of C: one of ``maxmargin.losses``, the hinge (ξ itself) by default.
    """
    if (np.abs(sign) != 1).any():
        raise ValueError("sign must be +1 or −1 for every row. Of classes 0 and 1 it is 2 * y - 1.")
    target = sign if margin is None else sign * np.asarray(margin, dtype=np.float64)
    return Scalar(rows, target, sign, budget, loss=loss)


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
    check_loss(cost, None, "cost", ())
    cost = np.ascontiguousarray(cost, dtype=np.float64)
    return Classes(rows, np.ascontiguousarray(label, dtype=np.int32), cost, budget)


def regression(rows: Rows, target: np.ndarray, budget: np.ndarray, *, loss: Loss | None = None) -> Scalar:
    """abs(w·x_i − y_i) ≤ ε + ξ_i: both constraints of an example are one dual variable in [−C_i, C_i].

    ``loss`` is ``EpsilonInsensitive(0.1)`` by default.
    """
    return Scalar(rows, target, _BOTH_SIDES, budget, EpsilonInsensitive() if loss is None else loss)
