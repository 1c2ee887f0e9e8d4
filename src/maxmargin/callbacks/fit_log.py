"""One fit, told to some tool: the numbers of every record, and at the end the certificate."""

from __future__ import annotations

import math
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from numbers import Real
from typing import Any

from ..estimators.fit_callbacks import users_line
from ..problem import Certificate


class FitLog(ABC):
    """The callback for one fit. Subclasses say where numbers go.

    A tool that fails while a fit is under way (a disk that is full, a server that is gone) ends the log with one
    warning. It never ends the fit, whose weights are worth more.
    """

    tool: str

    def __init__(self) -> None:
        self._lock = threading.Lock()  # classes solved one-vs-rest report from several threads
        self._step = 0
        self._broken = False

    def __call__(self, record: Any) -> None:
        with self._lock:
            # One-vs-rest counts anew for every class, a fit that goes on from a checkpoint does not begin at 1.
            self._step = max(self._step + 1, getattr(record, "number", 0))
            self._attempt(lambda: self.log(numbers_of(record), self._step))

    def end(self, estimator: object, error: BaseException | None) -> None:
        """The fit is over; ``error`` is what ended it before its time."""
        self._attempt(lambda: self.finish(estimator, error))
        self._attempt(lambda: self.close(error), whatever=True)

    @abstractmethod
    def log(self, numbers: dict[str, float], step: int) -> None:
        """Write down the numbers of one record."""

    @abstractmethod
    def finish(self, estimator: object, error: BaseException | None) -> None:
        """Write down what the fit has come to."""

    @abstractmethod
    def close(self, error: BaseException | None) -> None:
        """Nothing more will come."""

    def _attempt(self, action: Callable[[], None], *, whatever: bool = False) -> None:
        if self._broken and not whatever:
            return
        try:
            action()
        except Exception as error:
            known, self._broken = self._broken, True
            if not known:
                self.warn(f"{self.tool} could not be written to: {error}. This fit goes on, and is not logged further.")

    def warn(self, message: str) -> None:
        warnings.warn(message, RuntimeWarning, stacklevel=users_line())


def numbers_of(record: object) -> dict[str, float]:
    """The finite numbers of a record by name, and the relative gap where both bounds are known."""
    found = {name: value for name, value in vars(record).items() if name != "number"}
    numbers = {
        name: float(value)
        for name, value in found.items()
        if isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    }
    if numbers.get("upper") and "lower" in numbers:
        numbers["relative_gap"] = max(numbers["upper"] - numbers["lower"], 0.0) / abs(numbers["upper"])
    return numbers


def certificate_of(estimator: object) -> Certificate | None:
    """What a fit has proved; not every estimator proves anything."""
    return getattr(estimator, "certificate_", None)


def conclusion(estimator: object) -> dict[str, float]:
    """The certificate of a fitted estimator as numbers, as far as they are finite."""
    certificate = certificate_of(estimator)
    if certificate is None:
        return {}
    lower, upper, gap = certificate.lower, certificate.upper, certificate.relative_gap
    named = {"certificate_lower": lower, "certificate_upper": upper, "certificate_relative_gap": gap}
    return {name: float(value) for name, value in named.items() if math.isfinite(value)}


def needed(module: str, extra: str, purpose: str) -> Any:
    """A package that only some need, or an error that says how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{purpose} needs {module}, which could not be imported ({error}): pip install 'maxmargin[{extra}]'"
        ) from error
