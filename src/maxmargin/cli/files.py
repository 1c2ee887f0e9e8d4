"""Files of a command: data, read as its options say or as a model's was; models; and where answers are written to."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from .. import files
from ..data.errors import DataError
from . import options
from .talk import Talk
from .tasks import task_of

if TYPE_CHECKING:
    from .kind import Kind


_ZERO_BASED = {"auto": "auto", "yes": True, "no": False}


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
        check_writable(args.output, [args.model, *args.data])
        with files.replacing(args.output) as path, open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            yield file
    else:
        yield None if args.json else sys.stdout


def on_one_line(text: str) -> str:
    """One line per answer is a promise: text labels and paths may hold anything."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


@contextmanager
def stdin_as_file(paths: list[str]) -> Iterator[list[str]]:
    """The files, where "-" is a temporary one with what comes from stdin: data is read more than once."""
    if "-" not in paths:
        yield paths
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stdin"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield [str(path) if name == "-" else name for name in paths]


def where(paths: list[str]) -> Any:
    """One path by itself (it may be a pattern or a folder), several as a list."""
    if "-" in paths:
        raise DataError("Data is read several times, which stdin cannot be. Write it to a file and name that.")
    return paths[0] if len(paths) == 1 else list(paths)


def reading(args: argparse.Namespace) -> dict[str, Any]:
    """What was said about how to read, in the words of ``maxmargin.data.open``."""
    from ..estimators.inputs import check_threads

    said = {name: vars(args).get(name) for name in ("label", "group", "weight", "on_error")}
    said |= {"zero_based": _ZERO_BASED.get(args.zero_based), "n_jobs": check_threads(args.jobs)}
    features = vars(args).get("features")
    said["n_features"] = features if isinstance(features, int) else None  # of images it is a name
    return {key: value for key, value in said.items() if value is not None}


def refuse_sentences(paths: list[str]) -> None:
    """Complain of CoNLL files where rows are needed."""
    from ..data.opening import kind_of

    if kind_of(where(paths)) == "conll":
        raise DataError(
            f"{paths[0]} is a CoNLL file, whose sentences are for taggers (--task sequence). Here rows of numbers are "
            "needed, such as svmlight text or Parquet."
        )


def open_source(paths: list[str], args: argparse.Namespace, *, like: object = None, **more: Any) -> Any:
    """The source that the arguments name, read in the same way as what the model ``like`` was trained on."""
    from .. import data
    from ..data.chunked import keep_within, origin_of
    from ..data.opening import takes
    from ..data.sizes import as_bytes

    options = reading(args) | more
    origin = getattr(like, "origin_", {})
    if "zero_based" in origin and args.zero_based is None and takes(where(paths), "zero_based", {}):
        options["zero_based"] = origin["zero_based"]
    refuse_sentences(paths)
    source = data.open(where(paths), **options)
    memory = vars(args).get("memory")
    if memory is not None:
        keep_within(source, as_bytes(memory, "memory"))
    check_columns(origin, origin_of(source))
    return source


def check_columns(trained: dict[str, Any], given: dict[str, Any]) -> None:
    """Columns with names must be those that the model was trained with, in their order."""
    before, now = trained.get("columns"), given.get("columns")
    if before is None or now is None or before == now:
        return
    pairs = enumerate(zip(before, now, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(before), len(now)))
    trained_with = repr(before[at]) if at < len(before) else "nothing"
    found = repr(now[at]) if at < len(now) else "nothing"
    raise DataError(
        f"The model was trained with {len(before)} columns, the data has {len(now)}; column {at + 1} of the features "
        f"was {trained_with}, here it is {found}. Give the same columns in the same order (--label, --group and "
        "--weight name those that are no features)."
    )
