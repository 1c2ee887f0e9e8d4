from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from ..kernels import pairs
from ..models import ranking
from ..models.ranking import by_group
from ..persistence import storable
from ..problem import Certificate, Problem
from . import inputs
from .linear import LinearEstimator


@storable("coef_", "_alpha", "_example_coef", "_fitted_C")
class RankingSVM(LinearEstimator):
    """Pairwise ranking: inside each group, examples of higher grade shall score higher.

    Minimises Ω(w) + C Σ max(0, 1 − w·(x_a − x_b)) over all pairs of one group (a query, a user, a day) with
    grade_a > grade_b. The pairs' differences are never formed.

    Parameters
    ----------
    C : float
        Price of a unit of loss of one pair.
    loss : {"hinge", "squared_hinge"}

    Attributes
    ----------
    coef_ : array (n_features,)
    certificate_, history_, n_passes_ : as for LinearSVC
    dual_coef_ : array (1, n_samples)
        How much of each example is in the weights, summed over its pairs.

    Notes
    -----
    The other parameters are those of :class:`LinearSVC`; there is no intercept, which no ranking could see.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [5.0], [4.0]])
    >>> ranker = RankingSVM(C=10.0, random_state=0).fit(X, [0, 1, 2, 1, 0], groups=[0, 0, 0, 1, 1])
    >>> ranker.score(X, [0, 1, 2, 1, 0], groups=[0, 0, 0, 1, 1])
    1.0
    """

    fit_intercept = False
    intercept_scaling = 1.0

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "hinge",
        tol: float = 1e-3,
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
        self.loss = loss
        self.tol = tol
        self.regularizer = regularizer
        self.solver = solver
        self.max_passes = max_passes
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def fit(self, X: Any, y: Any, groups: Any = None) -> RankingSVM:
        """Train on rows with grades ``y``; ``groups`` says which rows are compared (all of them by default)."""
        self._check_settings()
        X, y = inputs.check_matrix(self, X, y, reset=True, y_numeric=True)
        problem = self._problem(X, inputs.check_numbers(y, "grades"), groups)
        with self._progress() as callbacks:
            solution = self._solve(problem, self._warm(problem.closed.dual_shape), callbacks)
        self.coef_ = solution.weights
        rows = problem.closed.rows
        self._example_coef = np.bincount(rows.first, solution.alpha, minlength=X.shape[0]) - np.bincount(
            rows.second, solution.alpha, minlength=X.shape[0]
        )
        self._keep([solution], solution.alpha)
        return self

    def _problem(self, X: Any, y: np.ndarray, groups: Any) -> Problem:
        inputs.check_choice("loss", self.loss, ("hinge", "squared_hinge"))
        constraints = ranking(
            self._rows(X), y, _groups(groups, y), self._budget(None), squared=self.loss == "squared_hinge"
        )
        return Problem(constraints, self._regularizer(X.shape[1]))

    @property
    def dual_coef_(self) -> np.ndarray:
        check_is_fitted(self)
        return self._example_coef[None, :]

    def certify(self, X: Any, y: Any, groups: Any = None) -> Certificate:
        """Bounds on the optimum of the training problem, recomputed from weights and dual variables alone."""
        check_is_fitted(self)
        X, y = inputs.check_matrix(self, X, y, reset=False, y_numeric=True)
        problem = self._problem(X, inputs.check_numbers(y, "grades"), groups)
        return self._certify(problem, self.coef_, self._alpha)

    def predict(self, X: Any) -> np.ndarray:
        """Scores; only their order inside a group means anything."""
        check_is_fitted(self)
        X = inputs.check_matrix(self, X, reset=False)
        return np.asarray(X @ self.coef_.astype(X.dtype))

    def score(self, X: Any, y: Any, groups: Any = None) -> float:
        """Share of the pairs that are in the right order; ties count half."""
        y = inputs.check_numbers(column_or_1d(y), "grades")
        check_consistent_length(X, y)
        order, start = by_group(y, _groups(groups, y))
        return float(pairs.ordered_share(order, start, y, self.predict(X)))


def _groups(groups: Any, y: np.ndarray) -> np.ndarray:
    """Groups as whole numbers 0, 1, …; one group if none are given."""
    if groups is None:
        return np.zeros(y.shape[0], np.int64)
    groups = column_or_1d(groups)
    check_consistent_length(groups, y)
    return np.unique(groups, return_inverse=True)[1]
