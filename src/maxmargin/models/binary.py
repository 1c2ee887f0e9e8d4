from __future__ import annotations

import numpy as np

from ..constraints import Scalar
from ..problem import Rows
from ..protocols import Loss


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
