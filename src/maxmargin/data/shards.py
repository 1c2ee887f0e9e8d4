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
from .mapped import MappedFile, stamp_of, unreadable
from .memory import csr_view
from .prefetch import prefetched
from .shard_format import Batch, Columns, Shard, read_contents, read_layout, sum_of_inputs, sum_of_others

_OPEN_FILES = 128
"""Maps kept at a time: a process may have only so many files open."""


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
    """

    def __init__(
        self,
        what: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        n_features: int | None = None,
        dtype: Any = None,
        on_error: str = "raise",
    ) -> None:
        self.skipped: list[str] = []
        self.n_skipped = 0
        self.origin: dict[str, Any] = {}
        skip = self.skipped if on_error == "skip" else None
        if isinstance(what, str | os.PathLike):
            shards, self._columns, width, self.origin = read_contents(what)
        else:
            shards, self._columns, width = _read_layouts([os.fspath(path) for path in what], skip)
        if n_features is not None and (n_features < width or (n_features > width and not self._columns.sparse)):
            raise DataError(f"The shards have {width} features, n_features={n_features} was asked for.")
        self.n_features = width if n_features is None else n_features
        self._dtype = np.dtype(self._columns.dtype if dtype is None else dtype)
        self._stamps = {shard.path: stamp for shard in shards if (stamp := _stamp(shard, skip)) is not None}
        self._maps: dict[str, MappedFile] = {}
        self._lock = threading.Lock()
        self._set_batches([(s.path, b) for s in shards if s.path in self._stamps for b in s.batches])
        if skip is not None:
            self._leave_out_damaged()

    def _set_batches(self, batches: list[tuple[str, Batch]]) -> None:
        self._batches = batches
        self.offsets = np.concatenate([[0], np.cumsum([b.rows for _, b in batches], dtype=np.int64)]).astype(np.int64)
        self._inputs_checked = np.zeros(len(batches), bool)
        self._others_checked = np.zeros(len(batches), bool)

    def __getstate__(self) -> dict[str, Any]:
        """Maps and locks do not travel to other processes; the files are mapped there again."""
        return {**self.__dict__, "_maps": {}, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

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
        file = self._file(path)
        inputs, others = self._arrays(file, batch)
        x = self._inputs(i, path, batch, inputs)
        return self._with_columns(i, path, batch, others, x)

    def labels(self, i: int) -> Chunk:
        path, batch = self._batches[i]
        return self._with_columns(i, path, batch, self._arrays(self._file(path), batch)[1], None)

    def nbytes(self, i: int) -> int:
        _, batch = self._batches[i]
        return sum(np.dtype(dtype).itemsize * count for dtype, count in self._columns.all_parts(batch))

    def release(self, i: int) -> None:
        path, batch = self._batches[i]
        with self._lock:
            file = self._maps.get(path)
        if file is not None:
            file.drop(*self._span(batch))

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
        self._file(path).warm(*self._span(batch))
        return self.chunk(i)

    def _span(self, batch: Batch) -> tuple[int, int]:
        parts = self._columns.all_parts(batch)
        held = [(s, s + np.dtype(t).itemsize * n) for s, (t, n) in zip(batch.starts, parts, strict=True) if n]
        return (min(a for a, _ in held), max(b for _, b in held)) if held else (0, 0)

    def _file(self, path: str) -> MappedFile:
        with self._lock:
            file = self._maps.pop(path, None)
            if file is None:
                file = MappedFile(path, self._stamps[path])
                while len(self._maps) >= _OPEN_FILES:
                    self._maps.pop(next(iter(self._maps)))
            self._maps[path] = file  # the last one used is the last one to go
        file.check()
        return file

    def _arrays(self, file: MappedFile, batch: Batch) -> tuple[list[np.ndarray], list[np.ndarray]]:
        inputs, others = self._columns.parts(batch.rows, batch.entries, batch.text)
        views = [file.view(t, s, n) for s, (t, n) in zip(batch.starts, inputs + others, strict=True)]
        return views[: len(inputs)], views[len(inputs) :]

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
            self._inputs_checked[i] = True
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
            self._others_checked[i] = True
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


def _stamp(shard: Shard, skip: list[str] | None) -> tuple[int, int, int] | None:
    try:
        try:
            stamp = stamp_of(os.stat(shard.path))
            if not os.access(shard.path, os.R_OK):
                raise PermissionError(shard.path)
        except FileNotFoundError:
            folder = Path(shard.path).parent
            raise DataError(
                f"{shard.path} is missing: the data set has {len(shard.batches)} chunks in it. Copy {folder} again.",
                path=shard.path,
            ) from None
        except OSError as error:
            raise unreadable(shard.path, error) from error
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
