"""Options that several commands share, and what they mean to the library."""

from __future__ import annotations

import argparse
from typing import Any

from ..data.errors import DataError

_ZERO_BASED = {"auto": "auto", "yes": True, "no": False}


def add_data(parser: argparse.ArgumentParser, *, required: bool = True, what: str = "data to read") -> None:
    """The data, and how to read it."""
    add_paths(parser, required=required, what=what)
    add_reading(parser)


def add_paths(parser: argparse.ArgumentParser, *, required: bool = True, what: str) -> None:
    """The data."""
    parser.add_argument(
        "data",
        nargs="+" if required else "*",
        metavar="DATA",
        help=f"{what}: files of one kind (.svm, .libsvm, .txt, also .gz or .zst; .parquet, .arrow, .npz), a pattern "
        "such as 'day-*.svm.gz', a folder written by maxmargin convert, or for scenes, parts and detectors a folder of "
        "images",
    )


def add_reading(parser: argparse.ArgumentParser, features: Any = None) -> None:
    """How to read data; ``features`` reads the option of that name."""
    group = parser.add_argument_group("reading data")
    group.add_argument(
        "--label",
        metavar="COL",
        help="column of labels (Parquet); label, y or target by default; "
        "detectors: the class to find, where boxes are of several",
    )
    group.add_argument("--group", metavar="COL", help="column of groups, for ranking (Parquet)")
    group.add_argument("--weight", metavar="COL", help="column of weights of rows (Parquet)")
    group.add_argument(
        "--zero-based", choices=sorted(_ZERO_BASED), help="whether text files count features from 0 (default: auto)"
    )
    group.add_argument(
        "--features",
        type=features or whole,
        metavar="N",
        help="number of features, where it is known"
        + ("; for scenes words (default) or cnn, for parts hog (default) or cnn" if features else ""),
    )
    group.add_argument(
        "--on-error",
        choices=("raise", "skip"),
        help="what to do with rows or images that cannot be read (default: raise)",
    )


def add_jobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=_jobs, default=1, metavar="N", help="threads; -1 for all cores (default: 1)")


def add_cluster(parser: Any) -> None:
    parser.add_argument(
        "--cluster", type=cluster, metavar="WHERE",
        help="train with workers, each of which holds a part of the rows: local:4 (processes of this machine), ray, "
        "ray://auto or ray://host:10001 (not for images)",
    )  # fmt: skip


def add_talk(parser: argparse.ArgumentParser) -> None:
    """How much to say, and in what form."""
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print one JSON object on stdout, and nothing else there")
    group.add_argument("--quiet", action="store_true", help="say nothing but warnings and errors")
    group.add_argument("--debug", action="store_true", help="show where in the code an error came from")


def open_data(paths: list[str], args: argparse.Namespace, *, like: Any = None, **more: Any) -> Any:
    """The source that the arguments name, read in the same way as what the model ``like`` was trained on.

    Only options that were given are handed on.
    """
    from .. import data
    from ..data.opening import takes
    from ..data.sizes import as_bytes

    options = reading(args) | more
    origin = getattr(like, "origin_", {})
    if "zero_based" in origin and args.zero_based is None and takes(where(paths), "zero_based", {}):
        options["zero_based"] = origin["zero_based"]
    source = data.open(where(paths), **options)
    if getattr(args, "memory", None) is not None and hasattr(source, "keep_within"):
        source.keep_within(as_bytes(args.memory, "memory"))
    check_columns(origin, getattr(source, "origin", {}))
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


def reading(args: argparse.Namespace) -> dict[str, Any]:
    """What was said about how to read, in the words of ``maxmargin.data.open``."""
    from ..estimators.inputs import check_threads

    said = {
        "label": args.label,
        "group": args.group,
        "weight": args.weight,
        "zero_based": None if args.zero_based is None else _ZERO_BASED[args.zero_based],
        "n_features": args.features,
        "on_error": args.on_error,
        "n_jobs": check_threads(args.jobs),
    }
    return {key: value for key, value in said.items() if value is not None}


def where(paths: list[str]) -> Any:
    """One path by itself (it may be a pattern or a folder), several as a list."""
    if "-" in paths:
        raise DataError("Data is read several times, which stdin cannot be. Write it to a file and name that.")
    return paths[0] if len(paths) == 1 else list(paths)


def positive(text: str) -> float:
    """A number above zero, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number greater than 0, got {text!r}")
    return value


def not_negative(text: str) -> float:
    try:
        zero = float(text) == 0.0
    except ValueError:
        zero = False
    return 0.0 if zero else positive(text)


def whole(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")
    return value


def count(text: str) -> int:
    """A whole number that may be zero."""
    return 0 if text.strip() == "0" else whole(text)


def share(text: str) -> float:
    """A number between zero and one, neither of them."""
    value = positive(text)
    if value >= 1.0:
        raise argparse.ArgumentTypeError(f"must be a number between 0 and 1, got {text!r}")
    return value


def cluster(text: str) -> str:
    """Where workers are. Nothing is begun yet: whoever has mistyped it knows at once."""
    from ..distributed.address import WORDS, place_of

    try:
        known = place_of(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"the number of workers must be a whole number of at least 1, got {text!r}"
        ) from None
    if known is None:
        possible = WORDS.replace('"', "")  # the shell needs no quotes
        raise argparse.ArgumentTypeError(f"must be {possible}, got {text!r}")
    return text


def _jobs(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value == 0:
        raise argparse.ArgumentTypeError(f"must be a whole number other than 0, got {text!r}")
    return value
