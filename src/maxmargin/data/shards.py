"""Shards: a data set on disk, read in any order and without a copy."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import fields
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from ..protocols import Chunk
from .errors import DataError
from .mapped import MappedFile, Stamp, stamp_of, unreadable
from .memory import csr_view
from .prefetch import prefetched
from .shard_format import Batch, Columns, Shard, read_contents, read_layout, sum_of_inputs, sum_of_others
from .stores import Store, StoredFile
from .travelling import other_data

Place = tuple[int, tuple[str, int]]
_OPEN_FILES = 128
"""Files kept at a time: a process may have only so many open."""


class Shards:
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
    filesystem : Store, optional
        Where the folder is, if not on a local disk. Chunks are then read, not mapped, and checked every time.
    """

    n_skipped: int
    n_features: int
    offsets: np.ndarray

    def __init__(
        self,
        what: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        n_features: int | None = None,
        dtype: Any = None,
        on_error: str = "raise",
        filesystem: Store | None = None,
    ) -> None:
        self._what, self._store, self._skip = what, filesystem, on_error == "skip"
        self._lock = threading.Lock()
        self._open(n_features, dtype)
        self._left_out: list[int] = []
        if self._skip:
            self._leave_out_damaged()

    def _open(self, n_features: int | None, dtype: Any) -> None:
        self.skipped: list[str] = []
        self.n_skipped = 0
        self.origin: dict[str, Any] = {}
        skip = self.skipped if self._skip else None
        if isinstance(self._what, str | os.PathLike):
            shards, self._columns, width, self.origin = read_contents(self._what, self._store)
        else:
            shards, self._columns, width = _read_layouts([os.fspath(path) for path in self._what], skip)
        if n_features is not None and (n_features < width or (n_features > width and not self._columns.sparse)):
            raise DataError(f"The shards have {width} features, n_features={n_features} was asked for.")
        self.n_features = width if n_features is None else n_features
        self._dtype = np.dtype(self._columns.dtype if dtype is None else dtype)
        stamps = ((shard.path, _stamp(shard, self._store, skip)) for shard in shards)
        self._stamps = {path: stamp for path, stamp in stamps if stamp is not None}
        self._files: dict[str, MappedFile | StoredFile] = {}
        self._set_batches([(s.path, b) for s in shards if s.path in self._stamps for b in s.batches])

    def _set_batches(self, batches: list[tuple[str, Batch]]) -> None:
        self._batches = batches
        self.offsets = np.concatenate([[0], np.cumsum([b.rows for _, b in batches], dtype=np.int64)]).astype(np.int64)
        self._inputs_checked = np.zeros(len(batches), bool)
        self._others_checked = np.zeros(len(batches), bool)

    def __getstate__(self) -> dict[str, Any]:
        """To other processes goes what was opened, not what was found: it is opened there again."""
        what: Any = self._what
        if self._store is None:
            single = isinstance(what, str | os.PathLike)
            what = os.path.abspath(what) if single else [os.path.abspath(path) for path in what]
        return {
            "_what": what,
            "_store": self._store,
            "_skip": self._skip,
            "_left_out": self._left_out,
            "skipped": self.skipped,
            "opened": (self.n_features, self._dtype, self.fingerprint),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._what, self._store, self._skip = state["_what"], state["_store"], state["_skip"]
        self._lock = threading.Lock()
        n_features, dtype, fingerprint = state["opened"]
        self._open(n_features, dtype)
        if self._skip:  # what is damaged was found when the data was opened: nothing is read for that again
            self._left_out, self.skipped, self.n_skipped = state["_left_out"], state["skipped"], len(state["skipped"])
            gone = set(self._left_out)
            self._set_batches([held for i, held in enumerate(self._batches) if i not in gone])
        else:
            self._left_out = []
        if self.fingerprint != fingerprint:
            raise other_data(os.fspath(self._what) if isinstance(self._what, str | os.PathLike) else self.paths[0])

    def __len__(self) -> int:
        return int(self.offsets[-1])

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
        n_inputs = self._n_inputs(batch)
        x = self._inputs(i, path, batch, arrays[:n_inputs])
        return self._with_columns(i, path, batch, arrays[n_inputs:], x)

    def labels(self, i: int) -> Chunk:
        path, batch = self._batches[i]
        others = self._arrays(path, self._places(batch)[self._n_inputs(batch) :])
        return self._with_columns(i, path, batch, others, None)

    def nbytes(self, i: int) -> int:
        _, batch = self._batches[i]
        return sum(np.dtype(dtype).itemsize * count for dtype, count in self._columns.all_parts(batch))

    def release(self, i: int) -> None:
        path, batch = self._batches[i]
        with self._lock:
            file = self._files.get(path)
        if file is not None:
            file.drop(*_span(self._places(batch)))

    def chunks(self, order: np.ndarray | None = None) -> Iterator[Chunk]:
        numbers = range(len(self._batches)) if order is None else order
        made = ((int(i), self._touched(int(i))) for i in numbers)
        for i, chunk in prefetched(made):
            yield chunk
            del chunk
            self.release(i)

    def _touched(self, i: int) -> Chunk:
        """A chunk that is in memory when it is needed, not when it is first used."""
        path, batch = self._batches[i]
        self._file(path).warm(*_span(self._places(batch)))
        return self.chunk(i)

    def _places(self, batch: Batch) -> list[Place]:
        """First byte, type and count of each array of a batch: those of the inputs, then the others."""
        return list(zip(batch.starts, self._columns.all_parts(batch), strict=True))

    def _n_inputs(self, batch: Batch) -> int:
        return len(self._columns.parts(batch.rows, batch.entries, batch.text)[0])

    def _file(self, path: str) -> MappedFile | StoredFile:
        with self._lock:
            file = self._files.pop(path, None)
            if file is None:
                stamp = self._stamps[path]
                file = MappedFile(path, stamp) if self._store is None else StoredFile(self._store, path, stamp)
                while len(self._files) >= _OPEN_FILES:
                    self._files.pop(next(iter(self._files)))
            self._files[path] = file  # the last one used is the last one to go
        file.check()
        return file

    def _arrays(self, path: str, places: list[Place]) -> list[np.ndarray]:
        region = self._file(path).region(*_span(places))
        return [region.view(dtype, start, count) for start, (dtype, count) in places]

    def _inputs(self, i: int, path: str, batch: Batch, arrays: list[np.ndarray]) -> Any:
        if not self._inputs_checked[i]:
            counts = (batch.rows, batch.entries, batch.text)
            if sum_of_inputs(self._columns, batch.number, counts, arrays) != batch.inputs_sum:
                raise _damaged(path, batch, "the checksum of its inputs is wrong")
        if self._columns.sparse:
            indptr, indices, again, values = arrays
        else:
            values = arrays[0]
            indptr = again = indices = np.empty(0, np.int32)
        if not self._inputs_checked[i]:
            problem = _sense(indptr, indices, again, values, self.n_features, self._columns.sparse)
            if problem:
                raise _damaged(path, batch, problem)
            self._inputs_checked[i] = self._store is None
        given = values.astype(self._dtype, copy=False)
        if given is not values and self._dtype.itemsize < values.itemsize and not np.isfinite(given).all():
            raise DataError(f"{path}: values in batch {batch.number} are too large for {self._dtype}.", path=path)
        if self._columns.sparse:
            return csr_view(indptr, indices, given, self.n_features)
        return given.reshape(batch.rows, self.n_features)

    def _with_columns(self, i: int, path: str, batch: Batch, arrays: list[np.ndarray], x: Any) -> Chunk:
        columns = self._columns
        if not self._others_checked[i]:
            counts = (batch.rows, batch.entries, batch.text)
            if sum_of_others(columns, batch.number, counts, arrays) != batch.others_sum:
                raise _damaged(path, batch, "the checksum of its labels is wrong")
            self._others_checked[i] = self._store is None  # what is mapped stays; what is read again is checked again
        left = list(arrays)
        y = None
        if columns.label == "utf8":
            y = _texts(left.pop(0), left.pop(0), path, batch)
        elif columns.label is not None:
            y = left.pop(0)
        group = left.pop(0) if columns.group else None
        weight = left.pop(0) if columns.weight else None
        a = self.offsets[i]
        return Chunk(np.arange(a, a + batch.rows), x, y, group, weight)

    def _leave_out_damaged(self) -> None:
        good = []
        for i, held in enumerate(self._batches):
            try:
                self.chunk(i)
                good.append(held)
            except DataError as error:
                self.skipped.append(str(error))
                self._left_out.append(i)
            self.release(i)
        self._set_batches(good)
        self.n_skipped = len(self.skipped)


def _read_layouts(paths: list[str], skip: list[str] | None) -> tuple[list[Shard], Columns, int]:
    """The same as the table of contents says, found in the files themselves."""
    shards: list[Shard] = []
    width, columns = 0, None
    for path in paths:
        try:
            shard, found, features = read_layout(path, skip)
        except DataError as error:
            if skip is None:
                raise
            skip.append(str(error))
            continue
        if columns is not None and found != columns:
            raise DataError(
                f"{shards[0].path} and {path} have different columns: {_difference(columns, found)}. "
                "Convert the data as one.",
                path=path,
            )
        columns = found
        shards.append(shard)
        width = max(width, features)
    if columns is None:
        raise DataError("None of the files can be read: " + " ".join(skip or ["none was given."]))
    return shards, columns, width


def _difference(one: Columns, other: Columns) -> str:
    words = {"dtype": "values", "width": "columns of dense rows"}
    pairs = [(words.get(f.name, f.name), getattr(one, f.name), getattr(other, f.name)) for f in fields(one)]
    return ", ".join(f"{word} {a} and {b}" for word, a, b in pairs if a != b)


def _span(places: list[Place]) -> tuple[int, int]:
    held = [(start, start + np.dtype(dtype).itemsize * count) for start, (dtype, count) in places if count]
    return (min(a for a, _ in held), max(b for _, b in held)) if held else (0, 0)


def _stamp(shard: Shard, store: Store | None, skip: list[str] | None) -> Stamp | None:
    try:
        try:
            stamp = stamp_of(os.stat(shard.path)) if store is None else store.stamp(shard.path)
            if store is None and not os.access(shard.path, os.R_OK):
                raise PermissionError(shard.path)
        except FileNotFoundError:
            folder = Path(shard.path).parent
            raise DataError(
                f"{shard.path} is missing: the data set has {len(shard.batches)} chunks in it. Copy {folder} again.",
                path=shard.path,
            ) from None
        except OSError as error:
            why = unreadable(shard.path, error) if store is None else store.unreadable(shard.path, error)
            raise why from error
        if stamp[0] != shard.size:
            raise DataError(
                f"{shard.path} has {stamp[0]} bytes, {shard.size} were written: it is cut short or was changed. "
                "Copy or convert it again.",
                path=shard.path,
            )
    except DataError as error:
        if skip is None:
            raise
        skip.append(str(error))
        return None
    return stamp


def _sense(
    indptr: np.ndarray, indices: np.ndarray, again: np.ndarray, values: np.ndarray, width: int, sparse: bool
) -> str:
    """What is wrong with the structure of rows, '' if nothing is: kernels rely on it."""
    from ..kernels import batches

    if not sparse:
        return "" if batches.first_not_finite(values) < 0 else "it has values that are not finite"
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
    import pyarrow as pa

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
