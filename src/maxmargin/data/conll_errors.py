"""What is said of CoNLL files that cannot be read: where, what is there, what is needed."""

from __future__ import annotations

from ..validation import shown
from .errors import DataError

LONGEST = 1 << 20
"""Characters of a line."""


def counted(n: int) -> str:
    return f"{n} column{'s' * (n != 1)}"


def bad_line(path: str, number: int, line: str, found: int, width: int, separator: str | None) -> DataError:
    what = f"has {counted(found)}, the lines before have {width}"
    mend = f"A line has one token with all its columns, parted by {separator!r}; blank lines part sentences."
    if line[0] == "#":
        mend += " If lines that begin with # are comments, say comments=True."
    if len(line) > LONGEST:
        what = f"has {len(line)} characters, more than {LONGEST}"
    elif "\r" in line:
        what = "has a carriage return inside"
        mend = "If that is where lines end, as on old Macs, convert the file: tr '\\r' '\\n' < old > new."
    return DataError(f"{path}, line {number} {what}: {shown(line[:200])}. {mend}", path=path, row=number)


def empty_column(path: str, number: int, column: int) -> DataError:
    return DataError(
        f"{path}, line {number} has nothing in column {column}, which is read: CoNLL files have _ where nothing is "
        "known. Mend the file, or leave the column out: columns must name those to be read.",
        path=path,
        row=number,
    )


def no_tokens(path: str) -> DataError:
    return DataError(
        f"{path} has no tokens: it is empty, or has blank lines and comments (#) only. A CoNLL file has one token per "
        "line and blank lines between sentences.",
        path=path,
    )


def check_alike(path: str, number: int, n_columns: int, first: str, n_first: int) -> None:
    """All files must give tokens of the same columns."""
    if n_columns != n_first:
        raise DataError(
            f"{path}, line {number} has {counted(n_columns)}, {first} has {n_first}. columns must name those that are "
            "needed, and that all files have: numbers from 0 on, the label last.",
            path=path,
            row=number,
        )
