"""Rows on their way to shards: held in memory, dealt to temporary files, gathered in the order of their keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..kernels.batches import gather_entries
from .shard_format import Columns

_BITS = 6
BUCKETS = 1 << _BITS
"""Files at a time that rows are dealt to: each is written in pieces large enough for a disk."""


class RowBuffer:
    """Rows in memory, in columns that have room for about ``capacity`` bytes.

    Room is asked for at once: the system gives memory only where it is written to, so what is not used costs nothing
    and nothing is moved later.
    """

    def __init__(self, columns: Columns, capacity: int) -> None:
        self.columns = columns
        item = np.dtype(columns.dtype).itemsize
        fixed: dict[str, Any] = {"key": np.uint64, "sizes": np.int32}
        if columns.label is not None:
            fixed["label"] = np.float64 if columns.label == "float64" else np.int64  # text by its number
        if columns.group:
            fixed["group"] = np.int64
        if columns.weight:
            fixed["weight"] = np.float64
        # Sorting and cutting need up to five more numbers per row.
        self._row_bytes = 40 + sum(np.dtype(kind).itemsize for kind in fixed.values())
        width = columns.width
        self._entry_bytes = item + (4 if width is None else 0)
        rows = capacity // (self._row_bytes + (0 if width is None else width * item)) + 1
        entries = capacity // self._entry_bytes + 1
        self.fixed = {name: np.empty(rows, kind) for name, kind in fixed.items()}
        self.indices = np.empty(entries if width is None else 0, np.int32)
        self.values = np.empty(entries, columns.dtype)
        self.clear()

    def clear(self) -> None:
        self.rows = 0
        self.entries = 0
        self._starts: np.ndarray | None = None  # of the entries of each row, once they are asked for

    def nbytes(self, rows: int, entries: int) -> int:
        """Bytes that so many rows and entries take."""
        return rows * self._row_bytes + entries * self._entry_bytes

    def append(self, fixed: dict[str, np.ndarray], indices: np.ndarray | None, values: np.ndarray) -> None:
        """More rows; a single chunk may need more room than was asked for at first."""
        rows, entries = self.rows + fixed["key"].size, self.entries + values.size
        for name, held in self.fixed.items():
            self.fixed[name] = _extended(held, self.rows, rows, fixed[name])
        self.values = _extended(self.values, self.entries, entries, values)
        if indices is not None:
            self.indices = _extended(self.indices, self.entries, entries, indices)
        self.rows, self.entries, self._starts = rows, entries, None

    def column(self, name: str) -> np.ndarray:
        return self.fixed[name][: self.rows]

    def sorted(self) -> np.ndarray:
        """Positions of rows in the order of their keys, rows of equal keys (of a group) as they came."""
        keys = self.column("key")
        return np.argsort(keys, kind="stable") if self.columns.group else np.argsort(keys)

    def take(self, order: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Offsets, indices and values of these rows; for dense rows only values."""
        width = self.columns.width
        if width is not None:
            values = self.values[: self.rows * width].reshape(self.rows, width)[order]
            return np.empty(0, np.int32), np.empty(0, np.int32), values.reshape(-1)
        sizes = self.column("sizes")
        if self._starts is None:
            self._starts = np.zeros(self.rows + 1, np.int64)
            np.cumsum(sizes, out=self._starts[1:])
        entries = int(sizes[order].sum())
        offsets = np.empty(order.size + 1, np.int32)
        indices, values = np.empty(entries, np.int32), np.empty(entries, self.values.dtype)
        gather_entries(order, self._starts, sizes, self.indices, self.values, offsets, indices, values)
        return offsets, indices, values

    def keep(self, order: np.ndarray) -> None:
        """Only these rows, in this order."""
        _, indices, values = self.take(order)
        fixed = {name: self.column(name)[order] for name in self.fixed}
        self.clear()
        self.append(fixed, indices if self.columns.sparse else None, values)

    def load(self, file: BinaryIO, rows: int, entries: int) -> None:
        """Rows of a bucket back into memory."""
        fixed = {name: np.fromfile(file, held.dtype, rows) for name, held in self.fixed.items()}
        indices = np.fromfile(file, np.int32, entries) if self.columns.sparse else None
        self.append(fixed, indices, np.fromfile(file, self.values.dtype, entries))


def _extended(held: np.ndarray, used: int, needed: int, more: np.ndarray) -> np.ndarray:
    """``held`` with ``more`` behind what is used of it, in a larger array if there is no room."""
    if needed > held.size:
        larger = np.empty(needed + needed // 4, held.dtype)
        larger[:used] = held[:used]
        held = larger
    held[used:needed] = more
    return held


@dataclass
class Bucket:
    """A temporary file of rows whose keys begin alike, in segments as they were dealt."""

    path: Path
    segments: list[tuple[int, int]] = field(default_factory=list)
    least: int = 2**64
    greatest: int = -1

    @property
    def rows(self) -> int:
        return sum(rows for rows, _ in self.segments)

    @property
    def entries(self) -> int:
        return sum(entries for _, entries in self.segments)

    def write(self, arrays: Sequence[np.ndarray], rows: int, entries: int, keys: np.ndarray) -> None:
        with open(self.path, "ab") as file:
            for array in arrays:
                file.write(array.data)
        self.segments.append((rows, entries))
        self.least, self.greatest = min(self.least, int(keys.min())), max(self.greatest, int(keys.max()))


class Buckets:
    """Deals rows to files by the leading bits of their keys below the first ``depth``·6 ones."""

    def __init__(self, folder: Path, depth: int = 0, name: str = "") -> None:
        self._shift = np.uint64(64 - _BITS * (depth + 1))
        self.depth = depth
        self.buckets = [Bucket(folder / f"spill{name}-{k:02d}") for k in range(BUCKETS)]

    def deal(self, hand: RowBuffer) -> None:
        """All rows of a hand, which is empty then."""
        keys = hand.column("key")
        bucket = (keys >> self._shift).astype(np.int64) % BUCKETS
        order = np.argsort(bucket.astype(np.uint8), kind="stable")
        ends = np.cumsum(np.bincount(bucket, minlength=BUCKETS))
        for k, chosen in enumerate(np.split(order, ends[:-1])):
            if chosen.size:
                _, indices, values = hand.take(chosen)
                fixed = [hand.column(name)[chosen] for name in hand.fixed]
                self.buckets[k].write([*fixed, indices, values], chosen.size, values.size, keys[chosen])
        hand.clear()
