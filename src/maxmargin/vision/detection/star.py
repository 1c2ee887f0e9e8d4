"""Searching for a deformable part model in a pyramid: every place of the root, with all parts at their best.

Parts depend on each other only through the root. So each is correlated with the fine cells, its scores are spread by a
distance transform, and the best score that it can add to a root is read off at the place where it is expected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...rounding import SINGLE, gamma
from ..features.cell_pyramid import Level
from ..kernels.distance_transform import spread
from ..kernels.windows import held_scores
from .correlation import Correlator
from .model import StarModel, ViewPart

_STEP = 2  # fine cells to a coarse one
_HULL = 2.0**-48  # by which share of the numbers on it a hull may be off, for each of its points: they are float64


@dataclass(frozen=True)
class LevelScores:
    """Some views at all places of a level: scores (n_views, rows, columns), −∞ where the root would leave the grid.

    ``at_row`` and ``at_column`` (n_views, n_parts, rows, columns) say where the parts are, ``lowest`` is the least
    that each of them, (n_views, n_parts), adds to any root, or takes from it.
    """

    views: Sequence[int]
    scores: np.ndarray
    at_row: np.ndarray
    at_column: np.ndarray
    lowest: np.ndarray

    def at(self, v: int, p: int) -> Places:
        """Where one part is."""
        return self.at_row[v, p], self.at_column[v, p]

    def placements(self, k: int, which: np.ndarray, row: np.ndarray, column: np.ndarray) -> np.ndarray:
        """Placements with these roots, of level number k; ``which`` counts the views that were asked for."""
        out = np.zeros((which.size, 4 + 2 * self.at_row.shape[1]), np.int32)
        out[:, 0], out[:, 1], out[:, 2], out[:, 3] = np.asarray(self.views)[which], k, row, column
        out[:, 4::2] = self.at_row[which, :, row, column]
        out[:, 5::2] = self.at_column[which, :, row, column]
        return out

    def above(self, k: int, scores: np.ndarray, threshold: float, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Placements of the best views at places that score more than a threshold, and their scores; of more than
        ``most`` the best. ``scores`` are those of all views, as they count here."""
        best = scores.max(axis=0)
        row, column = np.nonzero(best > threshold)
        score = best[row, column]
        if score.size > most:
            top = np.argpartition(-score, most)[:most]
            row, column, score = row[top], column[top], score[top]
        return self.placements(k, scores[:, row, column].argmax(axis=0), row, column), score


class Star:
    """A model at given weights, ready to be searched for.

    Parameters
    ----------
    model : StarModel
    w : float array (n_weights,)
    views : list of int or None
        What to search for; by default all views of the model.
    """

    def __init__(self, model: StarModel, w: np.ndarray, views: Sequence[int] | None = None) -> None:
        self.model = model
        self.views = model.views if views is None else list(views)
        self._filters = [model.view(w, v) for v in self.views]
        self._roots = Correlator([view.root for view in self._filters])
        self._parts = Correlator([part.filter for view in self._filters for part in view.parts])
        self._against = [
            (v, p, part) for v, view in enumerate(self._filters) for p, part in enumerate(view.parts) if part.sign < 0
        ]
        self._negative = Correlator([part.filter for _, _, part in self._against])

    def responses(self, level: Level) -> Responses:
        """What all filters give at all places of a level: most of the work."""
        return self._roots(level.coarse), self._parts(level.fine) if level.fine is not None else []

    def scores(self, level: Level, held: LevelScores | None = None, responses: Responses | None = None) -> LevelScores:
        """All places of the roots, with all parts at their best.

        Where places of negative parts are ``held``, as other weights put them, it is a convex upper bound of the
        scores. ``responses`` are those of the level, if they are known already.
        """
        found = self._nothing(level)
        roots, parts = self.responses(level) if responses is None else responses
        rest = iter(parts)
        for v, (view, root) in enumerate(zip(self._filters, roots, strict=True)):
            total = root + np.float32(view.bias)
            for p, part in enumerate(view.parts):
                response = next(rest)
                if total.size:
                    where = held.at(v, p) if held is not None and part.sign < 0 else None
                    best = _best_of(part, response, total.shape, found.at(v, p), where)
                    found.lowest[v, p] = best.min()
                    total += np.float32(part.sign) * best
            found.scores[v, : total.shape[0], : total.shape[1]] = total
        return found

    def negative_places(self, level: Level) -> LevelScores:
        """Where negative parts are, for all places of the roots; nothing else is looked for."""
        found = self._nothing(level)
        responses = self._negative(level.fine) if level.fine is not None else []
        for (v, p, part), response in zip(self._against, responses, strict=False):
            rows, columns = self.model.size_of(self.views[v])
            shape = (level.coarse.shape[0] - rows + 1, level.coarse.shape[1] - columns + 1)
            if min(shape) > 0:
                found.lowest[v, p] = _best_of(part, response, shape, found.at(v, p), None).min()
        return found

    def rounding(self, level: Level, found: LevelScores) -> float:
        """By how much a score of a level may be above what was found."""
        worst = 0.0
        for v, (view, (size, error)) in enumerate(zip(self._filters, self._root_roundings, strict=True)):
            parts = self._part_bounds(v, level, found)
            terms = size * level.longest[0] + abs(view.bias) + sum(most for most, _ in parts)
            errors = error * level.longest[0] + sum(error for _, error in parts)
            worst = max(worst, errors + gamma(len(parts) + 3, SINGLE) * terms)
        return worst

    def negative_rounding(self, v: int, level: Level, found: LevelScores) -> float:
        """How much more the negative parts of a view may take from a root at places other than those found."""
        parts = zip(self._part_bounds(v, level, found), self._filters[v].parts, strict=True)
        return 2.0 * sum(error for (_, error), part in parts if part.sign < 0)

    def _part_bounds(self, v: int, level: Level, found: LevelScores) -> list[tuple[float, float]]:
        if level.fine is None:
            return []
        n = 2 * sum(level.fine.shape[:2]) + self._reach
        lowest = found.lowest[v].tolist()
        return [
            part.bounds(level.longest[1], low, n) for part, low in zip(self._part_roundings[v], lowest, strict=False)
        ]

    @cached_property
    def _root_roundings(self) -> list[tuple[float, float]]:
        """Sizes of roots, and by how much their responses may be off, for cells of norm 1."""
        return [_rounding(view.root) for view in self._filters]

    @cached_property
    def _part_roundings(self) -> list[list[_PartRounding]]:
        return [[_PartRounding(part) for part in view.parts] for view in self._filters]

    @cached_property
    def _reach(self) -> int:
        """How far a part is expected from its root."""
        return max((abs(part.top) + abs(part.left) for view in self._filters for part in view.parts), default=0)

    def _nothing(self, level: Level) -> LevelScores:
        rows, columns = level.coarse.shape[:2]
        places = np.zeros((2, len(self.views), self.model.most_parts, rows, columns), np.int16)
        scores = np.full((len(self.views), rows, columns), -np.inf, np.float32)
        return LevelScores(self.views, scores, places[0], places[1], np.zeros(places.shape[1:3]))


