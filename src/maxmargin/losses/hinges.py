"""The losses that kernels know: nothing up to a distance that is free, then a parabola, then a line."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np

from ..kernels.losses import LossShape
from ..validation import as_float, shown


def price(shape: LossShape, excess: np.ndarray) -> np.ndarray:
    """φ of what exceeds ε: kernels have the same as ``cost``, in units of C."""
    _, curvature, bounded = shape
    excess = np.maximum(excess, 0.0)
    if curvature == 0.0:
        return excess
    if not bounded:
        return np.square(excess) / (2.0 * curvature)
    return np.square(np.minimum(excess, curvature)) / (2.0 * curvature) + np.maximum(excess - curvature, 0.0)


class _Family:
    """φ and φ* as they follow from the shape; see ``kernels.losses``."""

    _shape = LossShape()

    def value(self, missed: np.ndarray) -> np.ndarray:
        return price(self._shape, missed - self._shape.epsilon)

    def conjugate(self, alpha: np.ndarray) -> np.ndarray:
        epsilon, curvature, bounded = self._shape
        allowed = (alpha >= 0.0) & (alpha <= (1.0 if bounded else np.inf))
        return np.where(allowed, epsilon * alpha + 0.5 * curvature * np.square(alpha), np.inf)

    def shape(self) -> LossShape:
        return self._shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items() if k != '_shape')})"


class Hinge(_Family):
    """φ(e) = max(0, e): every unit by which a margin is missed costs the same.

    >>> Hinge().value(np.array([-1.0, 0.5, 2.0]))
    array([0. , 0.5, 2. ])
    """


class SquaredHinge(_Family):
    """φ(e) = max(0, e)²: small misses cost little, large ones much; dual variables have no upper bound.

    >>> SquaredHinge().value(np.array([-1.0, 0.5, 2.0]))
    array([0.  , 0.25, 4.  ])
    """

    _shape = LossShape(curvature=0.5, bounded=False)


class SmoothedHinge(_Family):
    """The hinge with a parabola in place of its kink, also called Huberized.

        φ(e) = 0 for e ≤ 0,   e²/(2·width) up to e = width,   e − width/2 beyond

    It is nowhere above the hinge and nowhere below it by more than width/2. Like the squared hinge it has a slope
    everywhere, and like the hinge it grows no faster than the distance: outliers pull with a force of at most C.

    Parameters
    ----------
    width : float
        Over what length of the margin the slope grows from 0 to 1. With 1 (the default) and a margin of 1 the parabola
        reaches from the margin to the boundary between the classes.

    Examples
    --------
    >>> SmoothedHinge().value(np.array([-1.0, 0.5, 2.0]))
    array([0.   , 0.125, 1.5  ])
    """

    def __init__(self, width: float = 1.0) -> None:
        if not _is_finite(width) or width <= 0:
            raise ValueError(
                f"SmoothedHinge: width must be a number above 0, got {shown(width)}. With 0 it would be the Hinge."
            )
        self.width = float(width)
        self._shape = LossShape(curvature=self.width)


class EpsilonInsensitive(_Family):
    """φ = max(0, distance − ε): the hinge of what is beyond ε, for regression.

    >>> EpsilonInsensitive(0.5).value(np.array([0.25, 2.0]))
    array([0. , 1.5])
    """

    def __init__(self, epsilon: float = 0.1) -> None:
        if not _is_finite(epsilon) or epsilon < 0:
            raise ValueError(f"epsilon must be a number of at least 0, got {shown(epsilon)}.")
        self.epsilon = float(epsilon)
        self._shape = self._shape._replace(epsilon=self.epsilon)


class SquaredEpsilonInsensitive(EpsilonInsensitive):
    """φ = max(0, distance − ε)²: the squared hinge of what is beyond ε.

    >>> SquaredEpsilonInsensitive(0.5).value(np.array([0.25, 2.0]))
    array([0.  , 2.25])
    """

    _shape = SquaredHinge._shape


def _is_finite(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(as_float(value))
