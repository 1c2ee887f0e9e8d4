"""A problem whose examples are with the workers, as the driver sees it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..constraints.description import Description
from ..constraints.pool import Pool
from ..constraints.sums import DualSums
from ..data.errors import DataError
from ..problem import Planes, Problem, Solution, TotalLoss, Totals
from ..protocols import Checkpoint, Solver
from ..solvers import solve
from ..solvers.certificate import lower_bound
from .interior import InteriorOnShards
from .saved import folder_of, identity_of, joined, saved_by_others
from .shard import Beginning
from .worker_group import Call, WorkerGroup


class OnShards:
    """Dual variables that are where their examples are."""


@dataclass(frozen=True)
class Saving:
    """Where workers save their dual variables, how often, and what belongs to them.

    ``kept`` says whether a later run may go on from them; else they only help workers that die.
    """

    folder: Path
    identity: dict[str, str]
    every: float = 10.0
    kept: bool = True


class Sharded:
    """Constraints of a problem that workers have in parts. All that certificates need are sums over shards.

    Parameters
    ----------
    workers : WorkerGroup
    question : object
        Which of its problems a worker is to take up; see ``shard.Recipe``.
    n_examples, n_weights : int
    closed : bool
    columns : tuple
        Shape of the dual variables of one example of a closed problem.
    seed : int
    memory : int or None
        Bytes for each worker.
    saving : Saving or None
    """

    def __init__(
        self,
        workers: WorkerGroup,
        question: Any,
        n_examples: int,
        n_weights: int,
        *,
        closed: bool = True,
        columns: tuple[int, ...] = (),
        seed: int = 0,
        memory: int | None = None,
        saving: Saving | None = None,
    ) -> None:
        self.workers = workers
        self.n_examples, self.n_weights = n_examples, n_weights
        self.closed = closed
        self.holder = "workers" if closed else "searching workers"
        self.columns = columns
        self._question, self._seed, self._memory, self._saving = question, seed, memory, saving
        self.pool: Pool | None = None
        """Examples whose dual variables the driver has, and ``pool_alpha``, these."""
        self.pool_alpha = np.empty((0, *columns))
        self.first = np.empty(0, np.int64)
        self._heard = workers.deaths

    def begin(self, alpha: Any) -> None:
        """Have all workers take up the problem; from these dual variables, or from what they saved, or from none."""
        self.pool, self.pool_alpha = None, np.empty((0, *self.columns))
        size, saving = self.workers.size, self._saving
        if alpha is None and saving is not None and saving.kept:
            alpha = saved_by_others(saving.folder, saving.identity, size, self.n_examples)
        if alpha is not None and not self.first.size:
            self._begin([None] * size)  # then it is known how many examples each has
        self._begin([None] * size if alpha is None else self._parts(alpha))

    def _begin(self, parts: list[Any]) -> None:
        size, saving, begun = self.workers.size, self._saving, False

        def beginning(k: int) -> tuple[Beginning]:
            return (
                Beginning(
                    question=self._question,
                    # A worker that starts anew has saved what is better than what the run began from.
                    alpha=None if begun else parts[k],
                    away=self._away(k) if begun else np.empty(0, np.int64),
                    seed=self._seed + k,
                    memory=self._memory,
                    folder=None if saving is None else str(folder_of(saving.folder, k, size)),
                    identity={} if saving is None else identity_of(saving.identity, k, size),
                    every=0.0 if saving is None else saving.every,
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

    @property
    def oracle(self) -> None:
        """None here: searches are made by the workers."""

    def _parts(self, alpha: Any) -> list[Any]:
        """Dual variables of all examples, shard by shard."""
        if isinstance(alpha, Planes):
            cut = np.searchsorted(self.first, alpha.example, side="right") - 1
            parts: list[Any] = []
            for k in range(self.workers.size):
                mine = np.flatnonzero(cut == k)
                labels = [alpha.labels[i] for i in mine.tolist()]
                parts.append(Planes(alpha.example[mine] - self.first[k], labels, alpha.alpha[mine]))
            return parts
        return [alpha[a:b] for a, b in pairwise(self.first.tolist())]

    def _away(self, k: int) -> np.ndarray:
        """Which examples of a shard the driver has."""
        return self.lent(k)[0][0]

    def _agree(self) -> None:
        """Tell workers which examples the driver has, once answers went unheard: what they handed over got lost."""
        if self.closed and self._heard != self.workers.deaths:
            self.workers.ask("agree", lambda k: (self._away(k),))
        self._heard = self.workers.deaths

    def lent(self, k: int) -> tuple[tuple[np.ndarray, Any]]:
        """Which examples of a shard the driver has, and their dual variables."""
        if self.pool is None:
            return ((np.empty(0, np.int64), None),)
        place = self.pool.place
        mine = (place >= self.first[k]) & (place < self.first[k + 1])
        return ((place[mine] - self.first[k], self.pool_alpha[mine]),)

    def take(self, k: int, parcel: Any, memory: int) -> None:
        """Examples of a worker's have come; those that there is no room for go back."""
        if self.pool is None:
            self.pool = Pool(memory)
        block, places, alpha, norms = parcel
        n = self.pool.add(block, np.arange(places.size), 0, norms)
        self.pool.place[len(self.pool) - n :] = self.first[k] + places[:n]
        self.pool_alpha = np.concatenate([self.pool_alpha, alpha[:n]])
        if n < places.size:
            Call(self.workers, k, "take_back", lambda k: (places[n:], alpha[n:])).result()

    def no_shares(self) -> Any:
        return np.zeros(self.dual_shape) if self.closed else Planes(np.empty(0, np.int64), [], np.empty(0))

    def gather(self, alpha: Any) -> Any:
        """The dual variables of all examples, in the order of the data."""
        if not isinstance(alpha, OnShards):
            return alpha
        self._agree()
        shares = self.workers.ask("shares")
        if not self.closed:
            return joined(self.first, shares)
        alpha = self.no_shares()
        for k, part in enumerate(shares):
            if part is not None:
                alpha[self.first[k] : self.first[k + 1]] = part
        if self.pool is not None:
            alpha[self.pool.place] = self.pool_alpha
        return alpha

    def totals(self, alpha: Any) -> Totals:
        """Σ over shards, each from nothing, and what the driver has besides."""
        here = isinstance(alpha, OnShards)
        if here:
            self._agree()
        parts = [None] * self.workers.size if here else self._parts(alpha)
        linear, heavy = self.workers.total("totals", lambda k: (parts[k],))
        sums = DualSums(self.n_weights)
        if heavy:
            v, error = heavy
            sums.add(Totals(0.0, v, 0.0, error))
        for one in linear:
            sums.add_linear(*one)
        if here and self.pool is not None and len(self.pool):
            sums.add(self.pool.constraints().totals(self.pool_alpha))
        return sums.totals()

    def combine(self, alpha: Any) -> np.ndarray:
        return self.totals(alpha).v

    def linear(self, alpha: Any) -> float:
        return self.totals(alpha).linear

    def feasible(self, alpha: Any) -> Any:
        return alpha

    def evaluate(self, w: np.ndarray) -> TotalLoss:
        handle = self.workers.transport.broadcast(w)
        return TotalLoss.sum(self.workers.ask("evaluate", lambda k: (handle,)))

    def describe(self) -> Description:
        return Description.joined([d for d in self.workers.ask("describe") if d is not None])

    def interior_rows(self, n_threads: int) -> InteriorOnShards:
        return InteriorOnShards(self, n_threads)


