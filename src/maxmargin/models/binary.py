from __future__ import annotations

import numpy as np

from ..constraints import Scalar
from ..problem import Rows


def binary(
    rows: Rows,
    sign: np.ndarray,
    budget: np.ndarray,
    *,
    margin: np.ndarray | None = None,
    squared: bool = False,
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
    squared : bool
        Pay C·ξ² instead of C·ξ.
    """
    if (np.abs(sign) != 1).any():
        raise ValueError("sign must be +1 or −1 for every row. Of classes 0 and 1 it is 2 * y - 1.")
    target = sign if margin is None else sign * np.asarray(margin, dtype=np.float64)
    return Scalar(rows, target, sign, budget, squared=squared)
