"""Rows one behind the other, with room at the end: what pools of rows and of planes are stored in."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..data.arrays import as_rows
from ..kernels import rows as kernels
from ..problem import Rows
from .matrices import as_sparse


class Stored(NamedTuple):
    """Rows one behind the other, with room at the end, as kernels read them. Dense rows have no indices."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    width: int


class RowStore:
    """Rows that come one by one and leave together: sparse or dense as the first ones were, as precise as any of them.

    >>> store = RowStore(width=3)
    >>> from scipy.sparse import eye_array
    >>> store.append(as_rows(eye_array(3, format="csr")), np.array([0, 2]))
    0
    >>> as_sparse(store.rows).toarray()
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.n_rows = 0
        self._dense = False
        self._dtype = np.dtype(np.float32)
        self.arrays = self._room(0, 0)

    def __getstate__(self) -> dict[str, Any]:
        """Room that is not in use does not travel."""
        s = self.arrays
        room = (s.data.size // max(self.width, 1) if self._dense else s.indptr.size - 1, s.data.size - 1)
        used = Stored(s.indptr[: self.n_rows + 1], s.indices[: self._end()], s.data[: self._end()], s.width)
        return {**self.__dict__, "arrays": used, "room": room}

    def __setstate__(self, state: dict[str, Any]) -> None:
        room, used = state.pop("room"), state["arrays"]
        self.__dict__.update(state)
        self.arrays = self._room(*room)
        for source, target in zip(used[:3], self.arrays[:3], strict=True):
            target[: source.size] = source

    @property
    def rows(self) -> Rows:
        s = self.arrays
        return Rows(s.indptr[: self.n_rows + 1], s.indices, s.data, self.n_rows, s.width)

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in self.arrays[:3])

    def nbytes_with(self, rows: Rows) -> int:
        """Bytes after all of these rows had been appended, at most."""
        dense = self._dense if self.n_rows else rows.dense
        n, n_values = self.n_rows + rows.n_rows, self._end() + rows.data.size
        if dense:
            n_values = n * self.width
        elif rows.dense:
            n_values = self._end() + rows.n_rows * self.width
        fits = n_values < self.arrays.data.size and (dense or n < self.arrays.indptr.size)
        if self.n_rows and fits and self._precision(rows) == self._dtype:
            return self.nbytes
        size = self._precision(rows).itemsize + (0 if dense else 4)
        # Both the rows and their ends grow by half when either is full.
        return int(1.5 * (size * n_values + 8 * n)) + 64

    def append(self, rows: Rows, chosen: np.ndarray) -> int:
        """Take in some rows and return where the first one stands; the room grows by half when it is full."""
        if self.n_rows == 0 and not (self.arrays.data.size > 1 and rows.dense == self._dense):
            self._dense, self._dtype = rows.dense, rows.data.dtype
            self.arrays = self._room(0, 0)
        if rows.dense != self._dense:
            table = as_sparse(rows)
            rows = as_rows(table.toarray() if self._dense else table)
        if self._precision(rows) != self._dtype:
            # Whole numbers came first, real ones now: rounding those would make the bounds inexact.
            self._dtype = self._precision(rows)
            self.arrays = self.arrays._replace(data=self.arrays.data.astype(self._dtype))
        n, end = self.n_rows + chosen.size, self._end()
        need = n * self.width if self._dense else end + int((rows.indptr[chosen + 1] - rows.indptr[chosen]).sum())
        full = need > self.arrays.data.size if self._dense else need >= self.arrays.data.size
        if full or (not self._dense and n >= self.arrays.indptr.size):
            old, self.arrays = self.arrays, self._room(n + n // 2, need + need // 2)
            for source, target, size in zip(old[:3], self.arrays[:3], (self.n_rows + 1, end, end), strict=True):
                target[:size] = source[:size]
        self._copy(rows, chosen, self.n_rows)
        self.n_rows = n
        return n - chosen.size

    def keep(self, chosen: np.ndarray) -> None:
        """Only these rows are left, in this order, with a little room."""
        rows = self.rows
        n_values = 0 if self._dense else int((rows.indptr[chosen + 1] - rows.indptr[chosen]).sum())
        self.arrays = self._room(chosen.size + chosen.size // 4, n_values + n_values // 4)
        self._copy(rows, chosen, 0)
        self.n_rows = chosen.size

    def reserve(self, n_rows: int, n_values: int, like: Rows) -> None:
        """Room for so many rows and values of the kind of ``like``, made once and for all: an empty store only."""
        self._dense, self._dtype = like.dense, like.data.dtype
        self.arrays = self._room(n_rows, n_values)

    def compact(self, chosen: np.ndarray) -> None:
        """Only these rows are left, in ascending order, moved forward in place: nothing is allocated."""
        self._copy(self.rows, chosen, 0)
        self.n_rows = chosen.size

    def rename(self, place: np.ndarray, width: int) -> None:
        """Column j is column ``place[j]`` of ``width`` from now on."""
        if self._dense:
            data = np.zeros((self.n_rows, width), self._dtype)
            data[:, place] = self.arrays.data[: self.n_rows * self.width].reshape(self.n_rows, -1)
            self.arrays = self.arrays._replace(data=data.ravel(), width=width)
        else:
            end = self._end()
            self.arrays.indices[:end] = place[self.arrays.indices[:end]]
            self.arrays = self.arrays._replace(width=width)
        self.width = width

    def _precision(self, rows: Rows) -> np.dtype:
        return np.promote_types(self._dtype, rows.data.dtype) if self.n_rows else rows.data.dtype

    def _end(self) -> int:
        """Values stored so far."""
        return self.n_rows * self.width if self._dense else int(self.arrays.indptr[self.n_rows])

    def _room(self, n_rows: int, n_values: int) -> Stored:
        if self._dense:
            data = np.empty(n_rows * self.width, self._dtype)
            return Stored(np.empty(0, np.int64), np.empty(0, np.int32), data, self.width)
        # One value more than needed: kernels take rows without any indices for dense ones.
        indptr = np.zeros(n_rows + 1, np.int64)
        return Stored(indptr, np.zeros(n_values + 1, np.int32), np.zeros(n_values + 1, self._dtype), self.width)

    def _copy(self, rows: Rows, chosen: np.ndarray, at: int) -> None:
        if not chosen.size:
            return
        to = self.arrays
        kernels.copy_rows(
            rows.indptr, rows.indices, rows.data, rows.dense, self.width, chosen, to.indptr, to.indices, to.data, at
        )


def placed(values: np.ndarray, place: np.ndarray, n: int) -> np.ndarray:
    """Entry j is entry ``place[j]`` of n; the others are zero."""
    out = np.zeros(n)
    out[place] = values
    return out


def row_sizes(rows: Rows, chosen: np.ndarray) -> np.ndarray:
    """Stored values of some rows."""
    return np.full(chosen.size, rows.width) if rows.dense else rows.indptr[chosen + 1] - rows.indptr[chosen]
