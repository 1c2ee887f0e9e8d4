"""Dual variables that workers save, and what those of an earlier run have saved, whatever their number was."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..checkpoint import CheckpointFolder
from ..problem import Planes


@dataclass(frozen=True)
class Saving:
    """Where workers save their dual variables, how often, and what belongs to them.

    ``kept`` says whether a later run may go on from them; else they only help workers that die.
    """

    folder: Path
    identity: dict[str, str]
    every: float = 10.0
    kept: bool = True

    def checkpoint(self, k: int, n: int) -> CheckpointFolder:
        """Where worker k of n saves."""
        identity = {**self.identity, "shard": f"{k} of {n}"}
        return CheckpointFolder(self.folder / f"of-{n}" / f"{k:05d}", identity, self.every)

    def by_others(self, n: int, n_examples: int) -> np.ndarray | Planes | None:
        """What a run with another number of workers than n has saved, if it is the latest and complete; else None."""
        latest = max(self.folder.glob("of-*/*/CURRENT"), key=lambda path: path.stat().st_mtime, default=None)
        found = None if latest is None else re.fullmatch(r"of-(\d+)", latest.parent.parent.name)
        if not self.kept or found is None or int(found[1]) == n:
            return None
        before = int(found[1])
        states = [state for k in range(before) if (state := self.checkpoint(k, before).load()) is not None]
        first = np.cumsum([0, *(int(state["n"]) for state in states)])
        if first[-1] != n_examples:
            return None  # some had saved nothing yet
        shares = [state["alpha"] for state in states]
        return joined(first, shares) if isinstance(shares[0], Planes) else np.concatenate(shares)


def joined(first: np.ndarray, shards: Sequence[Planes | None]) -> Planes:
    """Planes of all shards as one, given where the examples of each begin; None: a shard without examples."""
    found = [(start, planes) for start, planes in zip(first, shards, strict=False) if planes is not None]
    return Planes(
        np.concatenate([np.empty(0, np.int64), *(start + planes.example for start, planes in found)]),
        [label for _, planes in found for label in planes.labels],
        np.concatenate([np.empty(0), *(planes.alpha for _, planes in found)]),
    )
