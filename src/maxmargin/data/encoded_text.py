"""Text in an encoding, in bounded memory: the lines of files, and what is said of those that are no such text."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from ..validation import shown
from .conll_errors import LONGEST
from .errors import DataError
from .pieces import pieces
from .stores import DISK, Disk

_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}  # the first that fits: the mark of UTF-32 begins with that of UTF-16


def read_lines(path: str, encoding: str = "utf-8", store: Disk = DISK) -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers, without their ends, in bounded memory."""
    number = 0
    for buffer, end in pieces(path, store.stamp(path), store):
        for number, line in enumerate(decoded(path, buffer, end, number, encoding).split("\n")[:-1], number + 1):  # noqa: B020
            if len(line) > LONGEST:
                raise DataError(
                    f"{path}, line {number} has {len(line)} characters, more than {LONGEST}. A line is one sentence: "
                    "break longer ones.",
                    path=path,
                    row=number,
                )
            yield number, line.rstrip("\r")


def checked_encoding(encoding: object) -> str:
    """The name of an encoding in which lines end as in ASCII."""
    try:
        ends = isinstance(encoding, str) and "\n".encode(encoding) == b"\n"
    except (LookupError, UnicodeError):
        ends = False
    if not ends:
        raise DataError(
            f"encoding must be one that keeps ASCII, such as 'utf-8', 'latin-1' or 'cp1252', got {shown(encoding)}. "
            "Convert other files first, such as by: iconv -f utf-16 -t utf-8."
        )
    return str(encoding)


def decoded(path: str, buffer: bytearray, end: int, before: int, encoding: str) -> str:
    mark = next((mark for mark in _MARKS if buffer.startswith(mark)), None) if before == 0 else None
    if mark is not None:
        raise DataError(
            f"{path}, line 1 is {_MARKS[mark]} text: it begins with {bytes(mark)!r}. Convert the file first, such as "
            f"by: iconv -f {_MARKS[mark].lower()} -t utf-8.",
            path=path,
            row=1,
        )
    first_of_utf8 = before == 0 and codecs.lookup(encoding).name == "utf-8"
    try:
        text = buffer[:end].decode("utf-8-sig" if first_of_utf8 else encoding)
    except UnicodeDecodeError as error:
        line = before + buffer.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}, line {line} is not {encoding.upper()} text: {bytes(buffer[error.start : end][:12])!r}. "
            "If it is in another encoding, name it, such as encoding='latin-1'; or convert the file first, such as by: "
            "iconv -f latin1 -t utf-8.",
            path=path,
            row=line,
        ) from None
    if "\0" in text:
        line = before + text.count("\n", 0, text.index("\0")) + 1
        raise DataError(
            f"{path}, line {line} has a byte that is zero: it is no text, or text in another encoding such as UTF-16. "
            "Convert the file first, such as by: iconv -f utf-16le -t utf-8.",
            path=path,
            row=line,
        )
    return text
