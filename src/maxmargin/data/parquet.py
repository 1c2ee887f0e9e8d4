"""Parquet files as a source: numeric columns are features, others are named."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np

from ..protocols import Chunk
from .balance import balanced, unparted
from .errors import DataError
from .mapped import Stamp, stamp_of, unreadable
from .memory import CHUNK_BYTES, csr_view
from .prefetch import prefetched
from .stores import Store
from .travelling import other_data

_LABELS = ("label", "y", "target")


class ParquetSource:
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
        "skip" leaves out rows with missing or infinite values; ``skipped`` says which.
    filesystem : Store, optional
        Where the paths are, if not on a local disk.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        label: str | None = None,
        group: str | None = None,
        weight: str | None = None,
        chunk_rows: int | None = None,
        n_features: int | None = None,
        dtype: Any = None,
        on_error: str = "raise",
        filesystem: Store | None = None,
    ) -> None:
        self._paths = [os.fspath(path) for path in paths]
        self._chosen: list[range] | None = None  # row groups of each file, where not all are read
        self._skip = on_error == "skip"
        self.skipped: list[str] = []
        self._store = filesystem
        files = [_opened(path, self._store) for path in self._paths]
        schema = files[0].schema_arrow
        for path, file in zip(self._paths[1:], files[1:], strict=True):
            _check_alike(self._paths[0], schema, path, file.schema_arrow)
        names = list(schema.names)
        for role, name in (("label", label), ("group", group), ("weight", weight)):
            if name is not None and name not in names:
                raise DataError(
                    f"{self._paths[0]} has no column {name!r} for {role}=. It has: {', '.join(names)}.",
                    path=self._paths[0],
                )
        self._label = label if label is not None else next((name for name in _LABELS if name in names), None)
        self._group, self._weight = group, weight
        self._features = [name for name in names if name not in (self._label, group, weight)]
        self._sparse = set(self._features) == {"indices", "values"} and _is_list(schema.field("indices").type)
        if not self._sparse:
            self._check_numeric(schema)
        small = all(
            _exact_in_float32(schema.field(name).type)
            for name in self._features
            if name != "indices" or not self._sparse
        )
        self._dtype = np.dtype(dtype if dtype is not None else np.float32 if small else np.float64)
        self._n_rows = sum(file.metadata.num_rows for file in files)
        self._length = None if self._skip else self._n_rows
        self._rows_done = 0
        self._group_codes: dict[Any, int] = {}
        self._asked_width = n_features
        if not self._sparse and n_features not in (None, len(self._features)):
            raise DataError(
                f"{self._paths[0]} has {len(self._features)} columns of features, not n_features={n_features}.",
                path=self._paths[0],
            )
        self._width = n_features if self._sparse else len(self._features)
        size = 12 * 64 if self._sparse else self._dtype.itemsize * max(1, len(self._features))
        self._chunk_rows = chunk_rows or max(1, CHUNK_BYTES // size)

    @property
    def n_features(self) -> int:
        if self._width is None:
            self._scan()
        return self._width or 0

    @property
    def origin(self) -> dict[str, Any]:
        """What must be known to read more of the same data: the columns of features, in their order."""
        return {} if self._sparse else {"columns": list(self._features)}

    def __len__(self) -> int:
        if self._length is None:
            self._scan()
        return self._length or 0

    @property
    def bytes_total(self) -> int:
        """Bytes of all files."""
        return sum(self._stamp(path)[0] for path in self._paths)

    @property
    def bytes_done(self) -> int:
        """Bytes of the files that the present pass has read, as far as rows tell."""
        return self.bytes_total * self._rows_done // max(1, self._n_rows)

    @property
    def fingerprint(self) -> str:
        """Changes when a file does (its name, size or time), or what is read from it."""
        files = [(os.path.basename(path), *self._stamp(path)[:2]) for path in self._paths]
        columns = (self._label, self._group, self._weight, self._asked_width)
        found = crc32(repr((files, columns, self._skip, self._dtype.str)).encode())
        if self._chosen is not None:
            found = crc32(repr(self._chosen).encode(), found)
        return f"parquet-{self._n_rows}x{len(self._features)}-{found:08x}"

    def __getstate__(self) -> dict[str, Any]:
        """Files travel to other processes by name, and must be the same there."""
        paths = self._paths if self._store is not None else [os.path.abspath(path) for path in self._paths]
        return {**self.__dict__, "_paths": paths, "fingerprint": self.fingerprint}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: value for name, value in state.items() if name != "fingerprint"})
        if self.fingerprint != state["fingerprint"]:
            raise other_data(self._paths[0])

    def shares(self, n: int) -> list[ParquetSource]:
        """n sources of some of the row groups each, of about as many bytes; as wide as all of them together.

        Rows of a group of a ranking problem stay together: their column is read for that.
        """
        if n == 1:
            return [self]
        metadata = [_opened(path, self._store).metadata for path in self._paths]
        whole = [range(held.num_row_groups) for held in metadata] if self._chosen is None else self._chosen
        units = [(file, g) for file, groups in enumerate(whole) for g in groups]
        blocks = [(k, k + 1) for k in range(len(units))]
        if self._group is not None:
            blocks = unparted(self._names_in(*unit) for unit in units)
        if len(blocks) < n:
            apart = "" if len(blocks) == len(units) else " that can be parted without parting groups of rows"
            raise DataError(
                f"{len(self._paths)} Parquet files with {len(units)} row groups have {len(blocks)} pieces{apart}, {n} "
                "are needed: one for each worker. Write smaller row groups (pyarrow.parquet.write_table(…, "
                "row_group_size=…)), or convert the data with maxmargin.data.convert: shards can be cut anywhere.",
                path=self._paths[0],
            )
        sizes = [metadata[file].row_group(g).total_byte_size for file, g in units]
        cuts = balanced([sum(sizes[a:b]) for a, b in blocks], n)
        width = self.n_features  # before any piece is made: sparse ones must agree about it
        return [self._of_row_groups(units[blocks[a][0] : blocks[b - 1][1]], metadata, width) for a, b in pairwise(cuts)]

    def _names_in(self, file: int, row_group: int) -> set[Any]:
        column = _opened(self._paths[file], self._store).read_row_group(row_group, columns=[self._group])
        return set(column.column(0).unique().to_pylist())

    def _of_row_groups(self, units: list[tuple[int, int]], metadata: list[Any], width: int) -> ParquetSource:
        """The same with these row groups only."""
        part = object.__new__(type(self))
        part.__dict__.update(self.__dict__)
        files = sorted({file for file, _ in units})
        part._paths = [self._paths[file] for file in files]
        part._chosen = [_range([g for f, g in units if f == file]) for file in files]
        part._n_rows = sum(metadata[file].row_group(g).num_rows for file, g in units)
        part._length = None if self._skip else part._n_rows
        part._asked_width = part._width = width
        part._group_codes, part.skipped = {}, []
        return part

    def _stamp(self, path: str) -> Stamp:
        try:
            return stamp_of(os.stat(path)) if self._store is None else self._store.stamp(path)
        except OSError as error:
            raise _unreadable(path, self._store, error) from error

    def chunks(self, order: np.ndarray | None = None) -> Iterator[Chunk]:
        if order is not None:
            raise DataError("Parquet files are read in their own order only. Convert them to shards to shuffle.")
        return prefetched(self._pieces())

    def _scan(self) -> None:
        for _ in self._pieces():
            pass

    def _pieces(self) -> Iterator[Chunk]:
        self.skipped = []
        self._rows_done = 0
        done, width = 0, self._asked_width or 0
        for number, path in enumerate(self._paths):
            for row, batch in self._batches(path, None if self._chosen is None else self._chosen[number]):
                chunk, reach = self._chunk(batch, done, path, row)
                self._rows_done += len(batch)
                width = max(width, reach)
                if len(chunk):
                    done += len(chunk)
                    yield chunk
        self._length = done
        if self._sparse:
            self._width = width

    def _batches(self, path: str, chosen: range | None) -> Iterator[tuple[int, Any]]:
        """Batches of rows, and the number in the file of the first row of each."""
        import pyarrow as pa

        file = _opened(path, self._store)
        groups = range(file.num_row_groups) if chosen is None else chosen
        row = sum(file.metadata.row_group(g).num_rows for g in range(groups.start))
        try:
            for batch in file.iter_batches(batch_size=self._chunk_rows, row_groups=list(groups)):
                yield row, batch
                row += len(batch)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{path} is damaged: {str(error).splitlines()[0]}", path=path) from None

    def _chunk(self, batch: Any, first: int, path: str, row: int) -> tuple[Chunk, int]:
        keep = np.ones(len(batch), bool)
        columns: dict[str, Any] = {}
        for name in (self._label, self._group, self._weight):
            if name is not None:
                columns[name] = self._plain(batch, name, keep, path, row)
        if self._sparse:
            x, reach = self._sparse_rows(batch, keep, path, row)
        else:
            x, reach = self._dense_rows(batch, keep, path, row), 0
        if not keep.all():
            x = x[keep]
            columns = {name: values[keep] for name, values in columns.items()}
        y = columns.get(self._label) if self._label else None
        group = self._numbers(columns[self._group]) if self._group else None
        weight = columns[self._weight].astype(np.float64) if self._weight else None
        return Chunk(np.arange(first, first + x.shape[0]), x, y, group, weight), reach

    def _dense_rows(self, batch: Any, keep: np.ndarray, path: str, row: int) -> np.ndarray:
        x = np.empty((len(batch), len(self._features)), self._dtype)
        for j, name in enumerate(self._features):
            x[:, j] = self._plain(batch, name, keep, path, row, numeric=True)
        return x

    def _sparse_rows(self, batch: Any, keep: np.ndarray, path: str, row: int) -> tuple[Any, int]:
        from ..kernels import batches

        lists = [batch.column(batch.schema.get_field_index(name)) for name in ("indices", "values")]
        for column, name in zip(lists, ("indices", "values"), strict=True):
            inner = column.flatten()
            if column.null_count or inner.null_count:
                raise DataError(f"{path} has missing values in column {name!r}, rows {row} and on.", path=path, row=row)
        offsets = [np.asarray(column.offsets) - np.asarray(column.offsets)[0] for column in lists]
        if not np.array_equal(*offsets):
            bad = int(np.flatnonzero(np.diff(offsets[0]) != np.diff(offsets[1]))[0])
            raise DataError(
                f"{path}, row {row + bad}: indices and values must have equally many entries.", path=path, row=row + bad
            )
        indices, values = (np.asarray(column.flatten()) for column in lists)
        if indices.dtype.kind not in "iu" or values.dtype.kind not in "fiub":
            raise DataError(f"{path} needs whole numbers in 'indices' and numbers in 'values'.", path=path)
        indices = indices.astype(np.int64, copy=False)
        values = values.astype(self._dtype, copy=False)
        indptr = offsets[0].astype(np.int64)
        reach = int(indices.max(initial=-1)) + 1
        width = self._width if self._width is not None else reach
        while True:
            verdict, bad, entry = batches.check_rows(indptr, indices, values, width)
            if verdict == batches.BAD_INDEX:
                raise DataError(
                    f"{path}, row {row + bad}: index {indices[entry]} must be from 0 to {width - 1}.",
                    path=path,
                    row=int(row + bad),
                )
            if verdict != batches.NOT_FINITE:
                break
            self._reject(keep, np.array([bad]), values[entry], path, row, "values")
            values = values.copy()
            values[indptr[bad] : indptr[bad + 1]] = 0.0  # a row that is left out: look for the next one
        if reach < 2**31:
            indices = indices.astype(np.int32)
        return csr_view(indptr, indices, values, width, verdict == batches.GOOD), reach

    def _plain(self, batch: Any, name: str, keep: np.ndarray, path: str, row: int, numeric: bool = False) -> np.ndarray:
        """A column as an array; rows that cannot be used are noted in ``keep`` or raise."""
        import pyarrow as pa

        column = batch.column(batch.schema.get_field_index(name))
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if column.null_count:
            missing = np.flatnonzero(np.asarray(column.is_null()))
            self._reject(keep, missing, "a missing value", path, row, name)
            filling = "" if _is_text(column.type) else False if pa.types.is_boolean(column.type) else 0
            column = column.fill_null(pa.scalar(filling, column.type))
        if _is_text(column.type):
            found = column.dictionary_encode()
            return np.array(found.dictionary.to_pylist() or [""])[np.asarray(found.indices)]
        values = column.to_numpy(zero_copy_only=False)
        if values.dtype.kind not in "fiub":
            raise DataError(
                f"{path}: column {name!r} is {column.type}; numbers or text are needed. Convert it first.", path=path
            )
        if values.dtype.kind == "f":
            target = self._dtype if numeric else np.float64
            with np.errstate(over="ignore"):
                narrow = values.astype(target, copy=False)
            bad = np.flatnonzero(~np.isfinite(narrow))
            if bad.size:
                self._reject(keep, bad, values[bad[0]], path, row, name)
            return narrow
        return values if numeric else values.astype(np.int64, copy=False)

    def _reject(self, keep: np.ndarray, bad: np.ndarray, what: Any, path: str, row: int, name: str) -> None:
        if not self._skip:
            where = row + int(bad[0])
            raise DataError(
                f"{path}, row {where}, column {name!r}: {what}. Fill in or drop such rows, or leave them out with "
                "on_error='skip'.",
                path=path,
                row=where,
            )
        fresh = bad[keep[bad]]
        keep[fresh] = False
        self.skipped += [f"{path}, row {row + int(i)}, column {name!r}: {what}" for i in fresh]

    def _numbers(self, group: np.ndarray) -> np.ndarray:
        if group.dtype.kind in "iu":
            return group
        names, codes = np.unique(group, return_inverse=True)
        known = [self._group_codes.setdefault(name, len(self._group_codes)) for name in names.tolist()]
        return np.array(known, np.int64)[codes]

    def _check_numeric(self, schema: Any) -> None:
        import pyarrow.types as kinds

        others = []
        for name in self._features:
            kind = schema.field(name).type
            if not (kinds.is_floating(kind) or kinds.is_integer(kind) or kinds.is_boolean(kind)):
                others.append(f"{name} ({kind})")
        if others:
            raise DataError(
                f"{self._paths[0]}: features must be numbers, these columns are not: {', '.join(others)}. Drop or "
                "encode them, or name them with label=, group= or weight=.",
                path=self._paths[0],
            )
        if not self._features:
            raise DataError(f"{self._paths[0]} has no columns of features.", path=self._paths[0])


def _opened(path: str, store: Store | None) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path if store is None else store.open(path), pre_buffer=store is not None)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise _unreadable(path, store, error) from None
        raise DataError(f"{path} is no Parquet file, or damaged: {str(error).splitlines()[0]}", path=path) from None


def _unreadable(path: str, store: Store | None, error: OSError) -> DataError:
    return unreadable(path, error) if store is None else store.unreadable(path, error)


def _range(numbers: list[int]) -> range:
    return range(numbers[0], numbers[-1] + 1)


def _check_alike(first: str, schema: Any, path: str, other: Any) -> None:
    for name in schema.names:
        if name not in other.names:
            raise DataError(f"{path} has no column {name!r}, which {first} has.", path=path)
        if schema.field(name).type != other.field(name).type:
            kinds = f"{schema.field(name).type} in {first} and {other.field(name).type} in {path}"
            raise DataError(f"Column {name!r} is {kinds}. All files must have the same columns.", path=path)
    for name in other.names:
        if name not in schema.names:
            raise DataError(f"{first} has no column {name!r}, which {path} has.", path=path)


def _is_list(kind: Any) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_list(kind) or kinds.is_large_list(kind))


def _is_text(kind: Any) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_string(kind) or kinds.is_large_string(kind))


def _exact_in_float32(kind: Any) -> bool:
    import pyarrow as pa

    kind = kind.value_type if _is_list(kind) else kind
    return kind in (pa.float32(), pa.float16(), pa.bool_(), pa.int8(), pa.int16(), pa.uint8(), pa.uint16())
