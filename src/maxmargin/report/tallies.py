"""How well answers fit the labels, and what the data looks like, in one pass chunk by chunk: memory does not grow.

(Except for ranking: pairs can only be counted once all rows of a group are there, and a group may be anywhere. Three
numbers per row are kept.)
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..data.chunked import left_out
from ..kernels import pairs
from ..models.ranking import by_group
from ..protocols import Chunk, Source
from . import numbers

if TYPE_CHECKING:
    from ..estimators.linear import LinearEstimator


def task_of(estimator: object) -> str:
    """What a linear estimator was trained for: "classify", "regress" or "rank"."""
    return "classify" if hasattr(estimator, "classes_") else "regress" if hasattr(estimator, "epsilon") else "rank"


def chosen(scores: np.ndarray) -> np.ndarray:
    """The number of the class with the highest score, (n,) for two classes or (n, n_classes)."""
    return (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)


class Classes:
    """Counts of (true class, answer). Labels that were not in the training data count as wrong, and are told apart."""

    name, kind, unjudged = "accuracy", "Classification", "None of the labels was in the training data"

    def __init__(self, classes: np.ndarray) -> None:
        self.classes = classes
        self.pairs: Counter[tuple[int, int]] = Counter()
        self.rows = 0
        self.unseen = 0
        self.first_unseen: tuple[Any, int] | None = None
        """The first label that no training row had, and the position of its row."""

    @property
    def score(self) -> float | None:
        """Share of right answers; None where not one label is known, which then are no labels at all."""
        if self.rows == self.unseen:
            return None
        return sum(n for (truth, answer), n in self.pairs.items() if truth == answer) / self.rows

    def add(self, chunk: Chunk, scores: np.ndarray) -> None:
        self.compare(positions(self.classes, np.asarray(chunk.y)), chosen(scores), chunk.y, chunk.ids)

    def compare(self, truth: np.ndarray, answer: np.ndarray, labels: Any, ids: Any = None) -> None:
        """Numbers of true classes, −1 for those that are none, and of answers; ``labels`` are the true ones."""
        unseen = truth < 0
        if unseen.any():
            self.unseen += int(unseen.sum())
            at = int(np.argmax(unseen))
            self.first_unseen = self.first_unseen or (labels[at], self.rows + at if ids is None else int(ids[at]))
        self.rows += truth.size
        k = len(self.classes)
        codes, n = np.unique(truth[~unseen] * k + answer[~unseen], return_counts=True)
        for code, times in zip(codes.tolist(), n.tolist(), strict=True):
            self.pairs[divmod(code, k)] += times

    def matrix(self) -> np.ndarray:
        """Counts by true class (rows) and answer."""
        counts = np.zeros((len(self.classes), len(self.classes)), np.int64)
        for pair, n in self.pairs.items():
            counts[pair] = n
        return counts


class Residuals:
    """R², mean absolute error and a histogram of label − answer."""

    name, kind, unjudged = "R²", "Regression", "All labels are the same"
    _BINS = 2048

    def __init__(self) -> None:
        self.rows = 0
        self._shift = 0.0  # sums of squares lose digits far from zero: they are taken from near the mean
        self._sum = self._squares = self._errors = self._absolute = 0.0
        self.half_width = 0.0
        self.histogram = np.zeros(self._BINS, np.int64)
        """Counts over [−half_width, half_width] in equal bins."""

    @property
    def score(self) -> float | None:
        spread = self._squares - self._sum**2 / max(self.rows, 1)
        return 1.0 - self._errors / spread if self.rows > 1 and spread > 0.0 else None

    @property
    def mean_absolute(self) -> float:
        return self._absolute / max(self.rows, 1)

    def add(self, chunk: Chunk, scores: np.ndarray) -> None:
        y = np.asarray(chunk.y, dtype=np.float64)
        if not self.rows and y.size:
            self._shift = float(y.mean())
        self.rows += y.size
        residual = y - scores
        self._sum += float((y - self._shift).sum())
        self._squares += float(((y - self._shift) ** 2).sum())
        self._errors += float((residual**2).sum())
        self._absolute += float(np.abs(residual).sum())
        largest = float(np.abs(residual).max(initial=0.0))
        if self.half_width == 0.0:
            self.half_width = 1.01 * largest  # nothing lies on the rim itself, where it would belong to no bin
        while largest >= self.half_width > 0.0:
            self._widen()
        if self.half_width > 0.0:
            limits = (-self.half_width, self.half_width)
            self.histogram += np.histogram(residual, self._BINS, limits)[0]
        else:
            self.histogram[self._BINS // 2] += y.size

    def _widen(self) -> None:
        """Twice the range with as many bins: neighbours become one."""
        merged = self.histogram.reshape(-1, 2).sum(axis=1)
        self.histogram = np.pad(merged, self._BINS // 4)
        self.half_width *= 2.0


class Order:
    """Share of the pairs of one group that are in the right order; ties count half."""

    name, kind, unjudged = "ordered pairs", "Ranking", "No two rows of one group have different grades"

    def __init__(self) -> None:
        self.rows = 0
        self._kept: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, chunk: Chunk, scores: np.ndarray) -> None:
        group = np.zeros(len(chunk), np.int8) if chunk.group is None else np.array(chunk.group)
        self.rows += len(chunk)
        self._kept.append((np.array(chunk.y, dtype=np.float64), group, np.array(scores, dtype=np.float64)))

    def counts(self) -> tuple[int, int, float | None]:
        """How many groups there are, how many pairs to put in order, and the share of these that are."""
        if not self.rows:
            return 0, 0, None
        grades, names, scores = (np.concatenate(column) for column in zip(*self._kept, strict=True))
        groups = np.unique(names, return_inverse=True)[1]
        order = by_group(grades, groups)
        n = int(pairs.count_pairs(*order, grades))
        return int(groups.max()) + 1, n, float(pairs.ordered_share(*order, grades, scores)) if n else None

    @property
    def score(self) -> float | None:
        return self.counts()[2]


Tally = Classes | Residuals | Order
"""What is counted for each task. ``score`` is None as long as nothing could be judged, ``unjudged`` says why."""


def tally_for(estimator: LinearEstimator) -> Tally:
    """The tally that fits the estimator's task."""
    task = task_of(estimator)
    return Classes(estimator.classes_) if task == "classify" else Residuals() if task == "regress" else Order()


