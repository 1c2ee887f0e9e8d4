"""A data set appears whole or not at all: it is built under another name and put in place when it is complete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..files import remove_leftovers, replacing
from .errors import DataError
from .shard_format import CONTENTS


def check_target(target: Path, overwrite: bool) -> None:
    """Refuse, before any work is done, to replace what is not to be replaced."""
    remove_leftovers(target.parent)
    if not target.exists():
        return
    if not target.is_dir():
        raise DataError(f"{target} is a file. Shards need a folder.", path=str(target))
    held = sorted(path.name for path in target.iterdir())
    foreign = [name for name in held if not _ours(name)]
    if foreign and CONTENTS not in held:
        raise DataError(f"{target} has other files in it. Give a new folder.", path=str(target))
    if held and not overwrite:
        raise DataError(
            f"{target} holds a data set already. Open it, give another folder, or replace it with overwrite=True.",
            path=str(target),
        )
    if foreign:
        raise DataError(
            f"{target} has files in it that are no shards ({', '.join(foreign[:3])}), which overwrite=True would "
            "remove. Give another folder.",
            path=str(target),
        )


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """A new folder to write to, which becomes ``target``; after an error or Ctrl-C nothing of it is left."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as part:
            part.mkdir()
            yield part
    except OSError as error:
        raise DataError(
            f"{target} cannot be written: {error.strerror or error}. What was begun is removed. Give a folder with "
            "more room or other permissions.",
            path=str(target),
        ) from error


def _ours(name: str) -> bool:
    return name == CONTENTS or (name.endswith(".arrow") and name[: -len(".arrow")].isdigit())
