"""What goes wrong with data: one kind of error that says where."""

from __future__ import annotations

import re

_SEQUENCE = re.compile(r"(?:[Ss]equence |\bY\w*\[)(\d+)(?:.*?\btoken (\d+))?", re.DOTALL)


class DataError(ValueError):
    """Data that cannot be used: the message says which file, where in it, what is needed and what to do.

    ``path``, ``row`` (or line) and ``column`` hold the place, as far as it is known.
    """

    def __init__(self, message: str, *, path: str | None = None, row: int | None = None, column: int | None = None):
        super().__init__(message)
        self.path = path
        self.row = row
        self.column = column


def named_sequence(message: str, first: int = 0) -> tuple[int, int, str] | None:
    """The sequence and the token that a message is about, and the message with sequences counted from ``first`` on.

    >>> named_sequence("Sequence 2 has the label 'X' at token 5.", first=100)
    (102, 5, "Sequence 102 has the label 'X' at token 5.")
    """
    found = _SEQUENCE.search(message)
    if found is None:
        return None
    i = first + int(found[1])
    return i, int(found[2] or 0), f"{message[: found.start(1)]}{i}{message[found.end(1) :]}"
