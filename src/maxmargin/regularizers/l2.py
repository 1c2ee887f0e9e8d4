"""The squared Euclidean norm."""

from __future__ import annotations

import numpy as np

from ..kernels.vectors import dot
from ..rounding import gamma
from .shape import Shape


class L2:
    """Ω(w) = ½‖w‖², the plain SVM.

    >>> L2().value(np.array([3.0, 4.0]))
    12.5
    """

    def value(self, w: np.ndarray) -> float:
        return 0.5 * dot(w, w)

    def conjugate(self, v: np.ndarray) -> float:
        return 0.5 * dot(v, v)

    def conjugate_error(self, v: np.ndarray, error: np.ndarray) -> float:
        moved = dot(np.abs(v) + 0.5 * error, error)
        return gamma(v.size + 4) * (self.conjugate(v) + moved) + moved

    def weights(self, v: np.ndarray) -> np.ndarray:
        return v.copy()

    def shape(self, n_weights: int) -> Shape:
        return Shape(n_weights)

    def __repr__(self) -> str:
        return "L2()"
