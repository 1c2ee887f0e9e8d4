"""Sources whose chunks can be read in any order: what all of them have in common, and runs of chunks out of others."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, cast
from zlib import crc32

import numpy as np
import scipy.sparse as sp

from ..protocols import Chunk, Seekable, Source
from .arrays import csr_view
from .errors import DataError
from .in_order import balanced
from .prefetch import prefetched

Run = tuple[Seekable, int, int]
"""Chunks a … b − 1 of a source."""


class Chunked:
    """The part of ``Seekable`` that follows from ``offsets`` and ``chunk``."""

    offsets: np.ndarray
    origin: dict[str, Any] = {}  # noqa: RUF012  # replaced, never changed
    skipped: Sequence[str] = ()
    _reads_ahead = True

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def chunk(self, i: int) -> Chunk:
        raise NotImplementedError

    def release(self, i: int) -> None:
        """Nothing to give back, unless a source says otherwise."""

    def chunks(self, order: np.ndarray | None = None) -> Iterator[Chunk]:
        numbers = range(self.offsets.size - 1) if order is None else order
        made = ((int(i), self._touched(int(i))) for i in numbers)
        for i, chunk in prefetched(made) if self._reads_ahead else made:
            yield chunk
            del chunk
            self.release(i)

    def _touched(self, i: int) -> Chunk:
        """A chunk that is in memory when it is needed, not when it is first used."""
        return self.chunk(i)


class Runs(Chunked):
    """Runs of chunks of seekable sources, one after another: itself a ``Seekable`` source, whose examples count from 0.

    To another process it takes only what is its own: rows of arrays in memory, names of files.

    Parameters
    ----------
    runs : list of (source, begin, end)
        Chunks ``begin`` … ``end`` − 1 of each source, in this order.
    fingerprint : str, optional
        Made from those of the sources if not given.

    Attributes
    ----------
    first : int
        The position of its first example in the first source.
    """

    def __init__(self, runs: Sequence[Run], fingerprint: str | None = None) -> None:
        sources = [source for source, _, _ in runs]
        self.first = int(sources[0].offsets[runs[0][1]])
        self.n_features = max((source.n_features for source in sources), key=lambda width: width or 0)
        self.origin = getattr(sources[0], "origin", {})
        self.skipped = [text for source in sources for text in getattr(source, "skipped", [])]
        self.n_skipped = sum(getattr(source, "n_skipped", len(getattr(source, "skipped", []))) for source in sources)
        self._fingerprint = fingerprint
        self._set_runs(runs)

    def _set_runs(self, runs: Sequence[Run]) -> None:
        self._runs = list(runs)
        cuts = [np.asarray(source.offsets[begin : end + 1]) for source, begin, end in runs]
        self._rows = np.cumsum([0, *(cut[-1] - cut[0] for cut in cuts)])
        self._first = np.cumsum([0, *(cut.size - 1 for cut in cuts)])
        starts = [cut[:-1] - cut[0] + row for cut, row in zip(cuts, self._rows, strict=False)]
        self.offsets = np.concatenate([*starts, self._rows[-1:]])

    def __getstate__(self) -> dict[str, Any]:
        made = {"_fingerprint": self.fingerprint, "_runs": [_narrow(*run) for run in self._runs]}
        return {**{name: v for name, v in self.__dict__.items() if name not in ("_rows", "_first", "offsets")}, **made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_runs(state["_runs"])

    def only(self, begin: int, end: int) -> Runs:
        """These chunks, and of the sources only what they are in."""
        chosen = []
        for (source, a, b), first in zip(self._runs, self._first, strict=False):
            low, high = max(a, a + begin - int(first)), min(b, a + end - int(first))
            if low < high:
                chosen.append((source, low, high))
        part = copy.copy(self)
        part._set_runs(chosen)
        return part

    @property
    def fingerprint(self) -> str:
        """It stays the same in other processes."""
        if self._fingerprint is None:
            found = crc32("".join(source.fingerprint for source, _, _ in self._runs).encode())
            self._fingerprint = f"joined-{len(self)}x{self.n_features}-{found:08x}"
        return self._fingerprint

    def chunk(self, i: int) -> Chunk:
        k, source, j = self._part(i)
        return self._moved(source.chunk(j), k)

    def labels(self, i: int) -> Chunk:
        k, source, j = self._part(i)
        return self._moved(source.labels(j), k)

    def nbytes(self, i: int) -> int:
        _, source, j = self._part(i)
        return source.nbytes(j)

    def release(self, i: int) -> None:
        _, source, j = self._part(i)
        source.release(j)

    def chunks(self, order: np.ndarray | None = None) -> Iterator[Chunk]:
        numbers = np.arange(self.offsets.size - 1) if order is None else np.asarray(order, np.int64)
        # Runs of chunks from one source are read by that source, which makes the next one ready meanwhile.
        parts = np.searchsorted(self._first, numbers, side="right") - 1
        for run in np.split(np.arange(numbers.size), np.flatnonzero(np.diff(parts)) + 1):
            if run.size:
                k = int(parts[run[0]])
                source, begin, _ = self._runs[k]
                for chunk in source.chunks(numbers[run] - self._first[k] + begin):
                    yield self._moved(chunk, k)

    def _part(self, i: int) -> tuple[int, Seekable, int]:
        if not 0 <= i < self.offsets.size - 1:
            raise IndexError(f"There is no chunk {i}: the selection has {self.offsets.size - 1}.")
        k = int(np.searchsorted(self._first, i, side="right")) - 1
        source, begin, _ = self._runs[k]
        return k, source, int(i - self._first[k]) + begin

    def _moved(self, chunk: Chunk, k: int) -> Chunk:
        source, begin, _ = self._runs[k]
        ids = chunk.ids + (self._rows[k] - source.offsets[begin])
        return Chunk(ids, _widened(chunk.x, self.n_features), chunk.y, chunk.group, chunk.weight)


def selection(source: Seekable, begin: int, end: int, whole: str | None = None) -> Runs:
    """Chunks ``begin`` … ``end`` − 1 of a source; ``whole`` is its fingerprint, where that is known already.

    >>> from maxmargin.data.memory import Arrays
    >>> part = selection(Arrays(np.eye(5), np.arange(5), chunk_rows=2), 1, 3)
    >>> part.first, [(chunk.ids.tolist(), chunk.y.tolist()) for chunk in part.chunks()]
    (2, [([0, 1], [2, 3]), ([2], [4])])
    """
    count = len(source.offsets) - 1
    if not 0 <= begin <= end <= count:
        raise ValueError(f"Chunks {begin} to {end} are not within the {count} that the source has.")
    return Runs([(source, begin, end)], f"{whole or source.fingerprint}-{begin}-{end}")


def split(source: Source, n: int) -> list[Source]:
    """n sources that together are ``source``, in its order, each of about as many bytes as the others.

    Parameters
    ----------
    source : Source
        What can be read in any order (arrays, memory maps, lists of pairs, shards) is cut between chunks, and some
        pieces are empty where there are fewer chunks than n. Text is cut between files, Parquet between row groups;
        these must be n or more.
    n : int

    Returns
    -------
    list of sources
        They are small as pickles: files travel by name, arrays in memory with the rows of the piece only.

    Examples
    --------
    >>> import numpy as np, maxmargin as mm
    >>> pieces = split(mm.data.open(np.eye(5), labels=range(5), chunk_rows=1), 2)
    >>> [[int(chunk.y[0]) for chunk in piece.chunks()] for piece in pieces]
    [[0, 1], [2, 3, 4]]
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, not {n}.")
    if hasattr(source, "offsets") and callable(getattr(source, "chunk", None)):
        seekable = cast(Seekable, source)
        whole = seekable.fingerprint  # once for all of them
        cuts = balanced([seekable.nbytes(i) for i in range(len(seekable.offsets) - 1)], n)
        return [selection(seekable, begin, end, whole) for begin, end in pairwise(cuts)]
    shares: Callable[[int], list[Source]] | None = getattr(source, "shares", None)
    if shares is None:
        raise DataError(
            f"{type(source).__name__} is read from its beginning to its end only, and cannot be cut into {n} pieces. "
            "Put pairs into a list, or anything with len() and [i]; write rows as shards with maxmargin.data.convert."
        )
    return shares(n)


