"""Results of many images as one array: as they come, in memory or, with a cache, in a file."""

from __future__ import annotations

import os
import warnings

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


class _Rows:
    """Rows of one shape and type, in a file of the cache's folder as long as the disk takes them."""

    def __init__(self, cache: str | os.PathLike[str] | None, room: int) -> None:
        self._folder = None if cache is None else os.fspath(cache)
        self._room = room
        self._like: tuple[tuple[int, ...], np.dtype] | None = None
        self._like_image = 0
        self._file: StackFile | None = None
        self._memory: Growing | None = None
        self.warn = CacheTrouble()

    def __enter__(self) -> _Rows:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.discard()

    def finish(self) -> np.ndarray:
        """All rows: a map of the file, or in memory."""
        if self._file is None:
            return self._memory.finish()  # type: ignore[union-attr]
        file, self._file = self._file, None
        try:
            if file.n_rows:
                return file.finish()
        except OSError as error:
            self.warn(f"{self._folder}: {error.strerror or error}")
        values = file.written(file.n_rows)  # what is empty cannot be mapped
        file.discard()
        return values

    def _add(self, i: int, rows: np.ndarray, given: tuple[int, ...], more: str = "") -> str:
        """Adds rows; or says why they do not fit the others."""
        shape, dtype = rows.shape[1:], rows.dtype
        if self._like is None:
            self._like, self._like_image = (shape, dtype), i
            self._begin(shape, dtype)
        if (shape, dtype) != self._like:
            shape, like = self._like
            return (
                f"the work gave {rows.dtype} of shape {given}, but {like} of shape {self._said(shape)} for image "
                f"{self._like_image}; it must be the same for all{more}"
            )
        if self._file is not None:
            try:
                self._file.append(rows)
                return ""
            except OSError as error:
                self.warn(f"{self._folder}: {error.strerror or error}")
                self._to_memory()
        self._memory.append(rows)  # type: ignore[union-attr]
        return ""

    def _said(self, shape: tuple[int, ...]) -> str:
        return str(shape)

    def _begin(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        if self._folder is not None and 0 not in shape:  # what is empty cannot be mapped
            try:
                self._file = StackFile(self._folder, shape, dtype)
                return
            except OSError as error:
                self.warn(f"{self._folder}: {error.strerror or error}")
        self._memory = Growing(shape, dtype, self._room)

    def _to_memory(self) -> None:
        file: StackFile = self._file  # type: ignore[assignment]
        self._memory = Growing(file.shape, file.dtype, max(self._room, file.n_rows))
        self._memory.append(file.written(file.n_rows))
        file.discard()
        self._file = None


class Stack(_Rows):
    """One row for each image, at most ``n`` of them."""

    def __init__(self, cache: str | os.PathLike[str] | None, n: int) -> None:
        super().__init__(cache, n)

    def take(self, i: int, value: np.ndarray) -> str:
        return self._add(i, value[None], value.shape)


class Concatenation(_Rows):
    """As many rows as each image has, one image after the other."""

    def __init__(self, cache: str | os.PathLike[str] | None) -> None:
        super().__init__(cache, 0)
        self._ends = [0]

    @property
    def first(self) -> np.ndarray:
        """Where the rows of each image begin, and where the last ones end."""
        return np.array(self._ends, dtype=np.int64)

    def take(self, i: int, value: np.ndarray) -> str:
        if not value.ndim:
            return "the work gave a single number, but rows are needed: an array with as many as the image has"
        reason = self._add(i, value, value.shape, ", but for the number of rows")
        if not reason:
            self._ends.append(self._ends[-1] + len(value))
        return reason

    def _said(self, shape: tuple[int, ...]) -> str:
        return f"({', '.join(['n', *map(str, shape)])}{'' if shape else ','})"
