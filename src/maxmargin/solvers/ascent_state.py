"""Where the ascent for open problems stands: the cache, and what belongs to its examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ..constraints.cache import Cache, moved
from ..problem import Loss, Planes, Problem
from ..protocols import Regularizer
from ..regularizers.shape import refresh, weights_of
from .dual_coordinate import DualCoordinate, DualState


@dataclass
class AscentState:
    """The cache, and where the ascent over it stands."""

    cache: Cache
    cached: Problem
    coordinate: DualCoordinate
    inner: DualState
    lower: float
    estimate: float = np.inf
    goal: float = 0.0
    visited: int = 0
    passes: int = 0
    """Passes over the cache so far."""
    crawls: bool = False
    """Whether passes over the cache were seen to get nowhere, and Newton's method did better."""
    stuck: bool = False
    evaluated: tuple[np.ndarray, Loss] | None = field(default=None)
    beat: Callable[[], object] | None = None
    """Called between views, whenever the shares are feasible and v and the lower bound belong to them."""
    found: float = 0.0
    """The gap that exploring has met since the cache was last optimized, over ``since`` searches."""
    since: int = 0
    cache_gap: float = 0.0
    """The gap that was then left on the cache."""
    n_views: int = 1
    """In how many parts an epoch over data in memory is split: several once planes are spilled."""
    stamps: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    """When each example was last in view."""
    view: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    """The examples whose planes must stay at hand."""
    in_views: bool = False
    """Whether this epoch is split into views."""
    stream: bool = False
    """Whether examples out of view are gone for ever."""
    positions: np.ndarray | None = None
    """Which example of the stream each one is that the cache counts, and ``n_seen`` how many there were."""
    n_seen: int = 0
    offered: bool = False
    """Whether the last epoch changed nothing, because all seemed good enough. If it was not, the next one must."""
    relabelled: bool = False
    """Whether the cache was filled for other truths: it knows the neighbourhood, and searches at one w are cheaper."""
    stale: float = 0.0
    """If truths have changed since the cache was last optimized: the scale of the objective then."""
    mean: np.ndarray | None = None
    """The average of the weights along a stream, later ones counting more."""

    @property
    def patience(self) -> int:
        """Passes in one epoch after which Newton's method is tried, where it applies."""
        return 1 if self.crawls else 40

    @property
    def alpha(self) -> Planes:
        planes = self.cache.planes(self.inner.alpha)
        return planes if self.positions is None else replace(planes, example=self.positions[planes.example])

    @property
    def active(self) -> int:
        return self.inner.active

    def optimizing_pays(self, examples_per_search: int) -> bool:
        """Whether what was found outweighs the gap left on the cache, and enough was searched to afford a pass."""
        return self.found > self.cache_gap and examples_per_search * self.since >= self.n_resident

    @property
    def n_resident(self) -> int:
        """Examples of which some planes are at hand."""
        return int(np.count_nonzero(self.cache.slots.count))

    @property
    def n_constraints(self) -> int:
        return self.cache.n_constraints

    @property
    def nbytes(self) -> int:
        return self.cache.nbytes

    def weights(self) -> np.ndarray:
        return weights_of(self.inner.map)

    def begin_stream(self) -> None:
        """What is in view now will be gone for ever."""
        self.stream, self.n_seen = True, self.cache.n_examples
        self.positions = np.arange(self.n_seen)

    def average(self, n: int) -> None:
        """The latest n examples of a stream have been learned: their weights go into the average.

        The weights of the moment suit the constraints of examples that are gone, found at other weights and too few;
        where they err changes along the stream, and much of it cancels out. (Weights grow linearly with time, as in
        Lacoste-Julien, Schmidt and Bach, 2012.)
        """
        step = 2.0 * n / (self.n_seen + n)
        self.mean = self.averaged + step * (self.weights() - self.averaged)

    @property
    def averaged(self) -> np.ndarray:
        return self.weights().copy() if self.mean is None else self.mean

    def grow(self, n_examples: int, budget: np.ndarray) -> None:
        """Room for more examples of a stream. The budgets may be others than before: shares are made to fit them."""
        cache, inner = self.cache, self.inner
        same = np.array_equal(budget, cache.budget)
        if not same and cache.away is not None:
            # Of planes that are gone for ever only the sums are known; these are as feasible as their scale.
            scale = min(1.0, float(budget[0] / cache.budget[0]))
            cache.away *= scale
            cache.away_linear *= scale
            cache.away_error *= scale
        added = n_examples - cache.n_examples
        self.rearrange(cache.grow(n_examples, budget))
        self._count(np.concatenate([self._positions, np.arange(self.n_seen, self.n_seen + added)]))
        self.n_seen += added
        if not same:
            inner.alpha = cache.feasible(inner.alpha)
            self.recombine()

    def shrink(self, n_examples: int) -> None:
        """Forget all examples but the first so many that are counted."""
        self.n_seen -= self.cache.n_examples - n_examples
        self.rearrange(self.cache.shrink(n_examples))
        self._count(self._positions[:n_examples])
        self.recombine()

    def dismiss(self) -> None:
        """Examples of a stream that have no planes will never have any: they need not be counted.

        Planes without a share are dropped once they are the majority.
        """
        used = self.cache.used()
        shared = used & (self.inner.alpha > 0.0)
        if 2 * np.count_nonzero(shared) < np.count_nonzero(used):
            self.rearrange(self.cache.tidy(shared))
        gone = self.cache.slots.count == 0
        if np.count_nonzero(gone) > 0.25 * gone.size:
            self.inner.alpha = self.inner.alpha[self.cache.dismiss(gone)]
            self._count(self._positions[~gone])

    @property
    def _positions(self) -> np.ndarray:
        return np.arange(self.cache.n_examples) if self.positions is None else self.positions

    def _count(self, positions: np.ndarray) -> None:
        """These are the examples that the cache counts now, all of them awake."""
        self.positions = positions
        self.stamps = np.zeros(positions.size, np.int64)
        self.inner.order = np.arange(positions.size, dtype=np.int32)
        self.inner.wake()

    def recombine(self) -> None:
        """v and lower bound as they follow from the shares."""
        inner = self.inner
        inner.map.v[:] = self.cache.combine(inner.alpha)
        refresh(inner.map)
        inner.linear = self.cache.linear(inner.alpha)
        self.lower = inner.lower = inner.linear - self.cached.regularizer.conjugate(inner.map.v)

    def regularize(self, regularizer: Regularizer) -> None:
        """Go on under another regularizer of the same weights: constraints and shares stay, all else follows."""
        inner = self.inner
        shape = regularizer.shape(self.cache.n_weights)
        weights = shape.bind(inner.map.v)
        if not shape.same_metric(inner.shape):
            self.cache.measure(weights)
        inner.shape, inner.map = shape, weights
        self.cached = replace(self.cached, regularizer=regularizer)
        self.lower = inner.lower = inner.linear - regularizer.conjugate(inner.map.v)
        inner.wake()

    def rename(self, place: np.ndarray, regularizer: Regularizer, n_weights: int) -> None:
        """Weight j is weight ``place[j]`` of ``n_weights`` from now on."""
        v = np.zeros(n_weights)
        v[place] = self.inner.map.v
        if self.mean is not None:
            mean, self.mean = self.mean, regularizer.weights(np.zeros(n_weights))
            self.mean[place] = mean
        self.cache.rename(place, n_weights)
        self.inner.shape = regularizer.shape(n_weights)
        self.inner.map = self.inner.shape.bind(v)
        self.inner.wake()

    def rearrange(self, source: np.ndarray) -> None:
        """Shares follow their planes to new slots."""
        self.inner.alpha = moved(self.inner.alpha, source)
