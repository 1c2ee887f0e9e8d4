"""What rounding may change in scores of windows, which are computed in float32.

Products are summed in any order, with or without fused multiplications, but one by one: a response of a filter is a sum
over rows of such sums, and Σ|w||x| is at most Σ ‖cell of the filter‖ times the largest ‖cell‖ of the grid.
"""

from __future__ import annotations

import numpy as np

from ...rounding import SINGLE, gamma
from .model import ViewPart

_HULL = 2.0**-48  # by which share of the numbers on it a hull may be off, for each of its points: they are float64


def size_of(weights: np.ndarray) -> float:
    """Σ ‖cell‖ of a filter."""
    return float(np.sqrt(np.einsum("ijk,ijk->ij", weights, weights)).sum())


def response_error(weights: np.ndarray, size: float) -> float:
    """By how much a response of a filter may be off, where Σ|w||x| ≤ size; see ``Correlator``, "products"."""
    rows, columns, depth = weights.shape
    return gamma(rows + columns * depth + 2, SINGLE) * size


class PartRounding:
    """What rounding may change in what a part adds to a root, anywhere on a grid."""

    def __init__(self, part: ViewPart) -> None:
        quadratic, slope = part.cost[0::2], np.abs(part.cost[1::2])
        self.size = size_of(part.filter)
        self.response = response_error(part.filter, self.size)
        self.bent, self.steep = float(quadratic.max()), float(slope.max())
        self.placed = bool((quadratic > 0.0).all())  # or it would have no best place
        self.gain = float((slope**2 / (4.0 * quadratic)).sum()) if self.placed else np.inf
        """A price may be below zero by so much."""

    def bounds(self, longest: float, lowest: float, n: int) -> tuple[float, float]:
        """The most that the part adds or takes, and by how much what was computed may be off.

        Parameters
        ----------
        longest : float
            The largest ‖cell‖ of the grid.
        lowest : float
            The least that the part adds to any root.
        n : int
            As far as a part can be from its anchor, in cells.
        """
        if not self.placed:
            return np.inf, np.inf
        most = self.size * longest + self.gain + max(0.0, -lowest)
        # What is computed is response − price − price, and the best place is not further than ``most`` can pay for.
        price = most + self.gain
        far = (self.bent * n + self.steep) * n
        return most, self.response * longest + gamma(8, SINGLE) * price + _HULL * n * (far + price)
