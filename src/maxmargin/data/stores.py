"""Where files are: the local disk, or a file system of pyarrow or fsspec. Both are asked the same questions."""

from __future__ import annotations

import glob
import os
import re
import stat
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from .errors import DataError

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


class Stamp(NamedTuple):
    """What tells, without reading it, that a file is still the same. Only the local disk has numbers of files."""

    size: int
    changed: int
    number: int

    @classmethod
    def of(cls, state: os.stat_result) -> Stamp:
        return cls(state.st_size, state.st_mtime_ns, state.st_ino)


class Disk:
    """The local disk, whose files can be mapped. What cannot be opened is a ``DataError``."""

    local = True
    name = "local"

    def open(self, path: str) -> Any:
        """A file that can be read anywhere."""
        try:
            return self._open(path)
        except OSError as error:
            raise self.unreadable(path, error) from error

    def read(self, path: str, count: int = -1) -> bytes:
        """The bytes of a file, or the first of them."""
        with self.open(path) as file:
            try:
                return bytes(file.read() if count < 0 else file.read(count))
            except OSError as error:
                raise self.unreadable(path, error) from error

    def found(self, name: str) -> list[str]:
        """The files and folders that a path or pattern means, in the order of their names; ``**`` is any folders."""
        if self.exists(name):
            return [name]
        if not glob.has_magic(name):
            raise self.unreadable(name, FileNotFoundError())
        found = sorted(self._matching(name))
        if not found:
            raise DataError(self._no_match(name), path=name)
        return found

    def absolute(self, path: str) -> str:
        """The path as other processes find it."""
        return os.path.abspath(path)

    def stamp(self, path: str) -> Stamp:
        try:
            state = os.stat(path)
            if not os.access(path, os.R_OK):
                raise PermissionError(path)
        except OSError as error:
            raise self.unreadable(path, error) from error
        if not stat.S_ISREG(state.st_mode):
            kind = "a folder" if stat.S_ISDIR(state.st_mode) else "no regular file"
            raise DataError(
                f"{path} is {kind}. Name files on disk: data is read more than once, so pipes will not do.", path=path
            )
        return Stamp.of(state)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)

    def unreadable(self, path: str | os.PathLike[str], error: OSError) -> DataError:
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

    def _open(self, path: str) -> Any:
        return open(path, "rb", buffering=0)

    def _matching(self, name: str) -> list[str]:
        return glob.glob(name, recursive=True)

    def _no_match(self, name: str) -> str:
        return f"No file fits the pattern {name!r}. Relative paths start at {os.getcwd()}."


DISK = Disk()


class Store(Disk):
    """A file system of pyarrow, or of fsspec. It travels to other processes with its settings.

    Paths in it are written with slashes, and without a scheme; only their last part may be a pattern.
    """

    local = False

    def __init__(self, filesystem: Any) -> None:
        self.filesystem = filesystem
        self.name = str(filesystem.type_name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Store) and bool(self.filesystem.equals(other.filesystem))

    def __hash__(self) -> int:
        return hash(self.name)

    def absolute(self, path: str) -> str:
        return path

    def stamp(self, path: str) -> Stamp:
        info = self._info(path)
        if not info.is_file:
            raise self.unreadable(path, FileNotFoundError(path))
        return Stamp(info.size, info.mtime_ns or 0, 0)

    def exists(self, path: str) -> bool:
        return bool(self._info(path).type.name != "NotFound")

    def is_folder(self, path: str) -> bool:
        return bool(self._info(path).type.name == "Directory")

    def unreadable(self, path: str | os.PathLike[str], error: OSError) -> DataError:
        name = os.fspath(path)
        if isinstance(error, FileNotFoundError):
            return DataError(f"{name} does not exist in this file system ({self.name}).", path=name)
        return DataError(f"{name} cannot be read ({self.name}): {_first_line(error)}.", path=name)

    def _open(self, path: str) -> Any:
        return self.filesystem.open_input_file(path)

    def _matching(self, name: str) -> list[str]:
        from pyarrow.fs import FileSelector

        folder, _, pattern = name.rpartition("/")
        held = self.filesystem.get_file_info(FileSelector(folder, allow_not_found=True))
        return [info.path for info in held if fnmatchcase(info.base_name, pattern)]

    def _no_match(self, name: str) -> str:
        return f"No file in this file system ({self.name}) fits the pattern {name!r}."

    def _info(self, path: str) -> Any:
        try:
            return self.filesystem.get_file_info(path)
        except OSError as error:
            raise self.unreadable(path, error) from error


