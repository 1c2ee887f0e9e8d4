"""The pool of closed problems: examples copied out of their blocks."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..data.arrays import as_rows
from ..problem import Rows
from .base import Closed
from .matrices import as_sparse, stored
from .store import RowStore

_OVERHEAD = 48  # bytes of a row besides its values and shares: norm, order of visits, place, columns, end
_BYTES_PER_SHARE = 16  # momentum has a second copy


class Pool:
    """Examples copied out of their blocks, so that they can be worked on while the blocks are elsewhere.

    Parameters
    ----------
    memory : int
        Bytes to take, all of them reserved at the first use (an operating system gives out only what is written to).
    most : int or None
        Examples that there are: no room is reserved for more.
    """

    def __init__(self, memory: int, most: int | None = None) -> None:
        self.memory, self._most = memory, most
        self.place = np.empty(0, np.int64)
        """Where the dual variables of each example stand among those of the whole problem."""
        self.norms = np.empty(0, np.float32)
        self._store: RowStore | None = None
        self._overhead = _OVERHEAD
        self._columns: dict[str, np.ndarray] = {}
        self._kind: Callable[..., Closed] | None = None

    def __len__(self) -> int:
        return self.place.size

    @property
    def nbytes(self) -> int:
        """Bytes in use."""
        if self._store is None:
            return 0
        rows = self._store.rows
        stored = len(self) * rows.width * rows.data.itemsize if rows.dense else int(rows.indptr[-1]) * _per_value(rows)
        return stored + len(self) * self._overhead

    def add(self, block: Any, examples: np.ndarray, first: int, norms: np.ndarray) -> int:
        """Take in examples of a block whose dual variables begin at ``first``; returns how many there was room for."""
        if self._store is None:
            self._reserve(block)
        rows, chosen = self._alike(*_written_out(block.rows, examples))
        n = self._fitting(rows, chosen)
        store: RowStore = self._store  # type: ignore[assignment]
        store.append(rows, chosen[:n])
        examples = examples[:n]
        self.place = np.concatenate([self.place, first + examples.astype(np.int64)])
        self.norms = np.concatenate([self.norms, norms[examples]])
        for name, column in block.columns().items():
            part = np.broadcast_to(column, block.n_examples)[examples]
            self._columns[name] = np.concatenate([self._columns[name], part]) if len(self._columns[name]) else part
        return n

    def keep(self, chosen: np.ndarray) -> None:
        """Only these examples stay, positions in ascending order."""
        if self._store is None or chosen.size == len(self):
            return
        self._store.compact(chosen)
        self.place = self.place[chosen]
        self.norms = self.norms[chosen]
        self._columns = {name: column[chosen] for name, column in self._columns.items()}

    def constraints(self) -> Closed:
        """What the pool holds, as a closed problem."""
        if self._store is None or self._kind is None:
            raise ValueError("The pool is empty.")
        rows = self._store.rows
        # Kernels and cost models take the whole arrays for what is stored: without the room behind it.
        end = rows.n_rows * rows.width if rows.dense else max(int(rows.indptr[-1]), 1)
        rows = replace(rows, indices=rows.indices[:end], data=rows.data[:end], bias=self._bias)
        return self._kind(rows, **self._columns)

    def _reserve(self, block: Any) -> None:
        rows = block.rows
        doubled = rows.minus.size > 0 and not rows.dense  # differences have the values of both
        per_row = max(rows.n_stored / max(rows.n_rows, 1), 1.0) * (2 if doubled else 1)
        self._overhead = _OVERHEAD + _BYTES_PER_SHARE * math.prod(block.dual_shape[1:])
        needed = per_row * _per_value(rows) + self._overhead
        n_rows = int(self.memory / needed)
        if n_rows == 0:
            raise ValueError(f"memory is too little: {self.memory} bytes are left for rows, one takes {int(needed)}.")
        self._store = RowStore(rows.width)
        like = replace(rows, data=np.empty(0)) if rows.minus.size else rows
        # Sparse rows may be shorter than these; dense ones are all alike.
        room, n_values = n_rows if rows.dense else 2 * n_rows, int(n_rows * per_row)
        if self._most is not None:
            room, n_values = min(room, self._most), min(n_values, self._most * max(rows.width, 1))
        self._store.reserve(room, n_values, like=like)
        self._columns = {name: np.empty(0, column.dtype) for name, column in block.columns().items()}
        kind: Callable[..., Closed] = type(block)
        self._kind, self._bias = functools.partial(kind, **block.settings()), rows.bias

    def _alike(self, rows: Rows, chosen: np.ndarray) -> tuple[Rows, np.ndarray]:
        """The chosen rows of the kind that the pool holds, dense or sparse."""
        held = self._store.rows  # type: ignore[union-attr]
        if rows.dense == held.dense:
            return rows, chosen
        table = as_sparse(rows)[chosen]
        return as_rows(table.toarray() if held.dense else table), np.arange(chosen.size)

    def _fitting(self, rows: Rows, chosen: np.ndarray) -> int:
        """How many of the chosen rows there is room for."""
        store: RowStore = self._store  # type: ignore[assignment]
        if rows.dense:
            return min(chosen.size, store.arrays.data.size // max(rows.width, 1) - store.n_rows)
        room = store.arrays.data.size - 1 - int(store.arrays.indptr[store.n_rows])
        ends = np.cumsum(rows.indptr[chosen + 1] - rows.indptr[chosen])
        return min(int(np.searchsorted(ends, room, side="right")), store.arrays.indptr.size - 1 - store.n_rows)


def extracted(block: Any, examples: np.ndarray) -> Closed:
    """These examples of a block as a closed problem of its own, with rows of its own."""
    rows, chosen = _written_out(block.rows, examples)
    columns = {name: c[examples] if c.size > 1 else c for name, c in block.columns().items()}
    return type(block)(replace(as_rows(stored(rows)[chosen]), bias=block.rows.bias), **columns, **block.settings())


def _per_value(rows: Rows) -> int:
    return (8 if rows.minus.size else rows.data.itemsize) + (0 if rows.dense else 4)


def _written_out(rows: Rows, examples: np.ndarray) -> tuple[Rows, np.ndarray]:
    """Stored rows for the examples: their own, or the differences that they stand for, written out."""
    if not rows.minus.size:
        return rows, examples.astype(np.int64)
    table = stored(rows)
    # Differences of numbers of float32 are no numbers of float32, and bounds rely on these rows.
    written = as_rows(table[rows.plus[examples]].astype(np.float64) - table[rows.minus[examples]])
    return written, np.arange(examples.size)
