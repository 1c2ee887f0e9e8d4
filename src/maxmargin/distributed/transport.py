"""What a transport is: calls go out to workers that each hold one object, answers come back, heavy parts are summed."""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import cloudpickle
import numpy as np


class Answer(NamedTuple):
    """What a worker's method may return in place of a plain value.

    ``light`` is for the driver, and is what ``Ticket.result`` gives. The arrays of ``heavy`` are only ever summed over
    workers (``Transport.add_up``), so a transport may leave them where they are until then.
    """

    light: Any
    heavy: tuple[np.ndarray, ...] = ()


class WorkerDied(Exception):
    """The process of a worker ended before its call was answered. ``worker`` is its index."""

    def __init__(self, worker: int, how: str) -> None:
        super().__init__(f"worker {worker} died: {how}")
        self.worker = worker
        self.how = how

    def __reduce__(self) -> Any:
        return type(self), (self.worker, self.how)


class Ticket(Protocol):
    """One call under way."""

    @property
    def worker(self) -> int:
        """The index of the worker that was called."""

    def result(self) -> Any:
        """The light part of the answer, once it is there.

        Raises
        ------
        WorkerDied
            The worker's process ended before the answer was sent.
        Exception
            What the worker's method raised, of the same type; the remote traceback is among its notes.
        """


class Transport(Protocol):
    """Workers, each with one object of its own. Used by one thread of the driver at a time.

    Each worker answers one call at a time, in the order in which they were sent. Once a worker has died, everything
    sent to it ends in ``WorkerDied`` until ``restart``.
    """

    @property
    def n_workers(self) -> int:
        """Before ``start``: how many workers there can be; after it: how many there are."""

    def start(self, makers: Sequence[Callable[[], Any]]) -> None:
        """One worker per maker. A maker travels by cloudpickle and is called over there: its result is what is called.

        Returns when all objects are made. What a maker raises is raised here, and nothing is left running then.
        """

    def send(self, worker: int, method: str, *args: Any) -> Ticket:
        """Call a method of the worker's object. Never waits; arguments may be changed afterwards."""

    def broadcast(self, array: np.ndarray) -> Any:
        """A handle; as an argument of ``send`` it arrives as a read-only array. Copied once, not once per worker."""

    def wait(self, tickets: Sequence[Ticket], timeout: float | None) -> list[Ticket]:
        """Those that are done, as soon as one is; none of them when ``timeout`` seconds have passed before."""

    def add_up(self, tickets: Sequence[Ticket]) -> tuple[np.ndarray, ...]:
        """The sums of the heavy parts over the tickets; answers without a heavy part are left out.

        Additions are made in the order of the tickets, by the tree of ``fold``: the result depends neither on who was
        first nor on the kind of transport. Waits for the answers, and raises what ``Ticket.result`` would raise.
        """

    def restart(self, worker: int) -> None:
        """End the worker's process if it still lives, whatever it is doing, and make its object anew in another.

        Its calls under way end in ``WorkerDied``. Raises what the maker raises, and ``WorkerDied`` if the process died
        while its object was being made.
        """

    def pid(self, worker: int) -> int:
        """The process id of the worker, on the machine where it runs."""

    def close(self) -> None:
        """End all workers. May be called more than once."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...


_T = TypeVar("_T")
_BRANCHES = 4


def fold(items: Sequence[_T], add: Callable[..., _T]) -> _T:
    """All items added by a tree whose shape depends on nothing but their number.

    >>> fold("abcdef", lambda *few: "(" + "+".join(few) + ")")
    '((a+b+c+d)+(e+f))'
    """
    level = list(items)
    while len(level) > 1:
        groups = [level[i : i + _BRANCHES] for i in range(0, len(level), _BRANCHES)]
        level = [add(*group) if len(group) > 1 else group[0] for group in groups]
    return level[0]


def sums(*heavy: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Tuples of arrays, added position by position from left to right."""
    shapes = [[np.shape(a) for a in arrays] for arrays in heavy]
    for other in shapes[1:]:
        if other != shapes[0]:
            raise ValueError(
                f"Heavy parts of answers can be added if their arrays have the same shapes; got {shapes[0]} "
                f"and {other}."
            )
    totals = []
    for arrays in zip(*heavy, strict=True):
        total = np.add(arrays[0], arrays[1])
        for array in arrays[2:]:
            total = total + array if array.dtype != total.dtype else np.add(total, array, out=total)
        totals.append(total)
    return tuple(totals)


