from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..constraints import Blocked
from ..constraints.base import Closed
from ..constraints.duals_on_disk import stacked
from ..constraints.sourced import is_source
from ..distributed.sharded import Sharded
from ..kernels.maps import Clipped, Plain
from ..models import binary, multiclass
from ..persistence import storable
from ..problem import Certificate, Problem, Solution
from ..protocols import Chunk, Seekable
from ..wording import shown
from . import inputs, sourced
from .certified import Run, all_or_nothing, certifying, total
from .clustered import as_source
from .fingerprints import of_arrays
from .linear import LinearEstimator, solve_side_by_side
from .sourced import check_alone
from .telling import told


@storable(
    classes_="labels[k]", coef_="float[m, d]", intercept_="float[m]", _alpha="float[...]|none", _label="int[n]<k|none",
    _fitted_C="float",
)  # fmt: skip
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
        Threads, at most 64 or four for each core; -1 for all cores, of which a worker of joblib has its share. None:
        one, or as many as ``joblib.parallel_config`` says.
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

    classes_: np.ndarray
    coef_: np.ndarray
    intercept_: np.ndarray

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
    ) -> LinearSVC:
        """Train on a matrix (dense or sparse, float32 or float64) and one label per row, or on a source of both.

        Parameters
        ----------
        X : matrix, or a source from ``maxmargin.data.open``
            A source need not fit into memory: ``memory`` then bounds all that training holds at a time.
        y : labels; None with a source, which brings them
        sample_weight : array or None
        cluster : str, Transport or None
            Where to train, if not in this process: ``"local:4"`` (processes of this machine), ``"ray"``,
            ``"ray://host:10001"`` (see ``maxmargin.distributed.transport_of``). Each worker has a part of the examples,
            of which it opens its own files; ``memory`` is then that of one worker.
        checkpoint : path or None
            A folder to save the run in. The same call goes on from what is saved there.
        checkpoint_every : float
            Seconds between two savings.
        callbacks : functions
            Each is given a ``Record`` after every pass, and ends the run by returning True.
        """
        self._check_settings()
        self._forget_stream()
        run = Run(checkpoint, checkpoint_every, callbacks, cluster)
        if is_source(X):
            check_alone(y=y, sample_weight=sample_weight)
            with self._readable(X, run) as source:
                self._take_shape(source, X)
                self._fit_source(source, run, lambda: source.fingerprint)
            self._label = None
            return self
        inputs.check_labels(y)
        X, y = inputs.check_matrix(self, X, y, reset=True)
        inputs.check_classes(y)
        self.classes_ = np.unique(y)
        label = np.searchsorted(self.classes_, y).astype(np.int32)  # a fifth of the time of np.unique's inverse
        self._check_several_classes()
        if cluster is not None:
            weights = inputs.check_weights(sample_weight, X)
            self._fit_source(as_source(X, y, None, weights), run, lambda: of_arrays(X, y, sample_weight))
        else:
            problems = self._problems(X, label, sample_weight)
            warm = self._warm(self._dual_shape(problems))
            self._fit_problems(problems, warm, run, lambda: of_arrays(X, y, sample_weight))
        self._label = label
        return self

    def _fit_source(self, source: Seekable, run: Run, fingerprint: Callable[[], str]) -> None:
        """Train on data that is read in chunks, here or by the workers of a cluster."""
        factors = self._class_factors(self._survey(source))
        problems = self._blocked_problems(source, factors)
        warm = self._warm(self._dual_shape(problems))
        with self._on_cluster(source, run, fingerprint, problems, factors) as problems:
            self._fit_problems(problems, warm, run, fingerprint)

    def _shard_problem(self, source: Seekable, question: Any) -> Problem:
        """A worker's part of one of the problems."""
        number, factors = question
        return self._blocked_problems(source, factors)[number]

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> LinearSVC:
        """Learn from one more chunk of a stream, of any size.

        Only rows that matter are kept, in at most ``memory`` bytes (256 MB by default). ``certificate_`` has a lower
        bound for all examples so far; ``certify`` on all of them, as a matrix or a source, adds the upper one.

        Parameters
        ----------
        X, y : matrix and labels
        classes : array or None
            All classes that will come; needed in the first call unless its labels show them all.
        sample_weight : array or None
        """
        self._check_stream()
        inputs.check_labels(y)
        first = not hasattr(self, "_stream")
        X, y = inputs.check_matrix(self, X, y, reset=first)
        inputs.check_classes(y)
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight='balanced' needs to know all data beforehand. Give the weights as a dict.")
        if first:
            self.classes_ = np.unique(y if classes is None else classes)
            self._check_several_classes()
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes={list(classes)} differ from those of the first call, {self.classes_.tolist()}.")
        problems = self._problems(X, self._codes(y), sample_weight)
        if self._is_joint() and _kind(problems[0]) not in (Plain, Clipped):
            raise ValueError(f"{self.regularizer!r} and Crammer–Singer do not go together in a stream. Use 'ovr'.")
        columns = (self.classes_.size,) if self._is_joint() else ()
        blocks = [p.closed for p in problems]
        self._set_weights(self._absorb(blocks, problems[0].regularizer, problems[0].n_weights, columns))
        self._label = None
        return self

    def _check_several_classes(self) -> None:
        if self.classes_.size < 2:
            raise ValueError(
                f"LinearSVC needs examples of at least 2 classes, y has one class only: {shown(self.classes_[0])}."
            )

    def _fit_problems(
        self, problems: list[Problem], warm: np.ndarray | None, run: Run, fingerprint: Callable[[], str]
    ) -> None:
        """Solve one problem, or one per class, and keep what came out."""
        with self._progress() as shown:
            run = replace(run, callbacks=(*shown, *run.callbacks))
            if len(problems) == 1:
                with self._saving(run, fingerprint) as folder:
                    solutions = [self._solve_one(problems[0], warm, run.callbacks, folder)]
                alpha = solutions[0].alpha
            else:
                solutions = self._solve_one_vs_rest(problems, warm, run, fingerprint)
                alpha = stacked([s.alpha for s in solutions])
        self._set_weights([s.weights for s in solutions])
        self._keep(solutions, alpha)

    def _survey(self, source: Seekable) -> np.ndarray:
        """Look at all labels once: sets ``classes_`` and returns how much each class weighs."""
        found: dict[Any, float] = {}
        for chunk in sourced.labels_of(source):
            inputs.check_labels(chunk.y)
            inputs.check_classes(np.asarray(chunk.y))
            values, place = np.unique(chunk.y, return_inverse=True)
            for value, weight in zip(
                values.tolist(), np.bincount(place, sourced.checked_weights(chunk)).tolist(), strict=True
            ):
                found[value] = found.get(value, 0.0) + weight
        self.classes_ = np.array(sorted(found))
        self._check_several_classes()
        return np.array([found[value] for value in self.classes_.tolist()])

    def _codes(self, y: Any, first: int = 0) -> np.ndarray:
        """Labels as positions in ``classes_``; complains of a label that was not there before."""
        if self.classes_.size == 2:  # in a fraction of the time, which counts where every reading does it anew
            second = np.asarray(y == self.classes_[1])
            if (second | (y == self.classes_[0])).all():
                return second.astype(np.int32)
        label = np.searchsorted(self.classes_, y)
        unknown = (label >= self.classes_.size) | (self.classes_[np.minimum(label, self.classes_.size - 1)] != y)
        if unknown.any():
            at = int(np.argmax(unknown))
            found = np.asarray(y)[at : at + 1].tolist()[0]
            raise ValueError(f"y[{first + at}] is {found!r}, a class that was not in the training data.")
        return label.astype(np.int32)

    def _blocked_problems(self, source: Seekable, factors: np.ndarray | None) -> list[Problem]:
        """The same problems as ``_problems``, over a source."""
        self._check_choices()
        bias, C = self._bias(), self._budget(None)

        def budget(chunk: Chunk, label: np.ndarray) -> np.ndarray:
            weights = sourced.checked_weights(chunk)
            if factors is not None:
                weights = factors[label] if weights is None else inputs.times(factors[label], weights)
            return C if weights is None else self._budget(weights)

        if self._is_joint():
            cost = self._cost(self.classes_.size)

            def block(chunk: Chunk) -> Closed:
                label = self._codes(chunk.y, int(chunk.ids[0]))
                return multiclass(sourced.rows_of(chunk.x, bias), label, cost, budget(chunk, label))

            return [self._blocked(source, block, self.classes_.size, columns=(self.classes_.size,))]

        def problem(positive: int) -> Problem:
            def block(chunk: Chunk) -> Closed:
                label = self._codes(chunk.y, int(chunk.ids[0]))
                rows = sourced.rows_of(chunk.x, bias)
                return binary(rows, _signs(label, positive), budget(chunk, label), squared=self._is_squared())

            return self._blocked(source, block)

        return [problem(k) for k in self._positives()]

    def _is_joint(self) -> bool:
        """Whether all classes are one Crammer–Singer problem."""
        return self.classes_.size > 2 and self.multi_class == "crammer_singer"

    def _is_squared(self) -> bool:
        return self.loss == "squared_hinge"

    def _positives(self) -> Sequence[int]:
        """The class that is the positive one in each binary problem."""
        return [1] if self.classes_.size == 2 else range(self.classes_.size)

    def _check_settings(self) -> None:
        super()._check_settings()
        inputs.check_choice("loss", self.loss, ("hinge", "squared_hinge"))
        inputs.check_choice("multi_class", self.multi_class, ("crammer_singer", "ovr"))

    def _check_fitted_sizes(self) -> None:
        inputs.check_vectors(self.classes_, self.coef_)

    def _check_choices(self) -> None:
        """Settings that go together with the number of classes or not."""
        if self._is_joint() and self._is_squared():
            raise ValueError("loss='squared_hinge' has no Crammer–Singer form. Use multi_class='ovr' or loss='hinge'.")
        if self.cost is not None and not self._is_joint():
            raise ValueError("cost is for Crammer–Singer problems of three or more classes. Use class_weight here.")

    def _problems(self, X: Any, label: np.ndarray, sample_weight: Any) -> list[Problem]:
        """One problem for two classes or Crammer–Singer, one per class for one-vs-rest."""
        self._check_choices()
        rows, n_classes = self._rows(X), self.classes_.size
        budget = self._budget(self._weights(X, label, sample_weight))
        if self._is_joint():
            cost = self._cost(n_classes)
            return [Problem(multiclass(rows, label, cost, budget), self._regularizer(X.shape[1], n_classes))]
        regularizer = self._regularizer(X.shape[1])
        return [
            Problem(binary(rows, _signs(label, k), budget, squared=self._is_squared()), regularizer)
            for k in self._positives()
        ]

    def _cost(self, n_classes: int) -> np.ndarray:
        if self.cost is None:
            return 1.0 - np.eye(n_classes)
        try:
            cost = np.asarray(self.cost, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"cost must be a table of numbers, true class × other, got {shown(self.cost)}.") from None
        if cost.shape != (n_classes, n_classes):
            raise ValueError(f"cost must have shape {(n_classes, n_classes)}, one row per class, got {cost.shape}.")
        return cost

    def _weights(self, X: Any, label: np.ndarray, sample_weight: Any) -> np.ndarray | None:
        """Factors of C from sample and class weights; None if there are none."""
        weights = inputs.check_weights(sample_weight, X)
        factors = self._class_factors(np.bincount(label, weights, self.classes_.size))
        if factors is None:
            return weights
        return factors[label] if weights is None else inputs.times(factors[label], weights)

    def _class_factors(self, counts: np.ndarray) -> np.ndarray | None:
        """What ``class_weight`` multiplies C by in each class, given how much each class weighs."""
        return inputs.check_class_weight(self.class_weight, self.classes_, counts)

    def _dual_shape(self, problems: list[Problem]) -> tuple[int, ...]:
        shape = problems[0].constraints.dual_shape  # type: ignore[attr-defined]
        return shape if len(problems) == 1 else (len(problems), *shape)

    def _solve_one_vs_rest(
        self, problems: list[Problem], warm: np.ndarray | None, run: Run, fingerprint: Callable[[], str]
    ) -> list[Solution]:
        """One problem per class: they share the threads, one for each. A source is read for one class at a time."""

        def task(k: int) -> Any:
            def solve_class(stop: Any) -> Solution:
                shares = None if warm is None else warm[k]
                with self._saving(run, fingerprint, f"class-{k}") as folder:
                    return self._solve(problems[k], shares, (*run.callbacks, stop), 1, checkpoint=folder)

            return solve_class

        blocked = isinstance(problems[0].constraints, Blocked | Sharded)
        threads = 1 if blocked else inputs.check_threads(self.n_jobs)
        return solve_side_by_side([task(k) for k in range(len(problems))], threads)

    def _solve_one(
        self, problem: Problem, warm: np.ndarray | None, callbacks: Sequence[Any], checkpoint: Any
    ) -> Solution:
        """Crammer–Singer under a regularizer without compiled class steps is written out row by row."""
        if self._is_joint() and _kind(problem) not in (Plain, Clipped):
            if isinstance(problem.constraints, Blocked | Sharded):
                raise ValueError(
                    f"{self.regularizer!r} and Crammer–Singer do not go together in training from a source. Use "
                    "multi_class='ovr'."
                )
            return _solve_written_out(self._solve, problem, problem.closed, warm, callbacks, checkpoint)
        return self._solve(problem, warm, callbacks, checkpoint=checkpoint)

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
        if self._alpha is not None and not self._is_joint():
            return np.atleast_2d(self._alpha)
        if self._alpha is None or self._label is None:
            raise AttributeError("dual_coef_ is not kept of streams, nor of several classes in a source.")
        coefficients = -self._alpha.T
        coefficients[self._label, np.arange(self._label.size)] = self._alpha.sum(axis=1)
        return coefficients

    @certifying
    def certify(self, X: Any, y: Any = None, sample_weight: Any = None) -> Certificate:
        """Bounds on the optimum of the training problem on (X, y), recomputed from weights and dual variables alone.

        X may be a source. Each row has dual variables of its own: on other rows, or in another order, they say little
        or nothing, the lower bound may be the trivial one, and a warning says so.
        """
        check_is_fitted(self)
        if is_source(X):
            check_alone(y=y, sample_weight=sample_weight)
            with self._readable(X) as source:
                self._check_width(source)
                return self._certify_problems(self._blocked_problems(source, self._factors_for(source)))
        X, y = inputs.check_matrix(self, X, y, reset=False)
        return self._certify_problems(self._problems(X, self._codes(y), sample_weight))

    def _factors_for(self, source: Seekable) -> np.ndarray | None:
        """Factors of C by class, as ``fit`` would find them on this source."""
        if self.class_weight is None:
            return None
        counts = np.zeros(self.classes_.size)
        for chunk in sourced.labels_of(source):
            label = self._codes(chunk.y, int(chunk.ids[0]))
            counts += np.bincount(label, sourced.checked_weights(chunk), self.classes_.size)
        return self._class_factors(counts)

    def _certify_problems(self, problems: list[Problem]) -> Certificate:
        alpha = self._shares()
        if self._is_joint() or len(problems) == 1:
            return self._certify(problems[0], self._flat_weights(), alpha)
        table = self._flat_weights().reshape(-1, len(problems))
        shares = [None] * len(problems) if alpha is None or len(alpha) != len(problems) else list(alpha)
        return total([self._certify(p, table[:, k].copy(), shares[k]) for k, p in enumerate(problems)])

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

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows whose class is found."""
        inputs.check_scored(self, X, y, sample_weight)
        return super().score(X, y, sample_weight)


def _signs(label: np.ndarray, positive: int) -> np.ndarray:
    return 2 * (label == positive).astype(np.int8) - 1


def _kind(problem: Problem) -> Any:
    """The type of weight map the solver will use; a pure group norm becomes a grouped one."""
    regularizer = problem.regularizer
    if getattr(regularizer, "pure", False):
        regularizer = regularizer.around(np.zeros(problem.n_weights), 1.0)  # type: ignore[attr-defined]
    return regularizer.shape(problem.n_weights).kind


def _solve_written_out(
    solve: Any,
    problem: Problem,
    constraints: Any,
    warm: np.ndarray | None,
    callbacks: Sequence[Any],
    checkpoint: Any,
) -> Solution:
    """Solve over explicit rows, and carry the dual variables back to the shape of the classes."""
    rivals = constraints.rivals_of()
    explicit = Problem(constraints.explicit(), problem.regularizer)
    warm = None if warm is None else warm.ravel()[rivals]
    solution = solve(explicit, warm, callbacks, checkpoint=checkpoint)
    alpha = np.zeros(constraints.dual_shape)
    alpha.ravel()[rivals] = solution.alpha
    return replace(solution, alpha=alpha)
