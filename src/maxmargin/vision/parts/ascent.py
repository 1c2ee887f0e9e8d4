"""Dual ascent over the filters of parts: see ``kernels.part_ascent`` for what happens to one image.

A pass asks for the worst rival class of every image, with the best places of all parts, at the filters of the moment.
The image's rivals so far are moved towards these places and the new one joins them. What an image keeps of a rival is
one vector, an average over all places that were good once, instead of a constraint for every combination of places:
there are as many combinations as places to the power of parts. This is the cache of hard examples (Naderi Parizi,
Algorithm 4); a rival that has lost its share leaves it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, cast

import numpy as np

from ...problem import Problem
from ...protocols import Seed
from ...regularizers import GaussianPrior
from ...rounding import UNIT
from ...solvers.searchers import search
from ...solvers.solve import SolverState
from ..kernels import part_ascent as kernels
from .filters import FilterBound, FilterShares, ImageShare

_CHUNK = 32  # images that are searched at the same filters


class _Found(NamedTuple):
    """What a search has found for some images."""

    missing: np.ndarray
    places: np.ndarray
    images: list[ImageShare]
    """What each image keeps, its new rival included,"""
    towards: list[np.ndarray]
    """and the features at the best places, for each of its rivals."""


@dataclass(frozen=True)
class PartAscent:
    """Settings of the solver for ``FilterBound``.

    Parameters
    ----------
    random_state : int, Generator or None
        Order of visits.
    memory : int or None
        Bytes for what images keep of their rivals, enough for one of each image (see ``memory_for_rivals``); where it
        is not enough for all, rivals of an image are averaged.
    n_jobs : int
        Threads that search.
    """

    random_state: Seed = None
    memory: int | None = None
    n_jobs: int = 1

    def start(self, problem: Problem, warm: FilterShares | None = None) -> PartState:
        bound = cast(FilterBound, problem.constraints)
        shares = bound.no_shares() if warm is None else bound.begun_from(warm)
        state = PartState(shares, problem, np.random.default_rng(self.random_state))
        if self.memory is not None:
            one = bound.n_examples * row_bytes(bound.n_weights, bound.responder.dtype)  # rival of every image
            state.most = max(1, self.memory // one)
        state.recombine()
        return state

    def step(self, problem: Problem, state: PartState) -> PartState:
        """One pass over all images."""
        bound = state.bound
        order = state.rng.permutation(np.flatnonzero(bound.budget > 0.0))
        chunks = [order[start : start + _CHUNK] for start in range(0, order.size, _CHUNK)]
        state.alpha.operations += self._roundings(bound)
        gap, done = 0.0, 0
        for ids, _, found in search(state, chunks, lambda: state.w, self.n_jobs):  # type: ignore[arg-type]
            gap += self._visit(state, ids, found)  # type: ignore[arg-type]
            done += ids.size
            state.done = done / order.size
            if state.beat is not None:
                state.beat()
        state.visited = int(order.size)
        state.recombine()
        state.estimate = max(gap, 0.0) / max(abs(state.lower + gap), 1e-300)
        return state

    def _roundings(self, bound: FilterBound) -> float:
        """Of a feature in one pass: moves are rounded once, and where there is little memory rivals are averaged."""
        moved = 1.0 + 4.0 * UNIT / bound.unit
        return moved if self.memory is None else moved + len(bound.table) + 4

    def _visit(self, state: PartState, ids: np.ndarray, found: _Found) -> float:
        """Returns how much of the duality gap is these images', as far as seen."""
        gap, bound, scale = 0.0, state.bound, float(state.regularizer.covariance)
        for p, i in enumerate(ids.tolist()):
            budget, image = float(bound.budget[i]), found.images[p]
            state.alpha.places[i] = found.places[p]
            paid = 0.0
            if len(image):
                paid, change = kernels.visit(
                    image.features, image.loss, image.share, found.towards[p], image.rival >= 0, budget, scale,
                    state.w, bound.n_parts,
                )  # fmt: skip
                state.linear += change
                state.alpha.images[i] = _lighter(image, state.most)
            gap += budget * max(float(found.missing[p]), 0.0) - paid
        return gap


@dataclass
class PartState(SolverState):
    """Dual variables, and the filters that belong to them."""

    alpha: FilterShares
    problem: Problem
    rng: np.random.Generator
    w: np.ndarray = field(default_factory=lambda: np.empty(0))
    linear: float = 0.0
    most: int | None = None
    """Rivals that an image may keep."""

    releases_gil = True

    @property
    def bound(self) -> FilterBound:
        return cast(FilterBound, self.problem.constraints)

    @property
    def regularizer(self) -> GaussianPrior:
        return cast(GaussianPrior, self.problem.regularizer)

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> _Found:
        """The worst rival of each image joins those that it has, all of them with their parts at the best places."""
        bound = self.bound
        worst, missing, places = bound.search(ids, w)
        known = [self.alpha.images[i] for i in ids.tolist()]
        rivals = [
            np.append(image.rival, rival) if lacks > 0.0 and rival not in image.rival else image.rival
            for image, rival, lacks in zip(known, worst.tolist(), missing.tolist(), strict=True)
        ]
        sizes = [some.size for some in rivals]
        position, ends = np.repeat(np.arange(ids.size), sizes), np.cumsum(sizes)
        real = np.maximum(np.concatenate(rivals), 0)  # what was averaged over classes has no best places
        towards = bound.features(ids[position], real, places[position])
        losses = bound.losses(ids[position], real)
        images = [
            image
            if rival.size == len(image)
            else ImageShare(
                rival,
                np.append(image.share, 0.0),
                np.append(image.loss, losses[end - 1]),
                np.concatenate([image.features, towards[end - 1 : end]]),
            )
            for image, rival, end in zip(known, rivals, ends.tolist(), strict=True)
        ]
        return _Found(missing, places, images, np.split(towards, ends[:-1]))

    def recombine(self) -> None:
        """The filters and the lower bound from the dual variables: rounding errors of a pass are forgotten."""
        shares = self.bound.feasible(self.alpha)
        self.linear, v = self.bound.linear(shares), self.bound.combine(shares)
        self.w = self.regularizer.weights(v)
        self.lower = self.linear - self.regularizer.conjugate(v)

    @property
    def active(self) -> int:
        return sum(len(image) > 0 for image in self.alpha.images)

    @property
    def n_constraints(self) -> int:
        return len(self.alpha)

    @property
    def nbytes(self) -> int:
        return sum(image.nbytes for image in self.alpha.images) + self.alpha.places.nbytes

    def weights(self) -> np.ndarray:
        return self.w


def row_bytes(n_weights: int, dtype: np.dtype) -> int:
    """What an image keeps of one rival: features, and three numbers besides."""
    return n_weights * np.dtype(dtype).itemsize + 3 * 8


def _lighter(image: ImageShare, most: int | None) -> ImageShare:
    """Without rivals that have no share; where there are still too many, those with the least are averaged."""
    order = np.flatnonzero(image.share > 0.0)
    if most is not None and order.size > most:
        order = order[np.argsort(-image.share[order], kind="stable")]
        rest = order[most - 1 :]
        total = image.share[rest].sum()
        part = image.share[rest] / total
        order = order[: most - 1]
        return ImageShare(
            np.append(image.rival[order], -1),
            np.append(image.share[order], total),
            np.append(image.loss[order], part @ image.loss[rest]),
            np.concatenate([image.features[order], (part @ image.features[rest])[None].astype(image.features.dtype)]),
        )
    if order.size == len(image):
        return image
    return ImageShare(image.rival[order], image.share[order], image.loss[order], image.features[order])
