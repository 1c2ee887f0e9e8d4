"""Arrays as a source: NumPy or SciPy, in memory or mapped from a file, cut into chunks without a copy."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from ..protocols import Chunk
from ..validation import check_unmasked
from .arrays import checked_sparse, csr_view, usable_rows
from .chunked import Chunked, GroupsInTurn, group_starts
from .errors import DataError
from .mapped import MappedFile, drop_pages, is_mapped, map_npy, packed, unpacked

CHUNK_BYTES = 4 << 20
"""Bytes of a chunk if nothing else is said: large against the cost of handling it, small against memory."""


class Arrays(Chunked):
    """A matrix, dense or CSR, with labels, groups and weights as far as there are any: a ``Seekable`` source.

    Chunks are views where the matrix is float32 or float64 with rows in C order. Rows of a group must be next to each
    other, and a chunk ends where a group does; unless ``whole_groups`` is False, for who gathers groups anyway.

    >>> source = Arrays(np.eye(3), np.array([1, 2, 3]), chunk_rows=2)
    >>> [chunk.y.tolist() for chunk in source.chunks()]
    [[1, 2], [3]]
    """

    def __init__(
        self,
        x: Any,
        y: Any = None,
        group: object = None,
        weight: object = None,
        *,
        chunk_rows: int | None = None,
        n_features: int | None = None,
        dtype: DTypeLike | None = None,
        file: MappedFile | None = None,
        whole_groups: bool = True,
    ) -> None:
        check_unmasked("x", x)
        # Column indices are looked at chunk by chunk, as they are read: there may be more than memory holds.
        x = checked_sparse(x, "x", entries=False) if sp.issparse(x) else np.asanyarray(x)
        if x.ndim != 2 or x.dtype.kind not in "fiub":
            raise DataError(f"x must be a matrix of numbers, one row per example; got {x.dtype} of shape {x.shape}.")
        n, width = self._shape = x.shape
        self._sparse = sp.issparse(x)
        self._parts: list[np.ndarray] = [x.indptr, x.indices, x.data] if self._sparse else [x]
        if n_features is not None and (n_features < width or (n_features > width and not self._sparse)):
            raise DataError(f"x has {width} columns, n_features={n_features} was asked for.")
        self.n_features = width if n_features is None else n_features
        group = _column(group, n, "groups")
        if group is not None:
            group = numbered(group, {})
        self._columns = [_column(y, n, "labels"), group, _weights(_column(weight, n, "weights"))]
        kept = x.dtype if x.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        self._dtype = np.dtype(dtype) if dtype is not None else kept
        self._file = file
        self.offsets = _cut(n, group if whole_groups else None, chunk_rows or _chunk_rows(x, self._dtype))
        self._begin()

    def _begin(self) -> None:
        self._reads_ahead = any(is_mapped(part) for part in self._parts)
        self._fine = np.zeros(self.offsets.size - 1, bool)

    def __getstate__(self) -> dict[str, Any]:
        """Arrays in memory travel to other processes with their own entries only, mapped ones as places in files."""
        parts, columns = map(packed, self._entries(0, len(self))), map(packed, self._columns)
        return {**self.__dict__, "_parts": list(parts), "_columns": list(columns)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._parts, self._columns = list(map(unpacked, self._parts)), list(map(unpacked, self._columns))
        if self._sparse and self._parts[0][0]:
            self._parts[0] = self._parts[0] - self._parts[0][0]
        self._begin()

    def only(self, begin: int, end: int) -> Arrays:
        """These chunks, as views."""
        a, b = int(self.offsets[begin]), int(self.offsets[end])
        part = object.__new__(type(self))
        part.__dict__.update(self.__dict__)
        part._shape = (b - a, self._shape[1])
        # Offsets of sparse rows still count from the beginning of all entries.
        part._parts = [self._parts[0][a : b + 1], *self._parts[1:]] if self._sparse else [self._parts[0][a:b]]
        part._columns = [column if column is None else column[a:b] for column in self._columns]
        part.offsets = self.offsets[begin : end + 1] - a
        part._begin()
        return part

    @property
    def fingerprint(self) -> str:
        said = (self._shape, self.n_features, str(self._parts[-1].dtype), str(self._dtype))
        found = crc32(repr(said).encode())
        if self._file is not None:
            found = crc32(repr((self._file.stamp.size, self._file.stamp.changed)).encode(), found)
        for part in self._parts:
            found = crc32(_sample(part), found)
        for column in self._columns:
            found = crc32(_column_bytes(column), found)
        return f"arrays-{len(self)}x{self.n_features}-{found:08x}"

    def chunk(self, i: int) -> Chunk:
        path = None
        if self._file is not None:
            self._file.check()
            path = self._file.path
        a, b = self.offsets[i], self.offsets[i + 1]
        *places, x = self._entries(a, b)
        if self._sparse:
            indptr, indices = places
            x = csr_view(indptr - indptr[0], indices, x, self.n_features)
        x, self._fine[i] = usable_rows(x, self._dtype, self.n_features, int(a), path=path, checked=self._fine[i])
        return self._with_columns(i, x)

    def labels(self, i: int) -> Chunk:
        return self._with_columns(i, None)

    def nbytes(self, i: int) -> int:
        a, b = self.offsets[i], self.offsets[i + 1]
        *places, values = self._entries(a, b)
        columns = [column[a:b] for column in self._columns if column is not None]
        return int(values.size * self._dtype.itemsize + sum(part.nbytes for part in [*places, *columns]))

    def release(self, i: int) -> None:
        if self._reads_ahead:
            for part in self._entries(self.offsets[i], self.offsets[i + 1]):
                drop_pages(part)

    def _entries(self, a: int, b: int) -> list[np.ndarray]:
        """The values of rows a … b − 1; of sparse ones their offsets, indices and values."""
        if not self._sparse:
            return [np.asarray(self._parts[0][a:b])]
        offsets, *entries = self._parts
        p, q = offsets[a], offsets[b]
        return [np.asarray(part) for part in (offsets[a : b + 1], *(part[p:q] for part in entries))]

    def _touched(self, i: int) -> Chunk:
        chunk = self.chunk(i)
        if self._reads_ahead:
            for part in [chunk.x.indptr, chunk.x.indices, chunk.x.data] if self._sparse else [chunk.x]:
                if part.size and part.flags.c_contiguous:
                    part.reshape(-1).view(np.uint8)[::4096].max()
        return chunk

    def _with_columns(self, i: int, x: object) -> Chunk:
        a, b = self.offsets[i], self.offsets[i + 1]
        return Chunk(np.arange(a, b), x, *(c if c is None else c[a:b] for c in self._columns))


def open_arrays(x: object, labels: object, groups: object, weights: object, **options: Any) -> Arrays:
    """A matrix and its columns, as they may be given."""
    return Arrays(x, *(_load_column(column) for column in (labels, groups, weights)), **options)


def open_npy(paths: Sequence[str], labels: object, groups: object, weights: object, **options: Any) -> Arrays:
    """A ``.npy`` file as a source, never read whole."""
    path = paths[0]
    if len(paths) > 1:
        raise DataError(
            f"{path} and {len(paths) - 1} more .npy files: only one can be opened. Put their rows into one file, or "
            "write them as Parquet.",
            path=path,
        )
    table, file = map_npy(path)
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        raise DataError(
            f"{path} holds {table.dtype} of shape {table.shape}; a matrix of numbers is needed, one row per "
            "example. Labels go into labels=, as an array or the path of another .npy file.",
            path=path,
        )
    return open_arrays(table, labels, groups, weights, file=file, **options)


def _load_column(given: object) -> Any:
    """Labels, groups or weights as they may be given: an array, or the path of a ``.npy`` file."""
    if isinstance(given, str | Path):
        if not os.fspath(given).endswith(".npy"):
            raise DataError(f"labels, groups and weights are arrays or paths of .npy files, not {os.fspath(given)!r}.")
        column, _ = map_npy(given)
        return column.reshape(-1) if column.ndim == 2 and column.shape[1] == 1 else column
    return given


def _chunk_rows(x: Any, dtype: np.dtype) -> int:
    n, width = x.shape
    entry = 4 + dtype.itemsize
    row = 8 + entry * x.nnz / max(1, n) if sp.issparse(x) else dtype.itemsize * width
    return max(1, int(CHUNK_BYTES / max(1, row)))


def _column(given: object, n: int, name: str) -> np.ndarray | None:
    if given is None:
        return None
    check_unmasked(name, given)
    column = np.asanyarray(given)
    if column.ndim == 0 or column.shape[0] != n:
        raise DataError(f"{name} has {column.size} entries, x has {n} rows: one is needed for each.")
    return column


def _weights(weight: np.ndarray | None) -> np.ndarray | None:
    if weight is None:
        return None
    if weight.ndim != 1 or weight.dtype.kind not in "fiub":
        raise DataError(f"weights must be one number per row; got {weight.dtype} of shape {weight.shape}.")
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if bad.size:
        raise DataError(f"weights[{bad[0]}] is {weight[bad[0]]}: weights must be finite and not negative.")
    return weight.astype(np.float64, copy=False)


def numbered(group: np.ndarray, names: dict[Any, int]) -> np.ndarray:
    """Names of groups as numbers, the same in all parts of the data that share ``names``; numbers stay."""
    if group.ndim != 1:
        raise DataError(f"groups must be one number or name per row; got shape {group.shape}.")
    if group.dtype.kind in "iub":
        return group.astype(np.int64, copy=False)
    found, codes = np.unique(group, return_inverse=True)
    return np.array([names.setdefault(name, len(names)) for name in found.tolist()], np.int64)[codes]


def _cut(n: int, group: np.ndarray | None, rows: int) -> np.ndarray:
    """Offsets of chunks of about ``rows`` rows that never part a group."""
    if group is None:
        return np.append(np.arange(0, n, rows), n)
    GroupsInTurn("Sort the rows by group, or let maxmargin.data.convert gather them.").take(group)
    ends = np.append(group_starts(group)[1:], n)
    offsets = [0]
    while offsets[-1] < n:
        # As many groups as fit, but at least one.
        fitting = np.searchsorted(ends, offsets[-1] + rows, side="right") - 1
        begun = np.searchsorted(ends, offsets[-1], side="right")
        offsets.append(int(ends[max(fitting, begun)]))
    return np.array(offsets)


def _sample(part: np.ndarray) -> bytes:
    """Bytes from all over an array, all of it if it is small: at most a few hundred pages are read."""
    if part.flags.f_contiguous:
        part = part.T
    if not part.flags.c_contiguous or part.nbytes <= 1 << 20:
        flat = part.reshape(-1)[:: max(1, part.size >> 17)]
        return np.ascontiguousarray(flat).tobytes()
    flat = np.asarray(part).reshape(-1).view(np.uint8)
    begins = np.linspace(0, flat.size - 4096, 256).astype(np.int64)
    return b"".join(flat[b : b + 4096].tobytes() for b in begins)


def _column_bytes(column: np.ndarray | None) -> bytes:
    if column is None:
        return b"none"
    if column.dtype.hasobject:
        return repr(column.tolist()).encode()
    return np.ascontiguousarray(column).tobytes()
