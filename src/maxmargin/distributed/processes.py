"""A transport over processes of this machine. They are reached by socket pairs: nothing listens on any port.

loky could answer calls, too, by an executor of one process for each worker. Measured on two workers, a call took 2.7
times as long that way and an array of 8 MB 4 times, there and back or broadcast: its queues copy arrays, and here
broadcast arrays lie in shared memory.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import queue
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from io import BufferedRWPair
from typing import Any, cast

import cloudpickle
import numpy as np

from maxmargin.distributed.transport import Failure, Ticket, WorkerDied, WorkerTransport, failure, fold, reply, sums

_GRACE = 1.0  # seconds for an idle worker to end by itself at close
_PATIENCE = 10.0  # seconds for the system to end a process that was killed
_LOOK_EVERY = 1.0  # seconds

# What goes through a socket are pickles of bytes, which are always whole, and beside them heavy arrays, which nobody
# copies. Within the bytes is a pickle that may fail, which then harms that call alone.
_GONE = (OSError, EOFError, pickle.UnpicklingError)


class _Shared:
    """An array in memory that has no name: gone with its last user, here or in a worker, however that ends.

    Pickled, it is an array that is mapped from there. The process that made it must keep it until then.
    """

    def __init__(self, array: np.ndarray) -> None:
        self._like = array.dtype, array.shape
        self._file = open(os.memfd_create("maxmargin"), "wb")  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        array.tofile(self._file)
        self._file.flush()

    def __reduce__(self) -> Any:
        return _mapped, (f"/proc/{os.getpid()}/fd/{self._file.fileno()}", *self._like)


def _mapped(path: str, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    return np.asarray(np.memmap(path, dtype, "r", shape=shape))


def _serve(end: int) -> None:
    """A worker's process: make the object, then answer calls until the driver hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_driver()
    wire = socket.socket(fileno=end).makefile("rwb")
    made: list[Any] = []

    def make(maker: bytes) -> None:
        made.append(pickle.loads(maker)())

    def call(pickled: bytes) -> Any:
        method, args = pickle.loads(pickled)
        return getattr(made[0], method)(*args)

    with contextlib.suppress(*_GONE):
        _answer(wire, make)
        while made:
            _answer(wire, call)


def _answer(wire: BufferedRWPair, work: Callable[[bytes], Any]) -> None:
    """An answer that cannot be pickled becomes an error."""
    light, heavy = reply(work, pickle.load(wire))
    try:
        pickled = cloudpickle.dumps(light, protocol=5)
    except Exception as error:
        pickled, heavy = cloudpickle.dumps(failure(error)), ()
    pickle.dump((pickled, [(a.dtype, a.shape) for a in heavy]), wire, protocol=5)
    for array in heavy:
        wire.write(np.ascontiguousarray(array).data)
    wire.flush()


