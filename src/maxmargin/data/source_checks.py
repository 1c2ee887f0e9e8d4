"""Sources that users wrote: where one contradicts itself, an error says so before its numbers reach compiled code."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from itertools import count
from typing import Any

import numpy as np

from ..protocols import Chunk, Source
from ..validation import check_object, is_seekable, lacking, shown
from .errors import DataError

_SOURCE = ("n_features", "__len__", "chunks")
_SEEKABLE = ("chunk", "offsets", "fingerprint", "labels", "nbytes", "release")


def check_given(source: Source) -> None:
    """A source has all that its protocol asks for; where its chunks begin agrees with its length."""
    check_object("source", source)
    of_any_order = is_seekable(source)
    missing = lacking(source, *_SOURCE, *_SEEKABLE * of_any_order)
    if missing:
        kind = "Seekable, because it has chunk and offsets" if of_any_order else "Source"
        raise DataError(f"The source lacks {', '.join(missing)}: see maxmargin.protocols.{kind}.")
    if of_any_order:
        given: Any = source
        offsets = np.asarray(given.offsets)
        whole = offsets.ndim == 1 and offsets.size > 0 and offsets.dtype.kind in "iu"
        if not (whole and offsets[0] == 0 and (np.diff(offsets) >= 0).all() and offsets[-1] == len(source)):
            raise DataError(
                f"offsets must be whole numbers that begin at 0, never fall, and end at len(source) = {len(source)}; "
                f"got {shown(given.offsets)}. Chunk i holds the examples offsets[i] … offsets[i + 1] − 1."
            )


def chunks_of(source: Source, order: np.ndarray | None = None) -> Generator[Chunk, None, None]:
    """The chunks of a source, in this order where one is given, each checked as it is read."""
    chunks = source.chunks() if order is None else source.chunks(order)
    if not isinstance(chunks, Iterable):
        raise DataError(f"chunks() must be a generator, or return an iterator, of Chunk; it returned {shown(chunks)}.")
    numbers = count() if order is None else iter(order.tolist())
    first, n_read = 0, 0
    for chunk in chunks:
        check_chunk(source, next(numbers, -1), chunk, first if order is None else None)
        first, n_read = first + len(chunk), n_read + 1
        yield chunk
        del chunk  # its memory may be given back when the next one is asked for
    if order is not None and n_read < len(order):
        raise DataError(f"chunks(order) gave {n_read} chunks, it was asked for {len(order)}.")


def check_chunk(source: Source, i: int, chunk: Chunk, first: int | None = None) -> None:
    """A chunk begins where the last one ended, or where ``offsets`` say; all that it holds is of one length."""
    if not isinstance(chunk, Chunk):
        raise DataError(f"chunks must yield maxmargin.protocols.Chunk, chunk {i} is {shown(chunk)}.")
    n, offsets = np.size(chunk.ids), getattr(source, "offsets", None)
    if offsets is not None:
        if not (0 <= i < len(offsets) - 1 and n == offsets[i + 1] - offsets[i]):
            raise DataError(f"Chunk {i} has {n} examples, which is not what offsets say: {shown(offsets)}.")
        first = int(offsets[i])
    if n and first is not None and not (chunk.ids[0] == first and chunk.ids[-1] == first + n - 1):
        raise DataError(
            f"ids of chunk {i} must be the positions {first} … {first + n - 1} of its examples in the source, got "
            f"{shown(chunk.ids)}. chunks() begins anew each time, at example 0."
        )
    for name, values in (("inputs", chunk.x), ("labels", chunk.y), ("groups", chunk.group), ("weights", chunk.weight)):
        if values is not None and (size := values.shape[0] if hasattr(values, "shape") else len(values)) != n:
            raise DataError(f"Chunk {i} has {n} ids and {size} {name}.")
    if offsets is not None and chunk.x is not None and source.n_features is not None:
        check_width(source, i, chunk)


def check_width(source: Source, i: int, chunk: Chunk) -> None:
    """The inputs of a chunk are a matrix of as many columns as the source says."""
    shape = getattr(chunk.x, "shape", None)
    if shape is None or len(shape) != 2 or shape[1] != source.n_features:
        found = f"is {shown(chunk.x)}" if shape is None or len(shape) != 2 else f"has {shape[1]} columns"
        raise DataError(
            f"n_features is {source.n_features}, chunk {i} {found}. Inputs of such a source are a matrix of that "
            "width, dense or CSR; n_features is None where they are no rows of a matrix."
        )
