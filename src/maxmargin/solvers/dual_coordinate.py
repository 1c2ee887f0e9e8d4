"""Dual coordinate ascent in passes: an active set, momentum over passes, hot starts.

Ramanan, Algorithm 1, as steps over whatever structure the constraints bring (one variable per example,
a simplex per example, explicit rows). Two additions decide the speed:

* **Active set.** A full pass over all examples sends those with no gap of their own to sleep; the
  following passes visit only the others, until the gap seen there is a fraction of what the full pass
  saw. The next full pass wakes everybody. (The explore-or-optimize rule, applied to data in memory.)
* **Momentum.** After a pass, α moves on along α − α_previous, projected back to feasibility; the
  momentum grows as in Nesterov's method and is dropped when the dual objective falls. Examples asleep
  have not moved, so the two fit together. Every iterate is feasible: every lower bound stays true.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..constraints.base import Closed
from ..kernels import vectors
from ..kernels.maps import WeightMap
from ..problem import Problem
from ..protocols import Seed
from ..regularizers.shape import Shape
from ..validation import whole
from . import parallel
from .certificate import WORTH_A_CHECK
from .solve import Weighted


@dataclass(frozen=True)
class DualCoordinate:
    """Settings of the dual coordinate solver.

    Parameters
    ----------
    random_state : int, Generator or None
        Order of visits.
    block : int or None
        Rows shuffled together (see ``kernels.order``); by default 8 for sparse data and 1 for dense.
    inner_fraction : float
        Work on the active set until its gap is this fraction of the last full pass's (less once full passes
        find little that is new), or small enough for the goal.
    max_inner : int
        At most so many passes over the active set before the next full one.
    momentum : bool
        Needs a second copy of the dual variables.
    n_threads : int
        Threads for one sweep (see ``solvers.parallel``); used where the sweep is long enough.
    momentum_after : int
        Passes before momentum begins: early on, plain steps are as good and cheaper.
    """

    random_state: Seed = None
    block: int | None = None
    inner_fraction: float = 0.3
    max_inner: int = 50
    momentum: bool = True
    n_threads: int = 1
    momentum_after: int = 8

    def __post_init__(self) -> None:
        whole("n_threads", self.n_threads)

    def start(self, problem: Problem, warm: np.ndarray | None = None) -> DualState:
        constraints = problem.in_memory
        shape = problem.regularizer.shape(problem.n_weights)
        if not constraints.supports(shape.kind):
            raise ValueError(
                f"{type(constraints).__name__} has no compiled steps for {problem.regularizer!r}. "
                "Write the constraints out with `.explicit()` first."
            )
        constraints.pack()
        alpha = np.zeros(constraints.dual_shape) if warm is None else constraints.feasible(warm)
        v = np.zeros(problem.n_weights) if warm is None else constraints.combine(alpha)
        linear = 0.0 if warm is None else constraints.linear(alpha)
        norms = np.full(len(constraints.rows), -1.0, np.float32)
        return self.state(problem, alpha, shape, shape.bind(v), linear, norms, np.random.default_rng(self.random_state))

    def state(
        self,
        problem: Problem,
        alpha: np.ndarray,
        shape: Shape,
        weights: WeightMap,
        linear: float,
        norms: np.ndarray,
        rng: np.random.Generator,
    ) -> DualState:
        """All examples awake at these dual variables; v and ``linear`` may be those of a larger problem."""
        order = np.arange(problem.in_memory.n_examples, dtype=np.int32)
        state = DualState(
            alpha=alpha,
            shape=shape,
            map=weights,
            linear=linear,
            norms=norms,
            order=order,
            active=order.size,
            rng=rng,
            fraction=self.inner_fraction,
            n_constraints=problem.in_memory.n_constraints,
        )
        state.update_lower(problem.regularizer)
        return state

    def step(self, problem: Problem, state: DualState) -> DualState:
        """One pass, over everything or over the active set, and one extrapolation."""
        constraints = problem.in_memory
        full = (
            state.passes < 2
            or state.outer == np.inf
            or state.active == 0
            or state.inner >= self.max_inner
            or state.seen <= max(state.fraction * state.outer, 0.7 * state.goal * abs(state.lower))
            # The goal seemed to be reached, and was not: those asleep are to blame.
            or (state.inner > 0 and state.estimate <= WORTH_A_CHECK * state.goal)
        )
        awake = state.active
        if self.momentum and state.passes >= self.momentum_after:
            self._extrapolate(constraints, state)
        if full:
            state.order[:] = np.arange(state.order.size)
            state.active = state.order.size
        state.visited = state.active
        before_sweep = state.seen
        self._sweep(problem, state)
        state.passes += 1
        state.inner = 0 if full else state.inner + 1
        before = state.lower
        state.update_lower(problem.regularizer)
        if state.lower < before:
            state.theta = 1.0
        if full:
            state.outer = state.seen
            # A full pass that wakes hardly anybody was too early: the next one waits longer.
            settled = state.active <= 1.05 * awake
            state.fraction = 0.3 * state.fraction if settled else self.inner_fraction
            state.map.refresh()
        state.estimate = _estimate(state, before_sweep if full else np.inf)
        return state

    def run(
        self,
        problem: Problem,
        state: DualState,
        passes: int,
        wanted: float,
        before: Callable[[int], None] | None = None,
    ) -> int:
        """Passes over a pool until its own gap is as small as wanted; ``before`` each of them is told its number.

        Returns how many examples were visited.
        """
        state.goal = wanted / max(abs(state.lower), 1e-300)
        visited = 0
        for n in range(passes):
            if before is not None:
                before(n)
            self.step(problem, state)
            visited += state.visited
            if state.inner == 0 and state.seen <= wanted:
                break
        return visited

    def _sweep(self, problem: Problem, state: DualState) -> None:
        """Coordinate steps over the active examples, on as many threads as pay."""
        block = self.block or (8 if problem.in_memory.rows.indices.size else 1)
        n_rounds = parallel.rounds(problem, state, self.n_threads) if self.n_threads > 1 else 0
        if n_rounds:
            parallel.sweep(problem, state.shape, state, block, self.n_threads, n_rounds)
            return
        seed = int(state.rng.integers(1, 2**63))
        state.active, state.seen, change = problem.in_memory.sweep(
            state.alpha, state.map, state.norms, state.order, state.active, block, seed
        )
        state.linear += change

    def _extrapolate(self, constraints: Closed, state: DualState) -> None:
        """Move α and v on along their last change. v is linear in α, so it goes as a whole vector.

        That needs the last α to the bit: in float32 the two would drift apart by 1e-6 of the objective a pass.
        """
        v = state.map.v
        if state.previous is None or state.previous_v is None:
            state.previous, state.previous_v = state.alpha.copy(), v.copy()
            return
        theta = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * state.theta**2))
        momentum = (state.theta - 1.0) / theta
        state.theta = theta
        vectors.extrapolate(v, state.previous_v, momentum)
        state.map.refresh()
        state.linear += constraints.extrapolate(
            state.alpha, state.previous, momentum, state.map, state.order, state.active, state.visited
        )


def _estimate(state: DualState, before: float) -> float:
    """The relative gap after a pass: what it saw on its way.

    A full pass has improved things since it saw them, at about the rate of the pass before; a pass over the
    active examples may hope that the others still sleep soundly, but no more than that.
    """
    seen = max(state.seen, 0.0)
    if 0.0 < seen < before < np.inf:
        seen *= seen / before
    return seen / max(abs(state.lower + seen), 1e-300)


@dataclass(kw_only=True)
class DualState(Weighted):
    """Where the ascent stands. Changed in place: α may be larger than anyone wants to copy."""

    alpha: np.ndarray
    norms: np.ndarray
    order: np.ndarray
    """All examples, the active ones first."""
    active: int
    rng: np.random.Generator
    fraction: float
    """Of ``outer``: a full pass is due once a pass over the active examples meets no more than that."""
    n_constraints: int
    seen: float = np.inf
    """The gap that the last pass met."""
    outer: float = np.inf
    """The gap that the last full pass met, and how many passes over the active examples came since."""
    inner: int = 0
    passes: int = 0
    theta: float = 1.0
    """Nesterov's momentum: its parameter, and the point before this one."""
    previous: np.ndarray | None = None
    previous_v: np.ndarray | None = None

    @property
    def nbytes(self) -> int:
        return self.alpha.nbytes

    @property
    def at_rest(self) -> np.ndarray:
        """Which examples had no gap of their own in the last pass, as a mask."""
        mask = np.zeros(self.order.size, bool)
        mask[self.order[self.active :]] = True
        return mask

    def wake(self) -> None:
        """Constraints have come or gone: begin with a full pass, and with momentum gathered anew."""
        self.order[:] = np.arange(self.order.size)
        self.active = self.visited = self.order.size
        self.previous = self.previous_v = None
        self.outer = self.seen = np.inf
        self.inner = 0
