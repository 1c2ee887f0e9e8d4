"""A source in pieces, one for each worker."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

from ..protocols import Seekable, Source
from .balance import balanced
from .errors import DataError
from .selection import Selection


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
        return _selections(cast(Seekable, source), n)
    shares: Any = getattr(source, "shares", None)
    if shares is None:
        raise DataError(
            f"{type(source).__name__} is read from its beginning to its end only, and cannot be cut into {n} pieces. "
            "Put pairs into a list, or anything with len() and [i]; write rows as shards with maxmargin.data.convert."
        )
    return list(shares(n))


def _selections(source: Seekable, n: int) -> list[Source]:
    whole = source.fingerprint  # once for all of them
    cuts = balanced([source.nbytes(i) for i in range(len(source.offsets) - 1)], n)
    return [Selection(source, begin, end, whole) for begin, end in pairwise(cuts)]
