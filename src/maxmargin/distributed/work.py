"""What a round asks of a worker, what comes back, and the work: solvers that improve the dual variables of a shard."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from ..constraints.base import Closed
from ..constraints.pool import extracted
from ..kernels.maps import WeightMap
from ..problem import Problem, TotalLoss
from ..regularizers.divided import Divided
from ..solvers.block_ascent import BlockAscent, BlockState
from ..solvers.choose import blocks_within

_A_SLICE = 8  # rows that are visited together where rows are sparse: their order in memory is of use


class Task(NamedTuple):
    """What a round asks of a worker. The v that the round begins with comes beside it."""

    sigma: float
    """σ of Ω/σ, under which the worker improves its dual variables: the number of shards is always safe."""
    everything: bool
    """Whether to visit all examples, or only those that were last seen to move."""
    wanted: float
    """The duality gap that the whole problem may keep."""
    momentum: float = 0.0
    """Go on so far along the last change first. The v that is sent has gone along already."""
    evaluate: bool = False
    """Whether to compute the loss at the weights of v, too."""
    sweeps: int = 1
    """Go over the examples so often: the more, the longer it takes to call everybody."""
    stretch: float = 1.0
    """Steps are so many times as long as they would be best each by itself; below 2, which still is an ascent."""
    part: int = 0
    parts: int = 1
    """Visit only this part of the examples: a pass over all of them takes so many rounds, in this order."""
    hand_over: int = 0
    """So many bytes of the examples that still move may leave for the driver's own memory."""


class Parcel(NamedTuple):
    """Examples that leave for the driver."""

    constraints: Closed
    places: np.ndarray
    """Where they were in the shard."""
    alpha: np.ndarray
    norms: np.ndarray


class Report(NamedTuple):
    """What has come of a round; the change of v comes beside it."""

    linear: float
    """The change of the part of the dual objective that is linear in α."""
    gap: float
    """The duality gap that was met on the way."""
    visited: int
    active: int
    """Examples that were visited, and those among the shard's own that still move."""
    n_constraints: int
    nbytes: int
    bytes_active: int = 0
    """What those that still move would take in the driver's memory; 0 where they cannot leave."""
    loss: TotalLoss | None = None
    parcel: Parcel | None = None
    by_parts: bool = False
    """Whether the worker can go over its examples part by part, and take part in momentum."""
    seconds: float = 0.0
    swept: float = 0.0
    """Seconds of the round, and those of its sweeps alone."""


class Work(ABC):
    """The dual variables of a shard, and the solver that improves them while all others stand still.

    Parameters
    ----------
    problem : Problem
        The shard's own constraints, and the regularizer of the whole problem.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.n_examples = problem.constraints.n_examples

    @property
    @abstractmethod
    def alpha(self) -> np.ndarray:
        """The dual variables that are here."""

    @abstractmethod
    def improve(self, v: np.ndarray, task: Task) -> tuple[Report, np.ndarray]:
        """Raise the dual objective of the shard under Ω/σ, seen from v. Returns the change of v as well."""

    def whole(self, *lent: np.ndarray) -> np.ndarray:
        """The dual variables with those that the driver has: places and values as it tells them, or as they left."""
        return self.alpha

    def take_back(self, places: np.ndarray, alpha: np.ndarray) -> None:  # noqa: B027 where nothing ever leaves
        """These are the shard's own again."""

    def agree(self, away: np.ndarray) -> None:  # noqa: B027
        """All but these are the shard's own. Those that got lost on their last way are as they left."""


