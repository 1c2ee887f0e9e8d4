"""A bias towards labellings whose neighbours agree, for choosing bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..models.graph import grid
from ..validation import shown


class Coherence:
    """A bias for ``Biased``: labellings of regions are welcome where neighbours agree (Naderi Parizi (5.39)).

    Parameters
    ----------
    edges : int array (n_edges, 2) or a sequence of them
        Pairs of neighbouring regions, the same for all examples, or one array for each.

    Examples
    --------
    >>> Coherence([[0, 1], [1, 2]])(0, [4, 4, 2], None)
    -1.0
    """

    def __init__(self, edges: Any) -> None:
        if not hasattr(edges, "__len__") or isinstance(edges, str):
            raise ValueError(f"Coherence: edges must be pairs of neighbouring regions, got {shown(edges)}.")
        self.edges = edges
        each = len(edges) > 0 and np.ndim(edges[0]) == 2
        self._edges = [self._checked(e) for e in (edges if each else [edges])]

    @staticmethod
    def _checked(edges: Any) -> np.ndarray:
        edges = np.asarray(edges, dtype=np.int64).reshape(-1, 2) if np.size(edges) else np.empty((0, 2), np.int64)
        if edges.size and edges.min() < 0:
            raise ValueError(f"Coherence: regions are counted from 0, got {edges.min()}.")
        return edges

    @classmethod
    def grid(cls, height: int, width: int) -> Coherence:
        """Regions are the cells of a grid, row by row; each is a neighbour of those beside, above and below it."""
        return cls(grid(np.empty((height, width, 1)), directions=False)[1])

    def __call__(self, i: int, z: Any, w: Any) -> float:
        """Minus the number of neighbours that differ: minus the Potts energy of the labelling."""
        z = np.ravel(z)
        edges = self._edges[i if len(self._edges) > 1 else 0]
        return -float(np.count_nonzero(z[edges[:, 0]] != z[edges[:, 1]]))
