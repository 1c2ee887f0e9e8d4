"""Parquet files as a source: numeric columns are features, others are named."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as kinds
import scipy.sparse as sp
from numpy.typing import DTypeLike

from ..kernels import batches
from ..protocols import Chunk
from .arrays import csr_view
from .errors import DataError
from .in_order import MESSAGES, InOrder
from .memory import CHUNK_BYTES, numbered
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
        self._row_groups = [range(file.num_row_groups) for file in files]
        schema = files[0].schema_arrow
        for path, file in zip(self.paths[1:], files[1:], strict=True):
            _check_alike(self.paths[0], schema, path, file.schema_arrow)
        names = list(schema.names)
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
        self._rows_done = 0
        self._group_codes: dict[Any, int] = {}
        self._set_rows(sum(file.metadata.num_rows for file in files))
        size = 12 * 64 if self._sparse else self._dtype.itemsize * max(1, len(self._features))
        self._chunk_rows = chunk_rows or max(1, CHUNK_BYTES // size)

    def _set_rows(self, n: int) -> None:
        self._n_rows = n
        self._length = None if self.on_error == "skip" else n

    @property
    def origin(self) -> dict[str, Any]:
        """What must be known to read more of the same data: the columns of features, in their order."""
        return {} if self._sparse else {"columns": list(self._features)}

    @property
    def bytes_total(self) -> int:
        """Bytes of all files."""
        return sum(stamp.size for stamp in self._stamps)

    @property
    def bytes_done(self) -> int:
        """Bytes of the files that the present pass has read, as far as rows tell."""
        return self.bytes_total * self._rows_done // max(1, self._n_rows)

    @property
    def fingerprint(self) -> str:
        """Changes when a file does (its name, size or time), or what is read from it."""
        columns = (self._label, self._group, self._weight, self._declared)
        said = (self._said_of_files(), columns, self.on_error, self._dtype.str, self._row_groups)
        return f"parquet-{self._n_rows}x{len(self._features)}-{crc32(repr(said).encode()):08x}"

    def _units(self) -> tuple[list[tuple[int, int]], list[int], Iterator[set[Any]] | None]:
        units = [(file, g) for file, groups in enumerate(self._row_groups) for g in groups]
        metadata = [self._opened(path).metadata for path in self.paths]
        sizes = [metadata[file].row_group(g).total_byte_size for file, g in units]
        return units, sizes, None if self._group is None else (self._names_in(*unit) for unit in units)

    def _names_in(self, file: int, row_group: int) -> set[Any]:
        column = self._opened(self.paths[file]).read_row_group(row_group, columns=[self._group])
        return set(column.column(0).unique().to_pylist())

    def _too_few(self, n_units: int, n_runs: int, n: int) -> str:
        apart = "" if n_runs == n_units else " that can be parted without parting groups of rows"
        return (
            f"{len(self.paths)} Parquet files with {n_units} row groups have {n_runs} pieces{apart}, {n} are needed: "
            "one for each worker. Write smaller row groups (pyarrow.parquet.write_table(…, row_group_size=…)), or "
            "convert the data with maxmargin.data.convert: shards can be cut anywhere."
        )

    def _only(self, units: list[tuple[int, int]]) -> ParquetSource:
        files = sorted({file for file, _ in units})
        part = self._with_files(files)
        chosen = [[g for f, g in units if f == file] for file in files]
        part._row_groups = [range(groups[0], groups[-1] + 1) for groups in chosen]
        metadata = [part._opened(path).metadata for path in part.paths]
        part._set_rows(sum(m.row_group(g).num_rows for m, gs in zip(metadata, chosen, strict=True) for g in gs))
        part._group_codes = {}
        return part

    def chunks(self, order: np.ndarray | None = None) -> Iterator[Chunk]:
        self._refuse_order(order)
        return prefetched(self._read())

    def _read(self) -> Generator[Chunk, None, None]:
        self.skipped, self.n_skipped = [], 0
        self._rows_done = 0
        done, width = 0, self._declared or 0
        for path, groups in zip(self.paths, self._row_groups, strict=True):
            for part in self._parts(path, groups):
                chunk, reach = self._chunk(part, done)
                self._rows_done += part.keep.size
                width = max(width, reach)
                if len(chunk):
                    done += len(chunk)
                    yield chunk
        self._length, self._width, self._surveyed = done, width, True

    def _parts(self, path: str, groups: range) -> Iterator[_Part]:
        file = self._opened(path)
        row = sum(file.metadata.row_group(g).num_rows for g in range(groups.start))
        try:
            for batch in file.iter_batches(batch_size=self._chunk_rows, row_groups=list(groups)):
                yield _Part(batch, path, row, np.ones(len(batch), bool))
                row += len(batch)
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

    def _chunk(self, part: _Part, first: int) -> tuple[Chunk, int]:
        named = [name for name in (self._label, self._group, self._weight) if name is not None]
        columns = {name: self._plain(part, name) for name in named}
        x, reach = self._sparse_rows(part) if self._sparse else (self._dense_rows(part), 0)
        if not part.keep.all():
            x = x[part.keep]
            columns = {name: values[part.keep] for name, values in columns.items()}
        y = columns[self._label] if self._label else None
        group = numbered(columns[self._group], self._group_codes) if self._group else None
        weight = columns[self._weight].astype(np.float64) if self._weight else None
        return Chunk(np.arange(first, first + x.shape[0]), x, y, group, weight), reach

    def _dense_rows(self, part: _Part) -> np.ndarray:
        x = np.empty((part.keep.size, len(self._features)), self._dtype)
        for j, name in enumerate(self._features):
            x[:, j] = self._plain(part, name, numeric=True)
        return x

    def _sparse_rows(self, part: _Part) -> tuple[sp.csr_matrix, int]:
        path, row = part.path, part.row
        lists = [part.column("indices"), part.column("values")]
        for column, name in zip(lists, ("indices", "values"), strict=True):
            if column.null_count or column.flatten().null_count:
                raise DataError(f"{path} has missing values in column {name!r}, rows {row} and on.", path=path, row=row)
        offsets = [np.asarray(column.offsets) - np.asarray(column.offsets)[0] for column in lists]
        if not np.array_equal(*offsets):
            at = row + int(np.flatnonzero(np.diff(offsets[0]) != np.diff(offsets[1]))[0])
            raise DataError(f"{path}, row {at}: indices and values must have equally many entries.", path=path, row=at)
        indices, values = (np.asarray(column.flatten()) for column in lists)
        if indices.dtype.kind not in "iu" or values.dtype.kind not in "fiub":
            raise DataError(f"{path} needs whole numbers in 'indices' and numbers in 'values'.", path=path)
        indices = indices.astype(np.int64, copy=False)
        values = values.astype(self._dtype, copy=False)
        indptr = offsets[0].astype(np.int64)
        reach = int(indices.max(initial=-1)) + 1
        width = self._declared if self._declared is not None else max(self._width, reach)
        strange = np.flatnonzero(~np.isfinite(values))
        if strange.size:
            bad = np.unique(np.searchsorted(indptr, strange, side="right") - 1)
            self._reject(part, bad, values[strange[0]], "values")
            values = np.where(np.isfinite(values), values, 0.0).astype(self._dtype)  # of rows that are left out
        verdict, at, entry = batches.check_rows(indptr, indices, values, width)
        if verdict == batches.BAD_INDEX:
            at += row
            message = f"{path}, row {at}: index {indices[entry]} must be from 0 to {width - 1}."
            raise DataError(message, path=path, row=int(at))
        if reach < 2**31:
            indices = indices.astype(np.int32)
        return csr_view(indptr, indices, values, width, verdict == batches.GOOD), reach

    def _plain(self, part: _Part, name: str, numeric: bool = False) -> np.ndarray:
        """A column as an array; rows that cannot be used are noted, or raise."""
        column = part.column(name)
        if kinds.is_dictionary(column.type):
            column = column.dictionary_decode()
        if column.null_count:
            self._reject(part, np.flatnonzero(np.asarray(column.is_null())), "a missing value", name)
            filling = "" if _is_text(column.type) else False if kinds.is_boolean(column.type) else 0
            column = column.fill_null(pa.scalar(filling, column.type))
        if _is_text(column.type):
            found = column.dictionary_encode()
            return np.array(found.dictionary.to_pylist() or [""])[np.asarray(found.indices)]
        values = column.to_numpy(zero_copy_only=False)
        if values.dtype.kind not in "fiub":
            message = f"{part.path}: column {name!r} is {column.type}; numbers or text are needed. Convert it first."
            raise DataError(message, path=part.path)
        if values.dtype.kind == "f":
            with np.errstate(over="ignore"):
                narrow = values.astype(self._dtype if numeric else np.float64, copy=False)
            bad = np.flatnonzero(~np.isfinite(narrow))
            if bad.size:
                self._reject(part, bad, values[bad[0]], name)
            return narrow
        return values if numeric else values.astype(np.int64, copy=False)

    def _reject(self, part: _Part, bad: np.ndarray, what: str | float, name: str) -> None:
        if self.on_error == "raise":
            where = part.row + int(bad[0])
            raise DataError(
                f"{part.path}, row {where}, column {name!r}: {what}. Fill in or drop such rows, or leave them out with "
                "on_error='skip'.",
                path=part.path,
                row=where,
            )
        fresh = bad[part.keep[bad]]
        part.keep[fresh] = False
        self.n_skipped += fresh.size
        described = fresh[: MESSAGES - len(self.skipped)]
        self.skipped += [f"{part.path}, row {part.row + int(i)}, column {name!r}: {what}" for i in described]

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


class _Part(NamedTuple):
    """Rows of a file, the number of the first of them in it, and which of them can be used."""

    batch: pa.RecordBatch
    path: str
    row: int
    keep: np.ndarray

    def column(self, name: str) -> pa.Array:
        return self.batch.column(self.batch.schema.get_field_index(name))


def _check_alike(first: str, schema: pa.Schema, path: str, other: pa.Schema) -> None:
    for lacking, names, having, needed in ((path, other.names, first, schema), (first, schema.names, path, other)):
        missing = next((name for name in needed.names if name not in names), None)
        if missing is not None:
            raise DataError(f"{lacking} has no column {missing!r}, which {having} has.", path=path)
    for name in schema.names:
        if schema.field(name).type != other.field(name).type:
            unlike = f"{schema.field(name).type} in {first} and {other.field(name).type} in {path}"
            raise DataError(f"Column {name!r} is {unlike}. All files must have the same columns.", path=path)


def _is_list(kind: pa.DataType) -> bool:
    return kinds.is_list(kind) or kinds.is_large_list(kind)


def _is_text(kind: pa.DataType) -> bool:
    return kinds.is_string(kind) or kinds.is_large_string(kind)


def _exact_in_float32(kind: pa.DataType) -> bool:
    kind = kind.value_type if _is_list(kind) else kind
    return kind in (pa.float32(), pa.float16(), pa.bool_(), pa.int8(), pa.int16(), pa.uint8(), pa.uint16())
