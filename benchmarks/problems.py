"""The problems that every solver is asked to solve, and their primal objective.

All minimise 1/2 |w|^2 + C * sum of losses without an intercept, or, with one, with the intercept
regularised as a weight on a constant feature of value 1: the form that LIBLINEAR solves.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.sparse as sp
from datasets import Matrix, load

Task = Literal["binary", "ovr", "crammer_singer", "regression"]
Loss = Literal["hinge", "squared_hinge", "epsilon_insensitive"]


@dataclass(frozen=True)
class Problem:
    """What is solved, without its data or its C."""

    name: str
    dataset: str
    task: Task
    loss: Loss
    epsilon: float = 0.1
    intercept: bool = False
    rows: float | int | None = None


PROBLEMS = [
    Problem("news20 binary", "news20_binary", "binary", "hinge"),
    Problem("news20 one-vs-rest", "news20", "ovr", "hinge"),
    Problem("news20 Crammer-Singer", "news20", "crammer_singer", "hinge"),
    Problem("a9a", "a9a", "binary", "hinge"),
    Problem("a9a squared hinge", "a9a", "binary", "squared_hinge"),
    Problem("w8a", "w8a", "binary", "hinge"),
    Problem("covtype", "covtype", "binary", "hinge"),
    Problem("MNIST Crammer-Singer", "mnist", "crammer_singer", "hinge"),
    Problem("MNIST 20k Crammer-Singer", "mnist_20k", "crammer_singer", "hinge"),
    Problem("USPS Crammer-Singer", "usps", "crammer_singer", "hinge"),
    Problem("housing", "housing", "regression", "epsilon_insensitive"),
]


@dataclass(frozen=True)
class Instance:
    """A problem with its data."""

    problem: Problem
    X: Matrix
    y: np.ndarray

    @classmethod
    def of(cls, problem: Problem) -> "Instance":
        return cls(problem, *load(problem.dataset, problem.rows))

    @cached_property
    def classes(self) -> np.ndarray:
        return np.unique(self.y)

    @property
    def n_vectors(self) -> int:
        """Weight vectors to learn: one per class, or one."""
        return len(self.classes) if self.problem.task in ("ovr", "crammer_singer") else 1

    def primal(self, W: np.ndarray, C: float) -> float:
        """Objective of W, one row per class in sorted order (one row if binary or regression), in float64.

        With an intercept the last column of W holds it.
        """
        W = np.atleast_2d(np.asarray(W, np.float64))
        losses = sum(self._losses(rows, W) for rows in _slices(len(self.y)))
        return 0.5 * float(np.vdot(W, W)) + C * losses

    def _losses(self, rows: slice, W: np.ndarray) -> float:
        X, y = self.X[rows], self.y[rows]
        # Float32 features are widened here, slice by slice, so that no full float64 copy is made.
        X = X.astype(np.float64)
        scores = X @ W[:, : X.shape[1]].T
        if self.problem.intercept:
            scores += W[:, -1]
        task = self.problem.task
        if task == "regression":
            errors = np.abs(scores[:, 0] - y) - self.problem.epsilon
        elif task == "binary":
            errors = 1 - y * scores[:, 0]
        elif task == "ovr":
            errors = 1 + scores
            at = (np.arange(len(y)), np.searchsorted(self.classes, y))
            errors[at] = 2 - errors[at]
        else:
            at = (np.arange(len(y)), np.searchsorted(self.classes, y))
            truth = scores[at].copy()
            scores[at] -= 1
            errors = 1 + scores.max(axis=1) - truth
        errors = np.maximum(errors, 0)
        return float((errors**2 if self.problem.loss == "squared_hinge" else errors).sum())

    def sparse(self) -> sp.csr_matrix:
        """The features in float64 CSR, without stored zeros: the form that suits the peers best."""
        return sp.csr_matrix(self.X, dtype=np.float64)


def _slices(n: int, size: int = 20000) -> list[slice]:
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
