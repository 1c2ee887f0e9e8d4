"""Dual ascent over a stream: examples come once, and only those that matter are kept.

The loop of ``explore`` for closed problems whose data cannot be read again: every block of the stream is one view. It
is swept a few times, and its examples join the pool. The pool is worked on whenever enough new examples have come for
its size, so that all this costs a constant number of passes over the stream, however finely it is cut.

When memory is short, examples leave the pool: first those without a share that are at rest; then those at rest with
one. Their dual variables are *frozen*: they can no longer move, but v and the dual objective keep them, and the lower
bound for all examples seen so far stays true.

The weights to be used are those after the last work on the pool. The latest examples have left their mark in v, but
each has only been fitted by itself so far: weights formed from that v would be worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..constraints.base import Closed
from ..constraints.pool import Pool
from ..constraints.sums import DualSums
from ..problem import Problem
from ..protocols import Regularizer, Seed
from ..regularizers.linearly_shifted import LinearlyShifted
from .certificate import dual_bound
from .choose import interior_point_pays
from .explore import RowAscent, RowState, leaving, with_share
from .interior_point import InteriorPoint
from .solve import solve

_NEWTON_TOL = 1e-3
_FAINT = 1e-6  # of its budget
_REMEMBERED = 2**24  # bytes of frozen shares that are remembered even where memory is little


@dataclass(frozen=True)
class StreamAscent(RowAscent["StreamState"]):
    """Settings of the solver for streams of closed constraints.

    Parameters
    ----------
    memory : int
        Bytes of rows to keep.
    random_state : int, Generator or None
    hot_sweeps : int
        Sweeps over a new block.
    fraction : float
        Work on it until its gap is this fraction of what the new examples brought.
    max_inner : int
        At most so many passes over the pool at a time.
    n_threads : int
    """

    memory: int = 2**28
    random_state: Seed = None
    hot_sweeps: int = 3
    fraction: float = 0.1
    max_inner: int = 100
    n_threads: int = 1

    def start(self, problem: Problem) -> StreamState:
        """A stream of constraints like these, of which none has come so far."""
        shape = problem.regularizer.shape(problem.n_weights)
        return StreamState(
            regularizer=problem.regularizer,
            shape=shape,
            map=shape.bind(np.zeros(problem.n_weights)),
            pool=Pool(self.memory),
            alpha=np.empty((0, *problem.in_memory.dual_shape[1:])),
            rng=np.random.default_rng(self.random_state),
        )

    def absorb(self, problems: Sequence[Problem], states: Sequence[StreamState]) -> None:
        """Learn from the next examples of the stream in each of several problems: all do, or none.

        If one fails, or is interrupted, it is as if the examples had not come. But bounds are sums over the same
        examples: what one problem cannot forget, the others count without a share.
        """
        n_seen = states[0].n_seen
        try:
            for problem, state in zip(problems, states, strict=True):
                self.step(problem, state)
        except BaseException:
            frozen = any(state.last_frozen >= n_seen for state in states)
            for state in states:
                state.rewind(n_seen, problems[0].in_memory.n_examples if frozen else 0)
            raise

    def _views(self, problem: Problem, state: StreamState) -> Iterator[Closed]:
        state.map.refresh()
        yield problem.in_memory

    def _look(self, problem: Problem, state: StreamState, view: Closed) -> None:
        alpha = np.zeros(view.dual_shape)
        swept = state.sweep(view, alpha, self.hot_sweeps)
        self._take_in(state, view, np.arange(view.n_examples), alpha, swept.norms)
        state.n_seen += view.n_examples
        state.since += view.n_examples

    def _pays(self, state: StreamState) -> bool:
        # Where there are more weights than examples every example tells something new; where there are so few weights
        # that Newton steps pay, a part of the examples tells nearly all.
        growth = 0.3 if state.newton else 0.02 if state.map.v.size > len(state.pool) else 0.05
        return state.since >= growth * len(state.pool)

    def _optimize_briefly(self, problem: Problem, state: StreamState) -> None:
        self._optimize(state)

    def _conclude(self, problem: Problem, state: StreamState) -> StreamState:
        self._between(problem, state)
        state.update_lower(state.regularizer)
        return state

    def _take_in(
        self, state: StreamState, block: Closed, examples: np.ndarray, alpha: np.ndarray, norms: np.ndarray
    ) -> None:
        while examples.size:
            n = state.pool.add(block, examples, state.n_seen, norms)
            state.alpha = np.concatenate([state.alpha, alpha[examples[:n]]])
            state.at_rest = np.concatenate([state.at_rest, np.zeros(n, bool)])
            examples = examples[n:]
            if examples.size and not len(state.pool):
                # A row that is larger than the whole pool stays as it was fitted.
                self._freeze(state, block, alpha, state.n_seen + np.arange(block.n_examples), examples[:1])
                state.settled = state.map.weights().copy()
                examples = examples[1:]
            elif examples.size:
                state.wait(block, alpha, examples)
                self._optimize(state)
                self._make_room(state)
        state.waiting = None

    def _optimize(self, state: StreamState) -> None:
        """Work on the pool until little is left to gain there; the weights at its end are those to be used."""
        if not len(state.pool):
            return
        problem = Problem(state.pool.constraints(), state.regularizer)
        state.newton = interior_point_pays(problem, _NEWTON_TOL)
        if state.newton:
            self._solve_at_once(state, problem)
        else:
            self._pass_over(state)
        state.since, state.met = 0, 0.0

    def _pass_over(self, state: StreamState) -> None:
        """Coordinate passes over the pool."""
        coordinate, pooled, inner = self._work(state.regularizer, state, state.alpha, momentum_after=3)
        coordinate.run(pooled, inner, self.max_inner, self.fraction * state.met)
        self._settle(state, inner)
        state.alpha, state.at_rest = inner.alpha, inner.at_rest
        state.settled = state.map.weights().copy()

    def _solve_at_once(self, state: StreamState, problem: Problem) -> None:
        """Few weights: Newton steps, around what the frozen examples have of v."""
        constraints = problem.in_memory
        others_v, others_linear = state.outside()
        shifted = LinearlyShifted(state.regularizer, others_v) if others_v.any() else state.regularizer
        solution = solve(Problem(constraints, shifted), InteriorPoint(self.n_threads), tol=_NEWTON_TOL, max_passes=100)
        if solution.interrupted:
            raise KeyboardInterrupt
        linear = others_linear + constraints.linear(solution.alpha)
        v = others_v + constraints.combine(solution.alpha)
        state.update_lower(state.regularizer)
        if linear - state.regularizer.conjugate(v) >= state.lower:  # else the last time came nearer
            state.alpha = solution.alpha
            state.stand(v, linear, state.regularizer)
        state.settled = solution.weights
        # Interior points never reach a bound. A share this small is none, and an example without one is at rest.
        budget = np.broadcast_to(constraints.budget, len(state.alpha)).reshape(-1, *[1] * (state.alpha.ndim - 1))
        state.at_rest = ~with_share(np.where(np.abs(state.alpha) > _FAINT * budget, state.alpha, 0.0))

    def _make_room(self, state: StreamState) -> None:
        """Examples leave the pool until half of it is free: those at rest without a share first, then those at rest,
        then those that came first."""
        gone = leaving(state.at_rest, state.alpha, len(state.pool) // 2)
        self._freeze(state, state.pool.constraints(), state.alpha, state.pool.place, np.flatnonzero(gone))
        state.retain(np.flatnonzero(~gone))

    def _freeze(
        self, state: StreamState, held: Closed, alpha: np.ndarray, place: np.ndarray, leaving: np.ndarray
    ) -> None:
        """Shares of some examples stay as they are from now on. They are remembered one by one while there is room."""
        left = np.zeros_like(alpha)
        left[leaving] = alpha[leaving]
        left = held.feasible(left)
        shares = with_share(left)
        if not shares.any():
            return
        held.gather(state.frozen_sums, left)
        state.last_frozen = max(state.last_frozen, int(place[shares].max()))
        state.frozen.append((place[shares], alpha[shares]))
        if sum(p.nbytes + a.nbytes for p, a in state.frozen) > max(self.memory // 4, _REMEMBERED):
            state.frozen, state.remembers = [], False


@dataclass(kw_only=True)
class StreamState(RowState):
    """Where a stream stands: the pool with the shares of its examples, and v and the dual objective of all seen."""

    regularizer: Regularizer
    n_seen: int = 0
    newton: bool = False
    """Whether the weights are few enough for Newton steps."""
    settled: np.ndarray = field(default_factory=lambda: np.empty(0))
    """The weights after the last work on the pool."""
    at_rest: np.ndarray = field(default_factory=lambda: np.empty(0, bool))
    """Which examples of the pool had no gap of their own when it was last worked on."""
    last_frozen: int = -1
    """The last example of which a share can no longer be undone."""
    frozen_sums: DualSums = field(default_factory=lambda: DualSums(0))
    """What frozen shares have of v and of the linear sum."""
    waiting: tuple[np.ndarray, float] | None = None
    frozen: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    """Shares that can no longer move, and whose they are, as long as the stream ``remembers``."""
    remembers: bool = True

    def __post_init__(self) -> None:
        self.settled = self.map.weights().copy()
        self.frozen_sums = DualSums(self.map.v.size)
        self.update_lower(self.regularizer)

    def weights(self) -> np.ndarray:
        return self.settled

    def wait(self, block: Closed, alpha: np.ndarray, examples: np.ndarray) -> None:
        """These examples of a block have shares already, but no place in the pool yet."""
        waiting = np.zeros_like(alpha)
        waiting[examples] = alpha[examples]
        self.waiting = (block.combine(waiting), block.linear(waiting))

    def outside(self) -> tuple[np.ndarray, float]:
        """What examples outside of the pool have of v and of the linear sum."""
        linear, v, *_ = self.frozen_sums.totals()
        if self.waiting is None:
            return v, linear
        return v + self.waiting[0], linear + self.waiting[1]

    def proved(self) -> float:
        """The lower bound that all shares prove together, rounding allowed for."""
        sums = DualSums(self.map.v.size)
        sums.add(self.frozen_sums.totals())
        if len(self.pool):
            sums.add(self.pool.constraints().totals(self.alpha))
        return dual_bound(self.regularizer, sums.totals()).value

    def retain(self, chosen: np.ndarray) -> None:
        """Only these examples stay in the pool."""
        self.pool.keep(chosen)
        self.alpha, self.at_rest = self.alpha[chosen], self.at_rest[chosen]

    def reform(self) -> None:
        """v and the linear sum as they follow from the shares outside of the pool and in it."""
        v, linear = self.outside()
        if len(self.pool):
            constraints = self.pool.constraints()
            v, linear = v + constraints.combine(self.alpha), linear + constraints.linear(self.alpha)
        self.stand(v, linear, self.regularizer)

    def rewind(self, n_seen: int, counted: int) -> None:
        """Learning has failed: forget the examples after the first ``n_seen``, but for ``counted`` that count as seen.

        Of those, the ones that are neither frozen nor in the pool have no share, which makes the lower bound no less
        true.
        """
        self.waiting = None
        self.n_seen = n_seen + counted
        whole = np.arange(min(len(self.pool), self.alpha.shape[0], self.at_rest.size))
        self.retain(whole[self.pool.place[whole] < self.n_seen])
        self.reform()

    def shares(self) -> np.ndarray | None:
        """Dual variables of all examples seen, in the order in which they came; None if some are forgotten."""
        if not self.remembers:
            return None
        alpha = np.zeros((self.n_seen, *self.alpha.shape[1:]))
        for place, part in [*self.frozen, (self.pool.place, self.alpha)]:
            alpha[place] = part
        return alpha
