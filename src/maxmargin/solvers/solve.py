"""The only loop that certifies: it times, reports, checks and stops. Solvers take steps and know nothing of this, but
that their states are ``SolverState``."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..kernels.maps import WeightMap
from ..problem import Certificate, Problem, Record, Solution, TotalLoss
from ..protocols import Checkpoint, OracleError, Regularizer, Solver
from ..regularizers.shape import Shape
from ..validation import check_object, lacking, shown, whole
from .certificate import (
    WORTH_A_CHECK,
    LowerBound,
    certificate_of,
    check_problem,
    dual_objective,
    lower_bound,
    upper_bound,
)
from .searchers import dismiss

_CRAWLS = 100  # passes, from which on multiples of the weights are worth a look
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
_SECTIONS = 5

Callback = Callable[[Record], object]


def solve(
    problem: Problem,
    solver: Solver,
    *,
    tol: float = 1e-3,
    max_passes: int = 1000,
    warm: object = None,
    callbacks: Iterable[Callback] = (),
    checkpoint: Checkpoint | None = None,
) -> Solution:
    """Run a solver until the relative duality gap is certified to be at most ``tol``.

    The upper bound costs a pass over the data, so it is computed when the solver's own estimate says the
    goal may be reached, and now and then besides; the estimate never ends a run. Before a run ends as
    converged both bounds are recomputed from the dual variables and the weights alone, with an allowance for rounding.
    No lower bound is reported below that of α = 0, which ``certify`` knows without being told.

    Of a solver that minimises no objective (``solvers.Perceptron``) nothing is claimed: its upper bound is infinite.

    Where rounding alone is larger than the goal, the run ends as ``stuck``: double precision cannot prove more.

    Ctrl-C ends the run after the pass in progress is abandoned, and returns the best weights so far with
    their certificate; once more within two seconds, it ends the program as usual (or a search over many fits). A
    callback that returns ``True`` ends the run likewise.

    Parameters
    ----------
    problem : Problem
    solver : Solver
    tol : float
        Relative duality gap (upper − lower)/upper at which to stop.
    max_passes : int
    warm : array, Planes or None
        Dual variables to start from; made feasible first, so those of a neighbouring problem will do.
    callbacks : iterable of functions
        Each is given one ``Record`` per pass. One with a method ``during`` is also told, in the midst of long passes,
        the number of the pass, the share of it that is done, and the seconds since the start. One with a method
        ``weighed`` is not called, but told there: it gets the record and a function that returns the weights.
    checkpoint : Checkpoint or None
        Where the run is saved now and then, and goes on from if something was saved there.
    """
    _check_call(problem, solver, tol, max_passes)
    callbacks = tuple(callbacks)
    clock = time.perf_counter()
    history: list[Record] = []
    best = _Best()
    certificate: Certificate | None = None
    interrupted, stepping = False, False
    saved = checkpoint.load() if checkpoint is not None else None
    if saved is None:
        state: Any = solver.start(problem, warm)
    else:
        state = restored_state(problem, solver, saved["state"])
        history = [Record(*values) for values in saved["history"]]
        if saved["weights"].size:
            best.offer(problem, np.array(saved["weights"]))  # no number in a file is trusted
        clock -= saved["seconds"]
    state.goal = tol
    floor = dual_objective(problem)
    kept = state.lower  # of what is saved, or of the start
    next_check = 20
    calls = history[-1].oracle_calls if history else 0

    def beat() -> None:
        """The state is whole, in the midst of a step."""
        for callback in callbacks:
            if hasattr(callback, "during"):
                callback.during(len(history) + 1, state.done, time.perf_counter() - clock)
        save()

    def save(last: bool = False, settled: bool = True) -> None:
        nonlocal kept
        if checkpoint is None or not (last or checkpoint.due()):
            return
        found = saved_state(solver, state, settled)
        if found is not None and (settled or dual_objective(problem, state.alpha).computed >= kept):
            kept = state.lower
            checkpoint.save(
                {
                    "state": found,
                    "history": [tuple(vars(record).values()) for record in history],
                    "weights": best.weights,
                    "seconds": time.perf_counter() - clock,
                }
            )

    try:
        state.beat = beat
        if saved is not None:
            certificate = _confirmed(problem, state, best, tol, floor)  # perhaps there is nothing left to do
        for number in range(len(history) + 1, max_passes + 1):
            if certificate is not None:
                break
            stepping = True
            state = solver.step(problem, state)
            stepping = False
            calls += state.visited
            if state.evaluated is not None:
                best.offer(problem, *state.evaluated)
            elif state.certifies and (state.estimate <= WORTH_A_CHECK * tol or number >= next_check):
                best.offer(problem, state.weights())
                if number >= _CRAWLS and problem.constraints.held_in == "memory" and not state.second_order:
                    best.stretch(problem, state.weights(), tol)
                next_check = int(number * 1.5) + 8
                calls += 0 if problem.constraints.closed else problem.constraints.n_examples
            certificate = _confirmed(problem, state, best, tol, floor)
            record = Record(
                number=number,
                seconds=time.perf_counter() - clock,
                lower=max(state.lower, floor.value) if certificate is None else certificate.lower,
                upper=best.upper.total if certificate is None else certificate.upper,
                estimate=state.estimate,
                active=state.active,
                oracle_calls=calls,
                cache_size=state.n_constraints,
                bytes=state.nbytes,
                exact=bool(np.isfinite(best.upper.excess)),
            )
            history.append(record)
            if (
                any([_told(callback, record, state.weights) is True for callback in callbacks])
                or certificate
                or state.stuck
                or state.finished
            ):
                break
            save()
        if certificate is None and state.certifies:
            best.offer(problem, state.weights())
    except KeyboardInterrupt:
        interrupted = first_interrupt()
        if not interrupted:
            raise
    except (OracleError, MemoryError) as error:
        # Nothing new can be certified; what was reached is handed over with the error.
        error.solution = _partial(problem, state, best, history, floor)  # type: ignore[union-attr]
        raise
    finally:
        state.beat = None  # it knows the state: the two would keep each other, and a cache, alive
        if not problem.constraints.closed:
            dismiss(getattr(problem.constraints, "oracle", None))
    save(last=True, settled=not stepping)
    if interrupted and state.certifies:
        # One more look at the weights of the moment, for those who can wait; a second Ctrl-C does without.
        with contextlib.suppress(KeyboardInterrupt, OracleError):
            best.offer(problem, state.weights())
    if certificate is None:
        certificate = certificate_of(max(lower_bound(problem, state.alpha), floor.value), best.upper, problem)
    weights = best.weights if best.weights.size else state.weights().copy()
    converged = state.finished or _meets(certificate.lower, best.upper, tol)
    stuck = bool(state.stuck) and not converged and not interrupted
    return Solution(weights, state.alpha, certificate, history, converged, interrupted, stuck, best.upper.total)


def _told(callback: Any, record: Record, weights: Callable[[], np.ndarray]) -> object:
    """What a callback has to say of a pass; one with a method ``weighed`` may ask for the weights."""
    return callback.weighed(record, weights) if hasattr(callback, "weighed") else callback(record)


def _check_call(problem: object, solver: object, tol: object, max_passes: object) -> None:
    """Whether these are a problem and a solver at all, and the goal one that can be reached."""
    check_problem(problem)
    check_object("solver", solver)
    if lacking(solver, "start", "step"):
        raise ValueError(
            f"solver must have the methods start and step of maxmargin.protocols.Solver, got {shown(solver)}. "
            "Ready-made ones are in maxmargin.solvers; choose(problem, 'auto') finds one."
        )
    if isinstance(tol, bool) or not isinstance(tol, int | float | np.number) or not tol > 0:
        raise ValueError(f"tol must be a number greater than 0, got {shown(tol)}.")
    whole("max_passes", max_passes)


def saved_state(solver: Any, state: Any, settled: bool) -> dict[str, Any] | None:
    """What a run can go on from: the dual variables, unless the solver has more to say. ``settled`` is False where an
    interrupt may have come between two changes that belong together: such dual variables are saved only if they prove
    as much as those before. None: what was saved before is worth more."""
    return solver.save(state, settled) if hasattr(solver, "save") else {"alpha": state.alpha}


def restored_state(problem: Problem, solver: Any, saved: dict[str, Any]) -> Any:
    """The state to go on with from what was saved."""
    return solver.restore(problem, saved) if hasattr(solver, "restore") else solver.start(problem, saved["alpha"])


_interrupted_at = -math.inf


def first_interrupt() -> bool:
    """Whether the last Ctrl-C is long past. Whoever presses it again at once does not want the next fit either."""
    global _interrupted_at
    before, _interrupted_at = _interrupted_at, time.monotonic()
    return _interrupted_at - before > 2.0


def _partial(problem: Problem, state: Any, best: _Best, history: list[Record], floor: LowerBound) -> Solution:
    """What there is when a search has failed: the best weights that were evaluated, or else the latest."""
    weights = best.weights if best.weights.size else state.weights().copy()
    lower = floor.value
    with contextlib.suppress(OracleError, MemoryError):
        lower = max(lower, lower_bound(problem, state.alpha))
    return Solution(weights, state.alpha, certificate_of(lower, best.upper, problem), history, converged=False)


def _meets(lower: float, upper: TotalLoss, tol: float) -> bool:
    """Whether the goal is reached, as far as the search could see the objective.

    Where inference is approximate the goal is that no rival is *found* any more that would matter. What else there may
    be is not for training to find: the certificate then claims no upper bound, or says what is relaxation.
    """
    seen = certificate_of(lower, upper._replace(excess=0.0)).relative_gap
    if not np.isfinite(upper.excess):
        return seen <= tol
    return certificate_of(lower, upper).relative_gap <= tol or (upper.excess > 0.0 and seen <= 0.5 * tol)


def _confirmed(problem: Problem, state: Any, best: _Best, tol: float, floor: LowerBound) -> Certificate | None:
    """The certificate if it meets the goal, from what α says by itself: running sums gather rounding errors."""
    upper = best.upper
    if not _meets(max(state.lower, floor.value), upper._replace(rounding=0.0), tol):
        return None
    lower = max(dual_objective(problem, state.alpha), floor, key=lambda bound: bound.value)
    if lower.value > sum(upper) + 1e-6 * (1.0 + abs(sum(upper))) and not problem.constraints.closed:
        raise OracleError(
            f"The bounds contradict each other: {lower.value:.8g} <= optimum <= {sum(upper):.8g}. The search does not "
            "find the worst offenders; maxmargin.checks.check_model says where features, loss and most_violated "
            "disagree.",
            -1,
        )
    if _meets(lower.value, upper, tol):
        return certificate_of(lower.value, upper, problem)
    if lower.rounding + upper.rounding > tol * abs(upper.total):
        state.stuck = True  # the goal seems to be reached, and no further step could prove it
    return None


class _Best:
    """The best weights seen and their objective."""

    def __init__(self) -> None:
        self.upper = TotalLoss(np.inf)
        self.weights = np.empty(0)

    def offer(self, problem: Problem, w: np.ndarray, loss: TotalLoss | None = None) -> None:
        upper = upper_bound(problem, w, loss)
        # What is proved comes before what only looks better.
        if not self.weights.size or self._rank(upper) < self._rank(self.upper):
            self.upper, self.weights = upper, w.copy()

    def stretch(self, problem: Problem, w: np.ndarray, tol: float) -> None:
        """Larger multiples of w. Where C is large against what classes that can be told apart need, margins that are
        missed by very little cost much, long after the dual objective has settled: then w needs to be a little longer.

        The objective is convex along them: a golden section finds the best share by which margins fall short.
        """

        def value(log_share: float) -> float:
            longer = w / (1.0 - 10.0**log_share)
            upper = upper_bound(problem, longer)
            if self._rank(upper) < self._rank(self.upper):
                self.upper, self.weights = upper, longer
            return upper.total

        left, right = math.log10(0.1 * min(tol, 1.0)), -0.5
        if value(left) >= upper_bound(problem, w).total:
            return  # then all that are longer cost more, too
        a, b = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
        at_a, at_b = value(a), value(b)
        for _ in range(_SECTIONS):
            if at_a <= at_b:
                right, b, at_b = b, a, at_a
                a = right - _GOLDEN * (right - left)
                at_a = value(a)
            else:
                left, a, at_a = a, b, at_b
                b = left + _GOLDEN * (right - left)
                at_b = value(b)

    @staticmethod
    def _rank(upper: TotalLoss) -> tuple[bool, float]:
        proved = bool(np.isfinite(upper.excess))
        return not proved, upper.total + (upper.excess if proved else 0.0)


@dataclass(kw_only=True)
class SolverState:
    """Where a solver stands after a step: what ``solve`` reads of every state. Changed in place.

    States also have their dual variables, ``alpha``, and the weights that belong to them, ``weights()``; ``active``,
    how many of the visited examples still move; ``n_constraints`` and ``nbytes``, the constraints at hand and the bytes
    of dual variables and cache.
    """

    second_order: ClassVar[bool] = False
    """Whether this is the state of an interior-point method."""
    lower: float = -np.inf
    """The dual objective at ``alpha``."""
    estimate: float = np.inf
    """The relative gap as far as the pass could see: it may call for a check, never end a run."""
    goal: float = 0.0
    """The relative gap at which the run will end, set by ``solve``: reason enough to look up from inner work."""
    visited: int = 0
    """How many examples the pass went through."""
    done: float = 0.0
    """The share of a long pass that is behind us."""
    spent: float = 0.0
    """What all passes came to so far, for those who change to another method when one takes too many."""
    watched: tuple[int, float] | None = None
    """Of passes that finish what another method began: how many since the gap was last looked at, and that gap."""
    stuck: bool = False
    """Whether further steps would be in vain, because of rounding."""
    certifies: ClassVar[bool] = True
    """Whether the weights are meant to minimise the objective. Else it is never looked at, and nothing is claimed."""
    finished: bool = False
    """Whether a solver that certifies nothing has reached what it can."""
    evaluated: tuple[np.ndarray, TotalLoss] | None = None
    """Weights whose loss the step has computed on its way, for all examples at once; ``solve`` need not repeat it."""
    beat: Callable[[], object] | None = None
    """Set by ``solve``: to be called in long steps whenever ``alpha`` and all that follows from it agree."""


@dataclass(kw_only=True)
class Weighted(SolverState):
    """A state with v, the weights that follow from it, and the part of the dual objective that is linear in α."""

    shape: Shape
    map: WeightMap
    linear: float = 0.0

    def weights(self) -> np.ndarray:
        return self.map.weights()

    def update_lower(self, regularizer: Regularizer) -> None:
        """The lower bound as it follows from v and the linear part."""
        self.lower = self.linear - regularizer.conjugate(self.map.v)

    def regularize(self, regularizer: Regularizer) -> bool:
        """Go on under another regularizer of the same weights; whether it measures rows by another metric."""
        before, self.shape = self.shape, regularizer.shape(self.map.v.size)
        self.map = self.shape.bind(self.map.v)
        self.update_lower(regularizer)
        return not self.shape.same_metric(before)

    def stand(self, v: np.ndarray, linear: float, regularizer: Regularizer) -> None:
        """Go on at this v, as it follows from the dual variables."""
        self.map.v[:], self.linear = v, linear
        self.map.refresh()
        self.update_lower(regularizer)
