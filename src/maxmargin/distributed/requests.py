"""Questions to the workers that have the examples, asked again if a worker dies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..data.errors import DataError
from ..protocols import OracleError
from .searching import Piece
from .worker_group import Arguments, Call, WorkerGroup

_T = TypeVar("_T", np.ndarray, list)


class Requests:
    """The workers of a group by the examples that they have, worker after worker in the order of the data.

    Parameters
    ----------
    workers : WorkerGroup
        Their recipes are ``Searches``.
    n_examples : int
        Of the data, all of which the workers must have.
    """

    def __init__(self, workers: WorkerGroup, n_examples: int) -> None:
        self.workers = workers
        self.pieces: list[Piece] = workers.ask("ask", lambda k: ("piece",))
        self.first = np.cumsum([0, *(piece.n_examples for piece in self.pieces)])
        self.n_examples = int(self.first[-1])
        self.staffed = [k for k, piece in enumerate(self.pieces) if piece.n_examples]
        """Workers that have examples."""
        self._told: object = None
        self._shared: tuple[np.ndarray, Any] | None = None
        if self.n_examples != n_examples:
            raise DataError(
                f"The workers have {self.n_examples} examples, the driver has counted {n_examples}. Do all machines "
                "see the same files?"
            )

    def by_worker(self, ids: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """(worker, where its examples stand among these), in their order."""
        worker = np.searchsorted(self.first, ids, side="right") - 1
        return [(k, np.flatnonzero(worker == k)) for k in np.unique(worker).tolist()]

    def cut(self, values: _T, k: int) -> _T:
        """The part of a worker, of a sequence with an entry for every example."""
        return values[self.first[k] : self.first[k + 1]]

    def sent(self, array: np.ndarray) -> Any:
        """An array as an argument of questions: the same weights are shared once, however many are asked."""
        if self._shared is None or not np.array_equal(self._shared[0], array):
            copy = array.copy()
            self._shared = copy, self.workers.transport.broadcast(copy)
        return self._shared[1]

    def tell(self, about: object, args: Arguments) -> None:
        """Have all workers know what the questions to come are about, those included that start anew."""
        if self._told is not about:
            self.workers.set_up("ask", args)
            self._told = about

    def ask(self, k: int, *question: Any, before: Callable[[], None] | None = None) -> Question:
        """Ask a worker's recipe; ``before`` makes sure that the worker knows what it is about."""
        return Question(self, k, question, before)

    def ask_all(self, question: Arguments, before: Callable[[], None] | None = None) -> list[Any]:
        """The answers of all workers that have examples."""
        return [call.result() for call in [self.ask(k, *question(k), before=before) for k in self.staffed]]


class Question(Call):
    """A question to the recipe of one worker. Errors have the example's number among all."""

    def __init__(
        self, requests: Requests, k: int, question: tuple[Any, ...], before: Callable[[], None] | None
    ) -> None:
        def arguments(_: int) -> tuple[Any, ...]:
            if before is not None:
                before()
            return question

        self._span = requests.first[k : k + 2].tolist()
        super().__init__(requests.workers, k, "ask", arguments)
        self._asked = question[0]

    def result(self) -> Any:
        try:
            return super().result()
        except OracleError as error:
            if error.example < 0:
                raise
            a, b = self._span
            text = f"In examples {a} to {b - 1}, counted from the first of them: {error}"
            raise OracleError(text, a + error.example) from error
