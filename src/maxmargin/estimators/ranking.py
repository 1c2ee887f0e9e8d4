from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..constraints import Scalar
from ..constraints.sourced import is_source
from ..data.arrays import check_unmasked
from ..data.errors import DataError
from ..kernels import pairs
from ..models import ranking
from ..models.ranking import by_group
from ..persistence import storable
from ..problem import Certificate, Problem, Rows, Solution
from ..protocols import Chunk, Seekable
from ..wording import shown
from . import inputs, sourced
from .certified import Run, all_or_nothing, certifying
from .clustered import as_source
from .fingerprints import of_arrays
from .linear import LinearEstimator
from .sourced import check_alone
from .telling import told

if TYPE_CHECKING:
    from ..report.story import Data


@storable(coef_="float[d]", _alpha="float[n]|none", _example_coef="float[m]|none", _fitted_C="float")
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

    coef_: np.ndarray

    # Where scikit-learn routes metadata, groups are asked for without further ado, as GroupKFold asks for them. Its
    # Pipeline offers every score a sample_weight, if only None, and fails where the name is not known at all.
    __metadata_request__fit = {"groups": True}  # noqa: RUF012
    __metadata_request__partial_fit = {"groups": True}  # noqa: RUF012
    __metadata_request__score = {"groups": True, "sample_weight": None}  # noqa: RUF012

    _example_coef: np.ndarray | None
    fit_intercept: bool = False
    intercept_scaling: float = 1.0

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

    @told
    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        groups: Any = None,
        *,
        cluster: Any = None,
        checkpoint: Any = None,
        checkpoint_every: float = 30.0,
        callbacks: Sequence[Any] = (),
    ) -> RankingSVM:
        """Train on rows with grades ``y``; ``groups`` says which rows are compared. Without it all rows are one group,
        and each is compared with every other.

        X may be a source of all three. The other parameters are those of :meth:`LinearSVC.fit`.
        """
        self._check_settings()
        self._forget_stream()
        run = Run(checkpoint, checkpoint_every, callbacks, cluster)
        if is_source(X):
            check_alone(y=y, groups=groups)
            with self._readable(X, run) as source:
                self._take_shape(source, X)
                solution = self._fit_source(source, run, lambda: source.fingerprint)
        elif cluster is not None:
            X, y = inputs.check_matrix(self, X, y, reset=True, y_numeric=True)
            group = _groups(groups, y)
            place = np.argsort(group, kind="stable")  # rows of a group must be next to each other
            source = as_source(X[place], inputs.check_numbers(y, "grades")[place], group[place])
            solution = self._fit_source(source, run, lambda: of_arrays(X, y, group=groups))
            self._example_coef[place] = np.array(self._example_coef)  # type: ignore[index]
        else:
            X, y = inputs.check_matrix(self, X, y, reset=True, y_numeric=True)
            problem = self._problem(X, inputs.check_numbers(y, "grades"), groups)
            solution = self._fit_one(problem, run, lambda: of_arrays(X, y, group=groups))
            self._example_coef = _sum_over_pairs(problem.closed.rows, solution.alpha, X.shape[0])
        self.coef_ = solution.weights
        self._keep([solution], solution.alpha)
        return self

    def _fit_source(self, source: Seekable, run: Run, fingerprint: Callable[[], str]) -> Solution:
        blocked = self._blocked_problem(source)
        with self._on_cluster(source, run, fingerprint, [blocked]) as (problem,):
            solution = self._fit_one(problem, run, fingerprint)
        self._example_coef = self._by_example(source, blocked, solution.alpha)
        return solution

    def _shard_problem(self, source: Seekable, question: Any) -> Problem:
        """A worker's part of the problem, which may be without pairs."""
        return self._blocked(source, self._block, size=_count_pairs)

    def partial_fit(self, X: Any, y: Any, groups: Any = None) -> RankingSVM:
        """Learn from one more chunk of a stream, which holds whole groups; see :meth:`LinearSVC.partial_fit`."""
        self._check_stream()
        X, y = inputs.check_matrix(self, X, y, reset=not hasattr(self, "_stream"), y_numeric=True)
        grades = inputs.check_numbers(y, "grades")
        if hasattr(self, "_stream") and not _count_pairs(Chunk(np.arange(y.size), None, grades, groups)):
            return self  # nothing to compare, nothing to learn
        problem = self._problem(X, grades, groups)
        (self.coef_,) = self._absorb([problem.closed], problem.regularizer, problem.n_weights)
        self._example_coef = None
        return self

    def _problem(self, X: Any, y: np.ndarray, groups: Any) -> Problem:
        return Problem(self._constraints(self._rows(X), y, _groups(groups, y)), self._regularizer(X.shape[1]))

    def _blocked_problem(self, source: Seekable) -> Problem:
        """The same over a source: a group is never cut by the end of a chunk."""
        for chunk in sourced.labels_of(source):
            sourced.checked_numbers(chunk, "grades")
            if chunk.group is None:
                raise DataError(
                    "The source has no groups, so that all rows would be compared with each other. Give them: "
                    "qid:… in svmlight text, group='column' for Parquet, groups= for arrays."
                )
            if chunk.weight is not None:
                raise DataError("Weights are not known to RankingSVM. Open the data without them.")

        problem = self._blocked(source, self._block, size=_count_pairs)
        if problem.constraints.n_examples == 0:
            raise DataError("No group has two examples of different grade, so there is nothing to rank.")
        return problem

    def _block(self, chunk: Chunk) -> Scalar:
        return self._constraints(sourced.rows_of(chunk.x, 0.0), *_graded(chunk))

    def _check_settings(self) -> None:
        super()._check_settings()
        inputs.check_choice("loss", self.loss, ("hinge", "squared_hinge"))

    def _constraints(self, rows: Rows, grade: np.ndarray, group: np.ndarray) -> Scalar:
        return ranking(rows, grade, group, self._budget(None), squared=self.loss == "squared_hinge")

    def _by_example(self, source: Seekable, problem: Problem, alpha: np.ndarray) -> np.ndarray:
        """How much of each example is in the weights; inputs need not be read for it."""
        coefficients = np.zeros(len(source))
        for b in range(problem.blocked.n_blocks):
            chunk = source.labels(b)
            if _count_pairs(chunk):
                none = Rows(np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(1), len(chunk), 1)
                rows = self._constraints(none, *_graded(chunk)).rows
                coefficients[chunk.ids] = _sum_over_pairs(rows, problem.blocked.share(alpha, b), len(chunk))
        return coefficients

    @property
    def dual_coef_(self) -> np.ndarray:
        check_is_fitted(self)
        if self._example_coef is None:
            raise AttributeError("dual_coef_ is not kept of streams.")
        return self._example_coef[None, :]

    @certifying
    def certify(self, X: Any, y: Any = None, groups: Any = None) -> Certificate:
        """Bounds on the optimum of the training problem, recomputed from weights and dual variables alone.

        X may be a source of all three.
        """
        check_is_fitted(self)
        if is_source(X):
            check_alone(y=y, groups=groups)
            with self._readable(X) as source:
                self._check_width(source)
                return self._certify(self._blocked_problem(source), self.coef_, self._shares())
        X, y = inputs.check_matrix(self, X, y, reset=False, y_numeric=True)
        problem = self._problem(X, inputs.check_numbers(y, "grades"), groups)
        return self._certify(problem, self.coef_, self._shares())

    def report(
        self,
        path: Any,
        X: Any = None,
        y: Any = None,
        *,
        groups: Any = None,
        title: str | None = None,
        name: str | None = None,
    ) -> Path:
        """Write a page about this model: see :meth:`LinearSVC.report`; ``groups`` are those of the rows of X."""
        return self._write_report(path, X, y, groups, title, name)

    def _report_source(self, data: Data) -> Any:
        if not data.given or data.is_source:
            return data.X
        X, y = inputs.check_matrix(self, data.X, data.y, reset=False, y_numeric=True)
        group = _groups(data.groups, y)
        place = np.argsort(group, kind="stable")  # rows of a group must be next to each other
        return as_source(X[place], inputs.check_numbers(y, "grades")[place], group[place])

    def predict(self, X: Any) -> np.ndarray:
        """Scores; only their order inside a group means anything."""
        check_is_fitted(self)
        X = inputs.check_matrix(self, X, reset=False)
        return np.asarray(X @ self.coef_.astype(X.dtype))

    def score(self, X: Any, y: Any, groups: Any = None) -> float:
        """Share of the pairs that are in the right order; ties count half."""
        check_is_fitted(self)
        X, y = inputs.check_matrix(self, X, y, reset=False, y_numeric=True)
        y = inputs.check_numbers(y, "grades")
        order, start = by_group(y, _groups(groups, y))
        return float(pairs.ordered_share(order, start, y, self.predict(X)))


