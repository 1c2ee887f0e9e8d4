"""Parallel oracles: workers search among their own examples, the driver keeps what they find and optimizes.

The cache, the weights and the dual variables are the driver's, so all solvers for open problems work as they do on one
machine, and so do their certificates, warm starts and checkpoints. Workers only answer questions, and remember nothing:
one that dies is started anew and asked again, and nothing is lost.

Each question goes to one worker and is about examples of its own. Chunks of the workers take turns, and as each
worker has its next question before it has answered the last one, all of them are at work while the driver takes in
what was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..constraints.answers import Packed
from ..constraints.sourced import joined
from ..constraints.sums import DualSums
from ..data.arrays import as_rows
from ..problem import Planes, Rivals, TotalLoss, Totals
from .requests import Question, Requests

_EACH = 2  # questions that a worker has at a time: the one it works on and the next
_STALE = 4  # at most this part of all examples is searched at weights that are on their way
_LEAST = 4  # examples in a question: less is not worth a message


class RemoteOracle:
    """An ``Oracle`` whose examples are with the workers of a group.

    Parameters
    ----------
    requests : Requests
    n_weights : int
    before : function or None
        Makes sure that the workers know which problem the questions are about.
    relaxed : bool
        Whether rivals may be other than answers of the model.
    """

    def __init__(
        self,
        requests: Requests,
        n_weights: int,
        before: Callable[[], None] | None = None,
        relaxed: bool = False,
    ) -> None:
        self._requests, self._before, self.relaxed = requests, before, relaxed
        self.n_examples, self.n_weights = requests.n_examples, n_weights
        self.releases_gil = all(piece.releases_gil for piece in requests.pieces)
        self.n_ahead = _EACH * len(requests.staffed)
        """How many chunks may be under way."""

    def submit(self, ids: np.ndarray, w: np.ndarray) -> Found:
        """Have examples searched; does not wait."""
        sent = self._requests.sent(w)
        return Found(self._ask("rivals", ids, lambda at: (sent,)), self.n_weights)

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> Rivals:
        return self.submit(ids, w).result()

    def planes(self, ids: np.ndarray, labels: Sequence[Any]) -> Rivals:
        return Found(self._ask("planes", ids, lambda at: (_packed(labels, at),)), self.n_weights).result()

    def chunked(self, ids: np.ndarray, size: int) -> list[np.ndarray]:
        """The same examples in chunks that each belong to one worker, all workers taking turns.

        Examples that a worker reads from a source come in the order of its chunks, so that each is read once.
        """
        size = min(size, max(_LEAST, self.n_examples // (_STALE * max(self.n_ahead, 1))))
        queues = []
        for mine in self._as_read(ids):
            queues.append([mine[start : start + size] for start in range(0, mine.size, size)])
        return _in_turn(queues)

    def at_once(self, ids: np.ndarray) -> list[np.ndarray]:
        """The same in few, large chunks, for searches at the same weights."""
        largest = -(-self.n_examples // max(self.n_ahead * _EACH, 1))
        queues = [np.array_split(mine, max(1, mine.size // largest)) for mine in self._as_read(ids)]
        return _in_turn(queues)

    def evaluate(self, w: np.ndarray, budget: np.ndarray) -> TotalLoss:
        """Σ C_i·(loss of example i): one question to each worker."""
        sent = self._requests.sent(w)

        def question(k: int) -> tuple[Any, ...]:
            return "evaluate", sent, budget if budget.size == 1 else self._requests.cut(budget, k)

        return TotalLoss.sum(self._requests.ask_all(question, self._before))

    def sums(self, alpha: Planes) -> Totals:
        """What shares come to, which workers find out: rows stay where they are."""
        calls = self._ask("sums", alpha.example, lambda at: (_packed(alpha.labels, at), alpha.alpha[at]))
        sums = DualSums(self.n_weights)
        for _, call in calls:
            sums.add(call.result())
        return sums.totals()

    def _ask(
        self, method: str, ids: np.ndarray, more: Callable[[np.ndarray], tuple[Any, ...]]
    ) -> list[tuple[np.ndarray, Question]]:
        """(where its examples stand among these, the question) for every worker that has any of these examples."""
        ask, first, by_worker = self._requests.ask, self._requests.first, self._requests.by_worker(ids)
        return [(at, ask(k, method, ids[at] - first[k], *more(at), before=self._before)) for k, at in by_worker]

    def _as_read(self, ids: np.ndarray) -> Iterator[np.ndarray]:
        """The examples of one worker after the other, in the order in which it reads them."""
        for k, at in self._requests.by_worker(ids):
            mine = ids[at]
            part = np.searchsorted(self._requests.pieces[k].offsets, mine - self._requests.first[k], side="right")
            yield mine[np.argsort(part, kind="stable")]


class Found:
    """Answers under way, from one worker or from several."""

    def __init__(self, calls: list[tuple[np.ndarray, Question]], n_weights: int) -> None:
        self._calls, self._n_weights = calls, n_weights

    def result(self) -> Rivals:
        """All of them, in the order in which they were asked for."""
        if not self._calls:
            return Rivals([], as_rows(sp.csr_matrix((0, self._n_weights))), np.empty(0))
        parts = [_own(call.result()) for _, call in self._calls]
        return parts[0] if len(parts) == 1 else joined(parts, np.concatenate([at for at, _ in self._calls]))


def _packed(labels: Sequence[Any], at: np.ndarray) -> Packed:
    return Packed([labels[p] for p in at.tolist()])


def _in_turn(queues: list[list[np.ndarray]]) -> list[np.ndarray]:
    """All queues as one, in which each of them is spread evenly, so that they end at the same time."""
    turns = [((i + 0.5) / len(queue), chunk) for queue in queues for i, chunk in enumerate(queue)]
    return [chunk for _, chunk in sorted(turns, key=lambda turn: turn[0])]


def _own(rivals: Rivals) -> Rivals:
    """Answers as a list, and arrays that kernels take: some transports give out such that cannot be written to."""
    rows = rivals.rows
    if not rows.data.flags.writeable or not rivals.losses.flags.writeable:
        rows = replace(rows, indptr=np.array(rows.indptr), indices=np.array(rows.indices), data=np.array(rows.data))
        rows = replace(rows, plus=np.array(rows.plus), minus=np.array(rows.minus))
        rivals = replace(rivals, rows=rows, losses=np.array(rivals.losses))
    return replace(rivals, labels=list(rivals.labels))
