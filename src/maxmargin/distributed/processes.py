"""A transport over processes of this machine. They are reached by socket pairs: nothing listens on any port.

loky starts the processes, and could answer calls too, by an executor of one process for each worker. Measured on two
workers, a call took 2.7 times as long that way and an array of 8 MB 4 times, there and back or broadcast: its queues
copy arrays into pickles, where here they go beside them, and broadcast arrays lie in shared memory.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import queue
import signal
import socket
import sys
import tempfile
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from multiprocessing.connection import Pipe
from typing import IO, Any

import cloudpickle
import numpy as np

from maxmargin.distributed.replies import Failure
from maxmargin.distributed.serving import Message, SharedArray, Wire, serve
from maxmargin.distributed.transport import Ticket, WorkerDied, WorkerTransport, fold, sums

_GRACE = 1.0  # seconds for an idle worker to end by itself at close
_PATIENCE = 10.0  # seconds for the system to end a process that was killed


class _LocalTicket:
    """One call; its future holds the light and the heavy part of the answer."""

    def __init__(self, worker: int) -> None:
        self.worker = worker
        self.future: Future[tuple[Any, tuple[np.ndarray, ...]]] = Future()

    def result(self) -> Any:
        return self.future.result()[0]

    def heavy(self) -> tuple[np.ndarray, ...]:
        return self.future.result()[1]


def _of_mine(ticket: Ticket) -> _LocalTicket:
    if not isinstance(ticket, _LocalTicket):
        raise TypeError(f"LocalProcesses can wait for tickets of its own send(); got {type(ticket).__name__}.")
    return ticket


class _Shared:
    """An array in memory that has no name: gone with its last user, here or in a worker, however that ends."""

    place: SharedArray

    def __init__(self, array: np.ndarray) -> None:
        if array.dtype.hasobject:
            raise TypeError(f"Arrays of numbers can be broadcast; got dtype {array.dtype}.")
        self.place = SharedArray(array.dtype, array.shape)
        self.file: IO[bytes]
        if hasattr(os, "memfd_create"):
            self.file = os.fdopen(os.memfd_create("maxmargin-broadcast"), "wb", buffering=0)
        else:
            self.file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        while data:
            data = data[self.file.write(data) :]

    def __del__(self) -> None:
        if hasattr(self, "file"):
            self.file.close()  # else Python complains, where it is asked to


class _Worker:
    """One process, and the threads of the driver that talk to it and see when it ends.

    The one that talks sends a call, waits for its answer, then sends the next.
    """

    def __init__(self, index: int, maker: bytes, environment: dict[str, str]) -> None:
        from loky.backend import get_context

        self.index = index
        self._calls: queue.SimpleQueue[tuple[_LocalTicket, bytes, list[_Shared]] | None] = queue.SimpleQueue()
        self._death: str | None = None
        self._busy = self._gentle = False
        near, far = socket.socketpair()
        watched, self._lifeline = Pipe(duplex=False)
        name = f"maxmargin-worker-{index}"
        self.process = get_context("loky").Process(target=serve, args=(far, watched), name=name, env=environment)
        self.process.start()
        far.close()
        watched.close()
        self._wire = Wire(near)
        self._ended: Future[int] = Future()
        self._thread = threading.Thread(target=self._talk, name=name, daemon=True)
        self._thread.start()
        threading.Thread(target=self._watch, name=f"{name}-watch", daemon=True).start()
        self._making = self.send(maker, [])

    def made(self) -> None:
        self._making.result()

    def send(self, call: bytes, files: list[_Shared]) -> _LocalTicket:
        ticket = _LocalTicket(self.index)
        self._calls.put((ticket, call, files))
        return ticket

    def hang_up(self) -> None:
        """An idle process ends by itself upon this, and tidies up; the thread is woken."""
        self._gentle = not self._busy and self._calls.empty()
        self._wire.shut()

    def end(self, at_once: bool = False) -> None:
        """The process and the thread, whatever they are doing. Calls that wait are answered with WorkerDied."""
        if self._gentle and not at_once:
            self._exit_code(_GRACE)
        self._kill()
        self._wire.shut()
        self._calls.put(None)
        self._thread.join()
        self._lifeline.close()

    def _watch(self) -> None:
        """The end of the process is no end of file here if a child of it still holds the socket."""
        while (code := self.process.exitcode) is None:  # still, if another thread was told of the end first
            self.process.join()
        self._ended.set_result(code)
        self._wire.shut()

    def _talk(self) -> None:
        while self._talk_once():
            pass
        self._wire.close()

    def _talk_once(self) -> bool:
        """A function of its own, so that no array of a call outlives the call in a variable."""
        if (job := self._calls.get()) is None:
            return False
        ticket, call, files = job
        self._busy = True
        try:
            ticket.future.set_result(self._exchange(call, files))
        except Exception as error:
            ticket.future.set_exception(error)
        finally:
            self._busy = False
        return True

    def _exchange(self, call: bytes, files: list[_Shared]) -> tuple[Any, tuple[np.ndarray, ...]]:
        if self._death is not None:
            raise WorkerDied(self.index, self._death)
        try:
            self._wire.write(Message(call, files=[f.file.fileno() for f in files]))
            answer = self._wire.read()
        except (OSError, EOFError):
            self._death = self._how_it_died()
            raise WorkerDied(self.index, self._death) from None
        light, heavy = pickle.loads(answer.pickled, buffers=answer.buffers)
        if isinstance(light, Failure):
            raise light.error()
        return light, heavy

    def _kill(self) -> None:
        if self._exit_code(0.0) is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGKILL)
            self._exit_code(_PATIENCE)

    def _exit_code(self, patience: float) -> int | None:
        """Negative if it was a signal; None if the process lives."""
        with contextlib.suppress(TimeoutError):
            return self._ended.result(patience)
        return None

    def _how_it_died(self) -> str:
        code = self._exit_code(2.0)
        if code is None:
            self._kill()
            return "it hung up in the midst of a message"
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _end_all(workers: list[_Worker], owner: int) -> None:
    if os.getpid() != owner:
        return  # a forked child has a copy of the driver's objects, but the workers are not its own
    try:
        for worker in workers:
            worker.hang_up()
        for worker in workers:
            worker.end()
    except KeyboardInterrupt:
        for worker in workers:  # in a hurry, but none may stay behind: this is not called again
            worker.end(at_once=True)
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

    def __init__(self, n_workers: int | None = None, *, blas_threads: int = 1) -> None:
        if not hasattr(socket, "send_fds"):
            raise OSError(
                f"LocalProcesses hands open files to its workers, which Python cannot do on {sys.platform}. "
                "Use cluster='ray' here."
            )
        from loky import cpu_count

        super().__init__(cpu_count() if n_workers is None else int(n_workers))
        if self._most < 1 or blas_threads < 1:
            raise ValueError(
                f"There must be at least one worker with one thread; got n_workers={n_workers}, "
                f"blas_threads={blas_threads}."
            )
        threads = ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM")
        self._environment = {f"{name}_NUM_THREADS": str(blas_threads) for name in threads}
        self._end = weakref.finalize(self, _end_all, self._workers, os.getpid())
        # At exit multiprocessing waits for its children. Finalizers may come later than that, this comes before.
        atexit.register(self._end)

    def _begin(self, worker: int, maker: bytes) -> _Worker:
        return _Worker(worker, maker, self._environment)

    def send(self, worker: int, method: str, *args: Any) -> _LocalTicket:
        files = [a for a in args if isinstance(a, _Shared)]
        plain = [a.place if isinstance(a, _Shared) else a for a in args]
        return self._worker(worker).send(cloudpickle.dumps((method, plain), protocol=5), files)

    def broadcast(self, array: np.ndarray) -> _Shared:
        return _Shared(array)

    def wait(self, tickets: Sequence[Ticket], timeout: float | None) -> list[Ticket]:
        mine = [_of_mine(t) for t in tickets]
        if mine:
            wait([t.future for t in mine], timeout, FIRST_COMPLETED)
        return [t for t in mine if t.future.done()]

    def add_up(self, tickets: Sequence[Ticket]) -> tuple[np.ndarray, ...]:
        heavy = [part for part in (_of_mine(t).heavy() for t in tickets) if part]
        if len(heavy) == 1:
            return tuple(a.copy() for a in heavy[0])
        return fold(heavy, sums) if heavy else ()

    def pid(self, worker: int) -> int:
        return self._worker(worker).process.pid

    def close(self) -> None:
        self._closed = True
        self._end()
        atexit.unregister(self._end)
