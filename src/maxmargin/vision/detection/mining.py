"""Training on more windows than can be stored: search images for hard ones, or work on those at hand.

The loop of ``solvers.explore``; a view is a few images, the pool a cache of hard examples. Images are searched one
after another; what their windows cost beyond what the cached ones do is the gap that work on the cache could not have
closed. Once that is large enough the cache is worked on; otherwise the search goes on. A pass over all images in which
no work was needed has seen the loss of every window at the same weights: it is the upper bound of the certificate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...kernels.rows import scores
from ...problem import Planes, Problem, TotalLoss
from ...solvers.dual_coordinate import DualCoordinate
from ...solvers.explore import Explore, Explored
from ...solvers.searchers import search
from ...solvers.state import Weighted
from .hard_examples import HardExamples
from .objective import Hard, WindowBound
from .star import Star

_CHUNK = 4  # images that are searched at the same weights
_WORK = 0.5  # work begins once as much of the goal was seen outside the cache,
_REST = 0.2  # and ends once the cache has this share of it left
_SPARE = 4  # one part in as many of the cache is kept free for what the next chunks bring
_PASSES = 30  # over the cache, at most


class Found(NamedTuple):
    """Hard examples of one image, and the features of those that are new."""

    hard: Hard
    new: np.ndarray
    features: np.ndarray


@dataclass(frozen=True)
class Mining(Explore["MiningState"]):
    """Settings of the solver for ``WindowBound``.

    Parameters
    ----------
    memory : int
        Bytes for hard examples.
    most : int
        Windows that an image may add at a time.
    n_jobs : int
    random_state : int, Generator or None
        Order of images.
    """

    memory: int
    most: int = 50
    n_jobs: int = 1
    random_state: Any = None

    def room(self, n_weights: int, n_positives: int) -> int:
        """How many hard examples there is memory for; an error if they are too few to work with."""
        room = self.memory // (4 * n_weights + 64)
        if room < 4 * n_positives:
            raise ValueError(
                f"memory is too little: {self.memory} bytes are left for hard examples, which is room for {room}; "
                f"{n_positives} positive examples need {4 * n_positives}. Give more memory, fewer images or smaller "
                "filters."
            )
        return room

    def start(self, problem: Problem, warm: Planes | None = None) -> MiningState:
        bound: Any = problem.constraints
        room = self.room(bound.n_weights, bound.n_positives)
        cache = HardExamples(bound.n_weights, bound.model.placement_length, bound.n_positives, room)
        shape = problem.regularizer.shape(problem.n_weights)
        rng = np.random.default_rng(self.random_state)
        state = MiningState(
            problem=problem, cache=cache, shape=shape, map=shape.bind(np.zeros(problem.n_weights)), rng=rng
        )
        if warm is not None:
            warm = bound.feasible(warm)
            for ids, placements, features in bound.formed(warm):
                # What were two placements in another bound may be one in this.
                both = np.column_stack([warm.example[ids], placements])
                _, first, again = np.unique(both, axis=0, return_index=True, return_inverse=True)
                alpha = np.bincount(again.ravel(), weights=warm.alpha[ids], minlength=first.size)
                cache.add(warm.example[ids][first], placements[first], features[first], alpha)
        state.recombine()
        return state

    def _views(self, problem: Problem, state: MiningState) -> Iterator[Iterator[Any]]:
        """The searches of all images, once for every few of them: these are searched when they are looked at, or
        ahead of that by threads, at weights that know of those before."""
        bound: Any = problem.constraints
        order = state.rng.permutation(len(bound.images))
        chunks = [order[start : start + _CHUNK] for start in range(0, order.size, _CHUNK)]
        most = max(2, min(self.most, state.cache.room // (_SPARE * _CHUNK * self.n_jobs)))
        searcher: Any = _Searcher(bound, state.cache, most)
        state.at, state.gap, state.losses, state.moved, state.met = state.weights().copy(), 0.0, [], False, 0.0
        searches = search(searcher, chunks, state.weights, self.n_jobs)
        for number in range(1, len(chunks) + 1):
            yield searches
            state.done = number / len(chunks)

    def _look(self, problem: Problem, state: MiningState, view: Iterator[Any]) -> None:
        _, _, found = next(view)
        for one in found:
            state.losses.append(one.hard.loss)
            extra = state.take(one)
            state.gap += extra
            state.met += extra

    def _enough(self, state: MiningState) -> float:
        return _WORK * max(state.goal, 1e-3) * max(state.lower, state.met)

    def _pays(self, state: MiningState) -> bool:
        full = len(state.cache) > state.cache.room - state.cache.room // _SPARE
        return full or state.met > self._enough(state)

    def _optimize_briefly(self, problem: Problem, state: MiningState) -> None:
        state.work(_REST * max(state.met, self._enough(state)))
        state.met = 0.0

    def _conclude(self, problem: Problem, state: MiningState) -> MiningState:
        self._between(problem, state)
        bound: Any = problem.constraints
        state.visited = len(bound.images)
        state.evaluated = None if state.moved else (state.at, TotalLoss.sum(state.losses))
        state.work(_REST * state.met)
        state.recombine()
        state.estimate = state.gap / max(abs(state.lower + state.gap), 1e-300)
        return state


class _Searcher:
    """The search, as threads run it ahead of the work."""

    releases_gil = True

    def __init__(self, bound: WindowBound, cache: HardExamples, most: int) -> None:
        self.bound, self.cache, self.most = bound, cache, most

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> list[Found]:
        star, at_hand = Star(self.bound.model, w), self._at_hand()
        return [self._one(i, star, w, self.most + int(at_hand[i])) for i in ids.tolist()]

    def _at_hand(self) -> np.ndarray:
        """How many windows of each image are cached: the worst may be among them for good, and must hide no others."""
        example = self.cache.example  # replaced as a whole by the work, never written to
        windows = example[example >= self.bound.n_positives]
        return np.bincount(self.bound.images.image_of(windows), minlength=len(self.bound.images))

    def _one(self, i: int, star: Any, w: np.ndarray, listed: int) -> Found:
        hard = self.bound.search(i, star, w, listed)
        new = np.flatnonzero((hard.missing > 0.0) & self.cache.unknown(hard.example, hard.placements))
        new = new[: len(self.bound.objective.in_image[i]) + self.most]
        features = self.bound.model.features(self.bound.images.pyramids[i], hard.placements[new])
        return Found(hard, new, features)


@dataclass(kw_only=True)
class MiningState(Explored, Weighted):
    """The cache, and the weights that belong to its shares."""

    problem: Problem
    cache: HardExamples
    rng: np.random.Generator
    at: np.ndarray = field(default_factory=lambda: np.empty(0))
    """The weights with which a pass began, the losses that it has met, and whether the weights have moved since."""
    losses: list[TotalLoss] = field(default_factory=list)
    moved: bool = False
    gap: float = 0.0
    """What the windows of this pass cost beyond what the cache knew of."""
    _slack: dict[int, float] = field(default_factory=dict)

    def take(self, found: Found) -> float:
        """Hard examples join the cache; returns what this image costs beyond what the cache knew of."""
        bound: Any = self.problem.constraints
        hard = found.hard
        budget = bound.budget_of(hard.example)
        paid = np.array([self._slack.get(i, 0.0) for i in hard.example.tolist()])
        listed = float((budget * np.maximum(hard.missing, 0.0)).sum())
        known = float((budget * np.minimum(paid, np.maximum(hard.missing, 0.0))).sum())
        self.cache.add(hard.example[found.new], hard.placements[found.new], found.features)
        for i, missing in zip(hard.example.tolist(), hard.missing.tolist(), strict=True):
            self._slack[i] = max(self._slack.get(i, 0.0), missing)
        # Of windows that were not listed nobody knows whether the cache has them; once few are hard, all are listed.
        return max(hard.loss.total - listed, 0.0) + listed - known

    def work(self, wanted: float) -> None:
        """Coordinate steps on the cached problem, until its own gap is as small as wanted."""
        bound: Any = self.problem.constraints
        cache = self.cache
        cache.forget_idle(cache.room // _SPARE)
        if not len(cache):
            return
        cache.sort()
        closed = cache.constraints(bound.budget_of(cache.example))
        problem, coordinate = Problem(closed, self.problem.regularizer), DualCoordinate()
        state = coordinate.state(problem, cache.alpha, self.shape, self.map, self.linear, cache.norms, self.rng)
        coordinate.run(problem, state, _PASSES, wanted)
        self.moved = True
        cache.worked_on(state.alpha, state.norms)
        self.linear, self.lower = state.linear, state.lower
        margins = np.empty(len(cache))
        scores(closed.rows.arrays, np.ascontiguousarray(self.weights()), margins)
        heads = closed.first[:-1]
        worst = np.maximum.reduceat(1.0 - margins * np.repeat(closed.side, np.diff(closed.first)), heads)
        self._slack = dict(zip(cache.example[heads].tolist(), np.maximum(worst, 0.0).tolist(), strict=True))

    def recombine(self) -> None:
        """v and the lower bound from the shares: rounding errors of a pass are forgotten."""
        bound: Any = self.problem.constraints
        cache = self.cache
        if len(cache):
            cache.sort()
            closed = cache.constraints(bound.budget_of(cache.example))
            cache.alpha = closed.feasible(cache.alpha)
            self.stand(closed.combine(cache.alpha), closed.linear(cache.alpha), self.problem.regularizer)
        else:
            self.bound(self.problem.regularizer)

    @property
    def alpha(self) -> Planes:
        return self.cache.planes()

    @property
    def active(self) -> int:
        return int((self.cache.alpha > 0.0).sum())

    @property
    def n_constraints(self) -> int:
        return len(self.cache)

    @property
    def nbytes(self) -> int:
        bound: Any = self.problem.constraints
        return self.cache.nbytes + bound.images.pyramids.nbytes