class StoredFile:
    """A file of a store, read part by part: the same as ``MappedFile`` to who reads shards, but nothing is mapped."""

    def __init__(self, store: Store, path: str, stamp: Stamp) -> None:
        self.path = path
        check_unchanged(path, store.stamp(path), stamp)
        self._file = store.open(path)

    def check(self) -> None:
        """Nothing: a file that is cut while it is open shows when it is read, and checksums show the rest."""

    def warm(self, start: int, stop: int) -> None:
        """Nothing: what is read is in memory."""

    def drop(self, start: int, stop: int) -> None:
        """Nothing: memory goes with the arrays that were read."""

    def region(self, start: int, stop: int) -> np.ndarray:
        """These bytes, read at once; aligned and writable, as kernels want arrays."""
        try:
            found = self._file.read_at(stop - start, start)
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {_first_line(error)}", path=self.path) from error
        if len(found) != stop - start:
            raise DataError(f"{self.path} is shorter than it was when it was opened. Open it again.", path=self.path)
        return np.frombuffer(found, np.uint8).copy()


def check_unchanged(path: str, now: Stamp, stamp: Stamp) -> None:
    """Complain of a file that is not the one that ``stamp`` was taken of."""
    if now != stamp:
        raise DataError(
            f"{path} changed since it was opened: it had {stamp.size} bytes and has {now.size} now"
            f"{'' if now.size != stamp.size else ', but was written again'}. Open the data anew, and let nothing write "
            "to it meanwhile.",
            path=path,
        )


def same_here(path: str, stamp: Stamp, store: Disk = DISK) -> Stamp:
    """The stamp of a file on this machine, which must have the size and the time that ``stamp`` had on another.

    Only these two: machines that mount the same files, or have copies of them, number them differently.
    """
    here = store.stamp(path)
    if here[:2] != stamp[:2]:
        raise other_data(path)
    return here


def other_data(path: str) -> DataError:
    return DataError(
        f"{path} is not here what it was where the data was opened: size, time or checksums differ. Keep data where "
        "all machines can read it, or copy it to each of them with its times (cp -p, rsync -t).",
        path=path,
    )


def located(names: list[str], filesystem: object = None) -> tuple[Disk, list[str]]:
    """Where paths are, and the paths there, which may be patterns: in a file system that is given, or as URIs say.

    >>> located(["file:///data/part-*.parquet"])[1]
    ['/data/part-*.parquet']
    """
    uris = [name for name in names if _URI.match(name)]
    if filesystem is not None:
        if uris:
            raise DataError(
                f"{uris[0]} names a file system already. Give filesystem= with paths in it, or only the URI."
            )
        return _store_of(filesystem), names
    if not uris:
        return DISK, names
    places = [_place(name) for name in names]
    for name, (store, _) in zip(names, places, strict=True):
        if store != places[0][0]:
            raise DataError(f"{names[0]} and {name} are in different file systems. Copy them to one.", path=name)
    return places[0][0], [path for _, path in places]


def _store_of(given: object) -> Disk:
    """A file system as users give it."""
    import pyarrow.fs as fs

    if isinstance(given, Disk):
        return given
    if not isinstance(given, fs.FileSystem):
        if not (hasattr(given, "protocol") and callable(getattr(given, "open", None))):
            raise DataError(
                f"filesystem= is {type(given).__name__}; needed is a file system of pyarrow (pyarrow.fs) or of fsspec."
            )
        given = fs.PyFileSystem(fs.FSSpecHandler(given))
    return DISK if isinstance(given, fs.LocalFileSystem) else Store(given)


def _place(name: str) -> tuple[Disk, str]:
    """The file system that a path or URI names, and the path in it."""
    import pyarrow as pa
    from pyarrow.fs import FileSystem

    if not _URI.match(name):
        return DISK, name
    place, mark, settings = name.partition("?")
    folder = place.rpartition("/")[0] if glob.has_magic(place) else place
    try:
        filesystem, path = FileSystem.from_uri(folder + mark + settings)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(
            f"{name} is in no file system that can be reached: {_first_line(error)}. Known are file, s3, gs and hdfs; "
            "give others, or credentials, with filesystem= and the path in it.",
            path=name,
        ) from None
    return _store_of(filesystem), path + unquote(place[len(folder) :])


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0].rstrip(".")
