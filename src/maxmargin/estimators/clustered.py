"""Training on a cluster: data is cut into pieces, and each worker makes the problem of its own piece."""

from __future__ import annotations

import contextlib
import functools
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from ..checkpoint import CheckpointFolder
from ..constraints import Blocked, Searched
from ..constraints.oracle import count
from ..constraints.sourced import chosen, survey
from ..data.memory import Arrays
from ..data.splitting import split
from ..distributed import transport_of
from ..distributed.crew import Crew
from ..distributed.oracles import remote_oracle
from ..distributed.searching import LatentSearches, Searches
from ..distributed.shard import Shard
from ..distributed.sharded import OnShards, Saving, Sharded
from ..distributed.standings import Standings, is_searched, remote_objective
from ..problem import Problem, Solution
from ..protocols import Checkpoint, Chunk, LatentObjective, Oracle, Seekable, Solver
from ..solvers import solve
from ..solvers.certificate import lower_bound
from ..solvers.solve import first_interrupt
from . import inputs
from .certified import Run

_CHUNKS = 1000  # of data in memory, between which it can be cut


class LinearRecipe:
    """The problems of a linear estimator on a piece of its data.

    Parameters
    ----------
    estimator : LinearEstimator
        What it knows of all data (its classes, its number of features) has been set.
    piece : Seekable
    memory : int or None
        Bytes of rows up to which the piece is held in memory, rather than read again and again.
    """

    def __init__(self, estimator: Any, piece: Seekable, memory: int | None) -> None:
        self._estimator, self._piece, self._memory = estimator, piece, memory
        self._held: Seekable | None = None

    def problem(self, question: Any) -> Problem | None:
        if len(self._piece) == 0:
            return None
        if self._held is None and self._fits():
            self._held = _gathered(self._piece)
        problem = self._estimator._shard_problem(self._held or self._piece, question)
        if problem is None or self._held is None:
            return problem
        blocked: Blocked = problem.constraints
        for _, block in blocked.blocks():
            return replace(problem, constraints=block)
        return None

    def _fits(self) -> bool:
        size = sum(self._piece.nbytes(i) for i in range(len(self._piece.offsets) - 1))
        return self._memory is None or size <= self._memory


class StructuredRecipe(Searches):
    """The problem of a structured estimator on a piece of its data, and its oracle.

    Parameters
    ----------
    estimator : StructuredEstimator
    model : Model
        With its sizes.
    piece : Pieces of ``in_memory`` or ``from_source``
    """

    def __init__(self, estimator: Any, model: Any, piece: Any) -> None:
        self._estimator, self._model, self._piece = bare(estimator), model, piece
        self._made: Problem | None = None

    def problem(self, question: Any) -> Problem | None:
        return self._piece.problem(self._estimator, self._model)

    def oracle(self) -> Oracle | None:
        if self._made is None:
            self._made = self.problem(None)
        return None if self._made is None else self._made.open.oracle


class Held(NamedTuple):
    """Examples that travel to their worker."""

    X: Any
    Y: Any
    weight: np.ndarray | None

    def problem(self, estimator: Any, model: Any) -> Problem | None:
        return estimator._problem(model, self.X, self.Y, self.weight) if len(self.Y) else None


class Read(NamedTuple):
    """Examples that their worker reads from a source."""

    source: Any
    prepare: Any

    def problem(self, estimator: Any, model: Any) -> Problem | None:
        if len(self.source) == 0:
            return None
        return estimator._sourced(model, self.source, survey(self.source), self.prepare)


def latent_recipe(objective: LatentObjective, make: Callable[[], Any] | None) -> Any:
    """What a worker does for an objective like this one. ``make`` gives that of its piece; None: it has no examples."""
    return LatentSearches(make) if is_searched(objective) else Standings(make)


def held(X: Any, Y: Any, weight: Any) -> Callable[[int], list[Held]]:
    """Cuts examples in memory into so many pieces."""

    def cut(n: int) -> list[Held]:
        weights = inputs.check_weights(weight, np.empty((count(X), 1)))
        parts = np.array_split(np.arange(count(X)), n)
        return [Held(chosen(X, p), chosen(Y, p), None if weights is None else weights[p]) for p in parts]

    return cut


def read(source: Any, prepare: Any) -> Callable[[int], list[Read]]:
    """Cuts a source into so many pieces, each of which a worker opens."""
    return lambda n: [Read(piece, prepare) for piece in split(source, n)]


def _gathered(piece: Seekable) -> Arrays:
    """A piece in memory, as one chunk."""
    numbers = range(len(piece.offsets) - 1)
    parts: list[Chunk] = [piece.chunk(i) for i in numbers]
    sparse = sp.issparse(parts[0].x)
    x = sp.vstack([p.x for p in parts], format="csr") if sparse else np.concatenate([p.x for p in parts])
    columns = [
        None if getattr(parts[0], name) is None else np.concatenate([getattr(p, name) for p in parts])
        for name in ("y", "group", "weight")
    ]
    for i in numbers:
        piece.release(i)
    return Arrays(x, *columns, n_features=piece.n_features, chunk_rows=max(len(piece), 1))


