"""The best labelling of a grid whose cells have four neighbours: many grids of one size at a time, compiled.

    maximise  Σ_r unary[r, z_r] + Σ_{r left of s} H[z_r, z_s] + Σ_{r above s} V[z_r, z_s]

Narrow grids with few labels are searched exactly, over the frontier (``kernels/frontiers.py``). Others by single cells
and by swap moves (``kernels/swaps.py``), which only improve; for two labels a single swap move is exact. Swap moves are
meant for *regular* tables, S_jj + S_kk ≥ S_jk + S_kj for all labels j and k, and careful with others.

``inference/cuts.py`` is for graphs of any form, with a table for each edge.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ...inference import cuts
from ..kernels.frontiers import frontier_all
from ..kernels.grids import score_all
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
        At most 127.
    exact_limit : int
        The search goes over all frontiers where this takes at most so many additions for each grid,
        rows·cols·n_labels^(min(rows, cols) + 1). Grids of one row or one column are chains, and always searched so.

    Attributes
    ----------
    exact : bool
        Whether ``best`` finds the best labelling of all. On larger grids with two labels it does if tables are regular.

    Examples
    --------
    >>> unary = np.array([[2.0, 0.0], [0.0, 1.0], [0.0, 0.5], [0.5, 0.0]])
    >>> search = GridSearch(2, 2, n_labels=2)
    >>> search.best(unary, horizontal=np.eye(2), vertical=np.eye(2))
    (array([0, 0, 0, 0], dtype=int8), 6.5)
    >>> search.exact
    True
    """

    rows: int
    cols: int
    n_labels: int
    n_cells: int
    exact: bool

    def __init__(self, rows: int, cols: int, n_labels: int, *, exact_limit: int = _EXACT_LIMIT) -> None:
        if rows < 1 or cols < 1:
            raise ValueError(f"A grid needs at least one row and one column, got {rows} × {cols}.")
        if not 1 <= n_labels <= MOST_LABELS:
            raise ValueError(f"Labels are stored in one byte each: n_labels must be 1 … {MOST_LABELS}, got {n_labels}.")
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
    ) -> tuple[np.ndarray, np.ndarray | float]:
        """Labels of high scores, the highest if ``exact``, and these scores.

        Parameters
        ----------
        unary : float array (n, n_cells, n_labels), or (n_cells, n_labels) for a single grid
            Scores of labels by themselves. −inf says that a label is not allowed: no cell takes such a label if it has
            an allowed one.
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

        Returns
        -------
        labels : int8 array (n, n_cells), or (n_cells,) for a single grid
        score : float array (n,), or a float
        """
        return self._search(True, unary, horizontal, vertical, which, start, threads)

    def icm(
        self,
        unary: np.ndarray,
        horizontal: np.ndarray,
        vertical: np.ndarray,
        which: np.ndarray | None = None,
        start: np.ndarray | None = None,
        threads: int = 1,
    ) -> tuple[np.ndarray, np.ndarray | float]:
        """Labels that no change of a single cell improves (iterated conditional modes), and their scores.

        Much less than ``best``, for comparison; parameters as there.

        >>> unary = np.array([[0.0, 1.0], [0.0, 1.0], [3.0, 0.0]])
        >>> GridSearch(1, 3, 2).icm(unary, 2 * np.eye(2), 2 * np.eye(2), start=[0, 0, 0])
        (array([0, 0, 0], dtype=int8), 7.0)
        """
        return self._search(False, unary, horizontal, vertical, which, start, threads)

    def score(
        self,
        labels: np.ndarray,
        unary: np.ndarray,
        horizontal: np.ndarray,
        vertical: np.ndarray,
        which: np.ndarray | None = None,
    ) -> np.ndarray | float:
        """The scores of labellings, (n,), or a float for a single one; parameters as in ``best``.

        >>> GridSearch(2, 1, 2).score([0, 1], np.zeros((2, 2)), np.zeros((2, 2)), np.array([[0.0, 5.0], [0.0, 0.0]]))
        5.0
        """
        grids = self._grids(unary)
        tables = self._tables(len(grids), horizontal, vertical, which)
        score = np.empty(len(grids))
        score_all(grids, tables[0], self.rows, self.cols, *tables[1:], self._labels(labels, len(grids)), score)
        return score if np.ndim(unary) == 3 else float(score[0])

    def _search(
        self,
        swaps: bool,
        unary: np.ndarray,
        horizontal: np.ndarray,
        vertical: np.ndarray,
        which: np.ndarray | None,
        start: np.ndarray | None,
        threads: int,
    ) -> tuple[np.ndarray, np.ndarray | float]:
        if threads < 1:
            raise ValueError(f"threads must be at least 1, got {threads}.")
        grids = self._grids(unary)
        n = len(grids)
        which, horizontal, vertical = self._tables(n, horizontal, vertical, which)
        labels = np.full((n, self.n_cells), -1, np.int8) if start is None else self._labels(start, n)
        score = np.empty(n)
        # Two labels: a cut is as exact as all frontiers, and faster, but for tables that are not regular.
        over_frontiers = swaps and self._over_frontiers
        if self.n_labels == 2 and cuts.submodular(horizontal) and cuts.submodular(vertical):
            over_frontiers = False

        def work(part: slice) -> None:
            given = grids[part], which[part], self.rows, self.cols, horizontal, vertical, labels[part], score[part]
            if over_frontiers:
                frontier_all(*given)
            else:
                swap_all(*given, swaps)
                if start is None and swaps and self.n_labels > 2:
                    other, reached = self._constant(*given[:2], *given[4:6]), np.empty(len(given[0]))
                    swap_all(*given[:6], other, reached, swaps)
                    better = reached > score[part]
                    labels[part][better], score[part][better] = other[better], reached[better]

        _in_parts(work, n, max(1, _AT_ONCE // self._cost), threads)
        return (labels, score) if np.ndim(unary) == 3 else (labels[0], float(score[0]))

    def _constant(
        self, grids: np.ndarray, which: np.ndarray, horizontal: np.ndarray, vertical: np.ndarray
    ) -> np.ndarray:
        """All cells of a grid with the same label, the best such one: where cells say little and borders much."""
        pairs = self.rows * (self.cols - 1) * horizontal.diagonal(axis1=1, axis2=2)
        pairs = pairs + self.cols * (self.rows - 1) * vertical.diagonal(axis1=1, axis2=2)
        best = np.argmax(grids.sum(axis=1, dtype=np.float64) + pairs[which], axis=1)
        return np.repeat(best.astype(np.int8)[:, None], self.n_cells, axis=1)

    def _grids(self, unary: np.ndarray) -> np.ndarray:
        """Scores as the kernels want them, checked."""
        unary = np.asarray(unary)
        unary = np.ascontiguousarray(unary, np.float32 if unary.dtype == np.float32 else np.float64)
        if unary.ndim not in (2, 3) or unary.shape[-2:] != (self.n_cells, self.n_labels):
            raise ValueError(
                f"unary has shape {unary.shape}; a grid of {self.rows} × {self.cols} cells and {self.n_labels} labels "
                f"needs (n, {self.n_cells}, {self.n_labels}), or ({self.n_cells}, {self.n_labels}) for a single grid."
            )
        # The largest of several numbers is NaN if one of them is.
        if unary.size and not unary.max() < np.inf:
            raise ValueError(
                "unary has NaN or +inf in it: scores must be finite, or −inf where a label is not allowed."
            )
        return unary.reshape(-1, self.n_cells, self.n_labels)

    def _tables(
        self, n: int, horizontal: np.ndarray, vertical: np.ndarray, which: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Which tables belong to each grid, and the tables, checked."""
        m = self.n_labels
        both = []
        for name, given in (("horizontal", horizontal), ("vertical", vertical)):
            table = np.ascontiguousarray(given, np.float64)
            if table.ndim not in (2, 3) or table.shape[-2:] != (m, m):
                raise ValueError(f"{name} has shape {table.shape}; {m} labels need (N, {m}, {m}) or ({m}, {m}).")
            if not np.isfinite(table).all():
                raise ValueError(f"{name} has NaN or infinite scores in it. Only unary may forbid labels, by −inf.")
            both.append(table.reshape(-1, m, m))
        n_tables = len(both[0])
        if len(both[1]) != n_tables:
            raise ValueError(f"There are {n_tables} horizontal tables, but {len(both[1])} vertical ones.")
        if which is None:
            if n_tables not in (1, n):
                raise ValueError(f"There are {n_tables} tables for {n} grids: which says what table each grid has.")
            which = np.arange(n) if n_tables == n else np.zeros(n, np.int64)
        which = np.asarray(which)
        if which.shape != (n,) or not np.issubdtype(which.dtype, np.integer):
            raise ValueError(f"which must be integers of shape ({n},), got {which.dtype} of shape {which.shape}.")
        if n and not 0 <= which.min() <= which.max() < n_tables:
            raise ValueError(f"which names tables {which.min()} … {which.max()}; there are 0 … {n_tables - 1}.")
        return np.ascontiguousarray(which, np.int64), both[0], both[1]

    def _labels(self, labels: np.ndarray, n: int) -> np.ndarray:
        """A copy of the labels, checked."""
        labels = np.asarray(labels)
        if labels.shape not in ((n, self.n_cells), (self.n_cells,)) or labels.size != n * self.n_cells:
            raise ValueError(f"Labels have shape {labels.shape}; {n} grids need ({n}, {self.n_cells}).")
        if labels.size and not 0 <= labels.min() <= labels.max() < self.n_labels:
            raise ValueError(f"Labels are {labels.min()} … {labels.max()}; they must be 0 … {self.n_labels - 1}.")
        return np.array(labels, np.int8, order="C").reshape(n, self.n_cells)


def _in_parts(work: Callable[[slice], None], n: int, most: int, threads: int) -> None:
    """``work`` for all of 0 … n − 1, at most so many at once. Nobody is still at work when this returns or raises."""
    size = max(1, min(most, -(-n // threads)))
    parts = [slice(at, min(at + size, n)) for at in range(0, n, size)]
    if threads == 1:
        for part in parts:
            work(part)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="maxmargin") as pool:
        try:
            for done in [pool.submit(work, part) for part in parts]:
                done.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
