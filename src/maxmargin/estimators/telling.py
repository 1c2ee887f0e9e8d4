"""Callbacks that want to know of a whole fit: whose it is when it begins, and how it has ended."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar, cast

from ..wording import shown

F = TypeVar("F", bound=Callable[..., Any])


def told(fit: F) -> F:
    """Decorator of ``fit``: a callback with a method ``begin`` is given the estimator and returns the callback for this
    one fit. Where that one has a method ``end``, it is given the estimator and what went wrong (None: nothing)."""

    @functools.wraps(fit)
    def wrapped(self: Any, *args: Any, callbacks: Iterable[Any] = (), **kwargs: Any) -> Any:
        if not isinstance(callbacks, list | tuple) or not all(map(_listens, callbacks)):
            raise ValueError(f"callbacks must be a list of functions, each given a record; got {shown(callbacks)}.")
        with _listening(self, tuple(callbacks)) as callbacks:
            return fit(self, *args, callbacks=callbacks, **kwargs)

    return cast(F, wrapped)


def _listens(callback: Any) -> bool:
    return callable(callback) or callable(getattr(callback, "begin", None))


def users_line() -> int:
    """The ``stacklevel`` at which a warning names the user's own line: the first call from outside of this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("maxmargin", "contextlib"):
        level, frame = level + 1, frame.f_back
    return level


@contextmanager
def _listening(estimator: Any, callbacks: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Only what has begun here ends here: an estimator hands its listeners on to those that it fits within."""
    listeners: list[Any] = []
    begun: list[Any] = []
    try:
        for callback in callbacks:
            begins = hasattr(callback, "begin")
            listeners.append(callback.begin(estimator) if begins else callback)
            begun += listeners[-1:] if begins else []
        yield tuple(listeners)
    except BaseException as error:
        _end(begun, estimator, error)
        raise
    _end(begun, estimator, None)


def _end(begun: list[Any], estimator: Any, error: BaseException | None) -> None:
    """Tell all of them, also where one fails."""
    with ExitStack() as rest:
        for listener in reversed(begun):
            if hasattr(listener, "end"):
                rest.callback(listener.end, estimator, error)
