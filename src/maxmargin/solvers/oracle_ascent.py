"""Dual ascent for open problems: ask the oracle, keep what it finds, optimize over what is kept.

The loop of ``explore`` for constraints that an oracle searches for; the pool is a cache of planes. An epoch is a search
for every example. They are visited in random order, a chunk at a time: the oracle names the worst offender of each at
the current weights; what the cache does not know yet is added, and the chunk's dual variables are improved at once, so
that the next chunk meets better weights. Close to the goal all examples are asked at the *same* weights instead: then
the epoch is at the same time a certificate of those weights.

All examples in memory are one view. Data that does not fit into memory comes by in views, a chunk of its source each.
Optimizing pays between two views once the gap that exploring has met since the last time outweighs the gap that was
then left on the cache, and as many examples were searched as pay for a pass over it.

Planes that have carried no share for some epochs are dropped. Where memory runs out, planes of examples out of view are
spilled: their answers and shares stay, and so does what they add to v. They come back when their example does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..constraints.cache import Cache
from ..constraints.searched import Searched, uncertainty, violations
from ..kernels.maps import WeightMap
from ..problem import Planes, Problem, Rivals, Rows, TotalLoss
from ..protocols import Seed
from . import few_weights
from .ascent_state import FEW_VIEWS, AscentState
from .dual_coordinate import DualCoordinate
from .explore import Explore
from .searchers import search

_PATIENCE = 40  # passes over the cache before Newton's method is tried, where it applies
_A_WHILE = 20  # passes over the cache between two views
_PASS_PAYS = 4  # a pass over the cache pays once a search was made for so many of its examples
_PASS_PAYS_STREAM = 16  # of a stream there is no second look at what is gone
# Weights that are copied in a tenth of the time that a quick search takes for an example, and the most chunks for which
# a copy is made once: a tagger with a million weights spent more time on copies than on searches.
_COPIED_MEANWHILE = 2000
_MOST_SHARING = 4
_WINDOW_TOL = 5e-2  # how well a window on a stream is learned, relative to its share of the objective


@dataclass(frozen=True)
class OracleAscent(Explore[AscentState]):
    """Settings of the solver for open problems.

    Parameters
    ----------
    random_state : int, Generator or None
        Order of visits.
    chunk : int or None
        Examples asked at the same weights; by default a 400th of them, at most 64 and at least 16 (8 where the search
        is plain Python, 64 where threads search).
    inner_fraction : float or None
        Optimize until the gap over the cache is this fraction of the gap that exploring has seen. By default 0.4, or
        0.2 where the search is plain Python: the more a search costs, the more is made of each. 0.6 where threads
        search: that is the work they can share.
    max_inner : int
        At most so many passes over the cache in one epoch.
    together : float
        Once the relative gap is below this, or near the goal, an epoch asks about all examples at the same weights.
    idle_epochs : int
        Drop planes without a share after so many epochs.
    memory : int or None
        Bytes that the cache may take, answers included.
    n_jobs : int
        Threads that search where the model's search releases the GIL, processes otherwise.
    """

    random_state: Seed = None
    chunk: int | None = None
    inner_fraction: float | None = None
    max_inner: int = 300
    together: float = 0.1
    idle_epochs: int = 3
    memory: int | None = None
    n_jobs: int = 1

    def start(self, problem: Problem, warm: Planes | None = None) -> AscentState:
        constraints = problem.searched
        if problem.pure:
            raise ValueError(
                f"{problem.regularizer!r} is not strongly convex, which OracleAscent by itself relies on. Use "
                "ProximalAscent(OracleAscent(…)), or give the group norm some l2: GroupNorm(groups, weights, l2=0.01)."
            )
        cache = Cache(constraints.n_examples, constraints.n_weights, constraints.budget)
        coordinate = DualCoordinate(random_state=self.random_state, block=8)
        map_ = problem.regularizer.shape(problem.n_weights).bind(np.zeros(problem.n_weights))
        alpha = None if warm is None else self._fill(constraints, cache, warm, map_)
        stamps = np.zeros(constraints.n_examples, np.int64)
        state = AscentState.over(cache, problem.regularizer, coordinate, alpha, stamps=stamps)
        if len(cache.spilled) and not constraints.in_views:
            state.n_views = FEW_VIEWS
        return state

    def _fill(self, constraints: Searched, cache: Cache, warm: Planes, weights: WeightMap) -> np.ndarray:
        """Hot start. Rows for which there may be no room are formed later, when their examples come into view."""
        shares = constraints.feasible(warm)
        if self.memory is None and not constraints.in_views:
            rivals = constraints.oracle.planes(shares.example, shares.labels)
            return cache.fill(shares, rivals, cache.no_shares(), weights)
        cache.leave(shares, constraints.sums(shares))
        return cache.no_shares()

    def relabel(self, problem: Problem, state: AscentState, ids: np.ndarray, rows: Rows) -> AscentState:
        """Go on with what is cached although the truths of some examples have changed.

        ``rows`` are (truth when the cache began − new truth). Shares stay feasible, so the new problem has a lower
        bound at once. Rows that were spilled are known by sums only, which belong to the old truths: then shares
        alone go on.
        """
        if len(state.cache.spilled):
            return self.start(problem, state.alpha)
        inner = state.inner
        if ids.size:
            state.cache.relabel(ids, rows, inner.map)
        inner.wake()
        inner.theta, inner.previous, inner.previous_v = 1.0, None, None  # momentum points elsewhere now
        scale = abs(state.lower)
        state.recombine()
        state.stale, state.relabelled = max(scale, abs(state.lower)), True
        state.evaluated, state.crawls, state.offered = None, False, False
        return state

    def absorb(self, problem: Problem, state: AscentState, tol: float, max_epochs: int = 20) -> AscentState:
        """Learn from a window on a stream: epochs over the examples in view, until they have little to add.

        Examples that are gone keep their planes and take part in the optimization, which is done as soon as enough
        was found and searched, in this window or in several. The lower bound is one for all examples seen so far;
        an upper bound would have to see them again.
        """
        window = problem.searched.live
        state.pinned = window
        for _ in range(max_epochs):
            self.tidy(state, window)
            state.gap = 0.0
            for chunks in self._views(problem, state):
                self._look(problem, state, chunks)
            if state.optimizing_pays(_PASS_PAYS_STREAM):
                self.optimize(problem, state, self.max_inner, self.share(problem) * state.met)
            self._estimate(state)
            # The examples in view are few among all: what they have left to say is measured by their number.
            share = window.size / max(state.n_resident, window.size)
            if state.estimate <= (tol if share == 1.0 else max(tol, _WINDOW_TOL) * share):
                break
        state.average(window.size)
        return state

    def _estimate(self, state: AscentState) -> None:
        state.lower = state.inner.lower
        state.estimate = state.gap / max(abs(state.lower + state.gap), 1e-300)

    def explore(self, problem: Problem, state: AscentState, at: np.ndarray | None = None) -> float:
        """Every example is searched once, and the cache takes in what was found. Returns the gap as far as seen.

        All are searched ``at`` the same weights if these are given, or once the goal is near.
        """
        self.tidy(state)
        if state.stale:
            # Truths have changed. Rivals at hand suit the new ones as well: the most is made of them before a search.
            self.optimize(problem, state, self.max_inner, self.share(problem) * (2.0 * state.goal * state.stale))
            state.stale = state.estimate = 0.0  # with luck there is nothing to add: the search shall be a certificate
        everybody = problem.searched.live.size == problem.searched.n_examples
        together = everybody and (
            state.crawls or state.relabelled or state.estimate <= max(self.together, 3.0 * state.goal)
        )
        state.at = state.inner.map.weights().copy() if together and at is None else at
        state.in_views = state.n_views > 1 or problem.searched.in_views
        state.visited, state.met, state.since, state.gap, state.losses = 0, 0.0, 0, 0.0, []
        super().explore(problem, state)
        state.evaluated = None
        if state.at is not None:
            loss = TotalLoss.sum(state.losses)
            state.evaluated = state.at, loss
            state.gap = max(problem.regularizer.value(state.at) + loss.total - state.inner.lower, 0.0)
        return state.gap

    def _views(self, problem: Problem, state: AscentState) -> Iterator[list[np.ndarray]]:
        """All examples that can be searched, by view, in chunks that are asked at the same weights."""
        constraints = problem.searched
        # Small chunks meet fresher weights; those that threads hand over must be worth it.
        least = 64 if self._threads(problem) else 16 if constraints.oracle.releases_gil else 8
        size = self.chunk or min(max(constraints.searchable.size // 400, least), 64)
        for ids in constraints.views(state.inner.rng, state.n_views):
            if ids.size:
                yield constraints.chunks(ids, size)

    def _look(self, problem: Problem, state: AscentState, chunks: list[np.ndarray]) -> None:
        if state.in_views:
            self._enter(problem, state, np.concatenate(chunks))
        seen = self._explore(problem, state, chunks)
        n = sum(ids.size for ids in chunks)
        state.gap += seen
        state.met += seen
        state.visited += n
        state.since += n
        state.lower = state.inner.lower

    def _pays(self, state: AscentState) -> bool:
        return state.optimizing_pays(_PASS_PAYS)

    def _optimize_briefly(self, problem: Problem, state: AscentState) -> None:
        self.optimize(problem, state, _A_WHILE, self.share(problem) * state.met)

    def _conclude(self, problem: Problem, state: AscentState) -> AscentState:
        self._estimate(state)
        state.offered = state.evaluated is not None and state.estimate <= state.goal and not state.offered
        if not state.offered:  # else these weights and shares will do
            self.optimize(problem, state, self.max_inner, self.share(problem) * state.gap)
            self._estimate(state)
        return state

    def _threads(self, problem: Problem) -> bool:
        """Whether compiled searches are made by several at once, threads or workers of a cluster."""
        constraints = problem.searched
        return (self.n_jobs > 1 or constraints.elsewhere is not None) and constraints.oracle.releases_gil

    def _enter(self, problem: Problem, state: AscentState, ids: np.ndarray) -> None:
        """These examples are in view now: their planes come back, and are the last to leave."""
        cache, inner = state.cache, state.inner
        state.pinned = ids
        state.stamps[ids] = state.stamps.max() + 1
        if not cache.spilled.has(ids):
            return
        shares = cache.spilled.take(ids)
        try:
            rivals = problem.searched.oracle.planes(shares.example, shares.labels)
            state.make_room(self.memory, rivals)
        except BaseException:
            cache.spilled.put(shares)  # shares are never lost: the bound counts on them
            raise
        inner.alpha = cache.recall(shares, rivals, inner.alpha, inner.map)
        if not len(cache.spilled):
            cache.away = None  # what rounding has left of the sums is forgotten too
            state.recombine()

    def _explore(self, problem: Problem, state: AscentState, chunks: list[np.ndarray]) -> float:
        """Each chunk at the weights that the chunks before it left behind, or all at the same, whose losses are thereby
        known. Returns the gap as seen on the way.

        At the same weights shares move at once only where other views follow: planes without one might not outlive the
        view.
        """
        constraints, inner, at = problem.searched, state.inner, state.at
        size = chunks[0].size
        moves = at is None or state.in_views
        if at is None:
            state.evaluated = None
        else:
            # Fewer, larger chunks: at the same weights nothing is gained by small ones.
            larger = [np.concatenate(chunks[i : i + 8]) for i in range(0, len(chunks), 8)]
            chunks = constraints.at_once(np.concatenate(chunks), larger)
        gap, losses = 0.0, []

        def weights() -> np.ndarray:
            return inner.map.weights() if at is None else at

        sharing = _sharing(problem.n_weights, size) if at is None else np.inf
        for ids, w, rivals in search(constraints.oracle, chunks, weights, self.n_jobs, sharing):
            found, missing = self.take_in(problem, state, ids, rivals, w)
            if at is not None:
                rounding, excess = uncertainty(rivals, w)
                excess = None if excess is None else excess - (missing - found)  # it counts from what was found
                losses.append(constraints.weighted(ids, missing, rounding, excess))
            if moves:
                gap += self._sweep(state, ids)
        if moves:
            inner.map.refresh()
            inner.update_lower(problem.regularizer)
        if at is not None:
            state.losses.append(TotalLoss.sum(losses))
        return max(gap, 0.0)

    def _sweep(self, state: AscentState, ids: np.ndarray) -> float:
        """Improve the shares of some examples; returns the gap that they had."""
        inner = state.inner
        seed = int(inner.rng.integers(1, 2**63))
        order = ids.astype(np.int32)
        _, seen, change = state.cache.sweep(inner.alpha, inner.map, inner.norms, order, ids.size, 1, seed)
        inner.linear += change
        return seen

    def take_in(
        self, problem: Problem, state: AscentState, ids: np.ndarray, rivals: Rivals, w: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Add what the cache does not know yet; returns how much margin is missing at the rivals, and at the worst
        offenders that are known."""
        cache = state.cache
        if cache.spilled.has(ids):  # since this view began: shares must be at hand before others are given
            self._enter(problem, state, ids)
        elif not (state.in_views or state.stream):
            state.pinned = ids
        found = violations(rivals, w)
        known = cache.worst(ids, w)
        if rivals.excess is None:
            cache.check_search(ids, rivals, found, known, w)
        state.make_room(self.memory, rivals)
        cache.add(ids, rivals, found > known + 1e-9 * (1.0 + known), state.inner.map)
        return found, found if rivals.excess is None else np.maximum(found, known)

    def tidy(self, state: AscentState, ids: np.ndarray | None = None, room: int = 1) -> None:
        """Drop planes that have long been idle, and give every example spare slots.

        Nothing is done where only ``ids`` will be asked about and each of them has one.
        """
        cache, inner = state.cache, state.inner
        if ids is None or cache.is_full(ids):
            cache.age(inner.alpha)
            state.rearrange(cache.tidy(cache.used() & (cache.idle < self.idle_epochs), room))
        state.make_room(self.memory)

    def share(self, problem: Problem) -> float:
        """The fraction of the gap that exploring saw which may be left on the cache."""
        if self.inner_fraction is not None:
            return self.inner_fraction
        return 0.2 if not problem.searched.oracle.releases_gil else 0.6 if self._threads(problem) else 0.4

    def optimize(self, problem: Problem, state: AscentState, passes: int, wanted: float) -> None:
        """Passes over the cache until its own gap is as small as wanted."""

        def newton(n: int) -> None:
            patience = 1 if state.crawls else _PATIENCE
            if n == patience and few_weights.applies(state.inner.shape) and state.cache.away is None:
                self._newton(problem, state, wanted)

        state.inner.wake()
        state.coordinate.run(state.cached, state.inner, passes, wanted, newton)
        state.met, state.since, state.pool_gap = 0.0, 0, max(state.inner.seen, 0.0)
        state.lower = state.inner.lower

    def _newton(self, problem: Problem, state: AscentState, wanted: float) -> None:
        """Passes over the cache are getting nowhere, as happens with few weights and long rows: solve it at once."""
        inner, cache = state.inner, state.cache
        slots, example, planes = cache.explicit()
        budget = np.broadcast_to(cache.budget, cache.n_examples)
        held, place = np.unique(example[budget[example] > 0.0], return_inverse=True)
        slots, planes = slots[budget[example] > 0.0], planes[budget[example] > 0.0]
        shares = few_weights.solve(
            planes, cache.slots.loss[slots], place, budget[held], problem.regularizer, 1e-3 * wanted
        )
        trial = np.zeros_like(inner.alpha)
        trial[slots] = shares
        trial = cache.feasible(trial)
        v, linear = cache.combine(trial), cache.linear(trial)
        state.crawls = linear - problem.regularizer.conjugate(v) > inner.lower
        if state.crawls:
            inner.alpha = trial
            inner.stand(v, linear, problem.regularizer)
            inner.wake()


def _sharing(n_weights: int, chunk: int) -> int:
    """For how many chunks of this size threads search at one copy of the weights."""
    return min(max(n_weights // (_COPIED_MEANWHILE * chunk), 1), _MOST_SHARING)
