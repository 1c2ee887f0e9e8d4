"""Dual coordinate ascent over shards.

Each round, every worker improves the dual variables of its own examples under Ω/σ, seen from the v of the whole
problem, and sends back how v changes by that; the changes are added up (CoCoA+: Jaggi et al. 2014, Ma et al. 2015,
with Ω* itself in place of its quadratic bound). With σ = K, the number of shards, the dual objective can never fall.
A direction on which all shards agree, and which each settles by itself, goes K/σ times as far as it should: with σ
above K/2 that still comes to rest. A part of a pass settles little, so there σ begins at 0.6·K, and grows when the
objective falls.

Two things of the single machine's solver go on here, over all shards at once:

* **Active set.** A pass visits all examples, or only those that were seen to move; the driver decides, by the gap that
  all shards have met together.
* **Momentum.** After a pass all α move on along their last change, v as a whole vector, what projections hold back
  being corrected.

And two are the cluster's own:

* **Rounds of a pass.** The longer a worker goes on by itself, the less its work suits what the others do meanwhile. A
  pass is cut into as many rounds as are worth the calls.
* **The centre.** Where calls take longer than the work, and the examples that still move fit into the driver's memory,
  they leave for it. There, nobody's work is outdated by anybody else's: it takes as few passes as on one machine.
  Workers then look through what they have left, and hand over what has begun to move. (Explore on the workers,
  optimize at the centre.)
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from ..problem import Problem, TotalLoss
from ..protocols import Seed
from ..regularizers.shape import Shape
from ..solvers.dual_coordinate import DualCoordinate
from ..solvers.solve import SolverState
from .pace import Pace
from .sharded import Sharded
from .work import Report, Task

_PASSES = 100  # over the centre's examples between two of all workers
_SHARE = 0.6  # of K: σ of passes in several rounds, to begin with
_STRETCH, _STRETCHED = 1.9, 5  # of steps in the passes up to this: σ makes them short, and most have a long way to go
_YOUNG = 0.5  # momentum that is not yet to blame where the objective falls
_FEW = 0.1  # of all examples: so many that still move are worth handing over
_EARLY, _MANY = 10, 0.4  # what still moves after so many passes, and grows no less, is handed over if it is no more
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
        At most so many passes over what moves before the next look at everything.
    momentum_after : int
        Passes before momentum begins.
    sweeps : float or None
        How often workers go over what moves in a round; 0.25 means that a pass takes four rounds. By default the
        measured times decide: a round works longer than it takes to call everybody, if that is possible. They also
        decide whether examples are handed over to the centre. Runs with a number and a seed can be repeated to the
        bit; they hand over whatever fits.
    """

    random_state: Seed = None
    centre: int = 2**30
    n_threads: int = 1
    inner_fraction: float = 0.3
    max_inner: int = 50
    momentum_after: int = 2
    sweeps: float | None = None

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
        return {"rounds": state.passes}

    def restore(self, problem: Problem, saved: dict[str, Any]) -> ShardState:
        state = self.start(problem)
        state.passes = int(saved["rounds"])
        return state

    def step(self, problem: Problem, state: ShardState) -> ShardState:
        """Work at the centre, if it has anything to do, and one pass of all workers."""
        state.gathered = None
        if state.deaths != state.sharded.workers.deaths:
            self._recount(problem, state)
        everything = self._everything(state)
        state.evaluated = None
        if everything:
            self._optimize(problem, state)
        evaluate = everything and state.estimate <= 2.0 * state.goal
        momentum = self._momentum(state)
        sent = state.v if momentum == 0.0 or state.before is None else state.v + momentum * (state.v - state.before)
        state.before, state.v = state.v, sent
        reports = self._pass(state, everything, evaluate, momentum)
        if state.deaths != state.sharded.workers.deaths:
            self._recount(problem, state)  # who has died began the round from what it had saved
        old = state.lower
        state.lower = state.linear - problem.regularizer.conjugate(state.v)
        if state.lower < old:
            state.theta = 1.0
            if momentum < _YOUNG:
                state.share = min(1.5 * state.share, 1.0)
        self._conclude(state, everything, reports)
        if evaluate:
            self._evaluated(problem, state, sent, [report.loss for report in reports[0]])
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
            state.passes < 2
            or state.outer == np.inf
            or state.active == 0
            or state.inner >= self.max_inner
            or state.seen <= max(state.fraction * state.outer, 0.7 * state.goal * abs(state.lower) / state.bias)
            or (state.inner > 0 and state.estimate <= state.goal)
        )

    def _momentum(self, state: ShardState) -> float:
        """How far to go on along the last change of v. While examples are handed over that is left to the centre."""
        if state.before is None or not state.by_parts or state.passes < self.momentum_after or self._hand_over(state):
            return 0.0
        theta = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * state.theta**2))
        momentum, state.theta = (state.theta - 1.0) / theta, theta
        return momentum

    def _pass(self, state: ShardState, everything: bool, evaluate: bool, momentum: float) -> list[list[Report]]:
        """All workers over what they shall visit, in rounds; v follows. Returns their reports, round by round."""
        parts, sweeps = self._rounds(state, everything)
        hand_over = self._hand_over(state)
        early, state.passes = state.passes, state.passes + 1
        shards = float(state.sharded.workers.size)
        sigma = max(state.share * shards, 1.0) if parts > 1 else shards
        reports = []
        for part in range(parts):
            task = Task(
                sigma=sigma,
                everything=everything,
                wanted=state.goal * abs(state.lower),
                momentum=momentum,
                evaluate=evaluate and part == 0,
                sweeps=sweeps,
                stretch=min(_STRETCH, sigma) if 1 <= early < _STRETCHED else 1.0,
                part=part,
                parts=parts,
                hand_over=hand_over if part == parts - 1 else 0,
            )
            reports.append(self._round(state, task))
            if state.deaths != state.sharded.workers.deaths:
                break  # who has died does not know what this pass was about
        return reports

    def _rounds(self, state: ShardState, everything: bool) -> tuple[int, int]:
        """In how many parts to go over what moves, and how often over each."""
        if self.sweeps is None:
            parts, sweeps = state.pace.rounds(state.sharded.n_examples if everything else state.active)
        else:
            parts, sweeps = max(round(1.0 / self.sweeps), 1), max(round(self.sweeps), 1)
        return parts if state.by_parts and state.sharded.workers.size > 1 else 1, sweeps

    def _round(self, state: ShardState, task: Task) -> list[Report]:
        """All workers once; v follows."""
        sharded = state.sharded
        began = time.perf_counter()
        handle = sharded.workers.transport.broadcast(state.v)
        answers, heavy = sharded.workers.total("improve", lambda k: (handle, task))
        for k, report in enumerate(answers):
            if report is not None and report.parcel is not None:
                sharded.take(k, report.parcel, self.centre)
        reports = [report for report in answers if report is not None]
        for report in reports:
            state.linear += report.linear
        if heavy and task.part == 0:
            state.v = state.v + heavy[0]  # what the pass began with is still wanted
        elif heavy:
            state.v += heavy[0]
        state.pace.note(time.perf_counter() - began, reports)
        return reports

    def _hand_over(self, state: ShardState) -> int:
        """Bytes that each worker may hand over to the centre now.

        To begin with everything moves. What does so after some passes is worth the journey, if all of it fits and
        calls take long. From then on whatever begins to move is handed over at once, and momentum is the centre's
        alone.
        """
        pool = state.sharded.pool
        if state.sharded.workers.size == 1:
            return 0  # nobody's work is outdated by anybody else's
        room = int(_FILLED * self.centre) - (0 if pool is None else pool.nbytes)
        if pool is None:
            n = state.sharded.n_examples
            few = state.active <= _FEW * n
            settled = state.passes >= _EARLY and 0.9 * state.active_before < state.active <= _MANY * n
            if not ((few or settled) and 0 < state.bytes_active <= room):
                return 0
            if self.sweeps is None and not state.pace.centre_pays(state.active):
                return 0
        return max(room, 0) // state.sharded.workers.size

    def _conclude(self, state: ShardState, everything: bool, rounds: list[list[Report]]) -> None:
        """What the driver makes of the reports of a pass."""
        heard = rounds[-1]
        before_round, awake = state.seen, state.active
        state.active_before = awake
        state.seen = sum(report.gap for reports in rounds for report in reports) + state.centre_gap
        state.visited = sum(report.visited for reports in rounds for report in reports) + state.centre_visited
        state.centre_visited = 0
        state.active = sum(report.active for report in heard)
        state.bytes_active = sum(report.bytes_active for report in heard)
        state.bytes_held = sum(report.nbytes for report in heard)
        state.n_constraints = sum(report.n_constraints for report in heard)
        state.by_parts = all(report.by_parts for report in heard)
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
        state.before, state.theta = None, 1.0  # v is moved by the centre
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
        state.before, state.theta = None, 1.0
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
    share: float = _SHARE
    """Of K: σ where a pass has several rounds."""
    passes: int = 0
    deaths: int = 0
    """How many workers had died when sums were last formed."""
    pace: Pace = field(default_factory=Pace)
    by_parts: bool = False
    before: np.ndarray | None = None
    """v before the last pass, if momentum may go along its change."""
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
