"""The smoothed hinge loss."""

from __future__ import annotations

import numpy as np

from ..kernels.losses import LossShape
from ..wording import shown


class SmoothedHinge:
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
        number = isinstance(width, int | float | np.number) and not isinstance(width, bool)
        if not number or not (np.isfinite(width) and width > 0):
            raise ValueError(
                f"SmoothedHinge: width must be a number above 0, got {shown(width)}. With 0 it would be the Hinge."
            )
        self.width = float(width)

    def value(self, missed: np.ndarray) -> np.ndarray:
        bent = np.clip(missed, 0.0, self.width)
        return np.square(bent) / (2.0 * self.width) + np.maximum(missed - self.width, 0.0)

    def conjugate(self, alpha: np.ndarray) -> np.ndarray:
        return np.where((alpha >= 0.0) & (alpha <= 1.0), 0.5 * self.width * np.square(alpha), np.inf)

    def shape(self) -> LossShape:
        return LossShape(curvature=self.width)

    def __repr__(self) -> str:
        return f"SmoothedHinge(width={self.width!r})"
