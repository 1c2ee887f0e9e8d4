"""Text files as pieces of whole lines, in bounded memory: plain, gzip or Zstandard."""

from __future__ import annotations

import errno
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .errors import DataError
from .stores import Store

PIECE = 4 << 20
"""Bytes that are read at once."""
LONGEST_LINE = 64 << 20
"""Bytes of a line where no memory is given to bound it by."""

_NAMES = {".gz": "gzip", ".zst": "Zstandard"}
_MAGIC = {"gzip": b"\x1f\x8b", "Zstandard": b"\x28\xb5\x2f\xfd"}
_COMPRESSED = 256 << 10  # compressed bytes that are read at once


class Stamp(NamedTuple):
    """What tells, without reading it, that a file is still the same."""

    size: int
    modified: int
    inode: int

    @classmethod
    def of(cls, path: str | int) -> Stamp:
        """Of a path or an open file; what cannot be read as a file is refused."""
        try:
            state = os.stat(path)
        except FileNotFoundError:
            raise FileNotFoundError(
                errno.ENOENT, "There is no such file; check the spelling and the working directory", path
            ) from None
        except PermissionError:
            raise _forbidden(str(path)) from None
        if not stat.S_ISREG(state.st_mode):
            kind = "a folder" if stat.S_ISDIR(state.st_mode) else "no regular file"
            raise DataError(
                f"{path} is {kind}. Name files on disk: data is read more than once, so pipes will not do.",
                path=str(path),
            )
        return cls(state.st_size, state.st_mtime_ns, state.st_ino)


class LongLine(Exception):
    """A line that is longer than allowed; whoever counts lines can say which one it is."""

    def __init__(self, path: str, begins: bytes) -> None:
        super().__init__(path)
        self.path, self.begins = path, begins


def pieces(
    path: str, stamp: Stamp, store: Store | None = None, longest: int = LONGEST_LINE
) -> Iterator[tuple[bytearray, int]]:
    """Buffers and how much of each is text: whole lines, each with its line end (the last one is given one).

    The file must be the one that ``stamp`` was taken of, before and after it is read. A line of more than ``longest``
    bytes ends it with ``LongLine``.
    """
    if store is not None:
        yield from _stored_pieces(path, stamp, store, longest)
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except PermissionError:
        raise _forbidden(path) from None
    except FileNotFoundError:
        raise DataError(f"{path} is gone: it was there when the data was opened.", path=path) from None
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        _unchanged(path, Stamp.of(file.fileno()), stamp)
        start = os.pread(file.fileno(), 4, 0) if hasattr(os, "pread") else _peek(file)
        yield from _cut(path, _reader(path, file, start, _own_handle), longest)
        _unchanged(path, Stamp.of(file.fileno()), stamp)


def _stored_pieces(path: str, stamp: Stamp, store: Store, longest: int) -> Iterator[tuple[bytearray, int]]:
    try:
        with store.open(path) as file:
            _unchanged(path, Stamp(*store.stamp(path)), stamp)
            yield from _cut(path, _reader(path, file, _peek(file), lambda file: file), longest)
            _unchanged(path, Stamp(*store.stamp(path)), stamp)
    except OSError as error:
        raise store.unreadable(path, error) from error


def _cut(path: str, read: Callable[[memoryview], int], longest: int) -> Iterator[tuple[bytearray, int]]:
    rest = bytearray()
    room = PIECE
    while True:
        buffer = bytearray(room + 1)  # one more for the line end that a last line may lack
        buffer[: len(rest)] = rest
        n = len(rest)
        with memoryview(buffer) as view:
            while n < room and (got := read(view[n:room])):
                n += got
        if n < room:
            if n and buffer[n - 1] != ord("\n"):
                buffer[n] = ord("\n")
                n += 1
            if n:
                yield buffer, n
            return
        cut = buffer.rfind(b"\n", len(rest), n) + 1
        if not cut and room >= longest:
            raise LongLine(path, bytes(buffer[:40]))
        rest = buffer[cut:n]
        if cut:
            yield buffer, cut
        del buffer  # the next one is made before this name is bound anew
        room = max(PIECE, min(2 * len(rest), longest))


def _reader(path: str, file: Any, start: bytes, for_arrow: Callable[[Any], Any]) -> Callable[[memoryview], int]:
    """A function that fills memory with text and says how far it got; ``start`` are the first bytes of the file."""
    kind = next((k for k, magic in _MAGIC.items() if start.startswith(magic)), None)
    named = _NAMES.get(os.path.splitext(path)[1].lower())
    if named and start and kind != named:
        raise DataError(
            f"{path} is no {named} data, though its name says so (it begins with {start!r}). Give it the name of what "
            "it is, or make it anew.",
            path=path,
        )
    if kind == "gzip":
        return _Gzip(path, file).readinto
    return _zstandard(path, for_arrow(file)) if kind == "Zstandard" else file.readinto


def _peek(file: Any) -> bytes:
    start = file.read(4)
    file.seek(0)
    return start


class _Gzip:
    """Members one after another, as ``gzip -c a b`` and block compressors write them."""

    def __init__(self, path: str, file: Any) -> None:
        self._path = path
        self._file = file
        self._member = zlib.decompressobj(wbits=31)
        self._input = b""
        self._begun = False  # whether anything of this member has been read

    def readinto(self, view: memoryview) -> int:
        while True:
            if not self._input:
                self._input = self._file.read(_COMPRESSED)
                if not self._input:
                    if self._begun:
                        raise _broken(self._path, "gzip", "it ends too early")
                    return 0
            if not self._begun:
                self._input = self._input.lstrip(b"\0")  # tapes and some tools fill up with zeros
                if not self._input:
                    continue
                self._begun = True
            try:
                out = self._member.decompress(self._input, len(view))
            except zlib.error as error:
                raise _broken(self._path, "gzip", str(error)) from None
            self._input = self._member.unconsumed_tail
            if self._member.eof:
                self._input = self._member.unused_data
                self._member = zlib.decompressobj(wbits=31)
                self._begun = False
            if out:
                view[: len(out)] = out
                return len(out)


def _zstandard(path: str, file: Any) -> Callable[[memoryview], int]:
    import pyarrow as pa

    stream = pa.CompressedInputStream(file, "zstd")

    def readinto(view: memoryview) -> int:
        try:
            return stream.readinto(view)
        except (OSError, ValueError) as error:
            raise _broken(path, "Zstandard", str(error)) from None

    return readinto


def _own_handle(file: Any) -> Any:
    import pyarrow as pa

    own = os.fdopen(os.dup(file.fileno()), "rb", buffering=0)  # the stream closes its file whenever it likes
    return pa.PythonFile(own, mode="r")


def _unchanged(path: str, now: Stamp, stamp: Stamp) -> None:
    if now != stamp:
        raise DataError(
            f"{path} changed during training: it had {stamp.size} bytes when the data was opened and has {now.size} now"
            f"{'' if now.size != stamp.size else ', but was written again'}. Open the data anew, and let no one write "
            "to it meanwhile.",
            path=path,
        )


def _broken(path: str, kind: str, why: str) -> DataError:
    return DataError(
        f"{path} is broken {kind} data ({why}). The file may not have been copied to its end: get it again.", path=path
    )


def _forbidden(path: str) -> PermissionError:
    return PermissionError(errno.EACCES, "No permission to read this file; change its mode or ask its owner", path)
