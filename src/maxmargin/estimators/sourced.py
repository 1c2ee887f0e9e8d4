"""Training from sources: data that is read in chunks, because it need not fit into memory."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..checkpoint import CheckpointFolder
from ..constraints.sourced import is_seekable
from ..data.errors import DataError
from ..protocols import Seekable
from .fingerprints import of_source

_SMALLEST_BATCH, _LARGEST_BATCH = 2**15, 2**22  # bytes of a chunk of the copy


def check_alone(**others: Any) -> None:
    """A source brings its answers and weights itself."""
    given = [name for name, value in others.items() if value is not None]
    if given:
        raise ValueError(
            f"A source holds inputs, answers and weights of its examples; {' and '.join(given)} must not be given "
            "beside it. Data in memory with answers becomes one source through maxmargin.data.open(X, labels=…)."
        )


@contextlib.contextmanager
def readable(source: Any, memory: int | None, folder: Path | None = None, shared: bool = False) -> Iterator[Seekable]:
    """The source itself if its chunks can be read in any order; else a copy on disk, for as long as it is needed.

    The copy keeps the order of the rows. It is made in ``folder``, where it stays for later runs, or in a temporary
    one. Where it is to be ``shared`` out among workers it has small chunks, between which it can be cut.
    """
    if is_seekable(source):
        yield source
        return
    from .. import data

    if memory is not None and hasattr(source, "keep_within"):
        source.keep_within(memory)  # before any of it is read
    options: dict[str, Any] = {"shuffle": False, "memory": memory if memory is not None else "512MB"}
    options["dtype"] = _precision(source)
    if memory is not None:
        options["batch_bytes"] = min(max(memory // 64, _SMALLEST_BATCH), _LARGEST_BATCH)
    if shared:
        options["batch_bytes"] = _SMALLEST_BATCH
    if folder is not None:
        place = folder / "copy"
        with CheckpointFolder(place, {}):  # nobody else makes, uses or removes the copy meanwhile
            target, note, fingerprint = place / "data", place / "source", of_source(source)
            if not (target.exists() and note.exists() and note.read_text() == fingerprint):
                data.convert(source, target, overwrite=True, **options)  # a folder of anything else is refused
                note.write_text(fingerprint)
            yield data.open(target)  # type: ignore[misc]
        return
    with tempfile.TemporaryDirectory(prefix="maxmargin-") as scratch:
        yield data.convert(source, Path(scratch) / "data", **options)


def _precision(source: Any) -> str:
    """Numbers are kept as precise as they come."""
    with contextlib.closing(source.chunks()) as chunks:
        first = next(chunks, None)
    if first is None or not hasattr(first.x, "dtype"):
        raise DataError("This source holds structured examples, or none; linear estimators need rows of a matrix.")
    return "float32" if first.x.dtype == np.float32 else "float64"
