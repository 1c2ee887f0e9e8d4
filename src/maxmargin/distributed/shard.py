"""The object that lives on a worker: a part of the examples, with their dual variables."""

from __future__ import annotations

import shutil
import time
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..checkpoint import CheckpointFolder
from ..constraints.description import Description
from ..problem import Problem, TotalLoss
from ..rounding import gamma
from ..solvers.interior_rows import InteriorRows
from .transport import Answer
from .work import BlockWork, ClosedWork, Task, Work

_ADDITIONS = 64  # that a sum over shards takes on its way, at most: they are added four at a time


class Recipe(Protocol):
    """How a worker comes to the problems of its shard. It travels to the worker, the data need not."""

    def problem(self, question: int) -> Problem | None:
        """The shard's own part of a problem, with the regularizer of the whole; None if it has no examples."""
        ...


class Beginning(NamedTuple):
    """What a worker needs to begin, or to begin again, with a problem."""

    question: int
    """Which of the recipe's problems."""
    alpha: np.ndarray | None
    """Dual variables; None: those that were saved, or none."""
    away: np.ndarray
    """Examples whose dual variables the driver has."""
    seed: int
    memory: int | None
    """Bytes that the worker may use for what it keeps of the data."""
    checkpoint: CheckpointFolder
    """Where dual variables are saved, so that a worker that is killed loses little."""


class Shard:
    """A part of the examples and their dual variables, on a worker.

    Parameters
    ----------
    recipe : Recipe
    """

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._problem: Problem | None = None
        self._work: Work | None = None
        self._rows: InteriorRows | None = None
        self._folder: CheckpointFolder | None = None

    def ask(self, method: str, *args: Any) -> Any:
        """A question to the recipe that only it understands."""
        return getattr(self._recipe, method)(*args)

    def begin(self, start: Beginning) -> int:
        """Make ready for a problem; returns how many examples of it are here."""
        self._close()
        self._problem = self._recipe.problem(start.question)
        self._work = self._rows = None
        if self._problem is None or self._problem.constraints.n_examples == 0:
            self._problem = None
            return 0
        alpha = start.alpha
        self._folder = start.checkpoint.__enter__()
        if alpha is None and (saved := self._folder.load()) is not None:
            alpha = saved["alpha"]
        self._work = _work(self._problem, alpha, start)
        return self._problem.constraints.n_examples

    def describe(self) -> Description | None:
        """The constraints in a few numbers; None if there are none."""
        return None if self._problem is None else self._problem.constraints.describe()  # type: ignore[attr-defined]

    def improve(self, v: np.ndarray, task: Task) -> Answer:
        """One round; see ``work``."""
        began = time.perf_counter()
        if self._work is None:
            return Answer(None)
        report, step = self._work.improve(v, task)
        if self._folder is not None and self._folder.due():
            self.save()
        return Answer(report._replace(seconds=time.perf_counter() - began), (step,))

    def take_back(self, places: np.ndarray, alpha: np.ndarray) -> None:
        """Dual variables that were handed over, and that there was no room for."""
        if self._work is not None:
            self._work.take_back(places, alpha)

    def agree(self, away: np.ndarray) -> None:
        """The driver has these examples, and no others."""
        if self._work is not None:
            self._work.agree(away)

    def totals(self, alpha: np.ndarray | None = None) -> Answer:
        """The linear part of the dual objective, and Σ α (truth − rival), from nothing; of these dual variables or of
        the shard's own."""
        if self._work is None or self._problem is None:
            return Answer((0.0, 0.0))
        found = self._problem.constraints.totals(self._work.alpha if alpha is None else alpha)
        return Answer(
            (found.linear, found.linear_error), (found.v, found.v_error + gamma(_ADDITIONS) * np.abs(found.v))
        )

    def evaluate(self, w: np.ndarray) -> TotalLoss:
        return TotalLoss(0.0) if self._problem is None else self._problem.constraints.evaluate(np.array(w))

    def shares(self) -> np.ndarray | None:
        """The dual variables that are here."""
        return None if self._work is None else self._work.alpha

    def save(self, *lent: np.ndarray) -> None:
        """Save the dual variables; those that the driver has are as it tells them, or as they left."""
        if self._folder is not None and self._work is not None:
            alpha = self._work.whole(*lent)
            self._folder.save({"alpha": alpha, "n": self._work.n_examples})

    def begin_interior(self, description: Description, n_threads: int) -> None:
        """Points of the interior-point method for the rows that are here."""
        self._rows = None if self._problem is None else InteriorRows(self._problem.constraints, n_threads, description)

    def interior(self, method: str, *args: Any) -> Answer:
        """A question to these rows; sums over them are heavy."""
        if self._rows is None:
            return Answer(None)
        found = getattr(self._rows, method)
        found = found(*args) if callable(found) else found
        if method == "look":
            vector, sums = found
            return Answer(sums, (vector,))
        return Answer(None, found) if method == "advance" else Answer(found)

    def end(self, scratch: str) -> None:
        """The run has ended: others may have the folder. ``scratch``, if it has a name, is of no more use."""
        self._close()
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)

    def _close(self) -> None:
        if self._folder is not None:
            self._folder.__exit__()
            self._folder = None


def _work(problem: Problem, alpha: Any, start: Beginning) -> Work:
    """The work that suits the problem: in memory, or in blocks."""
    if problem.constraints.held_in == "blocks":
        return BlockWork(problem, alpha, start.seed, start.memory)
    return ClosedWork(problem, alpha, start.away, start.seed)
