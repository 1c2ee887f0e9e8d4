"""Proximal point: a regularizer that is not strongly convex, as a sequence of ones that are.

    w_{t+1} = argmin  Ω(w) + loss(w) + l2/2 ‖w − w_t‖²

Each of these problems goes to the same dual coordinate steps, with the dual variables carried over. What is
certified is the original problem: its dual asks for ‖v^p‖ ≤ λ_p, which α meets when scaled down, and its primal
is evaluated without the proximal term.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..problem import Problem
from .certificate import lower_bound
from .dual_coordinate import DualCoordinate, DualState
from .state import Progress


@dataclass(frozen=True)
class ProximalPoint:
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

    def start(self, problem: Problem, warm: np.ndarray | None = None) -> ProximalState:
        centre = np.zeros(problem.n_weights) if self.centre is None else self.centre.copy()
        l2 = self.l2
        if l2 is None:
            l2 = first_strength(problem, problem.regularizer.value(centre) + problem.closed.evaluate(centre).total)
        centred = around(problem, centre, l2)
        inner = self.inner.start(centred, warm)
        return ProximalState(
            inner=inner,
            centred=centred,
            centre=centre,
            l2=l2,
            best=inner.alpha.copy(),
            lower=scaled_bound(problem, inner),
        )

    def save(self, state: ProximalState, settled: bool = True) -> dict[str, Any]:
        """What the inner solver saves, and the centre: dual variables alone do not tell the weights."""
        inner = self.inner.save(state.inner, settled)
        return {"inner": inner, "alpha": state.best, "centre": state.centre, "l2": state.l2, "since": state.since}

    def restore(self, problem: Problem, saved: dict[str, Any]) -> ProximalState:
        centre, l2 = np.array(saved["centre"]), float(saved["l2"])
        centred = around(problem, centre, l2)
        inner, best = self.inner.restore(centred, saved["inner"]), problem.closed.feasible(saved["alpha"])
        return ProximalState(
            inner=inner,
            centred=centred,
            centre=centre,
            l2=l2,
            best=best,
            lower=lower_bound(problem, best),
            since=int(saved["since"]),
        )

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
        state.met(bound)
        state.estimate = (upper - state.lower) / max(abs(upper), 1e-300)
        gap = upper - bound
        if state.inner.seen <= self.fraction * gap:
            self._recentre(problem, state, w)
        return state

    def _recentre(self, problem: Problem, state: ProximalState, w: np.ndarray) -> None:
        if state.since <= 10:
            state.l2 *= 0.5
        elif state.since > 60:
            state.l2 *= 2.0
        state.since = 0
        state.centre = w.copy()
        state.centred = around(problem, state.centre, state.l2)
        regularizer, inner = state.centred.regularizer, state.inner
        inner.shape = regularizer.shape(problem.n_weights)
        inner.map = inner.shape.bind(inner.map.v)
        inner.lower = inner.linear - regularizer.conjugate(inner.map.v)
        inner.norms.fill(-1.0)
        # Everything may move again around the new centre, and old momentum points elsewhere.
        inner.passes, inner.theta, inner.previous, inner.previous_v = 0, 1.0, None, None


def around(problem: Problem, centre: np.ndarray, l2: float) -> Problem:
    """The problem with a proximal term of this strength around a centre."""
    return replace(problem, regularizer=problem.regularizer.around(centre, l2))  # type: ignore[attr-defined]


def first_strength(problem: Problem, objective: float) -> float:
    """A strength of the proximal term in the units of the problem, whose objective is about this large.

    An optimal v is no longer than the radius r of the ball on which Ω* is finite, and moves the weights by v/l2. With
    l2 = r²/objective a step can be worth about the whole objective, r·‖step‖. A few times that strength is a good
    start: steps that are too long cost more than some more of them.
    """
    radius = problem.regularizer.dual_radius()  # type: ignore[attr-defined]
    return 4.0 * radius**2 / objective if objective > 0.0 else 1.0


def scaled_bound(problem: Problem, inner: DualState) -> float:
    """The lower bound of the original problem: α scaled down until its dual is finite."""
    v = inner.map.v
    scale = problem.regularizer.dual_scale(v)
    return scale * inner.linear - problem.regularizer.conjugate(scale * v)


@dataclass(kw_only=True)
class AroundInner(Progress):
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

    def met(self, bound: float) -> None:
        """The dual variables of the moment have this lower bound."""
        if bound > self.lower:
            self.lower = bound
            self.best[:] = self.inner.alpha
