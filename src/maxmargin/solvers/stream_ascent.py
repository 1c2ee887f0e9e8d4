"""Dual ascent over a stream: examples come once, and only those that matter are kept.

Ramanan, Algorithm 2, for closed problems whose data cannot be read again. A new block is swept a few times; its
examples join a pool. The pool is worked on whenever enough new examples have come for its
size, so that all this costs a constant number of passes over the stream, however finely it is cut.

When memory is short, examples leave the pool: first those without a share that are at rest; then those at rest with
one. Their dual variables are *frozen*: they can no longer move, but v and the dual objective keep them, and the lower
bound for all examples seen so far stays true.

The weights to be used are those after the last work on the pool. The latest examples have left their mark in v, but
each has only been fitted by itself so far: weights formed from that v would be worse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..constraints.pool import Pool
from ..kernels.maps import WeightMap
from ..problem import Problem
from ..protocols import ClosedConstraints, Regularizer
from ..regularizers.shape import Shape, refresh, weights_of
from ..regularizers.tilted import Tilted
from .choose import interior_point_pays
from .dual_coordinate import DualCoordinate, DualState
from .interior_point import InteriorPoint
from .solve import solve

_NEWTON_TOL = 1e-3
_FAINT = 1e-6  # of its budget


@dataclass(frozen=True)
class StreamAscent:
    """Settings of the solver for streams of closed constraints.

    Parameters
    ----------
    memory : int
        Bytes of rows to keep.
    random_state : int, Generator or None
    hot_sweeps : int
        Sweeps over a new block.
    growth : float
        Work on the pool when this share of its size has come in since the last time. By default 0.05; 0.02 where there
        are more weights than examples, and every example tells something new; 0.3 where there are so few that Newton
        steps pay, and a part of the examples tells nearly all.
    fraction : float
        Work on it until its gap is this fraction of what the new examples brought.
    max_inner : int
        At most so many passes over the pool at a time.
    n_threads : int
    """

    memory: int = 2**28
    random_state: Any = None
    hot_sweeps: int = 3
    growth: float | None = None
    fraction: float = 0.1
    max_inner: int = 10
    n_threads: int = 1

    def start(self, regularizer: Regularizer, n_weights: int, columns: tuple[int, ...] = ()) -> StreamState:
        shape = regularizer.shape(n_weights)
        return StreamState(
            regularizer=regularizer,
            shape=shape,
            map=shape.bind(np.zeros(n_weights)),
            pool=Pool(self.memory),
            alpha=np.empty((0, *columns)),
            rng=np.random.default_rng(self.random_state),
        )

    def absorb(self, state: StreamState, block: ClosedConstraints) -> None:
        """Learn from the next examples of the stream."""
        refresh(state.map)
        n = block.n_examples
        alpha = np.zeros(block.dual_shape)
        norms, order, active = np.full(n, -1.0, np.float32), np.arange(n, dtype=np.int32), n
        size = 8 if block.rows.indices.size else 1
        for sweep in range(self.hot_sweeps):
            seed = int(state.rng.integers(1, 2**63))
            active, seen, change = block.sweep(alpha, state.map, norms, order, active, size, seed)
            state.linear += change
            state.brought += max(seen, 0.0) if sweep == 0 else 0.0
            if active == 0:
                break
        self._take_in(state, block, np.arange(n), alpha, norms)
        state.n_seen += n
        state.since += n
        if state.since >= self._growth(state) * len(state.pool):
            self._optimize(state)
        state.lower = state.linear - state.regularizer.conjugate(state.map.v)

    def _growth(self, state: StreamState) -> float:
        if self.growth is not None:
            return self.growth
        return 0.3 if state.newton else 0.02 if state.map.v.size > len(state.pool) else 0.05

    def _take_in(
        self, state: StreamState, block: ClosedConstraints, examples: np.ndarray, alpha: np.ndarray, norms: np.ndarray
    ) -> None:
        while examples.size:
            n = state.pool.add(block, examples, state.n_seen, norms)
            state.alpha = np.concatenate([state.alpha, alpha[examples[:n]]])
            state.at_rest = np.concatenate([state.at_rest, np.zeros(n, bool)])
            examples = examples[n:]
            if examples.size and not len(state.pool):
                # A row that is larger than the whole pool stays as it was fitted.
                state.frozen.append((state.n_seen + examples[:1], alpha[examples[:1]]))
                examples = examples[1:]
            elif examples.size:
                self._optimize(state)
                self._make_room(state)

    def _optimize(self, state: StreamState) -> None:
        """Work on the pool until little is left to gain there; the weights at its end are those to be used."""
        if not len(state.pool):
            return
        problem = Problem(state.pool.constraints(), state.regularizer)
        state.newton = interior_point_pays(problem, _NEWTON_TOL)
        if state.newton:
            self._solve_at_once(state, problem)
        else:
            self._pass_over(state, problem)
        state.since, state.brought = 0, 0.0

    def _pass_over(self, state: StreamState, problem: Problem) -> None:
        """Coordinate passes over the pool."""
        coordinate = DualCoordinate(random_state=state.rng, n_threads=self.n_threads, momentum_after=3)
        order = np.arange(len(state.pool), dtype=np.int32)
        inner = DualState(
            alpha=state.alpha,
            shape=state.shape,
            map=state.map,
            linear=state.linear,
            norms=state.pool.norms,
            order=order,
            active=order.size,
            rng=state.rng,
            lower=state.linear - state.regularizer.conjugate(state.map.v),
            fraction=coordinate.inner_fraction,
            n_constraints=problem.closed.n_constraints,
        )
        wanted = self.fraction * state.brought
        inner.goal = wanted / max(abs(inner.lower), 1e-300)
        for _ in range(self.max_inner):
            inner = coordinate.step(problem, inner)
            if inner.inner == 0 and inner.seen <= wanted:
                break
        state.alpha, state.linear = inner.alpha, inner.linear
        state.settled = weights_of(state.map).copy()
        state.at_rest = np.zeros(len(state.pool), bool)
        state.at_rest[inner.order[inner.active :]] = True

    def _solve_at_once(self, state: StreamState, problem: Problem) -> None:
        """Few weights: Newton steps, around what the frozen examples have of v."""
        constraints = problem.closed
        pooled = constraints.combine(state.alpha)
        rest = state.map.v - pooled
        tilted = Problem(constraints, Tilted(state.regularizer, rest) if state.frozen else state.regularizer)
        solution = solve(tilted, InteriorPoint(self.n_threads), tol=_NEWTON_TOL, max_passes=100)
        linear = state.linear + constraints.linear(solution.alpha) - constraints.linear(state.alpha)
        v = rest + constraints.combine(solution.alpha)
        conjugate = state.regularizer.conjugate
        if linear - conjugate(v) >= state.linear - conjugate(state.map.v):  # else the last time came nearer
            state.linear, state.alpha = linear, solution.alpha
            state.map.v[:] = v
            refresh(state.map)
        state.settled = solution.weights
        # Interior points never reach a bound. A share this small is none, and an example without one is at rest.
        state.at_rest = ~_with_share(np.where(np.abs(state.alpha) > _FAINT * constraints.budget, state.alpha, 0.0))

    def _make_room(self, state: StreamState) -> None:
        """Examples leave the pool until half of it is free: those at rest without a share first, then those at rest,
        then those that came first."""
        n = len(state.pool)
        shares = _with_share(state.alpha)
        turn = np.lexsort((np.arange(n), shares, ~state.at_rest))
        stay = np.ones(n, bool)
        stay[turn[: (n + 1) // 2]] = False
        frozen = ~stay & shares
        if frozen.any():
            state.frozen.append((state.pool.place[frozen], state.alpha[frozen]))
        self._retain(state, stay)

    def _retain(self, state: StreamState, stay: np.ndarray) -> None:
        chosen = np.flatnonzero(stay)
        state.pool.keep(chosen)
        state.alpha, state.at_rest = state.alpha[chosen], state.at_rest[chosen]


def _with_share(alpha: np.ndarray) -> np.ndarray:
    return np.asarray(alpha.any(axis=1) if alpha.ndim > 1 else alpha != 0.0)


@dataclass
class StreamState:
    """Where a stream stands: the pool, the shares of its examples, and v and the dual objective of all seen."""

    regularizer: Regularizer
    shape: Shape
    map: WeightMap
    pool: Pool
    alpha: np.ndarray
    rng: np.random.Generator
    linear: float = 0.0
    lower: float = 0.0
    n_seen: int = 0
    since: int = 0
    brought: float = 0.0
    newton: bool = False
    """Whether the weights are few enough for Newton steps."""
    settled: Any = None
    """The weights after the last work on the pool."""
    at_rest: Any = None
    frozen: Any = None

    def __post_init__(self) -> None:
        self.at_rest = np.zeros(len(self.pool), bool)
        self.frozen = []
        self.lower = -self.regularizer.conjugate(self.map.v)

    def weights(self) -> np.ndarray:
        return weights_of(self.map) if self.settled is None else self.settled

    def shares(self) -> np.ndarray:
        """Dual variables of all examples seen, in the order in which they came."""
        alpha = np.zeros((self.n_seen, *self.alpha.shape[1:]))
        for place, part in [*self.frozen, (self.pool.place, self.alpha)]:
            alpha[place] = part
        return alpha