class ClosedWork(Work):
    """Sweeps over the examples of a shard, all of them or those that still move.

    Examples that have left for the driver (``away``) are not visited. Their rows stay: losses are always those of the
    whole shard.

    Parameters
    ----------
    problem : Problem
    alpha : array or None
        Dual variables to begin with.
    away : int array
        Examples whose dual variables the driver has.
    seed : int
    """

    def __init__(self, problem: Problem, alpha: np.ndarray | None, away: np.ndarray, seed: int) -> None:
        super().__init__(problem)
        self.constraints = problem.in_memory
        if not self.constraints.supports(problem.regularizer.shape(problem.n_weights).kind):
            raise ValueError(f"{type(self.constraints).__name__} has no compiled steps for {problem.regularizer!r}.")
        self._alpha = self.constraints.no_shares() if alpha is None else self.constraints.feasible(alpha)
        self._here = np.ones(self.n_examples, bool)
        self._here[away] = False
        self._lent: tuple[np.ndarray, ...] = away, self._alpha[away]  # with their values as they left
        self._alpha[away] = 0.0
        self._order = np.flatnonzero(self._here).astype(np.int32)
        self._active = self._visited = self._order.size
        self._norms = np.full(len(self.constraints.rows), -1.0, np.float32)
        self._metric = 1.0  # of the norms: σ, less where steps are longer
        self._measured = False  # all of them are known
        self._rng = np.random.default_rng(seed)
        self._previous: np.ndarray | None = None
        self._ends = np.empty(0, np.int64)
        self._awake = np.empty(0, np.int64)
        # New arrays of the size of the weights would cost more than the additions that fill them.
        self._v, self._step = np.empty(problem.n_weights), np.empty(problem.n_weights)

    @property
    def alpha(self) -> np.ndarray:
        return self._alpha

    def improve(self, v: np.ndarray, task: Task) -> tuple[Report, np.ndarray]:
        """The change of v that is returned may be overwritten by the next round."""
        whole = self.problem.regularizer
        regularizer = Divided(whole, task.sigma)
        loss = self.constraints.evaluate(whole.weights(v)) if task.evaluate else None
        metric = task.sigma / (task.stretch if self._measured else 1.0)
        if metric != self._metric:
            self._norms *= np.float32(metric / self._metric)
        self._metric = metric
        weights = regularizer.shape(v.size).bind(np.divide(v, task.sigma, out=self._v))
        linear = 0.0
        if task.part == 0 or self._ends.size != task.parts + 1:
            linear = self._go_along(weights, task.momentum)
            self._begin_pass(task)
        began = time.perf_counter()
        visited, gap, change = self._go_over(weights, task)
        swept = time.perf_counter() - began
        step = np.divide(v, task.sigma, out=self._step)
        np.subtract(weights.v, step, out=step)
        if task.part == task.parts - 1:
            self._end_pass()
            self._measured |= task.everything
        parcel = self._hand_over(task.hand_over) if task.hand_over else None
        report = Report(
            linear=linear + change,
            gap=max(gap, 0.0),
            visited=visited,
            active=self._active,
            bytes_active=int(self._active * self._bytes_per_row()),
            n_constraints=self.constraints.n_constraints,
            nbytes=self._alpha.nbytes,
            loss=loss,
            parcel=parcel,
            by_parts=True,
            swept=swept,
        )
        return report, step

    def _begin_pass(self, task: Task) -> None:
        """Choose the examples of a pass and deal them out to its parts, a few neighbours at a time."""
        if task.everything:
            self._order = np.flatnonzero(self._here).astype(np.int32)
            self._active = self._order.size
        self._visited = self._active
        few = self._active // (_A_SLICE * task.parts)  # slices of each part; what is left over is the last part's
        dealt = self._order[: few * task.parts * _A_SLICE]
        dealt[:] = dealt.reshape(few, task.parts, _A_SLICE).swapaxes(0, 1).ravel()
        self._ends = np.arange(task.parts + 1) * few * _A_SLICE
        self._ends[-1] = self._active
        self._awake = np.diff(self._ends)

    def _go_over(self, weights: WeightMap, task: Task) -> tuple[int, float, float]:
        """Sweeps over a part: how many examples were visited, the gap last met, and the change of the linear part."""
        start, end = self._ends[task.part : task.part + 2]
        part = self._order[start:end]
        size = _A_SLICE if self.constraints.rows.indices.size else 1
        active, visited, gap, change = part.size, 0, 0.0, 0.0
        for _ in range(task.sweeps):
            visited += active
            seed = int(self._rng.integers(1, 2**63))
            active, gap, more = self.constraints.sweep(self._alpha, weights, self._norms, part, active, size, seed)
            change += more
            if not active:
                break
        self._awake[task.part] = active
        return visited, gap, change

    def _end_pass(self) -> None:
        """Of all parts those that still move come first."""
        parts = np.split(self._order[: self._visited], self._ends[1:-1])
        both = list(zip(parts, self._awake, strict=True))
        self._order[: self._visited] = np.concatenate([p[:n] for p, n in both] + [p[n:] for p, n in both])
        self._active = int(self._awake.sum())

    def _go_along(self, weights: WeightMap, momentum: float) -> float:
        """α ← Proj(α + momentum·its last change): the change of the linear part.

        v has gone along as a whole before it was sent: only what the projection holds back is corrected in it.
        """
        if momentum == 0.0 or self._previous is None:
            self._previous = self._alpha.copy()
            return 0.0
        return self.constraints.extrapolate(
            self._alpha, self._previous, momentum, weights, self._order, self._active, self._visited
        )

    def _hand_over(self, room: int) -> Parcel | None:
        """Of the examples that still move as many as there is room for: they are the driver's from now on."""
        moving = np.sort(self._order[: self._active])
        moving = moving[: int(room / self._bytes_per_row())]
        if not moving.size:
            return None
        block = extracted(self.constraints, moving)
        parcel = Parcel(block, moving.astype(np.int64), self._alpha[moving], self._norms[moving] / self._metric)
        self._lent = tuple(np.concatenate(both) for both in zip(self._lent, parcel[1:3], strict=True))
        self._here[moving] = False
        self._alpha[moving] = 0.0
        self._order = np.flatnonzero(self._here).astype(np.int32)
        self._active = self._visited = 0
        self._previous = None
        return parcel

    def whole(self, *lent: np.ndarray) -> np.ndarray:
        places, alpha = self._lent = lent or self._lent
        whole = self._alpha.copy()
        whole[places] = alpha
        return whole

    def take_back(self, places: np.ndarray, alpha: np.ndarray) -> None:
        self._here[places] = True
        self._alpha[places] = alpha
        self._order = np.flatnonzero(self._here).astype(np.int32)
        still = ~np.isin(self._lent[0], places)
        self._lent = self._lent[0][still], self._lent[1][still]

    def agree(self, away: np.ndarray) -> None:
        here = np.ones(self.n_examples, bool)
        here[away] = False
        places, alpha = self._lent
        lost = here[places]
        if (here != self._here).any():
            back = lost & ~self._here[places]
            self._alpha[places[back]] = alpha[back]
            self._here = here
            self._alpha[away] = 0.0
            self._order = np.flatnonzero(here).astype(np.int32)
            self._active = self._visited = self._order.size
            self._previous = None
        self._lent = places[~lost], alpha[~lost]

    def _bytes_per_row(self) -> float:
        rows = self.constraints.rows
        values = rows.n_stored / max(rows.n_rows, 1) * (2 if rows.minus.size else 1)
        return values * (rows.data.itemsize + (4 if rows.indices.size else 0)) + 64 + 16 * self._alpha[:1].size


