"""A problem whose examples are with the workers, as the driver sees it, and where their dual variables are saved."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from ..checkpoint import CheckpointFolder
from ..constraints.base import Closed
from ..constraints.description import Description
from ..constraints.pool import Pool
from ..constraints.sums import DualSums
from ..data.errors import DataError
from ..problem import TotalLoss, Totals
from .interior import InteriorOnShards
from .shard import Beginning
from .work import Parcel
from .worker_group import Call, WorkerGroup


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


class Sharded:
    """Constraints of a closed problem that workers have in parts. All that certificates need are sums over shards.

    Parameters
    ----------
    workers : WorkerGroup
    question : int
        Which of its problems a worker is to take up; see ``shard.Recipe``.
    like : Closed
        The same constraints as the driver sees them; none of their rows is asked for.
    seed : int
    memory : int or None
        Bytes for each worker.
    saving : Saving
    """

    closed, held_in = True, "workers"
    _description: Description | None = None

    def __init__(
        self,
        workers: WorkerGroup,
        question: int,
        like: Closed,
        *,
        seed: int,
        memory: int | None,
        saving: Saving,
    ) -> None:
        self.workers = workers
        self.n_examples, self.n_weights = like.n_examples, like.n_weights
        self.columns = like.dual_shape[1:]
        """Shape of the dual variables of one example."""
        self._question, self._seed, self._memory, self._saving = question, seed, memory, saving
        self.pool: Pool | None = None
        """Examples whose dual variables the driver has, and ``pool_alpha``, these."""
        self.pool_alpha = np.empty((0, *self.columns))
        self.first = np.empty(0, np.int64)
        self._heard = workers.deaths

    def begin(self, alpha: np.ndarray | None) -> None:
        """Have all workers take up the problem; from these dual variables, or from what they saved, or from none."""
        self.pool, self.pool_alpha = None, np.empty((0, *self.columns))
        size = self.workers.size
        if alpha is None:
            alpha = self._saving.by_others(size, self.n_examples)
        if alpha is not None and not self.first.size:
            self._begin([None] * size)  # then it is known how many examples each has
        self._begin([None] * size if alpha is None else self._parts(alpha))

    def _begin(self, parts: Sequence[np.ndarray | None]) -> None:
        begun = False

        def beginning(k: int) -> tuple[Beginning]:
            return (
                Beginning(
                    question=self._question,
                    # A worker that starts anew has saved what is better than what the run began from.
                    alpha=None if begun else parts[k],
                    away=self.lent(k)[0] if begun else np.empty(0, np.int64),
                    seed=self._seed + k,
                    memory=self._memory,
                    checkpoint=self._saving.checkpoint(k, self.workers.size),
                ),
            )

        sizes = self.workers.set_up("begin", beginning)
        begun = True
        self.first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        if self.first[-1] != self.n_examples:
            raise DataError(
                f"The workers have {self.first[-1]} examples, the driver has counted {self.n_examples}. Do all "
                "machines see the same files?"
            )

    @property
    def dual_shape(self) -> tuple[int, ...]:
        return (self.n_examples, *self.columns)

    @property
    def n_constraints(self) -> int:
        return self.n_examples * max([1, *(k - 1 for k in self.columns)])

    def _parts(self, alpha: np.ndarray) -> list[np.ndarray]:
        """Dual variables of all examples, shard by shard."""
        return [alpha[a:b] for a, b in pairwise(self.first.tolist())]

    def _agree(self) -> None:
        """Tell workers which examples the driver has, once answers went unheard: what they handed over got lost."""
        if self._heard != self.workers.deaths:
            self.workers.ask("agree", lambda k: self.lent(k)[:1])
        self._heard = self.workers.deaths

    def lent(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Which examples of a shard the driver has, and their dual variables."""
        place = np.empty(0, np.int64) if self.pool is None else self.pool.place
        mine = (place >= self.first[k]) & (place < self.first[k + 1])
        return place[mine] - self.first[k], self.pool_alpha[mine]

    def take(self, k: int, parcel: Parcel, memory: int) -> None:
        """Examples of a worker's have come; those that there is no room for go back."""
        if self.pool is None:
            self.pool = Pool(memory)
        block, places, alpha, norms = parcel
        n = self.pool.add(block, np.arange(places.size), 0, norms)
        self.pool.place[len(self.pool) - n :] = self.first[k] + places[:n]
        self.pool_alpha = np.concatenate([self.pool_alpha, alpha[:n]])
        if n < places.size:
            Call(self.workers, k, "take_back", lambda k: (places[n:], alpha[n:])).result()

    def no_shares(self) -> np.ndarray:
        return np.zeros(self.dual_shape)

    def gather(self) -> np.ndarray:
        """The dual variables of all examples, in the order of the data."""
        self._agree()
        shares = self.workers.ask("shares")
        alpha = np.zeros(self.dual_shape)
        for k, part in enumerate(shares):
            if part is not None:
                alpha[self.first[k] : self.first[k + 1]] = part
        if self.pool is not None:
            alpha[self.pool.place] = self.pool_alpha
        return alpha

    def totals(self, alpha: np.ndarray | None = None) -> Totals:
        """Σ over shards, each from nothing; without ``alpha`` that of the shards' own, and what the driver has."""
        if alpha is None:
            self._agree()
        parts: Sequence[np.ndarray | None] = [None] * self.workers.size if alpha is None else self._parts(alpha)
        linear, heavy = self.workers.total("totals", lambda k: (parts[k],))
        sums = DualSums(self.n_weights)
        if heavy:
            v, error = heavy
            sums.add(Totals(0.0, v, 0.0, error))
        for one in linear:
            sums.add_linear(*one)
        if alpha is None and self.pool is not None and len(self.pool):
            sums.add(self.pool.constraints().totals(self.pool_alpha))
        return sums.totals()

    def combine(self, alpha: np.ndarray) -> np.ndarray:
        return self.totals(alpha).v

    def linear(self, alpha: np.ndarray) -> float:
        return self.totals(alpha).linear

    def feasible(self, alpha: np.ndarray) -> np.ndarray:
        return alpha

    def evaluate(self, w: np.ndarray) -> TotalLoss:
        handle = self.workers.transport.broadcast(w)
        return TotalLoss.sum(self.workers.ask("evaluate", lambda k: (handle,)))

    def describe(self) -> Description:
        if self._description is None:
            self._description = Description.joined([d for d in self.workers.ask("describe") if d is not None])
        return self._description

    def interior_rows(self, n_threads: int) -> InteriorOnShards:
        return InteriorOnShards(self, n_threads)
