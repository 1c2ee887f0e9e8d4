"""Dual variables that workers save, and what those of an earlier run have saved, whatever their number was."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..checkpoint import CheckpointFolder


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

    def by_others(self, n: int, n_examples: int) -> np.ndarray | None:
        """What a run with another number of workers than n has saved, if it is the latest and complete; else None."""
        latest = max(self.folder.glob("of-*/*/CURRENT"), key=lambda path: path.stat().st_mtime, default=None)
        found = None if latest is None else re.fullmatch(r"of-(\d+)", latest.parent.parent.name)
        if not self.kept or found is None or int(found[1]) == n:
            return None
        before = int(found[1])
        states = [state for k in range(before) if (state := self.checkpoint(k, before).load()) is not None]
        if sum(int(state["n"]) for state in states) != n_examples:
            return None  # some had saved nothing yet
        return np.concatenate([state["alpha"] for state in states])