def _best_of(
    part: ViewPart, response: np.ndarray, shape: tuple[int, ...], at: Places, held: Places | None
) -> np.ndarray:
    """What a part adds to the roots of a level at its best place, or where it is held; ``at`` is told the place."""
    best = np.empty(shape, np.float32)
    row, column = np.empty(shape, np.int16), np.empty(shape, np.int16)
    inside = (slice(0, shape[0]), slice(0, shape[1]))
    if held is None:
        spread(response, part.cost, part.top, part.left, _STEP, best, row, column)
    else:
        row[:], column[:] = held[0][inside], held[1][inside]
        held_scores(response, part.cost, part.top, part.left, _STEP, row, column, best)
    at[0][inside], at[1][inside] = row, column
    return best


# What rounding may change in scores of windows, which are computed in float32. Products are summed in any order, with
# or without fused multiplications, but one by one: a response of a filter is a sum over rows of such sums, and Σ|w||x|
# is at most Σ ‖cell of the filter‖ times the largest ‖cell‖ of the grid.


def _rounding(weights: np.ndarray) -> tuple[float, float]:
    """Σ ‖cell‖ of a filter, and by how much its responses may be off where cells have norm 1."""
    size = float(np.sqrt(np.einsum("ijk,ijk->ij", weights, weights)).sum())
    rows, columns, depth = weights.shape
    return size, gamma(rows + columns * depth + 2, SINGLE) * size


class _PartRounding:
    """What rounding may change in what a part adds to a root, anywhere on a grid."""

    def __init__(self, part: ViewPart) -> None:
        quadratic, slope = part.cost[0::2], np.abs(part.cost[1::2])
        self.size, self.response = _rounding(part.filter)
        self.bent, self.steep = float(quadratic.max()), float(slope.max())
        self.placed = bool((quadratic > 0.0).all())  # or it would have no best place
        self.gain = float((slope**2 / (4.0 * quadratic)).sum()) if self.placed else np.inf
        """A price may be below zero by so much."""

    def bounds(self, longest: float, lowest: float, n: int) -> tuple[float, float]:
        """The most that the part adds or takes, and by how much what was computed may be off.

        Parameters
        ----------
        longest : float
            The largest ‖cell‖ of the grid.
        lowest : float
            The least that the part adds to any root.
        n : int
            As far as a part can be from its anchor, in cells.
        """
        if not self.placed:
            return np.inf, np.inf
        most = self.size * longest + self.gain + max(0.0, -lowest)
        # What is computed is response − price − price, and the best place is not further than ``most`` can pay for.
        price = most + self.gain
        far = (self.bent * n + self.steep) * n
        return most, self.response * longest + gamma(8, SINGLE) * price + _HULL * n * (far + price)


Places = tuple[np.ndarray, np.ndarray]
"""Rows and columns of a part, for all places of a root."""

Responses = tuple[list[np.ndarray], list[np.ndarray]]
"""Of the root of every view, and of the parts of all of them, one after the other."""
