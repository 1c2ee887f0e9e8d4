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
from pathlib import Path, PurePath, PurePosixPath
from typing import Any
from zlib import crc32

import numpy as np

from .errors import DataError
from .mapped import MappedFile, unreadable
from .stores import Store

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

    def schema(self) -> Any:
        import pyarrow as pa

        value = pa.from_numpy_dtype(np.dtype(self.dtype))
        fields = [("indices", pa.list_(pa.int32())), ("values", pa.list_(value))]
        if self.width is not None:
            fields = [("values", pa.list_(value, self.width))]
        if self.label is not None:
            fields.append(("label", {"float64": pa.float64(), "int64": pa.int64(), "utf8": pa.utf8()}[self.label]))
        fields += [("group", pa.int64())] * self.group + [("weight", pa.float64())] * self.weight
        return pa.schema(fields)

    def parts(self, rows: int, entries: int, text: int) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
        """(type, count) of each array of a batch in the order of the file: those of the inputs, and the others."""
        inputs = [("int32", rows + 1), ("int32", entries), ("int32", rows + 1), (self.dtype, entries)]
        if self.width is not None:
            inputs = [(self.dtype, rows * self.width)]
        others = [("int32", rows + 1), ("uint8", text)] if self.label == "utf8" else [(self.label or "", rows)]
        others = others if self.label is not None else []
        others += [("int64", rows)] * self.group + [("float64", rows)] * self.weight
        return inputs, others

    def all_parts(self, batch: Batch) -> list[tuple[str, int]]:
        inputs, others = self.parts(batch.rows, batch.entries, batch.text)
        return inputs + others


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


@dataclass(frozen=True)
class Shard:
    """A file and its batches."""

    path: str
    size: int
    batches: list[Batch]


def checksums(columns: Columns, number: int, counts: tuple[int, int, int], arrays: Sequence[Any]) -> tuple[int, int]:
    """Checksums of the inputs and of the other columns: of bytes, types, counts and the place in the shard."""
    split = 1 if columns.width is not None else 4
    return sum_of_inputs(columns, number, counts, arrays[:split]), sum_of_others(
        columns, number, counts, arrays[split:]
    )


def sum_of_inputs(columns: Columns, number: int, counts: tuple[int, int, int], arrays: Sequence[Any]) -> int:
    found = crc32(repr((VERSION, columns.dtype, columns.width, number, counts[:2])).encode())
    for array in arrays:
        found = crc32(array, found)
    return found


def sum_of_others(columns: Columns, number: int, counts: tuple[int, int, int], arrays: Sequence[Any]) -> int:
    kinds = (columns.label, columns.group, columns.weight)
    found = crc32(repr((VERSION, kinds, number, counts[0], counts[2])).encode())
    for array in arrays:
        found = crc32(array, found)
    return found


class ShardWriter:
    """Writes one Arrow file; ``close`` says where everything lies in it."""

    def __init__(self, path: Path, columns: Columns) -> None:
        import pyarrow as pa

        self._path, self._columns, self._schema = path, columns, columns.schema()
        self._file = open(path, "wb")  # noqa: SIM115  # closed in ``close``, or by ``abandon``
        self._writer = pa.ipc.new_file(pa.PythonFile(self._file, "w"), self._schema)
        self._number = 0
        self.rows = 0

    @property
    def size(self) -> int:
        return self._file.tell()

    def write(self, arrays: Sequence[np.ndarray], counts: tuple[int, int, int], n_features: int) -> None:
        """One batch: its arrays in the order of ``Columns.parts``."""
        import pyarrow as pa

        rows, entries, _ = counts
        sums = checksums(self._columns, self._number, counts, arrays)
        buffers = [pa.py_buffer(array) for array in arrays]
        made = []
        for field in self._schema:
            kind = field.type
            if pa.types.is_fixed_size_list(kind):
                child = pa.Array.from_buffers(kind.value_type, rows * kind.list_size, [None, buffers.pop(0)])
                made.append(pa.Array.from_buffers(kind, rows, [None], children=[child]))
            elif pa.types.is_list(kind):
                offsets = buffers.pop(0)
                child = pa.Array.from_buffers(kind.value_type, entries, [None, buffers.pop(0)])
                made.append(pa.Array.from_buffers(kind, rows, [None, offsets], children=[child]))
            elif pa.types.is_string(kind):
                made.append(pa.Array.from_buffers(kind, rows, [None, buffers.pop(0), buffers.pop(0)]))
            else:
                made.append(pa.Array.from_buffers(kind, rows, [None, buffers.pop(0)]))
        note = f"{self._number} {n_features} {sums[0]:08x} {sums[1]:08x}".encode()
        note += f" {crc32(note):08x}".encode()
        batch = pa.RecordBatch.from_arrays(made, schema=self._schema)
        self._writer.write_batch(batch, custom_metadata={_NOTE: note})
        self._number += 1
        self.rows += rows

    def close(self) -> Shard:
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
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
    import pyarrow as pa

    file = MappedFile(path)
    tail = bytes(file.bytes[-_END:])
    if file.size < 2 * _END or bytes(file.bytes[: len(_MAGIC)]) != _MAGIC or tail[4:] != _MAGIC:
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
            _check_places(found, columns, file.size)
            batches.append(found)
            width = max(width, features)
        if source.tell() + int.from_bytes(tail[:4], "little") + _END != file.size:
            raise ValueError("batches are missing")
    except DataError:
        raise
    except Exception as error:
        message = f"{path} is damaged at batch {len(batches)}: {_short(error)}. Write or copy it again"
        if damaged is None:
            raise DataError(f"{message}, or leave out the rest with on_error='skip'.", path=path) from None
        damaged.append(f"{message}; the rest of the file is left out.")
    return Shard(path, file.size, batches), columns, width


