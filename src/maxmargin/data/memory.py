"""Arrays as a source: NumPy or SciPy, in memory or mapped from a file, cut into chunks without a copy."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile
from zlib import crc32

import numpy as np
import scipy.sparse as sp

from ..protocols import Chunk
from .arrays import check_unmasked, checked_sparse, csr_view, usable_rows
from .errors import DataError
from .mapped import MappedFile, Pages, map_npy, packed, unpacked
from .runs import Chunked, joined
from .stores import DISK

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
        group: Any = None,
        weight: Any = None,
        *,
        chunk_rows: int | None = None,
        n_features: int | None = None,
        dtype: Any = None,
        files: Sequence[MappedFile] = (),
        whole_groups: bool = True,
    ) -> None:
        check_unmasked("x", x)
        # Column indices are looked at chunk by chunk, as they are read: there may be more than memory holds.
        self._x = checked_sparse(x, "x", entries=False) if sp.issparse(x) else np.asanyarray(x)
        if self._x.ndim != 2 or self._x.dtype.kind not in "fiub":
            raise DataError(
                f"x must be a matrix of numbers, one row per example; got {self._x.dtype} of shape {self._x.shape}."
            )
        n, width = self._x.shape
        self._sparse = sp.issparse(self._x)
        if n_features is not None and (n_features < width or (n_features > width and not self._sparse)):
            raise DataError(f"x has {width} columns, n_features={n_features} was asked for.")
        self.n_features = width if n_features is None else n_features
        self._y = _column(y, n, "labels")
        self._group = _group_numbers(_column(group, n, "groups"))
        self._weight = _weights(_column(weight, n, "weights"))
        kept = self._x.dtype if self._x.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        self._dtype = np.dtype(dtype) if dtype is not None else kept
        self._files = list(files)
        self.offsets = _cut(n, self._group if whole_groups else None, chunk_rows or _chunk_rows(self._x, self._dtype))
        self._see_maps()

    def __getstate__(self) -> dict[str, Any]:
        """Arrays in memory travel to other processes with their own entries only, mapped ones as places in files."""
        state = {name: value for name, value in self.__dict__.items() if name not in ("_maps", "_reads_ahead", "_fine")}
        parts = _parts(self._x)
        if self._sparse:
            used = slice(int(self._x.indptr[0]), int(self._x.indptr[-1]))
            parts = [self._x.indptr, self._x.indices[used], self._x.data[used]]
        columns = {name: packed(state[name]) for name in ("_y", "_group", "_weight")}
        return {**state, **columns, "_x": (self._x.shape, [packed(part) for part in parts])}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        shape, travelled = state["_x"]
        parts = [unpacked(part) for part in travelled]
        if self._sparse:
            indptr, indices, values = parts
            self._x = csr_view(indptr - indptr[0] if indptr[0] else indptr, indices, values, shape[1])
        else:
            self._x = parts[0]
        self._y, self._group, self._weight = (unpacked(state[name]) for name in ("_y", "_group", "_weight"))
        self._see_maps()

    def _see_maps(self) -> None:
        self._maps = [Pages(a) for a in _parts(self._x)]
        self._reads_ahead = any(m.mapped for m in self._maps)
        self._fine = np.zeros(self.offsets.size - 1, bool)

    def only(self, begin: int, end: int) -> Arrays:
        """These chunks, as views."""
        a, b = int(self.offsets[begin]), int(self.offsets[end])
        part = object.__new__(type(self))
        part.__dict__.update(self.__dict__)
        if self._sparse:  # its offsets still count from the beginning of all entries
            x = sp.csr_matrix((b - a, self._x.shape[1]), dtype=self._x.dtype)
            x.indptr, x.indices, x.data = self._x.indptr[a : b + 1], self._x.indices, self._x.data
            part._x = x
        else:
            part._x = self._x[a:b]
        columns = (self._y, self._group, self._weight)
        part._y, part._group, part._weight = (c[a:b] if c is not None else None for c in columns)
        part.offsets = self.offsets[begin : end + 1] - a
        part._see_maps()
        return part

    @property
    def fingerprint(self) -> str:
        found = crc32(repr((self._x.shape, self.n_features, str(self._x.dtype), str(self._dtype))).encode())
        for file in self._files:
            found = crc32(repr((file.stamp.size, file.stamp.changed)).encode(), found)
        for part in _parts(self._x):
            found = crc32(_sample(part), found)
        for column in (self._y, self._group, self._weight):
            found = crc32(_column_bytes(column), found)
        return f"arrays-{len(self)}x{self.n_features}-{found:08x}"

    def chunk(self, i: int) -> Chunk:
        for file in self._files:
            file.check()
        a, b = self.offsets[i], self.offsets[i + 1]
        if self._sparse:
            indptr, indices, values = self._entries(a, b)
            x = csr_view(indptr - indptr[0], indices, values, self.n_features)
        else:
            x = np.asarray(self._x[a:b])
        path = self._files[0].path if self._files else None
        x, self._fine[i] = usable_rows(x, self._dtype, self.n_features, int(a), path=path, checked=self._fine[i])
        return self._with_columns(a, b, x)

    def labels(self, i: int) -> Chunk:
        return self._with_columns(self.offsets[i], self.offsets[i + 1], None)

    def nbytes(self, i: int) -> int:
        a, b = self.offsets[i], self.offsets[i + 1]
        columns = sum(c[a:b].nbytes for c in (self._y, self._group, self._weight) if c is not None)
        if not self._sparse:
            return int((b - a) * self.n_features * self._dtype.itemsize + columns)
        entries = int(self._x.indptr[b]) - int(self._x.indptr[a])
        entry = self._x.indices.itemsize + self._dtype.itemsize
        return int(entries * entry + (b - a + 1) * self._x.indptr.itemsize + columns)

    def release(self, i: int) -> None:
        if self._reads_ahead:
            a, b = self.offsets[i], self.offsets[i + 1]
            for pages, part in zip(self._maps, self._entries(a, b) if self._sparse else [self._x[a:b]], strict=True):
                pages.drop(part)

    def _entries(self, a: int, b: int) -> list[np.ndarray]:
        """Offsets, indices and values of rows a … b − 1 of a sparse matrix."""
        p, q = self._x.indptr[a], self._x.indptr[b]
        return [np.asarray(part) for part in (self._x.indptr[a : b + 1], self._x.indices[p:q], self._x.data[p:q])]

    def _touched(self, i: int) -> Chunk:
        chunk = self.chunk(i)
        if self._reads_ahead:
            for part in _parts(chunk.x):
                if part.size and part.flags.c_contiguous:
                    part.reshape(-1).view(np.uint8)[::4096].max()
        return chunk

    def _with_columns(self, a: int, b: int, x: Any) -> Chunk:
        y, group, weight = (c[a:b] if c is not None else None for c in (self._y, self._group, self._weight))
        return Chunk(np.arange(a, b), x, y, group, weight)


def open_arrays(x: Any, labels: Any, groups: Any, weights: Any, **options: Any) -> Arrays:
    """A matrix and its columns, as they may be given."""
    return Arrays(x, *(_load_column(column) for column in (labels, groups, weights)), **options)


def open_npy(paths: Sequence[str], **options: Any) -> Any:
    """``.npy`` files as a source, never read whole."""
    return _open_files(_map_one, paths, **options)


def open_npz(paths: Sequence[str], **options: Any) -> Any:
    """``.npz`` files with ``x`` (or ``X``) and ``y``, or with a SciPy matrix, read into memory."""
    return _open_files(_load_npz, paths, **options)


def _open_files(
    read: Callable[..., Arrays],
    paths: Sequence[str],
    labels: Any,
    groups: Any,
    weights: Any,
    *,
    whole_groups: bool,
    **options: Any,
) -> Any:
    parts: list[Any] = []
    names: dict[Any, int] = {}
    for k, path in enumerate(paths):
        own = [labels, groups, weights]
        if len(paths) > 1:
            if any(c is not None and (not isinstance(c, list | tuple) or len(c) != len(paths)) for c in own):
                raise DataError(f"{len(paths)} files need labels, groups and weights as lists of {len(paths)}.")
            own = [None if c is None else c[k] for c in own]
        y, group, weight = (_load_column(column) for column in own)
        if len(paths) > 1:
            group = _numbered(group, names)
        parts.append(read(path, y, group, weight, whole_groups=whole_groups, **options))
    return joined(parts, whole_groups)


def _map_one(path: str, *columns: Any, **options: Any) -> Arrays:
    table, file = map_npy(path)
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        raise DataError(
            f"{path} holds {table.dtype} of shape {table.shape}; a matrix of numbers is needed, one row per "
            "example. Labels go into labels=, as an array or the path of another .npy file.",
            path=path,
        )
    return Arrays(table, *columns, files=[file], **options)


def _load_npz(path: str, *columns: Any, **options: Any) -> Arrays:
    try:
        with np.load(path, allow_pickle=False) as stored:
            held = {key: stored[key] for key in stored.files}
    except (ValueError, BadZipFile, EOFError, KeyError, MemoryError) as error:
        raise DataError(
            f"{path} is not a whole .npz file of plain arrays: {error}. Write it anew with numpy.savez.", path=path
        ) from None
    except OSError as error:
        raise DISK.unreadable(path, error) from error
    if {"data", "indices", "indptr", "shape"} <= held.keys():
        if held.get("format", b"csr") != b"csr":
            kind = held["format"].item().decode()
            raise DataError(f"{path} holds a sparse matrix of format {kind}; save it as CSR: x.tocsr().", path=path)
        try:
            x = sp.csr_matrix((held["data"], held["indices"], held["indptr"]), shape=tuple(held["shape"]))
        except (TypeError, ValueError) as error:
            raise DataError(f"{path} holds a broken sparse matrix: {error}. Write it anew.", path=path) from None
    elif "x" in held or "X" in held:
        x = held["x"] if "x" in held else held["X"]
    else:
        raise DataError(
            f"{path} holds {', '.join(sorted(held)) or 'nothing'}; it needs a matrix x (or X) and labels y.", path=path
        )
    pairs = zip(("y", "group", "weight"), columns, strict=True)
    return Arrays(x, *(held.get(name) if column is None else column for name, column in pairs), **options)


def _load_column(given: Any) -> Any:
    """Labels, groups or weights as they may be given: an array, or the path of a ``.npy`` file."""
    if isinstance(given, str | Path):
        if not os.fspath(given).endswith(".npy"):
            raise DataError(f"labels, groups and weights are arrays or paths of .npy files, not {os.fspath(given)!r}.")
        column, _ = map_npy(given)
        return column.reshape(-1) if column.ndim == 2 and column.shape[1] == 1 else column
    return given


def _parts(x: Any) -> list[np.ndarray]:
    return [x.indptr, x.indices, x.data] if sp.issparse(x) else [x]


def _chunk_rows(x: Any, dtype: np.dtype) -> int:
    n, width = x.shape
    entry = 4 + dtype.itemsize
    row = 8 + entry * x.nnz / max(1, n) if sp.issparse(x) else dtype.itemsize * width
    return max(1, int(CHUNK_BYTES / max(1, row)))


def _column(given: Any, n: int, name: str) -> np.ndarray | None:
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


def _group_numbers(group: np.ndarray | None) -> np.ndarray | None:
    if group is None:
        return None
    if group.ndim != 1:
        raise DataError(f"groups must be one number or name per row; got shape {group.shape}.")
    if group.dtype.kind in "iub":
        return group.astype(np.int64, copy=False)
    return np.unique(group, return_inverse=True)[1].astype(np.int64)


def _numbered(group: Any, names: dict[Any, int]) -> Any:
    """Names of groups as numbers, the same in all files that share ``names``; numbers stay."""
    if group is None or np.asarray(group).dtype.kind in "iub":
        return group
    return np.array([names.setdefault(name, len(names)) for name in np.asarray(group).tolist()], np.int64)


def group_starts(group: np.ndarray) -> np.ndarray:
    """Rows where a group begins."""
    return np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]])) if group.size else np.empty(0, np.int64)


def _cut(n: int, group: np.ndarray | None, rows: int) -> np.ndarray:
    """Offsets of chunks of about ``rows`` rows that never part a group."""
    if group is None:
        return np.append(np.arange(0, n, rows), n)
    starts = group_starts(group)
    names = group[starts]
    ordered = np.argsort(names, kind="stable")
    again = np.flatnonzero(names[ordered][1:] == names[ordered][:-1])
    if again.size:
        k = ordered[again[0] + 1]
        raise DataError(
            f"Rows of a group must be next to each other: group {names[k]} begins again in row {starts[k]}. Sort the "
            "rows by group, or let maxmargin.data.convert gather them.",
            row=int(starts[k]),
        )
    ends = np.append(starts[1:], n)
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
