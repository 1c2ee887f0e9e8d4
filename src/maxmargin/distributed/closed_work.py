"""A shard of a closed problem in a worker's memory: sweeps over its dual variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..constraints.pool import extracted
from ..problem import Problem, TotalLoss, Totals
from ..regularizers.divided import Divided
from .work import Report, Task

_A_SLICE = 8  # rows that are visited together where rows are sparse: their order in memory is of use


class ClosedWork:
    """Sweeps over the examples of a shard, all of them or those that still move.

    Examples that have left for the driver (``away``) are not visited. Their rows stay: losses are always those of the
    whole shard.

    Parameters
    ----------
    problem : Problem
        The shard's own constraints, and the regularizer of the whole problem.
    alpha : array or None
        Dual variables to begin with.
    away : int array
        Examples whose dual variables the driver has.
    seed : int
    """

    def __init__(self, problem: Problem, alpha: np.ndarray | None, away: np.ndarray, seed: int) -> None:
        self.constraints: Any = problem.closed
        self.regularizer = problem.regularizer
        self.n_examples = self.constraints.n_examples
        if not self.constraints.supports(problem.regularizer.shape(problem.n_weights).kind):
            raise ValueError(f"{type(self.constraints).__name__} has no compiled steps for {problem.regularizer!r}.")
        self._alpha = self.constraints.no_shares() if alpha is None else self.constraints.feasible(alpha)
        self._here = np.ones(self.n_examples, bool)
        self._here[away] = False
        self._alpha[away] = 0.0
        self._order = np.flatnonzero(self._here).astype(np.int32)
        self._active = self._visited = self._order.size
        self._norms = np.full(len(self.constraints.rows), -1.0, np.float32)
        self._sigma = 1.0
        self._handed = np.empty(0, np.int64), self._alpha[:0]
        self._rng = np.random.default_rng(seed)
        self._previous: np.ndarray | None = None
        self._last_step: np.ndarray | None = None

    @property
    def alpha(self) -> np.ndarray:
        return self._alpha

    def totals(self) -> Totals:
        return self.constraints.totals(self._alpha)

    def improve(self, v: np.ndarray, task: Task) -> tuple[Report, np.ndarray]:
        regularizer = Divided(self.regularizer, task.sigma)
        loss = self.constraints.evaluate(self.regularizer.weights(v)) if task.evaluate else None
        self._norms *= np.float32(task.sigma / self._sigma) if task.sigma != self._sigma else np.float32(1.0)
        self._sigma = task.sigma
        weights = regularizer.shape(v.size).bind(v / task.sigma)
        step, linear = self._go_along(weights, task.momentum)
        step -= weights.v
        if task.everything:
            self._order = np.flatnonzero(self._here).astype(np.int32)
            self._active = self._order.size
        self._visited = visited = self._active
        gap, change = self._sweep(weights)
        for _ in range(task.sweeps - 1):
            if not self._active:
                break
            visited += self._active
            gap, more = self._sweep(weights)
            change += more
        step += weights.v
        self._last_step = step
        parcel = None
        if task.hand_over:
            parcel = self._hand_over(task.hand_over)
        return self._report(linear + change, gap, visited, loss, parcel), step

    def _sweep(self, weights: Any) -> tuple[float, float]:
        """One step for every example that moves: the gap that was met, and the change of the linear part."""
        size = _A_SLICE if self.constraints.rows.indices.size else 1
        seed = int(self._rng.integers(1, 2**63))
        self._active, gap, change = self.constraints.sweep(
            self._alpha, weights, self._norms, self._order, self._active, size, seed
        )
        return gap, change

    def _go_along(self, weights: Any, momentum: float) -> tuple[np.ndarray, float]:
        """α ← Proj(α + momentum·its last change): the change of v that this makes, and that of the linear part.

        v has gone along as a whole before it was sent: only what the projection holds back is corrected in it.
        """
        if momentum == 0.0 or self._previous is None or self._last_step is None:
            self._previous = self._alpha.copy()
            return np.zeros(weights.v.size), 0.0
        before = weights.v.copy()
        change = self.constraints.extrapolate(
            self._alpha, self._previous, momentum, weights, self._order, self._active, self._visited
        )
        return momentum * self._last_step + weights.v - before, change

    def _hand_over(self, room: int) -> Any:
        """Of the examples that still move as many as there is room for: they are the driver's from now on."""
        moving = np.sort(self._order[: self._active])
        moving = moving[: int(room / self._bytes_per_row())]
        if not moving.size:
            return None
        block = extracted(self.constraints, moving)
        parcel = block, moving.astype(np.int64), self._alpha[moving].copy(), self._norms[moving] / self._sigma
        self._handed = parcel[1:3]
        self._here[moving] = False
        self._alpha[moving] = 0.0
        self._order = np.flatnonzero(self._here).astype(np.int32)
        self._active = self._visited = 0
        self._previous = self._last_step = None
        return parcel

    def take_back(self, places: np.ndarray, alpha: np.ndarray) -> None:
        """These are the shard's own again."""
        self._here[places] = True
        self._alpha[places] = alpha
        self._order = np.flatnonzero(self._here).astype(np.int32)

    def agree(self, away: np.ndarray) -> None:
        """All but these are the shard's own. Those that got lost on their last way come home as they left."""
        here = np.ones(self.n_examples, bool)
        here[away] = False
        if (here != self._here).any():
            places, alpha = self._handed
            lost = here[places] & ~self._here[places]
            self._alpha[places[lost]] = alpha[lost]
            self._here = here
            self._alpha[away] = 0.0
            self._order = np.flatnonzero(here).astype(np.int32)
            self._active = self._visited = self._order.size
            self._previous = self._last_step = None

    def _bytes_per_row(self) -> float:
        rows = self.constraints.rows
        values = rows.n_stored / max(rows.n_rows, 1) * (2 if rows.second.size else 1)
        return values * (rows.data.itemsize + (4 if rows.indices.size else 0)) + 64 + 16 * self._alpha[:1].size

    def _report(self, linear: float, gap: float, visited: int, loss: TotalLoss | None, parcel: Any) -> Report:
        return Report(
            linear=linear,
            gap=max(gap, 0.0),
            visited=visited,
            active=self._active,
            bytes_active=int(self._active * self._bytes_per_row()),
            n_constraints=self.constraints.n_constraints,
            nbytes=self._alpha.nbytes,
            loss=loss,
            parcel=parcel,
            goes_along=True,
        )
