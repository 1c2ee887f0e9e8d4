"""Regions of an image in which the largest response of a part is taken."""

from __future__ import annotations

from typing import Any

import numpy as np

_MOST = 2**26  # regions times atoms: a table of them is kept


class Pooling:
    """The regions of an image in which the largest response of a part is taken: cells of one or several grids.

    The cells of all grids cut the image into *atoms*; a patch lies in the atom of its centre, and a region is a union
    of atoms. So every response is looked at once, whatever the number of regions.

    Parameters
    ----------
    grids : sequence of int
        Rows, and as many columns, of each grid: (1, 2) are the whole image and its four quarters.

    Examples
    --------
    >>> pooling = Pooling((1, 2))
    >>> pooling.n_regions, pooling.n_atoms
    (5, 4)
    >>> pooling.atoms(np.array([[0.0, 0.0, 0.5, 0.5], [0.5, 0.0, 1.0, 0.4]])).tolist()
    [0, 1]
    >>> pooling.member.astype(int).tolist()
    [[1, 1, 1, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    """

    def __init__(self, grids: Any = (1, 2)) -> None:
        try:
            self.grids = tuple(int(g) for g in grids)
            right = all(g == h and g >= 1 for g, h in zip(self.grids, grids, strict=True)) and len(self.grids) > 0
            right = right and sum(g * g for g in self.grids) * sum(self.grids) ** 2 <= _MOST
        except (TypeError, ValueError):
            right = False
        if not right:
            raise ValueError(
                "regions must be whole numbers from 1 on, and not too large: rows and columns of each grid of regions, "
                f"such as (1, 2); got {grids!r}."
            )
        self.edges = np.unique(np.concatenate([np.arange(g + 1) / g for g in self.grids]))
        centre = 0.5 * (self.edges[1:] + self.edges[:-1])
        cell = [(centre * g).astype(np.int64) for g in self.grids]
        self.member = np.concatenate([self._cells(at, g) for at, g in zip(cell, self.grids, strict=True)])
        """Which atoms belong to each region, (n_regions, n_atoms)."""

    @staticmethod
    def _cells(at: np.ndarray, g: int) -> np.ndarray:
        """The atoms of every cell of a grid, if the strips between two edges lie in the rows (and columns) ``at``."""
        cell = (at[:, None] * g + at[None, :]).ravel()
        return np.arange(g * g)[:, None] == cell[None, :]

    @property
    def n_regions(self) -> int:
        return int(self.member.shape[0])

    @property
    def n_atoms(self) -> int:
        return int(self.member.shape[1])

    def atoms(self, windows: np.ndarray) -> np.ndarray:
        """The atom that the centre of each window lies in."""
        x = 0.5 * (windows[:, 0] + windows[:, 2])
        y = 0.5 * (windows[:, 1] + windows[:, 3])
        strips = self.edges.size - 1
        column, row = (np.clip(np.searchsorted(self.edges, c, "right") - 1, 0, strips - 1) for c in (x, y))
        return row * strips + column
