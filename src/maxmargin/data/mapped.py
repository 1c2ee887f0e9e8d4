"""Files as memory: mapped, watched for changes, given back page by page, and opened again in other processes."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import DataError
from .stores import DISK, Stamp, check_unchanged, same_here

_PAGE = mmap.ALLOCATIONGRANULARITY


class Map(mmap.mmap):
    """The memory of a mapped file, which knows its file: so does every array on it."""

    path: str
    stamp: Stamp


class MappedFile:
    """A file in memory, read when touched.

    ``bytes`` is an array over all of it. The mapping is private and writable, so that arrays on it are of the same
    type to compiled code as arrays in memory; nothing is ever written to the file. With a ``stamp`` the file must still
    be the one that had it.
    """

    def __init__(self, path: str | os.PathLike[str], stamp: Stamp | None = None) -> None:
        self.path = os.fspath(path)
        try:
            with open(self.path, "rb") as file:
                self.stamp = Stamp.of(os.fstat(file.fileno()))
                self._map = _map(file.fileno()) if self.stamp.size else None
        except OSError as error:
            raise DISK.unreadable(self.path, error) from error
        check_unchanged(self.path, self.stamp, stamp or self.stamp)
        if self._map is not None:
            self._map.path, self._map.stamp = self.path, self.stamp
        self.bytes = np.frombuffer(self._map, np.uint8) if self._map is not None else np.empty(0, np.uint8)

    def __reduce__(self) -> Any:
        """Files travel to other processes by name, and must be the same there."""
        return _reopened, (os.path.abspath(self.path), self.stamp)

    def check(self) -> None:
        """Complain if the file is not the one that was opened: reading a map of a cut file would end the process."""
        check_unchanged(self.path, DISK.stamp(self.path), self.stamp)

    def region(self, start: int, stop: int) -> np.ndarray:
        """These bytes, without a copy."""
        return self.bytes[start:stop]

    def warm(self, start: int, stop: int) -> None:
        """Have these bytes in memory: ask for all at once, then touch every page."""
        if self._map is not None and stop > start:
            _advise(self._map, "MADV_WILLNEED", start, stop)
            self.bytes[start:stop:_PAGE].max()

    def drop(self, start: int, stop: int) -> None:
        """These bytes need not stay in memory; who touches them again reads them again."""
        if self._map is not None and stop > start:
            _advise(self._map, "MADV_DONTNEED", start, stop)


def _reopened(path: str, stamp: Stamp) -> MappedFile:
    return MappedFile(path, same_here(path, stamp))


def is_mapped(array: np.ndarray) -> bool:
    """Whether an array lies in a mapped file, and its pages may be given back."""
    root, base = _memory_of(array)
    # A private map of the caller's may hold changes, which would be lost.
    theirs = isinstance(root, np.memmap) and root.mode not in ("r", "r+")
    return isinstance(base, mmap.mmap) and not base.closed and not theirs


def drop_pages(part: np.ndarray) -> None:
    """This part of an array is not in use for now; nothing happens if it lies in no file."""
    if part.size and min(part.strides) >= 0 and is_mapped(part):
        pages = _memory_of(part)[1]
        start = _address(part) - _address(np.frombuffer(pages, np.uint8))
        last = sum((n - 1) * step for n, step in zip(part.shape, part.strides, strict=True))
        _advise(pages, "MADV_DONTNEED", start, start + last + part.itemsize)


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
        return np.ndarray(self.shape, self.dtype, _reopened(self.path, self.stamp).bytes.data, self.start, self.strides)


def packed(array: np.ndarray | None) -> np.ndarray | Place | None:
    """An array as it travels: by its place if it is mapped from a file, else as it is.

    A map that may hold changes of its own (copy on write) is not the same as its file.
    """
    if array is None or not array.size:
        return array
    root, base = _memory_of(array)
    if isinstance(base, Map):
        path, stamp, start = base.path, base.stamp, _address(array) - _address(np.frombuffer(base, np.uint8))
    elif isinstance(base, mmap.mmap) and isinstance(root, np.memmap) and root.mode in ("r", "r+") and root.filename:
        path, start = root.filename, root.offset + _address(array) - _address(root)
        try:
            stamp = Stamp.of(os.stat(path))
        except OSError:  # the file has no name any more
            return array
    else:
        return array
    return Place(os.path.abspath(path), stamp, start, array.dtype, array.shape, array.strides)


def unpacked(travelled: object) -> Any:
    """What ``packed`` was given."""
    return travelled.array() if isinstance(travelled, Place) else travelled


def map_npy(path: str | os.PathLike[str]) -> tuple[np.ndarray, MappedFile]:
    """The array of a ``.npy`` file without reading it, and the file that it lies in."""
    mapped = MappedFile(path)
    try:
        found = np.lib.format.open_memmap(mapped.path, "r")  # which nobody may write to: kernels want other arrays
        order: Any = "C" if found.flags.c_contiguous else "F"
        array = np.ndarray(found.shape, found.dtype, mapped.bytes.data, found.offset, order=order)
    except Exception as error:  # NumPy has many ways to fail on damaged headers
        raise DataError(
            f"{mapped.path} is not a whole .npy file of numbers or text: {error}. Write it anew with numpy.save.",
            path=mapped.path,
        ) from None
    return array, mapped


def _memory_of(array: Any) -> tuple[Any, Any]:
    """The array that the given one is a view of, and what holds the memory of that one."""
    root, base = array, array.base
    while isinstance(base, np.ndarray | memoryview):
        if isinstance(base, np.ndarray):
            root, base = base, base.base
        else:
            base = base.obj
    return root, base


def _address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def _map(handle: int) -> Map:
    # Private and writable pages that are never written need no memory of their own: NORESERVE says so, else the
    # system refuses to map files larger than memory.
    if hasattr(mmap, "MAP_PRIVATE"):
        flags = mmap.MAP_PRIVATE | getattr(mmap, "MAP_NORESERVE", 0)
        try:
            return Map(handle, 0, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        except OSError:
            pass
    return Map(handle, 0, access=mmap.ACCESS_READ)


def _advise(pages: mmap.mmap, what: str, start: int, stop: int) -> None:
    advice = getattr(mmap, what, None)
    if advice is not None:
        begin = start // _PAGE * _PAGE
        pages.madvise(advice, begin, stop - begin)
