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
from .lines import GRAMMAR, LAST_INDEX, Parsed, Rows, explain, parsed
from .pieces import pieces
from .prefetch import prefetched
from .sizes import few_threads
from .stores import DISK, Disk

__all__ = ["SvmlightSource"]

_SEVERAL_LABELS = re.compile(rb"^([ \t]*)([^\s:#]+(?=[\s#])|(?=[^\s#]))", re.MULTILINE)
_MARK = b"\xef\xbb\xbf"  # of UTF-8, which some editors write
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
        Examples per chunk at most; by default as many as one piece of the file holds (4 MB of text).
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
    ...     with open(path, "w") as file:
    ...         _ = file.write("1 2:1.5\\n-1 1:2\\n")
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

    def keep_within(self, memory: int) -> None:
        """Refuse lines that could not be read in so many bytes."""
        self._memory = memory

    @property
    def fingerprint(self) -> str:
        """Changes when a file does (its name, size or time), or what is read from it."""
        said = repr((self._said_of_files(), self._declared, self.zero_based, self.on_error, self.dtype.str))
        return hashlib.blake2b(said.encode(), digest_size=16).hexdigest()

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
        for part in self._read():
            x = sp.csr_matrix((part.values, part.indices, part.indptr), shape=(len(part), self._width))
            x.has_canonical_format = True  # sorted and without duplicates: nobody need look again
            rows = self.chunk_rows or len(part)
            for a in range(0, len(part), rows):
                own = slice(a, a + rows)
                groups = None if part.groups is None else part.groups[own]
                labels = part.labels[own]
                yield Chunk(np.arange(begin, begin + labels.size), x if rows >= len(part) else x[own], labels, groups)
                begin += labels.size

    def _read(self) -> Generator[Rows, None, None]:
        """The rows of all pieces, with indices from 0 on, checked as a whole."""
        self.skipped, self.n_skipped = [], 0
        width = self._declared or 0
        lines, rows = [0] * len(self.paths), [0] * len(self.paths)
        for piece in self._parsed():
            read = self._agreed(piece)
            self._complain(piece.file, lines[piece.file], read)
            lines[piece.file] += read.n_lines
            rows[piece.file] += len(read.rows)
            if not len(read.rows):
                continue
            if self._base and read.rows.indices.size:
                np.subtract(read.rows.indices, self._base, out=read.rows.indices)
            width = max(width, read.greatest + 1 - (self._base or 0))
            self._width = max(self._width, width)
            yield read.rows
        for path, count in zip(self.paths, rows, strict=True):
            if not count:
                raise DataError(f"{path} has no examples; every line must read: {GRAMMAR}.", path=path)
        self._length = sum(rows)

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
            what = explain(fault, last=self._allowed()[1], dtype=self.dtype)
            message = f"{path}, line {line}, column {fault.column}: {what}"
            if self.on_error == "raise":
                raise DataError(message, path=path, row=line, column=fault.column)
            if len(self.skipped) < MESSAGES:
                self.skipped.append(message)
        self.n_skipped += read.n_faults

    def _parsed(self) -> Iterator[_Piece]:
        """All pieces in order: a thread reads ahead, ``n_jobs`` others parse side by side what it has read."""

        def parse(file: int, text: bytearray, end: int) -> _Piece:
            return _Piece(file, text, end, parsed(text, end, self._allowed(), self._grouped, self.dtype))

        with ThreadPoolExecutor(self.n_jobs, thread_name_prefix="maxmargin-read") as pool:
            ahead = prefetched((pool.submit(parse, *piece) for piece in self._walk()), self.n_jobs)
            with contextlib.closing(ahead):
                for piece in ahead:
                    yield piece.result()
                    del piece  # else what it read would stay while the next one is waited for

    def _walk(self) -> Generator[tuple[int, bytearray, int], None, None]:
        for file, (path, stamp) in enumerate(zip(self.paths, self._stamps, strict=True)):
            for k, (text, end) in enumerate(pieces(path, stamp, self._store, self._memory)):
                if k == 0 and text.startswith(_MARK):
                    text[: len(_MARK)] = b" " * len(_MARK)
                yield file, text, end


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

    def __init__(self, text: object) -> None:
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
