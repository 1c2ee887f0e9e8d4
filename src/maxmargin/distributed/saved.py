"""Dual variables that the workers of an earlier run have saved, whatever their number was."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..checkpoint import CheckpointFolder
from ..problem import Planes


def folder_of(folder: Path, k: int, n: int) -> Path:
    """Where worker k of n saves."""
    return folder / f"of-{n}" / f"{k:05d}"


def identity_of(identity: dict[str, str], k: int, n: int) -> dict[str, str]:
    """What is written beside what worker k of n saves."""
    return {**identity, "shard": f"{k} of {n}"}


def saved_by_others(folder: Path, identity: dict[str, str], n: int, n_examples: int) -> Any:
    """What a run with another number of workers than n has saved, if it is the latest and complete; else None."""
    latest = max(folder.glob("of-*/*/CURRENT"), key=lambda path: path.stat().st_mtime, default=None)
    if latest is None:
        return None
    found = re.fullmatch(r"of-(\d+)", latest.parent.parent.name)
    if found is None or int(found[1]) == n:
        return None
    before = int(found[1])
    states = []
    for k in range(before):
        place = folder_of(folder, k, before)
        state = CheckpointFolder(place, identity_of(identity, k, before)).load() if place.exists() else None
        if state is not None:
            states.append((int(state["n"]), state["alpha"]))
    if sum(size for size, _ in states) != n_examples:
        return None  # some had saved nothing yet
    if not isinstance(states[0][1], Planes):
        return np.concatenate([alpha for _, alpha in states])
    first = np.cumsum([0, *(size for size, _ in states)])
    return joined(first, [alpha for _, alpha in states])


def joined(first: np.ndarray, shards: Sequence[Planes | None]) -> Planes:
    """Planes of all shards as one, given where the examples of each begin; None: a shard without examples."""
    found = [(start, planes) for start, planes in zip(first, shards, strict=False) if planes is not None]
    return Planes(
        np.concatenate([np.empty(0, np.int64), *(start + planes.example for start, planes in found)]),
        [label for _, planes in found for label in planes.labels],
        np.concatenate([np.empty(0), *(planes.alpha for _, planes in found)]),
    )