def joined(sources: Sequence[Seekable], whole_groups: bool = True) -> Seekable:
    """Sources of one kind, one after another, as wide as the widest of them.

    >>> from maxmargin.data.memory import Arrays
    >>> both = joined([Arrays(np.ones((1, 2))), Arrays(np.zeros((2, 3)))])
    >>> [chunk.x.shape for chunk in both.chunks()]
    [(1, 3), (2, 3)]
    """
    if len(sources) == 1:
        return sources[0]
    origins = [getattr(source, "origin", {}) for source in sources]
    for k, origin in enumerate(origins):
        if origin != origins[0]:
            raise DataError(f"Parts 0 and {k} come from unlike data: {origins[0]} and {origin}.")
    held = [source.labels(0) for source in sources if source.offsets.size > 1]
    for k, chunk in enumerate(held):
        names = [n for n in ("y", "group", "weight") if (getattr(chunk, n) is None) != (getattr(held[0], n) is None)]
        if names:
            raise DataError(f"Parts 0 and {k} differ: only one of them has {' and '.join(names)}.")
    kinds = [type(s.chunk(0).x).__name__ for s in sources if s.offsets.size > 1]
    if len(set(kinds)) > 1:
        raise DataError(f"Some parts are sparse and some dense ({', '.join(kinds)}). Make them alike.")
    if whole_groups and held and held[0].group is not None:
        # A group that is in two parts would be taken for two.
        seen = GroupsInTurn("Number groups differently in each part, or let maxmargin.data.convert gather them.")
        for source in sources:
            for i in range(source.offsets.size - 1):
                seen.take(cast(np.ndarray, source.labels(i).group), apart=i == 0)
    return Runs([(source, 0, source.offsets.size - 1) for source in sources])


