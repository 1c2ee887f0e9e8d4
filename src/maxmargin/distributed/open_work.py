"""A shard of an open problem: the oracle and the cache of what it has found live with the examples."""

from __future__ import annotations

import numpy as np

from ..problem import Planes, Problem, Totals
from ..regularizers.divided import Divided
from ..regularizers.tilted import Tilted
from ..solvers.oracle_ascent import OracleAscent
from .work import Report, Task

_BETWEEN = 10  # passes over the cache in a round that searches for nothing


class OpenWork:
    """Every example is searched once a round, or the shard's cache is worked on.

    The solver's v is that of the shard alone, so that it can be formed anew from the cache; what the others have added
    is a tilt of the regularizer.

    Parameters
    ----------
    problem : Problem
        The shard's own constraints, and the regularizer of the whole problem.
    alpha : Planes or None
    seed : int
    memory : int or None
        Bytes for the cache.
    """

    def __init__(self, problem: Problem, alpha: Planes | None, seed: int, memory: int | None) -> None:
        self._problem = problem
        self.n_examples = problem.constraints.n_examples
        self._solver = OracleAscent(random_state=seed, memory=memory)
        self._state = self._solver.start(problem, alpha)

    @property
    def alpha(self) -> Planes:
        planes = self._state.alpha
        return Planes(planes.example, list(planes.labels), planes.alpha)

    def totals(self) -> Totals:
        return self._problem.constraints.totals(self._state.alpha)

    def improve(self, v: np.ndarray, task: Task) -> tuple[Report, np.ndarray]:
        state, solver = self._state, self._solver
        inner = state.inner
        before, linear = inner.map.v.copy(), inner.linear
        tilted = Tilted(Divided(self._problem.regularizer, task.sigma), v / task.sigma - before)
        problem = Problem(self._problem.constraints, tilted)
        state.regularize(tilted)
        state.goal = 0.1 * task.wanted / max(abs(state.lower), 1e-300)
        loss, visited = None, 0
        if task.everything:
            state.estimate = np.inf  # whether all are searched at the same weights is the driver's choice
            gap = solver.explore(problem, state, self._problem.regularizer.weights(v) if task.evaluate else None)
            loss, visited = None if state.evaluated is None else state.evaluated[1], state.visited
            solver.optimize(problem, state, solver.max_inner, solver.share(problem) * gap)
        else:
            gap = max(state.inner.seen, 0.0) if np.isfinite(state.inner.seen) else task.wanted
            solver.optimize(problem, state, _BETWEEN, solver.share(problem) * gap)
            gap = max(state.inner.seen, 0.0)
        return Report(
            linear=state.inner.linear - linear,
            gap=gap,
            visited=visited,
            active=state.active,
            n_constraints=state.n_constraints,
            nbytes=state.nbytes,
            loss=loss,
        ), state.inner.map.v - before
