"""Losses of regression, in which distances up to ε are free: the hinge and the squared hinge of what is beyond."""

from __future__ import annotations

import numpy as np

from ..kernels.losses import LossShape
from ..wording import shown


def _checked(epsilon: float) -> float:
    number = isinstance(epsilon, int | float | np.number) and not isinstance(epsilon, bool)
    if not number or not (np.isfinite(epsilon) and epsilon >= 0):
        raise ValueError(f"epsilon must be a number of at least 0, got {shown(epsilon)}.")
    return float(epsilon)


class EpsilonInsensitive:
    """φ = max(0, distance − ε).

    >>> EpsilonInsensitive(0.5).value(np.array([0.25, 2.0]))
    array([0. , 1.5])
    """

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon = _checked(epsilon)

    def value(self, missed: np.ndarray) -> np.ndarray:
        return np.maximum(missed - self.epsilon, 0.0)

    def conjugate(self, alpha: np.ndarray) -> np.ndarray:
        return np.where((alpha >= 0.0) & (alpha <= 1.0), self.epsilon * alpha, np.inf)

    def shape(self) -> LossShape:
        return LossShape(self.epsilon)

    def __repr__(self) -> str:
        return f"EpsilonInsensitive(epsilon={self.epsilon!r})"


class SquaredEpsilonInsensitive:
    """φ = max(0, distance − ε)².

    >>> SquaredEpsilonInsensitive(0.5).value(np.array([0.25, 2.0]))
    array([0.  , 2.25])
    """

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon = _checked(epsilon)

    def value(self, missed: np.ndarray) -> np.ndarray:
        return np.square(np.maximum(missed - self.epsilon, 0.0))

    def conjugate(self, alpha: np.ndarray) -> np.ndarray:
        return np.where(alpha >= 0.0, self.epsilon * alpha + 0.25 * np.square(alpha), np.inf)

    def shape(self) -> LossShape:
        return LossShape(self.epsilon, curvature=0.5, bounded=False)

    def __repr__(self) -> str:
        return f"SquaredEpsilonInsensitive(epsilon={self.epsilon!r})"
