from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..constraints import Scalar
from ..constraints.sourced import is_source
from ..models import regression
from ..persistence import storable
from ..problem import Certificate, Problem, Rows, Solution
from ..protocols import Chunk, Seekable
from . import inputs, sourced
from .certified import Run, all_or_nothing, certifying
from .clustered import as_source
from .fingerprints import of_arrays
from .linear import LinearEstimator
from .sourced import check_alone
from .telling import told


@storable(coef_="float[d]", intercept_="float", _alpha="float[n]|none", _fitted_C="float")
class LinearSVR(RegressorMixin, LinearEstimator):
    """Linear support vector regression with a certificate of optimality.

    Minimises Ω(w) + C Σ_i max(0, abs(w·x_i − y_i) − ε), or with the squares of these losses.

    Parameters
    ----------
    C : float
    epsilon : float
        Errors below this cost nothing.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}

    Notes
    -----
    The other parameters and the attributes are those of :class:`LinearSVC`; ``coef_`` has shape (n_features,),
    ``intercept_`` is a number, ``dual_coef_`` has shape (1, n_samples).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> svr = LinearSVR(C=10.0, epsilon=5.0, random_state=0).fit(X, y)
    >>> svr.certificate_.relative_gap <= 1e-3
    True
    """

    coef_: np.ndarray
    intercept_: float

    def __init__(
        self,
        C: float = 1.0,
        epsilon: float = 0.1,
        *,
        loss: str = "epsilon_insensitive",
        tol: float = 1e-3,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        regularizer: Any = None,
        solver: Any = "auto",
        max_passes: int = 20_000,
        memory: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.loss = loss
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.regularizer = regularizer
        self.solver = solver
        self.max_passes = max_passes
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    @told
    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        cluster: Any = None,
        checkpoint: Any = None,
        checkpoint_every: float = 30.0,
        callbacks: Sequence[Any] = (),
    ) -> LinearSVR:
        """Train on a matrix (dense or sparse) and one number per row, or on a source of both.

        The parameters are those of :meth:`LinearSVC.fit`.
        """
        self._check_settings()
        self._forget_stream()
        run = Run(checkpoint, checkpoint_every, callbacks, cluster)
        if is_source(X):
            check_alone(y=y, sample_weight=sample_weight)
            with self._readable(X, run) as source:
                self._take_shape(source, X)
                solution = self._fit_source(source, run, lambda: source.fingerprint)
        elif cluster is not None:
            X, y = inputs.check_matrix(self, X, y, reset=True, y_numeric=True)
            source = as_source(X, inputs.check_numbers(y, "targets"), None, inputs.check_weights(sample_weight, X))
            solution = self._fit_source(source, run, lambda: of_arrays(X, y, sample_weight))
        else:
            X, y = inputs.check_matrix(self, X, y, reset=True, y_numeric=True)
            problem = self._problem(X, y, sample_weight)
            solution = self._fit_one(problem, run, lambda: of_arrays(X, y, sample_weight))
        self._set_weights(solution.weights)
        self._keep([solution], solution.alpha)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVR:
        """Learn from one more chunk of a stream, of any size; see :meth:`LinearSVC.partial_fit`."""
        self._check_stream()
        X, y = inputs.check_matrix(self, X, y, reset=not hasattr(self, "_stream"), y_numeric=True)
        problem = self._problem(X, y, sample_weight)
        (weights,) = self._absorb([problem.closed], problem.regularizer, problem.n_weights)
        self._set_weights(weights)
        return self

    def _fit_source(self, source: Seekable, run: Run, fingerprint: Callable[[], str]) -> Solution:
        problem = self._blocked_problem(source)
        with self._on_cluster(source, run, fingerprint, [problem]) as (problem,):
            return self._fit_one(problem, run, fingerprint)

    def _shard_problem(self, source: Seekable, question: Any) -> Problem:
        """A worker's part of the problem."""
        return self._blocked_problem(source)

    def _set_weights(self, weights: np.ndarray) -> None:
        coef, intercept = self._split_weights(weights, 1)
        self.coef_, self.intercept_ = coef[0], float(intercept[0])

    def _problem(self, X: Any, y: np.ndarray, sample_weight: Any) -> Problem:
        budget = self._budget(inputs.check_weights(sample_weight, X))
        constraints = self._constraints(self._rows(X), inputs.check_numbers(y, "targets"), budget)
        return Problem(constraints, self._regularizer(X.shape[1]))

    def _blocked_problem(self, source: Seekable) -> Problem:
        """The same over a source."""
        bias, C = self._bias(), self._budget(None)
        for chunk in sourced.labels_of(source):
            sourced.checked_numbers(chunk, "targets")

        def block(chunk: Chunk) -> Scalar:
            weights = sourced.checked_weights(chunk)
            target = sourced.checked_numbers(chunk, "targets")
            return self._constraints(
                sourced.rows_of(chunk.x, bias), target, C if weights is None else self._budget(weights)
            )

        return self._blocked(source, block)

    def _check_settings(self) -> None:
        super()._check_settings()
        inputs.check_choice("loss", self.loss, ("epsilon_insensitive", "squared_epsilon_insensitive"))
        inputs.check_positive("epsilon", self.epsilon, zero=True)

    def _constraints(self, rows: Rows, target: np.ndarray, budget: np.ndarray) -> Scalar:
        return regression(
            rows,
            target,
            budget,
            epsilon=float(self.epsilon),
            squared=self.loss == "squared_epsilon_insensitive",
        )

    @property
    def dual_coef_(self) -> np.ndarray:
        """How much of each example is in the weights."""
        check_is_fitted(self)
        if self._alpha is None:
            raise AttributeError("dual_coef_ is not kept of streams.")
        return self._alpha[None, :]

    @certifying
    def certify(self, X: Any, y: Any = None, sample_weight: Any = None) -> Certificate:
        """Bounds on the optimum of the training problem on (X, y), recomputed from weights and dual variables alone.

        X may be a source of both.
        """
        check_is_fitted(self)
        if is_source(X):
            check_alone(y=y, sample_weight=sample_weight)
            with self._readable(X) as source:
                self._check_width(source)
                return self._certify(self._blocked_problem(source), self._flat_weights(), self._shares())
        X, y = inputs.check_matrix(self, X, y, reset=False, y_numeric=True)
        return self._certify(self._problem(X, y, sample_weight), self._flat_weights(), self._shares())

    def predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = inputs.check_matrix(self, X, reset=False)
        return np.asarray(X @ self.coef_.astype(X.dtype)) + self.intercept_

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Coefficient of determination R² of the predictions: 1 is perfect."""
        inputs.check_scored(self, X, y, sample_weight)
        return super().score(X, inputs.check_numbers(y, "targets"), sample_weight)
