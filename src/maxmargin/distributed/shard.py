"""The object that lives on a worker: a part of the examples, with their dual variables."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..checkpoint import CheckpointFolder
from ..problem import Problem, TotalLoss
from ..rounding import gamma
from ..solvers.interior_rows import InteriorRows
from .closed_work import ClosedWork
from .explored_work import BlockWork, OpenWork
from .transport import Answer
from .work import Task, Work

_ADDITIONS = 64  # that a sum over shards takes on its way, at most: they are added four at a time


class Recipe(Protocol):
    """How a worker comes to the problems of its shard. It travels to the worker, the data need not."""

    def problem(self, question: Any) -> Problem | None:
        """The shard's own part of a problem, with the regularizer of the whole; None if it has no examples."""
        ...


class Beginning(NamedTuple):
    """What a worker needs to begin, or to begin again, with a problem."""

    question: Any
    """Which of the recipe's problems."""
    alpha: Any
    """Dual variables; None: those that were saved, or none."""
    away: np.ndarray
    """Examples whose dual variables the driver has."""
    seed: int
    memory: int | None
    """Bytes that the worker may use for what it keeps of the data."""
    folder: str | None
    """Where dual variables are saved, so that a worker that is killed loses little."""
    identity: dict[str, str]
    """What belongs to what is saved."""
    every: float
    """Seconds between two savings."""


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
        self._lent: tuple[np.ndarray, Any] = (np.empty(0, np.int64), None)
        self._round = 0

    def ask(self, method: str, *args: Any) -> Any:
        """A question to the recipe that only it understands."""
        return getattr(self._recipe, method)(*args)

    def begin(self, start: Beginning) -> int:
        """Make ready for a problem; returns how many examples of it are here."""
        self._close()
        self._problem = self._recipe.problem(start.question)
        self._work = self._rows = None
        self._lent, self._round = (np.empty(0, np.int64), None), 0
        if self._problem is None or self._problem.constraints.n_examples == 0:
            self._problem = None
            return 0
        alpha, saved = start.alpha, None
        if start.folder is not None:
            self._folder = CheckpointFolder(Path(start.folder), start.identity, start.every).__enter__()
            saved = self._folder.load() if alpha is None else None
        if saved is not None:
            alpha, self._round = saved["alpha"], int(saved["round"])
        if start.away.size and alpha is not None:
            self._lent = start.away, alpha[start.away]
        self._work = _work(self._problem, alpha, start)
        return self._problem.constraints.n_examples

    def describe(self) -> Any:
        """The constraints in a few numbers; None if there are none."""
        return None if self._problem is None else self._problem.constraints.describe()  # type: ignore[attr-defined]

    def improve(self, number: int, v: np.ndarray, task: Task) -> Answer:
        """One round; see ``work``."""
        began = time.perf_counter()
        self._round = number
        if self._work is None:
            return Answer(None)
        report, step = self._work.improve(v, task)
        if report.parcel is not None:
            self._lend(*report.parcel[1:3])
        if self._folder is not None and self._folder.due():
            self.save()
        return Answer(report._replace(round=number, seconds=time.perf_counter() - began), (step,))

    def take_back(self, places: np.ndarray, alpha: np.ndarray) -> None:
        """Dual variables that were handed over, and that there was no room for."""
        self._still_lent(~np.isin(self._lent[0], places))
        self._work.take_back(places, alpha)  # type: ignore[union-attr]

    def agree(self, away: np.ndarray) -> None:
        """The driver has these examples, and no others."""
        self._still_lent(np.isin(self._lent[0], away))
        if hasattr(self._work, "agree"):
            self._work.agree(away)  # type: ignore[union-attr]

    def totals(self, alpha: Any = None) -> Answer:
        """The linear part of the dual objective, and Σ α (truth − rival), from nothing; of these dual variables or of
        the shard's own."""
        if self._work is None or self._problem is None:
            return Answer((0.0, 0.0))
        found = self._work.totals() if alpha is None else self._problem.constraints.totals(alpha)
        return Answer(
            (found.linear, found.linear_error), (found.v, found.v_error + gamma(_ADDITIONS) * np.abs(found.v))
        )

    def evaluate(self, w: np.ndarray) -> TotalLoss:
        return TotalLoss(0.0) if self._problem is None else self._problem.constraints.evaluate(np.array(w))

    def shares(self) -> Any:
        """The dual variables that are here."""
        return None if self._work is None else self._work.alpha

    def save(self, lent: tuple[np.ndarray, Any] | None = None) -> None:
        """Save the dual variables; those that the driver has are as it last told them, or as they left."""
        self._lent = self._lent if lent is None else lent
        if self._folder is None or self._work is None:
            return
        alpha = self._work.alpha
        places, theirs = self._lent
        if places.size:  # only a closed problem's are lent
            alpha = alpha.copy()
            alpha[places] = theirs
        self._folder.save({"alpha": alpha, "round": self._round, "n": self._work.n_examples})

    def _lend(self, places: np.ndarray, alpha: np.ndarray) -> None:
        before, known = self._lent
        self._lent = np.concatenate([before, places]), alpha if known is None else np.concatenate([known, alpha])

    def _still_lent(self, which: np.ndarray) -> None:
        places, alpha = self._lent
        self._lent = places[which], None if alpha is None else alpha[which]

    def begin_interior(self, description: Any, n_threads: int) -> None:
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


def _work(problem: Problem, alpha: Any, start: Beginning) -> Any:
    """The work that suits the problem: closed and in memory, closed and in blocks, or open."""
    if not problem.constraints.closed:
        return OpenWork(problem, alpha, start.seed, start.memory)
    if hasattr(problem.constraints, "blocks"):
        return BlockWork(problem, alpha, start.seed, start.memory)
    return ClosedWork(problem, alpha, start.away, start.seed)
