"""All workers of a run as one: questions to everybody, rounds, and what to do when one of them dies or dawdles."""

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
        Seconds after which a worker that does not answer is ended and started anew. Where none of those asked has
        answered in that time, it is the work that is long: they have twice as many from then on.
    """

    def __init__(self, transport: Transport, makers: Sequence[Callable[[], Any]], give_up: float = 600.0) -> None:
        self.transport = transport
        self.give_up = give_up
        self.deaths = 0
        transport.start(makers)
        self.size = len(makers)
        self._told: list[tuple[str, Callable[[int], tuple[Any, ...]]]] = []
        self._late: dict[int, tuple[Ticket, float]] = {}

    def set_up(self, method: str, args: Callable[[int], tuple[Any, ...]]) -> list[Any]:
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

    def ask(self, method: str, args: Callable[[int], tuple[Any, ...]] = lambda k: ()) -> list[Any]:
        """The answers of all workers, in their order. Those that die are asked again."""
        return [ticket.result() for ticket in self._answered(method, args)]

    def total(
        self, method: str, args: Callable[[int], tuple[Any, ...]] = lambda k: ()
    ) -> tuple[list[Any], tuple[np.ndarray, ...]]:
        """The same, and the sums of what is heavy in the answers."""
        while True:
            tickets = self._answered(method, args)
            try:
                return [ticket.result() for ticket in tickets], self.transport.add_up(tickets)
            except WorkerDied as died:
                self._revive(died.worker)  # after it had answered, before its answer was fetched

    def round(
        self, method: str, args: Callable[[int], tuple[Any, ...]]
    ) -> tuple[dict[int, Any], tuple[np.ndarray, ...]]:
        """Call all workers once. Whoever has died, or is slow beyond reason, is left out of the answer.

        What a slow one finds is in the answer of the round in which it comes; until then it is not called.
        """
        try:
            return self._round(method, args)
        except BaseException:
            self.deaths += 1  # answers will go unheard, and sums that were kept without them do not hold
            raise

    def _round(
        self, method: str, args: Callable[[int], tuple[Any, ...]]
    ) -> tuple[dict[int, Any], tuple[np.ndarray, ...]]:
        began = time.monotonic()
        for k, (_, since) in list(self._late.items()):
            if began - since > self.give_up:
                del self._late[k]
                self._revive(k)
        late = {k: ticket for k, (ticket, _) in self._late.items()}
        called = {k: self.transport.send(k, method, *args(k)) for k in range(self.size) if k not in late}
        answers: dict[int, tuple[Ticket, Any]] = {}
        lost: list[int] = []
        times: list[float] = []
        waiting = {**called, **late}
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
        silent = not answers and time.monotonic() - began >= self.give_up
        for k, ticket in waiting.items():
            self._late.setdefault(k, (ticket, began))
            if silent:
                lost.append(k)
        if silent:
            self.give_up *= 2.0
        heavy = self._added(answers, lost)
        for k in lost:
            self._late.pop(k, None)
            self._revive(k)
        return {k: light for k, (_, light) in sorted(answers.items())}, heavy

    def give_back(self, k: int, places: np.ndarray, alpha: np.ndarray) -> None:
        """Dual variables that a worker has handed over, and shall have again."""
        ticket = self.transport.send(k, "take_back", places, alpha)
        try:
            if self.transport.wait([ticket], self.give_up):
                return ticket.result()
        except WorkerDied:
            pass
        self._revive(k)

    def shutdown(self, method: str, *args: Any, patience: float = 10.0) -> None:
        """A last call to all workers. Whoever has died, or does not answer in time, is not waited for."""
        waiting = [self.transport.send(k, method, *args) for k in range(self.size)]
        end = time.monotonic() + patience
        while waiting and (done := self.transport.wait(waiting, max(end - time.monotonic(), 0.0))):
            waiting = [ticket for ticket in waiting if ticket not in done]

    def start_anew(self, k: int, deaths: int) -> None:
        """Start a worker anew that has died or is silent, unless somebody was started since ``deaths`` were counted."""
        if self.deaths == deaths:
            self._revive(k)

    def _added(self, answers: dict[int, tuple[Ticket, Any]], lost: list[int]) -> tuple[np.ndarray, ...]:
        """The sums of what is heavy; an answer that cannot be fetched any more is left out."""
        while answers:
            try:
                return self.transport.add_up([ticket for _, (ticket, _) in sorted(answers.items())])
            except WorkerDied as died:
                del answers[died.worker]
                lost.append(died.worker)
        return ()

    def _answered(self, method: str, args: Callable[[int], tuple[Any, ...]]) -> list[Ticket]:
        """A ticket of every worker whose answer is there. Those that slow ones owe are waited for, and dropped."""
        tickets: dict[int, Ticket] = {}
        if self._late:
            # Their rounds go unheard: the sums that were kept without them do not hold any more.
            self._late.clear()
            self.deaths += 1
        missing = list(range(self.size))
        tries = dict.fromkeys(missing, 0)
        while missing:
            sent = {k: self.transport.send(k, method, *args(k)) for k in missing}
            missing = []
            began = time.monotonic()
            waiting = dict(sent)
            while waiting:
                left = self.give_up - (time.monotonic() - began)
                done = self.transport.wait(list(waiting.values()), max(left, 0.0))
                stopped = [] if done else list(waiting)
                if len(stopped) == len(sent):
                    self.give_up *= 2.0
                for ticket in done:
                    del waiting[ticket.worker]
                    try:
                        ticket.result()
                        tickets[ticket.worker] = ticket
                    except WorkerDied:
                        stopped.append(ticket.worker)
                for k in stopped:
                    waiting.pop(k, None)
                    tries[k] += 1
                    if tries[k] > _DEATHS_IN_A_ROW:
                        raise WorkerDied(k, f"{tries[k]} times in a row while it was asked for {method}")
                    self._revive(k)
                    missing.append(k)
        return [tickets[k] for k in range(self.size)]

    def _revive(self, k: int) -> None:
        """Start a worker anew, and tell it all that it must know."""
        self.deaths += 1
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
