from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from ..models import binary, multiclass
from ..persistence import storable
from ..problem import Certificate, Problem, Solution
from . import inputs
from .certified import total
from .linear import LinearEstimator, solve_side_by_side


@storable("classes_", "coef_", "intercept_", "_alpha", "_label", "_fitted_C")
class LinearSVC(ClassifierMixin, LinearEstimator):
    """Linear support vector classification with a certificate of optimality.

    Minimises Ω(w) + C Σ_i loss_i, with Ω = ½‖w‖² unless another regularizer is given, and stops when the
    objective is proved to be within a share ``tol`` of the best possible.

    Parameters
    ----------
    C : float
        Price of a unit of loss; larger values fit the training data more closely.
    loss : {"hinge", "squared_hinge"}
        ``squared_hinge`` is for two classes and one-vs-rest.
    multi_class : {"crammer_singer", "ovr"}
        One joint problem over all classes, or one problem per class.
    tol : float
        Relative duality gap (upper − lower)/upper at which to stop.
    fit_intercept : bool
        Whether to learn an intercept. It is regularized like a weight on a constant feature.
    intercept_scaling : float
        The value of that constant feature: larger values regularize the intercept less.
    regularizer : object from ``maxmargin.regularizers`` or None
        For the weights of the features; repeated for every class.
    class_weight : dict, "balanced" or None
        Factors of C by class.
    cost : array (n_classes, n_classes) or None
        Margins asked for between the true class (row) and every other (column) in the Crammer–Singer problem, classes
        in the order of ``classes_``; 1 everywhere by default.
    solver : {"auto", "dual_coordinate", "interior_point"} or Solver
    max_passes : int
        Most passes of the solver.
    memory : int, str or None
        Bytes of working memory allowed beyond data and weights, such as "200MB".
    n_jobs : int or None
        Threads.
    random_state : int, Generator or None
        Order of visits. The same seed and one thread give the same bits.
    warm_start : bool
        Start the next ``fit`` from the dual variables of the last one.
    verbose : int
        Show a progress line.

    Attributes
    ----------
    coef_, intercept_ : arrays (n_classes or 1, n_features) and (n_classes or 1,)
    classes_ : array
    certificate_ : Certificate
        Bounds between which the optimum lies.
    history_ : list of Record
        One per pass (one class after another if solved one-vs-rest).
    dual_coef_ : array (n_classes or 1, n_samples)
        With l2, ``coef_`` is ``dual_coef_ @ X`` to within the tolerance.
    support_ : array of int
        Examples with a dual variable that counts.
    n_passes_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> svm = LinearSVC(C=1.0, random_state=0).fit(X, y)
    >>> svm.certificate_.relative_gap <= 1e-3
    True
    >>> svm.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "hinge",
        multi_class: str = "crammer_singer",
        tol: float = 1e-3,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        regularizer: Any = None,
        class_weight: Any = None,
        cost: Any = None,
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
        self.multi_class = multi_class
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.regularizer = regularizer
        self.class_weight = class_weight
        self.cost = cost
        self.solver = solver
        self.max_passes = max_passes
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVC:
        """Train on a matrix (dense or sparse, float32 or float64) and one label per row."""
        self._check_settings()
        inputs.check_labels(y)
        X, y = inputs.check_matrix(self, X, y, reset=True)
        inputs.check_classes(y)
        self.classes_ = np.unique(y)
        label = np.searchsorted(self.classes_, y).astype(np.int32)  # a fifth of the time of np.unique's inverse
        if self.classes_.size < 2:
            raise ValueError(
                f"LinearSVC needs examples of at least 2 classes, y has one class only: {self.classes_[0]!r}."
            )
        problems = self._problems(X, label, sample_weight)
        warm = self._warm(self._dual_shape(problems))
        with self._progress() as callbacks:
            if len(problems) == 1:
                solutions = [self._solve_one(problems[0], warm, callbacks)]
                alpha = solutions[0].alpha
            else:
                solutions = self._solve_one_vs_rest(problems, warm, callbacks)
                alpha = np.stack([s.alpha for s in solutions])
        self._set_weights([s.weights for s in solutions])
        self._label = label
        self._keep(solutions, alpha)
        return self

    def _is_joint(self) -> bool:
        """Whether all classes are one Crammer–Singer problem."""
        return self.classes_.size > 2 and self.multi_class == "crammer_singer"

    def _problems(self, X: Any, label: np.ndarray, sample_weight: Any) -> list[Problem]:
        """One problem for two classes or Crammer–Singer, one per class for one-vs-rest."""
        inputs.check_choice("loss", self.loss, ("hinge", "squared_hinge"))
        inputs.check_choice("multi_class", self.multi_class, ("crammer_singer", "ovr"))
        squared = self.loss == "squared_hinge"
        rows, n_classes = self._rows(X), self.classes_.size
        budget = self._budget(self._weights(X, label, sample_weight))
        if self._is_joint():
            if squared:
                raise ValueError(
                    "loss='squared_hinge' has no Crammer–Singer form. Use multi_class='ovr' or loss='hinge'."
                )
            cost = self._cost(n_classes)
            return [Problem(multiclass(rows, label, cost, budget), self._regularizer(X.shape[1], n_classes))]
        if self.cost is not None:
            raise ValueError("cost is for Crammer–Singer problems of three or more classes. Use class_weight here.")
        regularizer = self._regularizer(X.shape[1])
        positives = [1] if n_classes == 2 else range(n_classes)
        return [Problem(binary(rows, _signs(label, k), budget, squared=squared), regularizer) for k in positives]

    def _cost(self, n_classes: int) -> np.ndarray:
        if self.cost is None:
            return 1.0 - np.eye(n_classes)
        cost = np.asarray(self.cost, dtype=np.float64)
        if cost.shape != (n_classes, n_classes):
            raise ValueError(f"cost must have shape {(n_classes, n_classes)}, one row per class, got {cost.shape}.")
        return cost

    def _weights(self, X: Any, label: np.ndarray, sample_weight: Any) -> np.ndarray | None:
        """Factors of C from sample and class weights; None if there are none."""
        weights = inputs.check_weights(sample_weight, X)
        if self.class_weight is None:
            return weights
        by_class = compute_class_weight(
            self.class_weight, classes=self.classes_, y=self.classes_[label], sample_weight=weights
        )
        if not (np.isfinite(by_class).all() and (by_class >= 0).all() and by_class.any()):
            raise ValueError(
                "class_weight must be finite, not negative, and not zero for every class; "
                f"it gives {dict(zip(self.classes_.tolist(), by_class.tolist(), strict=True))}."
            )
        return by_class[label] if weights is None else by_class[label] * weights

    def _dual_shape(self, problems: list[Problem]) -> tuple[int, ...]:
        shape = problems[0].closed.dual_shape
        return shape if len(problems) == 1 else (len(problems), *shape)

    def _solve_one_vs_rest(
        self, problems: list[Problem], warm: np.ndarray | None, callbacks: tuple[Any, ...]
    ) -> list[Solution]:
        """One problem per class: classes share the threads, each is solved on one."""

        def task(k: int) -> Any:
            return lambda stop: self._solve(problems[k], None if warm is None else warm[k], (*callbacks, stop), 1)

        return solve_side_by_side([task(k) for k in range(len(problems))], inputs.check_threads(self.n_jobs))

    def _solve_one(self, problem: Problem, warm: np.ndarray | None, callbacks: tuple[Any, ...]) -> Solution:
        """Crammer–Singer under a regularizer without compiled class steps is written out row by row."""
        constraints = problem.closed
        if not constraints.supports(_kind(problem)):
            return _solve_written_out(self._solve, problem, constraints, warm, callbacks)
        return self._solve(problem, warm, callbacks)

    def _set_weights(self, weights: list[np.ndarray]) -> None:
        if self._is_joint():
            self.coef_, self.intercept_ = self._split_weights(weights[0], self.classes_.size)
            return
        split = [self._split_weights(w, 1) for w in weights]
        self.coef_ = np.vstack([coef for coef, _ in split])
        self.intercept_ = np.concatenate([intercept for _, intercept in split])

    @property
    def dual_coef_(self) -> np.ndarray:
        """How much of each example is in the weights of each class."""
        check_is_fitted(self)
        if not self._is_joint():
            return np.atleast_2d(self._alpha)
        coefficients = -self._alpha.T
        coefficients[self._label, np.arange(self._label.size)] = self._alpha.sum(axis=1)
        return coefficients

    def certify(self, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
        """Bounds on the optimum of the training problem on (X, y), recomputed from weights and dual variables alone.

        On data of another size the dual variables say nothing, and the lower bound is the trivial one.
        """
        check_is_fitted(self)
        X, y = inputs.check_matrix(self, X, y, reset=False)
        label = np.searchsorted(self.classes_, y)
        unknown = (label >= self.classes_.size) | (self.classes_[np.minimum(label, self.classes_.size - 1)] != y)
        if unknown.any():
            at = int(np.argmax(unknown))
            raise ValueError(f"y[{at}] is {y[at]!r}, a class that was not in the training data.")
        problems = self._problems(X, label, sample_weight)
        if self._is_joint() or len(problems) == 1:
            return self._certify(problems[0], self._flat_weights(), self._alpha)
        table = self._flat_weights().reshape(-1, len(problems))
        return total([self._certify(p, table[:, k].copy(), self._alpha[k]) for k, p in enumerate(problems)])

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed distances from the hyperplanes, scaled by ‖w‖: (n,) for two classes, else (n, n_classes)."""
        check_is_fitted(self)
        X = inputs.check_matrix(self, X, reset=False)
        scores = np.asarray(X @ self.coef_.T.astype(X.dtype)) + self.intercept_
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]


def _signs(label: np.ndarray, positive: int) -> np.ndarray:
    return 2 * (label == positive).astype(np.int8) - 1


def _kind(problem: Problem) -> Any:
    """The type of weight map the solver will use; a pure group norm becomes a grouped one."""
    regularizer = problem.regularizer
    if getattr(regularizer, "pure", False):
        regularizer = regularizer.around(np.zeros(problem.n_weights), 1.0)  # type: ignore[attr-defined]
    return regularizer.shape(problem.n_weights).kind


def _solve_written_out(
    solve: Any, problem: Problem, constraints: Any, warm: np.ndarray | None, callbacks: tuple[Any, ...]
) -> Solution:
    """Solve over explicit rows, and carry the dual variables back to the shape of the classes."""
    rivals = constraints.rivals_of()
    explicit = Problem(constraints.explicit(), problem.regularizer)
    solution = solve(explicit, None if warm is None else warm.ravel()[rivals], callbacks)
    alpha = np.zeros(constraints.dual_shape)
    alpha.ravel()[rivals] = solution.alpha
    return replace(solution, alpha=alpha)