def _read(wire: BufferedRWPair, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    array = np.empty(shape, dtype)
    if array.size and wire.readinto(array.data) < array.nbytes:
        raise EOFError
    return array


def _end_with_driver() -> None:
    """Nothing is ever written to standard input, a pipe that breaks when the driver ends: that ends this process.

    On Linux the kernel sends the signal itself, so that even compiled code that never lets another thread run is
    ended. The thread is for other systems, and for a driver that left a forked child which holds the pipe open.
    """
    import fcntl
    import select

    driver = os.getppid()
    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(0, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)

    def watch() -> None:
        while not select.select([0], [], [], _LOOK_EVERY)[0] and os.getppid() == driver:
            pass
        os._exit(1)

    threading.Thread(target=watch, name="maxmargin-lifeline", daemon=True).start()


class _LocalTicket(Future[tuple[Any, tuple[np.ndarray, ...]]]):
    """One call, and the light and the heavy part of its answer."""

    def __init__(self, worker: int) -> None:
        super().__init__()
        self.worker = worker

    def result(self, timeout: float | None = None) -> Any:
        return super().result(timeout)[0]

    def heavy(self) -> tuple[np.ndarray, ...]:
        return super().result()[1]


class _Worker:
    """One process, and the threads of the driver that talk to it and see when it ends.

    The one that talks sends a call, waits for its answer, then sends the next.
    """

    def __init__(self, index: int, maker: bytes, environment: dict[str, str]) -> None:
        self.index = index
        self._calls: queue.SimpleQueue[tuple[_LocalTicket, bytes, tuple[Any, ...]] | None] = queue.SimpleQueue()
        self._death: str | None = None
        self._socket, far = socket.socketpair()
        self._wire = self._socket.makefile("rwb")
        path = [str(place) for place in sys.path]
        program = f"import sys; sys.path[:] = {path}; from {__name__} import _serve; _serve({far.fileno()})"
        with far:
            self.process = subprocess.Popen(
                [sys.executable, "-c", program],
                stdin=subprocess.PIPE,
                pass_fds=[far.fileno()],
                env=os.environ | environment,
            )
        self.pid = self.process.pid
        name = f"maxmargin-worker-{index}"
        self._talking = threading.Thread(target=self._talk, name=name, daemon=True)
        self._watching = threading.Thread(target=self._watch, name=f"{name}-watch", daemon=True)
        self._talking.start()
        self._watching.start()
        self._last = self._making = self.send(maker)

    def made(self) -> None:
        self._making.result()

    def send(self, call: bytes, *args: Any) -> _LocalTicket:
        """A pickled call, and its arguments, of which those that are shared must live until it is answered."""
        self._last = ticket = _LocalTicket(self.index)
        self._calls.put((ticket, call, args))
        return ticket

    def hang_up(self) -> None:
        """An idle process ends by itself upon this, and tidies up; the thread is woken."""
        self._idle = self._last.done()
        self._shut()

    def end(self, at_once: bool = True) -> None:
        """The process and the thread, whatever they are doing. Calls that wait are answered with WorkerDied."""
        if not at_once and self._idle:
            self._exit_code(_GRACE)
        self.process.kill()
        self._exit_code(_PATIENCE)
        self._shut()
        self._calls.put(None)
        self._talking.join()
        self.process.stdin.close()  # type: ignore[union-attr]

    def _watch(self) -> None:
        """The end of the process is no end of file here if a child of it still holds the socket."""
        self.process.wait()
        self._shut()

    def _shut(self) -> None:
        """No more of anything: who reads or writes at either end is woken."""
        with contextlib.suppress(OSError):  # it was closed before
            self._socket.shutdown(socket.SHUT_RDWR)

    def _talk(self) -> None:
        while self._talk_once():
            pass
        with contextlib.suppress(OSError):  # of what could not be written any more
            self._wire.close()
        self._socket.close()

    def _talk_once(self) -> bool:
        """A function of its own, so that no array of a call outlives the call in a variable."""
        if (job := self._calls.get()) is None:
            return False
        ticket, call, _ = job
        try:
            ticket.set_result(self._exchange(call))
        except Exception as error:
            ticket.set_exception(error)
        return True

    def _exchange(self, call: bytes) -> tuple[Any, tuple[np.ndarray, ...]]:
        if self._death is not None:
            raise WorkerDied(self.index, self._death)
        try:
            pickle.dump(call, self._wire, protocol=5)
            self._wire.flush()
            pickled, likes = pickle.load(self._wire)
            heavy = tuple(_read(self._wire, *like) for like in likes)
        except _GONE:
            self._death = self._how_it_died()
            raise WorkerDied(self.index, self._death) from None
        light = pickle.loads(pickled)
        if isinstance(light, Failure):
            raise light.error()
        return light, heavy

    def _exit_code(self, patience: float) -> int | None:
        """Negative if it was a signal; None if the process lives."""
        self._watching.join(patience)
        return self.process.returncode

    def _how_it_died(self) -> str:
        code = self._exit_code(2.0)
        if code is None:
            self.process.kill()
            return "it hung up in the midst of a message"
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _end_all(workers: list[_Worker], owner: int) -> None:
    if os.getpid() != owner:
        return  # a forked child has a copy of the driver's objects, but the workers are not its own
    try:
        for worker in workers:
            worker.hang_up()
        for worker in workers:
            worker.end(at_once=False)
    except KeyboardInterrupt:
        for worker in workers:  # in a hurry, but none may stay behind: this is not called again
            worker.end()
        raise
    finally:
        workers.clear()


class LocalProcesses(WorkerTransport[_Worker]):
    """Workers that are processes of this machine (Linux, macOS).

    Scripts need no ``if __name__ == "__main__"``, and objects of classes that are defined in them travel. Workers leave
    Ctrl-C to the driver, end at once when the driver is gone, and never outlive ``close``. Broadcast arrays lie in
    memory that is shared and has no name, so nothing stays behind, however the driver ends.

    Parameters
    ----------
    n_workers : int, optional
        How many there can be; the number of cores that this process may use, if not given.
    blas_threads : int, default=1
        Threads of BLAS and OpenMP in each worker.

    Examples
    --------
    >>> from collections import Counter
    >>> with LocalProcesses(2) as transport:
    ...     transport.start([Counter, Counter])
    ...     tickets = [transport.send(worker, "update", "margin") for worker in range(2)]
    ...     answers = [ticket.result() for ticket in tickets]
    ...     transport.send(1, "total").result()
    6
    """

    _large = WorkerTransport._large if hasattr(os, "memfd_create") else math.inf

    def __init__(self, n_workers: int | None = None, *, blas_threads: int = 1) -> None:
        if os.name != "posix":
            raise OSError(
                "LocalProcesses needs Linux or macOS. Begin Ray by ray.init(), and give cluster='ray://auto'."
            )
        from loky import cpu_count

        super().__init__(cpu_count() if n_workers is None else int(n_workers))
        if self._most < 1 or blas_threads < 1:
            raise ValueError(
                f"A cluster needs at least one worker with one thread; got n_workers={n_workers}, "
                f"blas_threads={blas_threads}."
            )
        threads = ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM")
        self._environment = {f"{name}_NUM_THREADS": str(blas_threads) for name in threads}
        self._end = weakref.finalize(self, _end_all, self._workers, os.getpid())

    def _begin(self, worker: int, maker: bytes) -> _Worker:
        return _Worker(worker, maker, self._environment)

    def send(self, worker: int, method: str, *args: Any) -> _LocalTicket:
        return self._worker(worker).send(cloudpickle.dumps((method, args), protocol=5), *args)

    def _shared(self, array: np.ndarray) -> _Shared:
        return _Shared(array)

    def wait(self, tickets: Sequence[Ticket], timeout: float | None) -> list[Ticket]:
        mine = cast("Sequence[_LocalTicket]", tickets)
        if mine:
            wait(mine, timeout, FIRST_COMPLETED)
        return [ticket for ticket in mine if ticket.done()]

    def add_up(self, tickets: Sequence[Ticket]) -> tuple[np.ndarray, ...]:
        heavy = [part for part in (t.heavy() for t in cast("Sequence[_LocalTicket]", tickets)) if part]
        if len(heavy) == 1:
            return tuple(a.copy() for a in heavy[0])
        return fold(heavy, sums) if heavy else ()

    def close(self) -> None:
        self._closed = True
        self._end()
