"""Dual ascent for open problems: ask the oracle, keep what it finds, optimize over what is kept.

Ramanan, Algorithm 2, with the bounds corrected. A step is an epoch:

* **Explore.** Examples are visited in random order, a chunk at a time. The oracle names the worst offender of
  each at the current weights; what the cache does not know yet is added, and the chunk's dual variables are
  improved at once, so that the next chunk meets better weights. Close to the goal all examples are asked at
  the *same* weights instead: then the epoch is at the same time a certificate of those weights.
* **Optimize.** The cached constraints are a closed problem. The dual coordinate solver works on it until its gap is
  a fraction of what exploring has seen, never to a fixed tolerance: that would stall or waste time.

Planes that have carried no share for some epochs are dropped. Where memory runs out, planes of one example are
merged into their average, which changes neither v nor the lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..constraints.cache import Cache
from ..constraints.searched import violations
from ..problem import Loss, Planes, Problem, Rivals
from ..protocols import OracleError, Regularizer
from ..regularizers.shape import refresh, weights_of
from ..regularizers.vectors import dot
from . import few_weights
from .dual_coordinate import DualCoordinate, DualState
from .searchers import search


@dataclass(frozen=True)
class OracleAscent:
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
        Bytes that the cache may take.
    n_jobs : int
        Threads that search where the model's search releases the GIL, processes otherwise.
    """

    random_state: Any = None
    chunk: int | None = None
    inner_fraction: float | None = None
    max_inner: int = 300
    together: float = 0.1
    idle_epochs: int = 3
    memory: int | None = None
    n_jobs: int = 1

    def start(self, problem: Problem, warm: Planes | None = None) -> AscentState:
        constraints = problem.open
        if getattr(problem.regularizer, "pure", False):
            raise ValueError(
                f"{problem.regularizer!r} is not strongly convex, which searching for constraints relies on. "
                "Give the group norm some l2: GroupNorm(groups, weights, l2=0.01)."
            )
        cache = Cache(constraints.n_examples, constraints.n_weights, constraints.budget)
        cached = Problem(cache, problem.regularizer)
        coordinate = DualCoordinate(random_state=self.random_state, block=8)
        map_ = problem.regularizer.shape(problem.n_weights).bind(np.zeros(problem.n_weights))
        alpha = cache.fill(constraints.feasible(warm), map_) if warm is not None else None
        inner = coordinate.start(cached, alpha)
        return AscentState(cache, cached, coordinate, inner, lower=inner.lower)

    def absorb(self, problem: Problem, state: AscentState, tol: float, max_epochs: int = 20) -> AscentState:
        """Learn from a window on a stream: epochs over the examples in view, until they have little to add.

        Examples that are gone keep their planes and take part in the optimization. The lower bound is one for all
        examples seen so far; an upper bound would have to see them again.
        """
        for _ in range(max_epochs):
            state = self.step(problem, state)
            if state.estimate <= tol:
                break
        return state

    def step(self, problem: Problem, state: AscentState) -> AscentState:
        """One epoch: every example is searched once, then the cache is optimized."""
        self._tidy(state)
        chunks = self._chunks(problem, state)
        everybody = problem.open.live.size == problem.open.n_examples
        if everybody and (state.crawls or state.estimate <= max(self.together, 3.0 * state.goal)):
            gap = self._explore_together(problem, state, chunks)
        else:
            gap = self._explore_in_turn(problem, state, chunks)
        state.visited = sum(ids.size for ids in chunks)
        self._optimize(problem, state, gap)
        state.lower = state.inner.lower
        state.estimate = gap / max(abs(state.lower + gap), 1e-300)
        return state

    def _threads(self, problem: Problem) -> bool:
        return self.n_jobs > 1 and problem.open.oracle.releases_gil

    def _chunks(self, problem: Problem, state: AscentState) -> list[np.ndarray]:
        live, budget = problem.open.live, problem.open.budget
        if budget.size > 1:
            live = live[budget[live] > 0.0]  # what weighs nothing need not be searched
        order = state.inner.rng.permutation(live)
        # Small chunks meet fresher weights; those that threads hand over must be worth it.
        least = 64 if self._threads(problem) else 16 if problem.open.oracle.releases_gil else 8
        size = self.chunk or min(max(order.size // 400, least), 64)
        return [order[start : start + size] for start in range(0, order.size, size)]

    def _explore_in_turn(self, problem: Problem, state: AscentState, chunks: list[np.ndarray]) -> float:
        """Each chunk at the weights that the chunks before it left behind. Returns the gap as seen on the way."""
        inner, cache = state.inner, state.cache
        state.evaluated = None
        gap = 0.0
        for ids, w, rivals in search(problem.open.oracle, chunks, lambda: weights_of(inner.map), self.n_jobs):
            self._take_in(state, ids, rivals, w)
            seed = int(inner.rng.integers(1, 2**63))
            _, seen, change = cache.sweep(inner.alpha, inner.map, inner.norms, ids.astype(np.int32), ids.size, 1, seed)
            gap += seen
            inner.linear += change
        refresh(inner.map)
        inner.lower = inner.linear - problem.regularizer.conjugate(inner.map.v)
        return max(gap, 0.0)

    def _explore_together(self, problem: Problem, state: AscentState, chunks: list[np.ndarray]) -> float:
        """All chunks at the same weights, which are thereby evaluated. Returns their gap."""
        constraints = problem.open
        w = weights_of(state.inner.map).copy()
        total = excess = 0.0
        for ids, _, rivals in search(constraints.oracle, _larger(chunks), lambda: w, self.n_jobs):
            loss = constraints.weighted(ids, self._take_in(state, ids, rivals, w), rivals.excess)
            total += loss.total
            excess += loss.excess
        state.evaluated = (w, Loss(total, excess))
        return max(problem.regularizer.value(w) + total - state.inner.lower, 0.0)

    def _take_in(self, state: AscentState, ids: np.ndarray, rivals: Rivals, w: np.ndarray) -> np.ndarray:
        """Add what the cache does not know yet; returns how much margin is missing at the worst offenders."""
        cache = state.cache
        found = violations(rivals, w)
        known = cache.worst(ids, w)
        if rivals.excess is None:
            _check_search(ids, rivals, found, known, w)
        self._make_room(state, rivals)
        cache.add(ids, rivals, found > known + 1e-9 * (1.0 + known), state.inner.map)
        return found if rivals.excess is None else np.maximum(found, known)

    def _tidy(self, state: AscentState) -> None:
        """Drop planes that have long been idle, and give every example a spare slot."""
        cache, inner = state.cache, state.inner
        cache.age(inner.alpha)
        state.rearrange(cache.tidy(cache.used() & (cache.idle < self.idle_epochs)))
        self._make_room(state, None)

    def _make_room(self, state: AscentState, rivals: Rivals | None) -> None:
        """Stay within the memory allowed: first planes without a share go, then planes of one example are merged."""
        cache, inner = state.cache, state.inner
        if self.memory is None or cache.bytes_with(rivals) <= self.memory:
            return
        state.rearrange(cache.tidy(cache.used() & (inner.alpha > 0.0)))
        if cache.bytes_with(rivals) <= 0.75 * self.memory:  # enough for a while, not just for this time
            return
        inner.alpha = cache.merge(inner.alpha, inner.map)
        needed = cache.bytes_with(rivals)
        if needed > self.memory:
            raise MemoryError(
                f"memory={self.memory} bytes is too little: one plane for each of {cache.n_examples} examples takes "
                f"{needed} bytes at this moment and may take more. Allow several times as much."
            )

    def _optimize(self, problem: Problem, state: AscentState, gap: float) -> None:
        """Passes over the cache until its own gap is a fraction of the one that exploring saw."""
        inner = state.inner
        inner.wake()
        fraction = self.inner_fraction
        if fraction is None:
            fraction = 0.2 if not problem.open.oracle.releases_gil else 0.6 if self._threads(problem) else 0.4
        wanted = fraction * gap
        inner.goal = wanted / max(abs(inner.lower), 1e-300)
        for n in range(self.max_inner):
            if n == state.patience and few_weights.applies(inner.shape):
                self._newton(problem, state, wanted)
            inner = state.coordinate.step(state.cached, inner)
            state.passes += 1
            if inner.inner == 0 and inner.seen <= wanted:
                break
        state.inner = inner

    def _newton(self, problem: Problem, state: AscentState, wanted: float) -> None:
        """Passes over the cache are getting nowhere, as happens with few weights and long rows: solve it at once."""
        inner, cache = state.inner, state.cache
        slots, example, planes = cache.explicit()
        budget = np.broadcast_to(cache.budget, cache.n_examples)
        held, place = np.unique(example[budget[example] > 0.0], return_inverse=True)
        slots, planes = slots[budget[example] > 0.0], planes[budget[example] > 0.0]
        shares = few_weights.solve(
            planes, cache.slots.loss[slots], place, budget[held], inner.shape, inner.alpha[slots], 1e-3 * wanted
        )
        trial = np.zeros_like(inner.alpha)
        trial[slots] = shares
        trial = cache.feasible(trial)
        v = cache.combine(trial)
        lower = cache.linear(trial) - problem.regularizer.conjugate(v)
        state.crawls = lower > inner.lower
        if state.crawls:
            inner.alpha, inner.lower, inner.linear = trial, lower, cache.linear(trial)
            inner.map.v[:] = v
            refresh(inner.map)
            inner.wake()


def _larger(chunks: list[np.ndarray]) -> list[np.ndarray]:
    """Fewer, larger chunks: at the same weights nothing is gained by small ones."""
    return [np.concatenate(chunks[i : i + 8]) for i in range(0, len(chunks), 8)]


def _check_search(ids: np.ndarray, rivals: Rivals, found: np.ndarray, known: np.ndarray, w: np.ndarray) -> None:
    """An exact search can never find less than what is known already."""
    if (np.maximum(found, 0.0) >= known - 1e-5 * (1.0 + known)).all():
        return
    rows = rivals.rows
    squares = np.concatenate([[0.0], np.cumsum(np.square(rows.data, dtype=np.float64))])
    ends = np.arange(rows.n_rows + 1) * rows.width if not rows.indices.size else rows.indptr
    # Rows may be float32: what they make of a score can be off by that much.
    scale = np.sqrt((squares[ends[1:]] - squares[ends[:-1]]) * dot(w, w))
    wrong = np.flatnonzero(np.maximum(found, 0.0) < known - 1e-5 * (1.0 + np.abs(known) + scale))
    if wrong.size:
        p = int(wrong[0])
        raise OracleError(
            f"The search contradicts itself on example {ids[p]}: its answer misses the margin by {found[p]:.6g}, an "
            f"answer found earlier by {known[p]:.6g} at the same weights. Either features, loss and "
            "most_violated do not belong together (maxmargin.checks.check_model says where), or the search is "
            "approximate (then the model must say exact = False).",
            int(ids[p]),
        )


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
    beat: Any = None

    @property
    def patience(self) -> int:
        """Passes in one epoch after which Newton's method is tried, where it applies."""
        return 1 if self.crawls else 40

    @property
    def alpha(self) -> Planes:
        return self.cache.planes(self.inner.alpha)

    @property
    def active(self) -> int:
        return self.inner.active

    @property
    def n_constraints(self) -> int:
        return self.cache.n_constraints

    @property
    def nbytes(self) -> int:
        return self.cache.nbytes

    def weights(self) -> np.ndarray:
        return weights_of(self.inner.map)

    def grow(self, n_examples: int, budget: np.ndarray) -> None:
        """Room for more examples. The budgets may be others than before: shares are made to fit them."""
        self.rearrange(self.cache.grow(n_examples, budget))
        self._renew(n_examples)

    def shrink(self, n_examples: int) -> None:
        """Forget all examples but the first so many."""
        self.rearrange(self.cache.shrink(n_examples))
        self._renew(n_examples)

    def _renew(self, n_examples: int) -> None:
        """Shares, v and lower bound as they follow from the cache, and everybody awake."""
        inner = self.inner
        inner.alpha = self.cache.feasible(inner.alpha)
        inner.map.v[:] = self.cache.combine(inner.alpha)
        refresh(inner.map)
        inner.linear = self.cache.linear(inner.alpha)
        self.lower = inner.lower = inner.linear - self.cached.regularizer.conjugate(inner.map.v)
        inner.order = np.arange(n_examples, dtype=np.int32)
        inner.wake()

    def rename(self, place: np.ndarray, regularizer: Regularizer, n_weights: int) -> None:
        """Weight j is weight ``place[j]`` of ``n_weights`` from now on."""
        v = np.zeros(n_weights)
        v[place] = self.inner.map.v
        self.cache.rename(place, n_weights)
        self.inner.shape = regularizer.shape(n_weights)
        self.inner.map = self.inner.shape.bind(v)
        self.inner.wake()

    def rearrange(self, source: np.ndarray) -> None:
        """Shares follow their planes to new slots."""
        self.inner.alpha = np.where(source >= 0, self.inner.alpha[source], 0.0)