class Failure(NamedTuple):
    """An exception on its way to the driver: pickled, and its traceback as text."""

    pickled: bytes
    remote_traceback: str

    def error(self) -> Exception:
        error = cloudpickle.loads(self.pickled)
        error.add_note(f"In the worker:\n{self.remote_traceback}")
        return error


def failure(error: Exception) -> Failure:
    """Ready to travel. An exception that cannot be pickled and read again goes as a RuntimeError with its text."""
    text = "".join(traceback.format_exception(error))
    try:
        pickled = cloudpickle.dumps(error)
        if not isinstance(cloudpickle.loads(pickled), type(error)):
            raise TypeError("read as something else")
    except Exception:
        pickled = cloudpickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return Failure(pickled, text)


def reply(work: Callable[..., Any], *args: Any) -> tuple[Any, tuple[np.ndarray, ...]]:
    """The light and the heavy part of what ``work`` returns; a ``Failure`` is the light part if it raises."""
    try:
        answer = work(*args)
    except Exception as error:
        return failure(error), ()
    if not isinstance(answer, Answer):
        return answer, ()
    return answer.light, tuple(np.asarray(a) for a in answer.heavy)


class WorkerHandle(Protocol):
    """One process of a worker, as the driver sees it. It begins to make its object at once."""

    pid: int

    def made(self) -> None:
        """Wait until the object is made; raises what the maker raises, and ``WorkerDied``."""

    def end(self) -> None:
        """End the process, whatever it is doing."""


_W = TypeVar("_W", bound=WorkerHandle)


class WorkerTransport(ABC, Generic[_W]):
    """What transports have in common: workers are started once, counted from 0, and begun anew when they die."""

    _large: float = 2**15
    """Bytes from which on an array is shared rather than sent along with each call."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._makers: list[bytes] = []
        self._workers: list[_W] = []
        self._closed = False

    @abstractmethod
    def _begin(self, worker: int, maker: bytes) -> _W:
        """A new process for a worker."""

    @abstractmethod
    def _shared(self, array: np.ndarray) -> Any:
        """A handle of a large array, which is copied once."""

    @abstractmethod
    def close(self) -> None: ...

    @property
    def n_workers(self) -> int:
        return len(self._workers) or self._most

    def start(self, makers: Sequence[Callable[[], Any]]) -> None:
        if self._closed:
            raise RuntimeError("This transport has been closed; a new one is needed.")
        if self._workers:
            raise RuntimeError(
                "This transport has been started already; a transport is started once, so every fit needs a new one."
            )
        if not 1 <= len(makers) <= self._most:
            raise ValueError(
                f"start() got {len(makers)} makers; this transport has room for 1 to {self._most} workers."
            )
        self._makers = [cloudpickle.dumps(maker) for maker in makers]
        try:
            for k, maker in enumerate(self._makers):
                self._workers.append(self._begin(k, maker))
            for worker in self._workers:
                worker.made()
        except BaseException:
            self.close()
            raise

    def restart(self, worker: int) -> None:
        self._worker(worker).end()
        self._workers[worker] = anew = self._begin(worker, self._makers[worker])
        anew.made()

    def broadcast(self, array: np.ndarray) -> Any:
        if array.dtype.hasobject:
            raise TypeError(f"Arrays of numbers can be broadcast; got dtype {array.dtype}.")
        if array.nbytes >= self._large:
            return self._shared(np.ascontiguousarray(array))
        small = array.copy()
        small.flags.writeable = False
        return small

    def pid(self, worker: int) -> int:
        return self._worker(worker).pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _worker(self, worker: int) -> _W:
        if not self._workers:
            raise RuntimeError("This transport has no workers: call start() first, and no more after close().")
        if not 0 <= worker < len(self._workers):
            raise IndexError(f"There is no worker {worker}: they are counted from 0 to {len(self._workers) - 1}.")
        return self._workers[worker]
