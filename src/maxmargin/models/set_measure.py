"""Two classes judged as a whole set: F1, precision or recall of the first k rows, the error rate."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from ..constraints.oracle import stack
from ..data.arrays import as_matrix, as_rows, as_tables, check_finite, stacked
from ..kernels import rows as kernels
from ..problem import Planes, Rivals, RowErrors, Rows
from ..rounding import gamma
from ..validation import one_of, shown, whole
from . import labelling
from .rounding import largest_values, search_rounding

MEASURES = ("f1", "precision_at_k", "recall_at_k", "error_rate")
_STEPS = 64  # of a bisection over whole numbers


class SetMeasure:
    """Two classes whose loss is that of all rows together: one example, x a matrix and y an array of 1 and 0.

        w·φ(x, ŷ) = Σ w·x_i over the rows with ŷ_i = 1,    loss(y, ŷ) = n·(1 − measure(y, ŷ)),    n rows

    In these units ``C`` means what it means in ``LinearSVC``: the error rate gives the hinge loss itself. What a
    labelling is worth depends on its false negatives and false positives alone. Of all labellings with p and q of them
    the one that gets the positive rows of the p lowest scores and the negative rows of the q highest wrong is worst:
    the search goes through the tables (p, q), and is exact. Joachims (2005).

    Parameters
    ----------
    measure : {"f1", "precision_at_k", "recall_at_k", "error_rate"}
        ``precision_at_k`` and ``recall_at_k`` consider labellings with k positive rows only: then the order of scores
        means something, their sign does not.
    k : int or None
        The number of positive rows of y by default, at which precision and recall are the same.
    n_features : int or None
        Taken from the data by default.

    Examples
    --------
    >>> import numpy as np
    >>> SetMeasure("f1").loss([1, 1, 0, 0], [1, 0, 1, 0])
    2.0
    """

    exact = True
    rescaling = "margin"

    def __init__(self, measure: str = "f1", *, k: int | None = None, n_features: int | None = None) -> None:
        self.measure = one_of("measure", measure, MEASURES)
        if k is not None:
            whole("k", k)
            if not measure.endswith("_at_k"):
                raise ValueError(f"k is for precision_at_k and recall_at_k; {measure!r} has none.")
        labelling.check_sizes(n_features=n_features)
        self.k, self.n_features = k, n_features

    def __repr__(self) -> str:
        return f"SetMeasure({self.measure!r}, k={self.k}, n_features={self.n_features})"

    def sized(self, X: Sequence[Any], Y: Sequence[object]) -> SetMeasure:
        """A copy that knows its sizes from the data."""
        sized = copy.copy(self)
        if self.n_features is None and len(X):
            sized.n_features = int(as_tables([X[0]], "Set", "row")[0].shape[1])
        return sized

    def joined(self, others: Sequence[SetMeasure]) -> SetMeasure:
        """The model that knows the sizes of this one and others, each sized on a part of the data."""
        return labelling.joined([self, *others], ["n_features"], [])

    @property
    def n_weights(self) -> int:
        return labelling.sizes(self, "n_features")[0]

    def features(self, x: Any, y: Any) -> np.ndarray:
        """φ(x, y)."""
        return np.asarray(np.asarray(y, dtype=np.float64) @ as_matrix(x, self.n_features)).ravel()

    def loss(self, y: Any, y_hat: Any) -> float:
        """The number of rows, times 1 minus the measure."""
        y, y_hat = np.asarray(y), np.asarray(y_hat)
        if y.shape != y_hat.shape:
            raise ValueError(f"Labels of {y.size} rows cannot be compared with labels of {y_hat.size}.")
        missed, false = int(((y == 1) & (y_hat == 0)).sum()), int(((y == 0) & (y_hat == 1)).sum())
        return float(self._losses(int((y == 1).sum()), y.size, missed, false))

    def predict(self, x: Any, w: np.ndarray) -> np.ndarray:
        """1 for the rows of positive score, else 0."""
        return (as_matrix(x, self.n_weights) @ labelling.as_weights(w, self.n_weights) > 0.0).astype(np.int8)

    def most_violated(self, x: Any, y: Any, w: np.ndarray) -> np.ndarray:
        """The labelling ŷ of the highest loss(y, ŷ) + w·φ(x, ŷ)."""
        return self.oracle([x], [y]).rivals(np.zeros(1, np.int64), w).labels[0]

    def oracle(self, X: Sequence[Any], Y: Sequence[Any]) -> SetOracle:
        if len(X) != len(Y):
            raise ValueError(f"X has {len(X)} sets of rows, Y has {len(Y)}.")
        joined, first = stacked(as_tables(X, "Set", "row", self.n_weights), np.float64)
        check_finite(joined, first, "Set", "row")
        for i, n in enumerate(np.diff(first).tolist()):
            if np.shape(Y[i]) != (n,):
                raise ValueError(f"Y[{i}] must have 1 or 0 for each of {n} rows, got {shown(Y[i])}.")
        return SetOracle(self, [as_rows(joined[a:b]) for a, b in pairwise(first.tolist())], Y)

    def taken(self, y: np.ndarray) -> int:
        """How many rows an answer takes for positive, where that is given; complains of other y than 1 and 0."""
        if not np.isin(y, (0, 1)).all() or not 0 < int(np.sum(y)) < y.size:
            raise ValueError(f"{self.measure} needs positive and negative rows, 1 and 0; got y = {shown(y)}.")
        positive = int(np.sum(y))
        k = positive if self.k is None else self.k
        if self.measure == "precision_at_k" and k > positive:
            raise ValueError(f"precision_at_k: k must be at most {positive}, the number of positive rows; got {k}.")
        if self.measure == "recall_at_k" and not positive <= k <= y.size:
            raise ValueError(
                f"recall_at_k: k must be from {positive}, the number of positive rows, to {y.size}; got {k}."
            )
        return k

    def _losses(self, positive: int, n: int, missed: Any, false: Any) -> Any:
        """n·(1 − measure) of labellings that miss so many positive rows and take so many others for positive."""
        if self.measure == "error_rate":
            return missed + false
        if self.measure == "f1":
            return n * ((missed + false) / np.maximum(2.0 * positive - missed + false, 1.0))
        found = positive - missed
        taken = found + false if self.measure == "precision_at_k" else positive
        return n * ((taken - found) / np.maximum(taken, 1))

    def worst(self, k: int, low: np.ndarray, high: np.ndarray) -> tuple[int, int]:
        """How many positive rows the worst labelling misses, and how many others it takes for positive.

        ``low`` are the scores of positive rows, ascending, ``high`` those of the others, descending.
        """
        positive, n = low.size, low.size + high.size
        missed, false = np.arange(low.size + 1), np.arange(high.size + 1)
        gain_low = np.concatenate([[0.0], np.cumsum(-low)])
        gain_high = np.concatenate([[0.0], np.cumsum(high)])
        if self.measure == "error_rate":
            return int((gain_low + missed).argmax()), int((gain_high + false).argmax())
        if self.measure == "f1":
            false = _tops(positive, n, missed, high)
        else:
            missed = missed[(positive - missed <= k) & (k - positive + missed <= high.size)]
            false = k - positive + missed
        best = int((self._losses(positive, n, missed, false) + gain_low[missed] + gain_high[false]).argmax())
        return int(missed[best]), int(false[best])


def _tops(positive: int, n: int, missed: np.ndarray, high: np.ndarray) -> np.ndarray:
    """For each number of missed rows the number of false ones at which n·(1 − F1) + Σ of their scores is highest.

    Both fall off with the number: its growth changes sign once, which bisection finds for all at the same time.
    """
    found = positive - missed
    base = (positive + found).astype(np.float64)
    least, most = np.zeros(missed.size, np.int64), np.full(missed.size, high.size)
    for _ in range(_STEPS):
        if (least >= most).all():
            break
        q = (least + most) // 2
        growth = n * 2.0 * found / ((base + q) * (base + q + 1.0)) + high[np.minimum(q, high.size - 1)]
        rises = (growth > 0.0) & (least < most)
        least, most = np.where(rises, q + 1, least), np.where(rises, most, np.minimum(most, q))
    return least


class SetOracle:
    """The model bound to sets of rows.

    Parameters
    ----------
    model : SetMeasure
    rows : list of Rows
    Y : list of arrays of 1 and 0
    """

    releases_gil = False

    def __init__(self, model: SetMeasure, rows: Sequence[Rows], Y: Sequence[Any]) -> None:
        self.model, self.rows = model, rows
        self.y = [np.asarray(y) for y in Y]
        self.n_examples, self.n_weights = len(rows), rows[0].n_weights
        self._taken = [model.taken(y) for y in self.y]
        self.y = [y.astype(np.int8) for y in self.y]
        self.largest = np.max([largest_values(part) for part in rows], axis=0)

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> Rivals:
        w = labelling.as_weights(w, self.n_weights)
        answers, hidden = [], np.empty(ids.size)
        for p, i in enumerate(ids.tolist()):
            y, score = self.y[i], np.empty(self.y[i].size)
            kernels.scores(self.rows[i].arrays, w, score)
            ours, others = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
            ours, others = ours[np.argsort(score[ours])], others[np.argsort(-score[others])]
            missed, false = self.model.worst(self._taken[i], score[ours], score[others])
            answer = y.copy()
            answer[ours[:missed]], answer[others[:false]] = 0, 1
            answers.append(answer)
            terms = y.size * (1.0 + float(np.abs(w) @ self.largest))
            hidden[p] = float(search_rounding(np.array(terms), y.size + w.size + 16.0))
        return replace(self.planes(ids, answers), rounding=hidden)

    def planes(self, ids: np.ndarray, labels: Sequence[Any]) -> Rivals:
        vectors, losses, wrong = [], np.empty(ids.size), np.empty(ids.size)
        for p, (i, label) in enumerate(zip(ids.tolist(), labels, strict=True)):
            self._check_answer(i, np.asarray(label))
            vector, difference = np.zeros(self.n_weights), (self.y[i] - np.asarray(label)).astype(np.float64)
            kernels.combine(self.rows[i].arrays, difference, vector)
            vectors.append(vector)
            losses[p], wrong[p] = self.model.loss(self.y[i], label), np.count_nonzero(difference)
        rows = stack(vectors, self.n_weights) if vectors else as_rows(np.zeros((0, self.n_weights)))
        return Rivals(list(labels), rows, losses, errors=RowErrors(gamma(1) * wrong * wrong, self.largest, gamma(6)))

    def _check_answer(self, i: int, answer: np.ndarray) -> None:
        """Complain of what is neither the truth nor a labelling that the measure considers."""
        y = self.y[i]
        fixed = self.model.measure.endswith("_at_k")
        binary = answer.shape == y.shape and bool(((answer == 0) | (answer == 1)).all())
        if not binary or (fixed and int(answer.sum()) != self._taken[i] and not np.array_equal(answer, y)):
            considered = f", {self._taken[i]} of them 1" if fixed else ""
            raise ValueError(f"An answer to set {i} must have 1 or 0 for each of {y.size} rows{considered}.")


def row_shares(label: np.ndarray, alpha: Planes) -> np.ndarray:
    """How much of each row is in v, of the only example."""
    total = np.zeros(label.size)
    for answer, share in zip(alpha.labels, alpha.alpha.tolist(), strict=True):
        total += share * (label - np.asarray(answer, dtype=np.float64))
    return total
