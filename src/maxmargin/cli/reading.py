"""Rows of files, as the options of a command say, or as those of the data that a model was trained on."""

from __future__ import annotations

import argparse
from typing import Any

from ..data.errors import DataError

_ZERO_BASED = {"auto": "auto", "yes": True, "no": False}


def where(paths: list[str]) -> Any:
    """One path by itself (it may be a pattern or a folder), several as a list."""
    if "-" in paths:
        raise DataError("Data is read several times, which stdin cannot be. Write it to a file and name that.")
    return paths[0] if len(paths) == 1 else list(paths)


def reading(args: argparse.Namespace) -> dict[str, Any]:
    """What was said about how to read, in the words of ``maxmargin.data.open``."""
    from ..estimators.inputs import check_threads

    said = {name: getattr(args, name, None) for name in ("label", "group", "weight", "on_error")}
    said |= {"zero_based": _ZERO_BASED.get(args.zero_based), "n_jobs": check_threads(args.jobs)}
    features = getattr(args, "features", None)
    said["n_features"] = features if isinstance(features, int) else None  # of images it is a name
    return {key: value for key, value in said.items() if value is not None}


def open_source(paths: list[str], args: argparse.Namespace, *, like: Any = None, **more: Any) -> Any:
    """The source that the arguments name, read in the same way as what the model ``like`` was trained on."""
    from .. import data
    from ..data.opening import takes
    from ..data.sizes import as_bytes

    options = reading(args) | more
    origin = getattr(like, "origin_", {})
    if "zero_based" in origin and args.zero_based is None and takes(where(paths), "zero_based", {}):
        options["zero_based"] = origin["zero_based"]
    source = data.open(where(paths), **options)
    memory = getattr(args, "memory", None)
    if memory is not None and hasattr(source, "keep_within"):
        source.keep_within(as_bytes(memory, "memory"))
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


def again(args: argparse.Namespace, names: tuple[str, ...]) -> str:
    """Options as they were given, for a command that reads the same data again."""
    import shlex

    said = [(name, getattr(args, name, None)) for name in names]
    return "".join(f" --{name.replace('_', '-')} {shlex.quote(str(v))}" for name, v in said if v is not None)
