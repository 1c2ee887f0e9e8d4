"""A transport over processes of this machine. They are reached by socket pairs: nothing listens on any port.

loky could answer calls, too, by an executor of one process for each worker. Measured on two workers, a call took 2.7
times as long that way and an array of 8 MB 4 times, there and back or broadcast: its queues copy arrays into pickles,
where here they go beside them, and broadcast arrays lie in shared memory.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import queue
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, NamedTuple, TypeVar, cast

import cloudpickle
import numpy as np

from maxmargin.distributed.transport import Failure, Ticket, WorkerDied, WorkerTransport, failure, fold, reply, sums

_GRACE = 1.0  # seconds for an idle worker to end by itself at close
_PATIENCE = 10.0  # seconds for the system to end a process that was killed
_LOOK_EVERY = 1.0  # seconds
_BESIDE = 2**14  # bytes from which on an array goes beside the pickle
_MOST_FILES = 253  # that Linux hands over at a time
_HEAD = struct.Struct("=QQ")  # bytes of the pickle, number of buffers
_SIZE = struct.Struct("=Q")  # bytes of a buffer

_Space = TypeVar("_Space", bytearray, memoryview)


class _Wire:
    """One end of a socket pair. Buffers are neither copied when they are written nor after they are read."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    def write(self, pickled: bytes, buffers: Sequence[memoryview] = (), files: Sequence[int] = ()) -> None:
        """A pickle, and beside it large buffers and open files."""
        parts = [_HEAD.pack(len(pickled), len(buffers)), pickled]
        n = socket.send_fds(self._socket, parts, list(files)) if files else self._socket.sendmsg(parts)
        self._socket.sendall(memoryview(pickled)[n - _HEAD.size :])
        for buffer in buffers:
            self._socket.sendall(_SIZE.pack(buffer.nbytes))
            self._socket.sendall(buffer)

    def read(self) -> tuple[bytearray, list[memoryview], list[int]]:
        head, files, *_ = socket.recv_fds(self._socket, _HEAD.size, _MOST_FILES, socket.MSG_WAITALL)
        if len(head) < _HEAD.size:
            raise EOFError("the other side is gone")
        length, n_buffers = _HEAD.unpack(head)
        return self._filled(bytearray(length)), [self._buffer() for _ in range(n_buffers)], files

    def _buffer(self) -> memoryview:
        (size,) = _SIZE.unpack(self._filled(bytearray(_SIZE.size)))
        return self._filled(np.empty(size, np.uint8).data)

    def _filled(self, space: _Space) -> _Space:
        left = memoryview(space)
        while left:
            if (n := self._socket.recv_into(left)) == 0:
                raise EOFError("the other side is gone")
            left = left[n:]
        return space

    def shut(self) -> None:
        """No more of anything: who reads or writes at either end is woken."""
        with contextlib.suppress(OSError):  # it was closed before
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()


class _SharedArray(NamedTuple):
    """Stands among the arguments of a call where a broadcast array goes, whose file comes beside the call."""

    dtype: np.dtype
    shape: tuple[int, ...]

    def mapped(self, file: int) -> np.ndarray:
        try:
            size = os.fstat(file).st_size
            memory = mmap.mmap(file, size, access=mmap.ACCESS_READ) if size else b""
        finally:
            os.close(file)
        return np.frombuffer(memory, dtype=self.dtype).reshape(self.shape)


class _Shared:
    """An array in memory that has no name: gone with its last user, here or in a worker, however that ends."""

    def __init__(self, array: np.ndarray) -> None:
        if array.dtype.hasobject:
            raise TypeError(f"Arrays of numbers can be broadcast; got dtype {array.dtype}.")
        self.place = _SharedArray(array.dtype, array.shape)
        linux = hasattr(os, "memfd_create")
        self.file = open(os.memfd_create("maxmargin"), "wb") if linux else tempfile.TemporaryFile()  # noqa: SIM115
        weakref.finalize(self, self.file.close)
        np.ascontiguousarray(array).tofile(self.file)
        self.file.flush()


