"""The points to be clustered, and what is asked about all of them at once, on several threads."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..constraints.small import is_few
from ..solvers.threads import run
from . import few_points, kernels

# Multiply-adds that make a part of its own worth while, and the most parts. Parts depend on the data alone: sums are
# taken part by part, and come out the same to the last bit on any number of threads.
_WORTH_A_PART = 4_000_000
_MOST_PARTS = 16
_PER_VALUE = 4  # arrays of one number per point, centre and column: more than of a matrix that is summed once


@dataclass
class Measured:
    """What centres are worth: the nearest of them and its squared distance for each point, F, and d of some labels."""

    near: np.ndarray
    least: np.ndarray
    objective: float
    gap: float
    changed: float


class Points:
    """Rows of a matrix with positive weights.

    >>> points = Points(np.array([[0.0], [1.0], [5.0]]), np.ones(3), n_clusters=2)
    >>> points.measure(np.array([[0.0], [5.0]]), np.zeros(3, np.int32)).objective
    1.0
    """

    def __init__(self, X: np.ndarray, weight: np.ndarray, n_clusters: int, threads: int = 1) -> None:
        self.X, self.weight, self.n_clusters = X, weight, n_clusters
        self.n, self.width = X.shape
        self.shift = np.average(X, axis=0, weights=weight).astype(np.float64)
        # Means are rounded: a sum of squares below this may be nothing else.
        self.nothing = 1e-24 * float(weight.sum()) * float(np.abs(X).max()) ** 2
        parts = int(np.clip(self.n * n_clusters * self.width // _WORTH_A_PART, 1, _MOST_PARTS))
        edges = np.linspace(0, self.n, parts + 1).astype(np.int64).tolist()
        self._parts = list(itertools.pairwise(edges))
        self._threads = min(threads, parts)
        self._few = is_few(_PER_VALUE * self.n * n_clusters * self.width)

    @property
    def loops(self) -> Any:
        """Who goes through the points: compiled code, unless they are few."""
        return few_points if self._few else kernels

    def over_parts(self, work: Callable[[int, int], object]) -> list[Any]:
        """``work(start, stop)`` for every part, in their order."""
        if self._threads == 1:
            return [work(*part) for part in self._parts]

        def some(first: int) -> list[Any]:
            return [work(*part) for part in self._parts[first :: self._threads]]

        shares = run(some, list(range(self._threads)))
        return [shares[p % self._threads][p // self._threads] for p in range(len(self._parts))]

    def measure(self, centres: np.ndarray, label: np.ndarray) -> Measured:
        """The objective at these centres, and how far the bound of these labels lies above it."""
        near, least = np.empty(self.n, np.int32), np.empty(self.n)

        def work(start: int, stop: int) -> tuple[float, float, int]:
            return self.loops.measure(self.X, self.weight, self.shift, centres, label, near, least, start, stop)

        found = self.over_parts(work)
        objective, gap, changed = (sum(column) for column in zip(*found, strict=True))
        return Measured(near, least, objective, gap, changed / self.n)

    def sums(self, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For every label the weighted sum of its points, and their weight."""
        size = (self.n_clusters, self.width)

        def work(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
            total, mass = np.zeros(size), np.zeros(self.n_clusters)
            self.loops.add_rows(self.X, self.weight, label, start, stop, total, mass)
            return total, mass

        parts = self.over_parts(work)
        total, mass = parts[0]
        for more, mass_of_more in parts[1:]:
            total += more
            mass += mass_of_more
        return total, mass

    def means(self, label: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The minimiser of the bound of these labels, and which clusters are empty: those stay where they were."""
        total, mass = self.sums(label)
        empty = mass == 0.0
        centres = total / np.where(empty, 1.0, mass)[:, None]
        centres[empty] = before[empty]
        return centres, np.flatnonzero(empty)


class Past(NamedTuple):
    """What has gone by of a stream, as the bound of its labels.

    That is Σ_z mass_z ‖μ_z − mean_z‖² + least, exactly, whatever the centres μ. So the labels of the past stay as they
    were, and the sum of this bound and one that touches on new points is again a bound on the objective of all points,
    with means as its minimiser.
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
