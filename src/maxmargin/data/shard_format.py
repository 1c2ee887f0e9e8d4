"""What shards look like on disk: Arrow files for everybody, and a table of contents for us.

A data set is a folder with ``00000.arrow``, ``00001.arrow`` … and ``dataset.json``. The Arrow files are plain and
uncompressed, one record batch per chunk, so that any Arrow reader can use them. ``dataset.json`` says where in the
files each column of each batch lies, with checksums of every batch and of itself: we read the columns at these places
and never have to trust Arrow's parser with a damaged file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa

from .errors import DataError
from .mapped import MappedFile
from .stores import DISK, Disk

FORMAT = "maxmargin shards"
VERSION = 1
CONTENTS = "dataset.json"


@dataclass(frozen=True)
class Columns:
    """Which columns a shard has. ``width`` is that of dense rows, None for sparse ones; ``label`` a type or None."""

    dtype: str
    width: int | None
    label: str | None
    group: bool
    weight: bool

    def __post_init__(self) -> None:
        """Columns also come from files."""
        known = self.dtype in ("float32", "float64") and self.label in (None, "float64", "int64", "utf8")
        width = self.width is None or (type(self.width) is int and self.width >= 0)
        if not (known and width and type(self.group) is bool and type(self.weight) is bool):
            raise ValueError(f"there are no such columns: {self}")

    @property
    def sparse(self) -> bool:
        return self.width is None

    def schema(self) -> pa.Schema:
        value = pa.from_numpy_dtype(np.dtype(self.dtype))
        fields = [("indices", pa.list_(pa.int32())), ("values", pa.list_(value))]
        if self.width is not None:
            fields = [("values", pa.list_(value, self.width))]
        if self.label is not None:
            fields.append(("label", {"float64": pa.float64(), "int64": pa.int64(), "utf8": pa.utf8()}[self.label]))
        fields += [("group", pa.int64())] * self.group + [("weight", pa.float64())] * self.weight
        return pa.schema(fields)

    @property
    def n_inputs(self) -> int:
        """How many arrays of a batch are of the inputs: offsets, indices, offsets again and values, or only values."""
        return 4 if self.sparse else 1

    def parts(self, rows: int, entries: int, text: int) -> list[tuple[str, int]]:
        """(type, count) of each array of a batch in the order of the file: those of the inputs, then the others."""
        parts = [("int32", rows + 1), ("int32", entries), ("int32", rows + 1), (self.dtype, entries)]
        if self.width is not None:
            parts = [(self.dtype, rows * self.width)]
        if self.label is not None:
            parts += [("int32", rows + 1), ("uint8", text)] if self.label == "utf8" else [(self.label, rows)]
        return parts + [("int64", rows)] * self.group + [("float64", rows)] * self.weight

    def checksum(self, number: int, counts: tuple[int, int, int], arrays: Sequence[Any], *, inputs: bool) -> int:
        """Checksum of the inputs, or of the other columns: of bytes, types, counts and the place in the shard."""
        rows, entries, text = counts
        said: Any = (VERSION, self.dtype, self.width, number, (rows, entries))
        if not inputs:
            said = (VERSION, (self.label, self.group, self.weight), number, rows, text)
        found = crc32(repr(said).encode())
        for array in arrays:
            found = crc32(array, found)
        return found


@dataclass(frozen=True)
class Batch:
    """Where a batch lies: counts of rows, of stored entries and of bytes of label text, checksums, first bytes."""

    number: int
    rows: int
    entries: int
    text: int
    inputs_sum: int
    others_sum: int
    starts: Sequence[int]

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.rows, self.entries, self.text


@dataclass(frozen=True)
class Shard:
    """A file and its batches."""

    path: str
    size: int
    batches: list[Batch]

    @property
    def rows(self) -> int:
        return sum(batch.rows for batch in self.batches)


class Contents(NamedTuple):
    """What a table of contents says: the files, their columns, the number of features, and what the source said."""

    shards: Sequence[Shard]
    columns: Columns
    n_features: int
    origin: dict[str, Any]


class ShardWriter:
    """Writes one Arrow file; ``close`` says where everything lies in it."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self._path, self._columns, self._schema = path, columns, columns.schema()
        self._file = open(path, "wb")  # noqa: SIM115  # closed in ``close``, or by ``abandon``
        self._writer = pa.ipc.new_file(pa.PythonFile(self._file, "w"), self._schema)
        self._written: list[tuple[int, int, int, int, int]] = []  # counts and checksums of each batch

    @property
    def size(self) -> int:
        return self._file.tell()

    def write(self, arrays: Sequence[np.ndarray], counts: tuple[int, int, int]) -> None:
        """One batch: its arrays in the order of ``Columns.parts``."""
        columns, rows, number = self._columns, counts[0], len(self._written)
        inputs, others = arrays[: columns.n_inputs], arrays[columns.n_inputs :]
        sums = (
            columns.checksum(number, counts, inputs, inputs=True),
            columns.checksum(number, counts, others, inputs=False),
        )
        left = iter([pa.py_buffer(array) for array in arrays])
        made = []
        for field in self._schema:
            kind = field.type
            fixed = pa.types.is_fixed_size_list(kind)
            if fixed or pa.types.is_list(kind):
                own = [None] if fixed else [None, next(left)]
                length = rows * kind.list_size if fixed else counts[1]
                child = pa.Array.from_buffers(kind.value_type, length, [None, next(left)])
                made.append(pa.Array.from_buffers(kind, rows, own, children=[child]))
            else:
                held = [next(left) for _ in range(2 if pa.types.is_string(kind) else 1)]
                made.append(pa.Array.from_buffers(kind, rows, [None, *held]))
        self._writer.write_batch(pa.RecordBatch.from_arrays(made, schema=self._schema))
        self._written.append((*counts, *sums))

    def close(self) -> Shard:
        self._writer.close()
        self._file.close()
        content = pa.py_buffer(MappedFile(self._path).bytes)
        reader = pa.ipc.open_file(content)
        batches = []
        for number, written in enumerate(self._written):
            columns = reader.get_batch(number).columns
            held = [buffer for column in columns for buffer in column.buffers() if buffer is not None]
            starts = [buffer.address - content.address if buffer.size else 0 for buffer in held]
            batches.append(Batch(number, *written, starts))
        return Shard(str(self._path), content.size, batches)

    def abandon(self) -> None:
        self._file.close()


