"""Several sources as one: the files of a list, one after another."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, cast
from zlib import crc32

import numpy as np
import scipy.sparse as sp

from ..protocols import Chunk, Seekable
from .errors import DataError
from .memory import csr_view
from .selection import only


class Joined:
    """Seekable sources of one kind, one after another, as wide as the widest of them: a ``Seekable`` source.

    >>> from maxmargin.data.memory import Arrays
    >>> both = Joined([Arrays(np.ones((1, 2))), Arrays(np.zeros((2, 3)))])
    >>> [chunk.x.shape for chunk in both.chunks()]
    [(1, 3), (2, 3)]
    """

    def __init__(self, sources: Sequence[Seekable], whole_groups: bool = True) -> None:
        self._set_sources(list(sources))
        self.n_features = max(cast(int, source.n_features) for source in sources)
        self.skipped = [text for source in sources for text in getattr(source, "skipped", [])]
        origins = [getattr(source, "origin", {}) for source in sources]
        for k, origin in enumerate(origins):
            if origin != origins[0]:
                raise DataError(f"Parts 0 and {k} come from unlike data: {origins[0]} and {origin}.")
        self.origin = origins[0]
        held = [[c is None for c in _columns(s.labels(0))] for s in sources if s.offsets.size > 1]
        for k, columns in enumerate(held):
            if columns != held[0]:
                names = [n for n, a, b in zip(("y", "group", "weight"), columns, held[0], strict=True) if a != b]
                raise DataError(f"Parts 0 and {k} differ: only one of them has {' and '.join(names)}.")
        kinds = [type(s.chunk(0).x).__name__ for s in sources if s.offsets.size > 1]
        if len(set(kinds)) > 1:
            raise DataError(f"Some parts are sparse and some dense ({', '.join(kinds)}). Make them alike.")
        if whole_groups and held and not held[0][1]:
            self._check_groups()

    def _set_sources(self, sources: list[Seekable]) -> None:
        self._sources = sources
        self._rows = np.cumsum([0, *(len(source) for source in sources)])
        self._first = np.cumsum([0, *(source.offsets.size - 1 for source in sources)])
        cuts = [source.offsets[:-1] + start for source, start in zip(sources, self._rows, strict=False)]
        self.offsets = np.concatenate([*cuts, self._rows[-1:]])

    def only(self, begin: int, end: int) -> Joined:
        """These chunks, and of the sources only what they are in."""
        chosen = []
        for source, first in zip(self._sources, self._first, strict=False):
            a, b = max(begin - first, 0), min(end - first, source.offsets.size - 1)
            if a < b:
                chosen.append(only(source, int(a), int(b)))
        part = copy.copy(self)
        part._set_sources(chosen)
        return part

    def __len__(self) -> int:
        return int(self.offsets[-1])

    @property
    def fingerprint(self) -> str:
        found = crc32("".join(source.fingerprint for source in self._sources).encode())
        return f"joined-{len(self)}x{self.n_features}-{found:08x}"

    def chunk(self, i: int) -> Chunk:
        k, source, j = self._part(i)
        chunk = source.chunk(j)
        return self._moved(chunk, k, _widened(chunk.x, self.n_features))

    def labels(self, i: int) -> Chunk:
        k, source, j = self._part(i)
        return self._moved(source.labels(j), k, None)

    def nbytes(self, i: int) -> int:
        _, source, j = self._part(i)
        return source.nbytes(j)

    def release(self, i: int) -> None:
        _, source, j = self._part(i)
        source.release(j)

    def chunks(self, order: np.ndarray | None = None) -> Iterator[Chunk]:
        numbers = np.arange(self.offsets.size - 1) if order is None else np.asarray(order)
        # Runs of chunks from one source are read by that source, which makes the next one ready meanwhile.
        parts = np.searchsorted(self._first, numbers, side="right") - 1
        for run in np.split(np.arange(numbers.size), np.flatnonzero(np.diff(parts)) + 1):
            if run.size:
                k = int(parts[run[0]])
                for chunk in self._sources[k].chunks(numbers[run] - self._first[k]):
                    yield self._moved(chunk, k, _widened(chunk.x, self.n_features))

    def _check_groups(self) -> None:
        """A group that is in two parts would be taken for two."""
        seen: dict[int, int] = {}
        for k, source in enumerate(self._sources):
            for i in range(source.offsets.size - 1):
                for name in np.unique(source.labels(i).group).tolist():  # type: ignore[arg-type]
                    if seen.setdefault(name, k) != k:
                        raise DataError(
                            f"Group {name} is in part {seen[name]} and in part {k}; rows of a group must be next to "
                            "each other. Number groups differently in each, or let maxmargin.data.convert gather them."
                        )

    def _part(self, i: int) -> tuple[int, Seekable, int]:
        k = int(np.searchsorted(self._first, i, side="right")) - 1
        return k, self._sources[k], int(i - self._first[k])

    def _moved(self, chunk: Chunk, k: int, x: Any) -> Chunk:
        return Chunk(chunk.ids + self._rows[k], x, chunk.y, chunk.group, chunk.weight)


def _columns(chunk: Chunk) -> tuple[Any, Any, Any]:
    return chunk.y, chunk.group, chunk.weight


def _widened(x: Any, width: int) -> Any:
    if x.shape[1] == width:
        return x
    if sp.issparse(x):
        return csr_view(x.indptr, x.indices, x.data, width)
    wide = np.zeros((x.shape[0], width), x.dtype)
    wide[:, : x.shape[1]] = x
    return wide
