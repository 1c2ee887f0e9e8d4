"""Data in a short text that changes when they do: by it a checkpoint knows what its run was about."""

from __future__ import annotations

import contextlib
import zlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..constraints.oracle import count
from ..data.array_source import Arrays
from ..data.examples import PairList
from ..data.source_checks import chunks_of
from ..protocols import Source
from .inputs import Column, Matrix


def fingerprint_of(source: Source) -> str:
    """The fingerprint of a source; one that has none is known by its length and the beginning of it."""
    if hasattr(source, "fingerprint"):
        return str(source.fingerprint)
    with contextlib.closing(chunks_of(source)) as chunks:
        first = next(chunks, None)
    return f"source-{len(source)}-{'' if first is None else of_pairs(first.x, first.y)}"


class _Together:
    """Two lists as one list of pairs, made when asked for."""

    def __init__(self, X: Any, Y: Any) -> None:
        self.X, self.Y = X, Y

    def __len__(self) -> int:
        return count(self.X)

    def __getitem__(self, i: int) -> tuple[Any, Any]:
        return self.X[i], self.Y[i]


def of_pairs(X: Any, Y: Any, weight: Column = None) -> str:
    """Structured examples in a short text that changes when they do."""
    return f"{PairList(_Together(X, Y)).fingerprint}-{of_values(weight)}"


def of_values(values: Any) -> str:
    """Values of any kind in a short text; the bytes of objects are where they lie, and say nothing."""
    if values is None:
        return ""
    plain = isinstance(values, np.ndarray) and values.dtype != object
    return f"{zlib.crc32(np.ascontiguousarray(values).tobytes() if plain else repr(list(values)).encode()):08x}"


def of_arrays(X: Matrix, y: ArrayLike, weight: Column = None, group: Column = None) -> str:
    """Arrays in a short text that changes when they do."""
    return "-".join([Arrays(X, np.asarray(y)).fingerprint, of_values(weight), of_values(group)])
