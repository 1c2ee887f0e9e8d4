"""The cache of hard examples: features of placements that are, or were, of consequence."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...constraints.shared import SharedSlack
from ...problem import Planes, Rows

_IDLE = 4  # how often an example may be worked on without a share before it leaves


class HardExamples:
    """Constraints at hand, each a placement with its features and its share; several may belong to one example.

    Parameters
    ----------
    n_weights, placement_length : int
    n_positives : int
        Examples below that number are positive: their scores shall be high, those of the others low.
    room : int
        Most constraints.
    """

    def __init__(self, n_weights: int, placement_length: int, n_positives: int, room: int) -> None:
        self.n_weights, self.n_positives, self.room = n_weights, n_positives, room
        self.example = np.empty(0, np.int64)
        self.placement = np.empty((0, placement_length), np.int32)
        self.alpha = np.empty(0)
        self.idle = np.empty(0, np.int64)
        self.slot = np.empty(0, np.int32)
        """Where the features stand in the store."""
        self.norms = np.empty(0, np.float32)
        self._store = np.empty((0, n_weights), np.float32)
        self._free: list[int] = []
        self.known: set[bytes] = set()

    def __len__(self) -> int:
        return self.alpha.size

    @property
    def nbytes(self) -> int:
        return len(self) * (self._store.itemsize * self.n_weights + 64 + 4 * self.placement.shape[1])

    @staticmethod
    def key(example: int, placement: np.ndarray) -> bytes:
        return example.to_bytes(8, "little") + placement.tobytes()

    def unknown(self, example: np.ndarray, placements: np.ndarray) -> np.ndarray:
        """Which of these are not at hand, as a mask."""
        pairs = zip(example.tolist(), placements, strict=True)
        return np.array([self.key(i, place) not in self.known for i, place in pairs], bool)

    def add(self, example: np.ndarray, placements: np.ndarray, features: np.ndarray, alpha: Any = 0.0) -> None:
        """Take in constraints that are not at hand yet, with their shares."""
        n = example.size
        self._make_room(n)
        slots = [self._free.pop() for _ in range(n)]
        self._store[slots] = features
        self.example = np.concatenate([self.example, example])
        self.placement = np.concatenate([self.placement, placements])
        self.alpha = np.concatenate([self.alpha, np.broadcast_to(alpha, n)])
        self.idle = np.concatenate([self.idle, np.zeros(n, np.int64)])
        self.slot = np.concatenate([self.slot, np.array(slots, np.int32)])
        self.norms = np.concatenate([self.norms, np.full(n, -1.0, np.float32)])
        self.known.update(self.key(i, place) for i, place in zip(example.tolist(), placements, strict=True))

    def _make_room(self, n: int) -> None:
        """Grow the store: to twice its size while there is room, and then by no more than is needed."""
        short = n - len(self._free)
        if short > 0:
            size = len(self._store)
            wanted = max(size + short, min(2 * size, self.room))
            grown = np.empty((wanted, self.n_weights), np.float32)
            grown[:size] = self._store
            self._store = grown
            self._free += list(range(wanted - 1, size - 1, -1))

    def forget_idle(self, coming: int = 0) -> None:
        """Constraints without a share leave after a while; earlier where there is too little room for those to come."""
        for patience in (_IDLE, 2, 1):
            stay = (self.alpha > 0.0) | (self.idle < patience) | (self.example < self.n_positives)
            if stay.sum() + coming <= self.room or patience == 1:
                break
        if stay.all():
            return
        for at in np.flatnonzero(~stay).tolist():
            self.known.discard(self.key(int(self.example[at]), self.placement[at]))
            self._free.append(int(self.slot[at]))
        self._select(stay)

    def sort(self) -> None:
        """Constraints of one example next to each other."""
        self._select(np.argsort(self.example, kind="stable"))

    def _select(self, chosen: np.ndarray) -> None:
        """Only these, a mask or places, in this order."""
        self.example, self.placement, self.alpha = self.example[chosen], self.placement[chosen], self.alpha[chosen]
        self.idle, self.slot, self.norms = self.idle[chosen], self.slot[chosen], self.norms[chosen]

    def constraints(self, budget: np.ndarray) -> SharedSlack:
        """The cached problem; ``sort`` first. ``budget`` is C_i for each constraint."""
        first = np.flatnonzero(np.diff(self.example, prepend=-1, append=-1))
        rows = Rows(
            np.empty(0, np.int64),
            np.empty(0, np.int32),
            self._store.reshape(-1),
            len(self._store),
            self.n_weights,
            first=self.slot,
            second=np.full(len(self), -1, np.int32),
        )
        heads = first[:-1]
        side = np.where(self.example[heads] < self.n_positives, 1, -1).astype(np.int8)
        return SharedSlack(rows, np.ones(len(self)), first, budget[heads], side)

    def worked_on(self, alpha: np.ndarray, norms: np.ndarray) -> None:
        self.alpha, self.norms = alpha, norms
        self.idle = np.where(alpha > 0.0, 0, self.idle + 1)

    def planes(self) -> Planes:
        """The shares, without features."""
        some = self.alpha > 0.0
        labels: Any = self.placement[some]
        return Planes(self.example[some], labels, self.alpha[some])
