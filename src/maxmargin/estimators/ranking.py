"""RankingSVM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import losses
from ..constraints import Searched, SortedPairs
from ..constraints.base import Closed
from ..data.arrays import rows_of
from ..data.errors import DataError
from ..kernels import pairs
from ..losses import Hinge, LossShape, shape_of
from ..models import NDCG, AveragePrecision, ranking
from ..models.ranked import RankedOracle
from ..models.ranking import by_group, sorted_ranking
from ..persistence import storable
from ..problem import Certificate, Problem, Rows
from ..protocols import Chunk, Loss, Seekable, Source
from ..solvers.smoothed_newton import MOST_WEIGHTS, handles
from ..validation import check_unmasked, shown
from . import inputs, training
from .certified import Folder, Run, Workers
from .fingerprints import of_arrays
from .fit_callbacks import Callback
from .holders import InMemory, is_in_memory
from .inputs import Column, Matrix
from .linear import LinearEstimator, RowFacts, labels_of
from .settings import with_parameters

_MANY_PAIRS = 16  # for every row: Newton steps over sorted rows are then cheaper than passes over pairs,
_FEW_FEATURES = 50  # as long as there are no more of these, and their products hardly count
_LEAST_PAIRS = 50_000  # which passes are done with before anybody notices
_BYTES_PER_ROW = 160  # of sums over sorted rows


@dataclass(frozen=True)
class RankingFacts(RowFacts):
    """What the rows of a group are to be.

    Parameters
    ----------
    by_sorting : bool
        Whether pairs are not written down, but summed up from sorted scores.
    measure : AveragePrecision, NDCG or None
        What the order of a whole group is judged by.
    """

    by_sorting: bool = False
    measure: Any = None

    def for_pieces(self) -> RankingFacts:
        return replace(self, by_sorting=False)


GROUP_LOSSES: dict[str, type] = {"map": AveragePrecision, "ndcg": NDCG}
"""Losses of whole groups."""


@storable(coef_="float[d]", _alpha="float[n]|Planes|none", _example_coef="float[m]|none", _fitted_C="float")
@with_parameters
class RankingSVM(LinearEstimator):
    """Pairwise ranking: inside each group, examples of higher grade shall score higher.

    Minimises Ω(w) + C Σ max(0, 1 − w·(x_a − x_b)) over all pairs of one group (a query, a user, a day) with
    grade_a > grade_b. The pairs' differences are never formed.

    Parameters
    ----------
    C : float
        Regularization parameter: weight of the loss of one pair.
    loss : {"hinge", "squared_hinge", "smoothed_hinge", "map", "ndcg"} or object from ``maxmargin.losses``
        What a pair pays for a missed margin; or what a whole group pays for its order: 1 minus its average precision,
        where grades above 0 are relevant, or 1 minus its normalized discounted cumulative gain, grades from 0 on. Of
        these two C is the weight of one group; they take data in memory.
    solver : {"auto", "dual_coordinate", "interior_point", "newton"} or Solver
        "newton" writes no pair down: sums over all pairs of a group follow from sorted scores, in O(n log n). It is for
        the hinge, up to 300 features, l2 or a Gaussian prior, and data in memory; "auto" takes it where groups are
        large. "map" and "ndcg" take "auto", "oracle_ascent" and the other solvers of :class:`StructuralSVM`.

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

    coef_: np.ndarray = field(init=False)
    _example_coef: np.ndarray | None = field(init=False)

    # Where scikit-learn routes metadata, groups are asked for without further ado, as GroupKFold asks for them. Its
    # Pipeline offers every score a sample_weight, if only None, and fails where the name is not known at all.
    __metadata_request__fit = {"groups": True}  # noqa: RUF012
    __metadata_request__partial_fit = {"groups": True}  # noqa: RUF012
    __metadata_request__score = {"groups": True, "sample_weight": None}  # noqa: RUF012

    C: float = 1.0
    _: KW_ONLY
    loss: str | Loss = "hinge"

    fit_intercept = False
    intercept_scaling = 1.0

    def fit(
        self,
        X: Matrix | Source,
        y: Column = None,
        groups: Column = None,
        *,
        cluster: Workers = None,
        checkpoint: Folder = None,
        checkpoint_every: float = 30.0,
        callbacks: Sequence[Callback] = (),
    ) -> RankingSVM:
        """Train on rows with grades ``y``; ``groups`` says which rows are compared. Without it all rows are one group,
        and each is compared with every other.

        X may be a source of all three. The other parameters are those of :meth:`LinearSVC.fit`.
        """
        return training.fit(self, X, Run(checkpoint, checkpoint_every, callbacks, cluster), y=y, groups=groups)

    def partial_fit(self, X: Matrix, y: Column, groups: Column = None) -> RankingSVM:
        """Learn from one more chunk of a stream, which holds whole groups; see :meth:`LinearSVC.partial_fit`."""
        return training.partial_fit(self, X, y=y, groups=groups)

    def _size(self, chunk: Chunk) -> int:
        return _count_pairs(chunk)

    def _loss(self) -> Loss:
        return losses.named(self.loss, losses.MARGIN | dict.fromkeys(GROUP_LOSSES, Hinge))

    def _measure(self) -> Any:
        """What the order of a whole group is judged by, if that is the loss."""
        return (
            GROUP_LOSSES[self.loss](self.n_features_in_)
            if isinstance(self.loss, str) and self.loss in GROUP_LOSSES
            else None
        )

    def _arrays(self, X: object, *, reset: bool, y: Any = None, groups: Column = None) -> InMemory:
        X, y = inputs.check_matrix(self, X, y, reset=reset, y_numeric=True)
        return self._in_memory(X, y, _groups(groups, y), None, lambda: of_arrays(X, y, group=groups))

    def _survey(self, source: Seekable) -> tuple[Seekable, RowFacts]:
        """A group is never cut by the end of a chunk."""
        measure = self._measure()
        if measure is not None:
            self._check_one_chunk(is_in_memory(source))
            return source, RankingFacts(self.n_features_in_, measure=measure)
        to_compare = is_in_memory(source)  # then the model says what is wrong
        for chunk in labels_of(source):
            inputs.check_numbers(chunk.y, "grades", chunk.ids)
            if chunk.group is None:
                raise DataError(
                    "The source has no groups, so that all rows would be compared with each other. Give them: "
                    "qid:… in svmlight text, group='column' for Parquet, groups= for arrays."
                )
            if chunk.weight is not None:
                raise DataError("Weights are not known to RankingSVM. Open the data without them.")
            to_compare = to_compare or _count_pairs(chunk) > 0
        if not to_compare:
            raise DataError("No group has two examples of different grade, so there is nothing to rank.")
        return source, RankingFacts(self.n_features_in_, by_sorting=is_in_memory(source) and self._sorts(source))

    def _next_chunk(self, source: InMemory) -> tuple[Any, RowFacts]:
        self._check_one_chunk(self._measure() is None)
        return source, RankingFacts(self.n_features_in_)

    def _sorts(self, source: InMemory) -> bool:
        """Whether pairs are too many to be written down, if the problem can do without."""
        regularizer = self._regularizer(self.n_features_in_)
        if shape_of(self._loss()) != LossShape() or not handles(regularizer, self.n_features_in_):
            if self.solver == "newton":
                raise ValueError(
                    f"solver='newton' takes loss='hinge', l2 or a Gaussian prior, and at most {MOST_WEIGHTS} features; "
                    f"here are loss={self.loss!r}, {regularizer!r} and {self.n_features_in_} features. Use 'auto'."
                )
            return False
        chunk = source.labels()
        n_rows, n_pairs, memory = len(chunk), _count_pairs(chunk), inputs.check_memory(self.memory)
        per_row = _MANY_PAIRS * max(1.0, self.n_features_in_ / _FEW_FEATURES)
        many = n_pairs > max(per_row * n_rows, _LEAST_PAIRS)
        needed = _BYTES_PER_ROW * n_rows + 8 * self.n_features_in_ * np.unique(chunk.y).size  # sums for every grade
        fits = memory is None or needed <= memory
        return self.solver == "newton" or (self.solver == "auto" and many and fits)

    def _problems(self, source: Seekable, facts: RowFacts, which: Sequence[int] | None = None) -> list[Problem]:
        regularizer = self._regularizer(facts.n_features)
        if isinstance(facts, RankingFacts) and facts.measure is not None:
            self._check_one_chunk(is_in_memory(source))
            oracle, _ = _queries(source.chunk(0), facts.measure)
            return [Problem(Searched(oracle, inputs.check_budget(self.C)), regularizer)]
        if isinstance(facts, RankingFacts) and facts.by_sorting and is_in_memory(source):
            return [Problem(self._sorted(source.chunk()), regularizer)]
        return super()._problems(source, facts, which)

    def _sorted(self, chunk: Chunk) -> SortedPairs:
        return sorted_ranking(rows_of(chunk.x, 0.0), *_graded(chunk), inputs.check_positive("C", self.C))

    def _constraints_of(self, chunk: Chunk, facts: RowFacts, which: Sequence[int]) -> list[Closed]:
        return [self._pairs(chunk, rows_of(chunk.x, 0.0))]

    def _pairs(self, chunk: Chunk, rows: Rows) -> Any:
        return ranking(rows, *_graded(chunk), inputs.check_budget(self.C), loss=self._loss())

    def _learned(self, facts: RowFacts, weights: list[np.ndarray]) -> None:
        self.coef_, self._example_coef = weights[0], None

    def _remember(self, source: Seekable, facts: RowFacts) -> None:
        """How much of each example is in the weights; inputs of pairs need not be read for it."""
        alpha: Any = self._alpha
        if isinstance(facts, RankingFacts) and facts.measure is not None:
            oracle, order = _queries(source.chunk(0), facts.measure)
            self._example_coef = np.empty(order.size)
            self._example_coef[order] = oracle.row_shares(alpha)
            return
        if isinstance(facts, RankingFacts) and facts.by_sorting and is_in_memory(source):
            self._example_coef = self._sorted(source.chunk()).coefficients(alpha)
            return
        coefficients, done = np.zeros(len(source)), 0
        for b in range(len(source.offsets) - 1):
            chunk = source.labels(b)
            n = _count_pairs(chunk)
            if n:
                none = Rows(np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(1), len(chunk), 1)
                rows = self._pairs(chunk, none).rows
                share = alpha[done : done + n]
                plus, minus = (np.bincount(side, share, minlength=len(chunk)) for side in (rows.plus, rows.minus))
                coefficients[chunk.ids] = plus - minus
            done += n
        self._example_coef = coefficients

    def _example_shares(self) -> np.ndarray | None:
        return self._example_coef

    def certify(self, X: Matrix | Source, y: Column = None, groups: Column = None) -> Certificate:
        """Bounds on the optimum of the training problem, recomputed from weights and dual variables alone.

        X may be a source of all three.
        """
        return training.certify(self, X, y=y, groups=groups)

    def report(
        self,
        path: Any,
        X: object = None,
        y: Column = None,
        *,
        groups: Column = None,
        title: str | None = None,
        name: str | None = None,
    ) -> Path:
        """Write a page about this model: see :meth:`LinearSVC.report`; ``groups`` are those of the rows of X."""
        return self._write_report(path, X, y, groups, title, name)

    def predict(self, X: Matrix) -> np.ndarray:
        """Scores; only their order inside a group means anything."""
        return self._scores(X)

    def score(self, X: Matrix, y: Column, groups: Column = None) -> float:
        """Share of the pairs that are in the right order; ties count half."""
        check_is_fitted(self)
        X, y = inputs.check_matrix(self, X, y, reset=False, y_numeric=True)
        y = inputs.check_numbers(y, "grades")
        order, start = by_group(y, _groups(groups, y))
        return float(pairs.ordered_share(order, start, y, self.predict(X)))


def _groups(groups: Column, y: np.ndarray) -> np.ndarray:
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


def _queries(chunk: Chunk, measure: Any) -> tuple[RankedOracle, np.ndarray]:
    """The search among orders of every group, and the rows by group."""
    grade, group = _graded(chunk)
    order, start = by_group(grade, group)
    truth = grade[order]
    if isinstance(measure, AveragePrecision):
        truth = (truth > 0.0).astype(np.float64)
    measure.check(truth)
    lowest, highest = np.minimum.reduceat(truth, start[:-1]), np.maximum.reduceat(truth, start[:-1])
    if (lowest == highest).all():
        raise ValueError(
            f"No group has rows of different worth, so there is nothing to rank (n_samples = {grade.size}, n_groups = "
            f"{start.size - 1}). Check that y holds grades, 0 for useless rows, and that groups are not single rows."
        )
    return RankedOracle(measure, chunk.x[order], truth, start), order


def _graded(chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
    """Grades and groups of a chunk."""
    return inputs.check_numbers(chunk.y, "grades", chunk.ids), _groups(chunk.group, chunk.y)


def _count_pairs(chunk: Chunk) -> int:
    grade, group = _graded(chunk)
    return int(pairs.count_pairs(*by_group(grade, group), grade))
