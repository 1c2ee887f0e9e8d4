"""The hinge loss."""

from __future__ import annotations

import numpy as np

from ..kernels.losses import LossShape


class Hinge:
    """φ(e) = max(0, e): every unit by which a margin is missed costs the same.

    >>> Hinge().value(np.array([-1.0, 0.5, 2.0]))
    array([0. , 0.5, 2. ])
    """

    def value(self, missed: np.ndarray) -> np.ndarray:
        return np.maximum(missed, 0.0)

    def conjugate(self, alpha: np.ndarray) -> np.ndarray:
        return np.where((alpha >= 0.0) & (alpha <= 1.0), 0.0, np.inf)

    def shape(self) -> LossShape:
        return LossShape()

    def __repr__(self) -> str:
        return "Hinge()"
