"""Solving one convex bound after another, each warm-started from the last."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..problem import Problem, Rows
from ..protocols import LatentObjective, Solver
from ..solvers.solve import restored_state, saved_state
from .search_state import differ


class WarmStarted:
    """A solver for one bound after another: rivals that were found for one stay in its cache for the next.

    Only truths differ between bounds, and the cache stores truths and rivals apart (``Cache.relabel``). Solvers that
    keep no cache start from the dual variables of the last bound, which ``solve`` hands over.
    """

    def __init__(self, solver: Solver, objective: LatentObjective) -> None:
        self.solver: Any = solver
        oracle: Any = getattr(objective, "oracle", None)
        self._truths: Any = getattr(oracle, "truths", None) if hasattr(solver, "relabel") else None
        self._latent: Any = []
        self._first: Any = []
        self._last: Any = []
        self._state: Any = None

    @property
    def keeps(self) -> bool:
        """Whether there is a cache that the next bound goes on with."""
        return self._truths is not None

    def turn_to(self, latent: object) -> WarmStarted:
        """The values that are fixed in the bound to come."""
        self._latent = latent
        return self

    def start(self, problem: Problem, warm: Any = None) -> Any:
        if self._state is None or self._truths is None:
            self._state, self._first = self.solver.start(problem, warm), self._latent
        else:
            ids = np.flatnonzero(differ(self._latent, self._last))
            before = self._state
            self._state = self.solver.relabel(problem, before, ids, self._shift(problem, ids))
            if self._state is not before:  # a new cache: it knows the truths of today
                self._first = self._latent
        self._last = self._latent
        if not self._state.certifies:
            raise ValueError(f"{self.solver!r} does not minimise the bounds of a latent model. Use solver='auto'.")
        return self._state

    def step(self, problem: Problem, state: Any) -> Any:
        self._state = self.solver.step(problem, state)
        return self._state

    def save(self, state: Any, settled: bool) -> dict[str, Any] | None:
        return saved_state(self.solver, state, settled)

    def restore(self, problem: Problem, saved: dict[str, Any]) -> Any:
        self._state = restored_state(problem, self.solver, saved)
        self._first = self._last = self._latent
        return self._state

    def _shift(self, problem: Problem, ids: np.ndarray) -> Rows:
        """Truths when the cache began minus truths of today."""
        first = self._truths(ids, [self._first[i] for i in ids.tolist()])
        rows = problem.searched.oracle.planes(ids, first).rows
        return replace(rows, data=-rows.data)