def _batch(batch: Any, noted: Any, columns: Columns, number: int, base: int, path: str) -> tuple[Batch, int]:
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


def _columns_of(schema: Any, path: str) -> Columns:
    """Our columns, or a message that says what is missing."""
    kinds = {field.name: str(field.type).replace("item: ", "").replace("element: ", "") for field in schema}
    plain = {"float": "float32", "double": "float64"}
    values = kinds.get("values", "")
    inner, _, size = values.partition("<")[2].partition(">")
    labels = {None: None, "double": "float64", "int64": "int64", "string": "utf8"}
    sparse = values.startswith("list") and kinds.get("indices") == "list<int32>"
    dense = values.startswith("fixed_size_list") and "indices" not in kinds
    found = None
    if inner in plain and (sparse or dense) and kinds.get("label") in labels:
        width = int(size.strip("[]")) if dense else None
        found = Columns(plain[inner], width, labels[kinds.get("label")], "group" in kinds, "weight" in kinds)
    if found is None or not found.schema().equals(schema):
        has = ", ".join(f"{name}: {kind}" for name, kind in kinds.items()) or "none"
        raise DataError(
            f"{path} has columns {has}. Needed are indices: list<int32> and values: list<float> (or only values: "
            "fixed_size_list<float>) and, as far as there are any, label: double, int64 or string, group: int64 and "
            "weight: double, in this order. Convert the data with maxmargin.data.convert, or save it as Parquet.",
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
        "rows": sum(b.rows for shard in shards for b in shard.batches),
        "n_features": n_features,
        "columns": asdict(columns),
        "origin": origin,
        "shards": [
            {
                "name": Path(shard.path).name,
                "bytes": shard.size,
                "rows": sum(b.rows for b in shard.batches),
                "batches": [[b.rows, b.entries, b.text, b.inputs_sum, b.others_sum, b.starts] for b in shard.batches],
            }
            for shard in shards
        ],
    }
    table["crc"] = _sum_of(table)
    with open(folder / CONTENTS, "w", encoding="utf-8") as file:
        json.dump(table, file, separators=(",", ":"))


def read_contents(
    folder: str | os.PathLike[str], store: Store | None = None
) -> tuple[list[Shard], Columns, int, dict[str, Any]]:
    """Shards, columns, number of features and origin of a folder, all places checked to lie within their files."""
    place: PurePath = Path(folder) if store is None else PurePosixPath(folder)
    path = place / CONTENTS
    try:
        text = Path(path).read_bytes() if store is None else store.read(str(path))
    except FileNotFoundError:
        raise (
            _no_contents(Path(folder))
            if store is None
            else DataError(
                f"{folder} is no data set: there is no {CONTENTS} in it ({store.name}). Write one with "
                "maxmargin.data.convert, and copy the whole folder.",
                path=str(folder),
            )
        ) from None
    except OSError as error:
        raise (unreadable(path, error) if store is None else store.unreadable(str(path), error)) from error
    try:
        table = json.loads(text)
        crc = table.pop("crc", None)
        if table["format"] != FORMAT or type(table["version"]) is not int:
            raise ValueError("it describes no shards")
        if table["version"] > VERSION:
            raise DataError(
                f"{path} has format version {table['version']}, this release reads up to {VERSION}: use a newer "
                "release of maxmargin.",
                path=str(path),
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
        if table["rows"] != sum(b.rows for s in shards for b in s.batches) or type(table["n_features"]) is not int:
            raise ValueError("its counts contradict each other")
        if not isinstance(table["origin"], dict):
            raise ValueError("it does not say where the data came from")
        if columns.width not in (None, table["n_features"]):
            raise ValueError("its counts contradict each other")
    except DataError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError(
            f"{path} is damaged ({_short(error)}). Copy the data set again, or convert it again.", path=str(path)
        ) from None
    return shards, columns, table["n_features"], table["origin"]


def _check_places(batch: Batch, columns: Columns, size: int) -> None:
    counts = (batch.rows, batch.entries, batch.text)
    inputs, others = columns.parts(*counts)
    parts = inputs + others
    if min(counts) < 0 or len(parts) != len(batch.starts):
        raise ValueError(f"batch {batch.number} has impossible counts")
    for (dtype, count), start in zip(parts, batch.starts, strict=True):
        if start < 0 or start % 8 or start + count * np.dtype(dtype).itemsize > size:
            raise ValueError(f"batch {batch.number} does not lie within its file")


def _no_contents(folder: Path) -> DataError:
    if not folder.is_dir():
        return DataError(f"{folder} does not exist.", path=str(folder))
    if any(folder.glob("*.arrow")):
        message = (
            f"{folder} has Arrow files but no {CONTENTS}: its conversion was interrupted, or the folder not copied "
            "whole. Convert it again; or open the files themselves, as a list or with a pattern."
        )
    else:
        message = f"{folder} is no data set: it has no {CONTENTS}. Folders are written by maxmargin.data.convert."
    return DataError(message, path=str(folder))


def _sum_of(table: dict[str, Any]) -> int:
    return crc32(json.dumps(table, sort_keys=True, separators=(",", ":")).encode())


def _short(error: BaseException) -> str:
    return str(error).strip().split("\n")[0][:200].rstrip(".") or type(error).__name__