class GroupsInTurn:
    """Rows of a group must be next to each other: complains of a group that begins again; ``hint`` says what to do."""

    def __init__(self, hint: str) -> None:
        self._hint = hint
        self._seen: set[int] = set()
        self._last: int | None = None
        self._rows = 0

    def take(self, group: np.ndarray, apart: bool = False) -> None:
        """The groups of the next rows, which may go on with the last one unless they are kept ``apart``."""
        starts = group_starts(group)
        for k, name in zip(starts.tolist(), group[starts].tolist(), strict=True):
            if name in self._seen and (k or apart or name != self._last):
                row = self._rows + k
                raise DataError(
                    f"Rows of a group must be next to each other: group {name} begins again in row {row}. {self._hint}",
                    row=row,
                )
            self._seen.add(name)
            self._last = name
        self._rows += group.size


def group_starts(group: np.ndarray) -> np.ndarray:
    """Rows where a group begins."""
    return np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]])) if group.size else np.empty(0, np.int64)


def _narrow(source: Seekable, begin: int, end: int) -> Run:
    """The same run with nothing else to take along, as far as its source can do that."""
    only = getattr(source, "only", None)
    return (source, begin, end) if only is None else (only(begin, end), 0, end - begin)


def _widened(x: Any, width: int | None) -> Any:
    if x is None or width is None or x.shape[1] == width:
        return x
    if sp.issparse(x):
        return csr_view(x.indptr, x.indices, x.data, width)
    wide = np.zeros((x.shape[0], width), x.dtype)
    wide[:, : x.shape[1]] = x
    return wide
