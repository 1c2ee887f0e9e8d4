"""What a command says: messages for people on stderr, one JSON object for programs on stdout."""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Talk:
    """Speaks unless it was told not to. Colours only where stderr is a terminal."""

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet = quiet or as_json
        self.as_json = as_json
        self.on_terminal = sys.stderr.isatty()

    @property
    def progress(self) -> bool:
        """Whether a progress line that is rewritten makes sense."""
        return self.on_terminal and not self.quiet

    def say(self, text: str = "") -> None:
        if not self.quiet:
            self._print(text)

    @contextmanager
    def counting(self, what: str, of: str = "rows") -> Iterator[Callable[..., None]]:
        """A line that counts, with a bar where the end is known: the value is called with (rows, done, total)."""
        if not self.progress:
            yield lambda rows, done=None, total=None: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = TextColumn(what), TextColumn("{task.fields[rows]:,} " + of), BarColumn(), TimeElapsedColumn()
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            line = bar.add_task(what, total=None, rows=0)
            yield lambda rows, done=None, total=None: bar.update(line, rows=rows, completed=done or 0, total=total)

    def facts(self, title: str, facts: list[tuple[str, str]]) -> None:
        """A short table: what was done, and what came out."""
        if self.quiet:
            return
        width = max(len(key) for key, _ in facts)
        self._print(f"\n{title}", bold=True)
        for key, value in facts:
            self._print(f"  {key:<{width}}  {value}")

    def result(self, **values: Any) -> None:
        """The JSON object, if one is wanted: keys in the order given, numbers that JSON does not know as null."""
        if self.as_json:
            print(json.dumps(_plain(values), ensure_ascii=False, allow_nan=False))

    def _print(self, text: str, *, bold: bool = False) -> None:
        if not (bold and self.on_terminal):
            print(text, file=sys.stderr)
            return
        from rich.console import Console
        from rich.text import Text

        Console(stderr=True, soft_wrap=True).print(Text(text, style="bold"))


def warn(text: str) -> None:
    print(f"maxmargin: warning: {one_line(text)}", file=sys.stderr)


def say_checkpoint(folder: str | None, talk: Talk) -> None:
    """Whether training begins anew or goes on from what was saved before."""
    if folder is None:
        return
    saved = next(Path(folder).rglob("CURRENT"), None)
    talk.say(
        f"Checkpoint: nothing is saved in {folder} yet, training begins anew."
        if saved is None
        else f"Checkpoint: going on from what was saved in {folder} "
        f"at {time.strftime('%H:%M on %d %B', time.localtime(saved.stat().st_mtime))}."
    )


def say_left_out(source: Any) -> None:
    """Rows that could not be used are never passed over in silence."""
    from ..data.chunked import left_out

    n, said = left_out(source)
    if n:
        warn(f"{n} row{'s' * (n > 1)} left out; the first: {said[0]}" if said else f"{n} row{'s' * (n > 1)} left out")


def peak_memory() -> int | None:
    """The most memory this process has held so far, in bytes; None where the system does not say."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def complain(text: str) -> None:
    print(f"maxmargin: error: {one_line(text)}", file=sys.stderr)


def one_line(text: str) -> str:
    return " ".join(str(text).split())


@contextmanager
def warnings_in_plain_words(translated: Callable[[str], str] = str) -> Iterator[None]:
    """Python's warnings as lines of ours. A missed goal and rows other than those of training are left out: commands
    say that with the certificate."""
    from sklearn.exceptions import ConvergenceWarning

    def show(message: object, category: object, *_: Any, **__: Any) -> None:
        warn(translated(str(message)))

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        # Libraries talk to their own developers with these.
        developers = DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning
        for category in (*developers, ConvergenceWarning):
            warnings.simplefilter("ignore", category)
        warnings.filterwarnings("ignore", "These are not the rows of fit")
        warnings.showwarning = show
        yield


def _plain(value: object) -> Any:
    """Types that JSON has."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
