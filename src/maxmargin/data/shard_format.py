"""What shards look like on disk: Arrow files for everybody, and a table of contents for us.

A data set is a folder with ``00000.arrow``, ``00001.arrow`` … and ``dataset.json``. The Arrow files are plain and
uncompressed, one record batch per chunk, so that any Arrow reader can use them. ``dataset.json`` says where in the
files each column of each batch lies, with checksums of every batch and of itself: we read the columns at these places
and never have to trust Arrow's parser with a damaged file.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from .errors import DataError
from .mapped import MappedFile
from .stores import DISK, Disk

FORMAT = "maxmargin shards"
VERSION = 1
CONTENTS = "dataset.json"
_NOTE = b"maxmargin"
_MAGIC = b"ARROW1"
_END = len(_MAGIC) + 4  # after the footer: its length and the magic word


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


class ShardWriter:
    """Writes one Arrow file; ``close`` says where everything lies in it."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self._path, self._columns, self._schema = path, columns, columns.schema()
        self._file = open(path, "wb")  # noqa: SIM115  # closed in ``close``, or by ``abandon``
        self._writer = pa.ipc.new_file(pa.PythonFile(self._file, "w"), self._schema)
        self._number = 0

    @property
    def size(self) -> int:
        return self._file.tell()

    def write(self, arrays: Sequence[np.ndarray], counts: tuple[int, int, int], n_features: int) -> None:
        """One batch: its arrays in the order of ``Columns.parts``."""
        columns, rows = self._columns, counts[0]
        cut = columns.n_inputs
        sums = [columns.checksum(self._number, counts, arrays[:cut], inputs=True)]
        sums.append(columns.checksum(self._number, counts, arrays[cut:], inputs=False))
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
        note = f"{self._number} {n_features} {sums[0]:08x} {sums[1]:08x}".encode()
        note += f" {crc32(note):08x}".encode()
        batch = pa.RecordBatch.from_arrays(made, schema=self._schema)
        self._writer.write_batch(batch, custom_metadata={_NOTE: note})
        self._number += 1

    def close(self) -> Shard:
        self._writer.close()
        self._file.close()
        shard, columns, _ = read_layout(str(self._path))
        if columns != self._columns or len(shard.batches) != self._number:
            raise DataError(f"{self._path} does not hold what was just written to it.", path=str(self._path))
        return shard

    def abandon(self) -> None:
        self._file.close()


def read_layout(path: str, damaged: list[str] | None = None) -> tuple[Shard, Columns, int]:
    """Where the batches of one of our Arrow files lie, its columns, and its number of features.

    Batches are met one after another as in a stream, not by the footer: so none can be left out unseen. Where the
    file is damaged a ``DataError`` is raised or, if there is a list ``damaged``, noted there; batches before the damage
    are kept.
    """
    file = MappedFile(path)
    tail = bytes(file.bytes[-_END:])
    if len(file.bytes) < 2 * _END or bytes(file.bytes[: len(_MAGIC)]) != _MAGIC or tail[4:] != _MAGIC:
        if bytes(file.bytes[: len(_MAGIC)]) == _MAGIC:
            raise DataError(f"{path} is cut short or was not finished: write or copy it again.", path=path)
        raise DataError(f"{path} is no Arrow file.", path=path)
    buffer = pa.py_buffer(file.bytes)
    source = pa.BufferReader(buffer)
    source.seek(8)
    try:
        stream = pa.ipc.open_stream(source)
        columns = _columns_of(stream.schema, path)
    except DataError:
        raise
    except Exception as error:  # Arrow has many ways to fail on damaged metadata
        raise DataError(f"{path} is damaged: its schema cannot be read ({_short(error)}).", path=path) from None
    batches: list[Batch] = []
    width = columns.width or 0
    try:
        while True:
            try:
                batch, noted = stream.read_next_batch_with_custom_metadata()
            except StopIteration:
                break
            found, features = _batch(batch, noted, columns, len(batches), buffer.address, path)
            _check_places(found, columns, len(file.bytes))
            batches.append(found)
            width = max(width, features)
        if source.tell() + int.from_bytes(tail[:4], "little") + _END != len(file.bytes):
            raise ValueError("batches are missing")
    except DataError:
        raise
    except Exception as error:
        message = f"{path} is damaged at batch {len(batches)}: {_short(error)}. Write or copy it again"
        if damaged is None:
            raise DataError(f"{message}, or leave out the rest with on_error='skip'.", path=path) from None
        damaged.append(f"{message}; the rest of the file is left out.")
    return Shard(path, len(file.bytes), batches), columns, width


