"""``convert``: any source becomes shuffled shards, in bounded memory.

Every row has a key, a scrambled form of its number (with groups: of its group), and the shards hold the rows in the
order of their keys. What does not fit in memory is dealt to temporary files by the leading bits of the keys; each file
is then small enough to be sorted. So the bytes that are written depend on the data and the seed, not on memory, chunks
or threads.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from ..files import remove_leftovers, replacing
from ..kernels.batches import scrambled
from ..protocols import Chunk
from ..validation import shown, whole
from .arrays import checked_sparse, usable_rows
from .chunked import GroupsInTurn, group_starts, keep_within, left_out, origin_of
from .errors import DataError
from .opening import open_source, precision as precision_of, takes
from .partitioning import Buckets, RowBuffer
from .shard_format import CONTENTS, Columns, Contents, Shard, ShardWriter, write_contents
from .shards import Shards
from .sizes import as_bytes
from .source_checks import chunks_of

Progress = Callable[[int, int | None, int | None], Any]
_SHARE = 0.75  # of the memory that rows may take: the rest is for the chunk at hand, and for the batch being written


def convert(
    what: object,
    folder: str | os.PathLike[str],
    *,
    shuffle: bool = True,
    seed: int = 0,
    memory: int | str = "512MB",
    shard_bytes: int | str = "256MB",
    batch_bytes: int | str = "4MB",
    dtype: DTypeLike = "float32",
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Shards:
    """Write data of any kind as shards, shuffled: the form in which data larger than memory is trained on.

    Parameters
    ----------
    what : anything that ``open`` takes
    folder : path
        Where the shards go; it must not exist yet, or be empty.
    shuffle : bool, default True
        Rows (with groups: whole groups) in an order that depends on the seed and the data alone. Without, rows stay
        in their order.
    seed : int, default 0
    memory : int or text, default "512MB"
        How much may be held at a time. What does not fit goes to temporary files beside the folder.
    shard_bytes, batch_bytes : int or text, default "256MB" and "4MB"
        Size of a file, and of a chunk in it.
    dtype : default "float32"
        Precision in which inputs are stored.
    overwrite : bool, default False
        Whether to replace a data set that is there. It stays until the new one is complete.
    progress : callable, optional
        Called as ``progress(rows, bytes_done, bytes_total)``; bytes are None where they are not known.
    **options
        As for ``open``: ``labels``, ``label``, ``on_error`` …

    Examples
    --------
    >>> import tempfile, numpy as np, maxmargin as mm
    >>> with tempfile.TemporaryDirectory() as place:
    ...     shards = mm.data.convert(np.eye(4), place + "/four", labels=[0, 1, 2, 3])
    ...     sorted(shards.labels(0).y.tolist())
    [0, 1, 2, 3]
    """
    limit, shard = as_bytes(memory, "memory"), as_bytes(shard_bytes, "shard_bytes")
    batch = as_bytes(batch_bytes, "batch_bytes")
    precision = precision_of(dtype)
    if batch > 2**30:
        raise DataError(f"batch_bytes must be at most 1 GiB, not {batch_bytes}.")
    if not isinstance(folder, str | os.PathLike):
        raise DataError(f"folder must be the path of a new folder, not {shown(folder)}.")
    whole("seed", seed, 0)
    if not isinstance(shuffle, bool | np.bool_) or not isinstance(overwrite, bool | np.bool_):
        raise DataError(f"shuffle and overwrite must be True or False, not {shown(shuffle)} and {shown(overwrite)}.")
    if progress is not None and not callable(progress):
        raise DataError(f"progress must be a function or None, not {shown(progress)}.")
    target = Path(folder)
    _check_target(target, overwrite)
    if takes(what, "dtype", options):
        options["dtype"] = precision  # text is read in it: a detour through less would cost digits
    source = open_source(what, whole_groups=False, **options)
    keep_within(source, limit)
    with _whole_folder(target) as part:
        _Conversion(part, precision, shuffle, seed, limit, shard, batch).run(source, progress)
    shards = Shards([target])
    shards.n_skipped, shards.skipped = left_out(source)
    return shards


class _Conversion:
    """One run: rows come in by ``_take``, batches go out by ``_write``."""

    def __init__(
        self, folder: Path, dtype: str, shuffle: bool, seed: int, limit: int, shard_bytes: int, batch_bytes: int
    ) -> None:
        self._folder, self._dtype, self._shuffle = folder, dtype, shuffle
        self._seed = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
        self._limit = max(1, int(limit * _SHARE))
        self._shard_bytes, self._batch_bytes = shard_bytes, batch_bytes
        self._buckets: Buckets | None = None
        self._texts: dict[str, int] = {}
        self._encoded: list[bytes] = []
        # Without a shuffle nothing can be gathered.
        self._in_turn = GroupsInTurn("Leave out shuffle=False: shuffling gathers groups.")
        self._width = 0
        self._rows = 0
        self._shards: list[Shard] = []
        self._writer: ShardWriter | None = None

    _hand: RowBuffer  # from the first chunk on

    def run(self, source: Any, progress: Progress | None) -> None:
        try:
            with contextlib.closing(_counted(source, progress)) as chunks:
                for chunk in chunks:
                    if len(chunk):
                        self._take(chunk)
            if not self._rows:
                raise DataError("There are no examples to convert.")
            if self._buckets is not None:
                self._buckets.deal(self._hand)
                self._merge(self._buckets)
            self._write(last=True)
            origin = origin_of(source)
            write_contents(self._folder, Contents(self._shards, self._hand.columns, self._width, origin))
        finally:
            if self._writer is not None:
                self._writer.abandon()

    def _take(self, chunk: Chunk) -> None:
        x, fixed, label = self._prepared(chunk)
        width = None if sp.issparse(x) else x.shape[1]
        found = Columns(self._dtype, width, label, chunk.group is not None, chunk.weight is not None)
        if not self._rows:
            self._hand = RowBuffer(found, self._limit)
        elif self._hand.columns != found:
            raise DataError(
                f"The data changes its kind at row {self._rows}: {_kinds(self._hand.columns)} before, {_kinds(found)} "
                "now. All parts must have the same columns and labels of one type."
            )
        values = x.data if found.sparse else x.reshape(-1)
        if self._hand.rows and self._held + self._hand.nbytes(len(chunk), values.size) > self._limit:
            if self._shuffle:
                self._buckets = self._buckets or Buckets(self._folder)
                self._buckets.deal(self._hand)
            else:
                self._write(last=False)
        self._hand.append(fixed, x.indices if found.sparse else None, values)
        self._rows += len(chunk)

    @property
    def _held(self) -> int:
        return self._hand.nbytes(self._hand.rows, self._hand.entries)

    def _prepared(self, chunk: Chunk) -> tuple[Any, dict[str, np.ndarray], str | None]:
        """Rows as they will be stored, their other columns with a key for each, and the type of their labels."""
        x = _checked(chunk.x, self._dtype, self._rows)
        self._width = max(self._width, x.shape[1])
        sizes = np.diff(x.indptr) if sp.issparse(x) else np.full(len(chunk), x.shape[1], np.int32)
        fixed: dict[str, np.ndarray] = {"sizes": sizes}
        label = None
        if chunk.y is not None:
            label, fixed["label"] = self._labels(np.asarray(chunk.y))
        if chunk.group is not None:
            fixed["group"] = np.asarray(chunk.group).astype(np.int64, copy=False)
            if not self._shuffle:
                self._in_turn.take(fixed["group"])
        if chunk.weight is not None:
            fixed["weight"] = np.asarray(chunk.weight, np.float64)
            self._refuse(~(fixed["weight"] >= 0) | np.isinf(fixed["weight"]), fixed["weight"], "weight", "not negative")
        fixed["key"] = self._keys(len(chunk), fixed.get("group"))
        return x, fixed, label

    def _keys(self, rows: int, group: np.ndarray | None) -> np.ndarray:
        numbers = np.arange(self._rows, self._rows + rows)
        if not self._shuffle:
            return numbers.astype(np.uint64)
        return scrambled(numbers if group is None else group, self._seed)

    def _labels(self, y: np.ndarray) -> tuple[str, np.ndarray]:
        """Labels and their type in shards; texts by their numbers."""
        if y.ndim != 1:
            raise DataError(f"Shards hold one label per row; got labels of shape {y.shape}.")
        if y.dtype.kind == "f":
            self._refuse(~np.isfinite(y), y, "label", "finite")
            return "float64", y.astype(np.float64, copy=False)
        if y.dtype.kind in "iub":
            return "int64", y.astype(np.int64, copy=False)
        names, codes = np.unique(y.astype(str), return_inverse=True)
        numbers = [self._texts.setdefault(name, len(self._texts)) for name in names.tolist()]
        self._encoded += [name.encode() for name in islice(self._texts, len(self._encoded), None)]
        return "utf8", np.array(numbers, np.int64)[codes]

    def _refuse(self, bad: np.ndarray, column: np.ndarray, name: str, needed: str) -> None:
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            message = f"The {name} of row {self._rows + i} is {column[i]}; it must be {needed}."
            raise DataError(message, row=self._rows + i)

    def _merge(self, buckets: Buckets, name: str = "") -> None:
        """The rows of all buckets, one bucket after another; one that is too large is dealt again."""
        for k, bucket in enumerate(buckets.buckets):
            if not bucket.segments:
                continue
            finer = None
            into = self._hand
            if into.nbytes(bucket.rows, bucket.entries) > self._limit and len(bucket.segments) > 1:
                if bucket.least == bucket.greatest:
                    raise self._too_large(f"A group of {bucket.rows} rows")
                finer = Buckets(self._folder, buckets.depth + 1, f"{name}-{k:02d}")
                into = RowBuffer(into.columns, self._limit // 16)
            with open(bucket.path, "rb") as file:
                for rows, entries in bucket.segments:
                    into.load(file, rows, entries)
                    if finer is not None:
                        finer.deal(into)
            bucket.path.unlink()
            if finer is None:
                self._write(last=False)
            else:
                self._merge(finer, f"{name}-{k:02d}")

    def _too_large(self, what: str) -> DataError:
        return DataError(
            f"{what} does not fit in memory at once. A group is kept together: give more memory than "
            f"{int(self._limit / _SHARE)} bytes."
        )

    def _write(self, last: bool) -> None:
        """All full batches of the rows at hand; the rest stays there, or is written as well if it is the last."""
        hand, columns = self._hand, self._hand.columns
        order = hand.sorted() if self._shuffle else np.arange(hand.rows)
        item = np.dtype(columns.dtype).itemsize
        row_bytes = 8 * ((columns.label is not None) + columns.group + columns.weight)
        sizes = np.full(hand.rows, row_bytes + (8 if columns.width is None else columns.width * item))
        if columns.sparse:
            sizes += hand.column("sizes")[order].astype(np.int64) * (4 + item)
        total = reached = np.cumsum(sizes)
        ends = None  # rows after which a batch may end: all of them, unless there are groups
        if columns.group:
            group = hand.column("group")[order]
            ends = np.append(group_starts(group)[1:], [hand.rows] * last).astype(np.int64)
            reached = total[ends - 1]
        begin = 0
        while begin < hand.rows:
            k = int(np.searchsorted(reached, self._batch_bytes + (total[begin - 1] if begin else 0)))
            if k >= reached.size and not last:
                break
            k = min(k, reached.size - 1)
            end = k + 1 if ends is None else int(ends[k])
            self._batch(order[begin:end])
            begin = end
        if begin:
            hand.keep(order[begin:])
        elif not last and not self._shuffle and self._held > self._limit:
            raise self._too_large(f"The group in row {self._rows - hand.rows}")
        if last and self._writer is not None:
            self._close_shard()

    def _batch(self, rows: np.ndarray) -> None:
        hand, columns = self._hand, self._hand.columns
        if columns.sparse and int(hand.column("sizes")[rows].sum(dtype=np.int64)) >= 2**31:
            raise DataError(
                f"A group of {rows.size} rows has more than {2**31 - 1} entries: it does not fit into a batch."
            )
        offsets, indices, values = hand.take(rows)
        arrays = [offsets, indices, offsets, values] if columns.sparse else [values]
        text = 0
        if columns.label == "utf8":
            words = [self._encoded[code] for code in hand.column("label")[rows].tolist()]
            places = np.zeros(rows.size + 1, np.int64)
            np.cumsum([len(word) for word in words], out=places[1:])
            text = int(places[-1])
            if text >= 2**31:
                raise DataError("The labels of a batch have more than 2 GB of text.")
            arrays += [places.astype(np.int32), np.frombuffer(b"".join(words), np.uint8)]
        elif columns.label is not None:
            arrays.append(hand.column("label")[rows])
        arrays += [hand.column(name)[rows] for name in ("group", "weight") if name in hand.fixed]
        if self._writer is None:
            self._writer = ShardWriter(self._folder / f"{len(self._shards):05d}.arrow", columns)
        self._writer.write(arrays, (rows.size, values.size if columns.sparse else 0, text))
        if self._writer.size >= self._shard_bytes:
            self._close_shard()

    def _close_shard(self) -> None:
        assert self._writer is not None
        self._shards.append(self._writer.close())
        self._writer = None


def _checked(x: Any, dtype: str, first: int) -> Any:
    """Rows in the precision of the shards, in canonical form, finite and within bounds: whoever made them."""
    if isinstance(x, list):
        raise DataError("Only matrices become shards. Structured examples are used as they are: open(pairs).")
    if sp.issparse(x):
        x = checked_sparse(x, f"The chunk from row {first} on", entries=False)
    return usable_rows(x if sp.issparse(x) else np.asarray(x), dtype, min(x.shape[1], 2**31 - 1), first)[0]


def _counted(source: Any, progress: Progress | None) -> Generator[Chunk, None, None]:
    """The chunks of a source, telling how far it is."""
    rows, done = 0, 0
    seekable = hasattr(source, "nbytes")
    total = sum(source.nbytes(i) for i in range(source.offsets.size - 1)) if seekable and progress else None
    chunks = chunks_of(source)
    for i in count():
        try:
            chunk = next(chunks, None)
        except OSError as error:  # not to be mistaken for one of writing
            raise DataError(f"The data cannot be read on after {rows} rows: {error.strerror or error}.") from error
        if chunk is None:
            return
        yield chunk
        rows += len(chunk)
        if progress is not None:
            done += source.nbytes(i) if seekable else 0
            progress(rows, done if seekable else None, total)


def _kinds(columns: Columns) -> str:
    rows = "sparse rows" if columns.sparse else f"dense rows of {columns.width}"
    parts = [rows, f"{columns.label or 'no'} labels"]
    return ", ".join(parts + ["groups"] * columns.group + ["weights"] * columns.weight)


def _check_target(target: Path, overwrite: bool) -> None:
    """Refuse, before any work is done, to replace what is not to be replaced."""
    remove_leftovers(target.parent)
    if not target.exists():
        return
    if not target.is_dir():
        raise DataError(f"{target} is a file. Shards need a folder.", path=str(target))
    held = sorted(path.name for path in target.iterdir())
    foreign = [name for name in held if not _is_ours(name)]
    if foreign:
        raise DataError(f"{target} has other files in it, such as {foreign[0]}. Give a new folder.", path=str(target))
    if held and not overwrite:
        raise DataError(
            f"{target} holds a data set already. Open it, give another folder, or replace it with overwrite=True.",
            path=str(target),
        )


@contextlib.contextmanager
def _whole_folder(target: Path) -> Iterator[Path]:
    """A new folder to write to, which becomes ``target``; after an error or Ctrl-C nothing of it is left."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as part:
            part.mkdir()
            yield part
    except OSError as error:
        raise DataError(
            f"{target} cannot be written: {error.strerror or error}. What was begun is removed. Give a folder with "
            "more room or other permissions.",
            path=str(target),
        ) from error


def _is_ours(name: str) -> bool:
    return name == CONTENTS or (name.endswith(".arrow") and name[: -len(".arrow")].isdigit())
