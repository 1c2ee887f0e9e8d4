from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..models import regression
from ..persistence import storable
from ..problem import Certificate, Problem
from . import inputs
from .linear import LinearEstimator


@storable("coef_", "intercept_", "_alpha", "_fitted_C")
class LinearSVR(RegressorMixin, LinearEstimator):
    """Linear support vector regression with a certificate of optimality.

    Minimises Ω(w) + C Σ_i max(0, |w·x_i − y_i| − ε), or with the squares of these losses.

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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVR:
        """Train on a matrix (dense or sparse, float32 or float64) and one number per row."""
        self._check_settings()
        X, y = inputs.check_matrix(self, X, y, reset=True, y_numeric=True)
        problem = self._problem(X, y, sample_weight)
        with self._progress() as callbacks:
            solution = self._solve(problem, self._warm(problem.closed.dual_shape), callbacks)
        coef, intercept = self._split_weights(solution.weights, 1)
        self.coef_, self.intercept_ = coef[0], float(intercept[0])
        self._keep([solution], solution.alpha)
        return self

    def _problem(self, X: Any, y: np.ndarray, sample_weight: Any) -> Problem:
        inputs.check_choice("loss", self.loss, ("epsilon_insensitive", "squared_epsilon_insensitive"))
        constraints = regression(
            self._rows(X),
            inputs.check_numbers(y, "targets"),
            self._budget(inputs.check_weights(sample_weight, X)),
            epsilon=inputs.check_positive("epsilon", self.epsilon, zero=True),
            squared=self.loss == "squared_epsilon_insensitive",
        )
        return Problem(constraints, self._regularizer(X.shape[1]))

    @property
    def dual_coef_(self) -> np.ndarray:
        """How much of each example is in the weights."""
        check_is_fitted(self)
        return self._alpha[None, :]

    def certify(self, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
        """Bounds on the optimum of the training problem on (X, y), recomputed from weights and dual variables alone."""
        check_is_fitted(self)
        X, y = inputs.check_matrix(self, X, y, reset=False, y_numeric=True)
        return self._certify(self._problem(X, y, sample_weight), self._flat_weights(), self._alpha)

    def predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = inputs.check_matrix(self, X, reset=False)
        return np.asarray(X @ self.coef_.astype(X.dtype)) + self.intercept_
