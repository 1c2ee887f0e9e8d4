"""Where clustering starts: centres from the points."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..kernels import clusters
from .kmeans_points import Points


def forgy(points: Points, rng: np.random.Generator) -> np.ndarray:
    """Points drawn without replacement."""
    return points.X[rng.choice(points.n, points.n_clusters, replace=False)].astype(np.float64)


def random_partition(points: Points, rng: np.random.Generator) -> np.ndarray:
    """Means of points that were dealt out at random; a cluster that got none is put on one of them."""
    label = np.asarray(rng.integers(points.n_clusters, size=points.n), dtype=np.int32)
    return points.means(label, forgy(points, rng))[0]


def plus_plus(points: Points, rng: np.random.Generator) -> np.ndarray:
    """k-means++: point after point, drawn by its squared distance to those before, the best of a few draws each.

    A few, 2 + log k, as in scikit-learn.
    """
    first = int(np.searchsorted(np.cumsum(points.weight), rng.random() * points.weight.sum(), side="right"))
    chosen = [min(first, points.n - 1)]
    spread = Spread(points, points.X[chosen].astype(np.float64))
    draws = 2 + int(math.log(points.n_clusters))
    while len(chosen) < points.n_clusters:
        chosen.append(spread.draw(rng, draws))
    return points.X[chosen].astype(np.float64)


class Spread:
    """How far the points are from centres to which more are added."""

    def __init__(self, points: Points, centres: np.ndarray) -> None:
        self.points = points
        label = np.zeros(points.n, np.int32)
        self.closest = points.measure(centres, label).least
        self.share = points.weight * self.closest

    def draw(self, rng: np.random.Generator, draws: int) -> int:
        """One more centre, on a point: its number."""
        p = self.points
        sums = np.cumsum(self.share)
        found = np.searchsorted(sums, rng.random(draws) * sums[-1], side="right")
        candidates = np.minimum(found, p.n - 1)
        totals = np.zeros(draws)
        if draws > 1:
            parts = p.over_parts(lambda start, stop: self._totals(candidates, start, stop))
            totals = np.sum(parts, axis=0)
        best = int(candidates[np.argmin(totals)])
        self.include(best)
        return best

    def include(self, point: int) -> None:
        """One more centre on this point."""
        p = self.points
        p.over_parts(
            lambda start, stop: clusters.come_closer(p.X, p.weight, self.closest, point, self.share, start, stop)
        )

    def _totals(self, candidates: np.ndarray, start: int, stop: int) -> np.ndarray:
        total = np.zeros(candidates.size)
        clusters.approach(self.points.X, self.points.weight, self.closest, candidates, total, start, stop)
        return total


STARTS: dict[str, Callable[[Points, np.random.Generator], np.ndarray]] = {
    "k-means++": plus_plus,
    "forgy": forgy,
    "random_partition": random_partition,
}
