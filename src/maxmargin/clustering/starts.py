"""Where clustering starts: centres from the points."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .points import Points


def forgy(points: Points, rng: np.random.Generator) -> np.ndarray:
    """Points drawn without replacement."""
    return points.X[rng.choice(points.n, points.n_clusters, replace=False)].astype(np.float64)


def random_partition(points: Points, rng: np.random.Generator) -> np.ndarray:
    """Means of points that were dealt out at random; a cluster that got none is put on one of them."""
    label = np.asarray(rng.integers(points.n_clusters, size=points.n), dtype=np.int32)
    return points.means(label, forgy(points, rng))[0]


def plus_plus(points: Points, rng: np.random.Generator) -> np.ndarray:
    """k-means++: point after point, drawn by its squared distance to those before, the best of a few draws each."""
    first = int(np.searchsorted(np.cumsum(points.weight), rng.random() * points.weight.sum(), side="right"))
    chosen = [min(first, points.n - 1)]
    spread = Spread.from_centres(points, points.X[chosen].astype(np.float64))
    while len(chosen) < points.n_clusters:
        chosen.append(spread.draw(rng))
    return points.X[chosen].astype(np.float64)


class Spread:
    """How far the points are from centres to which more are added; ``share`` is what each adds to the objective."""

    def __init__(self, points: Points, closest: np.ndarray) -> None:
        self.points = points
        self.closest = closest.copy()
        self.share = points.weight * closest
        self.draws = 2 + int(math.log(points.n_clusters))  # as in scikit-learn

    @classmethod
    def from_centres(cls, points: Points, centres: np.ndarray) -> Spread:
        return cls(points, points.measure(centres, np.zeros(points.n, np.int32)).least)

    def draw(self, rng: np.random.Generator) -> int:
        """One more centre, on the best of a few points drawn by their shares: its number."""
        p, draws = self.points, self.draws
        sums = np.cumsum(self.share)
        found = np.searchsorted(sums, rng.random(draws) * sums[-1], side="right")
        candidates = np.minimum(found, p.n - 1)
        totals = np.sum(p.over_parts(lambda start, stop: self._totals(candidates, start, stop)), axis=0)
        best = int(candidates[np.argmin(totals)])
        self.include(best)
        return best

    def include(self, point: int) -> None:
        """One more centre on this point."""
        p = self.points
        p.over_parts(
            lambda start, stop: p.loops.come_closer(p.X, p.weight, self.closest, point, self.share, start, stop)
        )

    def _totals(self, candidates: np.ndarray, start: int, stop: int) -> np.ndarray:
        total = np.zeros(candidates.size)
        self.points.loops.approach(self.points.X, self.points.weight, self.closest, candidates, total, start, stop)
        return total


STARTS: dict[str, Callable[[Points, np.random.Generator], np.ndarray]] = {
    "k-means++": plus_plus,
    "forgy": forgy,
    "random_partition": random_partition,
}
