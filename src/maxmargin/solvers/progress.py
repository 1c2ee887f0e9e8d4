"""A progress line for people: one line that is rewritten, and left standing when the run ends."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

from ..problem import Record


class ProgressLine:
    """A callback for ``solve`` that shows pass, bounds and gap on the terminal (through rich).

    Use it as a context manager, so that the line is closed whatever happens:

    >>> from maxmargin.solvers.progress import ProgressLine
    >>> with ProgressLine("demo", tol=1e-3) as line:
    ...     pass
    """

    def __init__(self, title: str, tol: float) -> None:
        self.title = title
        self.tol = tol
        self._status: Any = None

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
        self._last = ""
        self._status.start()
        return self

    def __call__(self, record: Record) -> None:
        known = math.isfinite(record.upper)
        gap = (record.upper - record.lower) / abs(record.upper) if known and record.upper else math.inf
        shown = f"gap {gap:.1e}" if known else "gap not known yet"
        upper = "upper" if record.exact else "objective as far as the approximate search sees"
        self._last = (
            f"{self.title}: pass {record.number}, {shown} (goal {self.tol:.0e}), lower {record.lower:.6g}, "
            f"{upper} {record.upper:.6g}, active {record.active}, {record.seconds:.1f} s"
        )
        self._status.update(self._last)

    def __exit__(self, *_: object) -> None:
        self._status.stop()
        if self._last:
            self._console.print(self._last, highlight=False)
