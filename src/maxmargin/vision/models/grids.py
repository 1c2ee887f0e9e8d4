"""The best labelling of a grid whose cells have four neighbours: many grids of one size at a time, compiled.

    maximise  Σ_r unary[r, z_r] + Σ_{r left of s} H[z_r, z_s] + Σ_{r above s} V[z_r, z_s]

Narrow grids with few labels are searched exactly, over the frontier (``kernels/frontiers.py``). Others by single cells
and by swap moves (``kernels/swaps.py``), which only improve; for two labels a single swap move is exact. Swap moves are
meant for *regular* tables, S_jj + S_kk ≥ S_jk + S_kj for all labels j and k, and careful with others.

``inference/cuts.py`` is for graphs of any form, with a table for each edge.
"""

from __future__ import annotations

import numpy as np

from ...inference import cuts
from ...solvers.threads import in_parts
from ..kernels.frontiers import frontier_all
from ..kernels.swaps import swap_all

MOST_LABELS = 127
_EXACT_LIMIT = 300_000  # additions: about 0.3 ms for each labelling
_AT_ONCE = 30_000_000  # additions between two looks at Ctrl-C, a fraction of a second
_SWAP_COST = 60  # additions for each score of a cell that swap moves cost, roughly


class GridSearch:
    """Searches for the best labellings of grids of one size.

    Parameters
    ----------
    rows, cols : int
        Cells are numbered row by row.
    n_labels : int
        At most ``MOST_LABELS``: they are stored in one byte each.
    exact_limit : int
        The search goes over all frontiers where this takes at most so many additions for each grid,
        rows·cols·n_labels^(min(rows, cols) + 1). Grids of one row or one column are chains, and always searched so.

    Attributes
    ----------
    exact : bool
        Whether ``best`` finds the best labelling of all. On larger grids with two labels it does if tables are regular.

    Examples
    --------
    >>> unary = np.array([[[2.0, 0.0], [0.0, 1.0], [0.0, 0.5], [0.5, 0.0]]])
    >>> search = GridSearch(2, 2, n_labels=2)
    >>> search.best(unary, horizontal=np.eye(2), vertical=np.eye(2))
    (array([[0, 0, 0, 0]], dtype=int8), array([6.5]))
    >>> search.exact
    True
    """

    rows: int
    cols: int
    n_labels: int
    n_cells: int
    exact: bool

    def __init__(self, rows: int, cols: int, n_labels: int, *, exact_limit: int = _EXACT_LIMIT) -> None:
        self.rows, self.cols, self.n_labels = rows, cols, n_labels
        self.n_cells = rows * cols
        narrow = min(rows, cols)
        additions = self.n_cells * n_labels ** (narrow + 1)
        self._over_frontiers = narrow == 1 or n_labels == 1 or additions <= exact_limit
        self.exact = self._over_frontiers or n_labels == 2
        self._cost = additions if self._over_frontiers else _SWAP_COST * self.n_cells * n_labels

    def exact_for(self, horizontal: np.ndarray, vertical: np.ndarray) -> bool:
        """Whether ``best`` finds the best labelling of all with these tables."""
        if self._over_frontiers or self.n_labels > 2:
            return self._over_frontiers
        return cuts.submodular(horizontal) and cuts.submodular(vertical)

    def best(
        self,
        unary: np.ndarray,
        horizontal: np.ndarray,
        vertical: np.ndarray,
        which: np.ndarray | None = None,
        start: np.ndarray | None = None,
        threads: int = 1,
        *,
        swaps: bool = True,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Labels of high scores, the highest if ``exact``, and these scores.

        Parameters
        ----------
        unary : float array (n, n_cells, n_labels)
            Scores of labels by themselves.
        horizontal, vertical : array (N, n_labels, n_labels) or (n_labels, n_labels)
            Scores of labels side by side, the left one first; and of labels one above the other, the upper one first.
        which : int array (n,) or None
            Which of the N tables belong to each grid. By default grid i has tables i, or all grids the only ones.
        start : int array (n, n_cells) or None
            Where moves start; the result is never worse. By default there are two starts, each cell's best label by
            itself, and the same label everywhere; the better end counts. A labelling that was the best at slightly
            different scores saves time.
        threads : int
            Grids are shared out over so many threads; the results are the same.
        swaps : bool
            If not, labels are those that no change of a single cell improves (iterated conditional modes): much less.

        Returns
        -------
        labels : int8 array (n, n_cells)
        score : float array (n,)
        """
        n = len(unary)
        horizontal, vertical = (
            np.ascontiguousarray(table, np.float64).reshape(-1, self.n_labels, self.n_labels)
            for table in (horizontal, vertical)
        )
        # The largest of several numbers is NaN if one of them is.
        given = (unary.min(initial=0.0), unary.max(initial=0.0), horizontal, vertical)
        if not all(np.isfinite(scores).all() for scores in given):
            raise ValueError("Scores of labels must be finite: weights or features have a NaN or an infinity.")
        if which is None:
            which = np.arange(n) if len(horizontal) == n else np.zeros(n, np.int64)
        labels = np.full((n, self.n_cells), -1, np.int8) if start is None else np.array(start, np.int8, order="C")
        score = np.empty(n)
        # Two labels: a cut is as exact as all frontiers, and faster, but for tables that are not regular.
        over_frontiers = swaps and self._over_frontiers
        if self.n_labels == 2 and cuts.submodular(horizontal) and cuts.submodular(vertical):
            over_frontiers = False

        def work(part: slice) -> None:
            given = unary[part], which[part], self.rows, self.cols, horizontal, vertical, labels[part], score[part]
            if over_frontiers:
                frontier_all(*given)
            else:
                swap_all(*given, swaps)
                if start is None and swaps and self.n_labels > 2:
                    other, reached = self._constant(*given[:2], *given[4:6]), np.empty(len(given[0]))
                    swap_all(*given[:6], other, reached, swaps)
                    better = reached > score[part]
                    labels[part][better], score[part][better] = other[better], reached[better]

        in_parts(work, n, max(1, min(_AT_ONCE // self._cost, -(-n // threads))), threads)
        return labels, score

    def _constant(
        self, grids: np.ndarray, which: np.ndarray, horizontal: np.ndarray, vertical: np.ndarray
    ) -> np.ndarray:
        """All cells of a grid with the same label, the best such one: where cells say little and borders much."""
        pairs = self.rows * (self.cols - 1) * horizontal.diagonal(axis1=1, axis2=2)
        pairs = pairs + self.cols * (self.rows - 1) * vertical.diagonal(axis1=1, axis2=2)
        best = np.argmax(grids.sum(axis=1, dtype=np.float64) + pairs[which], axis=1)
        return np.repeat(best.astype(np.int8)[:, None], self.n_cells, axis=1)
