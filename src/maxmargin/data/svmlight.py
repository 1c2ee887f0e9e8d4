"""Examples in svmlight (libsvm) text files: ``label [qid:n] index:value … [# comment]``, one per line."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from ..protocols import Chunk
from .errors import DataError
from .in_order import MESSAGES, InOrder
from .lines import GRAMMAR, LAST_INDEX, Parsed, Rows, explain, joined, parsed
from .pieces import pieces
from .prefetch import prefetched
from .sizes import few_threads
from .stores import DISK, Disk
from .svmlight_writer import write_svmlight

__all__ = ["SvmlightSource", "write_svmlight"]

_SEVERAL_LABELS = re.compile(rb"^([ \t]*)([^\s:#]+(?=[\s#])|(?=[^\s#]))", re.MULTILINE)
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class SvmlightSource(InOrder):
    """Text files, read from beginning to end as often as it is asked for, in bounded memory.

    Blank lines and comments are passed over; indices may stand in any order, but only once in a row. Values are the
    floats nearest to their text, and must be finite.

    Parameters
    ----------
    paths : path or list of paths
        Plain, gzip or Zstandard; several files are read one after another.
    chunk_rows : int, optional
        Examples per chunk; by default as many as one piece of the file holds (4 MB of text).
    n_features : int, optional
        Larger indices are errors. By default it is found by reading everything once.
    zero_based : bool or "auto"
        Whether the first feature is 0 or 1. "auto": 0 if that index occurs in the first piece that has any.
    on_error : "raise" or "skip"
        Whether a malformed line is an error, or left out, counted (``n_skipped``) and the first few described
        (``skipped``); both are of the last pass.
    n_jobs : int
        Threads that read.
    dtype : float32 or float64
        Of values, float32 by default; labels are float64.
    filesystem : Disk or Store
        Where the paths are.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "two.svm")
    ...     write_svmlight(path, np.array([[0, 1.5], [2, 0]]), [1, -1])
    ...     source = SvmlightSource(path)
    ...     [(chunk.x.toarray().tolist(), chunk.y.tolist()) for chunk in source.chunks()]
    [([[0.0, 1.5], [2.0, 0.0]], [1.0, -1.0])]
    """

    kind = "Text"

    def __init__(
        self,
        paths: Paths,
        *,
        chunk_rows: int | None = None,
        n_features: int | None = None,
        zero_based: bool | str = "auto",
        on_error: str = "raise",
        n_jobs: int = 1,
        dtype: DTypeLike | None = None,
        filesystem: Disk = DISK,
    ) -> None:
        if zero_based not in (True, False, "auto"):
            raise ValueError(f'zero_based must be True, False or "auto", got {zero_based!r}.')
        super().__init__([paths] if isinstance(paths, str | os.PathLike) else paths, n_features, on_error, filesystem)
        self.dtype = np.dtype(np.float32 if dtype is None else dtype)
        self.chunk_rows, self.zero_based = chunk_rows, zero_based
        self.n_jobs = few_threads(n_jobs)
        self._base = None if zero_based == "auto" else int(not zero_based)
        self._grouped = -1
        self._memory: int | None = None
        for path, stamp in zip(self.paths, self._stamps, strict=True):
            if stamp.size == 0:
                raise DataError(f"{path} is empty. Every line must read: {GRAMMAR}.", path=path)

    def keep_within(self, memory: int) -> None:
        """Refuse lines that could not be read in so many bytes."""
        self._memory = memory

    @property
    def fingerprint(self) -> str:
        """Changes when a file does (its name, size or time), or what is read from it."""
        said = repr((self._said_of_files(), self._declared, self.zero_based, self.on_error, self.dtype.str))
        return hashlib.blake2b(said.encode(), digest_size=16).hexdigest()

    def _units(self) -> tuple[list[int], list[int], Iterator[set[int]] | None]:
        with contextlib.closing(self._read()) as parts:
            first = next(parts, None)
        units = list(range(len(self.paths)))
        grouped = first is not None and first.groups is not None
        names = (self._only([k])._group_names() for k in units)
        return units, [stamp.size for stamp in self._stamps], names if grouped else None

    def _too_few(self, n_units: int, n_runs: int, n: int) -> str:
        why = "" if n_units == n_runs else ", as some groups are in several of them"
        return (
            f"{n_units} files of text make {n_runs} pieces{why}, {n} are needed: one for each worker. Give the text "
            f"in {n} files or more, or convert it with maxmargin.data.convert: shards can be cut anywhere."
        )

    def _only(self, units: list[int]) -> SvmlightSource:
        part = self._with_files(units)
        part.zero_based = self.origin["zero_based"]
        part._base = int(not part.zero_based)
        return part

    def _group_names(self) -> set[int]:
        names: set[int] = set()
        for part in self._read():
            names.update([] if part.groups is None else np.unique(part.groups).tolist())
        return names

    @property
    def origin(self) -> dict[str, Any]:
        """What must be known to read more of the same data: from which number features are counted."""
        if self._base is None:
            with contextlib.closing(self._read()) as parts:  # the first that has any index tells
                next((part for part in parts if self._base is not None), None)
        return {"zero_based": self._base == 0}

    def chunks(self, order: np.ndarray | None = None) -> Iterator[Chunk]:
        """All chunks, read ahead in the background. Before all was read once, they are as wide as what was seen."""
        self._refuse_order(order)
        begin = 0
        parts = self._read()
        for part in parts if self.chunk_rows is None else self._resized(parts, self.chunk_rows):
            x = sp.csr_matrix((part.values, part.indices, part.indptr), shape=(len(part), self._width))
            x.has_canonical_format = True  # sorted and without duplicates: nobody need look again
            yield Chunk(np.arange(begin, begin + len(part)), x, part.labels, part.groups)
            begin += len(part)

    def _resized(self, parts: Iterator[Rows], rows: int) -> Iterator[Rows]:
        waiting: list[Rows] = []
        held = 0
        for part in parts:
            waiting.append(part)
            held += len(part)
            if held >= rows:
                whole = joined(waiting)
                full = held - held % rows
                yield from (whole.slice(begin, begin + rows) for begin in range(0, full, rows))
                waiting, held = [whole.slice(full, held)], held - full
        if held:
            yield joined(waiting)

    def _read(self) -> Generator[Rows, None, None]:
        """The rows of all pieces, with indices from 0 on, checked as a whole."""
        self.skipped, self.n_skipped = [], 0
        length, width = 0, self._declared or 0
        file, lines, rows = 0, 0, 0
        for piece in self._parsed():
            if piece.file != file:
                self._not_empty(file, rows)
                file, lines, rows = piece.file, 0, 0
            read = self._agreed(piece)
            self._complain(piece.file, lines, read)
            lines += read.n_lines
            rows += len(read.rows)
            length += len(read.rows)
            if not len(read.rows):
                continue
            if self._base and read.rows.indices.size:
                np.subtract(read.rows.indices, self._base, out=read.rows.indices)
            width = max(width, read.greatest + 1 - (self._base or 0))
            self._width = max(self._width, width)
            yield read.rows
        self._not_empty(file, rows)
        self._length, self._surveyed = length, True

    def _agreed(self, piece: _Piece) -> Parsed:
        """The piece as all that came before it wants it: where indices start, how many there are, with groups or not.

        Pieces are read ahead before that is known, so the few that turn out to differ are read again.
        """
        read = piece.read
        if self._base is None and read.rows.indices.size:
            self._base = int(read.least > 0)
        if self._grouped < 0 and len(read.rows):
            self._grouped = read.grouped
        lowest, highest = self._allowed()
        fits = not read.rows.indices.size or (lowest <= read.least and read.greatest <= highest)
        if fits and (not len(read.rows) or read.grouped == self._grouped):
            return read
        return parsed(piece.text, piece.end, self._allowed(), self._grouped, self.dtype)

    def _allowed(self) -> tuple[int, int]:
        highest = LAST_INDEX
        if self._declared is not None:
            highest = min(highest, self._declared - 1 + (1 if self._base is None else self._base))
        return self._base or 0, highest

    def _complain(self, file: int, lines: int, read: Parsed) -> None:
        path = self.paths[file]
        for fault in read.faults:
            line = lines + fault.line
            what = explain(
                fault,
                zero_based=self.zero_based,
                n_features=self._declared,
                last=self._allowed()[1],
                dtype=self.dtype,
            )
            message = f"{path}, line {line}, column {fault.column}: {what}"
            if self.on_error == "raise":
                raise DataError(message, path=path, row=line, column=fault.column)
            if len(self.skipped) < MESSAGES:
                self.skipped.append(message)
        self.n_skipped += read.n_faults

    def _not_empty(self, file: int, rows: int) -> None:
        if rows:
            return
        path = self.paths[file]
        mine = [s for s in self.skipped if s.startswith(f"{path}, ")]
        why = f"all its lines are malformed, the first one: {mine[0]}" if mine else f"every line must read: {GRAMMAR}"
        raise DataError(f"{path} has no examples; {why.rstrip('.')}.", path=path)

    def _parsed(self) -> Iterator[_Piece]:
        """All pieces in order: a thread reads ahead, ``n_jobs`` others parse side by side what it has read."""

        def parse(file: int, text: bytearray, end: int) -> _Piece:
            return _Piece(file, text, end, parsed(text, end, self._allowed(), self._grouped, self.dtype))

        with ThreadPoolExecutor(self.n_jobs, thread_name_prefix="maxmargin-read") as pool:
            ahead = prefetched((pool.submit(parse, *piece) for piece in self._walk()), self.n_jobs)
            with contextlib.closing(ahead):
                for piece in ahead:
                    yield piece.result()

    def _walk(self) -> Generator[tuple[int, bytearray, int], None, None]:
        for file, (path, stamp) in enumerate(zip(self.paths, self._stamps, strict=True)):
            first = True
            for text, end in pieces(path, stamp, self._store, self._memory):
                if first:
                    _check_start(path, text)
                    first = False
                yield file, text, end
            if first:
                raise DataError(f"{path} is empty. Every line must read: {GRAMMAR}.", path=path)


class LabelSets(SvmlightSource):
    """Text whose rows have several labels, ``label,label,… index:value …``, or none at all.

    They are in ``sets``, row by row, once all was read; ``y`` is zero.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "two.svm")
    ...     with open(path, "w") as file:
    ...         _ = file.write("1,4 1:0.5\\n2:2\\n")
    ...     source = LabelSets(SvmlightSource(path))
    ...     print([chunk.x.toarray().tolist() for chunk in source.chunks()], source.sets)
    [[[0.5, 0.0], [0.0, 2.0]]] [[1.0, 4.0], []]
    """

    sets: list[list[float]]

    def __init__(self, text: Any) -> None:
        if not isinstance(text, SvmlightSource):
            raise DataError("Rows with several labels are read from svmlight text only, such as 1,4 3:0.5.")
        vars(self).update(vars(text))

    def _walk(self) -> Generator[tuple[int, bytearray, int], None, None]:
        """The text with a zero in the place of labels, as long as they were: faults are in the columns of the file."""
        self.sets = []
        before, last = 0, 0
        for file, text, end in super()._walk():
            before, last = before if file == last else 0, file

            def zero(found: re.Match[bytes], path: str = self.paths[file], lines: int = before) -> bytes:
                try:
                    self.sets.append([float(label) for label in found[2].split(b",") if found[2]])
                except ValueError:
                    line = lines + found.string.count(b"\n", 0, found.start()) + 1
                    shown = found[2][:40].decode("utf-8", "replace")
                    raise DataError(
                        f"{path}, line {line}: the line begins with {shown!r}. Labels are whole numbers from 0 with "
                        "commas between them, as in 1,4 3:0.5.",
                        path=path,
                        row=line,
                    ) from None
                return found[1] + (b"0".ljust(len(found[2])) if found[2] else b"0 ")

            read = bytearray(_SEVERAL_LABELS.sub(zero, bytes(text[:end])))
            yield file, read, len(read)
            before += read.count(b"\n")


class _Piece(NamedTuple):
    file: int
    text: bytearray
    end: int
    read: Parsed


def _check_start(path: str, text: bytearray) -> None:
    if text[:3] == b"\xef\xbb\xbf":
        text[:3] = b"   "  # the mark of UTF-8 that some editors write
    if text[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"{path} is text in UTF-16. Save it as UTF-8 or ASCII.", path=path)
