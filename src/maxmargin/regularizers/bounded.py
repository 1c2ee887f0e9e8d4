"""Bounds on single weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.vectors import dot
from ..protocols import Regularizer
from ..validation import check_object, indices, numbers, shown
from .l2 import L2
from .shape import Shape


class Bounded:
    """Some weights stay between given bounds; otherwise the base regularizer (l2 or a diagonal prior).

    The dual variables see the *unclipped* v: w = min(max(v, lower), upper). Clipping w itself after each step, as is
    often done, stops short of the optimum.

    Parameters
    ----------
    lower : float or array (len(indices),)
        The lower bounds; 0 for non-negative weights (the default), -inf for none.
    indices : array of int or None
        Which weights are bounded; all of them by default.
    base : regularizer or None
        L2 (the default) or a GaussianPrior with a diagonal covariance.
    upper : float or array (len(indices),), by keyword only
        The upper bounds; inf (the default) for none. A weight whose bounds are equal is fixed.

    Examples
    --------
    >>> Bounded(lower=0.0, indices=[0]).weights(np.array([-1.0, -2.0]))
    array([ 0., -2.])
    >>> Bounded(lower=-1.0, upper=0.5).weights(np.array([-3.0, 0.25, 2.0]))
    array([-1.  ,  0.25,  0.5 ])
    """

    def __init__(
        self, lower: object = 0.0, indices: Any = None, base: Regularizer | None = None, *, upper: Any = np.inf
    ) -> None:
        numbers("Bounded: lower", lower)
        numbers("Bounded: upper", upper)
        check_object("base", base)
        if base is not None and not hasattr(base, "weights"):
            raise ValueError(f"Bounded: base must be a regularizer such as L2(), or None; got {shown(base)}.")
        self.lower = lower
        self.upper = upper
        self.indices = indices
        self.base = base

    def _base(self) -> Regularizer:
        return L2() if self.base is None else self.base

    def _bounds(self, n_weights: int) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of all weights, infinite where there are none."""
        index = np.arange(n_weights) if self.indices is None else indices("Bounded: indices", self.indices)
        if index.size and (index.min() < 0 or index.max() >= n_weights):
            raise ValueError(
                f"Bounded: indices run from {index.min()} to {index.max()}, the weights from 0 to {n_weights - 1}."
            )
        floor, ceiling = np.full(n_weights, -np.inf), np.full(n_weights, np.inf)
        for name, given, bounds in (("lower", self.lower, floor), ("upper", self.upper, ceiling)):
            values = np.asarray(given, dtype=np.float64)
            if values.ndim > 1 or (values.ndim == 1 and values.size != index.size):
                raise ValueError(
                    f"Bounded: {index.size} weights are bounded, but {name} has shape {values.shape}. "
                    "Give one number or one per index."
                )
            none = -np.inf if name == "lower" else np.inf
            if np.isnan(values).any() or (values == -none).any():
                raise ValueError(f"Bounded: {name} must be numbers, or {none:g} for no bound.")
            if index.size:
                bounds[index] = values
        if (floor > ceiling).any():
            at = int(np.argmax(floor > ceiling))
            raise ValueError(
                f"Bounded: the lower bound {floor[at]:g} of weight {at} is above its upper bound {ceiling[at]:g}. Give "
                "lower=-inf where only the upper one is meant."
            )
        return floor, ceiling

    def value(self, w: np.ndarray) -> float:
        floor, ceiling = self._bounds(w.size)
        return self._base().value(w) if ((w >= floor) & (w <= ceiling)).all() else np.inf

    def conjugate(self, v: np.ndarray) -> float:
        w = self.weights(v)
        return dot(w, v) - self._base().value(w)

    def weights(self, v: np.ndarray) -> np.ndarray:
        self.shape(v.size)
        return np.clip(self._base().weights(v), *self._bounds(v.size))

    def shape(self, n_weights: int) -> Shape:
        base = self._base().shape(n_weights)
        if not base.affine or base.covariance is not None:
            raise ValueError(
                f"Bounded: the base must be L2 or a GaussianPrior with a diagonal covariance, got {self.base!r}."
            )
        floor, ceiling = self._bounds(n_weights)
        above = ceiling if np.isfinite(ceiling).any() else None
        return Shape(n_weights, centre=base.centre, scale=base.scale, floor=floor, ceiling=above)

    def __repr__(self) -> str:
        upper = "" if np.ndim(self.upper) == 0 and self.upper == np.inf else f"upper={self.upper!r}, "
        return f"Bounded(lower={self.lower!r}, {upper}indices={self.indices!r}, base={self.base!r})"
