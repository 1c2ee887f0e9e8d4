"""The worker's side of local processes: make an object, call its methods, end with the driver."""

from __future__ import annotations

import mmap
import os
import pickle
import signal
import socket
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import cloudpickle
import numpy as np

from maxmargin.distributed.replies import failure, reply
from maxmargin.distributed.wire import Message, Wire

_LOOK_EVERY = 1.0  # seconds


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
