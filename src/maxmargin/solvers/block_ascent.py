"""Dual coordinate ascent over blocks that do not fit into memory together.

The loop of ``explore`` for constraints that are all known but not all at hand. An epoch is one reading of the data, a
view is a block. Blocks are read in random order, the next one while the last is in use. One sweep over a block moves
its dual variables and sends those examples to sleep that have no gap of their own. The others join the pool, after a
few more sweeps while the block is hot. Optimizing pays once several times as many examples were read as the pool holds,
and when it is full. Dual variables stay with their blocks: what leaves the pool is met again at the next reading.

Near the goal, exploring also evaluates the weights with which the reading began, so that their certificate costs no
reading of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..constraints import duals_on_disk
from ..constraints.pool import Pool
from ..problem import Problem, TotalLoss
from ..protocols import Regularizer, Seed
from .explore import RowAscent, RowState, leaving

_NO_LOSS = TotalLoss(0.0)
_FULL = 0.7  # share of the pool that may stay after it was found full


@dataclass(frozen=True)
class BlockAscent(RowAscent["BlockState"]):
    """Settings of the solver for blocks.

    Parameters
    ----------
    pool : int
        Bytes of rows to keep in memory.
    random_state : int, Generator or None
        Order of visits.
    hot_sweeps : int
        Sweeps over what is awake of a block before the next one is read.
    growth : float
        Optimize the pool whenever this many times as many examples were explored as it holds.
    fraction : float
        At the end of a reading, work on the pool until its gap is this fraction of what exploring saw.
    max_inner : int
        At most so many passes over the pool at the end of a reading.
    n_threads : int
        Threads for the sweeps over the pool, where they are long enough.
    duals : function of a shape
        Where dual variables are kept: makes an array of zeros, in memory by default.
    """

    pool: int = 2**28
    random_state: Seed = None
    hot_sweeps: int = 1
    growth: float = 3.0
    fraction: float = 0.2
    max_inner: int = 100
    n_threads: int = 1
    duals: Callable[[tuple[int, ...]], np.ndarray] = np.zeros

    def start(self, problem: Problem, warm: np.ndarray | None = None) -> BlockState:
        blocked = problem.in_blocks
        alpha = self.duals(blocked.dual_shape)
        linear, v = 0.0, np.zeros(problem.n_weights)
        if warm is not None:
            for b, block in blocked.blocks():
                share = blocked.share(alpha, b)
                share[:] = block.feasible(blocked.share(warm, b))
                linear += block.linear(share)
                block.add_to(v, share)
                duals_on_disk.forget(alpha)
        shape = problem.regularizer.shape(problem.n_weights)
        state = BlockState(
            alpha=alpha,
            shape=shape,
            map=shape.bind(v),
            linear=linear,
            pool=Pool(self.pool, blocked.n_examples),
            held=np.zeros(blocked.n_examples, bool),
            rng=np.random.default_rng(self.random_state),
            n_constraints=blocked.n_constraints,
        )
        state.update_lower(problem.regularizer)
        return state

    def _views(self, problem: Problem, state: BlockState) -> Iterator[tuple[int, Any]]:
        """The blocks of a reading of the data."""
        state.map.refresh()
        state.met, state.since = 0.0, 0
        state.reading = Reading(state.map.weights().copy(), state.promise <= 3.0 * state.goal)
        yield from problem.in_blocks.blocks(state.rng.permutation(problem.in_blocks.filled))

    def _pays(self, state: BlockState) -> bool:
        return state.full or state.since >= self.growth * max(len(state.pool), 1)

    def _optimize_briefly(self, problem: Problem, state: BlockState) -> None:
        brief = 6 if len(state.pool) > 5 * state.map.v.size else 1  # each settles little where weights are few
        self.optimize(problem, state, brief, self.fraction * state.met)

    def _look(self, problem: Problem, state: BlockState, view: tuple[int, Any]) -> None:
        """Sweeps over one block; those of its examples that are awake after the last one join the pool."""
        b, block = view
        blocked, reading = problem.in_blocks, state.reading
        if reading.evaluates:
            reading.loss = TotalLoss.sum([reading.loss, block.evaluate(reading.start)])
        swept = state.sweep(block, blocked.share(state.alpha, b), 1 + self.hot_sweeps)
        reading.found += swept.met
        reading.awake += swept.awake_at_first
        reading.visited += block.n_examples
        state.since += block.n_examples
        start = int(blocked.first[b])
        fresh = np.sort(swept.awake[~state.held[start + swept.awake]])
        if fresh.size:
            n = state.pool.add(block, fresh, start, swept.norms)
            state.held[start + fresh[:n]] = True
            state.full = n < fresh.size
            reading.overflow |= state.full
        state.done = reading.visited / blocked.n_examples
        duals_on_disk.forget(state.alpha)

    def optimize(self, problem: Problem, state: BlockState, passes: int, wanted: float) -> None:
        """Passes over the pool until its own gap is as small as wanted; then room is made if it was full."""
        state.met, state.since = 0.0, 0
        if not len(state.pool):
            return
        alpha = duals_on_disk.gather(state.alpha, state.pool.place)
        coordinate, pooled, inner = self._work(problem.regularizer, state, alpha)
        try:
            coordinate.run(pooled, inner, passes, wanted)
        finally:
            duals_on_disk.scatter(state.alpha, state.pool.place, inner.alpha)
        self._settle(state, inner)
        if state.full:
            self._make_room(state, inner.at_rest)

    def _make_room(self, state: BlockState, at_rest: np.ndarray) -> None:
        """Those that are asleep leave the pool; if that is not enough, those that came first do."""
        most = min(int(_FULL * at_rest.size), int(np.count_nonzero(~at_rest)))
        state.held[state.pool.place] = False
        state.pool.keep(np.flatnonzero(~leaving(at_rest, None, most)))
        state.held[state.pool.place] = True
        state.full = False

    def _conclude(self, problem: Problem, state: BlockState) -> BlockState:
        self._between(problem, state)
        reading = state.reading
        state.update_lower(problem.regularizer)
        goal = state.goal * max(abs(state.lower), 1e-300)
        state.evaluated = (reading.start, reading.loss) if reading.evaluates else None
        upper = problem.regularizer.value(reading.start) + reading.loss.total if reading.evaluates else np.inf
        if upper - state.lower > goal:
            self.optimize(problem, state, self.max_inner, max(self.fraction * reading.found, 0.3 * goal))
        state.update_lower(problem.regularizer)
        state.visited, state.active, state.found = reading.visited, reading.awake, reading.found
        state.estimate = reading.found / max(abs(state.lower + reading.found), 1e-300)
        # What the next reading will find: the rest of the pool's gap, and a share of what was new this time.
        left = state.pool_gap + (0.5 if reading.overflow else 0.2) * reading.found
        state.promise = left / max(abs(state.lower + left), 1e-300)
        return state


@dataclass
class Reading:
    """One reading of the data, as far as it has come."""

    start: np.ndarray
    """The weights it began with."""
    evaluates: bool
    """Whether their loss is computed on the way."""
    loss: TotalLoss = _NO_LOSS
    found: float = 0.0
    visited: int = 0
    awake: int = 0
    overflow: bool = False


@dataclass(kw_only=True)
class BlockState(RowState):
    """Where the ascent stands, with the dual variables of all blocks."""

    held: np.ndarray
    """Which examples are in the pool."""
    n_constraints: int
    reading: Reading = field(init=False, repr=False)
    full: bool = False
    found: float = np.inf
    """The gap that the last reading met."""
    promise: float = np.inf
    active: int = 0

    @property
    def nbytes(self) -> int:
        return (0 if isinstance(self.alpha, np.memmap) else self.alpha.nbytes) + self.pool.nbytes

    def place(self, regularizer: Regularizer, v: np.ndarray) -> None:
        """Go on at another v, which others have moved, under another regularizer; dual variables and pool stay."""
        self.map.v[:] = v
        if self.regularize(regularizer):
            self.pool.norms[:] = -1.0
