"""All workers of a run as one: questions to everybody, and what to do when one of them dies or hangs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .transport import Transport, WorkerDied

_DEATHS_IN_A_ROW = 50  # of one worker, without an answer in between: then something else is wrong

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
        try:
            while True:
                calls = self._call_all(method, args)
                answers = [call.result() for call in calls]
                try:
                    return answers, self.transport.add_up([call.ticket for call in calls])
                except WorkerDied as died:
                    self._revive(died.worker)  # after it had answered, before its answer was fetched
        except BaseException:
            self.deaths += 1  # answers go unheard, and sums that were kept without them do not hold any more
            raise

    def _call_all(self, method: str, args: Arguments) -> list[Call]:
        return [Call(self, k, method, args) for k in range(self.size)]

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
        for _ in range(_DEATHS_IN_A_ROW):
            try:
                self.transport.restart(k)
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
