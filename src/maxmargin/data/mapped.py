"""Files as memory: mapped, watched for changes, and given back page by page."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np

from .errors import DataError

_PAGE = mmap.ALLOCATIONGRANULARITY

Stamp = tuple[int, int, int]
"""What differs when a file was changed or replaced: its size, its time, its number."""


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
                self.stamp = stamp_of(os.fstat(file.fileno()))
                self.size = self.stamp[0]
                self._map = _map(file.fileno()) if self.size else None
        except OSError as error:
            raise unreadable(self.path, error) from error
        if stamp is not None and stamp != self.stamp:
            raise _changed(self.path)
        if self._map is not None:
            self._map.path, self._map.stamp = self.path, self.stamp
        self.bytes = np.frombuffer(self._map, np.uint8) if self._map is not None else np.empty(0, np.uint8)

    def __reduce__(self) -> Any:
        """Files travel to other processes by name, and must be the same there."""
        from .travelling import reopened

        return reopened, (os.path.abspath(self.path), self.stamp)

    @property
    def changed_at(self) -> int:
        """When the file was last changed, in nanoseconds."""
        return self.stamp[1]

    def check(self) -> None:
        """Complain if the file is not the one that was opened: reading a map of a cut file would end the process."""
        try:
            now = stamp_of(os.stat(self.path))
        except OSError as error:
            raise unreadable(self.path, error) from error
        if now != self.stamp:
            raise _changed(self.path)

    def view(self, dtype: Any, start: int, count: int) -> np.ndarray:
        """``count`` numbers from byte ``start`` on, without a copy; the caller has checked that they are there."""
        return np.frombuffer(self._map if self._map is not None else b"", dtype, count, start)

    def region(self, start: int, stop: int) -> MappedFile:
        """Where to ask for views of these bytes."""
        return self

    def array(self, dtype: Any, start: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
        """An array of any shape from byte ``start`` on, without a copy."""
        return np.ndarray(shape, dtype, self._map, start, strides)

    def warm(self, start: int, stop: int) -> None:
        """Have these bytes in memory: ask for all at once, then touch every page."""
        if self._map is not None and stop > start:
            _advise(self._map, "MADV_WILLNEED", start, stop)
            self.bytes[start:stop:_PAGE].max()

    def drop(self, start: int, stop: int) -> None:
        """These bytes need not stay in memory; who touches them again reads them again."""
        if self._map is not None and stop > start:
            _advise(self._map, "MADV_DONTNEED", start, stop)


class Pages:
    """Gives back the pages of an array that lies in a mapped file; of other arrays there are none to give back."""

    def __init__(self, array: Any) -> None:
        self._map: mmap.mmap | None = None
        base = array
        while isinstance(base, np.ndarray):
            if isinstance(base, np.memmap) and base.mode not in ("r", "r+"):
                return  # a private map of the caller's may hold changes, which would be lost
            base = base.base
        base = base.obj if isinstance(base, memoryview) else base
        if isinstance(base, mmap.mmap) and not base.closed:
            self._map = base
            self._begin = np.frombuffer(base, np.uint8).__array_interface__["data"][0]

    @property
    def mapped(self) -> bool:
        return self._map is not None

    def drop(self, part: np.ndarray) -> None:
        """This part of the array is not in use for now."""
        if self._map is not None and part.size and min(part.strides) >= 0:
            start = part.__array_interface__["data"][0] - self._begin
            last = sum((n - 1) * step for n, step in zip(part.shape, part.strides, strict=True))
            _advise(self._map, "MADV_DONTNEED", start, start + last + part.itemsize)


def map_npy(path: str | os.PathLike[str]) -> tuple[np.ndarray, MappedFile]:
    """The array of a ``.npy`` file without reading it, and the file that it lies in."""
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            try:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, fortran, dtype = read(file)
            except (ValueError, EOFError) as error:
                raise DataError(
                    f"{name} is not a whole .npy file: {error}. Write it anew with numpy.save.", path=name
                ) from None
            start = file.tell()
    except OSError as error:
        raise unreadable(name, error) from error
    if dtype.hasobject:
        raise DataError(
            f"{name} holds Python objects. Only numbers and text are read: loading must never run code.", path=name
        )
    mapped = MappedFile(name)
    if min(shape, default=0) < 0:
        raise DataError(f"{name} is not a whole .npy file: its header says {shape}.", path=name)
    count = int(np.prod(shape, dtype=object))
    needed = start + count * dtype.itemsize
    if mapped.size < needed:
        raise DataError(
            f"{name} is cut short: its header says {shape} of {dtype}, {needed} bytes; it has {mapped.size}.", path=name
        )
    return mapped.view(dtype, start, count).reshape(shape, order="F" if fortran else "C"), mapped


def _changed(path: str) -> DataError:
    return DataError(
        f"{path} changed since it was opened. Open it again, and let nothing write to it meanwhile.", path=path
    )


def unreadable(path: str | os.PathLike[str], error: OSError) -> DataError:
    """The same error for every file that cannot be opened."""
    name = os.fspath(path)
    if isinstance(error, FileNotFoundError):
        folder = Path(name).parent
        here = "" if folder.is_absolute() else f" Relative paths start at {os.getcwd()}."
        hint = here if folder.is_dir() else f" There is no folder {folder} either.{here}"
        return DataError(f"{name} does not exist.{hint}", path=name)
    if isinstance(error, PermissionError):
        return DataError(f"{name} may not be read by you: ask for read permission.", path=name)
    return DataError(f"{name} cannot be read: {error.strerror or error}.", path=name)


def stamp_of(stat: os.stat_result) -> Stamp:
    """The stamp of a file."""
    return stat.st_size, stat.st_mtime_ns, stat.st_ino


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
