"""Block-coordinate Frank-Wolfe with pairwise or away steps and gap sampling, for open problems.

Lacoste-Julien, Jaggi, Schmidt and Pletscher (2013); Osokin, Alayrac, Lukasewitz, Dokania and Lacoste-Julien (2016): the
oracle is asked about one example, whose dual variables take one step with an exact line search (see
``kernels.frank_wolfe``). ``OracleAscent`` differs in what it does with the same searches: it solves the block of an
example, and makes passes over all that was found before it searches on.

An epoch has as many steps as there are examples. Which ones is drawn by the gaps that they had when they were last
visited. Gaps get stale: now and then, and near the goal, an epoch searches all examples at the same weights and moves
nothing. That renews the gaps, and its bounds are a certificate of those weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..kernels import frank_wolfe as kernels
from ..problem import Planes, Problem
from ..protocols import Seed
from ..validation import one_of, whole
from .ascent_state import AscentState
from .oracle_ascent import OracleAscent
from .searchers import search

STEPS = {"pairwise": kernels.PAIRWISE, "away": kernels.AWAY, "toward": kernels.TOWARD}
_DRAWN_ANEW = 16  # times an epoch: gaps change with every step
_ROOM = 3  # new planes of an example before all planes move: one with a large gap is drawn more than once an epoch


@dataclass(frozen=True)
class FrankWolfe:
    """Settings of block-coordinate Frank-Wolfe, a solver to compare with.

    Parameters
    ----------
    steps : {"pairwise", "away", "toward"}
        Shares move from the flattest answer to the steepest one; or away from the flattest one where that is the
        steeper direction; or toward the steepest one, which is the method of 2013.
    sampling : {"gap", "uniform"}
        Examples are drawn by their last known gaps, or all of them are visited in random order.
    look_every : int
        Every so many epochs all examples are searched at the same weights.
    random_state : int, Generator or None
    n_jobs : int
        Threads or processes that search, at weights that are a few steps old.
    """

    steps: str = "pairwise"
    sampling: str = "gap"
    look_every: int = 10
    random_state: Seed = None
    n_jobs: int = 1

    def __post_init__(self) -> None:
        one_of("steps", self.steps, tuple(STEPS))
        one_of("sampling", self.sampling, ("gap", "uniform"))
        whole("look_every", self.look_every)

    @property
    def _ascent(self) -> OracleAscent:
        """Who keeps the cache."""
        return OracleAscent(random_state=self.random_state, n_jobs=self.n_jobs)

    def start(self, problem: Problem, warm: Planes | None = None) -> FrankWolfeState:
        state = self._ascent.start(problem, warm)
        return FrankWolfeState(**vars(state), gaps=np.full(problem.constraints.n_examples, np.inf))

    def step(self, problem: Problem, state: FrankWolfeState) -> FrankWolfeState:
        """As many steps as there are examples, or a look at all of them."""
        state.epoch += 1
        if (state.estimate <= state.goal and not state.looked) or state.epoch % self.look_every == 0:
            self._look(problem, state)
        else:
            self._move(problem, state)
        state.inner.map.refresh()
        state.inner.update_lower(problem.regularizer)
        state.lower = state.inner.lower
        state.estimate = state.gap / max(abs(state.lower + state.gap), 1e-300)
        return state

    def _look(self, problem: Problem, state: FrankWolfeState) -> None:
        self._ascent.explore(problem, state, state.weights().copy())
        self._visit(state, problem.searched.searchable, kernels.LOOK)
        state.looked = True

    def _move(self, problem: Problem, state: FrankWolfeState) -> None:
        ascent, inner, cache = self._ascent, state.inner, state.cache
        ascent.tidy(state, room=_ROOM)
        state.visited, state.evaluated, state.looked = 0, None, False
        for ids, w, rivals in search(
            problem.searched.oracle, self._draws(problem, state), inner.map.weights, self.n_jobs
        ):
            if cache.is_full(ids):
                state.rearrange(cache.tidy(cache.used(), _ROOM))
            ascent.take_in(problem, state, ids, rivals, w)
            self._visit(state, ids, STEPS[self.steps])
            state.visited += 1
        state.gap = float(state.gaps[problem.searched.searchable].sum())

    def _draws(self, problem: Problem, state: FrankWolfeState) -> Iterator[np.ndarray]:
        """One example after another."""
        ids, rng = problem.searched.searchable, state.inner.rng
        if self.sampling == "uniform" or not np.isfinite(state.gaps[ids]).all():
            yield from rng.permutation(ids)[:, None]
            return
        for part in np.array_split(ids, min(_DRAWN_ANEW, ids.size)):
            gaps = state.gaps[ids]
            if gaps.sum() <= 0.0:
                return
            yield from rng.choice(ids, part.size, p=gaps / gaps.sum())[:, None]

    def _visit(self, state: FrankWolfeState, ids: np.ndarray, kind: int) -> None:
        inner = state.inner
        arguments = state.cache.kernel_arguments()
        inner.linear += kernels.visit(*arguments, inner.alpha, inner.map, ids, kind, state.gaps)


@dataclass(kw_only=True)
class FrankWolfeState(AscentState):
    """The cache, and how much each example was seen to lack."""

    gaps: np.ndarray
    """The gap of each example when it was last visited."""
    epoch: int = 0
    looked: bool = False
    """Whether the last epoch was a look at all examples, which moves nothing."""
