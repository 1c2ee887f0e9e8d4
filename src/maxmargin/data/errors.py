"""What goes wrong with data: one kind of error that says where."""

from __future__ import annotations


class DataError(ValueError):
    """Data that cannot be used: the message says which file, where in it, what is needed and what to do.

    ``path``, ``row`` (or line) and ``column`` hold the place, as far as it is known.
    """

    def __init__(self, message: str, *, path: str | None = None, row: int | None = None, column: int | None = None):
        super().__init__(message)
        self.path = path
        self.row = row
        self.column = column
