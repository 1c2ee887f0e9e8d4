"""Shards: a data set on disk, read in any order and without a copy."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike

from ..kernels import batches
from ..protocols import Chunk
from .arrays import csr_view, first_not_finite
from .chunked import Chunked, GroupsInTurn
from .errors import DataError
from .mapped import MappedFile
from .shard_format import Batch, Shard, read_contents
from .stores import DISK, Disk, Stamp, Store, StoredFile, other_data

Place = tuple[int, np.dtype, int]
_OPEN_FILES = 128
"""Files kept at a time: a process may have only so many open."""


class Shards(Chunked):
    """A data set written by ``convert``, or several one after another: a ``Seekable`` source. Batches are its chunks.

    Chunks are views on the mapped files. A batch is checked against its checksum, and its structure for sense, when
    it is first read; labels have a checksum of their own.

    Parameters
    ----------
    folders : list of paths
        Data sets of like columns; sparse ones may have different numbers of features.
    n_features : int, optional
        More columns than the data has: those of another data set.
    dtype : optional
        Inputs as float32 or float64, whatever is stored.
    filesystem : Disk or Store
        Where the folders are. Chunks of what is not on a local disk are read, not mapped, and checked every time.
    whole_groups : bool
        Whether to refuse groups that are in two of the folders, and would be taken for two.
    """

    n_features: int
    offsets: np.ndarray

    def __init__(
        self,
        folders: Sequence[str | os.PathLike[str]],
        *,
        n_features: int | None = None,
        dtype: DTypeLike | None = None,
        filesystem: Disk = DISK,
        whole_groups: bool = True,
    ) -> None:
        self._folders = [os.fspath(folder) for folder in folders]
        self._store = filesystem
        self.n_skipped = 0  # rows that ``convert`` has left out
        self._open(n_features, dtype)
        if whole_groups and len(self._folders) > 1 and self._columns.group:
            groups = GroupsInTurn(
                "Number groups differently in each folder, or let maxmargin.data.convert gather them."
            )
            for i in range(len(self._batches)):
                groups.take(self.labels(i).group, apart=True)  # type: ignore[arg-type]
                self.release(i)

    def _open(self, n_features: int | None, dtype: DTypeLike | None) -> None:
        self._lock = threading.Lock()
        found = [read_contents(folder, self._store) for folder in self._folders]
        _, self._columns, _, self.origin = found[0]
        for folder, (_, columns, _, origin) in zip(self._folders, found, strict=True):
            if (columns, origin) != (self._columns, self.origin):
                raise DataError(
                    f"{self._folders[0]} and {folder} hold unlike data: {self._columns}, {self.origin}; and {columns}, "
                    f"{origin}. Convert the data as one.",
                    path=folder,
                )
        width = max(contents.n_features for contents in found)
        if n_features is not None and (n_features < width or (n_features > width and not self._columns.sparse)):
            raise DataError(f"The shards have {width} features, n_features={n_features} was asked for.")
        self.n_features = width if n_features is None else n_features
        self._dtype = np.dtype(self._columns.dtype if dtype is None else dtype)
        shards = [shard for contents in found for shard in contents.shards]
        self._stamps = {shard.path: _stamp(shard, self._store) for shard in shards}
        self._files: dict[str, MappedFile | StoredFile] = {}
        self._batches = [(shard.path, batch) for shard in shards for batch in shard.batches]
        self.offsets = np.cumsum([0, *(batch.rows for _, batch in self._batches)], dtype=np.int64)
        self._checked = {part: np.zeros(len(self._batches), bool) for part in ("inputs", "labels")}

    def __getstate__(self) -> dict[str, Any]:
        """To other processes goes what was opened, not what was found: it is opened there again."""
        names = ("_store", "n_skipped", "n_features", "_dtype", "fingerprint")
        folders = [self._store.absolute(folder) for folder in self._folders]
        return {"_folders": folders, **{name: getattr(self, name) for name in names}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        fingerprint = state.pop("fingerprint")
        self.__dict__.update(state)
        self._open(self.n_features, self._dtype)
        if self.fingerprint != fingerprint:
            raise other_data(self._folders[0])

    @property
    def paths(self) -> list[str]:
        """The files."""
        return list(self._stamps)

    @property
    def fingerprint(self) -> str:
        sums = [(b.rows, b.inputs_sum, b.others_sum) for _, b in self._batches]
        found = blake2b(repr((self._columns, self.n_features, str(self._dtype), sums)).encode(), digest_size=8)
        return f"shards-{len(self)}x{self.n_features}-{found.hexdigest()}"

    def chunk(self, i: int) -> Chunk:
        path, batch = self._batches[i]
        arrays = self._arrays(path, self._places(batch))
        cut = self._columns.n_inputs
        return self._with_columns(i, arrays[cut:], self._inputs(i, arrays[:cut]))

    def labels(self, i: int) -> Chunk:
        path, batch = self._batches[i]
        return self._with_columns(i, self._arrays(path, self._places(batch)[self._columns.n_inputs :]), None)

    def nbytes(self, i: int) -> int:
        parts = self._columns.parts(*self._batches[i][1].counts)
        return sum(np.dtype(dtype).itemsize * count for dtype, count in parts)

    def release(self, i: int) -> None:
        path, batch = self._batches[i]
        with self._lock:
            file = self._files.get(path)
        if file is not None:
            file.drop(*_span(self._places(batch)))

    def _touched(self, i: int) -> Chunk:
        path, batch = self._batches[i]
        self._file(path).warm(*_span(self._places(batch)))
        return self.chunk(i)

    def _places(self, batch: Batch) -> list[Place]:
        """First byte, type and count of each array of a batch: those of the inputs, then the others."""
        parts = self._columns.parts(*batch.counts)
        return [(start, np.dtype(dtype), count) for start, (dtype, count) in zip(batch.starts, parts, strict=True)]

    def _file(self, path: str) -> MappedFile | StoredFile:
        with self._lock:
            file = self._files.pop(path, None)
            if file is None:
                stamp, store = self._stamps[path], self._store
                file = StoredFile(store, path, stamp) if isinstance(store, Store) else MappedFile(path, stamp)
                while len(self._files) >= _OPEN_FILES:
                    self._files.pop(next(iter(self._files)))
            self._files[path] = file  # the last one used is the last one to go
        file.check()
        return file

    def _arrays(self, path: str, places: list[Place]) -> list[np.ndarray]:
        begin, end = _span(places)
        region = self._file(path).region(begin, end)
        return [
            np.frombuffer(region, dtype, count, start - begin) if count else np.empty(0, dtype)
            for start, dtype, count in places
        ]

    def _check(self, i: int, arrays: list[np.ndarray], part: str, sense: Callable[[], str]) -> None:
        """Complain if the checksum of the inputs or labels of a batch is wrong, or they make no sense."""
        if self._checked[part][i]:
            return
        path, batch = self._batches[i]
        inputs = part == "inputs"
        found = self._columns.checksum(batch.number, batch.counts, arrays, inputs=inputs)
        wrong = found != (batch.inputs_sum if inputs else batch.others_sum)
        what = f"the checksum of its {part} is wrong" if wrong else sense()
        if what:
            raise _damaged(path, batch, what)
        self._checked[part][i] = self._store.local  # what is mapped stays; what is read again is checked again

    def _inputs(self, i: int, arrays: list[np.ndarray]) -> Any:
        path, batch = self._batches[i]
        self._check(i, arrays, "inputs", lambda: _sense(arrays, self.n_features))
        values = arrays[-1]
        given = values.astype(self._dtype, copy=False)
        if given is not values and self._dtype.itemsize < values.itemsize and not np.isfinite(given).all():
            raise DataError(f"{path}: values in batch {batch.number} are too large for {self._dtype}.", path=path)
        if self._columns.sparse:
            return csr_view(arrays[0], arrays[1], given, self.n_features)
        return given.reshape(batch.rows, self.n_features)

    def _with_columns(self, i: int, arrays: list[np.ndarray], x: object) -> Chunk:
        path, batch = self._batches[i]
        self._check(i, arrays, "labels", lambda: "")
        left = iter(arrays)
        columns = self._columns
        y = None if columns.label is None else next(left)
        if columns.label == "utf8":
            y = _texts(y, next(left), path, batch)  # type: ignore[arg-type]
        group = next(left) if columns.group else None
        weight = next(left) if columns.weight else None
        a = self.offsets[i]
        return Chunk(np.arange(a, a + batch.rows), x, y, group, weight)


def _span(places: list[Place]) -> tuple[int, int]:
    held = [(start, start + dtype.itemsize * count) for start, dtype, count in places if count]
    return (min(a for a, _ in held), max(b for _, b in held)) if held else (0, 0)


def _stamp(shard: Shard, store: Disk) -> Stamp:
    stamp = store.stamp(shard.path)
    if stamp.size != shard.size:
        raise DataError(
            f"{shard.path} has {stamp.size} bytes, {shard.size} were written: it is cut short or was changed. "
            "Copy or convert it again.",
            path=shard.path,
        )
    return stamp


def _sense(arrays: list[np.ndarray], width: int) -> str:
    """What is wrong with the structure of rows, '' if nothing is: kernels rely on it."""
    if len(arrays) == 1:
        return "" if first_not_finite(arrays[0]) is None else "it has values that are not finite"
    indptr, indices, again, values = arrays
    verdict, row, _ = batches.check_rows(indptr, indices, values, width)
    if verdict == batches.GOOD and np.array_equal(indptr, again):
        return ""
    return f"row {row} has offsets, indices or values that make no sense for {width} features"


def _texts(offsets: np.ndarray, data: np.ndarray, path: str, batch: Batch) -> np.ndarray:
    if offsets[0] != 0 or offsets[-1] != data.size or (np.diff(offsets) < 0).any():
        raise _damaged(path, batch, "the offsets of its labels make no sense")
    texts = pa.Array.from_buffers(pa.utf8(), batch.rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raise _damaged(path, batch, "its labels are no text") from None
    found = texts.dictionary_encode()  # few different labels: make each Python text once
    return np.array(found.dictionary.to_pylist() or [""])[found.indices.to_numpy(zero_copy_only=False)]


def _damaged(path: str, batch: Batch, what: str) -> DataError:
    return DataError(
        f"{path} is damaged in batch {batch.number}: {what}. Copy or convert it again.",
        path=path,
        row=batch.number,
    )
