"""Results of many images as one array: as they come, in memory or, with a cache, in a file."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

from .cache import StackFile

_GROWTH = 1.25


class CacheTrouble:
    """Says once that the cache cannot be written, however often that is found."""

    def __init__(self) -> None:
        self._said = False

    def __call__(self, trouble: str) -> None:
        if not self._said:
            self._said = True
            warnings.warn(
                f"The cache cannot be written ({trouble}). The work goes on without it, in memory.",
                RuntimeWarning,
                stacklevel=4,
            )


class Growing:
    """Rows in memory, to which more are added. What was added before is moved, not held twice."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, room: int = 0) -> None:
        self.n_rows = 0
        self._values = np.empty((room, *shape), dtype)

    def append(self, rows: np.ndarray) -> None:
        end = self.n_rows + len(rows)
        if end > len(self._values):
            self._values.resize((max(end, int(_GROWTH * len(self._values))), *self._values.shape[1:]), refcheck=False)
        self._values[self.n_rows : end] = rows
        self.n_rows = end

    def finish(self) -> np.ndarray:
        """All rows. Nothing can be added any more."""
        self._values.resize((self.n_rows, *self._values.shape[1:]), refcheck=False)
        return self._values


class GrowingFields:
    """The same for rows with fields, each of which is an array of its own."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, room: int = 0) -> None:
        self._fields = {name: Growing((*shape, *dtype[name].shape), dtype[name].base, room) for name in dtype.names}

    def append(self, rows: np.ndarray) -> None:
        for name, field in self._fields.items():
            field.append(rows[name])

    def finish(self) -> dict[str, np.ndarray]:
        return {name: field.finish() for name, field in self._fields.items()}


class Stack:
    """Rows of one shape and type, in a file of the cache's folder as long as the disk takes them.

    Parameters
    ----------
    cache : path or None
    ragged : bool
        Whether each image has as many rows as it has, one image after the other, or one row.
    room : int
        Rows that there will be at most, if that is known.
    memory : type
        What keeps rows in memory.
    """

    def __init__(
        self, cache: str | os.PathLike[str] | None, *, ragged: bool = False, room: int = 0, memory: Any = Growing
    ) -> None:
        self._folder = None if cache is None else os.fspath(cache)
        self._ragged, self._room, self._kind = ragged, room, memory
        self._like: tuple[tuple[int, ...], np.dtype, int] | None = None
        self._file: StackFile | None = None
        self._memory: Any = None
        self._ends = [0]
        self.warn = CacheTrouble()

    @property
    def first(self) -> np.ndarray:
        """Where the rows of each image begin, and where the last ones end."""
        return np.array(self._ends, dtype=np.int64)

    def __enter__(self) -> Stack:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.discard()

    def take(self, i: int, value: np.ndarray) -> str:
        """Adds what was found for image i; or says why it does not fit the others."""
        if self._ragged and not value.ndim:
            return "the work gave a single number, but rows are needed: an array with as many as the image has"
        rows = value if self._ragged else value[None]
        if self._like is None:
            self._like = rows.shape[1:], rows.dtype, i
            self._begin(rows.shape[1:], rows.dtype)
        shape, dtype, image = self._like
        if (rows.shape[1:], rows.dtype) != (shape, dtype):
            like = f"({', '.join(['n', *map(str, shape)])}{'' if shape else ','})" if self._ragged else str(shape)
            return (
                f"the work gave {rows.dtype} of shape {value.shape}, but {dtype} of shape {like} for image {image}; "
                f"it must be the same for all{', but for the number of rows' if self._ragged else ''}"
            )
        if self._file is not None:
            try:
                self._file.append(rows)
            except OSError as error:
                self._to_memory(error)
        if self._file is None:
            self._memory.append(rows)
        self._ends.append(self._ends[-1] + len(rows))
        return ""

    def finish(self) -> Any:
        """All rows: a map of the file, or in memory."""
        if self._file is not None and self._file.n_rows:
            try:
                return self._file.finish()
            except OSError as error:
                self._to_memory(error)
        elif self._file is not None:
            self._to_memory()  # what is empty cannot be mapped
        return self._memory.finish()

    def _begin(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        if self._folder is not None and 0 not in shape:  # what is empty cannot be mapped
            try:
                self._file = StackFile(self._folder, shape, dtype)
                return
            except OSError as error:
                self.warn(f"{self._folder}: {error.strerror or error}")
        self._memory = self._kind(shape, dtype, self._room)

    def _to_memory(self, error: OSError | None = None) -> None:
        if error is not None:
            self.warn(f"{self._folder}: {error.strerror or error}")
        file: StackFile = self._file  # type: ignore[assignment]
        self._memory = self._kind(file.shape, file.dtype, max(self._room, file.n_rows))
        self._memory.append(file.written())
        file.discard()
        self._file = None