def positions(classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Where each label stands among the sorted classes, −1 for those that are not there.

    Numbers are compared as numbers; where one side is text, by what they look like.

    >>> positions(np.array([1, 3]), np.array([3.0, 2.0, 1.0]))
    array([ 1, -1,  0])
    >>> positions(np.array(["1", "3"]), np.array([3.0]))
    array([1])
    """
    if (classes.dtype.kind in "biuf") != (y.dtype.kind in "biuf"):
        names = np.array([numbers.label(c) for c in classes])
        order = np.argsort(names)
        found = positions(names[order], np.array([numbers.label(v) for v in y], dtype=names.dtype.kind))
        return np.where(found < 0, -1, order[found])
    at = np.minimum(np.searchsorted(classes, y), classes.size - 1)
    return np.where(classes[at] == y, at, -1)


@dataclass
class Survey:
    """What a pass has seen of the data."""

    rows: int = 0
    features: int = 0
    stored: int = 0
    """Values other than zero."""
    left_out: tuple[int, list[str]] = (0, [])

    def add(self, chunk: Chunk) -> None:
        self.rows += len(chunk)
        self.features = max(self.features, chunk.x.shape[1])
        self.stored += int(chunk.x.nnz if sp.issparse(chunk.x) else np.count_nonzero(chunk.x))


def scored(estimator: LinearEstimator, source: Source, survey: Survey) -> Iterator[tuple[Chunk, np.ndarray]]:
    """Every chunk, as wide as the model, with the model's scores; ``survey`` sees it as it came.

    Features that the model does not know have no weight and are left out; those that the data lacks are zero.
    """
    for chunk in source.chunks():
        if not len(chunk):
            continue
        survey.add(chunk)
        fitting = replace(chunk, x=to_width(chunk.x, estimator.n_features_in_))
        yield fitting, _scores(estimator, fitting.x)
    survey.left_out = left_out(source)


def _scores(estimator: LinearEstimator, x: object) -> np.ndarray:
    score = estimator.decision_function if task_of(estimator) == "classify" else estimator.predict
    with warnings.catch_warnings():
        # Sources give columns without names, also to models that were trained on a data frame.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return np.asarray(score(x))


def measure(estimator: LinearEstimator, source: Source) -> tuple[Tally, Survey]:
    """Answers against labels, and what the data looks like, in one pass."""
    tally, survey = tally_for(estimator), Survey()
    for chunk, scores in scored(estimator, source, survey):
        if chunk.y is not None:
            tally.add(chunk, scores)
    return tally, survey


def to_width(x: Any, width: int) -> Any:
    """The same rows with as many columns as wanted: cut off, or filled with zeros.

    >>> to_width(np.ones((1, 2)), 3)
    array([[1., 1., 0.]])
    """
    if x.shape[1] == width:
        return x
    if sp.issparse(x):
        if x.shape[1] > width:
            return x[:, :width]
        return sp.csr_matrix((x.data, x.indices, x.indptr), shape=(x.shape[0], width))
    return x[:, :width] if x.shape[1] > width else np.pad(x, ((0, 0), (0, width - x.shape[1])))