def _groups(groups: Any, y: np.ndarray) -> np.ndarray:
    """Groups as whole numbers 0, 1, …; one group if none are given."""
    if groups is None:
        return np.zeros(y.shape[0], np.int64)
    check_unmasked("groups", groups)
    given = np.asarray(groups)
    if given.shape != y.shape:
        raise ValueError(
            f"groups must have one entry for each of {y.shape[0]} rows, got "
            f"{shown(groups) if given.ndim == 0 else f'shape {given.shape}'}."
        )
    values = given.tolist() if given.dtype.kind in "fO" else []
    missing = [i for i, value in enumerate(values) if value is None or value != value]
    if missing:
        raise ValueError(
            f"groups has no value at row {missing[0]} ({len(missing)} such rows in all). Name the group of every row, "
            "or drop those without."
        )
    try:
        return np.unique(given, return_inverse=True)[1]
    except TypeError:
        raise ValueError("groups mixes kinds that cannot be compared. Make them all text or all numbers.") from None


def _graded(chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
    """Grades and groups of a chunk."""
    return sourced.checked_numbers(chunk, "grades"), _groups(chunk.group, chunk.y)


def _count_pairs(chunk: Chunk) -> int:
    grade, group = _graded(chunk)
    return int(pairs.count_pairs(*by_group(grade, group), grade))


def _sum_over_pairs(rows: Rows, alpha: np.ndarray, n: int) -> np.ndarray:
    """What each example has of the dual variables of its pairs, signed."""
    return np.bincount(rows.first, alpha, minlength=n) - np.bincount(rows.second, alpha, minlength=n)
