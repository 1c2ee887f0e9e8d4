"""Messages between two processes over a socket pair: a pickle, and beside it large buffers and open files."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

_HEAD = struct.Struct("=QQQ")  # bytes of the pickle, number of buffers, number of files
_LOOK_EVERY = 1.0  # seconds
_SMALL = 1 << 16


class Message(NamedTuple):
    pickled: bytes | bytearray
    buffers: Sequence[memoryview] = ()
    files: Sequence[int] = ()


class Wire:
    """One end of a socket pair. Buffers are neither copied when they are written nor after they are read.

    ``alive`` tells whether the other side lives. It is asked now and then while nothing moves: the end of the process
    there is no end of file here if a child of it still holds the socket.
    """

    def __init__(self, end: socket.socket, alive: Callable[[], bool] | None = None) -> None:
        self._socket = end
        self._alive = alive
        end.settimeout(None if alive is None else _LOOK_EVERY)

    def write(self, message: Message) -> None:
        buffers = [memoryview(b).cast("B") for b in message.buffers]
        sizes = np.array([len(b) for b in buffers], dtype=np.uint64).tobytes()
        head = _HEAD.pack(len(message.pickled), len(buffers), len(message.files)) + sizes
        if len(message.pickled) <= _SMALL:
            self._send(memoryview(head + message.pickled))
        else:
            self._send(memoryview(head))
            self._send(memoryview(message.pickled))
        for buffer in buffers:
            self._send(buffer)
        if message.files:
            socket.send_fds(self._socket, [b"f"], list(message.files))

    def read(self) -> Message:
        length, n_buffers, n_files = _HEAD.unpack(self._receive(bytearray(_HEAD.size)))
        sizes = np.frombuffer(self._receive(bytearray(8 * n_buffers)), dtype=np.uint64)
        pickled = self._receive(bytearray(length))
        buffers = [np.empty(int(size), dtype=np.uint8).data for size in sizes]
        for buffer in buffers:
            self._fill(buffer)
        files = socket.recv_fds(self._socket, 1, n_files)[1] if n_files else []
        if len(files) < n_files:
            raise EOFError("the other side is gone")
        return Message(pickled, buffers, files)

    def shut(self) -> None:
        """No more of anything: who reads or writes at either end is woken."""
        with contextlib.suppress(OSError):  # the other end was closed before
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()

    def _receive(self, space: bytearray) -> bytearray:
        self._fill(memoryview(space))
        return space

    def _fill(self, space: memoryview) -> None:
        while space:
            if (n := self._patiently(self._socket.recv_into, space)) == 0:
                raise EOFError("the other side is gone")
            space = space[n:]

    def _send(self, data: memoryview) -> None:
        while data:
            data = data[self._patiently(self._socket.send, data) :]

    def _patiently(self, move: Callable[[memoryview], int], data: memoryview) -> int:
        while True:
            try:
                return move(data)
            except TimeoutError:
                if self._alive is not None and not self._alive():
                    raise EOFError("the other side is gone") from None
