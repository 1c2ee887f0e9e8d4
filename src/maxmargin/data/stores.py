"""File systems other than the local disk: what is asked of pyarrow's."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import numpy as np

from .errors import DataError
from .mapped import Stamp

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_MAGIC = re.compile(r"[*\[]")


def is_uri(name: str) -> bool:
    """Whether this is the name of something in a file system that it names, too."""
    return _URI.match(name) is not None


class Store:
    """A file system of pyarrow, or of fsspec. It travels to other processes with its settings.

    Paths in it are written with slashes, and without a scheme.
    """

    def __init__(self, filesystem: Any) -> None:
        self.filesystem = filesystem

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Store) and bool(self.filesystem.equals(other.filesystem))

    def __hash__(self) -> int:
        return hash(self.filesystem.type_name)

    @property
    def name(self) -> str:
        return str(self.filesystem.type_name)

    def open(self, path: str) -> Any:
        """A file that can be read anywhere."""
        return self.filesystem.open_input_file(path)

    def read(self, path: str, count: int | None = None) -> bytes:
        """The bytes of a file, or the first of them."""
        with self.open(path) as file:
            return bytes(file.read(count))

    def stamp(self, path: str) -> Stamp:
        """Size and time; other file systems have no numbers of files."""
        info = self._info(path)
        if not info.is_file:
            raise FileNotFoundError(path)
        return info.size, info.mtime_ns or 0, 0

    def is_folder(self, path: str) -> bool:
        return self._info(path).type.name == "Directory"

    def found(self, name: str) -> list[str]:
        """The files and folders that a path or pattern means, in the order of their names; ``**`` is any folders."""
        if self._info(name).type.name != "NotFound":
            return [name]
        if not _MAGIC.search(name):
            raise self.unreadable(name, FileNotFoundError())
        from pyarrow.fs import FileSelector

        folder = name[: _MAGIC.search(name).start()].rpartition("/")[0]  # type: ignore[union-attr]
        deep = "/" in name[len(folder) + 1 :]
        held = self.filesystem.get_file_info(FileSelector(folder, allow_not_found=True, recursive=deep))
        wanted = _pattern(name.lstrip("/"))  # some file systems begin paths with a slash whatever they are asked for
        found = sorted(info.path for info in held if wanted.fullmatch(info.path.lstrip("/")))
        if not found:
            raise DataError(f"No file in this file system ({self.name}) fits the pattern {name!r}.", path=name)
        return found

    def unreadable(self, path: str, error: OSError) -> DataError:
        """The same error for every file that cannot be opened."""
        if isinstance(error, FileNotFoundError):
            return DataError(f"{path} does not exist in this file system ({self.name}).", path=path)
        return DataError(f"{path} cannot be read ({self.name}): {_first_line(error)}.", path=path)

    def _info(self, path: str) -> Any:
        try:
            return self.filesystem.get_file_info(path)
        except OSError as error:
            raise self.unreadable(path, error) from error


class StoredFile:
    """A file of a store, read part by part: the same as ``MappedFile`` to who reads shards, but nothing is mapped."""

    def __init__(self, store: Store, path: str, stamp: Stamp) -> None:
        self.path = path
        try:
            if store.stamp(path) != stamp:
                raise DataError(f"{path} changed since it was opened. Open it again.", path=path)
            self._file = store.open(path)
        except OSError as error:
            raise store.unreadable(path, error) from error

    def check(self) -> None:
        """Nothing: a file that is cut while it is open shows when it is read, and checksums show the rest."""

    def warm(self, start: int, stop: int) -> None:
        """Nothing: what is read is in memory."""

    def drop(self, start: int, stop: int) -> None:
        """Nothing: memory goes with the arrays that were read."""

    def region(self, start: int, stop: int) -> Region:
        """These bytes, read at once."""
        try:
            found = self._file.read_at(stop - start, start)
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {_first_line(error)}", path=self.path) from error
        if len(found) != stop - start:
            raise DataError(f"{self.path} is shorter than it was when it was opened. Open it again.", path=self.path)
        return Region(found, start)


class Region:
    """Bytes of a file from ``start`` on, in memory."""

    def __init__(self, found: bytes, start: int) -> None:
        self._bytes = np.frombuffer(found, np.uint8).copy()  # aligned and writable, as kernels want arrays
        self._start = start

    def view(self, dtype: Any, start: int, count: int) -> np.ndarray:
        """``count`` numbers from byte ``start`` of the file on."""
        if not count:
            return np.empty(0, dtype)
        return np.frombuffer(self._bytes, dtype, count, start - self._start)


def store_of(given: Any) -> Store | None:
    """A file system as users give it; None for the local one, whose files are mapped."""
    import pyarrow.fs as fs

    if isinstance(given, Store):
        return given
    if not isinstance(given, fs.FileSystem):
        if not (hasattr(given, "protocol") and callable(getattr(given, "open", None))):
            raise DataError(
                f"filesystem= is {type(given).__name__}; needed is a file system of pyarrow (pyarrow.fs) or of fsspec."
            )
        given = fs.PyFileSystem(fs.FSSpecHandler(given))
    return None if isinstance(given, fs.LocalFileSystem) else Store(given)


def located(uri: str) -> tuple[Store | None, str]:
    """The file system that a URI names, and the path in it, which may be a pattern.

    >>> located("file:///data/part-*.parquet")
    (None, '/data/part-*.parquet')
    """
    import pyarrow as pa
    from pyarrow.fs import FileSystem

    place, mark, settings = uri.partition("?")
    magic = _MAGIC.search(place)
    folder = place[: magic.start()].rpartition("/")[0] if magic else place
    try:
        filesystem, path = FileSystem.from_uri(folder + mark + settings)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(
            f"{uri} is in no file system that can be reached: {_first_line(error)}. Known are file, s3, gs and hdfs; "
            "give others, or credentials, with filesystem= and the path in it.",
            path=uri,
        ) from None
    return store_of(filesystem), path + unquote(place[len(folder) :])


def _pattern(name: str) -> re.Pattern[str]:
    """As the shell has it: ``*`` does not go over slashes, ``**/`` does."""
    said = []
    for part in re.split(r"(\*\*/|\*|\[[^]]+\])", name):
        if part in ("**/", "*"):
            said.append("[^/]*" if part == "*" else "(?:[^/]+/)*")
        elif part.startswith("[") and part.endswith("]"):
            said.append(part.replace("[!", "[^"))
        else:
            said.append(re.escape(part))
    return re.compile("".join(said))


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0].rstrip(".")
