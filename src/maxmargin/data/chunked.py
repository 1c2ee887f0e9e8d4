"""Sources whose chunks can be read in any order: what all of them have in common, and what some say besides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..protocols import Chunk, Source
from .errors import DataError
from .prefetch import prefetched


class Chunked:
    """The part of ``Seekable`` that follows from ``offsets`` and ``chunk``."""

    offsets: np.ndarray
    origin: dict[str, Any] = {}  # noqa: RUF012  # replaced, never changed
    skipped: Sequence[str] = ()
    _reads_ahead = True

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def chunk(self, i: int) -> Chunk:
        raise NotImplementedError

    def release(self, i: int) -> None:
        """Nothing to give back, unless a source says otherwise."""

    def chunks(self, order: np.ndarray | None = None) -> Iterator[Chunk]:
        numbers = range(self.offsets.size - 1) if order is None else order
        made = ((int(i), self._touched(int(i))) for i in numbers)
        for i, chunk in prefetched(made) if self._reads_ahead else made:
            yield chunk
            del chunk
            self.release(i)

    def _touched(self, i: int) -> Chunk:
        """A chunk that is in memory when it is needed, not when it is first used."""
        return self.chunk(i)


def origin_of(source: Source) -> dict[str, Any]:
    """How the data was read, as far as the source says so."""
    return getattr(source, "origin", {})


def keep_within(source: Source, memory: int) -> None:
    """Of sources that read ahead: no more than so many bytes, from now on."""
    if hasattr(source, "keep_within"):
        source.keep_within(memory)


def left_out(source: Source) -> tuple[int, list[str]]:
    """How many rows the last pass over a source could not use, and what it says of them (of the first, if many)."""
    said = [str(entry) for entry in getattr(source, "skipped", None) or ()]
    return int(getattr(source, "n_skipped", len(said))), said


class GroupsInTurn:
    """Rows of a group must be next to each other: complains of a group that begins again; ``hint`` says what to do."""

    def __init__(self, hint: str) -> None:
        self._hint = hint
        self._seen: set[int] = set()
        self._last: int | None = None
        self._rows = 0

    def take(self, group: np.ndarray, apart: bool = False) -> None:
        """The groups of the next rows, which may go on with the last one unless they are kept ``apart``."""
        starts = group_starts(group)
        for k, name in zip(starts.tolist(), group[starts].tolist(), strict=True):
            if name in self._seen and (k or apart or name != self._last):
                row = self._rows + k
                raise DataError(
                    f"Rows of a group must be next to each other: group {name} begins again in row {row}. {self._hint}",
                    row=row,
                )
            self._seen.add(name)
            self._last = name
        self._rows += group.size


def group_starts(group: np.ndarray) -> np.ndarray:
    """Rows where a group begins."""
    return np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]])) if group.size else np.empty(0, np.int64)