def solve_on_shards(problem: Problem, solver: Solver, *, checkpoint: Checkpoint | None = None, **how: Any) -> Solution:
    """``solve``; the solution has the dual variables of all shards, in the order of the data.

    A worker that dies on the last way takes with it dual variables that the certificate relies on. Then the run goes on
    with what is left, or, if it was not to go on, the lower bound is that of what is left.
    """
    sharded: Any = problem.constraints
    while True:
        deaths = sharded.workers.deaths
        solution = solve(problem, solver, checkpoint=checkpoint, **how)
        solution = replace(solution, alpha=sharded.gather(solution.alpha))
        if sharded.workers.deaths == deaths:
            return solution
        lower = lower_bound(problem, solution.alpha)
        solution = replace(solution, certificate=replace(solution.certificate, lower=lower))
        if not solution.converged or solution.certificate.relative_gap <= how["tol"]:
            return solution
        checkpoint = _GoOn(solution, checkpoint)


class _GoOn:
    """A checkpoint (``protocols.Checkpoint``) from which a run goes on after a solution that was not kept whole."""

    def __init__(self, solution: Solution, saved: Checkpoint | None) -> None:
        self._solution, self._saved = solution, saved

    def load(self) -> dict[str, Any]:
        history = self._solution.history
        return {
            "state": {"alpha": OnShards(), "rounds": len(history)},
            "history": [tuple(vars(record).values()) for record in history],
            "weights": self._solution.weights,
            "seconds": history[-1].seconds if history else 0.0,
        }

    def due(self) -> bool:
        return self._saved is not None and self._saved.due()

    def save(self, content: dict[str, Any]) -> None:
        if self._saved is not None:
            self._saved.save(content)
