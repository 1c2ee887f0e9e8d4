"""Deformable part models: what they are made of, and where each piece stands among the weights.

A component is a root filter on coarse cells, parts on cells half as large, and a bias. At a place of the root

    f = bias + root·cells + Σ_p sign_p · max_z (filter_p·cells(z) − cost_p·(dy², dy, dx², dx)),  (dy, dx) = z − anchor_p

with sign +1 for parts that are evidence and −1 for parts that are counter-evidence (Felzenszwalb et al. 2010; Naderi
Parizi, chapter 4). All of it is linear in the weights once the places are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...persistence import storable_part
from ...regularizers import Bounded, GaussianPrior
from ..features.cell_pyramid import Level
from ..features.hog import MIRRORED, mirrored
from ..kernels.hog import LENGTH

_DEFORMATION = 4  # dy², dy, dx², dx
_LEAST = 0.1  # of the quadratic costs that are expected


@storable_part("sign", rows="int", columns="int", top="int", left="int")
@dataclass(frozen=True)
class Part:
    """A filter of ``rows`` × ``columns`` fine cells, best placed at ``top``, ``left`` of the root, in fine cells."""

    rows: int
    columns: int
    top: int
    left: int
    sign: int = 1


@storable_part(rows="int", columns="int", parts="tuple")
@dataclass(frozen=True)
class Component:
    """A root filter of ``rows`` × ``columns`` coarse cells, and its parts."""

    rows: int
    columns: int
    parts: tuple[Part, ...] = ()

    @property
    def n_weights(self) -> int:
        cells = self.rows * self.columns + sum(part.rows * part.columns for part in self.parts)
        return cells * LENGTH + _DEFORMATION * len(self.parts) + 1


@dataclass(frozen=True)
class Prior:
    """What is believed of deformation costs and biases before any image is seen.

    Parameters
    ----------
    stiffness, negative_stiffness : float
        The quadratic costs that parts, and negative parts, begin with and are drawn to, per fine cell squared. They
        stay above a tenth of that: a part that may be anywhere says nothing, and below zero it has no best place.
    firmness : float
        How strongly: 1/variance, where filters have 1.
    bias_variance : float
    """

    stiffness: float = 0.002
    negative_stiffness: float = 0.002
    firmness: float = 10.0
    bias_variance: float = 100.0

    def cost(self, part: Part) -> np.ndarray:
        """The mean of a part's costs, (dy², dy, dx², dx)."""
        return (self.stiffness if part.sign > 0 else self.negative_stiffness) * np.array([1.0, 0.0, 1.0, 0.0])


class ViewPart(NamedTuple):
    """A part as it is searched for: its filter, its costs, and where it is expected."""

    filter: np.ndarray
    cost: np.ndarray
    top: int
    left: int
    sign: int


class View(NamedTuple):
    """A component at given weights, as it is or mirrored."""

    root: np.ndarray
    bias: float
    parts: list[ViewPart]


