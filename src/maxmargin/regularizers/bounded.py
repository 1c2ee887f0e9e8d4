from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.maps import Clipped, Plain
from ..protocols import Regularizer
from ..wording import check_object, shown
from .l2 import L2
from .shape import Shape
from .vectors import dot, numbers


class Bounded:
    """Some weights may not fall below given bounds; otherwise the base regularizer (l2 or a diagonal prior).

    The dual variables see the *unclipped* v: w = max(v, lower). Clipping w itself after each step, as is
    often done, stops short of the optimum.

    Parameters
    ----------
    lower : float or array (len(indices),)
        The bounds; 0 for non-negative weights.
    indices : array of int or None
        Which weights are bounded; all of them by default.
    base : regularizer or None
        L2 (the default) or a GaussianPrior with a diagonal covariance.

    Examples
    --------
    >>> Bounded(lower=0.0, indices=[0]).weights(np.array([-1.0, -2.0]))
    array([ 0., -2.])
    """

    def __init__(self, lower: Any = 0.0, indices: Any = None, base: Regularizer | None = None) -> None:
        numbers("Bounded: lower", lower)
        check_object("base", base)
        if base is not None and not hasattr(base, "dual_scale"):
            raise ValueError(f"Bounded: base must be a regularizer such as L2(), or None; got {shown(base)}.")
        self.lower = lower
        self.indices = indices
        self.base = base

    def _base(self) -> Regularizer:
        return L2() if self.base is None else self.base

    def _floor(self, n_weights: int) -> np.ndarray:
        lower = np.asarray(self.lower, dtype=np.float64)
        index = np.arange(n_weights) if self.indices is None else np.asarray(self.indices)
        if index.size and (index.dtype.kind not in "iu" or index.ndim != 1):
            raise ValueError(f"Bounded: indices must be a list of whole numbers, got {shown(self.indices)}.")
        if index.size and (index.min() < 0 or index.max() >= n_weights):
            raise ValueError(
                f"Bounded: indices run from {index.min()} to {index.max()}, the weights from 0 to {n_weights - 1}."
            )
        if lower.ndim > 1 or (lower.ndim == 1 and lower.size != index.size):
            raise ValueError(
                f"Bounded: {index.size} weights are bounded, but lower has shape {lower.shape}. "
                "Give one number or one per index."
            )
        if np.isnan(lower).any() or np.isposinf(lower).any():
            raise ValueError("Bounded: lower must be numbers, or -inf for no bound.")
        floor = np.full(n_weights, -np.inf)
        if index.size:
            floor[index] = lower
        return floor

    def value(self, w: np.ndarray) -> float:
        return self._base().value(w) if (w >= self._floor(w.size)).all() else np.inf

    def conjugate(self, v: np.ndarray) -> float:
        w = self.weights(v)
        return dot(w, v) - self._base().value(w)

    def weights(self, v: np.ndarray) -> np.ndarray:
        self.shape(v.size)
        return np.maximum(self._base().weights(v), self._floor(v.size))

    def shape(self, n_weights: int) -> Shape:
        base = self._base().shape(n_weights)
        if base.kind not in (Plain, Clipped) or base.floor is not None:
            raise ValueError(
                f"Bounded: the base must be L2 or a GaussianPrior with a diagonal covariance, got {self.base!r}."
            )
        return Shape(n_weights, centre=base.centre, scale=base.scale, floor=self._floor(n_weights))

    def dual_scale(self, v: np.ndarray) -> float:
        return 1.0

    def __repr__(self) -> str:
        return f"Bounded(lower={self.lower!r}, indices={self.indices!r}, base={self.base!r})"
