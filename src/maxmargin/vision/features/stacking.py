"""Results of many images as one array: as they come, in memory or, with a cache, in a file."""

from __future__ import annotations

import math
import os
import tempfile
import warnings
from typing import Any

import numpy as np

_GROWTH = 1.25


def warn_of_cache(trouble: str) -> None:
    """Say that the cache cannot be written."""
    message = f"The cache cannot be written ({trouble}). The work goes on without it, in memory."
    warnings.warn(message, RuntimeWarning, stacklevel=4)


class Growing:
    """Rows in memory, to which more are added. What was added before is moved, not held twice.

    With ``apart`` the fields of rows are arrays of their own, each in one piece.
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, room: int = 0, apart: bool = False) -> None:
        self.n_rows, self._apart = 0, apart
        kinds = {name: dtype[name] for name in dtype.names or ()} if apart else {"": dtype}
        self._fields = {name: np.empty((room, *shape, *kind.shape), kind.base) for name, kind in kinds.items()}

    def append(self, rows: np.ndarray) -> None:
        end = self.n_rows + len(rows)
        for name, values in self._fields.items():
            if end > len(values):
                values.resize((max(end, int(_GROWTH * len(values))), *values.shape[1:]), refcheck=False)
            values[self.n_rows : end] = rows[name] if self._apart else rows
        self.n_rows = end

    def finish(self) -> np.ndarray | dict[str, np.ndarray]:
        """All rows. Nothing can be added any more."""
        for values in self._fields.values():
            values.resize((self.n_rows, *values.shape[1:]), refcheck=False)
        return self._fields if self._apart else self._fields[""]


class StackFile:
    """Rows that are written one after the other into a file, and mapped into memory when all are there.

    They are written as to any file, not into a map: on a full disk that is an error, and not the end of the process.
    The file has no name, and goes with its map.
    """

    def __init__(self, folder: str, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.shape, self.dtype, self.n_rows = shape, dtype, 0
        # Without a buffer: a row that was taken is on disk, and a full disk refuses the row that it has no room for.
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115

    def append(self, rows: np.ndarray) -> None:
        left = memoryview(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data)
        while left:
            left = left[self._file.write(left) :]
        self.n_rows += len(rows)

    def written(self) -> np.ndarray:
        """All rows so far, in memory."""
        self._file.seek(0)
        found = np.fromfile(self._file, self.dtype, self.n_rows * math.prod(self.shape))
        return found.reshape(self.n_rows, *self.shape)

    def finish(self) -> np.ndarray:
        mapped = np.memmap(self._file, self.dtype, "r", shape=(self.n_rows, *self.shape))
        self.discard()
        return mapped

    def discard(self) -> None:
        self._file.close()


class Stack:
    """Rows of one shape and type, in a file of the cache's folder as long as the disk takes them.

    Parameters
    ----------
    cache : path or None
    ragged : bool
        Whether each image has as many rows as it has, one image after the other, or one row.
    room : int
        Rows that there will be at most, if that is known.
    apart : bool
        Whether fields of rows are arrays of their own, where they are in memory.
    """

    def __init__(
        self, cache: str | os.PathLike[str] | None, *, ragged: bool = False, room: int = 0, apart: bool = False
    ) -> None:
        self._folder = None if cache is None else os.fspath(cache)
        self._ragged, self._room, self._apart = ragged, room, apart
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
        if self._like is None:
            self._like = rows.shape[1:], rows.dtype, i
            self._rows = self._begun(rows.shape[1:], rows.dtype)
        shape, dtype, image = self._like
        if (rows.shape[1:], rows.dtype) != (shape, dtype):
            like = f"({', '.join(['n', *map(str, shape)])}{'' if shape else ','})" if self._ragged else str(shape)
            return (
                f"the work gave {rows.dtype} of shape {value.shape}, but {dtype} of shape {like} for image {image}; "
                f"it must be the same for all{', but for the number of rows' if self._ragged else ''}"
            )
        try:
            self._rows.append(rows)  # type: ignore[union-attr]
        except OSError as error:
            self._to_memory(error).append(rows)
        self._ends.append(self._ends[-1] + len(rows))
        return ""

    def finish(self) -> Any:
        """All rows: a map of the file, or in memory."""
        if isinstance(self._rows, StackFile) and not self._rows.n_rows:
            self._to_memory()  # what is empty cannot be mapped
        try:
            return self._rows.finish()  # type: ignore[union-attr]
        except OSError as error:
            return self._to_memory(error).finish()

    def _begun(self, shape: tuple[int, ...], dtype: np.dtype) -> Growing | StackFile:
        if self._folder is not None and 0 not in shape:
            try:
                return StackFile(self._folder, shape, dtype)
            except OSError as error:
                warn_of_cache(f"{self._folder}: {error.strerror or error}")
        return Growing(shape, dtype, self._room, self._apart)

    def _to_memory(self, error: OSError | None = None) -> Growing:
        if error is not None:
            warn_of_cache(f"{self._folder}: {error.strerror or error}")
        file: StackFile = self._rows  # type: ignore[assignment]
        self._rows = memory = Growing(file.shape, file.dtype, max(self._room, file.n_rows), self._apart)
        memory.append(file.written())
        file.discard()
        return memory
