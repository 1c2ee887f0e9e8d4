"""A regularizer plus a linear term, from dual variables that stay fixed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..protocols import Regularizer
from .shape import Shape


class LinearlyShifted:
    """Ω(w) − v₀·w, up to a constant: what a regularizer becomes when some dual variables stay as they are.

    Their part v₀ of v is given once and for all; the others see Ω*(v + v₀). The constant makes the least value 0.

    Parameters
    ----------
    base : Regularizer
    v : array (n_weights,)
        v₀.

    >>> from maxmargin.regularizers import L2
    >>> LinearlyShifted(L2(), np.array([1.0, 2.0])).value(np.array([1.0, 2.0]))
    0.0
    """

    def __init__(self, base: Regularizer, v: np.ndarray) -> None:
        self.base = base
        self.v = v
        self._constant = base.conjugate(v)

    def value(self, w: np.ndarray) -> float:
        return self.base.value(w) - float(self.v @ w) + self._constant

    def conjugate(self, v: np.ndarray) -> float:
        return self.base.conjugate(v + self.v) - self._constant

    def weights(self, v: np.ndarray) -> np.ndarray:
        return self.base.weights(v + self.v)

    def shape(self, n_weights: int) -> Shape:
        shape = self.base.shape(n_weights)
        centre = np.zeros(n_weights) if shape.centre is None else shape.centre
        if shape.covariance is not None:
            return replace(shape, centre=centre + shape.covariance @ self.v)
        return replace(shape, centre=centre + (self.v if shape.scale is None else shape.scale * self.v))
