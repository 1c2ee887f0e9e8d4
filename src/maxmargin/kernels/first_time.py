"""A word to whoever waits: the first problem of a kind compiles its kernels, for seconds, before anything else."""

import sys
from typing import Any

from numba.core import event

_NOTICE = (
    "maxmargin: compiling. The first fit of each kind of problem takes some seconds more; the next process finds the "
    "result on disk."
)


class _FirstTime(event.Listener):
    """Speaks once in a process, when one of our kernels was not found on disk, and only where a person looks on."""

    def on_start(self, event: Any) -> None:
        kernel = event.data["dispatcher"].py_func
        if kernel.__module__.startswith("maxmargin."):
            unregister()
            print(_NOTICE, file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        """Numba asks for it; nothing is left to say."""


_listener = _FirstTime()


def somebody_looks_on() -> bool:
    """Whether messages go to a terminal or into a notebook, not into a file or to another program."""
    stream = sys.stderr
    return stream is not None and (stream.isatty() or type(stream).__module__.startswith("ipykernel"))


def register() -> None:
    if somebody_looks_on():
        event.register("numba:compile", _listener)


def unregister() -> None:
    event.unregister("numba:compile", _listener)
