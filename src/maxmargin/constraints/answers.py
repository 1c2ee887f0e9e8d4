"""Answers behind planes: several lists as one, and without rows where memory is short."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..problem import Planes

_OBJECT = 112  # bytes of an array besides its numbers


def bytes_of(answer: object) -> int:
    """Bytes of an answer, as far as it tells."""
    size = getattr(answer, "nbytes", None)
    return sys.getsizeof(answer) if size is None else size + _OBJECT


class Packed(Sequence[Any]):
    """A list of answers that takes little room: whole numbers, and arrays and tuples of them, stand in one array.

    It is as narrow as they allow. Answers of any other kind are kept as they are.

    >>> some = Packed([np.array([3, 1]), np.array([2])])
    >>> len(some), some[0], some.nbytes
    (2, array([3, 1]), 27)
    """

    def __init__(self, answers: Sequence[Any]) -> None:
        kinds = {_packable(answer) for answer in answers}
        self._kind = kinds.pop() if len(kinds) == 1 else None
        self._list: list[Any] = []
        self._first = np.zeros(1, np.int64)
        self._flat = np.empty(0, np.int8)
        if self._kind is None:
            self._list = list(answers)
        elif self._kind is int:
            self._flat = _narrow(np.array(answers))
        else:
            self._first = np.concatenate([[0], np.cumsum([len(a) for a in answers])])
            self._flat = _narrow(np.concatenate([np.asarray(a, np.int64) for a in answers]))

    def __len__(self) -> int:
        if self._kind is None:
            return len(self._list)
        return self._flat.size if self._kind is int else self._first.size - 1

    def __getitem__(self, i: Any) -> Any:
        if self._kind is None:
            return self._list[i]
        if self._kind is int:
            return int(self._flat[i])
        i = range(len(self))[i]
        answer = self._flat[self._first[i] : self._first[i + 1]]
        return tuple(answer.tolist()) if self._kind is tuple else answer.astype(self._kind)

    @property
    def nbytes(self) -> int:
        listed = sum(8 + bytes_of(a) for a in self._list)
        return listed + self._flat.nbytes + (self._first.nbytes if self._first.size > 1 else 0)


class Joined(Sequence[Any]):
    """Several sequences as one, none of them copied; in another order, if one is given."""

    def __init__(self, parts: Sequence[Sequence[object]], order: np.ndarray | None = None) -> None:
        self._parts = [part for part in parts if len(part)]
        self._ends = np.cumsum([0, *map(len, self._parts)])
        self._order = np.arange(self._ends[-1]) if order is None else order

    def __len__(self) -> int:
        return self._order.size

    def __getitem__(self, i: Any) -> Any:
        i = int(self._order[i])
        part = int(np.searchsorted(self._ends, i, side="right")) - 1
        return self._parts[part][i - int(self._ends[part])]


class Spilled:
    """Shares whose planes are not at hand: answers can be asked for by example, to form the planes anew.

    Parameters
    ----------
    n_examples : int
    """

    def __init__(self, n_examples: int) -> None:
        self._blocks: dict[int, Planes] = {}
        self._next = 0
        self._where = np.full(n_examples, -1, np.int32)
        """In which block the shares of each example are; all of them are in one."""

    def __len__(self) -> int:
        return sum(map(len, self._blocks.values()))

    def has(self, ids: np.ndarray) -> bool:
        """Whether any of these examples has shares here."""
        return bool(self._blocks) and bool((self._where[ids] >= 0).any())

    @property
    def nbytes(self) -> int:
        """Bytes of answers and shares; nothing while nothing is spilled."""
        if not self._blocks:
            return 0
        return self._where.nbytes + sum(
            b.example.nbytes + b.alpha.nbytes + b.labels.nbytes  # type: ignore[attr-defined]
            for b in self._blocks.values()
        )

    def put(self, shares: Planes) -> None:
        """Take in all shares of some examples that had none here."""
        if len(shares):
            self._where[shares.example] = self._next
            self._blocks[self._next] = Planes(shares.example, Packed(shares.labels), shares.alpha)
            self._next += 1

    def take(self, ids: np.ndarray) -> Planes:
        """Hand out the shares of these examples, by example; they are not here any more."""
        wanted = np.zeros(self._where.size, bool)
        wanted[ids] = True
        found = []
        blocks = np.unique(self._where[ids])
        for number in blocks[blocks >= 0].tolist():
            block = self._blocks.pop(number)
            chosen = wanted[block.example]
            self._where[block.example] = -1
            found.append(block.chosen(np.flatnonzero(chosen)))
            self.put(block.chosen(np.flatnonzero(~chosen)))
        taken = joined_planes(found)
        return taken.chosen(np.argsort(taken.example, kind="stable"))

    def all(self) -> list[Planes]:
        """Everything here, which stays."""
        return list(self._blocks.values())


def joined_planes(parts: list[Planes]) -> Planes:
    """Shares one part after the other; answers are not copied."""
    return Planes(
        np.concatenate([np.empty(0, np.int64), *(part.example for part in parts)]),
        Joined([part.labels for part in parts]),
        np.concatenate([np.empty(0), *(part.alpha for part in parts)]),
    )


def _packable(answer: Any) -> type | np.dtype | None:
    """What kind of whole numbers the answer is made of; None: it is of some other kind."""
    if type(answer) is int or (type(answer) is tuple and all(type(v) is int for v in answer)):
        return type(answer)
    whole = isinstance(answer, np.ndarray) and answer.ndim == 1 and answer.dtype.kind in "iu"
    return answer.dtype if whole else None


def _narrow(numbers: np.ndarray) -> np.ndarray:
    """The same whole numbers in the fewest bytes."""
    if not numbers.size:
        return numbers.astype(np.int8)
    return numbers.astype(np.result_type(np.min_scalar_type(numbers.min()), np.min_scalar_type(numbers.max())))
