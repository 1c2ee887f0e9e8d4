"""Training on more windows than can be stored: search images for hard ones, or work on those at hand.

Ramanan, Algorithm 2: the duality gap says which. Images are searched one after another; what their windows cost beyond
what the cached ones do is the gap that work on the cache could not have closed. Once that is large enough the cache is
worked on; otherwise the search goes on. A pass over all images in which no work was needed has seen the loss of every
window at the same weights: it is the upper bound of the certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...kernels.maps import WeightMap
from ...kernels.rows import scores
from ...problem import Loss, Planes, Problem
from ...regularizers.shape import Shape, refresh, weights_of
from ...solvers.dual_coordinate import DualCoordinate
from ...solvers.pooling import work_on
from ...solvers.searchers import search
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
class Mining:
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
        state = MiningState(problem, cache, shape, shape.bind(np.zeros(problem.n_weights)), rng)
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

    def step(self, problem: Problem, state: MiningState) -> MiningState:
        """One pass over all images, with work on the cache whenever it pays."""
        bound: Any = problem.constraints
        order = state.rng.permutation(len(bound.images))
        chunks = [order[start : start + _CHUNK] for start in range(0, order.size, _CHUNK)]
        most = max(2, min(self.most, state.cache.room // (_SPARE * _CHUNK * self.n_jobs)))
        at, seen, outside = state.weights().copy(), 0.0, 0.0
        losses: list[Loss] = []
        state.moved = False
        searcher: Any = _Searcher(bound, state.cache, most)
        for done, (_, _, found) in enumerate(search(searcher, chunks, state.weights, self.n_jobs), start=1):
            for one in found:  # type: ignore[attr-defined]
                losses.append(one.hard.loss)
                extra = state.take(one)
                seen += extra
                outside += extra
            state.done = done / len(chunks)
            if state.beat is not None:
                state.beat()
            enough = _WORK * max(state.goal, 1e-3) * max(state.lower, outside)
            if outside > enough or len(state.cache) > state.cache.room - state.cache.room // _SPARE:
                state.work(_REST * max(outside, enough))
                outside = 0.0
        state.visited = len(bound.images)
        state.evaluated = None if state.moved else (at, Loss.sum(losses))
        state.work(_REST * outside)
        state.recombine()
        state.estimate = seen / max(abs(state.lower + seen), 1e-300)
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
        windows = example[example >= self.bound.n_positives] - self.bound.n_positives
        return np.bincount(self.bound.images.image_of(windows), minlength=len(self.bound.images))

    def _one(self, i: int, star: Any, w: np.ndarray, listed: int) -> Found:
        hard = self.bound.search(i, star, w, listed)
        new = np.flatnonzero((hard.missing > 0.0) & self.cache.unknown(hard.example, hard.placements))
        new = new[: len(self.bound.objective.in_image[i]) + self.most]
        features = self.bound.model.features(self.bound.images.pyramids[i], hard.placements[new])
        return Found(hard, new, features)


@dataclass
class MiningState:
    """The cache, and the weights that belong to its shares."""

    problem: Problem
    cache: HardExamples
    shape: Shape
    map: WeightMap
    rng: np.random.Generator
    linear: float = 0.0
    lower: float = -np.inf
    estimate: float = np.inf
    goal: float = 0.0
    visited: int = 0
    done: float = 0.0
    moved: bool = False
    stuck: bool = False
    evaluated: tuple[np.ndarray, Loss] | None = None
    beat: Any = None
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
        work = work_on(
            closed,
            cache.norms,
            self.problem.regularizer,
            self.shape,
            self.map,
            cache.alpha,
            self.linear,
            DualCoordinate(),
            self.rng,
        )
        work.run(_PASSES, wanted)
        state = work.state
        self.moved = True
        cache.alpha = state.alpha
        cache.worked_on(state.norms)
        self.linear, self.lower = state.linear, state.lower
        self._remember_slack(closed)

    def _remember_slack(self, closed: Any) -> None:
        missing = 1.0 - self._margins(closed)
        worst = np.maximum.reduceat(missing, closed.first[:-1])
        example = self.cache.example[closed.first[:-1]]
        self._slack = dict(zip(example.tolist(), np.maximum(worst, 0.0).tolist(), strict=True))

    def _margins(self, closed: Any) -> np.ndarray:
        out = np.empty(len(self.cache))
        scores(closed.rows.arrays, np.ascontiguousarray(self.weights()), out)
        return out * np.repeat(closed.side, np.diff(closed.first))

    def recombine(self) -> None:
        """v and the lower bound from the shares: rounding errors of a pass are forgotten."""
        bound: Any = self.problem.constraints
        cache = self.cache
        if len(cache):
            cache.sort()
            closed = cache.constraints(bound.budget_of(cache.example))
            cache.alpha = closed.feasible(cache.alpha)
            self.map.v[:] = closed.combine(cache.alpha)
            self.linear = closed.linear(cache.alpha)
        refresh(self.map)
        self.lower = self.linear - self.problem.regularizer.conjugate(self.map.v)

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

    def weights(self) -> np.ndarray:
        return weights_of(self.map)
