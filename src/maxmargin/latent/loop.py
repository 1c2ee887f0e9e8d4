"""Majorization and minimization, the only loop over bounds.

    choose a bound b_t with b_t(w_{t−1}) ≤ F(w_{t−1}) + (1 − η)·d_{t−1}  →  w_t = argmin b_t  →  d_t = b_t(w_t) − F(w_t)

(Naderi Parizi, Algorithm 6 with (5.6).) Each bound goes to the same convex ``solve``, from the dual variables and
rivals of the last one, and only as far as pays: to a fraction of the gap d that the last bound has left. Bound
values never rise, and d tends to zero; once it is small the best weights met are brought to rest by bounds that touch.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import InitVar, dataclass, field, replace
from typing import Any

import numpy as np

from ..problem import BoundRecord, Certificate, Ending, LatentSolution, Problem, Solution
from ..protocols import BoundChooser, Checkpoint, Evaluation, LatentObjective, Solver
from ..solvers import certify, solve
from ..solvers.certificate import certificate_of, upper_bound
from ..solvers.solve import first_interrupt
from ..validation import as_float, shown, whole
from .gmm import CCCP
from .saved_search import SavedSearch
from .search_state import Latent, SearchState, differ
from .warm_started import WarmStarted

_LOOSE = 0.03  # relative gap to which the first bound is solved
_SHARE = 0.5  # later ones to this share of what the last bound has left to gain


@dataclass(frozen=True)
class Settings:
    """How a search over bounds is run.

    Parameters
    ----------
    eta : float
        Share of the gap d that every new bound must close: 1 leaves only bounds that touch.
    tol : float
        Relative duality gap of the last bounds.
    bound_tol : float
        The search ends once d is at most this share of F.
    max_bounds, max_passes : int
        Most bounds, and most passes for each of them.
    """

    eta: float = 0.1
    tol: float = 1e-3
    bound_tol: float = 1e-3
    max_bounds: int = 100
    max_passes: int = 1000

    def __post_init__(self) -> None:
        if not (_is_number(self.eta) and 0.0 < self.eta <= 1.0):
            raise ValueError(
                f"eta must be above 0 and at most 1, got {shown(self.eta)}. It is the share of the gap between bound "
                "and objective that each new bound must close; 1 is CCCP."
            )
        for name in ("tol", "bound_tol"):
            value = vars(self)[name]
            if not (_is_number(value) and value > 0.0):
                raise ValueError(f"{name} must be a number above 0, got {shown(value)}.")
        whole("max_bounds", self.max_bounds)
        whole("max_passes", self.max_passes)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and math.isfinite(as_float(value))


_NOTHING = LatentSolution(np.empty(0), (), np.inf, None, Certificate(-np.inf, np.inf), [], Ending.INTERRUPTED)


class _Passed(KeyboardInterrupt):
    """Ctrl-C while a chooser had a model trained: ``solve`` has met it, and the search must hear of it."""


def value(objective: LatentObjective, w: np.ndarray) -> float:
    """F(w): the value of the bound that touches there."""
    return _evaluated(objective, objective.evaluate(w).best, w)


def _evaluated(objective: LatentObjective, latent: Latent, w: np.ndarray) -> float:
    """The value of a bound at w, as computed."""
    return upper_bound(objective.problem(latent), w).total


def minimise(
    objective: LatentObjective,
    chooser: BoundChooser,
    make_solver: Callable[[Problem, np.ndarray | None], Solver],
    *,
    weights: np.ndarray | None = None,
    latent: Latent | None = None,
    alpha: object = None,
    settings: Settings | None = None,
    rng: np.random.Generator | None = None,
    callbacks: Iterable[Callable[[BoundRecord], object]] = (),
    inner_callbacks: Sequence[object] = (),
    checkpoint: Checkpoint | None = None,
) -> LatentSolution:
    """Search over bounds, from weights (the first bound touches F there) or from latent values.

    Ctrl-C ends the search with the best so far. A callback that returns ``True`` does likewise.

    Parameters
    ----------
    objective : LatentObjective
    chooser : BoundChooser
    make_solver : function
        Gives the solver for a problem, and for weights to start from if there are any. Called once if what the solver
        has cached goes on from bound to bound (``WarmStarted.keeps``), else for every bound.
    weights, latent : array, sequence
        One of them, or neither: then the objective's own latent values.
    alpha : dual variables or None
        Of a neighbouring problem, to start from.
    settings : Settings
    rng : Generator
        For choosers.
    callbacks : iterable of functions
        Each is given one ``BoundRecord`` per bound.
    inner_callbacks : sequence of functions
        For ``solve``.
    checkpoint : Checkpoint or None
        Where the search is saved, between bounds and within them, and goes on from if something was saved there.
    """
    rng = np.random.default_rng() if rng is None else rng
    search = Search(objective, make_solver, settings or Settings(), rng, tuple(callbacks), inner_callbacks, checkpoint)
    if hasattr(chooser, "check"):
        chooser.check(objective)
    search.begin(weights, latent, alpha)
    search.run(chooser)
    return search.result()


@dataclass
class Search:
    objective: LatentObjective
    make_solver: Callable[[Problem, np.ndarray | None], Solver]
    settings: Settings
    rng: np.random.Generator
    callbacks: tuple[Any, ...]
    inner_callbacks: Sequence[Any]
    checkpoint: InitVar[Checkpoint | None]
    warm_started: WarmStarted | None = None
    clock: float = field(default_factory=time.perf_counter)
    history: list[BoundRecord] = field(default_factory=list)
    best: LatentSolution = _NOTHING
    """The best weights met, and the bound whose minimiser they were."""
    ceiling: float = np.inf
    """What the value of the next bound cannot exceed."""
    ended: Ending | None = None
    finishing: bool = False
    behind: bool = False
    solved: bool = False
    weights: np.ndarray | None = None
    latent: Latent = field(default_factory=list)
    alpha: Any = None
    changed: float = 1.0

    def __post_init__(self, checkpoint: Checkpoint | None) -> None:
        self.saved = None if checkpoint is None else SavedSearch(self, checkpoint)
        self.tol = max(self.settings.tol, _LOOSE)

    def begin(self, weights: np.ndarray | None, latent: Latent | None, alpha: object) -> None:
        if self.saved is not None and (found := self.saved.restored()) is not None:
            self._go_on_from(found)
            return
        self.alpha = alpha
        if weights is not None:
            self._touch(np.asarray(weights, dtype=np.float64))
        else:
            self.latent = self.objective.initial(None) if latent is None else latent
        if self.saved is not None:
            self.saved.save_start()

    def _go_on_from(self, found: dict[str, Any]) -> None:
        """Go on from a file of which numbers are not trusted: objectives and bounds are computed anew."""
        weights = np.array(found["weights"], dtype=np.float64)
        if weights.size:
            self.weights = weights
            self.ceiling = _evaluated(self.objective, self.latent, weights)
        best = found["best"]
        if not best["weights"].size:
            return
        w = np.array(best["weights"], dtype=np.float64)
        certificate = certify(self.objective.problem(best["latent"]), w, best["alpha"])
        self._set_best(value(self.objective, w), w, best["latent"], best["alpha"], certificate)
        regret = self.objective.evaluate(w).regrets(np.arange(self.objective.n_examples), best["latent"])
        at_rest = float(regret.sum()) <= self.settings.bound_tol * abs(self.best.objective)
        if at_rest and certificate.relative_gap <= self.settings.tol * (1 + 1e-9):
            self.ended = Ending.CONVERGED  # what is asked for is proved already
        elif len(self.history) >= self.settings.max_bounds:
            self.ended = Ending.MAX_BOUNDS

    def _touch(self, w: np.ndarray) -> None:
        """The next bound touches F at these weights, and its minimum is no higher."""
        self.weights = w.copy()
        self.latent = self.objective.evaluate(w).best
        self.ceiling = _evaluated(self.objective, self.latent, w)

    def run(self, chooser: BoundChooser) -> None:
        while self.ended is None:
            current = CCCP() if self.finishing else chooser
            try:
                self._one_bound(current)
                self._save()
            except _Passed:
                self._interrupt()
            except KeyboardInterrupt as press:
                # Between two solutions; inside of one ``solve`` takes care of it.
                if not self.history or not first_interrupt():
                    press.solution = self._so_far()  # type: ignore[attr-defined]
                    raise
                self._interrupt()
            except Exception as error:
                with contextlib.suppress(AttributeError):  # errors of some kinds take nothing along
                    error.solution = self._so_far()  # type: ignore[attr-defined]
                raise

    def _interrupt(self) -> None:
        self.ended = Ending.INTERRUPTED
        self._save()

    def _save(self) -> None:
        if self.saved is not None:
            self.saved.save_between()

    def _so_far(self) -> LatentSolution | None:
        """What an error that ends the search takes along."""
        return self.result() if self.history else None

    def _one_bound(self, chooser: BoundChooser) -> None:
        """Minimise the bound at hand, see what is left, and choose the next."""
        solution, w, bound = self._minimise()
        evaluation = self.objective.evaluate(w)
        regret = evaluation.regrets(np.arange(self.objective.n_examples), self.latent)
        gap = float(regret.sum())
        # Of equals the later counts: it is the better solved. And any weights are better than none.
        if bound - gap <= self.best.objective + _rounding(bound) or not self.best.weights.size:
            self._set_best(bound - gap, w.copy(), self.latent, solution.alpha, self._certificate(solution, w))
        self._record(solution, bound, gap)
        self.weights, self.alpha = w, solution.alpha
        if any([callback(self.history[-1]) is True for callback in self.callbacks]) and self.ended is None:
            self.ended = Ending.TOLD
        small = gap <= self.settings.bound_tol * abs(bound - gap)
        if small and self.tol <= self.settings.tol and self.ended is None:
            self._come_to_rest(bound - gap)
        elif self.ended is None:
            last = len(self.history) >= self.settings.max_bounds
            if not last or self.saved is not None:  # of what is saved the next bound is a part
                self._go_on(chooser, evaluation, regret, bound, small)
            self.ended = Ending.MAX_BOUNDS if last else None

    def _go_on(
        self, chooser: BoundChooser, evaluation: Evaluation, regret: np.ndarray, bound: float, small: bool
    ) -> None:
        """Choose the next bound; where the gap is small already, the last ones are solved with all care."""
        gap = float(regret.sum())
        self.tol = self.settings.tol if small else self._next_tolerance(gap, bound)
        budget = 0.0 if small else (1.0 - self.settings.eta) * gap
        w: Any = self.weights
        search_state = SearchState(
            objective=self.objective,
            latent=self.latent,
            weights=w,
            evaluation=evaluation,
            regret=regret,
            gap=gap,
            budget=budget,
            number=len(self.history),
            carries=self.objective.carriers(self.alpha),
            train=self._train,
        )
        self._turn_to((chooser if budget > 0.0 else CCCP()).choose(search_state, self.rng), search_state, chooser)

    def _minimise(self) -> tuple[Solution, np.ndarray, float]:
        """(solution, weights, value of the bound there); never worse than the weights of the last bound."""
        problem = self.objective.problem(self.latent)
        if self.warm_started is None or not self.warm_started.keeps:
            self.warm_started = WarmStarted(self.make_solver(problem, self.weights), self.objective)
        solution = solve(
            problem,
            self.warm_started.turn_to(self.latent),
            tol=self.tol,
            max_passes=self.settings.max_passes,
            warm=self.alpha,
            callbacks=self.inner_callbacks,
            checkpoint=self.saved,
        )
        if self.saved is not None:
            self.saved.under_way = None
        self.ended, self.solved = Ending.INTERRUPTED if solution.interrupted else None, solution.converged
        bound = solution.objective
        if self.weights is not None and bound > self.ceiling:
            # The solver has not yet caught up with the weights it began from: these are better still.
            self.behind = True
            return solution, self.weights, self.ceiling
        self.behind = False
        return solution, solution.weights, bound

    def _certificate(self, solution: Solution, w: np.ndarray) -> Certificate:
        """Of the bound at hand, for the weights that count."""
        if not self.behind:
            return solution.certificate
        return certificate_of(solution.certificate.lower, upper_bound(self.objective.problem(self.latent), w))

    def _next_tolerance(self, gap: float, bound: float) -> float:
        wanted = _SHARE * gap / max(abs(bound), 1e-300)
        return float(np.clip(min(wanted, _SHARE * self.tol) if self.behind else wanted, self.settings.tol, _LOOSE))

    def _come_to_rest(self, last: float) -> None:
        """Bounds have come down to F. If better weights were met on the way, descend from those."""
        if self.finishing or self.best.objective >= last - _rounding(last):
            self.ended = Ending.CONVERGED if self.solved else Ending.UNSOLVED
            return
        self.finishing = True
        self.alpha = self.best.alpha
        latent = self.latent
        self._touch(self.best.weights)
        self.changed = float(differ(self.latent, latent).mean())

    def _turn_to(self, latent: Latent, search_state: SearchState, chooser: BoundChooser) -> None:
        regret = _total_regret(latent, search_state, chooser)
        if regret > search_state.budget * (1 + 1e-9) + 1e-9 * abs(search_state.gap) and not getattr(
            chooser, "in_expectation", False
        ):
            raise ValueError(
                f"{type(chooser).__name__} chose a bound with a total regret of {regret:.6g}, the budget is "
                f"{search_state.budget:.6g}. A chooser must stay within it; search_state.touching() always does."
            )
        self.ceiling = self.history[-1].objective + regret
        self.changed = float(differ(latent, self.latent).mean())
        self.latent = latent

    def _train(self, factors: np.ndarray) -> np.ndarray:
        problem = self.objective.problem(self.latent, factors)
        tol = max(self.tol, 0.01)  # a bias is no more than that
        solver = self.make_solver(problem, self.weights)
        found = solve(problem, solver, tol=tol, max_passes=self.settings.max_passes, warm=self.alpha)
        if found.interrupted:
            raise _Passed
        return found.weights

    def _record(self, solution: Solution, bound: float, gap: float) -> None:
        last = solution.history[-1] if solution.history else None
        self.history.append(
            BoundRecord(
                number=len(self.history) + 1,
                seconds=time.perf_counter() - self.clock,
                objective=bound - gap,
                bound=bound,
                gap=gap,
                changed=self.changed,
                lower=solution.certificate.lower,
                tol=self.tol,
                passes=len(solution.history),
                oracle_calls=0 if last is None else last.oracle_calls,
                cache_size=0 if last is None else last.cache_size,
                bytes=0 if last is None else last.bytes,
                exact=solution.certificate.exact,
            )
        )

    def result(self) -> LatentSolution:
        if self.ended is not Ending.CONVERGED and self.best.weights.size:
            # The bound at hand may lie well above F. What is said of the weights is said of the one that touches there.
            with contextlib.suppress(Exception, KeyboardInterrupt):  # of a model that has failed before, or in a hurry
                self.best = self._touching(self.best)
        return replace(self.best, history=self.history, ended=Ending.INTERRUPTED if self.ended is None else self.ended)

    def _set_best(
        self, objective: float, w: np.ndarray, latent: Latent, alpha: object, certificate: Certificate
    ) -> None:
        self.best = LatentSolution(w, latent, objective, alpha, certificate, [], Ending.INTERRUPTED)

    def _touching(self, best: LatentSolution) -> LatentSolution:
        latent = self.objective.evaluate(best.weights).best
        problem = self.objective.problem(latent)
        certificate = certify(problem, best.weights, best.alpha)
        return replace(best, latent=latent, certificate=certificate)


def _total_regret(latent: Latent, search_state: SearchState, chooser: BoundChooser) -> float:
    """What a chooser has chosen, if these are latent values at all."""
    name, n = type(chooser).__name__, search_state.objective.n_examples
    if not isinstance(latent, Sized) or len(latent) != n:
        size = f"{len(latent)} of them" if isinstance(latent, Sized) else f"a {type(latent).__name__}"
        raise ValueError(f"{name} must give one latent value for each of {n} examples, it gave {size}.")
    if isinstance(search_state.evaluation.best, np.ndarray) and search_state.evaluation.best.ndim == 1:
        values = np.asarray(latent)
        if values.dtype.kind not in "iu" or values.ndim != 1 or values.min(initial=0) < 0:
            raise ValueError(f"{name} must give whole numbers from 0 on as latent values, it gave {shown(values)}.")
    try:
        return float(search_state.evaluation.regrets(search_state.everybody(), latent).sum())
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(f"{name} gave latent values that some examples do not have ({error}).") from error


def _rounding(value: float) -> float:
    return 1e-9 * abs(value)
