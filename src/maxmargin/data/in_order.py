"""Files that are read from beginning to end, again and again: what text and Parquet have in common."""

from __future__ import annotations

import copy
import os
from collections.abc import Generator, Iterable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from .errors import DataError
from .stores import Disk, Stamp, same_here

MESSAGES = 10
"""Lines or rows that cannot be used, of which it is described why; the others are counted."""

Self = TypeVar("Self", bound="InOrder")


class InOrder:
    """Files by name, known by their stamps; ``shares`` cuts them into pieces for workers.

    A subclass reads all of them in ``_read``, which sets ``_length`` and ``_width`` in the end, and says in ``_units``
    where they may be cut.

    Parameters
    ----------
    paths : paths of the files
    n_features : int, optional
        Columns, if they are known; else they are found by reading everything once.
    on_error : "raise" or "skip"
        Whether what cannot be used is an error, or left out and counted (``n_skipped``), with descriptions of the
        first (``skipped``); both are of the last pass.
    store : Disk or Store
        Where the paths are.
    """

    kind: str

    def __init__(self, paths: Sequence[Any], n_features: int | None, on_error: str, store: Disk) -> None:
        self.paths = [os.fspath(path) for path in paths]
        self.on_error = on_error
        self.skipped: list[str] = []
        self.n_skipped = 0
        self._store = store
        self._stamps: list[Stamp] = [store.stamp(path) for path in self.paths]
        self._declared = n_features
        self._width = n_features or 0  # as far as it was seen
        self._length: int | None = None
        self._surveyed = False

    @property
    def n_features(self) -> int:
        """Columns; reads everything once if nothing has told yet."""
        if self._declared is None and not self._surveyed:
            self._survey()
        return self._width

    def __len__(self) -> int:
        if self._length is None:
            self._survey()
        assert self._length is not None
        return self._length

    def __getstate__(self) -> dict[str, Any]:
        """Files travel to other processes by name, and must be the same there."""
        return {**self.__dict__, "paths": [self._store.absolute(path) for path in self.paths]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        pairs = zip(self.paths, self._stamps, strict=True)
        self._stamps = [same_here(path, stamp, self._store) for path, stamp in pairs]

    def shares(self: Self, n: int) -> list[Self]:
        """n sources of some of the files, or parts of them, each of about as many bytes; as wide as all together.

        Where ``n_features`` was not given everything is read once. Rows of a group stay together.
        """
        if n == 1:
            return [self]
        units, sizes, names = self._units()
        runs = [(k, k + 1) for k in range(len(units))] if names is None else unparted(names)
        if len(runs) < n:
            raise DataError(self._too_few(len(units), len(runs), n), path=self.paths[0])
        cuts = balanced([sum(sizes[a:b]) for a, b in runs], n)
        return [self._only(units[runs[a][0] : runs[b - 1][1]]) for a, b in pairwise(cuts)]

    def _units(self) -> tuple[list[Any], list[int], Iterable[set[Any]] | None]:
        """What is not cut any further: its parts, their bytes, and the names of the groups in each, if there are."""
        raise NotImplementedError

    def _too_few(self, n_units: int, n_runs: int, n: int) -> str:
        """What to say where there are fewer runs of units than pieces."""
        raise NotImplementedError

    def _only(self: Self, units: list[Any]) -> Self:
        """The same with these units only."""
        raise NotImplementedError

    def _with_files(self: Self, numbers: Iterable[int]) -> Self:
        part = copy.copy(self)
        numbers = list(numbers)
        part.paths = [self.paths[k] for k in numbers]
        part._stamps = [self._stamps[k] for k in numbers]
        part._declared = part._width = self.n_features
        part._length, part.skipped, part.n_skipped = None, [], 0
        return part

    def _said_of_files(self) -> list[tuple[str, int, int]]:
        """What a fingerprint says of the files: their names, sizes and times."""
        return [(os.path.basename(p), s.size, s.changed) for p, s in zip(self.paths, self._stamps, strict=True)]

    def _refuse_order(self, order: np.ndarray | None) -> None:
        if order is not None:
            raise DataError(
                f"{self.kind} can only be read from beginning to end. Convert it first to read it in any order."
            )

    def _read(self) -> Generator[Any, None, None]:
        """A whole pass."""
        raise NotImplementedError

    def _survey(self) -> None:
        for _ in self._read():
            pass


def balanced(weights: Sequence[float], n: int) -> list[int]:
    """Where to cut things of these weights into n runs: n + 1 positions, from 0 to their number.

    Each cut is where the sum is nearest to its share of the total. No run is empty while another could be parted; so
    the heaviest is at most one thing heavier than the mean.

    >>> balanced([1, 1, 1, 1, 4], 2)
    [0, 4, 5]
    >>> balanced([9, 1], 3)
    [0, 1, 2, 2]
    """
    count = len(weights)
    if count <= n:
        return [min(k, count) for k in range(n + 1)]
    sums = np.concatenate([[0.0], np.cumsum(weights, dtype=np.float64)])
    cuts = [0]
    for k in range(1, n):
        share = sums[-1] * k / n
        at = int(np.searchsorted(sums, share))
        if at and share - sums[at - 1] <= sums[at] - share:
            at -= 1
        cuts.append(min(max(at, cuts[-1] + 1), count - (n - k)))
    return [*cuts, count]


def unparted(names: Iterable[set[Any]]) -> list[tuple[int, int]]:
    """Runs of things as short as can be, such that no name is in two of them; ``names`` are those of each thing.

    >>> unparted([{"a"}, {"a", "b"}, {"c"}])
    [(0, 2), (2, 3)]
    """
    first: dict[Any, int] = {}
    begins: list[int] = []
    count = 0
    for here in names:
        begin = min((first.setdefault(name, count) for name in here), default=count)
        begins = [b for b in begins if b <= begin]  # runs that began later are one with the run of that name
        if begin == count:
            begins.append(count)
        count += 1
    return list(zip(begins, [*begins[1:], count], strict=True))
