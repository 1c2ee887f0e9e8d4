"""Shards: a data set on disk, read in any order and without a copy."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike

from ..kernels import batches
from ..protocols import Chunk
from .arrays import csr_view
from .errors import DataError
from .mapped import MappedFile
from .runs import Chunked, joined
from .shard_format import Batch, Columns, Shard, read_contents, read_layout
from .stores import DISK, Disk, Stamp, Store, StoredFile, other_data

Place = tuple[int, np.dtype, int]
_OPEN_FILES = 128
"""Files kept at a time: a process may have only so many open."""


class Shards(Chunked):
    """A data set written by ``convert``: a ``Seekable`` source. Every record batch is a chunk.

    Chunks are views on the mapped files. A batch is checked against its checksum, and its structure for sense, when
    it is first read; labels have a checksum of their own.

    Parameters
    ----------
    what : path or list of paths
        The folder of a data set; or Arrow files of one, which are then read without their table of contents.
    n_features : int, optional
        More columns than the data has: those of another data set.
    dtype : optional
        Inputs as float32 or float64, whatever is stored.
    on_error : "raise" or "skip"
        "skip" checks all batches at once and leaves out what is damaged; ``skipped`` says what that was.
    filesystem : Disk or Store
        Where the folder is. Chunks of what is not on a local disk are read, not mapped, and checked every time.
    """

    n_skipped: int
    n_features: int
    offsets: np.ndarray

    def __init__(
        self,
        what: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        n_features: int | None = None,
        dtype: DTypeLike | None = None,
        on_error: str = "raise",
        filesystem: Disk = DISK,
    ) -> None:
        self._what = os.fspath(what) if isinstance(what, str | os.PathLike) else [os.fspath(path) for path in what]
        self._store, self._skip = filesystem, on_error == "skip"
        self._left_out: list[int] = []
        self._open(n_features, dtype)
        if self._skip:
            self._leave_out_damaged()
        self.n_skipped = len(self.skipped)

    def _open(self, n_features: int | None, dtype: DTypeLike | None) -> None:
        self._lock = threading.Lock()
        self.skipped: list[str] = []
        skip = self.skipped if self._skip else None
        if isinstance(self._what, str):
            shards, self._columns, width, self.origin = read_contents(self._what, self._store)
        else:
            shards, self._columns, width = _read_layouts(self._what, skip)
        if n_features is not None and (n_features < width or (n_features > width and not self._columns.sparse)):
            raise DataError(f"The shards have {width} features, n_features={n_features} was asked for.")
        self.n_features = width if n_features is None else n_features
        self._dtype = np.dtype(self._columns.dtype if dtype is None else dtype)
        self._stamps: dict[str, Stamp] = {}
        for shard in shards:
            with _noted(skip):
                self._stamps[shard.path] = _stamp(shard, self._store)
        self._files: dict[str, MappedFile | StoredFile] = {}
        self._set_batches([(s.path, b) for s in shards if s.path in self._stamps for b in s.batches])

    def _set_batches(self, batches: list[tuple[str, Batch]]) -> None:
        """All batches, of which those that were left out are no part of the data."""
        self._batches = [held for i, held in enumerate(batches) if i not in self._left_out]
        self.offsets = np.cumsum([0, *(batch.rows for _, batch in self._batches)], dtype=np.int64)
        self._checked = {part: np.zeros(len(self._batches), bool) for part in ("inputs", "labels")}

    def __getstate__(self) -> dict[str, Any]:
        """To other processes goes what was opened, not what was found: it is opened there again.

        What is damaged was found when the data was opened: nothing is read for that again.
        """
        names = ("_store", "_skip", "_left_out", "skipped", "n_skipped", "n_features", "_dtype", "fingerprint")
        absolute = self._store.absolute
        what = absolute(self._what) if isinstance(self._what, str) else [absolute(path) for path in self._what]
        return {"_what": what, **{name: getattr(self, name) for name in names}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        fingerprint = state.pop("fingerprint")
        self.__dict__.update(state)
        self._open(self.n_features, self._dtype)
        self.skipped = state["skipped"]
        if self.fingerprint != fingerprint:
            raise other_data(self._what if isinstance(self._what, str) else self._what[0])

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

    def _with_columns(self, i: int, arrays: list[np.ndarray], x: Any) -> Chunk:
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

    def _leave_out_damaged(self) -> None:
        for i in range(len(self._batches)):
            try:
                self.chunk(i)
            except DataError as error:
                self.skipped.append(str(error))
                self._left_out.append(i)
            self.release(i)
        self._set_batches(self._batches)


def open_folders(paths: Sequence[str], *, whole_groups: bool, **options: Any) -> Any:
    """Data sets, one after another."""
    return joined([Shards(path, **options) for path in paths], whole_groups)


def _read_layouts(paths: list[str], skip: list[str] | None) -> tuple[list[Shard], Columns, int]:
    """The same as the table of contents says, found in the files themselves."""
    found = []
    for path in paths:
        with _noted(skip):
            found.append(read_layout(path, skip))
    if not found:
        raise DataError("None of the files can be read: " + " ".join(skip or ["none was given."]))
    shards, columns, widths = zip(*found, strict=True)
    for shard, other in zip(shards, columns, strict=True):
        if other != columns[0]:
            raise DataError(
                f"{shards[0].path} and {shard.path} have different columns: {_difference(columns[0], other)}. "
                "Convert the data as one.",
                path=shard.path,
            )
    return list(shards), columns[0], max(widths)


@contextlib.contextmanager
def _noted(skip: list[str] | None) -> Iterator[None]:
    """What is damaged is noted in ``skip``, where there is such a list."""
    try:
        yield
    except DataError as error:
        if skip is None:
            raise
        skip.append(str(error))


def _difference(one: Columns, other: Columns) -> str:
    words = {"dtype": "values", "width": "columns of dense rows"}
    pairs = [(words.get(f.name, f.name), getattr(one, f.name), getattr(other, f.name)) for f in fields(one)]
    return ", ".join(f"{word} {a} and {b}" for word, a, b in pairs if a != b)


def _span(places: list[Place]) -> tuple[int, int]:
    held = [(start, start + dtype.itemsize * count) for start, dtype, count in places if count]
    return (min(a for a, _ in held), max(b for _, b in held)) if held else (0, 0)


def _stamp(shard: Shard, store: Disk) -> Stamp:
    if not store.exists(shard.path):
        raise DataError(
            f"{shard.path} is missing: the data set has {len(shard.batches)} chunks in it. Copy "
            f"{Path(shard.path).parent} again.",
            path=shard.path,
        )
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
        return "" if batches.first_not_finite(arrays[0]) < 0 else "it has values that are not finite"
    indptr, indices, again, values = arrays
    verdict, row, _ = batches.check_rows(indptr, indices, values, width)
    if verdict == batches.GOOD and not np.array_equal(indptr, again):
        return "indices and values have different offsets"
    return {
        batches.GOOD: "",
        batches.BAD_OFFSETS: f"the offsets of row {row} make no sense",
        batches.BAD_INDEX: f"row {row} has an index that is not below {width}",
        batches.UNSORTED: f"the indices of row {row} do not ascend",
        batches.NOT_FINITE: f"row {row} has a value that is not finite",
    }[verdict]


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
        f"{path} is damaged in batch {batch.number}: {what}. Copy or convert it again, or leave out what is "
        "damaged with on_error='skip'.",
        path=path,
        row=batch.number,
    )
