"""What goes on while Numba compiles: the garbage collector pauses. It would look through all that Numba makes again and
again, find next to nothing, and take a tenth of the time."""

import gc
from typing import Any

from numba.core import event


class _Pause(event.Listener):
    """Numba compiles one function at a time, and those that it calls in the midst of it."""

    def __init__(self) -> None:
        self._depth, self._paused = 0, False

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._paused = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0 and self._paused:
            gc.enable()


def register() -> None:
    event.register("numba:compile", _Pause())
