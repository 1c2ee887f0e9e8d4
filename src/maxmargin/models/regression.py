from __future__ import annotations

import numpy as np

from ..constraints import Scalar
from ..losses import EpsilonInsensitive
from ..problem import Rows
from ..protocols import Loss

_BOTH_SIDES = np.zeros(1, np.int8)


def regression(rows: Rows, target: np.ndarray, budget: np.ndarray, *, loss: Loss | None = None) -> Scalar:
    """abs(w·x_i − y_i) ≤ ε + ξ_i: both constraints of an example are one dual variable in [−C_i, C_i].

    ``loss`` is ``EpsilonInsensitive(0.1)`` by default.
    """
    return Scalar(rows, target, _BOTH_SIDES, budget, EpsilonInsensitive() if loss is None else loss)
