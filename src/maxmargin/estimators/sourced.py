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
from ..problem import Rows
from ..protocols import Chunk, Seekable
from .fingerprints import of_source

_EMPTY = np.empty(0, np.int32)
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


def rows_of(x: Any, bias: float) -> Rows:
    """A chunk's matrix as rows. The source has checked it: nothing is looked at again, nothing copied."""
    if not hasattr(x, "indptr"):
        return Rows(_EMPTY, _EMPTY, x.reshape(-1), x.shape[0], x.shape[1], bias)
    if x.nnz == 0:
        return Rows(x.indptr, np.zeros(1, np.int32), np.zeros(1, x.dtype), x.shape[0], x.shape[1], bias)
    return Rows(x.indptr, x.indices, x.data, x.shape[0], x.shape[1], bias)


def labels_of(source: Seekable) -> Iterator[Chunk]:
    """Everything but the inputs, chunk by chunk."""
    if len(source) == 0:
        raise DataError("The source has no examples.")
    for i in range(len(source.offsets) - 1):
        chunk = source.labels(i)
        if chunk.y is None:
            raise DataError("The source has no labels. Give them: maxmargin.data.open(…, labels=y) or label='column'.")
        yield chunk
        source.release(i)  # labels of all chunks together may be more than memory allows


def checked_weights(chunk: Chunk) -> np.ndarray | None:
    """The weights of a chunk, not negative."""
    if chunk.weight is None:
        return None
    weight = np.asarray(chunk.weight, np.float64)
    bad = ~(np.isfinite(weight) & (weight >= 0.0))
    if bad.any():
        at = int(np.argmax(bad))
        raise DataError(
            f"The weight of row {chunk.ids[at]} is {weight[at]}; it must be finite and not negative.",
            row=int(chunk.ids[at]),
        )
    return weight


def checked_numbers(chunk: Chunk, meaning: str) -> np.ndarray:
    """The labels of a chunk as finite numbers."""
    try:
        y = np.ascontiguousarray(chunk.y, np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"Labels must be {meaning}, one number per row; there are values such as {str(chunk.y[0])!r}.",
            row=int(chunk.ids[0]),
        ) from None
    if not np.isfinite(y).all():
        at = int(np.argmin(np.isfinite(y)))
        raise DataError(f"The label of row {chunk.ids[at]} is {y[at]}; it must be finite.", row=int(chunk.ids[at]))
    return y
