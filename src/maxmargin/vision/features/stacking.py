"""Results of many images as one array: as they come, in memory or, with a cache, in a file."""

from __future__ import annotations

import os
import tempfile

import numpy as np

from .cache import writing

_GROWTH = 1.25


class Growing:
    """Rows in memory, to which more are added. What was added before is moved, not held twice."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, room: int = 0) -> None:
        self.n_rows, self._values = 0, np.empty((room, *shape), dtype)

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


class StackFile:
    """Rows that are written one after the other into a file, and mapped into memory when all are there.

    They are written as to any file, not into a map: on a full disk that is an error, and not the end of the process.
    The file has no name, and goes with its map.
    """

    def __init__(self, folder: str, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.folder, self.shape, self.dtype, self.n_rows = folder, shape, dtype, 0
        with writing(folder):
            # Without a buffer: a row that was taken is on disk, and a full disk refuses the row it has no room for.
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115

    def append(self, rows: np.ndarray) -> None:
        left = memoryview(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data)
        with writing(self.folder):
            while left:
                left = left[self._file.write(left) :]
        self.n_rows += len(rows)

    def finish(self) -> np.ndarray:
        if not self.n_rows:  # what is empty cannot be mapped
            return np.empty((0, *self.shape), self.dtype)
        return np.memmap(self._file, self.dtype, "r", shape=(self.n_rows, *self.shape))

    def discard(self) -> None:
        self._file.close()


class Stack:
    """Rows of one shape and type: in memory, or in a file of the cache's folder.

    Parameters
    ----------
    cache : path or None
    ragged : bool
        Whether each image has as many rows as it has, one image after the other, or one row.
    room : int
        Rows that there will be at most, if that is known.
    """

    def __init__(self, cache: str | os.PathLike[str] | None, *, ragged: bool = False, room: int = 0) -> None:
        self._folder = None if cache is None else os.fspath(cache)
        self._ragged, self._room = ragged, room
        self._like: tuple[tuple[int, ...], np.dtype, int] | None = None
        self._rows: Growing | StackFile | None = None
        self._ends = [0]

    @property
    def first(self) -> np.ndarray:
        """Where the rows of each image begin, and where the last ones end."""
        return np.array(self._ends, dtype=np.int64)

    def __enter__(self) -> Stack:
        return self

    def __exit__(self, *_: object) -> None:
        if isinstance(self._rows, StackFile):
            self._rows.discard()

    def take(self, i: int, value: np.ndarray) -> str:
        """Adds what was found for image i; or says why it does not fit the others."""
        if self._ragged and not value.ndim:
            return "the work gave a single number, but rows are needed: an array with as many as the image has"
        rows = value if self._ragged else value[None]
        if self._like is None or self._rows is None:
            self._like = rows.shape[1:], rows.dtype, i
            in_memory = self._folder is None or 0 in rows.shape[1:]
            self._rows = (
                Growing(*self._like[:2], self._room) if in_memory else StackFile(str(self._folder), *self._like[:2])
            )
        shape, dtype, image = self._like
        if (rows.shape[1:], rows.dtype) != (shape, dtype):
            like = f"({', '.join(['n', *map(str, shape)])}{'' if shape else ','})" if self._ragged else str(shape)
            return (
                f"the work gave {rows.dtype} of shape {value.shape}, but {dtype} of shape {like} for image {image}; "
                f"it must be the same for all{', but for the number of rows' if self._ragged else ''}"
            )
        self._rows.append(rows)
        self._ends.append(self._ends[-1] + len(rows))
        return ""

    def finish(self) -> np.ndarray:
        """All rows: a map of the file, or in memory."""
        assert self._rows is not None
        return self._rows.finish()
