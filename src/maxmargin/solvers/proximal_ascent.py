"""Proximal point for open problems: a pure group norm, with constraints that are searched for.

    w_{t+1} = argmin  Ω(w) + loss(w) + l2/2 ‖w − c‖²,      c = w_t

Each of these problems is one for dual ascent, and all of them have the same constraints: the cache stays when the
centre c moves, and so do the shares. Between exploring and optimizing an epoch decides what to optimize. Where the
problem around the old centre is solved well enough, measured by the gap of the original problem, the centre moves to
the weights that were just explored; then the cache is optimized around the new one. So an epoch has one search per
example and one optimization, as without the proximal term, and its searches at one w evaluate the original objective
too.

What is certified is the original problem: its dual asks for ‖v^p‖ ≤ λ_p, which α meets when scaled down, and its
primal is evaluated without the proximal term.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..constraints.searched import violations
from ..problem import Planes, Problem, Rows
from .ascent_state import AscentState
from .oracle_ascent import OracleAscent
from .proximal_point import AroundInner, around, first_strength, scaled_bound

_SAMPLE = 32  # examples whose loss shows the scale of the objective
_FEW_PASSES, _MANY_PASSES = 30, 150  # over the cache, around one centre


@dataclass(frozen=True)
class ProximalAscent:
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

    def __post_init__(self) -> None:
        if self.l2 is not None and not (np.isfinite(self.l2) and self.l2 > 0.0):
            raise ValueError(f"l2 must be a number above 0, or None for one that suits the problem, got {self.l2!r}.")

    def start(self, problem: Problem, warm: Planes | None = None) -> ProximalAscentState:
        centre = self._first_centre(problem)
        l2 = first_strength(problem, self._objective(problem, centre)) if self.l2 is None else self.l2
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
            self._recentre(problem, state, w)
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

    def save(self, state: ProximalAscentState, settled: bool = True) -> dict[str, Any]:
        """Numbers, arrays and dual variables from which ``restore`` can go on."""
        return {
            "ascent": self.inner.save(state.inner, settled),
            "centre": state.centre,
            "l2": state.l2,
            "moved_at": state.moved_at,
        }

    def restore(self, problem: Problem, saved: dict[str, Any]) -> ProximalAscentState:
        centre, l2 = np.array(saved["centre"]), float(saved["l2"])
        ascent = self.inner.restore(around(problem, centre, l2), saved["ascent"])
        state = self._state(problem, ascent, centre, l2)
        state.moved_at = int(saved["moved_at"])
        return state

    def _state(self, problem: Problem, ascent: AscentState, centre: np.ndarray, l2: float) -> ProximalAscentState:
        return ProximalAscentState(inner=ascent, centre=centre, l2=l2, lower=scaled_bound(problem, ascent.inner))

    def _first_centre(self, problem: Problem) -> np.ndarray:
        if self.centre is None:
            return np.zeros(problem.n_weights)
        centre = np.array(self.centre, dtype=np.float64)
        if centre.shape != (problem.n_weights,) or not np.isfinite(centre).all():
            raise ValueError(
                f"centre must be {problem.n_weights} finite numbers, one for each weight; got shape {centre.shape}"
                f"{'' if np.isfinite(centre).all() else ' with values that are not finite'}."
            )
        return centre

    def _objective(self, problem: Problem, w: np.ndarray) -> float:
        """The original objective at w, roughly: as a few examples show it."""
        constraints = problem.open
        ids = constraints.live[:_SAMPLE]
        missing = violations(constraints.oracle.rivals(ids, w), w)
        total = float(np.broadcast_to(constraints.budget, constraints.n_examples).sum())
        return problem.regularizer.value(w) + total * float(np.maximum(missing, 0.0).mean())

    def _recentre(self, problem: Problem, state: ProximalAscentState, w: np.ndarray) -> None:
        passes = state.inner.passes - state.moved_at
        if passes <= _FEW_PASSES:
            state.l2 *= 0.5
        elif passes >= _MANY_PASSES:
            state.l2 *= 2.0
        state.centre, state.moved_at = w, state.inner.passes
        state.inner.regularize(around(problem, w, state.l2).regularizer)


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
