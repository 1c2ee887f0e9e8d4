"""Text files as pieces of whole lines, in bounded memory: plain, gzip or Zstandard."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from .errors import DataError
from .stores import DISK, Disk, Stamp, check_unchanged

PIECE = 4 << 20
"""Bytes that are read at once."""
LONGEST_LINE = 64 << 20
"""Bytes of a line where no memory is given to bound it by."""

UNPACKED = 64 << 20
"""Bytes that compressed text may unpack to whatever it is; beyond that, to ``RATIO`` times its own size at most."""
RATIO = 100

_NAMES = {".gz": "gzip", ".zst": "Zstandard"}
_UNPACK = {"gzip": "gunzip", "Zstandard": "unzstd"}
_MAGIC = {"gzip": b"\x1f\x8b", "Zstandard": b"\x28\xb5\x2f\xfd"}


def pieces(path: str, stamp: Stamp, store: Disk = DISK, memory: int | None = None) -> Iterator[tuple[bytearray, int]]:
    """Buffers and how much of each is text: whole lines, each with its line end (the last one is given one).

    The file must be the one that ``stamp`` was taken of, before and after it is read. Lines that could not be read in
    ``memory`` bytes are refused: text, numbers of it and their copy are about eight times as large.
    """
    with store.open(path) as file:
        check_unchanged(path, store.stamp(path), stamp)
        try:
            yield from _cut(path, _reader(path, file), memory)
        except OSError as error:
            raise store.unreadable(path, error) from error
        check_unchanged(path, store.stamp(path), stamp)


def _cut(path: str, read: Callable[[memoryview], int], memory: int | None) -> Iterator[tuple[bytearray, int]]:
    longest = LONGEST_LINE if memory is None else max(memory // 8, PIECE)
    rest = bytearray()
    room, lines = PIECE, 0
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
            limit = "" if memory is None else f" where memory is {max(1, memory >> 20)} MB"
            raise DataError(
                f"{path}, line {lines + 1} has more than {longest >> 20} MB, the limit{limit}; it begins with "
                f"{bytes(buffer[:40])!r}. Data needs one example per line. If it is one example, give more memory.",
                path=path,
                row=lines + 1,
            )
        rest = buffer[cut:n]
        if cut:
            lines += buffer.count(b"\n", 0, cut)
            yield buffer, cut
        del buffer  # the next one is made before this name is bound anew
        room = max(PIECE, min(2 * len(rest), longest))


def _reader(path: str, file: Any) -> Callable[[memoryview], int]:
    """A function that fills memory with text and says how far it got."""
    start = file.read(4)
    file.seek(0)
    kind = next((k for k, magic in _MAGIC.items() if start.startswith(magic)), None)
    named = _NAMES.get(os.path.splitext(path)[1].lower())
    if named and start and kind != named:
        raise DataError(
            f"{path} is no {named} data, though its name says so (it begins with {start!r}). Give it the name of what "
            "it is, or make it anew.",
            path=path,
        )
    if kind is None:
        return file.readinto
    import pyarrow as pa

    stream = pa.CompressedInputStream(file, {"gzip": "gzip", "Zstandard": "zstd"}[kind])
    unpacked = 0

    def readinto(view: memoryview) -> int:
        nonlocal unpacked
        try:
            got = stream.readinto(view)
        except (OSError, ValueError) as error:
            raise DataError(
                f"{path} is broken {kind} data ({error}). The file may not have been copied to its end: get it again.",
                path=path,
            ) from None
        unpacked += got
        if unpacked > max(UNPACKED, RATIO * file.tell()):
            raise DataError(
                f"{path} unpacks to more than {unpacked >> 20} MB, over {RATIO} times its size: text that is made to "
                f"fill memory does that. If you trust it, unpack it first ({_UNPACK[kind]}) and name what comes out.",
                path=path,
            )
        return int(got)

    return readinto
