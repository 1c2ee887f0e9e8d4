"""A progress line for people: one line that is rewritten, and stays when the run ends."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ..problem import Record

T = TypeVar("T")


class ProgressLine:
    """A callback for ``solve`` that shows pass, gap, bounds, speed and memory on the terminal (by rich).

    Use it as a context manager, so that the line is closed whatever happens:

    >>> from maxmargin.solvers.progress import ProgressLine
    >>> with ProgressLine("demo", tol=1e-3) as line:
    ...     pass
    """

    def __init__(self, title: str, tol: float) -> None:
        self.title = title
        self.tol = tol
        self._status: Any = None
        self._last = ""

    @classmethod
    @contextlib.contextmanager
    def as_callbacks(cls, title: str, tol: float) -> Iterator[tuple[ProgressLine]]:
        """The line as the tuple of callbacks that ``solve`` takes."""
        with cls(title, tol) as line:
            yield (line,)

    def __enter__(self) -> ProgressLine:
        from rich.console import Console

        self._console = Console(stderr=True)
        self._status = self._console.status(f"{self.title}: starting")
        self._status.start()
        return self

    def __call__(self, record: Record) -> None:
        self._last = f"{self.title}: {described(record, self.tol)}"
        self._status.update(self._last)

    def during(self, number: int, done: float, seconds: float) -> None:
        """A pass takes long: show how far it has come."""
        after = f" (after {self._last.removeprefix(self.title + ': ')})" if self._last else ""
        self._status.update(f"{self.title}: pass {number}, {done:.0%} read, {seconds:.0f} s{after}")

    def __exit__(self, *_: object) -> None:
        self._status.stop()
        if self._last:
            self._console.print(self._last, highlight=False)


class NestedLine(ProgressLine):
    """A progress line for passes within larger steps: the passes of the step at hand, and what the last one reached."""

    _after = ""

    @classmethod
    @contextlib.contextmanager
    def callbacks_for(
        cls, title: str, tol: float, said: Callable[[T], str], shown: bool
    ) -> Iterator[tuple[tuple[NestedLine, ...], tuple[Callable[[T], None], ...]]]:
        """Callbacks for passes and for steps, if there is to be a line; ``said`` is the record of a step in words."""
        if not shown:
            yield (), ()
            return
        line = cls(title, tol)
        with line:
            yield (line,), (lambda record: line._reached(said(record)),)

    def __call__(self, record: Record) -> None:
        super().__call__(record)
        self._status.update(self._last + self._after)

    def _reached(self, said: str) -> None:
        """A step is done."""
        self._after = f" (after {said})"
        self._last = f"{self.title}: {said}"
        self._status.update(self._last)


def gap_of(record: Record) -> float:
    """The relative gap after a pass: what is proved, or else the solver's own estimate."""
    if math.isfinite(record.upper) and record.upper:
        return max(record.upper - record.lower, 0.0) / abs(record.upper)
    return record.estimate


def described(record: Record, tol: float) -> str:
    """A pass in one line."""
    known = math.isfinite(record.upper)
    gap = gap_of(record)
    shown = f"gap {gap:.1e}" if known else f"gap about {gap:.0e}" if math.isfinite(gap) else "gap not known yet"
    upper = "upper" if record.exact else "objective as far as the approximate search sees"
    bounds = f"lower {record.lower:.6g}, " + (f"{upper} {record.upper:.6g}, " if known else "")
    speed = f"{record.oracle_calls / record.seconds:,.0f} rows/s, " if record.seconds > 0.0 else ""
    return (
        f"pass {record.number}, {shown} (goal {tol:.0e}), {bounds}active {record.active}, {speed}"
        f"{record.bytes / 2**20:,.0f} MB at work, {record.seconds:.1f} s"
    )
