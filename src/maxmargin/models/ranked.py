"""Models of whole rankings: the loss of a query is that of a measure of its order, average precision or NDCG."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data.arrays import as_rows, as_tables, check_finite, stacked
from ..kernels import ranked as kernels
from ..problem import Planes, Rivals, RowErrors
from ..rounding import gamma
from ..validation import shown, whole
from . import labelling
from .rounding import largest_values, search_rounding

_HIGHEST = 60.0  # grade: its gain is 2^60


class Ranked:
    """Base of the models of rankings. x are the rows of a query; an answer has a number for each row, and orders them
    by it, greatest first. Subclasses say what an order is worth, and find the worst."""

    exact = True
    rescaling = "margin"

    def __init__(self, n_features: int | None = None) -> None:
        labelling.check_sizes(n_features=n_features)
        self.n_features = n_features

    def sized(self, X: Sequence[Any], Y: Sequence[object]) -> Any:
        """A copy that knows its sizes from the data."""
        sized = copy.copy(self)
        if self.n_features is None and len(X):
            sized.n_features = int(_joined([X[0]])[0].shape[1])
        return sized

    def joined(self, others: Sequence[Any]) -> Any:
        """The model that knows the sizes of this one and others, each sized on a part of the data."""
        return labelling.joined([self, *others], ["n_features"], [])

    @property
    def n_weights(self) -> int:
        return labelling.sizes(self, "n_features")[0]

    def features(self, x: Any, y: Any) -> np.ndarray:
        """φ(x, y)."""
        return np.asarray(self._coefficients(self._truth_of(x), np.asarray(y)) @ _joined([x])[0]).ravel()

    def loss(self, y: Any, y_hat: Any) -> float:
        """1 minus the measure of the order ŷ, whose rows are worth y."""
        answer = np.asarray(y_hat)
        return self._missed(self._checked(np.asarray(y), answer.size, "y"), answer)

    def predict(self, x: Any, w: np.ndarray) -> np.ndarray:
        """The rows in the order of their scores: n − 1 for the first, 0 for the last."""
        rows, _ = _joined([x], self.n_features)
        value = np.empty(rows.shape[0], np.int64)
        score = np.asarray(rows @ labelling.as_weights(w, self.n_weights))
        kernels.sorted_by(np.array([0, value.size]), score, value)
        return value

    def most_violated(self, x: Any, y: Any, w: np.ndarray) -> np.ndarray:
        """The order ŷ of the highest loss(y, ŷ) + w·φ(x, ŷ)."""
        return self.oracle([x], [y]).rivals(np.zeros(1, np.int64), w).labels[0]

    def oracle(self, X: Sequence[Any], Y: Sequence[Any]) -> RankedOracle:
        if len(X) != len(Y):
            raise ValueError(f"X has {len(X)} queries, Y has {len(Y)}.")
        rows, offsets = _joined(X, self.n_features)
        sizes = np.diff(offsets).tolist()
        truth = [self._checked(np.asarray(y), n, f"Y[{i}]") for i, (y, n) in enumerate(zip(Y, sizes, strict=True))]
        return RankedOracle(self, rows, np.concatenate(truth), offsets)

    def _checked(self, y: np.ndarray, n: int, name: str) -> np.ndarray:
        """What n rows are worth."""
        if y.shape != (n,) or y.dtype.kind not in "fiub":
            raise ValueError(f"{name} must have one number for each of {n} rows, got {shown(y)}.")
        self.check(y, name)
        return y.astype(np.float64)

    def check(self, y: np.ndarray, name: str = "y") -> None:
        """Complain of grades that this measure does not know."""
        raise NotImplementedError

    def _truth_of(self, x: Any) -> np.ndarray | None:
        """What rows are worth, where features depend on it."""
        return None

    def _coefficients(self, truth: Any, answer: np.ndarray) -> np.ndarray:
        """How often each row is in φ(x, answer)."""
        raise NotImplementedError

    def _missed(self, truth: np.ndarray, answer: np.ndarray) -> float:
        """1 minus the measure."""
        raise NotImplementedError

    def _worst(
        self, oracle: RankedOracle, ids: np.ndarray, first: np.ndarray, score: np.ndarray, value: np.ndarray
    ) -> None:
        """Write the worst orders at these scores."""
        raise NotImplementedError

    def _total(self, sizes: np.ndarray) -> np.ndarray:
        """What Σ|coefficients| of an answer is at most, by the number of rows."""
        raise NotImplementedError


class AveragePrecision(Ranked):
    """Rankings of relevant rows and others, whose loss is 1 minus average precision (SVM-map).

        w·φ(x, ŷ) = 1/(n m) Σ ±(w·x_i − w·x_j)    over all n·m pairs of a relevant row i and another j,

    + where ŷ has i before j. The worst order is found exactly, by a merge. Yue, Finley, Radlinski and Joachims (2007).

    x is a matrix, the rows of one query, and y says which of them are relevant: 1 or 0. An answer has a number for each
    row and orders them by it, greatest first; a prediction is n − 1 for the first row, 0 for the last.
    ``features`` of single answers have to know what is relevant: there x is the pair (rows, relevant).

    Parameters
    ----------
    n_features : int or None
        Taken from the data by default.

    Examples
    --------
    >>> import numpy as np
    >>> AveragePrecision(n_features=1).predict(np.array([[0.3], [2.0], [1.0]]), np.ones(1))
    array([0, 2, 1])
    >>> round(AveragePrecision().loss([1, 0, 1], [2, 1, 0]), 4)  # precision 1 at the first, 2/3 at the third
    0.1667
    """

    def __repr__(self) -> str:
        return f"AveragePrecision(n_features={self.n_features})"

    def check(self, y: np.ndarray, name: str = "y") -> None:
        if not np.isin(y, (0, 1)).all():
            raise ValueError(f"{name} must say which rows are relevant, by 1 and 0; got {shown(y)}.")

    def _truth_of(self, x: Any) -> np.ndarray:
        if not isinstance(x, tuple):
            raise ValueError("features of a ranking depend on what is relevant: give x as a pair, (rows, relevant).")
        return np.asarray(x[1])

    def _coefficients(self, truth: np.ndarray, answer: np.ndarray) -> np.ndarray:
        relevant = truth.astype(bool)
        good, other = np.sort(answer[relevant]), np.sort(answer[~relevant])
        coefficients = np.zeros(answer.size)
        if good.size and other.size:
            for rows, rivals in ((relevant, other), (~relevant, good)):
                below, not_above = (np.searchsorted(rivals, answer[rows], side) for side in ("left", "right"))
                coefficients[rows] = (below + not_above - rivals.size) / (float(good.size) * other.size)
        return coefficients

    def _missed(self, truth: np.ndarray, answer: np.ndarray) -> float:
        relevant = truth.astype(bool)
        order = np.lexsort((~relevant, -answer))  # of equal rows the relevant ones come first
        position = np.flatnonzero(relevant[order]) + 1.0
        number = np.arange(1.0, position.size + 1.0)
        return float(((position - number) / position).sum() / max(position.size, 1))

    def _worst(
        self, oracle: RankedOracle, ids: np.ndarray, first: np.ndarray, score: np.ndarray, value: np.ndarray
    ) -> None:
        kernels.least_precise(oracle.offsets, ids, oracle.truth, first, score, value)

    def _total(self, sizes: np.ndarray) -> np.ndarray:
        return np.full(sizes.size, 2.0)


class NDCG(Ranked):
    """Rankings of graded rows, whose loss is 1 minus the normalized discounted cumulative gain.

        w·φ(x, ŷ) = Σ_i D(position of i in ŷ)·w·x_i,    D(p) = 1/log2(1 + p),    gain of a grade y: 2^y − 1

    Loss and score of an order add up over its positions, so the worst order is that of w·x_i − gain_i/ideal: one sort
    finds it. (Chakrabarti, Khanna, Sawant and Bhattacharyya 2008; Le and Smola 2007 for these features.) Rows of the
    same grade share the mean discount of their positions.

    x is a matrix, the rows of one query, and y their grades, 0 for useless rows. An answer has a number for each row
    and orders them by it, greatest first.

    Parameters
    ----------
    n_features : int or None
        Taken from the data by default.
    k : int or None
        Count the first k positions only.

    Examples
    --------
    >>> import numpy as np
    >>> NDCG(n_features=1).predict(np.array([[0.3], [2.0], [1.0]]), np.ones(1))
    array([0, 2, 1])
    >>> round(NDCG().loss([2, 0, 1], [2, 1, 0]), 4)
    0.0361
    """

    def __init__(self, n_features: int | None = None, *, k: int | None = None) -> None:
        super().__init__(n_features)
        if k is not None:
            whole("k", k)
        self.k = k

    def __repr__(self) -> str:
        return f"NDCG(n_features={self.n_features}, k={self.k})"

    def check(self, y: np.ndarray, name: str = "y") -> None:
        if not ((y >= 0) & (y <= _HIGHEST)).all():
            raise ValueError(
                f"{name} must be grades from 0 to {_HIGHEST:.0f}, whose gain is 2^grade - 1; got {shown(y)}."
            )

    def _coefficients(self, truth: Any, answer: np.ndarray) -> np.ndarray:
        order = np.argsort(-answer, kind="stable")
        discounts = _discounts(answer.size, self.k)
        coefficients = np.empty(answer.size)
        coefficients[order] = discounts
        new = answer[order][1:] != answer[order][:-1]
        if not new.all():
            starts = np.concatenate([[0], 1 + np.flatnonzero(new)])
            sizes = np.diff(np.concatenate([starts, [answer.size]]))
            coefficients[order] = np.repeat(np.add.reduceat(discounts, starts) / sizes, sizes)
        return coefficients

    def _gains(self, truth: np.ndarray) -> np.ndarray:
        """Shares of the ideal."""
        gains = np.exp2(truth) - 1.0
        ideal = float(np.sort(gains)[::-1] @ _discounts(gains.size, self.k))
        return gains / ideal if ideal > 0.0 else np.zeros(gains.size)

    def _missed(self, truth: np.ndarray, answer: np.ndarray) -> float:
        gains = self._gains(truth)
        missed = float(gains @ (self._coefficients(truth, truth) - self._coefficients(truth, answer)))
        return missed if missed > gamma(truth.size + 16.0) else 0.0  # less is rounding

    def _worst(
        self, oracle: RankedOracle, ids: np.ndarray, first: np.ndarray, score: np.ndarray, value: np.ndarray
    ) -> None:
        gains = [self._gains(oracle.truth_of(i)) for i in ids.tolist()]
        kernels.sorted_by(first, score - np.concatenate(gains), value)

    def _total(self, sizes: np.ndarray) -> np.ndarray:
        return np.cumsum(_discounts(int(sizes.max(initial=1)), self.k))[sizes - 1]


@functools.lru_cache(maxsize=1024)
def _discounts(n: int, k: int | None) -> np.ndarray:
    """Those of the positions 1 … n."""
    discounts = 1.0 / np.log2(np.arange(2.0, n + 2.0))
    if k is not None:
        discounts[k:] = 0.0
    discounts.flags.writeable = False
    return discounts


class RankedOracle:
    """The model bound to queries, whose rows stand one query after the other.

    Parameters
    ----------
    model : AveragePrecision or NDCG
    X : matrix
        Dense or CSR.
    truth : float array (n_rows,)
    offsets : int array (n_queries + 1,)
        Where each query begins.
    """

    releases_gil = True

    def __init__(self, model: Any, X: Any, truth: np.ndarray, offsets: np.ndarray) -> None:
        self.model, self.X, self.truth, self.offsets = model, X, truth, offsets
        self.rows = as_rows(X)
        self.n_examples, self.n_weights = offsets.size - 1, int(X.shape[1])
        self.largest = largest_values(self.rows)
        self._right = np.concatenate(
            [model._coefficients(y, y) for y in (self.truth_of(i) for i in range(self.n_examples))]
        )

    def truth_of(self, i: int) -> np.ndarray:
        return self.truth[self.offsets[i] : self.offsets[i + 1]]

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> Rivals:
        w = labelling.as_weights(w, self.n_weights)
        sizes = np.diff(self.offsets)[ids]
        first = np.concatenate([[0], np.cumsum(sizes)])
        score, value = np.empty(first[-1]), np.empty(first[-1], np.int64)
        kernels.scores(self.rows.arrays, self.offsets, ids, w, first, score)
        self.model._worst(self, ids, first, score, value)
        return replace(self.planes(ids, np.split(value, first[1:-1])), rounding=partial(self._hidden, sizes, w))

    def _hidden(self, sizes: np.ndarray, w: np.ndarray) -> np.ndarray:
        """By how much rounding may have hidden a worse order: in scores, and in sums over a query."""
        total = 2.0 * self.model._total(sizes) * float(np.abs(w) @ self.largest) + 4.0
        return search_rounding(total, sizes + w.size + 16.0)

    def planes(self, ids: np.ndarray, labels: Sequence[Any]) -> Rivals:
        sizes = np.diff(self.offsets)[ids]
        total = self.coefficients(ids, labels) @ self.X
        losses = np.array([self.model._missed(self.truth_of(i), y) for i, y in zip(ids.tolist(), labels, strict=True)])
        operations = float(sizes.max(initial=0)) + 8.0
        least = losses[losses > 0.0].min(initial=1.0)
        errors = RowErrors(gamma(operations) * 2.0 * self.model._total(sizes), self.largest, gamma(operations) / least)
        return Rivals(list(labels), as_rows(total), losses, errors=errors)

    def coefficients(self, ids: np.ndarray, labels: Sequence[Any]) -> sp.csr_matrix:
        """How often each row is in φ(x, truth) − φ(x, answer), one line for each answer."""
        sizes = np.diff(self.offsets)[ids]
        first = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.arange(first[-1]) + np.repeat(self.offsets[ids] - first[:-1], sizes)
        answers = [
            self.model._coefficients(self.truth_of(i), np.asarray(y)) for i, y in zip(ids.tolist(), labels, strict=True)
        ]
        values = self._right[rows] - np.concatenate([*answers, np.empty(0)])
        return sp.csr_matrix((values, rows, first), shape=(ids.size, self.truth.size))

    def row_shares(self, alpha: Planes) -> np.ndarray:
        """How much of each row is in v."""
        return np.asarray(self.coefficients(alpha.example, alpha.labels).T @ alpha.alpha)


def _joined(X: Iterable[Any], n_features: int | None = None) -> tuple[Any, np.ndarray]:
    """The rows of queries one after the other, and where each query begins."""
    tables = as_tables((x[0] if isinstance(x, tuple) else x for x in X), "Query", "row", n_features)
    rows, offsets = stacked(tables, np.float64)
    check_finite(rows, offsets, "Query", "row")
    return rows, offsets
