"""Examples of a fit in this process: all in memory, or in chunks of a source that are read again and again.

A holder has the problems of a task and solves them; it is asked the same wherever the examples are (see ``workers``).
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import scipy.sparse as sp

from ..checkpoint import CheckpointFolder
from ..constraints.sourced import chosen
from ..data.array_source import Arrays
from ..data.chunked import keep_within
from ..data.errors import DataError
from ..data.source_checks import chunks_of
from ..problem import Problem, Solution
from ..protocols import Chunk, Seekable, Solver, Source
from ..solvers import solve
from ..validation import is_seekable
from . import inputs
from .certified import Callbacks, Run, Shares
from .fingerprints import fingerprint_of

if TYPE_CHECKING:
    from .training import Task

_CHUNKS = 1000  # of arrays in memory, between which they can be cut
_SMALLEST_BATCH, _LARGEST_BATCH = 2**15, 2**22  # bytes of a chunk of the copy of a source


class InMemory:
    """Arrays or lists in memory as a source of one chunk (``protocols.Seekable``). Nothing is copied.

    Parameters
    ----------
    x, y : matrix and labels, or lists
    group, weight : arrays or None
    fingerprint : function
        Tells the data in a short text; asked for only where a run is saved.
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        group: np.ndarray | None = None,
        weight: np.ndarray | None = None,
        *,
        fingerprint: Callable[[], str] = str,
    ) -> None:
        n = x.shape[0] if sp.issparse(x) else len(x)
        self._chunk = Chunk(np.arange(n), x, y, group, weight)
        self._fingerprint = fingerprint
        self.offsets = np.array([0, n])
        self.n_features = x.shape[1] if getattr(x, "ndim", 1) == 2 else None

    @property
    def fingerprint(self) -> str:
        return self._fingerprint()

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def chunk(self, i: int = 0) -> Chunk:
        return self._chunk

    labels = chunk

    def chunks(self, order: np.ndarray | None = None) -> Iterator[Chunk]:
        yield self._chunk

    def nbytes(self, i: int) -> int:
        return 0  # beyond what is in memory anyway

    def release(self, i: int) -> None:
        """The memory is the user's."""

    def replaced(self, x: object, y: object, rows: np.ndarray | None = None) -> InMemory:
        """The same examples in another form; where ``rows`` are given, these of them."""
        group, weight = self._chunk.group, self._chunk.weight
        if rows is not None:
            group, weight = (None if column is None else column[rows] for column in (group, weight))
        return InMemory(x, y, group, weight, fingerprint=self._fingerprint)

    def parts(self, n: int) -> list[InMemory]:
        """The examples in n parts of the same size."""
        chunk = self._chunk
        ids = np.array_split(np.arange(len(self)), n)
        return [
            InMemory(chosen(chunk.x, i), chosen(chunk.y, i), None, None if chunk.weight is None else chunk.weight[i])
            for i in ids
        ]

    def in_chunks(self) -> Arrays:
        """Rows of a matrix in chunks that are small enough to be shared out among many, those of a group together."""
        x, y, group = self._chunk.x, self._chunk.y, self._chunk.group
        if group is not None:
            place = np.argsort(group, kind="stable")
            x, y, group = x[place], y[place], group[place]
        return Arrays(x, y, group, self._chunk.weight, chunk_rows=max(1, len(self) // _CHUNKS))


def is_in_memory(source: Source) -> TypeGuard[InMemory]:
    """Whether the examples are in memory, in one chunk."""
    return isinstance(source, InMemory)


class Holder:
    """The problems of a fit whose examples this process reads: one block in memory, or a source chunk by chunk.

    Parameters
    ----------
    task : estimator
        Says what the constraints of a chunk are; see ``training.Task``.
    source : Source
    facts : object
        What ``task._survey`` has found out about all of the source.
    run : Run
    """

    def __init__(self, task: Task[Any, Any], source: Source, facts: object, run: Run) -> None:
        self.task, self.source, self.run = task, source, run
        self.in_memory = is_in_memory(source) and run.cluster is None
        """Whether all constraints are in memory."""
        self.local: list[Problem] = task._problems(source, facts)
        """The problems as this process sees them, by which warm starts are judged."""
        self.problems = self.local

    def at_a_time(self) -> int:
        """How many problems may be solved side by side: a source is read for one after another."""
        return inputs.check_threads(self.task.n_jobs) if self.in_memory else 1

    def solve(
        self, k: int, warm: Shares, threads: int, callbacks: Callbacks, folder: CheckpointFolder | None
    ) -> Solution:
        """Solve problem k."""

        def solved(problem: Problem, warm: Shares) -> Solution:
            solver = self._solver(problem, warm, threads, None if folder is None else str(folder.folder))
            return solve(problem, solver, warm=warm, callbacks=callbacks, checkpoint=folder, **self._goal())

        return self.task._solved(self.problems[k], warm, solved)

    def _solver(self, problem: Problem, warm: Shares, threads: int, scratch: str | None = None) -> Solver:
        return self.task._chosen_solver(problem, threads, warm is not None, self.task._centre(problem, warm), scratch)

    def _goal(self) -> dict[str, Any]:
        return {"tol": self.task.tol, "max_passes": int(self.task.max_passes)}

    def close(self) -> None:
        """Nothing is left behind."""


@contextlib.contextmanager
def readable(
    source: Source, memory: int | None, folder: Path | None = None, shared: bool = False
) -> Iterator[Seekable]:
    """The source itself if its chunks can be read in any order; else a copy on disk, for as long as it is needed.

    The copy keeps the order of the rows. It is made in ``folder``, where it stays for later runs, or in a temporary
    one. Where it is to be ``shared`` out among workers it has small chunks, between which it can be cut.
    """
    if is_seekable(source):
        yield source  # type: ignore[misc]
        return
    from .. import data

    if memory is not None:
        keep_within(source, memory)  # before any of it is read
    options: dict[str, Any] = {"shuffle": False, "memory": memory if memory is not None else "512MB"}
    options["dtype"] = _precision(source)
    if memory is not None:
        options["batch_bytes"] = min(max(memory // 64, _SMALLEST_BATCH), _LARGEST_BATCH)
    if shared:
        options["batch_bytes"] = _SMALLEST_BATCH
    if folder is not None:
        place = folder / "copy"
        with CheckpointFolder(place, {}):  # nobody else makes, uses or removes the copy meanwhile
            target, note, fingerprint = place / "data", place / "source", fingerprint_of(source)
            if not (target.exists() and note.exists() and note.read_text() == fingerprint):
                data.convert(source, target, overwrite=True, **options)  # a folder of anything else is refused
                note.write_text(fingerprint)
            yield data.open(target)  # type: ignore[misc]
        return
    with tempfile.TemporaryDirectory(prefix="maxmargin-") as scratch:
        yield data.convert(source, Path(scratch) / "data", **options)


def _precision(source: Source) -> str:
    """Numbers are kept as precise as they come."""
    with contextlib.closing(chunks_of(source)) as chunks:
        first = next(chunks, None)
    if first is None or not (isinstance(first.x, np.ndarray) or sp.issparse(first.x)):
        raise DataError("This source holds structured examples, or none; linear estimators need rows of a matrix.")
    return "float32" if first.x.dtype == np.float32 else "float64"
