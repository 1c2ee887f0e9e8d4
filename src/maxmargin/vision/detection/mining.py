"""Training on more windows than can be stored: search images for hard ones, or work on those at hand.

The loop of ``solvers.explore``; a view is a few images, the pool a cache of hard examples. Images are searched one
after another; what their windows cost beyond what the cached ones do is the gap that work on the cache could not have
closed. Once that is large enough the cache is worked on; otherwise the search goes on. A pass over all images in which
no work was needed has seen the loss of every window at the same weights: it is the upper bound of the certificate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np

from ...constraints.shared import SharedSlack
from ...kernels.rows import scores
from ...problem import Planes, Problem, Rows, TotalLoss
from ...protocols import Seed
from ...solvers.dual_coordinate import DualCoordinate
from ...solvers.explore import Explore, Explored
from ...solvers.searchers import search
from ...solvers.solve import Weighted
from .objective import Hard, WindowBound
from .star import Star
from .training_images import placed

_CHUNK = 4  # images that are searched at the same weights
_WORK = 0.5  # work begins once as much of the goal was seen outside the cache,
_REST = 0.2  # and ends once the cache has this share of it left
_SPARE = 4  # one part in as many of the cache is kept free for what the next chunks bring
_PASSES = 30  # over the cache, at most
_IDLE = 4  # how often an example may be worked on without a share before it leaves


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
    random_state: Seed = None

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
        bound = cast("WindowBound", problem.constraints)
        room = self.room(bound.n_weights, bound.n_positives)
        cache = HardExamples(bound.n_weights, bound.model.placement_length, bound.n_positives, room)
        shape = problem.regularizer.shape(problem.n_weights)
        rng = np.random.default_rng(self.random_state)
        at = shape.bind(np.zeros(problem.n_weights))
        state = MiningState(problem=problem, windows=bound, cache=cache, shape=shape, map=at, rng=rng)
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
        order = state.rng.permutation(len(state.windows.images))
        chunks = [order[start : start + _CHUNK] for start in range(0, order.size, _CHUNK)]
        most = max(2, min(self.most, state.cache.room // (_SPARE * _CHUNK * self.n_jobs)))
        searcher: Any = _Searcher(state.windows, state.cache, most)
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
        state.visited = len(state.windows.images)
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

    def _one(self, i: int, star: Star, w: np.ndarray, listed: int) -> Found:
        hard = self.bound.search(i, star, w, listed)
        new = np.flatnonzero((hard.missing > 0.0) & self.cache.unknown(hard.example, hard.placements))
        new = new[: len(self.bound.objective.in_image[i]) + self.most]
        features = self.bound.model.features(self.bound.images.pyramids[i], hard.placements[new])
        return Found(hard, new, features)


class HardExamples:
    """Constraints at hand, each a placement with its features and its share; several may belong to one example.

    Parameters
    ----------
    n_weights, placement_length : int
    n_positives : int
        Examples below that number are positive: their scores shall be high, those of the others low.
    room : int
        Most constraints.
    """

    def __init__(self, n_weights: int, placement_length: int, n_positives: int, room: int) -> None:
        self.n_weights, self.n_positives, self.room = n_weights, n_positives, room
        self.example = np.empty(0, np.int64)
        self.placement = np.empty((0, placement_length), np.int32)
        self.alpha = np.empty(0)
        self.idle = np.empty(0, np.int64)
        self.slot = np.empty(0, np.int32)
        """Where the features stand in the store."""
        self.norms = np.empty(0, np.float32)
        self._store = np.empty((0, n_weights), np.float32)
        self._free: list[int] = []
        self.known: set[bytes] = set()

    def __len__(self) -> int:
        return self.alpha.size

    @property
    def nbytes(self) -> int:
        return len(self) * (self._store.itemsize * self.n_weights + 64 + 4 * self.placement.shape[1])

    @staticmethod
    def key(example: int, placement: np.ndarray) -> bytes:
        return example.to_bytes(8, "little") + placement.tobytes()

    def unknown(self, example: np.ndarray, placements: np.ndarray) -> np.ndarray:
        """Which of these are not at hand, as a mask."""
        pairs = zip(example.tolist(), placements, strict=True)
        return np.array([self.key(i, place) not in self.known for i, place in pairs], bool)

    def add(
        self, example: np.ndarray, placements: np.ndarray, features: np.ndarray, alpha: float | np.ndarray = 0.0
    ) -> None:
        """Take in constraints that are not at hand yet, with their shares."""
        n = example.size
        self._make_room(n)
        slots = [self._free.pop() for _ in range(n)]
        self._store[slots] = features
        self.example = np.concatenate([self.example, example])
        self.placement = np.concatenate([self.placement, placements])
        self.alpha = np.concatenate([self.alpha, np.broadcast_to(alpha, n)])
        self.idle = np.concatenate([self.idle, np.zeros(n, np.int64)])
        self.slot = np.concatenate([self.slot, np.array(slots, np.int32)])
        self.norms = np.concatenate([self.norms, np.full(n, -1.0, np.float32)])
        self.known.update(self.key(i, place) for i, place in zip(example.tolist(), placements, strict=True))

    def _make_room(self, n: int) -> None:
        """Grow the store: to twice its size while there is room, and then by no more than is needed."""
        short = n - len(self._free)
        if short > 0:
            size = len(self._store)
            wanted = max(size + short, min(2 * size, self.room))
            grown = np.empty((wanted, self.n_weights), np.float32)
            grown[:size] = self._store
            self._store = grown
            self._free += list(range(wanted - 1, size - 1, -1))

    def forget_idle(self, coming: int = 0) -> None:
        """Constraints without a share leave after a while; earlier where there is too little room for those to come."""
        for patience in (_IDLE, 2, 1):
            stay = (self.alpha > 0.0) | (self.idle < patience) | (self.example < self.n_positives)
            if stay.sum() + coming <= self.room or patience == 1:
                break
        if stay.all():
            return
        for at in np.flatnonzero(~stay).tolist():
            self.known.discard(self.key(int(self.example[at]), self.placement[at]))
            self._free.append(int(self.slot[at]))
        self._select(stay)

    def _select(self, chosen: np.ndarray) -> None:
        """Only these, a mask or places, in this order."""
        self.example, self.placement, self.alpha = self.example[chosen], self.placement[chosen], self.alpha[chosen]
        self.idle, self.slot, self.norms = self.idle[chosen], self.slot[chosen], self.norms[chosen]

    def constraints(self, bound: WindowBound) -> SharedSlack:
        """The cached problem: constraints of one example, whose C_i the bound knows, next to each other."""
        self._select(np.argsort(self.example, kind="stable"))
        first = np.flatnonzero(np.diff(self.example, prepend=-1, append=-1))
        rows = Rows(
            np.empty(0, np.int64),
            np.empty(0, np.int32),
            self._store.reshape(-1),
            len(self._store),
            self.n_weights,
            plus=self.slot,
            minus=np.full(len(self), -1, np.int32),
        )
        heads = first[:-1]
        side = np.where(self.example[heads] < self.n_positives, 1, -1).astype(np.int8)
        budget = bound.budget_of(self.example[heads])
        return SharedSlack(rows, np.ones(len(self)), first, budget, side)

    def worked_on(self, alpha: np.ndarray, norms: np.ndarray) -> None:
        self.alpha, self.norms = alpha, norms
        self.idle = np.where(alpha > 0.0, 0, self.idle + 1)

    def planes(self) -> Planes:
        """The shares, without features."""
        some = self.alpha > 0.0
        return placed(self.example[some], self.placement[some], self.alpha[some])


@dataclass(kw_only=True)
class MiningState(Explored, Weighted):
    """The cache, and the weights that belong to its shares."""

    problem: Problem
    windows: WindowBound
    """The constraints of the problem."""
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
        hard = found.hard
        budget = self.windows.budget_of(hard.example)
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
        cache = self.cache
        cache.forget_idle(cache.room // _SPARE)
        if not len(cache):
            return
        closed = cache.constraints(self.windows)
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
        cache = self.cache
        if len(cache):
            closed = cache.constraints(self.windows)
            cache.alpha = closed.feasible(cache.alpha)
            self.stand(closed.combine(cache.alpha), closed.linear(cache.alpha), self.problem.regularizer)
        else:
            self.update_lower(self.problem.regularizer)

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
        return self.cache.nbytes + self.windows.images.pyramids.nbytes
