"""Where answers are written to, and model files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from .. import files
from . import options
from .talk import Talk
from .tasks import task_of

if TYPE_CHECKING:
    from .kind import Kind


def check_writable(path: str | None, inputs: Sequence[str] = ()) -> None:
    """Complain now rather than after hours of training, and before an input is overwritten."""
    if path is None:
        return
    for other in inputs:
        if Path(path).exists() and Path(other).exists() and Path(path).samefile(other):
            raise ValueError(f"{path} would be overwritten, and it is one of the inputs. Name another file with -o.")
    files.check_writable(path)


def draw_into_files() -> None:
    """A command opens no window: pictures are drawn for files alone."""
    with suppress(ImportError):  # the page says what is missing
        import matplotlib

        matplotlib.use("agg")


def named(paths: list[str], most: int = 3) -> str:
    """The files by name, without their folders; of many only the first.

    >>> named(["data/a", "data/b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    shown = ", ".join(Path(path).name or path for path in paths[:most])
    return shown if len(paths) <= most else f"{shown} and {len(paths) - most} more"


def load_any(path: str) -> Any:
    """A model of any kind."""
    from ..estimators import load

    if not Path(path).exists():
        raise FileNotFoundError(f"There is no model file {path}. maxmargin train writes one.")
    return load(path)


def loaded(args: argparse.Namespace, talk: Talk) -> Kind[Any]:
    """What the task of the model that a command is about contributes; options of other tasks are refused."""
    model = load_any(args.model)
    task = task_of(model, args.model)
    options.resolve(args, task)
    kind = task.kind(args, talk)
    kind.use(model)
    return kind


@contextmanager
def answers_to(args: argparse.Namespace) -> Iterator[TextIO | None]:
    """Where answers go: a file that is there whole or not at all, stdout, or (with --json alone) nowhere."""
    if args.output is not None:
        with files.replacing(args.output) as path, open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            yield file
    else:
        yield None if args.json else sys.stdout


def on_one_line(text: str) -> str:
    """One line per answer is a promise: text labels and paths may hold anything."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
