"""Messages between a driver and its local processes, and the worker's side: make an object, call its methods, end with
the driver."""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import signal
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import cloudpickle
import numpy as np

from maxmargin.distributed.replies import failure, reply

_HEAD = struct.Struct("=QQQ")  # bytes of the pickle, number of buffers, number of files
_LOOK_EVERY = 1.0  # seconds
_SMALL = 1 << 16


class Message(NamedTuple):
    """A pickle, and beside it large buffers and open files."""

    pickled: bytes | bytearray
    buffers: Sequence[memoryview] = ()
    files: Sequence[int] = ()


class Wire:
    """One end of a socket pair. Buffers are neither copied when they are written nor after they are read."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    def write(self, message: Message) -> None:
        buffers = [memoryview(b).cast("B") for b in message.buffers]
        sizes = np.array([len(b) for b in buffers], dtype=np.uint64).tobytes()
        head = _HEAD.pack(len(message.pickled), len(buffers), len(message.files)) + sizes
        parts = [head + message.pickled] if len(message.pickled) <= _SMALL else [head, message.pickled]
        for part in (*parts, *buffers):
            self._socket.sendall(part)
        if message.files:
            socket.send_fds(self._socket, [b"f"], list(message.files))

    def read(self) -> Message:
        length, n_buffers, n_files = _HEAD.unpack(self._filled(bytearray(_HEAD.size)))
        sizes = np.frombuffer(self._filled(bytearray(8 * n_buffers)), dtype=np.uint64)
        pickled = self._filled(bytearray(length))
        buffers = [self._filled(np.empty(int(size), dtype=np.uint8).data) for size in sizes]
        files = socket.recv_fds(self._socket, 1, n_files)[1] if n_files else []
        if len(files) < n_files:
            raise EOFError("the other side is gone")
        return Message(pickled, buffers, files)

    def _filled(self, space: Any) -> Any:
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


class SharedArray(NamedTuple):
    """Stands among the arguments of a call where a broadcast array goes, whose file comes beside the call."""

    dtype: np.dtype
    shape: tuple[int, ...]


def serve(end: socket.socket, lifeline: Connection) -> None:
    """Make the object, then answer calls until the driver hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_driver(lifeline)
    wire = Wire(end)
    made: list[Any] = []
    try:
        wire.write(_packed(*reply(lambda maker: made.append(pickle.loads(maker.pickled)()), wire.read())))
        while made:
            _answer(wire, made[0])
    except (EOFError, OSError):
        return


def _answer(wire: Wire, target: Any) -> None:
    call = wire.read()
    wire.write(_packed(*reply(_call, target, call)))


def _call(target: Any, call: Message) -> Any:
    files = iter(call.files)
    method, args = pickle.loads(call.pickled)
    return getattr(target, method)(*[_mapped(a, files) if isinstance(a, SharedArray) else a for a in args])


def _mapped(array: SharedArray, files: Iterator[int]) -> np.ndarray:
    file = next(files)
    try:
        size = os.fstat(file).st_size
        memory = mmap.mmap(file, size, access=mmap.ACCESS_READ) if size else b""
    finally:
        os.close(file)
    return np.frombuffer(memory, dtype=array.dtype).reshape(array.shape)


def _packed(light: Any, heavy: tuple[np.ndarray, ...]) -> Message:
    """Large arrays, heavy or light, go beside the pickle. An answer that cannot be pickled becomes an error."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        pickled = cloudpickle.dumps((light, heavy), protocol=5, buffer_callback=buffers.append)
        return Message(pickled, [b.raw() for b in buffers])
    except Exception as error:
        return Message(cloudpickle.dumps((failure(error), ())))


def _end_with_driver(lifeline: Connection) -> None:
    """Nothing is ever written into this pipe, and it breaks when the driver ends: that ends this process at once.

    On Linux the kernel sends the signal itself, so that even compiled code that never lets another thread run is
    ended. The thread is for other systems, and for a driver that left a forked child which holds the pipe open.
    """
    import fcntl

    driver = os.getppid()
    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)

    def watch() -> None:
        while not lifeline.poll(_LOOK_EVERY) and os.getppid() == driver:
            pass
        os._exit(1)

    threading.Thread(target=watch, name="maxmargin-lifeline", daemon=True).start()
