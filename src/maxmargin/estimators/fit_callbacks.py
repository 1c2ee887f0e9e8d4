"""Callbacks that want to know of a whole fit: whose it is when it begins, and how it has ended."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from sklearn.base import BaseEstimator

from ..validation import shown

F = TypeVar("F", bound=Callable[..., Any])
Listener = Callable[[Any], object]
"""Is given a ``Record`` or a ``BoundRecord``, and ends the run by returning True."""


@runtime_checkable
class FitCallback(Protocol):
    """A callback that is told of whole fits; see ``notified``."""

    def begin(self, estimator: BaseEstimator, /) -> Listener: ...


Callback = Listener | FitCallback


def notified(fit: F) -> F:
    """Decorator of ``fit``: callbacks are told of it, and if it fails, the estimator is what it was before.

    A callback with a method ``begin`` is given the estimator and returns the callback for this one fit. Where that one
    has a method ``end``, it is given the estimator and what went wrong (None: nothing).
    """
    listened = "callbacks" in inspect.signature(fit).parameters

    @functools.wraps(fit)
    def wrapped(self: BaseEstimator, *args: Any, **kwargs: Any) -> Any:
        with changing(self, kwargs.pop("callbacks", ()) if listened else ()) as listeners:
            return fit(self, *args, **kwargs, **({"callbacks": listeners} if listened else {}))

    return cast(F, wrapped)


@contextmanager
def changing(estimator: BaseEstimator, callbacks: Iterable[Callback]) -> Iterator[tuple[Listener, ...]]:
    """One fit, with the callbacks for it; see ``notified``. An error that ``keep_despite`` was given undoes nothing.

    Only what has begun here ends here: an estimator hands its listeners on to those that it fits within.
    """
    if not isinstance(callbacks, list | tuple) or not all(callable(c) or isinstance(c, FitCallback) for c in callbacks):
        raise ValueError(f"callbacks must be a list of functions, each given a record; got {shown(callbacks)}.")
    before = dict(vars(estimator))
    listeners: list[Listener] = []
    begun: list[Listener] = []
    failure: BaseException | None = None
    try:
        for callback in callbacks:
            if isinstance(callback, FitCallback):
                callback = callback.begin(estimator)  # noqa: PLW2901
                begun.append(callback)
            listeners.append(callback)
        yield tuple(listeners)
    except BaseException as error:
        failure = error
        if getattr(error, "kept_by", None) is not estimator:
            vars(estimator).clear()
            vars(estimator).update(before)
        raise
    finally:
        with ExitStack() as rest:  # all of them are told, also where one fails
            for listener in reversed(begun):
                if hasattr(listener, "end"):
                    rest.callback(listener.end, estimator, failure)


def keep_despite(error: BaseException, estimator: BaseEstimator) -> None:
    """What the estimator has learned before this error came is worth keeping."""
    error.kept_by = estimator  # type: ignore[attr-defined]


def users_line() -> int:
    """The ``stacklevel`` at which a warning names the user's own line: the first call from outside of this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("maxmargin", "contextlib"):
        level, frame = level + 1, frame.f_back
    return level
