"""Structured examples as a source: pairs (x, y) of any kind, in a list or made on the way."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from itertools import islice
from typing import Any
from zlib import crc32

import numpy as np
import scipy.sparse as sp

from ..protocols import Chunk
from ..validation import shown
from .chunked import Chunked
from .errors import DataError
from .prefetch import prefetched

CHUNK_EXAMPLES = 256
_SAMPLE = 64


class Pairs:
    """Pairs (x, y) that are made anew on every pass: a source that is read from its beginning to its end.

    Parameters
    ----------
    make : callable or iterable
        A function without arguments that returns a fresh iterator, or an iterable that can be gone through again and
        again. A generator can be gone through only once: give the function that makes it.
    chunk_rows : int
        Examples per chunk.

    >>> def squares():
    ...     for i in range(3):
    ...         yield i, i * i
    >>> [(chunk.x, chunk.y) for chunk in Pairs(squares, chunk_rows=2).chunks()]
    [([0, 1], [0, 1]), ([2], [4])]
    """

    n_features = None

    def __init__(self, make: Callable[[], Iterable[Any]] | Iterable[Any], *, chunk_rows: int | None = None) -> None:
        self._rows = chunk_rows or CHUNK_EXAMPLES
        self._make: Any = make
        if not callable(make):
            if not isinstance(make, Iterable) or iter(make) is make:
                raise _once(make)
            self._make = make.__iter__
        self._length: int | None = None

    def __len__(self) -> int:
        """The number of examples; found by one pass if none was complete yet."""
        if self._length is None:
            for _ in self._pieces():
                pass
        return self._length or 0

    def chunks(self, order: np.ndarray | None = None) -> Iterator[Chunk]:
        if order is not None:
            raise DataError("Pairs that are made on the way come in one order only. Put them into a list to shuffle.")
        return prefetched(self._pieces())

    def _pieces(self) -> Iterator[Chunk]:
        fresh = self._make()
        if not isinstance(fresh, Iterable):
            raise DataError(
                f"The function that was given returns {shown(fresh)}, an iterator of pairs (x, y) is needed. Let it "
                "yield them."
            )
        again = iter(fresh)
        done = 0
        while part := list(islice(again, self._rows)):
            yield _chunk(part, done)
            done += len(part)
        if self._length is not None and self._length != done:
            raise DataError(
                f"The pairs were {self._length} on an earlier pass and {done} on this one. Every pass must give all "
                "of them: a function must return a fresh iterator each time it is called."
            )
        self._length = done


class PairList(Chunked):
    """Pairs (x, y) by number, from anything with ``len`` and ``[i]``: a ``Seekable`` source.

    >>> source = PairList([("a", 0), ("b", 1), ("c", 0)], chunk_rows=2)
    >>> source.offsets, source.chunk(1).x
    (array([0, 2, 3]), ['c'])
    """

    n_features = None

    def __init__(self, pairs: Any, *, chunk_rows: int | None = None) -> None:
        self._pairs, self._first = pairs, 0
        n = len(pairs)
        self.offsets = np.append(np.arange(0, n, chunk_rows or CHUNK_EXAMPLES), n)

    def only(self, begin: int, end: int) -> PairList:
        """These chunks: a part of a list; of anything else, which may read its pairs only when asked for, a view."""
        a, b = int(self.offsets[begin]), int(self.offsets[end])
        part = copy.copy(self)
        if isinstance(self._pairs, list | tuple | np.ndarray):
            part._pairs = self._pairs[self._first + a : self._first + b]
            part._first = 0
        else:
            part._first = self._first + a
        part.offsets = self.offsets[begin : end + 1] - a
        return part

    @property
    def fingerprint(self) -> str:
        n = len(self)
        found = crc32(str(n).encode())
        for i in np.unique(np.linspace(0, max(0, n - 1), min(n, _SAMPLE)).astype(int)):
            found = crc32(_bytes_of(self._pairs[self._first + int(i)]), found)
        return f"pairs-{n}-{found:08x}"

    def chunk(self, i: int) -> Chunk:
        a, b = int(self.offsets[i]), int(self.offsets[i + 1])
        return _chunk([self._pairs[self._first + k] for k in range(a, b)], a)

    def labels(self, i: int) -> Chunk:
        whole = self.chunk(i)
        return Chunk(whole.ids, None, whole.y)

    def nbytes(self, i: int) -> int:
        """A guess from the first examples of the chunk: objects do not say how large they are."""
        a, b = int(self.offsets[i]), int(self.offsets[i + 1])
        looked = min(b - a, 8)
        return int(sum(_size(self._pairs[self._first + a + k]) for k in range(looked)) / max(1, looked) * (b - a))


def pairs_of(given: Any, chunk_rows: int | None = None) -> Pairs | PairList:
    """The fitting kind of source for pairs."""
    if isinstance(given, dict | set | frozenset | bytes):
        raise _once(given)
    if not callable(given) and hasattr(given, "__getitem__") and isinstance(given, Sized):
        return PairList(given, chunk_rows=chunk_rows)
    return Pairs(given, chunk_rows=chunk_rows)


def _chunk(part: list[Any], first: int) -> Chunk:
    xs, ys = [], []
    for k, pair in enumerate(part):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise DataError(
                f"Example {first + k} is {type(pair).__name__}, a pair (x, y) is needed. Matrices go in as arrays: "
                "open(X, labels=y).",
                row=first + k,
            )
        xs.append(pair[0])
        ys.append(pair[1])
    return Chunk(np.arange(first, first + len(part)), xs, ys)


def _once(given: object) -> DataError:
    if isinstance(given, Iterator):
        return DataError(
            f"A {type(given).__name__} can be gone through only once, training needs many passes. Give the function "
            "that makes it, open(make_pairs) instead of open(make_pairs()), or put the pairs into a list."
        )
    return DataError(
        f"{type(given).__name__} is nothing that can be opened. Needed are paths, a matrix, or pairs (x, y): a list, "
        "an iterable that can be gone through again, or a function that returns a fresh one."
    )


def _bytes_of(thing: Any) -> bytes:
    """Bytes that are the same in every process for things that are equal, as far as their type allows it."""
    if isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
        return repr((thing.shape, str(thing.dtype))).encode() + np.ascontiguousarray(thing).tobytes()
    if sp.issparse(thing):
        table = thing.tocsr()
        return b"".join(_bytes_of(part) for part in (table.indptr, table.indices, table.data))
    if isinstance(thing, dict):
        return b"{" + b",".join(_bytes_of(key) + b":" + _bytes_of(value) for key, value in thing.items()) + b"}"
    if isinstance(thing, list | tuple | np.ndarray):
        return b"[" + b",".join(_bytes_of(item) for item in thing) + b"]"
    if thing is None or isinstance(thing, str | bytes | int | float | complex | np.generic):
        return repr(thing).encode()
    return type(thing).__qualname__.encode()


def _size(thing: Any) -> int:
    if sp.issparse(thing):
        table = thing.tocsr()
        return int(table.data.nbytes + table.indices.nbytes + table.indptr.nbytes)
    if isinstance(thing, np.ndarray):
        return int(thing.nbytes)
    if isinstance(thing, list | tuple):
        return sys.getsizeof(thing) + sum(_size(item) for item in thing)
    return sys.getsizeof(thing)
