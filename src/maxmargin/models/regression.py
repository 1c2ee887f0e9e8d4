from __future__ import annotations

import numpy as np

from ..constraints import Scalar
from ..problem import Rows

_BOTH_SIDES = np.zeros(1, np.int8)


def regression(
    rows: Rows, target: np.ndarray, budget: np.ndarray, *, epsilon: float = 0.1, squared: bool = False
) -> Scalar:
    """abs(w·x_i − y_i) ≤ ε + ξ_i: both constraints of an example are one dual variable in [−C_i, C_i]."""
    return Scalar(rows, target, _BOTH_SIDES, budget, epsilon=epsilon, squared=squared)
