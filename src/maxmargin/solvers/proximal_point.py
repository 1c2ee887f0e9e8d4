"""Proximal point: a regularizer that is not strongly convex, as a sequence of ones that are.

    w_{t+1} = argmin  Ω(w) + loss(w) + l2/2 ‖w − c‖²,      c = w_t

Each of these problems is one for dual ascent, and all of them have the same constraints: dual variables are carried
over when the centre c moves. What is certified is the original problem: its dual asks for ‖v^p‖ ≤ λ_p, which α meets
when scaled down, and its primal is evaluated without the proximal term.

``ProximalPoint`` takes the steps of ``DualCoordinate``, where all constraints are at hand. ``ProximalAscent`` is for
constraints that are searched for: the cache stays, too, when the centre moves. Between exploring and optimizing an
epoch decides what to optimize. Where the problem around the old centre is solved well enough, measured by the gap of
the original problem, the centre moves to the weights that were just explored; then the cache is optimized around the
new one. So an epoch has one search per example and one optimization, as without the proximal term, and its searches at
one w evaluate the original objective too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ..constraints.searched import violations
from ..problem import Planes, Problem, Rows
from .ascent_state import AscentState
from .certificate import scaled_dual
from .dual_coordinate import DualCoordinate, DualState
from .oracle_ascent import OracleAscent
from .solve import SolverState

_SAMPLE = 32  # examples whose loss shows the scale of the objective


class _Proximal(ABC):
    """Where the first centre is, how strongly it attracts, and how that is adapted."""

    l2: float | None
    centre: np.ndarray | None
    few: ClassVar[int]
    many: ClassVar[int]
    """After so few passes around one centre the next attracts half as strongly, after so many twice as strongly."""

    def __post_init__(self) -> None:
        if self.l2 is not None and not (np.isfinite(self.l2) and self.l2 > 0.0):
            raise ValueError(f"l2 must be a number above 0, or None for one that suits the problem, got {self.l2!r}.")

    @abstractmethod
    def _objective(self, problem: Problem, w: np.ndarray) -> float:
        """The original objective at w, roughly."""

    def _first(self, problem: Problem) -> tuple[np.ndarray, float]:
        """The centre to begin with, and its strength."""
        centre = np.zeros(problem.n_weights) if self.centre is None else np.array(self.centre, dtype=np.float64)
        if centre.shape != (problem.n_weights,) or not np.isfinite(centre).all():
            raise ValueError(
                f"centre must be {problem.n_weights} finite numbers, one for each weight; got shape {centre.shape}"
                f"{'' if np.isfinite(centre).all() else ' with values that are not finite'}."
            )
        if self.l2 is not None:
            return centre, self.l2
        # An optimal v is no longer than the radius r of the ball on which Ω* is finite, and moves the weights by v/l2.
        # With l2 = r²/objective a step can be worth about the whole objective, r·‖step‖. A few times that strength is a
        # good start: steps that are too long cost more than some more of them.
        radius, objective = problem.regularizer.dual_radius(), self._objective(problem, centre)  # type: ignore[attr-defined]
        return centre, 4.0 * radius**2 / objective if objective > 0.0 else 1.0

    @abstractmethod
    def start(self, problem: Problem, warm: Any = None) -> AroundInner: ...

    def save(self, state: AroundInner, settled: bool = True) -> dict[str, Any]:
        """The centre goes with the dual variables, which alone do not tell the weights."""
        return {"alpha": state.alpha, "centre": state.centre, "l2": state.l2}

    def restore(self, problem: Problem, saved: dict[str, Any]) -> AroundInner:
        there = replace(self, centre=saved["centre"], l2=float(saved["l2"]))  # type: ignore[type-var]
        return there.start(problem, saved["alpha"])

    def _move(self, state: AroundInner, w: np.ndarray, passes: int) -> None:
        """The next centre, after so many passes around the last one."""
        if passes <= self.few:
            state.l2 *= 0.5
        elif passes >= self.many:
            state.l2 *= 2.0
        state.centre = w


@dataclass(frozen=True)
class ProximalPoint(_Proximal):
    """Settings of the proximal point solver.

    Parameters
    ----------
    inner : DualCoordinate
    l2 : float or None
        The first strength of the proximal term, by default one that suits the scale of the problem; adapted to how
        long the inner problems take.
    fraction : float
        An inner problem is solved until its gap is this fraction of the outer gap.
    centre : array (n_weights,) or None
        Weights to start from, the origin by default.
    """

    inner: DualCoordinate = field(default_factory=DualCoordinate)
    l2: float | None = None
    fraction: float = 0.3
    centre: np.ndarray | None = None

    few, many = 10, 61

    def start(self, problem: Problem, warm: np.ndarray | None = None) -> ProximalState:
        centre, l2 = self._first(problem)
        centred = around(problem, centre, l2)
        inner = self.inner.start(centred, warm)
        lower = scaled_bound(problem, inner)
        return ProximalState(inner=inner, centred=centred, centre=centre, l2=l2, best=inner.alpha.copy(), lower=lower)

    def step(self, problem: Problem, state: ProximalState) -> ProximalState:
        """One inner pass; when the inner problem is solved well enough, the centre moves."""
        state.inner = self.inner.step(state.centred, state.inner)
        state.visited = state.inner.visited
        state.since += 1
        state.estimate = np.inf
        if state.inner.inner > 0:
            return state  # only a full pass has seen the whole loss
        w = state.inner.weights()
        inner_upper = state.inner.lower + max(state.inner.seen, 0.0)
        loss = inner_upper - state.centred.regularizer.value(w)
        upper = loss + problem.regularizer.value(w)
        bound = scaled_bound(problem, state.inner)
        if bound > state.lower:
            state.lower, state.best[:] = bound, state.inner.alpha
        state.estimate = (upper - state.lower) / max(abs(upper), 1e-300)
        gap = upper - bound
        if state.inner.seen <= self.fraction * gap:
            self._recentre(problem, state, w)
        return state

    def _recentre(self, problem: Problem, state: ProximalState, w: np.ndarray) -> None:
        self._move(state, w.copy(), state.since)
        state.since, state.centred = 0, around(problem, state.centre, state.l2)
        inner = state.inner
        inner.regularize(state.centred.regularizer)
        inner.norms.fill(-1.0)
        # Everything may move again around the new centre, and old momentum points elsewhere.
        inner.passes, inner.theta, inner.previous, inner.previous_v = 0, 1.0, None, None

    def _objective(self, problem: Problem, w: np.ndarray) -> float:
        return problem.regularizer.value(w) + problem.in_memory.evaluate(w).total


@dataclass(frozen=True)
class ProximalAscent(_Proximal):
    """Settings of the proximal point solver for open problems.

    Parameters
    ----------
    inner : OracleAscent
    l2 : float or None
        The first strength of the proximal term, by default one that suits the scale of the problem; adapted to how
        many passes over the cache a centre takes.
    centre : array (n_weights,) or None
        Weights to start from, the origin by default: the first epoch evaluates them. Those of a neighbouring problem
        save much of the work, together with its dual variables as ``warm``.
    fraction : float
        The centre moves once the gap of the problem around it is at most this fraction of the original problem's.
    inner_fraction : float
        The cache need not be optimized beyond this fraction of the original problem's gap, times the one of ``inner``.

    Examples
    --------
    >>> from maxmargin import Problem, solve
    >>> from maxmargin.constraints import Searched
    >>> from maxmargin.models import Multiclass
    >>> from maxmargin.regularizers import GroupNorm
    >>> X, y = np.array([[2.0, 0.1], [1.0, -0.1], [-1.0, 0.1], [-2.0, -0.1]]), [0, 0, 1, 1]
    >>> groups = [[0, 2], [1, 3]]  # each feature with its weights in both classes
    >>> problem = Problem(Searched(Multiclass(2, 2).oracle(X, y), np.ones(1)), GroupNorm(groups))
    >>> solution = solve(problem, ProximalAscent(OracleAscent(random_state=0)), tol=1e-6)
    >>> problem.regularizer.norms(solution.weights).round(3)
    array([0.707, 0.   ])
    """

    inner: OracleAscent = field(default_factory=OracleAscent)
    l2: float | None = None
    centre: np.ndarray | None = None
    fraction: float = 0.5
    inner_fraction: float = 0.1

    few, many = 30, 150

    def start(self, problem: Problem, warm: Planes | None = None) -> ProximalAscentState:
        centre, l2 = self._first(problem)
        ascent = self.inner.start(around(problem, centre, l2), warm)
        state = self._state(problem, ascent, centre, l2)
        state.unseen = self.centre is not None
        return state

    def step(self, problem: Problem, state: ProximalAscentState) -> ProximalAscentState:
        """One epoch: every example is searched once, perhaps the centre moves, then the cache is optimized."""
        ascent, centred = state.inner, state.centred(problem)
        ascent.goal, ascent.beat = self.fraction * state.goal, state.beating(problem)
        inner_gap = self.inner.explore(centred, ascent, at=state.centre if state.unseen else None)
        state.visited, state.evaluated = ascent.visited, ascent.evaluated
        ascent.estimate = inner_gap / max(abs(ascent.inner.lower + inner_gap), 1e-300)
        w = ascent.weights().copy() if ascent.evaluated is None else ascent.evaluated[0]
        loss = ascent.inner.lower + inner_gap - centred.regularizer.value(w)
        upper = problem.regularizer.value(w) + loss
        state.lower = scaled_bound(problem, ascent.inner)
        gap = upper - state.lower
        state.estimate = max(gap, 0.0) / max(abs(upper), 1e-300)
        state.offered = ascent.evaluated is not None and state.estimate <= state.goal and not state.offered
        if state.offered:
            return state  # these weights and shares will do
        wanted = self.inner_fraction * gap
        if state.unseen:
            state.unseen = False
        elif inner_gap <= self.fraction * gap:
            self._move(state, w, ascent.passes - state.moved_at)
            state.moved_at = ascent.passes
            ascent.regularize(around(problem, w, state.l2).regularizer)
        else:
            wanted = max(wanted, inner_gap)
        self.inner.optimize(state.centred(problem), ascent, self.inner.max_inner, self.inner.share(problem) * wanted)
        state.lower = scaled_bound(problem, ascent.inner)
        return state

    def relabel(self, problem: Problem, state: ProximalAscentState, ids: np.ndarray, rows: Rows) -> ProximalAscentState:
        """Go on with what is cached although the truths of some examples have changed: see ``OracleAscent``."""
        ascent = self.inner.relabel(state.centred(problem), state.inner, ids, rows)
        if ascent is not state.inner:
            return self._state(problem, ascent, state.centre, state.l2)  # a new cache
        state.offered = False
        state.lower, state.estimate = scaled_bound(problem, state.inner.inner), np.inf
        return state

    def _state(self, problem: Problem, ascent: AscentState, centre: np.ndarray, l2: float) -> ProximalAscentState:
        return ProximalAscentState(inner=ascent, centre=centre, l2=l2, lower=scaled_bound(problem, ascent.inner))

    def _objective(self, problem: Problem, w: np.ndarray) -> float:
        """As a few examples show it."""
        constraints = problem.searched
        ids = constraints.live[:_SAMPLE]
        missing = violations(constraints.oracle.rivals(ids, w), w)
        total = float(np.broadcast_to(constraints.budget, constraints.n_examples).sum())
        return problem.regularizer.value(w) + total * float(np.maximum(missing, 0.0).mean())


def around(problem: Problem, centre: np.ndarray, l2: float) -> Problem:
    """The problem with a proximal term of this strength around a centre."""
    return replace(problem, regularizer=problem.regularizer.around(centre, l2))  # type: ignore[attr-defined]


def scaled_bound(problem: Problem, inner: DualState) -> float:
    """The lower bound of the original problem: α scaled down until its dual is finite."""
    return scaled_dual(problem.regularizer, inner.linear, inner.map.v)


@dataclass(kw_only=True)
class AroundInner(SolverState):
    """A centre, and the state of the problem around it."""

    inner: Any
    centre: np.ndarray
    l2: float

    @property
    def n_constraints(self) -> int:
        return self.inner.n_constraints

    @property
    def nbytes(self) -> int:
        return self.inner.nbytes

    @property
    def alpha(self) -> Any:
        return self.inner.alpha

    @property
    def active(self) -> int:
        return self.inner.active

    def weights(self) -> np.ndarray:
        return self.inner.weights()


@dataclass(kw_only=True)
class ProximalState(AroundInner):
    """The ascent around the present centre, and the dual variables that prove the most about the original problem.

    Those of the moment follow the centre, and what they prove when scaled down may fall.
    """

    inner: DualState
    centred: Problem
    best: np.ndarray
    since: int = 0

    @property
    def alpha(self) -> np.ndarray:
        return self.best


@dataclass(kw_only=True)
class ProximalAscentState(AroundInner):
    """The ascent around the present centre, and where that is."""

    inner: AscentState
    moved_at: int = 0
    """Passes over the cache before the centre moved for the last time."""
    unseen: bool = False
    """Whether the centre was given and has not been evaluated: the first epoch does."""
    offered: bool = False
    """Whether the last epoch changed nothing, because all seemed good enough. If it was not, the next one must."""

    def beating(self, problem: Problem) -> Callable[[], None] | None:
        """What the inner ascent calls between views: the lower bound shall be that of the original problem."""
        beat = self.beat
        if beat is None:
            return None

        def wrapped() -> None:
            self.lower = scaled_bound(problem, self.inner.inner)
            beat()

        return wrapped

    def centred(self, problem: Problem) -> Problem:
        """The problem with the proximal term."""
        return replace(problem, regularizer=self.inner.cached.regularizer)
