"""Parquet files as a source: numeric columns are features, others are named."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as kinds
import scipy.sparse as sp
from numpy.typing import DTypeLike

from ..protocols import Chunk
from ..validation import shown
from .array_source import CHUNK_BYTES, numbered
from .arrays import csr_view, usable_rows
from .errors import DataError
from .in_order import MESSAGES, InOrder
from .prefetch import prefetched
from .stores import DISK, Disk

_LABELS = ("label", "y", "target")


class ParquetSource(InOrder):
    """One or several Parquet files of like columns, read from beginning to end.

    Every column that is not named as label, group or weight is a feature, in the order of the file, and must be
    numeric. Instead there may be two columns of lists, ``indices`` and ``values``, for sparse rows.

    Parameters
    ----------
    paths : paths of the files
    label, group, weight : str, optional
        Names of columns. The label is called "label", "y" or "target" unless said otherwise.
    n_features : int, optional
        Width of sparse rows; found by a pass over the file if not given.
    on_error : "raise" or "skip"
        "skip" leaves out rows with missing or infinite values, counts them (``n_skipped``) and describes the first few
        (``skipped``).
    filesystem : Disk or Store
        Where the paths are.
    """

    kind = "Parquet"

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        label: str | None = None,
        group: str | None = None,
        weight: str | None = None,
        chunk_rows: int | None = None,
        n_features: int | None = None,
        dtype: DTypeLike | None = None,
        on_error: str = "raise",
        filesystem: Disk = DISK,
    ) -> None:
        super().__init__(paths, n_features, on_error, filesystem)
        files = [self._opened(path) for path in self.paths]
        schema = files[0].schema_arrow
        for path, file in zip(self.paths[1:], files[1:], strict=True):
            _check_alike(self.paths[0], schema, path, file.schema_arrow)
        names = list(schema.names)
        if len(set(names)) < len(names):
            raise DataError(f"{self.paths[0]} has two columns of one name: {', '.join(names)}.", path=self.paths[0])
        for role, name in (("label", label), ("group", group), ("weight", weight)):
            if name is not None and name not in names:
                raise DataError(
                    f"{self.paths[0]} has no column {name!r} for {role}=. It has: {', '.join(names)}.",
                    path=self.paths[0],
                )
        self._label = label if label is not None else next((name for name in _LABELS if name in names), None)
        self._group, self._weight = group, weight
        self._features = [name for name in names if name not in (self._label, group, weight)]
        self._sparse = set(self._features) == {"indices", "values"} and _is_list(schema.field("indices").type)
        if not self._sparse:
            self._check_numeric(schema)
            if n_features not in (None, len(self._features)):
                raise DataError(
                    f"{self.paths[0]} has {len(self._features)} columns of features, not n_features={n_features}.",
                    path=self.paths[0],
                )
            self._declared = self._width = len(self._features)
        numbers = ["values"] if self._sparse else self._features
        small = all(_exact_in_float32(schema.field(name).type) for name in numbers)
        self._dtype = np.dtype(dtype if dtype is not None else np.float32 if small else np.float64)
        self._group_codes: dict[Any, int] = {}
        self._n_rows = sum(file.metadata.num_rows for file in files)
        told = on_error == "raise" and self._declared is not None
        self._length = self._n_rows if told else None
        size = 12 * 64 if self._sparse else self._dtype.itemsize * max(1, len(self._features))
        self._chunk_rows = chunk_rows or max(1, CHUNK_BYTES // size)

    @property
    def origin(self) -> dict[str, Any]:
        """What must be known to read more of the same data: the columns of features, in their order."""
        return {} if self._sparse else {"columns": list(self._features)}

    @property
    def fingerprint(self) -> str:
        """Changes when a file does (its name, size or time), or what is read from it."""
        columns = (self._label, self._group, self._weight, self._declared)
        said = (self._said_of_files(), columns, self.on_error, self._dtype.str)
        return f"parquet-{self._n_rows}x{len(self._features)}-{crc32(repr(said).encode()):08x}"

    def chunks(self, order: np.ndarray | None = None) -> Iterator[Chunk]:
        self._refuse_order(order)
        return prefetched(self._read())

    def _read(self) -> Generator[Chunk, None, None]:
        self.skipped, self.n_skipped = [], 0
        done = 0
        for path in self.paths:
            row = 0
            for batch in self._batches(path):
                kept = self._usable(batch, path, row)
                if len(kept):
                    yield self._chunk(kept, path, row, done)
                row += len(batch)
                done += len(kept)
        self._length = done

    def _batches(self, path: str) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._opened(path).iter_batches(batch_size=self._chunk_rows)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{path} is damaged: {str(error).splitlines()[0]}", path=path) from None

    def _opened(self, path: str) -> pq.ParquetFile:
        local = self._store.local
        try:
            return pq.ParquetFile(path if local else self._store.open(path), pre_buffer=not local)
        except (FileNotFoundError, PermissionError) as error:
            raise self._store.unreadable(path, error) from None
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{path} is no Parquet file, or damaged: {str(error).splitlines()[0]}", path=path) from None

    def _usable(self, batch: pa.RecordBatch, path: str, row: int) -> pa.RecordBatch:
        """The rows in which no value is missing or infinite; others are an error, or counted."""
        keep, named = np.ones(len(batch), bool), (self._label, self._group, self._weight)
        for name in batch.schema.names:
            column = batch.column(name)
            bad = np.flatnonzero(keep & ~_good(column, np.float64 if name in named else self._dtype))
            keep[bad] = False
            for i in bad[: MESSAGES - len(self.skipped)].tolist():
                what = f"{path}, row {row + i}, column {name!r}: {shown(column[i].as_py())}"
                if self.on_error == "raise":
                    raise DataError(
                        f"{what}. Fill in or drop such rows, or leave them out with on_error='skip'.",
                        path=path,
                        row=row + i,
                    )
                self.skipped.append(what)
        self.n_skipped += len(batch) - int(keep.sum())
        return batch if keep.all() else batch.filter(pa.array(keep))

    def _chunk(self, batch: pa.RecordBatch, path: str, row: int, first: int) -> Chunk:
        if self._sparse:
            x, _ = usable_rows(self._sparse_rows(batch, path), self._dtype, self._width, row, path=path)
        else:
            x = np.empty((len(batch), len(self._features)), self._dtype)
            for j, name in enumerate(self._features):
                x[:, j] = batch.column(name).to_numpy(zero_copy_only=False)
        y, group, weight = (
            None if name is None else _plain(batch.column(name), path, name)
            for name in (self._label, self._group, self._weight)
        )
        group = None if group is None else numbered(group, self._group_codes)
        weight = None if weight is None else weight.astype(np.float64)
        return Chunk(np.arange(first, first + len(batch)), x, y, group, weight)

    def _sparse_rows(self, batch: pa.RecordBatch, path: str) -> sp.csr_matrix:
        lists = [batch.column(name) for name in ("indices", "values")]
        sizes, others = (np.asarray(column.value_lengths()) for column in lists)
        indices, values = (column.flatten().to_numpy(zero_copy_only=False) for column in lists)
        if not np.array_equal(sizes, others) or indices.dtype.kind not in "iu" or values.dtype.kind not in "fiub":
            raise DataError(
                f"{path}: 'indices' must be lists of whole numbers, 'values' lists of as many numbers in every row.",
                path=path,
            )
        indices = indices.astype(np.int64, copy=False)
        reach = int(indices.max(initial=-1)) + 1
        if self._declared is None:
            self._width = max(self._width, reach)
        indptr = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        return csr_view(indptr, indices.astype(np.int32) if reach < 2**31 else indices, values, self._width)

    def _check_numeric(self, schema: pa.Schema) -> None:
        fields = [schema.field(name) for name in self._features]
        numeric = (kinds.is_floating, kinds.is_integer, kinds.is_boolean)
        others = [
            f"{field.name} ({field.type})" for field in fields if not any(is_one(field.type) for is_one in numeric)
        ]
        if others:
            raise DataError(
                f"{self.paths[0]}: features must be numbers, these columns are not: {', '.join(others)}. Drop or "
                "encode them, or name them with label=, group= or weight=.",
                path=self.paths[0],
            )
        if not self._features:
            raise DataError(f"{self.paths[0]} has no columns of features.", path=self.paths[0])


def _good(column: pa.Array, dtype: DTypeLike) -> np.ndarray:
    """Which rows have a value, and one that is finite in this precision."""
    if _is_list(column.type):
        good = np.asarray(column.is_valid())
        good[np.asarray(pc.list_parent_indices(column))[~_good(column.flatten(), dtype)]] = False
        return good
    if kinds.is_floating(column.type):
        return np.abs(column.to_numpy(zero_copy_only=False)) <= np.finfo(dtype).max  # what is missing is NaN
    return np.asarray(column.is_valid())


def _plain(column: pa.Array, path: str, name: str) -> np.ndarray:
    """A column of labels, groups or weights as an array."""
    if kinds.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kinds.is_string(column.type) or kinds.is_large_string(column.type):
        found = column.dictionary_encode()
        return np.array(found.dictionary.to_pylist() or [""])[np.asarray(found.indices)]
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "fiub":
        message = f"{path}: column {name!r} is {column.type}; numbers or text are needed. Convert it first."
        raise DataError(message, path=path)
    return values.astype(np.float64 if values.dtype.kind == "f" else np.int64, copy=False)


def _check_alike(first: str, schema: pa.Schema, path: str, other: pa.Schema) -> None:
    columns, others = ({f"{field.name} ({field.type})" for field in each} for each in (schema, other))
    if columns != others:
        raise DataError(
            f"{first} and {path} differ in the columns {', '.join(sorted(columns ^ others))}. All files must have the "
            "same columns.",
            path=path,
        )


def _is_list(kind: pa.DataType) -> bool:
    return kinds.is_list(kind) or kinds.is_large_list(kind)


def _exact_in_float32(kind: pa.DataType) -> bool:
    kind = kind.value_type if _is_list(kind) else kind
    return kind in (pa.float32(), pa.float16(), pa.bool_(), pa.int8(), pa.int16(), pa.uint8(), pa.uint16())