def write_contents(folder: Path, contents: Contents) -> None:
    """The table of contents, last."""
    table: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "rows": sum(shard.rows for shard in contents.shards),
        "n_features": contents.n_features,
        "columns": asdict(contents.columns),
        "origin": contents.origin,
        "shards": [
            {
                "name": Path(shard.path).name,
                "bytes": shard.size,
                "rows": shard.rows,
                "batches": [[b.rows, b.entries, b.text, b.inputs_sum, b.others_sum, b.starts] for b in shard.batches],
            }
            for shard in contents.shards
        ],
    }
    table["crc"] = _sum_of(table)
    with open(folder / CONTENTS, "w", encoding="utf-8") as file:
        json.dump(table, file, separators=(",", ":"))


def read_contents(folder: str | os.PathLike[str], store: Disk = DISK) -> Contents:
    """The table of contents of a folder, all places checked to lie within their files."""
    place = Path(folder) if store.local else PurePosixPath(folder)
    path = str(place / CONTENTS)
    if store.exists(str(folder)) and not store.exists(path):
        raise DataError(
            f"{folder} is no data set, or not a whole one: it has no {CONTENTS}. Folders are written by "
            "maxmargin.data.convert; convert the data again, or copy the folder again.",
            path=str(folder),
        )
    text = store.read(path)
    try:
        table = json.loads(text)
        crc = table.pop("crc", None)
        if table["format"] != FORMAT or type(table["version"]) is not int:
            raise ValueError("it describes no shards")
        if table["version"] > VERSION:
            raise DataError(
                f"{path} has format version {table['version']}, this release reads up to {VERSION}: use a newer "
                "release of maxmargin.",
                path=path,
            )
        if crc != _sum_of(table):
            raise ValueError("its checksum is wrong")
        columns = Columns(**table["columns"])
        shards = []
        for held in table["shards"]:
            name = held["name"]
            if Path(name).name != name:
                raise ValueError(f"{name!r} is no name of a file in this folder")
            batches = [Batch(k, *row) for k, row in enumerate(held["batches"])]
            for batch in batches:
                _check_places(batch, columns, held["bytes"])
            shards.append(Shard(str(place / name), held["bytes"], batches))
        n_features, origin = table["n_features"], table["origin"]
        counted = table["rows"] == sum(shard.rows for shard in shards) and columns.width in (None, n_features)
        if not counted or type(n_features) is not int or not isinstance(origin, dict):
            raise ValueError("its entries contradict each other")
    except DataError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError(
            f"{path} is damaged ({error}). Copy the data set again, or convert it again.", path=path
        ) from None
    return Contents(shards, columns, n_features, origin)


def _check_places(batch: Batch, columns: Columns, size: int) -> None:
    parts = columns.parts(*batch.counts)
    if any(type(number) is not int or number < 0 for number in (*batch.counts, *batch.starts)):
        raise ValueError(f"batch {batch.number} has impossible counts")
    for (dtype, count), start in zip(parts, batch.starts, strict=True):
        if start % 8 or start + count * np.dtype(dtype).itemsize > size:
            raise ValueError(f"batch {batch.number} does not lie within its file")


def _sum_of(table: dict[str, Any]) -> int:
    return crc32(json.dumps(table, sort_keys=True, separators=(",", ":")).encode())
