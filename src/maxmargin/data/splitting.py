"""A source in pieces, one for each worker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np

from ..protocols import Seekable, Source
from .errors import DataError
from .runs import selection


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
    shares: Any = getattr(source, "shares", None)
    if shares is None:
        raise DataError(
            f"{type(source).__name__} is read from its beginning to its end only, and cannot be cut into {n} pieces. "
            "Put pairs into a list, or anything with len() and [i]; write rows as shards with maxmargin.data.convert."
        )
    return list(shares(n))


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


def unparted(names: Iterable[set[Any]]) -> list[tuple[int, int]]:
    """Runs of things as short as can be, such that no name is in two of them; ``names`` are those of each thing.

    >>> unparted([{"a"}, {"a", "b"}, {"c"}])
    [(0, 2), (2, 3)]
    """
    first: dict[Any, int] = {}
    begins: list[int] = []
    count = 0
    for here in names:
        begin = min((first.setdefault(name, count) for name in here), default=count)
        begins = [b for b in begins if b <= begin]  # runs that began later are one with the run of that name
        if begin == count:
            begins.append(count)
        count += 1
    return list(zip(begins, [*begins[1:], count], strict=True))
