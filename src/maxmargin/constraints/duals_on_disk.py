"""Dual variables that are too many for memory: in a file, of which only the part in use is in memory.

All functions take arrays in memory just as well. They go over the variables in pieces, and hand the pages of a piece
back to the operating system before they touch the next.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from collections.abc import Iterator

import numpy as np

_PIECE = 2**15  # examples


def zeros_on_disk(shape: tuple[int, ...], folder: str | None) -> np.ndarray:
    """Zeros in a file without a name, which is gone when nobody uses them any more."""
    size = 8 * math.prod(shape)
    file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)  # else a full disk would be noticed too late, by a crash
        else:
            file.truncate(size)
    except OSError as error:
        file.close()
        where = folder or tempfile.gettempdir()
        raise OSError(
            error.errno,
            f"No room in {where} for {size} bytes of dual variables ({error.strerror}). Make room, allow more "
            "memory, or name another folder by checkpoint= or the environment variable TMPDIR",
        ) from None
    return np.memmap(file, np.float64, "r+", shape=shape)


def forget(alpha: np.ndarray) -> None:
    """None of the variables is in use: they need not stay in memory. The operating system keeps what was written."""
    if isinstance(alpha, np.memmap) and hasattr(mmap, "MADV_DONTNEED"):
        alpha._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


def gather(alpha: np.ndarray, place: np.ndarray) -> np.ndarray:
    """The variables at these places, in memory."""
    out = np.empty((place.size, *alpha.shape[1:]))
    for piece in _neighbours(alpha, place):
        out[piece] = alpha[place[piece]]
    return out


def scatter(alpha: np.ndarray, place: np.ndarray, values: np.ndarray) -> None:
    """Write values to these places."""
    for piece in _neighbours(alpha, place):
        alpha[place[piece]] = values[piece]


def _neighbours(alpha: np.ndarray, place: np.ndarray) -> Iterator[np.ndarray | slice]:
    """Which places to visit together: near each other in a file, so that few of its pages are in memory at a time."""
    if not isinstance(alpha, np.memmap):
        yield slice(None)
        return
    order = np.argsort(place, kind="stable")  # it is made of sorted runs, which a merging sort makes use of
    for start in range(0, order.size, _PIECE):
        yield order[start : start + _PIECE]
        forget(alpha)


def copy(source: np.ndarray, target: np.ndarray) -> None:
    """Write all variables of one array into another."""
    for start in range(0, source.shape[0], _PIECE):
        piece = slice(start, start + _PIECE)
        target[piece] = source[piece]
        forget(source)
        forget(target)


def stacked(parts: list[np.ndarray]) -> np.ndarray:
    """Arrays of one shape as one array, on disk if they are."""
    if not isinstance(parts[0], np.memmap):
        return np.stack(parts)
    whole = zeros_on_disk((len(parts), *parts[0].shape), None)
    for part, place in zip(parts, whole, strict=True):
        copy(part, place)
    return whole
