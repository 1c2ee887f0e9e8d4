"""Questions to the workers that have the examples, asked again if a worker dies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..protocols import OracleError
from .transport import WorkerDied
from .worker_group import WorkerGroup

_TRIES = 50  # deaths over one question: then it is the question that kills
_LARGE = 2**15  # bytes from which on an array is shared rather than sent along with each question


class Requests:
    """The workers of a group by the examples that they have, worker after worker in the order of the data.

    Parameters
    ----------
    workers : WorkerGroup
    sizes : list of int
        How many examples each has.
    """

    def __init__(self, workers: WorkerGroup, sizes: list[int]) -> None:
        self.workers = workers
        self.first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.staffed = [k for k, n in enumerate(sizes) if n]
        """Workers that have examples."""
        self._told: object = None
        self._shared: tuple[np.ndarray, Any] | None = None

    @property
    def n_examples(self) -> int:
        return int(self.first[-1])

    def whose(self, ids: np.ndarray) -> np.ndarray:
        """The worker that has each of these examples."""
        return np.searchsorted(self.first, ids, side="right") - 1

    def cut(self, values: Any, k: int) -> Any:
        """The part of a worker, of a sequence with an entry for every example."""
        return values[self.first[k] : self.first[k + 1]]

    def sent(self, array: np.ndarray) -> Any:
        """An array as an argument of questions: the same weights are shared once, however many are asked."""
        if array.nbytes < _LARGE:
            return array
        if self._shared is None or not np.array_equal(self._shared[0], array):
            copy = array.copy()
            self._shared = copy, self.workers.transport.broadcast(copy)
        return self._shared[1]

    def tell(self, about: object, args: Callable[[int], tuple[Any, ...]]) -> None:
        """Have all workers know what the questions to come are about, those included that start anew."""
        if self._told is not about:
            self.workers.set_up("ask", args)
            self._told = about

    def ask(self, k: int, *question: Any, before: Callable[[], None] | None = None) -> Call:
        """Ask a worker's recipe; ``before`` makes sure that the worker knows what it is about."""
        return Call(self, k, question, before)

    def ask_all(self, question: Callable[[int], tuple[Any, ...]], before: Callable[[], None] | None = None) -> list:
        """The answers of all workers that have examples."""
        return together([self.ask(k, *question(k), before=before) for k in self.staffed])


class Call:
    """A question under way."""

    def __init__(
        self, requests: Requests, k: int, question: tuple[Any, ...], before: Callable[[], None] | None
    ) -> None:
        self._requests, self._k, self._question, self._before = requests, k, question, before
        self._send()

    def _send(self) -> None:
        if self._before is not None:
            self._before()
        workers = self._requests.workers
        self._deaths = workers.deaths
        self._ticket = workers.transport.send(self._k, "ask", *self._question)

    def result(self) -> Any:
        """The answer; a worker that has died, or is silent for too long, is started anew and asked again.

        Each time it is silent it has twice as long: it may be the question that takes so long.
        """
        workers, k = self._requests.workers, self._k
        patience = workers.give_up
        for _ in range(_TRIES):
            try:
                if workers.transport.wait([self._ticket], patience):
                    return self._ticket.result()
                patience *= 2.0
            except WorkerDied:
                pass
            except OracleError as error:
                raise self._placed(error) from error
            workers.start_anew(k, self._deaths)
            self._send()
        raise WorkerDied(k, f"{_TRIES} times in a row while it was asked for {self._question[0]}")

    def _placed(self, error: OracleError) -> OracleError:
        """The error with the example's number among all."""
        a, b = self._requests.first[self._k : self._k + 2].tolist()
        if error.example < 0:
            return error
        return OracleError(f"In examples {a} to {b - 1}, counted from the first of them: {error}", a + error.example)


def together(calls: Iterable[Call]) -> list[Any]:
    """The answers to questions that are all under way."""
    return [call.result() for call in list(calls)]
