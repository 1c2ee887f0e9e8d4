"""The model of matchings: each item of one set gets a partner in another."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..data.arrays import as_rows
from ..problem import Rivals, RowErrors
from ..rounding import gamma
from ..validation import one_of, shown, switch
from . import labelling
from .rounding import search_rounding


class Assignment:
    """One-to-one matchings of two sets: weights for the features of pairs.

        w·φ(x, y) = Σ_i w·x[i, y_i]

    x is an array of features of all pairs, (n_left, n_right, n_features); y is an array with the partner of each item
    on the left, 0 … n_right−1, all of them different. The best matching is found exactly, by SciPy's
    ``linear_sum_assignment``. Words of a sentence and of its translation, detections in two frames of a video, records
    of two tables.

    Parameters
    ----------
    n_features : int or None
        Taken from the data by default.
    unmatched : bool
        Whether an item on the left may go without a partner: y is −1 there, and the last weight its score.
        Otherwise the right needs as many items as the left.
    loss : {"hamming", "normalized_hamming"}
        Wrong partners counted, or their share.

    Examples
    --------
    >>> import numpy as np
    >>> near = -np.abs(np.array([[0.0], [5.0]]) - np.array([[9.0, 1.0, 2.0]]))[:, :, None]
    >>> Assignment(n_features=1).predict(near, np.ones(1))
    array([1, 2])
    >>> Assignment(n_features=1, unmatched=True).predict(near, np.array([1.0, -2.0]))
    array([ 1, -1])
    """

    exact = True
    rescaling = "margin"

    def __init__(self, n_features: int | None = None, *, unmatched: bool = False, loss: str = "hamming") -> None:
        labelling.check_sizes(n_features=n_features)
        switch("unmatched", unmatched)
        self.n_features = n_features
        self.unmatched = unmatched
        self.cost = one_of("loss", loss, labelling.LOSSES)

    def sized(self, X: Sequence[Any], Y: Sequence[object]) -> Assignment:
        """A copy that knows its sizes from the data."""
        sized = copy.copy(self)
        if self.n_features is None and len(X):
            sized.n_features = _table(X[0], None, 0).shape[2]
        return sized

    def joined(self, others: Sequence[Assignment]) -> Assignment:
        """The model that knows the sizes of this one and others, each sized on a part of the data."""
        return labelling.joined([self, *others], ["n_features"], [])

    @property
    def n_weights(self) -> int:
        return labelling.sizes(self, "n_features")[0] + self.unmatched

    def __repr__(self) -> str:
        return f"Assignment(n_features={self.n_features}, unmatched={self.unmatched})"

    def features(self, x: object, y: object) -> np.ndarray:
        """φ(x, y)."""
        table = _table(x, self.n_features, 0)
        partner = self._partners(y, table, 0)
        matched = np.flatnonzero(partner >= 0)
        total = table[matched, partner[matched]].sum(axis=0)
        return np.append(total, float(partner.size - matched.size)) if self.unmatched else total

    def loss(self, y: object, y_hat: object) -> float:
        return labelling.loss(self.cost, y, y_hat)

    def predict(self, x: object, w: np.ndarray) -> np.ndarray:
        """The matching of the highest score w·φ(x, y)."""
        table = _table(x, self.n_features, 0)
        return _best(self._scores(table, labelling.as_weights(w, self.n_weights)), table.shape[1])[0]

    def most_violated(self, x: object, y: object, w: np.ndarray) -> np.ndarray:
        """The matching ŷ of the highest loss(y, ŷ) + w·φ(x, ŷ)."""
        return self.oracle([x], [y]).rivals(np.zeros(1, np.int64), w).labels[0]

    def oracle(self, X: Sequence[object], Y: Sequence[object]) -> AssignmentOracle:
        return AssignmentOracle(self, X, Y)

    def _scores(self, table: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Of every pair; one more column for each item on the left if it may stay alone."""
        scores = table @ w[: table.shape[2]]
        if not self.unmatched:
            return scores
        return np.concatenate([scores, np.full((len(table), len(table)), w[-1])], axis=1)

    def _partners(self, y: object, table: np.ndarray, i: int) -> np.ndarray:
        partner = np.asarray(y)
        n_left, n_right = table.shape[:2]
        if partner.shape != (n_left,) or (partner.size and partner.dtype.kind not in "iu"):
            raise ValueError(f"Y[{i}] must have one whole number for each of {n_left} items, got {shown(y)}.")
        least = -1 if self.unmatched else 0
        if partner.size and not least <= partner.min() <= partner.max() < n_right:
            alone = ", or -1 for none" if self.unmatched else "; unmatched=True allows -1 for none"
            raise ValueError(f"Y[{i}] must name partners 0 … {n_right - 1}{alone}; got {shown(y)}.")
        matched = partner[partner >= 0]
        if np.unique(matched).size < matched.size:
            raise ValueError(f"Y[{i}] gives two items the same partner: {shown(y)}.")
        return partner.astype(np.int64)


