"""Runs of chunks out of a source, and where it is cut into them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..protocols import Chunk, Seekable, Source
from ..validation import is_seekable
from .chunked import origin_of
from .errors import DataError


class Selection:
    """Chunks ``begin`` … ``end`` − 1 of a source: itself a ``Seekable`` source, whose examples count from 0.

    To another process it takes only what is its own: rows of arrays in memory, names of files. ``fingerprint`` is that
    of the source, where it is known already.

    >>> from maxmargin.data.array_source import Arrays
    >>> part = Selection(Arrays(np.eye(5), np.arange(5), chunk_rows=2), 1, 3)
    >>> part.first, [(chunk.ids.tolist(), chunk.y.tolist()) for chunk in part.chunks()]
    (2, [([0, 1], [2, 3]), ([2], [4])])

    Attributes
    ----------
    first : int
        The position of its first example in the source.
    """

    def __init__(self, source: Seekable, begin: int, end: int, fingerprint: str | None = None) -> None:
        cuts = np.asarray(source.offsets[begin : end + 1])
        self._source, self._begin = source, begin
        self.first, self.offsets = int(cuts[0]), cuts - cuts[0]
        self._moved_by = -self.first  # from positions in ``_source`` to our own
        self.n_features, self.origin = source.n_features, origin_of(source)
        self.fingerprint = f"{fingerprint or source.fingerprint}-{begin}-{end}"

    def __getstate__(self) -> dict[str, Any]:
        """It takes along a source of its own chunks only, as far as its source can make one."""
        count = self.offsets.size - 1
        only = getattr(self._source, "only", None)
        if only is None:
            return self.__dict__
        return {**self.__dict__, "_source": only(self._begin, self._begin + count), "_begin": 0, "_moved_by": 0}

    def only(self, begin: int, end: int) -> Selection:
        """These chunks."""
        part = object.__new__(Selection)
        part.__dict__.update(self.__dict__)
        cuts = self.offsets[begin : end + 1]
        part._begin, part.offsets = self._begin + begin, cuts - cuts[0]
        part._moved_by = self._moved_by - int(cuts[0])
        return part

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def chunk(self, i: int) -> Chunk:
        return self._moved(self._source.chunk(self._place(i)))

    def labels(self, i: int) -> Chunk:
        return self._moved(self._source.labels(self._place(i)))

    def nbytes(self, i: int) -> int:
        return self._source.nbytes(self._place(i))

    def release(self, i: int) -> None:
        self._source.release(self._place(i))

    def chunks(self, order: np.ndarray | None = None) -> Iterator[Chunk]:
        numbers = np.arange(self.offsets.size - 1) if order is None else np.asarray(order, np.int64)
        for chunk in self._source.chunks(numbers + self._begin):
            yield self._moved(chunk)

    def _place(self, i: int) -> int:
        if not 0 <= i < self.offsets.size - 1:
            raise IndexError(f"There is no chunk {i}: the selection has {self.offsets.size - 1}.")
        return self._begin + i

    def _moved(self, chunk: Chunk) -> Chunk:
        return Chunk(chunk.ids + self._moved_by, chunk.x, chunk.y, chunk.group, chunk.weight)


def split(source: Source, n: int) -> list[Selection]:
    """n sources that together are ``source``, in its order, each of about as many bytes as the others.

    Parameters
    ----------
    source : Source
        What can be read in any order (arrays, memory maps, lists of pairs, shards): it is cut between chunks, and some
        pieces are empty where there are fewer chunks than n.
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
    if not is_seekable(source):
        raise DataError(
            f"{type(source).__name__} is read from its beginning to its end only, and cannot be cut into {n} pieces. "
            "Put pairs into a list, or anything with len() and [i]; write rows as shards with maxmargin.data.convert."
        )
    seekable: Seekable = source  # type: ignore[assignment]
    whole = seekable.fingerprint  # once for all of them
    cuts = balanced([seekable.nbytes(i) for i in range(len(seekable.offsets) - 1)], n)
    return [Selection(seekable, begin, end, whole) for begin, end in pairwise(cuts)]


def balanced(weights: Sequence[float], n: int) -> list[int]:
    """Where to cut things of these weights into n runs: n + 1 positions, from 0 to their number.

    Each cut is where the sum is nearest to its share of the total. No run is empty while another could be parted; so
    the heaviest is at most one thing heavier than the mean.

    >>> balanced([1, 1, 1, 1, 4], 2)
    [0, 4, 5]
    >>> balanced([9, 1], 3)
    [0, 1, 2, 2]
    """
    count = len(weights)
    if count <= n:
        return [min(k, count) for k in range(n + 1)]
    sums = np.concatenate([[0.0], np.cumsum(weights, dtype=np.float64)])
    cuts = [0]
    for k in range(1, n):
        share = sums[-1] * k / n
        at = int(np.searchsorted(sums, share))
        if at and share - sums[at - 1] <= sums[at] - share:
            at -= 1
        cuts.append(min(max(at, cuts[-1] + 1), count - (n - k)))
    return [*cuts, count]
