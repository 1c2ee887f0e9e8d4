"""Examples of a fit on the workers of a cluster, each of which has a part of them."""

from __future__ import annotations

import contextlib
import functools
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

from ..checkpoint import CheckpointFolder
from ..constraints import Searched
from ..data.selections import split
from ..distributed import transport_of
from ..distributed.oracles import RemoteOracle
from ..distributed.requests import Requests
from ..distributed.searching import Searches
from ..distributed.shard import Shard
from ..distributed.sharded import Saving, Sharded
from ..distributed.worker_group import WorkerGroup
from ..problem import Problem, Solution
from ..protocols import Chunk, Oracle, Seekable, Source
from ..solvers.solve import first_interrupt, solve
from ..validation import is_seekable
from . import inputs
from .certified import Callbacks, Run, Shares
from .fit_callbacks import users_line
from .holders import Holder, InMemory, is_in_memory
from .inputs import Seed

if TYPE_CHECKING:
    from .training import Task

E = TypeVar("E", bound=BaseEstimator)


class OnWorkers(Holder):
    """Each worker of a cluster has a part of the examples."""

    def __init__(self, task: Task[Any, Any], source: Source, facts: Any, run: Run) -> None:
        super().__init__(task, task._for_workers(source), facts, run)
        self._cluster = cluster = Cluster(run)
        try:
            memory = inputs.check_memory(task.memory)
            pieces = self.source.parts(cluster.size) if is_in_memory(self.source) else split(self.source, cluster.size)
            _warn_of_idle(self.source, pieces)
            cluster.start([Recipe(bare(task), facts.for_pieces(), piece, memory) for piece in pieces])
            self._sharded = self.local[0].constraints.closed
            if not self._sharded:
                self.problems = [cluster.searched(problem) for problem in self.local]
                return
            names = [""] if len(self.local) == 1 else [f"class-{k}/" for k in range(len(self.local))]
            how = {"seed": seed_of(task.random_state), "memory": memory}
            self.problems = [cluster.problem(p, k, names[k], **how) for k, p in enumerate(self.local)]
        except BaseException:
            cluster.close()
            raise

    def close(self) -> None:
        self._cluster.close()

    def solve(
        self, k: int, warm: Shares, threads: int, callbacks: Callbacks, folder: CheckpointFolder | None
    ) -> Solution:
        if not self._sharded:
            return super().solve(k, warm, threads, callbacks, folder)
        problem = self.problems[k]
        resumed = folder is not None and folder.holds_a_state  # then workers have saved what is better
        problem.constraints.begin(None if resumed else warm)  # type: ignore[attr-defined]
        solver = self._solver(problem, warm, threads)
        return solve(problem, solver, callbacks=callbacks, checkpoint=folder, **self._goal())


class Recipe(Searches):
    """How a worker comes to the problems of its piece of the data, and to their oracle (``distributed.shard.Recipe``).

    Parameters
    ----------
    task : estimator
        Its parameters only.
    facts : object
        What is known of all data.
    piece : Source
    memory : int or None
        Bytes of rows up to which a piece is held in memory, rather than read again and again.
    """

    def __init__(self, task: Task[Any, Any], facts: object, piece: Source, memory: int | None) -> None:
        self._task, self._facts, self._piece, self._memory = task, facts, piece, memory

    def problem(self, question: int) -> Problem | None:
        if not len(self._piece) or (is_in_memory(self._held) and not self._task._size(self._held.labels())):
            return None
        return self._task._problems(self._held, self._facts, [question])[0]

    @functools.cached_property
    def _held(self) -> Source:
        return self._task._held(self._piece, self._memory)

    @functools.cached_property
    def _searched(self) -> Problem | None:
        return self.problem(0)

    def oracle(self) -> Oracle | None:
        return None if self._searched is None else self._searched.searched.oracle


def gathered(piece: Seekable) -> InMemory:
    """A piece in memory, as one chunk."""
    numbers = range(len(piece.offsets) - 1)
    parts: list[Chunk] = [piece.chunk(i) for i in numbers]
    sparse = sp.issparse(parts[0].x)
    x = sp.vstack([p.x for p in parts], format="csr") if sparse else np.concatenate([p.x for p in parts])

    def joined(column: list[np.ndarray | None]) -> np.ndarray | None:
        return None if column[0] is None else np.concatenate(column)  # type: ignore[arg-type]

    columns = joined([p.y for p in parts]), joined([p.group for p in parts]), joined([p.weight for p in parts])
    for i in numbers:
        piece.release(i)
    return InMemory(x, *columns)


