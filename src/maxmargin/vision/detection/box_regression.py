"""Boxes from placements: where the edges of an object are, given where its root and its parts are.

For each component the four edges, measured from the root in units of its size, are a linear function of how far the
parts are from where they are expected (Felzenszwalb et al. 2010, §7). It is learned from the training boxes by ridge
regression, and drawn to the root itself where there are few of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...persistence import storable_part
from .model import StarModel

_RIDGE = 10.0  # in boxes, for a part that is a quarter of the root's size off


@storable_part(coefficients="float[c, p, 4]")
@dataclass(frozen=True)
class BoxRegression:
    """Coefficients (n_components, 1 + 2·n_parts, 4): of the offset and of the parts' displacements, for each edge."""

    coefficients: np.ndarray

    @classmethod
    def learned(cls, model: StarModel, placements: np.ndarray, roots: np.ndarray, boxes: np.ndarray) -> BoxRegression:
        """From placements of training examples and the boxes that were given for them."""
        n_inputs = 1 + 2 * model.most_parts
        table = np.zeros((len(model.components), n_inputs, 4))
        inputs = _inputs(model, placements)
        targets = _turned((boxes - roots) / _sizes(roots), placements)
        component = placements[:, 0] // 2
        price = _RIDGE * np.diag([0.1, *[0.25**2] * (n_inputs - 1)])
        for c in range(len(table)):
            x, y = inputs[component == c], targets[component == c]
            table[c] = np.linalg.solve(x.T @ x + price, x.T @ y)
        return cls(table)

    def boxes(self, model: StarModel, placements: np.ndarray, roots: np.ndarray) -> np.ndarray:
        """The boxes that belong to placements; those of the roots, where a part is so far off that no box is left."""
        inputs = _inputs(model, placements)
        relative = np.einsum("ni,nij->nj", inputs, self.coefficients[placements[:, 0] // 2])
        found = roots + _turned(relative, placements) * _sizes(roots)
        return np.where((found[:, :2] < found[:, 2:]).all(axis=1, keepdims=True), found, roots)


def _inputs(model: StarModel, placements: np.ndarray) -> np.ndarray:
    """1, and displacements of the parts (down, and away from the side that is left before mirroring)."""
    out = np.zeros((len(placements), 1 + 2 * model.most_parts))
    out[:, 0] = 1.0
    for view in np.unique(placements[:, 0]).tolist():
        ids = np.flatnonzero(placements[:, 0] == view)
        rows, columns = model.size_of(view)
        row, column = placements[ids, 2], placements[ids, 3]
        for p, part in enumerate(model.parts_of(view)):
            out[ids, 1 + 2 * p] = (placements[ids, 4 + 2 * p] - 2 * row - part.top) / (2 * rows)
            x = (placements[ids, 5 + 2 * p] - 2 * column - part.left) / (2 * columns)
            out[ids, 2 + 2 * p] = -x if view % 2 else x
    return out


def _sizes(roots: np.ndarray) -> np.ndarray:
    """Widths and heights, twice: edges of boxes are measured from those of roots in these units."""
    return np.tile(roots[:, 2:] - roots[:, :2], 2)


def _turned(edges: np.ndarray, placements: np.ndarray) -> np.ndarray:
    """Left and right exchanged, with the sign of their offsets, where views are mirrored; twice is once."""
    return np.where(placements[:, :1] % 2 == 1, edges[:, [2, 1, 0, 3]] * [-1.0, 1.0, -1.0, 1.0], edges)
