"""Where the ascent for open problems stands: the cache, and what belongs to its examples."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from ..constraints.cache import Cache
from ..constraints.store import placed
from ..constraints.stored_planes import moved
from ..problem import Planes, Problem, Rivals, TotalLoss, Totals
from ..protocols import Regularizer
from .dual_coordinate import DualCoordinate, DualState
from .explore import Explored

FEW_VIEWS = 8  # of data in memory, once planes are spilled


@dataclass(kw_only=True)
class AscentState(Explored):
    """The cache, which is the pool here, and where the ascent over it stands."""

    cache: Cache
    cached: Problem
    coordinate: DualCoordinate
    inner: DualState
    crawls: bool = False
    """Whether passes over the cache were seen to get nowhere, and Newton's method did better."""
    at: np.ndarray | None = None
    """The weights at which all examples of this epoch are searched, if it is at the same, and their losses there."""
    losses: list[TotalLoss] = field(default_factory=list)
    gap: float = 0.0
    """The gap as far as the last epoch has seen it."""
    n_views: int = 1
    """In how many parts an epoch over data in memory is split: several once planes are spilled."""
    stamps: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    """When each example was last in view."""
    pinned: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
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

    @classmethod
    def over(
        cls, cache: Cache, omega: Regularizer, coordinate: DualCoordinate, alpha: np.ndarray | None = None, **more: Any
    ) -> Self:
        """The ascent over a cache, from the shares that its planes have."""
        cached = Problem(cache, omega)
        inner = coordinate.start(cached, alpha)
        return cls(cache=cache, cached=cached, coordinate=coordinate, inner=inner, lower=inner.lower, **more)

    @property
    def alpha(self) -> Planes:
        planes = self.cache.planes(self.inner.alpha)
        return planes if self.positions is None else replace(planes, example=self.positions[planes.example])

    @property
    def active(self) -> int:
        return self.inner.active

    @property
    def passes(self) -> int:
        """Passes over the cache so far."""
        return self.inner.passes

    def optimizing_pays(self, examples_per_search: int) -> bool:
        """Whether what was found outweighs the gap left on the cache, and enough was searched to afford a pass."""
        return self.met > self.pool_gap and examples_per_search * self.since >= self.n_resident

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
        return self.inner.map.weights()

    def begin_stream(self) -> None:
        """What is in view now will be gone for ever."""
        self.stream, self.n_seen = True, self.cache.n_examples
        self.positions = np.arange(self.n_seen)

    def resume(self, sums: Totals, n_seen: int, mean: np.ndarray) -> None:
        """A stream goes on: of so many examples before the first chunk there are sums, and an average of weights."""
        self.cache.away, self.mean = sums, mean
        self.n_seen += n_seen
        self.positions = np.arange(n_seen, self.n_seen)
        self.recombine()

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
        if not same:
            # Of planes that are gone for ever only the sums are known; these are as feasible as their scale.
            cache.scale_away(min(1.0, float(budget[0] / cache.budget[0])))
        added = n_examples - cache.n_examples
        self._recount(np.concatenate([np.arange(cache.n_examples), np.full(added, -1)]), budget)
        self.n_seen += added
        if not same:
            inner.alpha = cache.feasible(inner.alpha)
            self.recombine()

    def shrink(self, n_examples: int) -> None:
        """Forget all examples but the first so many that are counted."""
        self.n_seen -= self.cache.n_examples - n_examples
        self._recount(np.arange(n_examples))
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
            self._recount(np.flatnonzero(~gone))

    def _recount(self, examples: np.ndarray, budget: np.ndarray | None = None) -> None:
        """These are the examples that the cache counts now (−1, behind the others: the next of a stream), all awake."""
        before = np.arange(self.cache.n_examples) if self.positions is None else self.positions
        coming = np.arange(self.n_seen, self.n_seen + np.count_nonzero(examples < 0))
        self.rearrange(self.cache.recount(examples, budget))
        self.positions = np.concatenate([before[examples[examples >= 0]], coming])
        self.stamps = np.zeros(examples.size, np.int64)
        self.inner.order = np.arange(examples.size, dtype=np.int32)
        self.inner.wake()

    def recombine(self) -> None:
        """v and lower bound as they follow from the shares."""
        inner, cache = self.inner, self.cache
        inner.stand(cache.combine(inner.alpha), cache.linear(inner.alpha), self.cached.regularizer)
        self.lower = inner.lower

    def regularize(self, regularizer: Regularizer) -> None:
        """Go on under another regularizer of the same weights: constraints and shares stay, all else follows."""
        if self.inner.regularize(regularizer):
            self.cache.measure(self.inner.map)
        self.cached = replace(self.cached, regularizer=regularizer)
        self.lower = self.inner.lower
        self.inner.wake()

    def rename(self, place: np.ndarray, regularizer: Regularizer, n_weights: int) -> None:
        """Weight j is weight ``place[j]`` of ``n_weights`` from now on."""
        if self.mean is not None:
            mean, self.mean = self.mean, regularizer.weights(np.zeros(n_weights))
            self.mean[place] = mean
        self.cache.rename(place, n_weights)
        self.inner.shape = regularizer.shape(n_weights)
        self.inner.map = self.inner.shape.bind(placed(self.inner.map.v, place, n_weights))
        self.inner.wake()

    def rearrange(self, source: np.ndarray) -> None:
        """Shares follow their planes to new slots."""
        self.inner.alpha = moved(self.inner.alpha, source)

    def make_room(self, memory: int | None, rivals: Rivals | None = None) -> None:
        """Stay within the memory allowed, with room for what was found.

        First planes without a share go. Then planes of examples out of view are spilled, of a stream the oldest, for
        ever.
        """
        cache, inner = self.cache, self.inner
        if memory is None or cache.bytes_with(rivals) <= memory:
            return
        self.rearrange(cache.tidy(cache.used() & (inner.alpha > 0.0)))
        enough = int(0.75 * memory)  # for a while, not just for this time
        if (needed := cache.bytes_with(rivals)) <= enough:
            return
        if not (self.in_views or self.stream):
            self.n_views = max(FEW_VIEWS, int(4 * needed / max(self.n_resident, 1) * cache.n_examples / memory))
        self._spill(rivals, enough)
        needed = cache.bytes_with(rivals)
        if needed > memory:
            raise MemoryError(
                f"memory={memory} bytes is too little: the planes of {self.pinned.size} examples that are needed "
                f"at the same time, and what must be known of all {cache.n_examples}, take {needed} bytes at this "
                "moment and may take more. Allow several times as much, or have the data in smaller chunks."
            )

    def _spill(self, rivals: Rivals | None, enough: int) -> None:
        """Spill examples out of view, those first that were in view the longest time ago."""
        cache, inner = self.cache, self.inner
        while cache.bytes_with(rivals) > enough:
            away = cache.slots.count > 0
            away[self.pinned] = False
            chosen = np.flatnonzero(away)
            if not chosen.size:
                return
            chosen = chosen[np.argsort(self.stamps[chosen], kind="stable")]
            freed = np.cumsum(cache.bytes_by_example()[chosen])
            # A third more than is needed: there will be more to come.
            last = int(np.searchsorted(freed, 1.3 * (cache.bytes_with(rivals) - enough)))
            away[:] = False
            away[chosen[: last + 1]] = True
            inner.alpha = cache.spill(away, inner.alpha, for_ever=self.stream)
