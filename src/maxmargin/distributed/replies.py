"""What happens at the worker, whatever the transport: a method is called, and its answer or its error made ready."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import cloudpickle
import numpy as np

from maxmargin.distributed.transport import Answer


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