def _warn_of_idle(source: Source, pieces: Sequence[Source]) -> None:
    """Of workers without rows, where smaller batches would give them some."""
    if source.n_features is None or not is_seekable(source):
        return
    n_batches = len(source.offsets) - 1  # type: ignore[attr-defined]
    at_work = sum(len(piece) > 0 for piece in pieces)
    if at_work < min(len(pieces), len(source)):
        warnings.warn(
            f"{at_work} of {len(pieces)} workers get rows, the others idle: data is cut between its batches, of "
            f"which there are {n_batches}. maxmargin.data.convert(..., batch_bytes=...) writes "
            "smaller ones.",
            UserWarning,
            stacklevel=users_line(),
        )


class Cluster:
    """The workers of one fit.

    Parameters
    ----------
    run : Run
    """

    def __init__(self, run: Run) -> None:
        if run.checkpoint is not None:  # a folder of another run is refused before any worker is started
            CheckpointFolder(Path(run.checkpoint), run.identity).load()
        self.transport = transport_of(run.cluster)  # type: ignore[arg-type]
        self._own = isinstance(run.cluster, str)
        self._run = run
        self._scratch = Path(tempfile.gettempdir()) / f"maxmargin-{secrets.token_hex(6)}"  # the same on all machines
        self.workers: WorkerGroup | None = None

    @property
    def size(self) -> int:
        return self.transport.n_workers

    def start(self, recipes: Sequence[Any]) -> None:
        """One worker for every recipe (``shard.Recipe``), or whatever else answers the questions that will come."""
        self.workers = WorkerGroup(self.transport, [functools.partial(Shard, recipe) for recipe in recipes])

    def problem(self, like: Problem, question: int, part: str = "", **settings: Any) -> Problem:
        """The same problem as ``like``, its examples being with the workers."""
        workers: WorkerGroup = self.workers  # type: ignore[assignment]
        whole: Any = like.constraints  # closed ones, in memory or in blocks
        constraints = Sharded(workers, question, whole, saving=self._saving(part), **settings)
        return Problem(constraints, like.regularizer)

    def searched(self, like: Problem) -> Problem:
        """The same open problem, searched by the workers and optimized here."""
        workers: WorkerGroup = self.workers  # type: ignore[assignment]
        here = like.searched
        oracle = RemoteOracle(Requests(workers, here.n_examples), like.n_weights, relaxed=here.relaxed)
        return Problem(Searched(oracle, here.budget), like.regularizer)

    def _saving(self, part: str) -> Saving:
        if self._run.checkpoint is None:
            return Saving(self._scratch / part, {}, kept=False)
        return Saving(Path(self._run.checkpoint) / "shards" / part, self._run.identity, min(self._run.every, 10.0))

    def close(self) -> None:
        """Shut the workers down and end them.

        Ctrl-C comes too late here to stop anything but this: what was found is kept, unless it was pressed just before.
        """
        hurry: KeyboardInterrupt | None = None
        for part in (self._shut_down, self._end):
            try:
                part()
            except KeyboardInterrupt as press:
                hurry = press
        if hurry is not None and not first_interrupt():
            raise hurry

    def _shut_down(self) -> None:
        with contextlib.suppress(Exception):
            if self.workers is not None:
                self.workers.shutdown("end", "" if self._run.checkpoint is not None else str(self._scratch))

    def _end(self) -> None:
        try:
            if self._own:
                self.transport.close()
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)  # of workers that could not do so


def bare(estimator: E) -> E:
    """An estimator like this one that knows no more than a worker must: its parameters, and the width of its data."""
    copy = clone(estimator)
    if "n_features_in_" in vars(estimator):
        copy.n_features_in_ = estimator.n_features_in_
    return copy


def seed_of(random_state: Seed) -> int:
    """A number that all workers' seeds follow from."""
    return int(np.random.default_rng(random_state).integers(2**31))
