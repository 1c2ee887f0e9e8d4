"""Dual coordinate ascent over shards.

Each round, every worker improves the dual variables of its own examples under Ω/σ, seen from the v of the whole
problem, and sends back how v changes by that; the changes are added up (CoCoA+: Jaggi et al. 2014, Ma et al. 2015,
with Ω* itself in place of its quadratic bound). With σ = K, the number of shards, the dual objective can never fall.

Two things of the single machine's solver go on here, over all shards at once:

* **Active set.** A round visits all examples, or only those that were seen to move; the driver decides, by the gap that
  all shards have met together.
* **Momentum.** All α move on along their last change, v as a whole vector, what projections hold back being corrected.

And one is the cluster's own:

* **The centre.** Once the examples that still move fit into the driver's memory they leave for it. There, nobody's work
  is outdated by anybody else's: it takes as few passes as on one machine. Workers then look through what they have
  left, and hand over what has begun to move. (Explore on the workers, optimize at the centre.)
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..problem import Problem, TotalLoss
from ..protocols import Seed
from ..regularizers.shape import Shape
from ..solvers.dual_coordinate import DualCoordinate
from ..solvers.solve import SolverState
from .sharded import Sharded
from .work import Report, Task

_PASSES = 100  # over the centre's examples between two rounds
_SWEEPS = 8  # in a round, at most: what is fitted ever better to a part of the examples does not suit the others
_FEW = 0.1  # of all examples: so many that still move are worth handing over
_EARLY, _MANY = 10, 0.4  # what still moves after so many rounds, and grows no less, is handed over if it is no more
_FILLED = 0.8  # of the centre's memory: rows may turn out longer than those before


@dataclass(frozen=True)
class ShardAscent:
    """Settings of the solver for shards.

    Parameters
    ----------
    random_state : int, Generator or None
    centre : int
        Bytes of the driver's memory for examples that still move; 0: all work is done by the workers.
    n_threads : int
        Threads for the passes at the centre, where they are long enough.
    inner_fraction : float
        Work on what moves until its gap is this fraction of what the last look at everything met.
    max_inner : int
        At most so many rounds over what moves before the next look at everything.
    momentum_after : int
        Rounds before momentum begins.
    sweeps : int or None
        How often workers go over what moves in a round. By default the measured times decide: as often as makes the
        work as long as the calls. Runs with a number and a seed can be repeated to the bit.
    """

    random_state: Seed = None
    centre: int = 2**30
    n_threads: int = 1
    inner_fraction: float = 0.3
    max_inner: int = 50
    momentum_after: int = 2
    sweeps: int | None = None

    def start(self, problem: Problem, warm: np.ndarray | None = None) -> ShardState:
        if problem.constraints.held_in != "workers":
            raise ValueError("ShardAscent is for rows on the workers of a cluster: fit(…, cluster=…).")
        sharded = cast(Sharded, problem.constraints)
        if not sharded.first.size or warm is not None:
            sharded.begin(warm)
        state = ShardState(
            sharded=sharded,
            shape=problem.regularizer.shape(problem.n_weights),
            v=np.zeros(problem.n_weights),
            rng=np.random.default_rng(self.random_state),
            active=sharded.n_examples,
            fraction=self.inner_fraction,
            n_constraints=sharded.n_constraints,
        )
        self._recount(problem, state)
        return state

    def save(self, state: ShardState, settled: bool) -> dict[str, Any]:
        """Workers save what is theirs, and what the centre has of it."""
        state.sharded.workers.ask("save", state.sharded.lent)
        return {"rounds": state.rounds}

    def restore(self, problem: Problem, saved: dict[str, Any]) -> ShardState:
        state = self.start(problem)
        state.rounds = int(saved["rounds"])
        return state

    def step(self, problem: Problem, state: ShardState) -> ShardState:
        """Work at the centre, if it has anything to do, and one round."""
        state.gathered = None
        if state.deaths != state.sharded.workers.deaths:
            self._recount(problem, state)
        everything = self._everything(state)
        state.evaluated = None
        if everything:
            self._optimize(problem, state)
        evaluate = everything and state.estimate <= 2.0 * state.goal
        reports, sent = self._round(state, everything, evaluate)
        if state.deaths != state.sharded.workers.deaths:
            self._recount(problem, state)  # who has died began the round from what it had saved
        old = state.lower
        state.lower = state.linear - problem.regularizer.conjugate(state.v)
        if state.lower < old:
            state.theta = 1.0
        self._conclude(state, everything, reports)
        if evaluate:
            self._evaluated(problem, state, sent, [report.loss for report in reports])
        return state

    def _evaluated(self, problem: Problem, state: ShardState, v: np.ndarray, losses: list[TotalLoss | None]) -> None:
        """All shards have computed the loss at the weights of v: how far the estimate was off is known as well."""
        if any(loss is None for loss in losses):
            return
        loss = TotalLoss.sum(x for x in losses if x)
        w = problem.regularizer.weights(v)
        state.evaluated = w, loss
        upper = problem.regularizer.value(w) + loss.total
        gap = (upper - state.lower) / max(abs(upper), 1e-300)
        state.bias = max(1.0, gap / max(state.estimate / state.bias, 1e-300))
        state.estimate = max(gap, 0.0)

    def _everything(self, state: ShardState) -> bool:
        return (
            state.rounds < 2
            or state.outer == np.inf
            or state.active == 0
            or state.inner >= self.max_inner
            or state.seen <= max(state.fraction * state.outer, 0.7 * state.goal * abs(state.lower) / state.bias)
            or (state.inner > 0 and state.estimate <= state.goal)
        )

    def _round(self, state: ShardState, everything: bool, evaluate: bool) -> tuple[list[Report], np.ndarray]:
        """All workers once; v follows. Returns their reports, and the v that they began with."""
        sharded = state.sharded
        state.rounds += 1
        sent, momentum, hand_over = state.v, 0.0, self._hand_over(state)
        if state.step is not None and state.goes_along and state.rounds > self.momentum_after and not hand_over:
            theta = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * state.theta**2))
            momentum, state.theta = (state.theta - 1.0) / theta, theta
            sent = state.v + momentum * state.step
        task = Task(
            sigma=float(sharded.workers.size),
            everything=everything,
            wanted=state.goal * abs(state.lower),
            momentum=momentum,
            evaluate=evaluate,
            sweeps=state.sweeps if self.sweeps is None else self.sweeps,
            hand_over=hand_over,
        )
        began = time.perf_counter()
        handle = sharded.workers.transport.broadcast(sent)
        answers, heavy = sharded.workers.total("improve", lambda k: (handle, task))
        for k, report in enumerate(answers):
            if report is not None and report.parcel is not None:
                sharded.take(k, report.parcel, self.centre)
        reports = [report for report in answers if report is not None]
        for report in reports:
            state.linear += report.linear
        state.step = np.array(heavy[0]) if heavy else np.zeros(state.v.size)
        state.v = state.v + state.step
        state.reckon(time.perf_counter() - began, task.sweeps, reports)
        return reports, sent

    def _hand_over(self, state: ShardState) -> int:
        """Bytes that each worker may hand over to the centre now.

        To begin with everything moves. What does so after some rounds is worth the journey, if all of it fits. From
        then on whatever begins to move is handed over at once, and momentum is the centre's alone.
        """
        pool = state.sharded.pool
        if state.sharded.workers.size == 1:
            return 0  # nobody's work is outdated by anybody else's
        room = int(_FILLED * self.centre) - (0 if pool is None else pool.nbytes)
        if pool is None:
            n = state.sharded.n_examples
            few = state.active <= _FEW * n
            settled = state.rounds > _EARLY and 0.9 * state.active_before < state.active <= _MANY * n
            if not ((few or settled) and 0 < state.bytes_active <= room):
                return 0
        return max(room, 0) // state.sharded.workers.size

    def _conclude(self, state: ShardState, everything: bool, heard: list[Report]) -> None:
        """What the driver makes of the reports of a round."""
        before_round, awake = state.seen, state.active
        state.active_before = awake
        state.seen = sum(report.gap for report in heard) + state.centre_gap
        state.visited = sum(report.visited for report in heard) + state.centre_visited
        state.centre_visited = 0
        state.active = sum(report.active for report in heard)
        state.bytes_active = sum(report.bytes_active for report in heard)
        state.bytes_held = sum(report.nbytes for report in heard)
        state.n_constraints = sum(report.n_constraints for report in heard)
        state.goes_along = all(report.goes_along for report in heard)
        state.inner = 0 if everything else state.inner + 1
        seen = state.seen
        if everything:
            state.outer = seen
            settled = state.active <= 1.05 * awake
            state.fraction = 0.3 * state.fraction if settled else self.inner_fraction
            if 0.0 < seen < before_round < np.inf:
                seen *= seen / before_round
        # Gaps are met at weights that a worker has fitted to its own examples: those of all are worse.
        state.estimate = state.bias * seen / max(abs(state.lower + seen), 1e-300)

    def _optimize(self, problem: Problem, state: ShardState) -> None:
        """Passes over the examples at the centre until their gap is a fraction of what was last met."""
        sharded = state.sharded
        pool = sharded.pool
        if pool is None or not len(pool):
            return
        coordinate = DualCoordinate(random_state=state.rng, n_threads=self.n_threads)
        weights = state.shape.bind(state.v)
        pooled = Problem(pool.constraints(), problem.regularizer)
        inner = coordinate.state(pooled, sharded.pool_alpha, state.shape, weights, state.linear, pool.norms, state.rng)
        met = state.outer if np.isfinite(state.outer) else 0.0
        wanted = max(0.2 * met, 0.8 * state.goal * abs(state.lower))
        state.step, state.theta = None, 1.0  # v is moved by the centre
        try:
            state.centre_visited = coordinate.run(pooled, inner, _PASSES, wanted)
        finally:
            sharded.pool_alpha = inner.alpha
        state.linear = inner.linear
        state.centre_gap = max(inner.seen, 0.0)

    def _recount(self, problem: Problem, state: ShardState) -> None:
        """v and the linear part of the dual objective, from the dual variables that there are."""
        while True:
            state.deaths = state.sharded.workers.deaths
            state.linear, state.v, *_ = state.sharded.totals()
            if state.deaths == state.sharded.workers.deaths:
                break
        state.lower = state.linear - problem.regularizer.conjugate(state.v)
        state.step, state.theta = None, 1.0
        state.outer = state.seen = np.inf


@dataclass(kw_only=True)
class ShardState(SolverState):
    """Where the ascent stands."""

    sharded: Sharded
    shape: Shape
    v: np.ndarray
    rng: np.random.Generator
    active: int
    fraction: float
    n_constraints: int
    linear: float = 0.0
    rounds: int = 0
    deaths: int = 0
    """How many workers had died when sums were last formed."""
    sweeps: int = 1
    """How often workers go over what moves in a round."""
    goes_along: bool = False
    step: np.ndarray | None = None
    """The last change of v, if momentum may go along it."""
    theta: float = 1.0
    outer: float = np.inf
    seen: float = np.inf
    inner: int = 0
    centre_gap: float = 0.0
    centre_visited: int = 0
    bytes_active: int = 0
    bytes_held: int = 0
    active_before: int = 0
    bias: float = 1.0
    """By how much the last estimate was too small."""
    gathered: np.ndarray | None = None

    def reckon(self, seconds: float, sweeps: int, reports: list[Report]) -> None:
        """A round has taken so long, with so many sweeps: the next shall work about as long as it waits."""
        work = max((report.seconds for report in reports), default=0.0)
        if work > 0.0:
            wanted = int(max(seconds - work, 0.0) / (work / sweeps))
            self.sweeps = min(max(wanted, 1), 2 * self.sweeps, _SWEEPS)

    @property
    def alpha(self) -> np.ndarray:
        """The dual variables of all shards, fetched once after a step: workers may die, and lose those of theirs."""
        if self.gathered is None:
            self.gathered = self.sharded.gather()
        return self.gathered

    @property
    def nbytes(self) -> int:
        pool = self.sharded.pool
        return self.bytes_held + (0 if pool is None else pool.nbytes)

    def weights(self) -> np.ndarray:
        return self.shape.bind(self.v.copy()).weights()
