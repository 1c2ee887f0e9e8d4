"""Callbacks that want to know of a whole fit: whose it is when it begins, and how it has ended."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar, cast

from ..validation import shown

F = TypeVar("F", bound=Callable[..., Any])


def notified(fit: F) -> F:
    """Decorator of ``fit``: callbacks are told of it, and if it fails, the estimator is what it was before.

    A callback with a method ``begin`` is given the estimator and returns the callback for this one fit. Where that one
    has a method ``end``, it is given the estimator and what went wrong (None: nothing).
    """
    if "callbacks" not in inspect.signature(fit).parameters:

        @functools.wraps(fit)
        def alone(self: Any, *args: Any, **kwargs: Any) -> Any:
            with changing(self, ()):
                return fit(self, *args, **kwargs)

        return cast(F, alone)

    @functools.wraps(fit)
    def wrapped(self: Any, *args: Any, callbacks: Iterable[Any] = (), **kwargs: Any) -> Any:
        with changing(self, callbacks) as listeners:
            return fit(self, *args, callbacks=listeners, **kwargs)

    return cast(F, wrapped)


@contextmanager
def changing(estimator: Any, callbacks: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """One fit, with the callbacks for it; see ``notified``. An error that ``keep`` was given undoes nothing."""
    with _listening(estimator, callbacks) as listeners:
        before = dict(estimator.__dict__)
        try:
            yield listeners
        except BaseException as error:
            if getattr(error, "kept_by", None) is not estimator:
                estimator.__dict__.clear()
                estimator.__dict__.update(before)
            raise


def keep(estimator: Any, error: BaseException) -> None:
    """What the estimator has learned before this error came is worth keeping."""
    error.kept_by = estimator  # type: ignore[attr-defined]


def _listens(callback: Any) -> bool:
    return callable(callback) or callable(getattr(callback, "begin", None))


def users_line() -> int:
    """The ``stacklevel`` at which a warning names the user's own line: the first call from outside of this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("maxmargin", "contextlib"):
        level, frame = level + 1, frame.f_back
    return level


@contextmanager
def _listening(estimator: Any, callbacks: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """Only what has begun here ends here: an estimator hands its listeners on to those that it fits within."""
    if not isinstance(callbacks, list | tuple) or not all(map(_listens, callbacks)):
        raise ValueError(f"callbacks must be a list of functions, each given a record; got {shown(callbacks)}.")
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