class AssignmentOracle:
    """The model bound to data."""

    releases_gil = False

    def __init__(self, model: Assignment, X: Sequence[object], Y: Sequence[object]) -> None:
        if len(X) != len(Y):
            raise ValueError(f"X has {len(X)} examples, Y has {len(Y)}.")
        self.model = model
        self.n_examples, self.n_weights = len(X), model.n_weights
        self.tables = [_table(x, model.n_features, i) for i, x in enumerate(X)]
        self.y = [model._partners(y, table, i) for i, (y, table) in enumerate(zip(Y, self.tables, strict=True))]
        for i, table in enumerate(self.tables):
            if not model.unmatched and table.shape[0] > table.shape[1]:
                raise ValueError(
                    f"X[{i}] has {table.shape[0]} items on the left and {table.shape[1]} on the right. Each needs a "
                    "partner; unmatched=True lets them go without."
                )
        self.truth = [model.features(table, y) for table, y in zip(self.tables, self.y, strict=True)]
        self.largest = np.max([np.abs(table).max(axis=(0, 1), initial=0.0) for table in self.tables], axis=0)

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> Rivals:
        w = labelling.as_weights(w, self.n_weights)
        labels, hidden = [], np.empty(ids.size)
        for p, i in enumerate(ids.tolist()):
            table, y = self.tables[i], self.y[i]
            scores = self.model._scores(table, w)
            cost = 1.0 / max(y.size, 1) if self.model.cost == "normalized_hamming" else 1.0
            right = y[:, None] == np.arange(table.shape[1])
            alone = np.broadcast_to((y < 0)[:, None], (y.size, scores.shape[1] - table.shape[1]))
            scores += cost * ~np.concatenate([right, alone], axis=1)
            answer, hidden[p] = _best(scores, table.shape[1])
            labels.append(answer)
        return replace(self.planes(ids, labels), rounding=partial(self._rounding, ids, w, hidden))

    def _rounding(self, ids: np.ndarray, w: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        """By how much rounding may have hidden a better matching: in the search, and in the scores of pairs before."""
        each = float(np.abs(w[: self.largest.size]) @ self.largest) + float(np.abs(w[self.largest.size :]).sum()) + 1.0
        n_left = np.array([self.y[i].size for i in ids.tolist()], dtype=np.float64)
        return hidden + search_rounding(n_left * each, n_left + w.size + 4.0)

    def planes(self, ids: np.ndarray, labels: Sequence[Any]) -> Rivals:
        rows, losses = np.empty((ids.size, self.n_weights)), np.empty(ids.size)
        for p, (i, label) in enumerate(zip(ids.tolist(), labels, strict=True)):
            rows[p] = self.truth[i] - self.model.features(self.tables[i], label)
            losses[p] = self.model.loss(self.y[i], label)
        n_left = np.array([self.y[i].size for i in ids.tolist()], dtype=np.float64)
        scale = np.append(self.largest, np.ones(int(self.model.unmatched)))
        errors = RowErrors(gamma(2) * (n_left + 2.0) * n_left, scale, gamma(4))
        return Rivals(list(labels), as_rows(rows), losses, errors=errors)


def _table(x: object, n_features: int | None, i: int) -> np.ndarray:
    table = np.asarray(x, dtype=np.float64)
    if table.ndim != 3 or (n_features is not None and table.shape[2] != n_features):
        raise ValueError(
            f"X[{i}] must be an array of features of all pairs, (n_left, n_right, {n_features or 'n_features'}), got "
            f"shape {table.shape}."
        )
    if not np.isfinite(table).all():
        raise ValueError(f"X[{i}] has features that are not finite.")
    return table


def _best(scores: np.ndarray, n_right: int) -> tuple[np.ndarray, float]:
    """The partners of the highest total score, −1 for columns from ``n_right`` on; and by how much rounding may have
    hidden others.

    Whatever prices the columns have, none of them below zero, no matching scores more than
    Σ_i max_j (score_ij − price_j) + Σ_j price_j.
    """
    if not scores.size:
        return np.full(len(scores), -1, np.int64), 0.0
    _, column = linear_sum_assignment(scores, maximize=True)
    found = scores[np.arange(column.size), column]
    free = np.ones(scores.shape[1], bool)
    free[column] = False
    price = np.where(free, 0.0, np.inf) if free.any() else np.zeros(scores.shape[1])
    for _ in range(column.size + 1):  # of a column: what its row would lose by going without it, a shortest path
        cheaper = np.minimum(price[column], (found[:, None] - scores + price).min(axis=1))
        if (cheaper >= price[column]).all():
            break
        price[column] = cheaper
    price = np.maximum(price - min(price.min(), 0.0), 0.0)
    terms = np.concatenate([(scores - price).max(axis=1), price, -found])
    size = float(np.abs(scores).max(initial=0.0) * column.size + np.abs(terms).sum() + price.sum())
    missed = float(terms.sum()) + gamma(terms.size + 4) * size
    return np.where(column < n_right, column, -1), max(missed, 0.0)
