"""k-means on a stream: what has gone by is remembered as the bound of its labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .points import Points


@dataclass(frozen=True)
class Past:
    """The bound of all points so far: Σ_z mass_z ‖μ_z − mean_z‖² + least, exactly, whatever the centres μ.

    So the labels of the past stay as they were, and the sum of this bound and one that touches on new points is again
    a bound on the objective of all points, with means as its minimiser.
    """

    mass: np.ndarray
    means: np.ndarray
    least: float

    @classmethod
    def of(cls, points: Points, centres: np.ndarray, label: np.ndarray) -> Past:
        """The bound of these labels, no others before them; ``centres`` stand in for the means of empty clusters."""
        nothing = cls(np.zeros(points.n_clusters), centres, 0.0)
        return nothing.with_labels(points, label)[0]

    def joined(self, points: Points, centres: np.ndarray, max_iter: int) -> tuple[Past, np.ndarray]:
        """The bound with new points, and their labels: those that touch at the minimiser, from these centres on."""
        label = points.measure(centres, np.zeros(points.n, np.int32)).near
        for _ in range(max_iter):
            past, near = self.with_labels(points, label)
            if np.array_equal(near, label):
                break
            label, before = near, label
        else:
            label = before
        return past, label

    def with_labels(self, points: Points, label: np.ndarray) -> tuple[Past, np.ndarray]:
        """The bound with new points that have these labels, and the nearest means of these points."""
        total, mass = points.sums(label)
        share = self.mass + mass
        weighted = self.mass[:, None] * self.means + total
        means = np.where(share[:, None] > 0.0, weighted / np.where(share > 0.0, share, 1.0)[:, None], self.means)
        at = points.measure(means, label)
        moved = float(self.mass @ ((means - self.means) ** 2).sum(axis=1))
        return Past(share, means, self.least + moved + at.objective + at.gap), at.near
