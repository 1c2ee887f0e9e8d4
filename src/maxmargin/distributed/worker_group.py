"""All workers of a run as one: questions to everybody, rounds, and what to do when one of them dies or is slow."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .transport import Ticket, Transport, WorkerDied

_DEATHS_IN_A_ROW = 50  # of one worker, without an answer in between: then something else is wrong
_SLOW = 8.0  # times the median time of the others
_AT_LEAST = 5.0  # seconds: below this nobody is called slow

Arguments = Callable[[int], tuple[Any, ...]]
"""What a worker, by its number, is told or asked besides the name of the method."""


class WorkerGroup:
    """The workers of a transport, each with a ``Shard``.

    A worker that dies is started anew, and is told again all that it must know (``set_up``). Dual variables that it had
    not saved are lost, and with them only a part of the way: whoever keeps sums over all shards must form them anew,
    and sees by ``deaths`` that he must.

    Parameters
    ----------
    transport : Transport
    makers : functions
        One for each worker; see ``Transport.start``.
    give_up : float
        Seconds after which a worker that does not answer is ended and started anew. It may be the work that is long:
        once it has answered, all have as many seconds as it was given, twice as many each time.
    """

    def __init__(self, transport: Transport, makers: Sequence[Callable[[], Any]], give_up: float = 600.0) -> None:
        self.transport = transport
        self.give_up = give_up
        self.deaths = 0
        transport.start(makers)
        self.size = len(makers)
        self.starts = [0] * self.size
        """How often each worker was started anew."""
        self._told: list[tuple[str, Arguments]] = []
        self._late: dict[int, tuple[Ticket, float]] = {}

    def set_up(self, method: str, args: Arguments) -> list[Any]:
        """Tell every worker something that it must be told again whenever it starts anew.

        ``args`` is asked at that time, with the number of the worker. What was told by the same method before is
        forgotten, and all that was told after it.
        """
        known = [told for told, _ in self._told]
        if method in known:
            del self._told[known.index(method) :]
        answers = self.ask(method, args)
        self._told.append((method, args))
        return answers

    def ask(self, method: str, args: Arguments = lambda k: ()) -> list[Any]:
        """The answers of all workers, in their order. Those that die are asked again."""
        return [call.result() for call in self._call_all(method, args)]

    def total(self, method: str, args: Arguments = lambda k: ()) -> tuple[list[Any], tuple[np.ndarray, ...]]:
        """The same, and the sums of what is heavy in the answers."""
        while True:
            calls = self._call_all(method, args)
            answers = [call.result() for call in calls]
            try:
                return answers, self.transport.add_up([call.ticket for call in calls])
            except WorkerDied as died:
                self._revive(died.worker)  # after it had answered, before its answer was fetched

    def _call_all(self, method: str, args: Arguments) -> list[Call]:
        if self._late:
            # Rounds of slow workers go unheard: the sums that were kept without them do not hold any more.
            self._late.clear()
            self.deaths += 1
        return [Call(self, k, method, args) for k in range(self.size)]

    def round(self, method: str, args: Arguments) -> tuple[dict[int, Any], tuple[np.ndarray, ...]]:
        """Call all workers once. Whoever has died, or is slow beyond reason, is left out of the answer.

        What a slow one finds is in the answer of the round in which it comes; until then it is not called.
        """
        try:
            return self._round(method, args)
        except BaseException:
            self.deaths += 1  # answers will go unheard, and sums that were kept without them do not hold
            raise

    def _round(self, method: str, args: Arguments) -> tuple[dict[int, Any], tuple[np.ndarray, ...]]:
        began = time.monotonic()
        for k in [k for k, (_, since) in self._late.items() if began - since > self.give_up]:
            self._revive(k)
        late = {k: ticket for k, (ticket, _) in self._late.items()}
        called = {k: self.transport.send(k, method, *args(k)) for k in range(self.size) if k not in late}
        answers: dict[int, tuple[Ticket, Any]] = {}
        lost: list[int] = []
        times: list[float] = []
        waiting = called | late
        while waiting and (called.keys() & waiting.keys() or not answers):
            patience = max(_AT_LEAST, _SLOW * statistics.median(times)) if 2 * len(times) >= self.size else self.give_up
            left = patience - (time.monotonic() - began)
            done = self.transport.wait(list(waiting.values()), max(left, 0.0))
            if not done and left <= 0.0:
                break
            for ticket in done:
                k = ticket.worker
                del waiting[k]
                self._late.pop(k, None)
                times.append(time.monotonic() - began)
                try:
                    answers[k] = ticket, ticket.result()
                except WorkerDied:
                    lost.append(k)
        if not answers and time.monotonic() - began >= self.give_up:
            lost += waiting
            self.give_up *= 2.0
        for k, ticket in waiting.items():
            self._late.setdefault(k, (ticket, began))
        heavy = self._added(answers, lost)
        for k in lost:
            self._revive(k)
        return {k: light for k, (_, light) in sorted(answers.items())}, heavy

    def _added(self, answers: dict[int, tuple[Ticket, Any]], lost: list[int]) -> tuple[np.ndarray, ...]:
        """The sums of what is heavy; an answer that cannot be fetched any more is left out."""
        while answers:
            try:
                return self.transport.add_up([ticket for _, (ticket, _) in sorted(answers.items())])
            except WorkerDied as died:
                del answers[died.worker]
                lost.append(died.worker)
        return ()

    def shutdown(self, method: str, *args: Any, patience: float = 10.0) -> None:
        """A last call to all workers. Whoever has died, or does not answer in time, is not waited for."""
        waiting = [self.transport.send(k, method, *args) for k in range(self.size)]
        end = time.monotonic() + patience
        while waiting and (done := self.transport.wait(waiting, max(end - time.monotonic(), 0.0))):
            waiting = [ticket for ticket in waiting if ticket not in done]

    def start_anew(self, k: int, starts: int) -> None:
        """Start a worker anew that has died or is silent, unless that was done since its ``starts`` were counted."""
        if self.starts[k] == starts:
            self._revive(k)

    def _revive(self, k: int) -> None:
        """Start a worker anew, and tell it all that it must know."""
        self.deaths += 1
        self.starts[k] += 1
        self._late.pop(k, None)
        for _ in range(_DEATHS_IN_A_ROW):
            self.transport.restart(k)
            try:
                for method, args in self._told:
                    ticket = self.transport.send(k, method, *args(k))
                    if not self.transport.wait([ticket], self.give_up):
                        break  # it hangs
                    ticket.result()
                else:
                    return
            except WorkerDied:
                continue
        raise WorkerDied(k, f"{_DEATHS_IN_A_ROW} times in a row while it was being set up")


class Call:
    """A call to one worker, which is sent again if that dies or is silent for too long.

    Parameters
    ----------
    workers : WorkerGroup
    k : int
        The number of the worker.
    method : str
    args : function
        Asked whenever the call is sent.
    """

    def __init__(self, workers: WorkerGroup, k: int, method: str, args: Arguments) -> None:
        self._workers, self._k, self._method, self._args = workers, k, method, args
        self._asked = method
        self._send()

    def _send(self) -> None:
        args = self._args(self._k)  # before the starts are counted: it may have the worker set up, and started anew
        self._starts = self._workers.starts[self._k]
        self.ticket = self._workers.transport.send(self._k, self._method, *args)

    def result(self) -> Any:
        workers, k = self._workers, self._k
        patience = workers.give_up
        for _ in range(_DEATHS_IN_A_ROW):
            try:
                if workers.transport.wait([self.ticket], patience):
                    answer = self.ticket.result()
                    workers.give_up = max(workers.give_up, patience)
                    return answer
                patience *= 2.0
            except WorkerDied:
                pass
            workers.start_anew(k, self._starts)
            self._send()
        raise WorkerDied(k, f"{_DEATHS_IN_A_ROW} times in a row while it was asked for {self._asked}")