def as_source(x: Any, y: Any, group: Any = None, weight: Any = None) -> Arrays:
    """Arrays as a source of chunks that are small enough to be shared out among many."""
    return Arrays(x, y, group, weight, chunk_rows=max(1, x.shape[0] // _CHUNKS))


class Cluster:
    """The workers of one fit.

    Parameters
    ----------
    run : Run
    identity : function
        What the run is about, as checkpoints know it.
    """

    def __init__(self, run: Run, identity: Callable[[], dict[str, str]]) -> None:
        self._identity = {} if run.checkpoint is None else identity()  # before there is anything to close
        if self._identity:
            # A folder of another run is named as it was given, before any worker is started.
            CheckpointFolder(Path(run.checkpoint), self._identity).load()
        self.transport = transport_of(run.cluster)
        self._own = isinstance(run.cluster, str)
        self._run = run
        self._scratch = Path(tempfile.gettempdir()) / f"maxmargin-{secrets.token_hex(6)}"  # the same on all machines
        self.crew: Crew | None = None

    @property
    def size(self) -> int:
        return self.transport.n_workers

    def start(self, recipes: Sequence[Any]) -> None:
        """One worker for every recipe (``shard.Recipe``), or whatever else answers the questions that will come."""
        self.crew = Crew(self.transport, [functools.partial(Shard, recipe) for recipe in recipes])

    def start_linear(self, estimator: Any, source: Seekable, memory: int | None) -> None:
        """Cut the source, and let each worker have a piece and an estimator like this one."""
        pieces: Any = split(source, self.size)
        at_work = sum(len(piece) > 0 for piece in pieces)
        if at_work < min(self.size, len(source)):
            warnings.warn(
                f"{at_work} of {self.size} workers get rows, the others idle: data is cut between its batches, of "
                f"which there are {len(source.offsets) - 1}. maxmargin.data.convert(..., batch_bytes=...) writes "
                "smaller ones.",
                UserWarning,
                stacklevel=2,
            )
        self.start([LinearRecipe(bare(estimator), piece, memory) for piece in pieces])

    def problem(self, like: Problem, question: Any, part: str = "", **settings: Any) -> Problem:
        """The same problem as ``like``, its examples being with the workers."""
        known: Any = like.constraints
        constraints = Sharded(
            self.crew,  # type: ignore[arg-type]
            question,
            known.n_examples,
            known.n_weights,
            closed=known.closed,
            columns=known.dual_shape[1:] if known.closed else (),
            saving=self._saving(part),
            **settings,
        )
        return Problem(constraints, like.regularizer)

    def searched(self, like: Problem) -> Problem:
        """The same open problem, searched by the workers and optimized here."""
        crew: Crew = self.crew  # type: ignore[assignment]
        oracle = remote_oracle(crew, like.open.n_examples, like.n_weights)
        return Problem(Searched(oracle, like.open.budget), like.regularizer)

    def latent(self, like: LatentObjective) -> LatentObjective:
        """The same objective, looked at and searched by the workers."""
        return remote_objective(like, self.crew)  # type: ignore[arg-type]

    def _saving(self, part: str) -> Saving:
        if self._run.checkpoint is None:
            return Saving(self._scratch / part, {}, kept=False)
        return Saving(Path(self._run.checkpoint) / "shards" / part, self._identity, min(self._run.every, 10.0))

    def close(self) -> None:
        """Take leave of the workers and end them.

        Ctrl-C comes too late here to stop anything but this: what was found is kept, unless it was pressed just before.
        """
        hurry: KeyboardInterrupt | None = None
        for part in (self._take_leave, self._end):
            try:
                part()
            except KeyboardInterrupt as press:
                hurry = press
        if hurry is not None and not first_interrupt():
            raise hurry

    def _take_leave(self) -> None:
        with contextlib.suppress(Exception):
            if self.crew is not None:
                self.crew.farewell("end", "" if self._run.checkpoint is not None else str(self._scratch))

    def _end(self) -> None:
        try:
            if self._own:
                self.transport.close()
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)  # of workers that could not do so

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def bare(estimator: Any) -> Any:
    """An estimator like this one that knows no more than a worker must."""
    copy = clone(estimator)
    for name in ("classes_", "n_features_in_"):
        if hasattr(estimator, name):
            setattr(copy, name, getattr(estimator, name))
    return copy


def solve_on_shards(problem: Problem, solver: Solver, *, checkpoint: Checkpoint | None = None, **how: Any) -> Solution:
    """``solve``; the solution has the dual variables of all shards, in the order of the data.

    A worker that dies on the last way takes with it dual variables that the certificate relies on. Then the run goes on
    with what is left, or, if it was not to go on, the lower bound is that of what is left.
    """
    sharded: Any = problem.constraints
    while True:
        deaths = sharded.crew.deaths
        solution = solve(problem, solver, checkpoint=checkpoint, **how)
        solution = replace(solution, alpha=sharded.gather(solution.alpha))
        if sharded.crew.deaths == deaths:
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


def seed_of(random_state: Any) -> int:
    """A number that all workers' seeds follow from."""
    return int(np.random.default_rng(random_state).integers(2**31))