class BlockWork(Work):
    """A closed problem in blocks: one reading of the shard a round, or one pass over the pool of examples that still
    moved.

    ``memory`` is for weights, dual variables, blocks in use and the pool together.
    """

    def __init__(self, problem: Problem, alpha: np.ndarray | None, seed: int, memory: int | None) -> None:
        super().__init__(problem)
        self._solver: BlockAscent = blocks_within(problem, memory, seed=seed, threads=1)
        self._state: BlockState = self._solver.start(problem, alpha)
        self._own = self._state.map.v.copy()

    @property
    def alpha(self) -> np.ndarray:
        return self._state.alpha

    def improve(self, v: np.ndarray, task: Task) -> tuple[Report, np.ndarray]:
        state = self._state
        before = v / task.sigma
        divided = Divided(self.problem.regularizer, task.sigma, before - self._own)
        problem = Problem(self.problem.constraints, divided)
        state.place(divided, before)
        linear, visited = state.linear, len(state.pool)
        state.goal = 0.1 * task.wanted / max(abs(state.lower), 1e-300)
        if task.everything:
            if task.evaluate:
                state.promise = 0.0  # then the reading evaluates the weights that it begins with
            self._solver.step(problem, state)
            visited, gap = state.visited, state.found
        else:
            self._solver.optimize(problem, state, 1, 0.1 * task.wanted)
            gap = state.pool_gap
        step = state.map.v - before
        self._own += step
        report = Report(
            linear=state.linear - linear,
            gap=gap,
            visited=visited,
            active=len(state.pool),
            n_constraints=state.n_constraints,
            nbytes=state.nbytes,
            loss=state.evaluated[1] if task.everything and state.evaluated is not None else None,
        )
        return report, step
