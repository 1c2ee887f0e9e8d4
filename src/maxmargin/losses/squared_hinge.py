"""The squared hinge loss."""

from __future__ import annotations

import numpy as np

from ..kernels.losses import LossShape


class SquaredHinge:
    """φ(e) = max(0, e)²: small misses cost little, large ones much; dual variables have no upper bound.

    >>> SquaredHinge().value(np.array([-1.0, 0.5, 2.0]))
    array([0.  , 0.25, 4.  ])
    """

    def value(self, missed: np.ndarray) -> np.ndarray:
        return np.square(np.maximum(missed, 0.0))

    def conjugate(self, alpha: np.ndarray) -> np.ndarray:
        return np.where(alpha >= 0.0, 0.25 * np.square(alpha), np.inf)

    def shape(self) -> LossShape:
        return LossShape(curvature=0.5, bounded=False)

    def __repr__(self) -> str:
        return "SquaredHinge()"
