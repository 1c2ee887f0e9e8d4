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
view is, how one looks at it, and when optimizing pays; all of them optimize by ``pooling.PoolWork``. Pools are of three
kinds, because their kernels read different arrays: rows of closed constraints, packed side by side
(``constraints.pool``); planes, several of an example, with their Gram blocks (``constraints.cache``); features of hard
windows, long rows that never move (``vision.detection.mining``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..problem import Problem
from .state import Progress


@dataclass(kw_only=True)
class Explored(Progress):
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
