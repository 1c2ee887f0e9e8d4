"""Data in a short text, by which a checkpoint knows what it belongs to. Large arrays are sampled, not read."""

from __future__ import annotations

import contextlib
import zlib
from typing import Any

import numpy as np


def of_source(source: Any) -> str:
    """The fingerprint of a source; one that has none is known by its length and the beginning of it."""
    if hasattr(source, "fingerprint"):
        return str(source.fingerprint)
    with contextlib.closing(source.chunks()) as chunks:
        first = next(chunks, None)
    return f"source-{len(source)}-{'' if first is None else of_pairs(first.x, first.y)}"


class _Together:
    """Two lists as one list of pairs, made when asked for."""

    def __init__(self, X: Any, Y: Any) -> None:
        self.X, self.Y = X, Y

    def __len__(self) -> int:
        return self.X.shape[0] if hasattr(self.X, "shape") else len(self.X)

    def __getitem__(self, i: int) -> tuple[Any, Any]:
        return self.X[i], self.Y[i]


def of_pairs(X: Any, Y: Any, weight: Any = None) -> str:
    """Structured examples in a short text that changes when they do."""
    from ..data.examples import PairList

    return f"{PairList(_Together(X, Y)).fingerprint}-{_crc(weight)}"


def of_values(values: Any) -> str:
    """Values of any kind in a short text."""
    if values is None:
        return ""
    text = (
        values.tobytes() if isinstance(values, np.ndarray) and values.dtype != object else repr(list(values)).encode()
    )
    return f"{zlib.crc32(text):08x}"


def _crc(column: Any) -> str:
    if column is None:
        return ""
    values = np.asarray(column)
    values = values.astype(str) if values.dtype.kind == "O" else values  # the bytes of objects are where they lie
    return f"{zlib.crc32(np.ascontiguousarray(values).tobytes()):08x}"


def of_arrays(X: Any, y: Any, weight: Any = None, group: Any = None) -> str:
    """Arrays in a short text that changes when they do."""
    from ..data.memory import Arrays

    return "-".join([Arrays(X, np.asarray(y)).fingerprint, _crc(weight), _crc(group)])
