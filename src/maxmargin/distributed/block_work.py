"""A shard of a closed problem that does not fit into its worker's memory: readings, and work on what they left."""

from __future__ import annotations

import numpy as np

from ..problem import Problem, Totals
from ..regularizers.divided import Divided
from ..solvers.block_ascent import BlockAscent
from ..solvers.choose import blocks_within
from .work import Report, Task


class BlockWork:
    """One reading of the shard a round, or one pass over the pool of examples that still moved.

    Parameters
    ----------
    problem : Problem
        The shard's own constraints in blocks, and the regularizer of the whole problem.
    alpha : array or None
    seed : int
    memory : int or None
        Bytes for weights, dual variables, blocks in use and the pool together.
    """

    def __init__(self, problem: Problem, alpha: np.ndarray | None, seed: int, memory: int | None) -> None:
        self._problem = problem
        self.n_examples = problem.constraints.n_examples
        self._solver: BlockAscent = blocks_within(problem, memory, seed=seed, threads=1)
        self._state = self._solver.start(problem, alpha)
        self._own = self._state.map.v.copy()

    @property
    def alpha(self) -> np.ndarray:
        return self._state.alpha

    def totals(self) -> Totals:
        return self._problem.constraints.totals(self._state.alpha)

    def improve(self, v: np.ndarray, task: Task) -> tuple[Report, np.ndarray]:
        state = self._state
        base = self._problem.regularizer
        before = v / task.sigma
        problem = Problem(self._problem.constraints, Divided(base, task.sigma, before - self._own))
        state.place(problem.regularizer, before)
        linear, loss, visited = state.linear, None, len(state.pool)
        state.goal = 0.1 * task.wanted / max(abs(state.lower), 1e-300)
        if task.everything:
            if task.evaluate:
                state.promise = 0.0  # then the reading evaluates the weights that it begins with
            self._solver.step(problem, state)
            visited, gap = state.visited, state.found
            loss = None if state.evaluated is None else state.evaluated[1]
        else:
            self._solver.optimize(problem, state, 1, 0.1 * task.wanted)
            gap = state.pool_gap
        step = state.map.v - before
        self._own += step
        return Report(
            linear=state.linear - linear,
            gap=gap,
            visited=visited,
            active=len(state.pool),
            n_constraints=state.n_constraints,
            nbytes=state.nbytes,
            loss=loss,
        ), step