@storable_part(components="tuple", mirrored="bool")
@dataclass(frozen=True)
class StarModel:
    """A mixture of components; where ``mirrored`` is set, each is searched for in mirrored form as well.

    A *view* is a component in one of its forms, 2c for component c as it is and 2c + 1 for its mirror image. Placements
    are rows of int32: view, level of the pyramid, row and column of the root in coarse cells, then row and column of
    every part in fine cells.

    >>> model = StarModel((Component(5, 6, (Part(4, 4, 0, 0), Part(4, 4, 2, 3, sign=-1))),))
    >>> model.views, model.n_weights, model.placement_length
    ([0], 1993, 8)
    """

    components: tuple[Component, ...]
    mirrored: bool = False

    @property
    def n_weights(self) -> int:
        return sum(component.n_weights for component in self.components)

    def check(self, w: np.ndarray) -> None:
        """Complain of parts that reach beyond their root, and of weights that are not the model's."""
        for component in self.components:
            within = component.rows >= 1 and component.columns >= 1
            for part in component.parts:
                rows, columns = 2 * component.rows - part.rows, 2 * component.columns - part.columns
                within = within and part.rows >= 1 and part.columns >= 1 and part.sign in (1, -1)
                within = within and 0 <= part.top <= rows and 0 <= part.left <= columns
            if not within:
                raise ValueError(f"there is no such {component!r}")
        if not self.components or w.shape != (self.n_weights,):
            raise ValueError(f"the model has {self.n_weights} weights, got {w.shape}")
        costs = [w[self.cost_at(c, p)] for c, held in enumerate(self.components) for p in range(len(held.parts))]
        if any(min(cost[0], cost[2]) <= 0.0 for cost in costs):
            raise ValueError("parts may move for nothing")

    @property
    def views(self) -> list[int]:
        """Those that are searched for."""
        return list(range(0, 2 * len(self.components), 1 if self.mirrored else 2))

    @property
    def most_parts(self) -> int:
        return max(len(component.parts) for component in self.components)

    @property
    def placement_length(self) -> int:
        return 4 + 2 * self.most_parts

    @property
    def has_parts(self) -> bool:
        return self.most_parts > 0

    @property
    def has_negative_parts(self) -> bool:
        return any(part.sign < 0 for component in self.components for part in component.parts)

    def size_of(self, view: int) -> tuple[int, int]:
        component = self.components[view // 2]
        return component.rows, component.columns

    def parts_of(self, view: int) -> tuple[Part, ...]:
        """Parts where they are expected in this view."""
        c, flipped = view // 2, view % 2 == 1
        component = self.components[c]
        if not flipped:
            return component.parts
        return tuple(
            Part(part.rows, part.columns, part.top, 2 * component.columns - part.left - part.columns, part.sign)
            for part in component.parts
        )

    # Where things stand among the weights.

    def _begin(self, c: int) -> int:
        return sum(component.n_weights for component in self.components[:c])

    def root_at(self, c: int) -> slice:
        component, begin = self.components[c], self._begin(c)
        return slice(begin, begin + component.rows * component.columns * LENGTH)

    def filter_at(self, c: int, p: int) -> slice:
        begin = self.root_at(c).stop
        sizes = [part.rows * part.columns * LENGTH for part in self.components[c].parts]
        return slice(begin + sum(sizes[:p]), begin + sum(sizes[: p + 1]))

    def cost_at(self, c: int, p: int) -> slice:
        begin = self.bias_at(c) - _DEFORMATION * (len(self.components[c].parts) - p)
        return slice(begin, begin + _DEFORMATION)

    def bias_at(self, c: int) -> int:
        return self._begin(c) + self.components[c].n_weights - 1

    def root(self, w: np.ndarray, c: int) -> np.ndarray:
        component = self.components[c]
        return w[self.root_at(c)].reshape(component.rows, component.columns, LENGTH)

    def filter(self, w: np.ndarray, c: int, p: int) -> np.ndarray:
        part = self.components[c].parts[p]
        return w[self.filter_at(c, p)].reshape(part.rows, part.columns, LENGTH)

    def view(self, w: np.ndarray, view: int) -> View:
        """The filters of a view at given weights."""
        c, flipped = view // 2, view % 2 == 1
        root, parts = self.root(w, c), []
        for p, part in enumerate(self.parts_of(view)):
            found, cost = self.filter(w, c, p), w[self.cost_at(c, p)].copy()
            if flipped:
                found = mirrored(found)
                cost[3] = -cost[3]
            parts.append(ViewPart(found, cost, part.top, part.left, part.sign))
        return View(mirrored(root) if flipped else root, float(w[self.bias_at(c)]), parts)

    def features(self, levels: Sequence[Level], placements: np.ndarray) -> np.ndarray:
        """φ of placements in one image, float32 (n, n_weights): the score of a placement is w·φ."""
        out = np.zeros((len(placements), self.n_weights), np.float32)
        for view, k, ids in by_view_and_level(placements):
            some = np.zeros((ids.size, self.n_weights), np.float32)
            self._fill(some, view, levels[k], placements[ids])
            out[ids] = some
        return out

    def _fill(self, out: np.ndarray, view: int, level: Level, placements: np.ndarray) -> None:
        c, flipped = view // 2, view % 2 == 1
        component = self.components[c]
        row, column = placements[:, 2].astype(np.int64), placements[:, 3].astype(np.int64)
        out[:, self.root_at(c)] = _cut(level.coarse, row, column, component, flipped)
        for p, part in enumerate(self.parts_of(view)):
            y, x = placements[:, 4 + 2 * p].astype(np.int64), placements[:, 5 + 2 * p].astype(np.int64)
            assert level.fine is not None
            out[:, self.filter_at(c, p)] = np.float32(part.sign) * _cut(level.fine, y, x, part, flipped)
            dy, dx = y - (2 * row + part.top), x - (2 * column + part.left)
            if flipped:
                dx = -dx
            out[:, self.cost_at(c, p)] = -part.sign * np.stack([dy * dy, dy, dx * dx, dx], axis=1)
        out[:, self.bias_at(c)] = 1.0

    def regularizer(self, prior: Prior) -> Bounded:
        """Ω: ½‖filters‖², and what ``prior`` says of deformation costs and biases."""
        mean, variance = np.zeros(self.n_weights), np.ones(self.n_weights)
        quadratic: list[int] = []
        for c, component in enumerate(self.components):
            variance[self.bias_at(c)] = prior.bias_variance
            for p, part in enumerate(component.parts):
                at = self.cost_at(c, p)
                mean[at], variance[at] = prior.cost(part), 1.0 / prior.firmness
                quadratic += [at.start, at.start + 2]
        return Bounded(_LEAST * mean[quadratic], np.array(quadratic, np.int64), GaussianPrior(mean, variance))


def _cut(cells: np.ndarray, row: np.ndarray, column: np.ndarray, of: Part | Component, flipped: bool) -> np.ndarray:
    """Windows of cells at these places, (n, numbers): of the mirrored image if the view is flipped."""
    across = np.arange(of.columns)[:: -1 if flipped else 1]
    windows = cells[row[:, None, None] + np.arange(of.rows)[:, None], column[:, None, None] + across]
    return (windows[..., MIRRORED] if flipped else windows).reshape(row.size, -1)


def by_view_and_level(placements: np.ndarray) -> Iterator[tuple[int, int, np.ndarray]]:
    """View, level, and which placements have both, for all of both that occur."""
    key = (placements[:, 0].astype(np.int64) << 32) + placements[:, 1]
    for one in np.unique(key).tolist():
        ids = np.flatnonzero(key == one)
        view, level = placements[ids[0], :2].tolist()
        yield view, level, ids
