"""Shards whose constraints are not all in the worker's memory, or not all known: each has a solver that explores."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import Planes, Problem, TotalLoss, Totals
from ..regularizers.divided import Divided
from ..regularizers.linearly_shifted import LinearlyShifted
from ..solvers.block_ascent import BlockAscent
from ..solvers.choose import blocks_within
from ..solvers.oracle_ascent import OracleAscent
from .work import Report, Task

_BETWEEN = 10  # passes over the cache in a round that searches for nothing


class _ExploredWork:
    """The state of a solver that explores the examples of a shard.

    Parameters
    ----------
    problem : Problem
        The shard's own constraints, and the regularizer of the whole problem.
    solver : BlockAscent or OracleAscent
    alpha : array, Planes or None
    """

    def __init__(self, problem: Problem, solver: Any, alpha: Any) -> None:
        self._problem, self._solver = problem, solver
        self.n_examples = problem.constraints.n_examples
        self._state = solver.start(problem, alpha)

    @property
    def alpha(self) -> Any:
        return self._state.alpha

    def totals(self) -> Totals:
        return self._problem.constraints.totals(self._state.alpha)

    def _aim(self, task: Task) -> None:
        self._state.goal = 0.1 * task.wanted / max(abs(self._state.lower), 1e-300)

    def _loss(self) -> TotalLoss | None:
        return None if self._state.evaluated is None else self._state.evaluated[1]

    def _report(
        self, linear: float, gap: float, visited: int, active: int, loss: TotalLoss | None, step: np.ndarray
    ) -> tuple[Report, np.ndarray]:
        state = self._state
        return Report(linear, gap, visited, active, state.n_constraints, state.nbytes, loss=loss), step


class BlockWork(_ExploredWork):
    """A closed problem in blocks: one reading of the shard a round, or one pass over the pool of examples that still
    moved.

    ``memory`` is for weights, dual variables, blocks in use and the pool together.
    """

    def __init__(self, problem: Problem, alpha: np.ndarray | None, seed: int, memory: int | None) -> None:
        solver: BlockAscent = blocks_within(problem, memory, seed=seed, threads=1)
        super().__init__(problem, solver, alpha)
        self._own = self._state.map.v.copy()

    def improve(self, v: np.ndarray, task: Task) -> tuple[Report, np.ndarray]:
        state = self._state
        before = v / task.sigma
        divided = Divided(self._problem.regularizer, task.sigma, before - self._own)
        problem = Problem(self._problem.constraints, divided)
        state.place(divided, before)
        linear, loss, visited = state.linear, None, len(state.pool)
        self._aim(task)
        if task.everything:
            if task.evaluate:
                state.promise = 0.0  # then the reading evaluates the weights that it begins with
            self._solver.step(problem, state)
            visited, gap, loss = state.visited, state.found, self._loss()
        else:
            self._solver.optimize(problem, state, 1, 0.1 * task.wanted)
            gap = state.pool_gap
        step = state.map.v - before
        self._own += step
        return self._report(state.linear - linear, gap, visited, len(state.pool), loss, step)


class OpenWork(_ExploredWork):
    """An open problem: every example is searched once a round, or the shard's cache is worked on.

    The solver's v is that of the shard alone, so that it can be formed anew from the cache; what the others have added
    is a tilt of the regularizer. ``memory`` is for the cache.
    """

    def __init__(self, problem: Problem, alpha: Planes | None, seed: int, memory: int | None) -> None:
        super().__init__(problem, OracleAscent(random_state=seed, memory=memory), alpha)

    @property
    def alpha(self) -> Planes:
        planes = self._state.alpha
        return Planes(planes.example, list(planes.labels), planes.alpha)

    def improve(self, v: np.ndarray, task: Task) -> tuple[Report, np.ndarray]:
        state, solver = self._state, self._solver
        before, linear = state.inner.map.v.copy(), state.inner.linear
        shifted = LinearlyShifted(Divided(self._problem.regularizer, task.sigma), v / task.sigma - before)
        problem = Problem(self._problem.constraints, shifted)
        state.regularize(shifted)
        self._aim(task)
        loss, visited = None, 0
        if task.everything:
            state.estimate = np.inf  # whether all are searched at the same weights is the driver's choice
            gap = solver.explore(problem, state, self._problem.regularizer.weights(v) if task.evaluate else None)
            loss, visited = self._loss(), state.visited
            solver.optimize(problem, state, solver.max_inner, solver.share(problem) * gap)
        else:
            gap = max(state.inner.seen, 0.0) if np.isfinite(state.inner.seen) else task.wanted
            solver.optimize(problem, state, _BETWEEN, solver.share(problem) * gap)
            gap = max(state.inner.seen, 0.0)
        change, step = state.inner.linear - linear, state.inner.map.v - before
        return self._report(change, gap, visited, state.active, loss, step)
