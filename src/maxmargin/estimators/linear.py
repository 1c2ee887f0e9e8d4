"""What the linear estimators share: settings, one way from data to a certified solution, and save."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..data.arrays import as_rows
from ..problem import Certificate, Problem, Record, Rows, Solution
from ..protocols import Regularizer
from ..regularizers import L2, Blocks
from ..solvers import best_start, certify, choose, solve
from . import inputs
from .certified import CertifiedEstimator


class LinearEstimator(CertifiedEstimator):
    """Base of the linear estimators. Subclasses turn (X, y) into constraints and weights into attributes."""

    n_features_in_: int
    _alpha: np.ndarray

    def _bias(self) -> float:
        if not self.fit_intercept:
            return 0.0
        return inputs.check_positive("intercept_scaling", self.intercept_scaling)

    def _rows(self, X: Any) -> Rows:
        return as_rows(X, bias=self._bias())

    def _budget(self, weights: np.ndarray | None) -> np.ndarray:
        """C_i for every example, or one C for all."""
        C = inputs.check_positive("C", self.C)
        return np.array([C]) if weights is None else C * weights

    def _regularizer(self, n_features: int, n_classes: int = 1) -> Regularizer:
        """The user's regularizer for the features, l2 for the intercept, the same for every class.

        Weights of several classes are stored feature by feature (see ``constraints.classes``).
        """
        features = self._own_regularizer()
        if self.regularizer is None:
            return features
        parts = []
        for k in range(n_classes):
            parts.append((np.arange(n_features) * n_classes + k, features))
            if self.fit_intercept:
                parts.append((np.array([n_features * n_classes + k]), L2()))
        return features if len(parts) == 1 else Blocks(parts)

    def _warm(self, shape: tuple[int, ...]) -> np.ndarray | None:
        """The last dual variables, if they belong to a problem of this shape and are wanted."""
        alpha = getattr(self, "_alpha", None)
        return alpha if self.warm_start and alpha is not None and alpha.shape == shape else None

    def _solve(
        self,
        problem: Problem,
        warm: np.ndarray | None,
        callbacks: tuple[Callable[[Record], object], ...] = (),
        threads: int | None = None,
    ) -> Solution:
        solver = choose(
            problem,
            self.solver,
            tol=self.tol,
            seed=self.random_state,
            threads=inputs.check_threads(self.n_jobs) if threads is None else threads,
            memory=inputs.check_memory(self.memory),
            warm=warm is not None,
        )
        if warm is not None:
            # Variables at their bound grow with C, those inside hardly do: which kind matters more is tried out.
            ratio = self.C / self._fitted_C
            warm = best_start(problem, [warm, warm * ratio]) if ratio != 1.0 else warm
        return solve(problem, solver, tol=self.tol, max_passes=int(self.max_passes), warm=warm, callbacks=callbacks)

    def _flat_weights(self) -> np.ndarray:
        """coef_ and intercept_ as the solver's weight vector, one column per class."""
        coef = np.atleast_2d(self.coef_)
        if not self.fit_intercept:
            return coef.T.ravel()
        intercept = np.atleast_1d(self.intercept_) / self._bias()
        return np.vstack([coef.T, intercept]).ravel()

    def _split_weights(self, w: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
        """(coef, intercept) with shapes (n_classes, n_features) and (n_classes,)."""
        table = w.reshape(-1, n_classes)
        if not self.fit_intercept:
            return np.ascontiguousarray(table.T), np.zeros(n_classes)
        return np.ascontiguousarray(table[:-1].T), table[-1] * self._bias()

    def _certify(self, problem: Problem, w: np.ndarray, alpha: np.ndarray | None) -> Certificate:
        """Bounds from nothing; dual variables that do not fit the data are left out (a lower bound at zero)."""
        if alpha is not None and alpha.shape != problem.closed.dual_shape:
            alpha = None
        return certify(problem, w, alpha)

    @property
    def support_(self) -> np.ndarray:
        """Examples with a dual variable that counts (above 1e-6 of the largest): the rest could be dropped."""
        check_is_fitted(self)
        size = np.abs(self.dual_coef_).max(axis=0)
        return np.flatnonzero(size > 1e-6 * size.max())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def solve_side_by_side(tasks: list[Callable[[Callable[[Record], object]], Solution]], threads: int) -> list[Solution]:
    """Independent solves on several threads (kernels release the GIL). Ctrl-C ends all of them in good order.

    Each task is given a callback that asks it to stop once an interrupt has been seen.
    """
    stop = threading.Event()

    def asked_to_stop(_: Record) -> bool:
        return stop.is_set()

    def run(task: Callable[[Callable[[Record], object]], Solution]) -> Solution:
        solution = task(asked_to_stop)
        if solution.interrupted:
            stop.set()
        return solution

    if threads == 1:
        return [run(task) for task in tasks]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        futures = []
        try:
            futures = [pool.submit(run, task) for task in tasks]
            return [f.result() for f in futures]
        except KeyboardInterrupt:
            # Only this thread hears of Ctrl-C: the others are told, and finish with what they have.
            stop.set()
            if len(futures) < len(tasks):
                raise
            return [replace(f.result(), interrupted=True) for f in futures]
