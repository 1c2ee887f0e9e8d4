"""Coordinate passes as long as they are the cheaper way, then Newton steps.

How many passes a problem takes cannot be told beforehand, what Newton steps cost can. So passes go on until they have
cost as much as all Newton steps would: whichever method is better, the run costs at most about twice as much. Costs
are those of a model, never measured times, and the same seed gives the same result. Where rounding stops Newton steps
short of the goal, coordinate passes take over again from what was proved.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..problem import Problem
from .certificate import dual_objective
from .dual_coordinate import DualCoordinate
from .interior_point import InteriorPoint
from .proximal_point import ProximalPoint
from .solve import SolverState, restored_state, saved_state

_LEAST = 0.05  # of a full pass: what one over the active set costs at least
_PATIENCE = 100  # passes, after which those that are to finish what Newton steps left
_LESS = 0.9  # must have brought the gap down to this share


@dataclass(frozen=True)
class Switching:
    """Settings of the solver that begins with coordinate passes and goes over to Newton steps.

    Parameters
    ----------
    coordinate : DualCoordinate or ProximalPoint
        Takes coordinate passes.
    newton : InteriorPoint
        Takes Newton steps.
    after : float
        So many full passes come before Newton steps, and cost as much as all of these, or less; 0 where there are none.
    """

    coordinate: DualCoordinate | ProximalPoint
    newton: InteriorPoint = field(default_factory=InteriorPoint)
    after: float = 0.0

    def start(self, problem: Problem, warm: np.ndarray | None = None) -> SolverState:
        return (self.coordinate if self.after else self.newton).start(problem, warm)

    def step(self, problem: Problem, state: Any) -> SolverState:
        state.evaluated = None  # `_passes_from` sets it, and neither inner solver clears it
        if state.second_order:
            state = self.newton.step(problem, state)
            if not state.stuck or self._decided(problem, state):
                return state
            return self._handed_over(state, self._passes_from(problem, state))
        state = self.coordinate.step(problem, state)
        state.spent += max(state.visited / max(problem.constraints.n_examples, 1), _LEAST)
        if state.watched is not None:
            return self._watch(state)
        if state.spent < self.after or state.estimate <= state.goal:
            return state
        return self._handed_over(state, self.newton.start(problem, state.alpha))

    @staticmethod
    def _watch(state: Any) -> SolverState:
        """Passes after Newton steps got stuck are in vain, too, if many of them bring little."""
        steps, before = state.watched
        if steps < _PATIENCE or not np.isfinite(state.estimate):
            state.watched = steps + 1, before
        else:
            state.stuck = not state.estimate <= _LESS * before
            state.watched = 0, state.estimate
        return state

    def save(self, state: Any, settled: bool) -> dict[str, Any] | None:
        saved = saved_state(self.newton if state.second_order else self.coordinate, state, settled)
        if saved is None:
            return None
        watched = () if state.watched is None else state.watched
        return saved | {"second_order": state.second_order, "spent": state.spent, "watched": list(watched)}

    def restore(self, problem: Problem, saved: dict[str, Any]) -> SolverState:
        state: SolverState = restored_state(problem, self.newton if saved["second_order"] else self.coordinate, saved)
        state.spent, state.watched = float(saved["spent"]), tuple(saved["watched"]) or None
        return state

    @staticmethod
    def _decided(problem: Problem, state: Any) -> bool:
        """Whether rounding alone makes the lower bound worse than the goal: no other method could prove more."""
        bound = dual_objective(problem, state.alpha)
        return not bound.rounding < 0.5 * state.goal * abs(state.upper)

    def _passes_from(self, problem: Problem, state: Any) -> SolverState:
        """Coordinate passes from the best dual variables of Newton steps, with no way back."""
        solver = self.coordinate
        if problem.pure:
            solver = replace(solver, centre=state.weights())
        after = solver.start(problem, state.alpha)
        after.watched = 0, state.estimate
        w = state.weights()
        after.evaluated = w, problem.constraints.evaluate(w)  # the best so far: passes begin a little off
        return after

    @staticmethod
    def _handed_over(before: SolverState, after: Any) -> Any:
        """What ``solve`` has set goes with the run, and so does what it has counted."""
        after.goal, after.beat, after.visited, after.spent = before.goal, before.beat, before.visited, before.spent
        return after