def _serve(end: int) -> None:
    """A worker's process: make the object, then answer calls until the driver hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_driver()
    wire = _Wire(socket.socket(fileno=end))
    made: list[Any] = []

    def make(maker: bytearray, *_: object) -> None:
        made.append(pickle.loads(maker)())

    def call(pickled: bytearray, _: object, files: list[int]) -> Any:
        method, args = pickle.loads(pickled)
        files = files[::-1]
        return getattr(made[0], method)(*[a.mapped(files.pop()) if isinstance(a, _SharedArray) else a for a in args])

    with contextlib.suppress(EOFError, OSError):
        _answer(wire, make)
        while made:
            _answer(wire, call)


def _answer(wire: _Wire, work: Callable[..., Any]) -> None:
    """Large arrays, heavy or light, go beside the pickle. An answer that cannot be pickled becomes an error."""
    answer = reply(work, *wire.read())
    buffers: list[memoryview] = []

    def in_band(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        small = raw.nbytes < _BESIDE
        if not small:
            buffers.append(raw)
        return small

    try:
        pickled = cloudpickle.dumps(answer, protocol=5, buffer_callback=in_band)
    except Exception as error:
        pickled, buffers = cloudpickle.dumps((failure(error), ())), []
    wire.write(pickled, buffers)


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
        self._calls: queue.SimpleQueue[tuple[_LocalTicket, bytes, list[_Shared]] | None] = queue.SimpleQueue()
        self._death: str | None = None
        near, far = socket.socketpair()
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
        self._wire = _Wire(near)
        name = f"maxmargin-worker-{index}"
        self._talking = threading.Thread(target=self._talk, name=name, daemon=True)
        self._watching = threading.Thread(target=self._watch, name=f"{name}-watch", daemon=True)
        self._talking.start()
        self._watching.start()
        self._last = self._making = self.send(maker, [])

    def made(self) -> None:
        self._making.result()

    def send(self, call: bytes, files: list[_Shared]) -> _LocalTicket:
        self._last = ticket = _LocalTicket(self.index)
        self._calls.put((ticket, call, files))
        return ticket

    def hang_up(self) -> None:
        """An idle process ends by itself upon this, and tidies up; the thread is woken."""
        self._idle = self._last.done()
        self._wire.shut()

    def end(self, at_once: bool = True) -> None:
        """The process and the thread, whatever they are doing. Calls that wait are answered with WorkerDied."""
        if not at_once and self._idle:
            self._exit_code(_GRACE)
        self.process.kill()
        self._exit_code(_PATIENCE)
        self._wire.shut()
        self._calls.put(None)
        self._talking.join()
        self.process.stdin.close()  # type: ignore[union-attr]

    def _watch(self) -> None:
        """The end of the process is no end of file here if a child of it still holds the socket."""
        self.process.wait()
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
        try:
            ticket.set_result(self._exchange(call, files))
        except Exception as error:
            ticket.set_exception(error)
        return True

    def _exchange(self, call: bytes, files: list[_Shared]) -> tuple[Any, tuple[np.ndarray, ...]]:
        if self._death is not None:
            raise WorkerDied(self.index, self._death)
        try:
            self._wire.write(call, files=[f.file.fileno() for f in files])
            pickled, buffers, _ = self._wire.read()
        except (OSError, EOFError):
            self._death = self._how_it_died()
            raise WorkerDied(self.index, self._death) from None
        light, heavy = pickle.loads(pickled, buffers=buffers)
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

    def _begin(self, worker: int, maker: bytes) -> _Worker:
        return _Worker(worker, maker, self._environment)

    def send(self, worker: int, method: str, *args: Any) -> _LocalTicket:
        files = [a for a in args if isinstance(a, _Shared)]
        plain = [a.place if isinstance(a, _Shared) else a for a in args]
        return self._worker(worker).send(cloudpickle.dumps((method, plain), protocol=5), files)

    def broadcast(self, array: np.ndarray) -> _Shared:
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
