"""Files, and arrays that lie in them, on their way to other processes: they travel by name and are opened again."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import DataError
from .mapped import Map, MappedFile, Stamp, stamp_of, unreadable
from .stores import Store


def same_here(path: str, stamp: Stamp, store: Store | None = None) -> Stamp:
    """The stamp of a file on this machine, which must have the size and the time that ``stamp`` had on another.

    Only these two: machines that mount the same files, or have copies of them, number them differently.
    """
    try:
        here = stamp_of(os.stat(path)) if store is None else store.stamp(path)
    except OSError as error:
        raise (unreadable(path, error) if store is None else store.unreadable(path, error)) from error
    if here[:2] != tuple(stamp[:2]):
        raise other_data(path)
    return here


def other_data(path: str) -> DataError:
    return DataError(
        f"{path} is not here what it was where the data was opened: size, time or checksums differ. Keep data where "
        "all machines can read it, or copy it to each of them with its times (cp -p, rsync -t).",
        path=path,
    )


@dataclass(frozen=True)
class Place:
    """Where in a file an array lies."""

    path: str
    stamp: Stamp
    start: int
    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def array(self) -> np.ndarray:
        """The array, mapped again."""
        file = MappedFile(self.path, same_here(self.path, self.stamp))
        return file.array(self.dtype, self.start, self.shape, self.strides)


def packed(array: np.ndarray | None) -> np.ndarray | Place | None:
    """An array as it travels: by its place if it is mapped from a file, else as it is.

    A map that may hold changes of its own (copy on write) is not the same as its file.
    """
    if array is None or not array.size:
        return array
    root, base = array, array.base
    while isinstance(base, np.ndarray):
        root, base = base, base.base
    base = base.obj if isinstance(base, memoryview) else base
    address = array.__array_interface__["data"][0]
    if isinstance(base, Map):
        start = address - np.frombuffer(base, np.uint8).__array_interface__["data"][0]
        return Place(os.path.abspath(base.path), base.stamp, start, array.dtype, array.shape, array.strides)
    if isinstance(base, mmap.mmap) and isinstance(root, np.memmap) and root.mode in ("r", "r+") and root.filename:
        path = os.path.abspath(root.filename)
        start = root.offset + address - root.__array_interface__["data"][0]
        try:
            return Place(path, stamp_of(os.stat(path)), start, array.dtype, array.shape, array.strides)
        except OSError:  # the file has no name any more
            return array
    return array


def unpacked(travelled: Any) -> Any:
    """What ``packed`` was given."""
    return travelled.array() if isinstance(travelled, Place) else travelled


def reopened(path: str, stamp: Stamp) -> MappedFile:
    """A mapped file where it has arrived."""
    return MappedFile(path, same_here(path, stamp))