def _batch(
    batch: pa.RecordBatch, noted: pa.KeyValueMetadata, columns: Columns, number: int, base: int, path: str
) -> tuple[Batch, int]:
    note = noted.get(_NOTE) if noted is not None else None
    if note is None:
        raise DataError(
            f"{path} was not written by maxmargin: its batches have no checksums. Open it with pyarrow and hand over "
            "arrays, or save it as Parquet.",
            path=path,
        )
    body, _, own = note.rpartition(b" ")
    if f"{crc32(body):08x}".encode() != own:
        raise ValueError("its checksums are damaged")
    where, features, *sums = body.split()
    if int(where) != number:
        raise ValueError(f"batch {int(where)} is in its place")
    batch.validate()
    starts: list[int] = []
    sizes: dict[str, int] = {"values": 0, "label": 0}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if column.offset or column.null_count:
            raise ValueError("it has missing values")
        held = [b for b in column.buffers() if b is not None]
        starts += [b.address - base if b.size else 0 for b in held]
        sizes[name] = held[-1].size
    entries = sizes["values"] // np.dtype(columns.dtype).itemsize if columns.sparse else 0
    text = sizes["label"] if columns.label == "utf8" else 0
    return Batch(number, len(batch), entries, text, int(sums[0], 16), int(sums[1], 16), tuple(starts)), int(features)


def _columns_of(schema: pa.Schema, path: str) -> Columns:
    """Our columns, or a message that says what is missing."""
    kinds = {field.name: field.type for field in schema}
    plain = {"float": "float32", "double": "float64", "int64": "int64", "string": "utf8"}
    try:
        values, label = kinds["values"], kinds.get("label")
        width = None if "indices" in kinds else values.list_size
        found = Columns(
            plain[str(values.value_type)], width, label and plain[str(label)], "group" in kinds, "weight" in kinds
        )
        fits = found.schema().equals(schema)
    except (KeyError, ValueError, AttributeError):  # no such column, or of another type
        fits = False
    if not fits:
        said = (f"{name}: {str(kind).replace('item: ', '').replace('element: ', '')}" for name, kind in kinds.items())
        raise DataError(
            f"{path} has columns {', '.join(said) or 'none'}. Needed are indices: list<int32> and values: list<float> "
            "(or only values: fixed_size_list<float>) and, as far as there are any, label: double, int64 or string, "
            "group: int64 and weight: double, in this order. Convert the data with maxmargin.data.convert, or save it "
            "as Parquet.",
            path=path,
        )
    return found


def write_contents(
    folder: Path, shards: Sequence[Shard], columns: Columns, n_features: int, origin: dict[str, Any]
) -> None:
    """The table of contents, last."""
    table: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "rows": sum(shard.rows for shard in shards),
        "n_features": n_features,
        "columns": asdict(columns),
        "origin": origin,
        "shards": [
            {
                "name": Path(shard.path).name,
                "bytes": shard.size,
                "rows": shard.rows,
                "batches": [[b.rows, b.entries, b.text, b.inputs_sum, b.others_sum, b.starts] for b in shard.batches],
            }
            for shard in shards
        ],
    }
    table["crc"] = _sum_of(table)
    with open(folder / CONTENTS, "w", encoding="utf-8") as file:
        json.dump(table, file, separators=(",", ":"))


def read_contents(
    folder: str | os.PathLike[str], store: Disk = DISK
) -> tuple[list[Shard], Columns, int, dict[str, Any]]:
    """Shards, columns, number of features and origin of a folder, all places checked to lie within their files."""
    place = Path(folder) if store.local else PurePosixPath(folder)
    path = str(place / CONTENTS)
    if not store.exists(path):
        raise _no_contents(str(folder), store)
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
        if table["rows"] != sum(shard.rows for shard in shards) or type(table["n_features"]) is not int:
            raise ValueError("its counts contradict each other")
        if not isinstance(table["origin"], dict):
            raise ValueError("it does not say where the data came from")
        if columns.width not in (None, table["n_features"]):
            raise ValueError("its counts contradict each other")
    except DataError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError(
            f"{path} is damaged ({_short(error)}). Copy the data set again, or convert it again.", path=path
        ) from None
    return shards, columns, table["n_features"], table["origin"]


def _check_places(batch: Batch, columns: Columns, size: int) -> None:
    parts = columns.parts(*batch.counts)
    if min(batch.counts) < 0 or len(parts) != len(batch.starts):
        raise ValueError(f"batch {batch.number} has impossible counts")
    for (dtype, count), start in zip(parts, batch.starts, strict=True):
        if start < 0 or start % 8 or start + count * np.dtype(dtype).itemsize > size:
            raise ValueError(f"batch {batch.number} does not lie within its file")


def _no_contents(folder: str, store: Disk) -> DataError:
    if not store.exists(folder):
        return store.unreadable(folder, FileNotFoundError())
    try:
        store.found(f"{glob.escape(folder)}/*.arrow")
    except DataError:
        message = f"{folder} is no data set: it has no {CONTENTS}. Folders are written by maxmargin.data.convert."
    else:
        message = (
            f"{folder} has Arrow files but no {CONTENTS}: its conversion was interrupted, or the folder not copied "
            "whole. Convert it again; or open the files themselves, as a list or with a pattern."
        )
    return DataError(message, path=folder)


def _sum_of(table: dict[str, Any]) -> int:
    return crc32(json.dumps(table, sort_keys=True, separators=(",", ":")).encode())


def _short(error: BaseException) -> str:
    return str(error).strip().split("\n")[0][:200].rstrip(".") or type(error).__name__
