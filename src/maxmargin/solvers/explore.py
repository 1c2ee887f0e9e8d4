"""Explore and optimize: the one loop of all solvers whose constraints are not all in memory, or not all known.

Ramanan, Algorithm 2. Data comes by in *views*: a block that is read from disk, a chunk of a source, some of the
examples in memory, the latest ones of a stream. What matters of a view is kept in a *pool*.

* **Explore.** A view is looked at once, at the weights of the moment: the dual variables of its examples are improved
  while they are at hand, and what is new and of consequence joins the pool (rows of a closed problem, planes that an
  oracle found).
* **Optimize.** The pool is a closed problem, and the dual coordinate solver works on it: briefly between two views,
  whenever that pays; at the end of an epoch until its gap is a fraction of what exploring has met, never to a fixed
  tolerance, which would stall or waste time.

v and the lower bound are those of the whole problem throughout, whatever the pool holds of it. When memory is short
something leaves the pool, and what that has contributed to v stays.

The loop is told here. ``block_ascent``, ``stream_ascent``, ``oracle_ascent`` and the detector's ``mining`` say what a
view is, how one looks at it, and when optimizing pays; all of them optimize by ``DualCoordinate.run``. Pools are
of three kinds, because their kernels read different arrays: rows of closed constraints, packed side by side
(``constraints.pool``); planes, several of an example, with their Gram blocks (``constraints.cache``); features of hard
windows, long rows that never move (``vision.detection.mining``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from ..constraints.base import Closed
from ..constraints.pool import Pool
from ..problem import Problem
from ..protocols import Regularizer
from .dual_coordinate import DualCoordinate, DualState
from .solve import SolverState, Weighted


@dataclass(kw_only=True)
class Explored(SolverState):
    """Where exploring and optimizing stand."""

    met: float = 0.0
    """The gap that exploring has met since the pool was last optimized, over ``since`` examples."""
    since: int = 0
    pool_gap: float = 0.0
    """The gap that was left on the pool when it was last optimized."""


State = TypeVar("State", bound=Explored)


class Explore(ABC, Generic[State]):
    """The loop; settings are those of the solvers made of it."""

    def step(self, problem: Problem, state: State) -> State:
        """One epoch: all views are explored, then the pool is optimized."""
        self.explore(problem, state)
        return self._conclude(problem, state)

    def explore(self, problem: Problem, state: State) -> Any:
        """Look at one view after another; between two of them explore on, or optimize?"""
        views = self._views(problem, state)
        view = next(views, None)
        while view is not None:
            self._look(problem, state, view)
            view = next(views, None)
            if view is not None:
                self._between(problem, state)

    def _between(self, problem: Problem, state: State) -> None:
        """A view is done, and the state is whole."""
        if self._pays(state):
            self._optimize_briefly(problem, state)
        if state.beat is not None:
            state.beat()

    @abstractmethod
    def _views(self, problem: Problem, state: State) -> Iterator[Any]:
        """What there is to be looked at in this epoch, part by part."""

    @abstractmethod
    def _look(self, problem: Problem, state: State, view: Any) -> None:
        """Improve the dual variables of a view, and keep what matters of it."""

    @abstractmethod
    def _pays(self, state: State) -> bool:
        """Whether enough was met to optimize the pool before the next view."""

    @abstractmethod
    def _optimize_briefly(self, problem: Problem, state: State) -> None:
        """A few passes over the pool."""

    @abstractmethod
    def _conclude(self, problem: Problem, state: State) -> State:
        """All views were seen: optimize the pool, and say how far that has come."""


class Swept(NamedTuple):
    """A block after some sweeps."""

    awake: np.ndarray
    """Its examples that still had a gap of their own in the last sweep."""
    norms: np.ndarray
    met: float
    """The gap that the first sweep met."""
    awake_at_first: int


@dataclass(kw_only=True)
class RowState(Explored, Weighted):
    """A pool of examples, and v and the dual objective of all there are."""

    alpha: np.ndarray
    pool: Pool
    rng: np.random.Generator

    def sweep(self, block: Closed, alpha: np.ndarray, sweeps: int) -> Swept:
        """Sweeps over a block while it is at hand: all of it once, then what is awake."""
        n = block.n_examples
        norms, order, active = np.full(n, -1.0, np.float32), np.arange(n, dtype=np.int32), n
        size = 8 if block.rows.indices.size else 1
        met = change = 0.0
        at_first = 0
        for sweep in range(sweeps):
            seed = int(self.rng.integers(1, 2**63))
            active, seen, more = block.sweep(alpha, self.map, norms, order, active, size, seed)
            change += more
            if sweep == 0:
                met, at_first = max(seen, 0.0), active
            if active == 0:
                break
        self.linear += change
        self.met += met
        return Swept(order[:active], norms, met, at_first)


Pooled = TypeVar("Pooled", bound=RowState)


class RowAscent(Explore[Pooled]):
    """Examples of a block are swept while it is at hand; the pool keeps copies of those that matter."""

    n_threads: int

    def _work(
        self, regularizer: Regularizer, state: Pooled, alpha: np.ndarray, momentum_after: int = 8
    ) -> tuple[DualCoordinate, Problem, DualState]:
        """Passes to be made over the pool, whose dual variables are ``alpha``: who makes them, of what, where from."""
        pool = state.pool
        coordinate = DualCoordinate(state.rng, n_threads=self.n_threads, momentum_after=momentum_after)
        problem = Problem(pool.constraints(), regularizer)
        inner = coordinate.state(problem, alpha, state.shape, state.map, state.linear, pool.norms, state.rng)
        return coordinate, problem, inner

    def _settle(self, state: Pooled, inner: DualState) -> None:
        """Passes over the pool are done."""
        state.linear, state.lower = inner.linear, inner.lower
        state.pool_gap = max(inner.seen, 0.0)


def leaving(at_rest: np.ndarray, alpha: np.ndarray | None, most: int) -> np.ndarray:
    """Which examples leave a pool of which at most so many may stay, as a mask: those at rest first (of these the ones
    without a share, if ``alpha`` is given), then those that came first."""
    n = at_rest.size
    shares = np.zeros(n, bool) if alpha is None else with_share(alpha)
    mask = np.zeros(n, bool)
    mask[np.lexsort((np.arange(n), shares, ~at_rest))[: n - most]] = True
    return mask


def with_share(alpha: np.ndarray) -> np.ndarray:
    """Which examples have a share in the weights, as a mask."""
    return np.asarray(alpha.any(axis=1) if alpha.ndim > 1 else alpha != 0.0)
