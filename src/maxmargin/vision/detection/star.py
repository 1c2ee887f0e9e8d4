"""Searching for a deformable part model in a pyramid: every place of the root, with all parts at their best.

Parts depend on each other only through the root. So each is correlated with the fine cells, its scores are spread by a
distance transform, and the best score that it can add to a root is read off at the place where it is expected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...kernels.distance_transform import spread
from ...kernels.windows import held_scores
from ..features.cell_pyramid import Level
from .correlation import Correlator
from .model import StarModel

_STEP = 2  # fine cells to a coarse one


@dataclass(frozen=True)
class LevelScores:
    """Some views at all places of a level: scores (n_views, rows, columns), −∞ where the root would leave the grid.

    ``at_row`` and ``at_column`` (n_views, n_parts, rows, columns) say where the parts are.
    """

    views: Sequence[int]
    scores: np.ndarray
    at_row: np.ndarray
    at_column: np.ndarray

    def placements(self, k: int, which: np.ndarray, row: np.ndarray, column: np.ndarray) -> np.ndarray:
        """Placements with these roots, of level number k; ``which`` counts the views that were asked for."""
        out = np.zeros((which.size, 4 + 2 * self.at_row.shape[1]), np.int32)
        out[:, 0], out[:, 1], out[:, 2], out[:, 3] = np.asarray(self.views)[which], k, row, column
        out[:, 4::2] = self.at_row[which, :, row, column]
        out[:, 5::2] = self.at_column[which, :, row, column]
        return out


class Star:
    """A model at given weights, ready to be searched for.

    Parameters
    ----------
    model : StarModel
    w : float array (n_weights,)
    held : Star or None
        The same model at other weights, which say where negative parts are: the convex upper bound of the scores.
    views : list of int or None
        What to search for; by default all views of the model.
    """

    def __init__(
        self, model: StarModel, w: np.ndarray, held: Star | None = None, views: Sequence[int] | None = None
    ) -> None:
        self.model, self.held = model, held if model.has_negative_parts else None
        self.views = model.views if views is None else list(views)
        self._filters = [model.view(w, v) for v in self.views]
        self._roots = Correlator([view.root for view in self._filters])
        self._parts = Correlator([part.filter for view in self._filters for part in view.parts])

    def scores(self, level: Level) -> LevelScores:
        rows, columns = level.coarse.shape[:2]
        n_parts = self.model.most_parts
        scores = np.full((len(self.views), rows, columns), -np.inf, np.float32)
        at_row = np.zeros((len(self.views), n_parts, rows, columns), np.int16)
        at_column = np.zeros_like(at_row)
        held = None if self.held is None else self.held.scores(level)
        responses = iter(self._parts(level.fine)) if level.fine is not None else iter(())
        for v, (view, root) in enumerate(zip(self._filters, self._roots(level.coarse), strict=True)):
            total = root + np.float32(view.bias)
            inside = (slice(0, total.shape[0]), slice(0, total.shape[1]))
            for p, part in enumerate(view.parts):
                response = next(responses)
                if not total.size:
                    continue
                best = np.empty(total.shape, np.float32)
                y, x = np.empty(total.shape, np.int16), np.empty(total.shape, np.int16)
                if part.sign < 0 and held is not None:
                    y[:], x[:] = held.at_row[v, p][inside], held.at_column[v, p][inside]
                    held_scores(response, part.cost, part.top, part.left, _STEP, y, x, best)
                else:
                    spread(response, part.cost, part.top, part.left, _STEP, best, y, x)
                total += np.float32(part.sign) * best
                at_row[v, p][inside], at_column[v, p][inside] = y, x
            scores[v][inside] = total
        return LevelScores(self.views, scores, at_row, at_column)
