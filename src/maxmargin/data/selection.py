"""Some chunks of a source, as a source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from ..protocols import Chunk, Seekable


class Selection:
    """Chunks ``begin`` … ``end`` − 1 of a seekable source: itself a ``Seekable`` source, whose examples count from 0.

    To another process it takes only what is its own: rows of arrays in memory, names of files.

    Parameters
    ----------
    source : Seekable
    begin, end : int
        Numbers of chunks.
    fingerprint : str, optional
        That of the source, where it is known already.

    Attributes
    ----------
    first : int
        The position of its first example in the source.
    origin, skipped
        Those of the source, if it has them.

    >>> from maxmargin.data.memory import Arrays
    >>> part = Selection(Arrays(np.eye(5), np.arange(5), chunk_rows=2), 1, 3)
    >>> part.first, [(chunk.ids.tolist(), chunk.y.tolist()) for chunk in part.chunks()]
    (2, [([0, 1], [2, 3]), ([2], [4])])
    """

    def __init__(self, source: Seekable, begin: int, end: int, fingerprint: str | None = None) -> None:
        count = len(source.offsets) - 1
        if not 0 <= begin <= end <= count:
            raise ValueError(f"Chunks {begin} to {end} are not within the {count} that the source has.")
        self.first = int(source.offsets[begin])
        self.n_features = source.n_features
        for name in ("origin", "skipped", "n_skipped"):
            if hasattr(source, name):
                setattr(self, name, getattr(source, name))
        self._whole = fingerprint
        self._chosen = (begin, end)
        self._set_source(source, begin, end)

    def _set_source(self, source: Seekable, begin: int, end: int) -> None:
        self._source, self._begin, self._end = source, begin, end
        self._moved_by = int(source.offsets[begin])
        self.offsets = np.asarray(source.offsets[begin : end + 1]) - self._moved_by

    def __getstate__(self) -> dict[str, Any]:
        narrow = getattr(self._source, "only", None)
        held = (self._source, self._begin, self._end)
        if narrow is not None:
            held = (narrow(self._begin, self._end), 0, self._end - self._begin)
        self._whole = self._whole or self._source.fingerprint
        kept = {name: v for name, v in self.__dict__.items() if name not in ("_source", "_begin", "_end", "offsets")}
        return {**kept, "held": held}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: value for name, value in state.items() if name != "held"})
        self._set_source(*state["held"])

    def only(self, begin: int, end: int) -> Seekable:
        """These chunks, straight from the source."""
        return only(self._source, self._begin + begin, self._begin + end)

    def __len__(self) -> int:
        return int(self.offsets[-1])

    @property
    def fingerprint(self) -> str:
        """That of the source, and which chunks these are; it stays the same in other processes."""
        self._whole = self._whole or self._source.fingerprint
        return f"{self._whole}-{self._chosen[0]}-{self._chosen[1]}"

    def chunk(self, i: int) -> Chunk:
        return self._moved(self._source.chunk(self._number(i)))

    def labels(self, i: int) -> Chunk:
        return self._moved(self._source.labels(self._number(i)))

    def nbytes(self, i: int) -> int:
        return self._source.nbytes(self._number(i))

    def release(self, i: int) -> None:
        self._source.release(self._number(i))

    def chunks(self, order: np.ndarray | None = None) -> Iterator[Chunk]:
        """All chunks, or those of ``order``; the source makes the next one ready meanwhile, as it always does."""
        own = np.arange(self._begin, self._end)
        yield from map(self._moved, self._source.chunks(own if order is None else own[np.asarray(order, np.int64)]))

    def _number(self, i: int) -> int:
        if not 0 <= i < self._end - self._begin:
            raise IndexError(f"There is no chunk {i}: the selection has {self._end - self._begin}.")
        return self._begin + int(i)

    def _moved(self, chunk: Chunk) -> Chunk:
        return Chunk(chunk.ids - self._moved_by, chunk.x, chunk.y, chunk.group, chunk.weight)


def only(source: Seekable, begin: int, end: int) -> Seekable:
    """Chunks ``begin`` … ``end`` − 1 of a source with nothing else to take along, as far as the source can do that."""
    narrow = getattr(source, "only", None)
    return cast(Seekable, narrow(begin, end) if narrow is not None else Selection(source, begin, end))
