"""The multiclass model with a cost for every confusion."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data.arrays import as_matrix, as_rows
from ..problem import Rivals
from ..validation import one_of
from . import labelling
from .rounding import search_rounding


class Multiclass:
    """One of several classes, with a cost for every confusion: the smallest structured model.

        w·φ(x, y) = w_y·x

    x is a vector (X a matrix, dense or sparse), y a class 0 … n_classes−1. ``LinearSVC`` solves the same problem with
    all constraints at hand and is faster; this model is for classes among other structure, and for slack rescaling.

    Parameters
    ----------
    n_classes, n_features : int or None
        Taken from the data by default.
    cost : array (n_classes, n_classes) or None
        Loss of answering the column where the row is true; 1 for every confusion by default.
    rescaling : {"margin", "slack"}
        Whether a cost asks for a margin of its size, or multiplies what is missing of a margin of one.

    Examples
    --------
    >>> Multiclass(n_classes=3, n_features=1).predict(np.array([2.0]), np.array([0.0, 1.0, -1.0]))
    1
    """

    exact = True

    def __init__(
        self,
        n_classes: int | None = None,
        n_features: int | None = None,
        *,
        cost: object = None,
        rescaling: str = "margin",
    ) -> None:
        labelling.check_sizes(n_classes=n_classes, n_features=n_features)
        self.rescaling = one_of("rescaling", rescaling, ("margin", "slack"))
        self.n_classes = n_classes
        self.n_features = n_features
        if cost is not None:
            labelling.check_loss(cost, n_classes, "cost", ())
        self.cost = None if cost is None else np.asarray(cost, dtype=np.float64)

    def sized(self, X: object, Y: object) -> Multiclass:
        """A copy that knows its sizes: from the data, where they were not given."""
        sized = copy.copy(self)
        if self.n_features is None:
            sized.n_features = as_matrix(X).shape[1]
        if self.n_classes is None:
            labels = labelling.check_labels(Y, np.inf, "Y")
            sized.n_classes = 1 + int(labels.max(initial=0)) if self.cost is None else len(self.cost)
        return sized

    def joined(self, others: Sequence[Multiclass]) -> Multiclass:
        """The model that knows the sizes of this one and others, each sized on a part of the data."""
        return labelling.joined([self, *others], ["n_features"], ["n_classes"])

    @property
    def n_weights(self) -> int:
        K, d = self._sizes()
        return K * d

    def _sizes(self) -> tuple[int, ...]:
        return labelling.sizes(self, "n_classes", "n_features")

    def _costs(self) -> np.ndarray:
        return 1.0 - np.eye(self._sizes()[0]) if self.cost is None else self.cost

    def __repr__(self) -> str:
        return f"Multiclass(n_classes={self.n_classes}, n_features={self.n_features}, rescaling={self.rescaling!r})"

    def features(self, x: Any, y: int) -> sp.csr_matrix:
        K, d = self._sizes()
        x = sp.csr_matrix(as_matrix(x, d))
        return sp.csr_matrix((x.data, x.indices + int(y) * d, x.indptr), shape=(1, K * d))

    def loss(self, y: int, y_hat: int) -> float:
        costs = self._costs()
        if not all(isinstance(k, Integral) and 0 <= k < len(costs) for k in (y, y_hat)):
            labelling.check_labels([y, y_hat], len(costs))  # says what is wrong with them
        return float(costs[int(y), int(y_hat)])

    def predict(self, x: object, w: np.ndarray) -> int:
        return self.predict_all(as_matrix(x), w)[0]

    def predict_all(self, X: object, w: np.ndarray) -> list[int]:
        """The best class of every row."""
        return np.argmax(self.class_scores(X, w), axis=1).tolist()

    def class_scores(self, X: object, w: np.ndarray) -> np.ndarray:
        """w·φ(x, y) for every row and class."""
        K, d = self._sizes()
        return np.asarray(as_matrix(X, d) @ np.reshape(w, (K, d)).T)

    def most_violated(self, x: object, y: int, w: np.ndarray) -> int:
        return int(self.oracle(as_matrix(x), [y]).rivals(np.zeros(1, np.int64), w).labels[0])

    def oracle(self, X: object, Y: object) -> MulticlassOracle:
        return MulticlassOracle(self, X, Y)


class MulticlassOracle:
    """The model bound to data: scores of whole batches are one matrix product."""

    releases_gil = True

    def __init__(self, model: Multiclass, X: object, Y: Any) -> None:
        self.model = model
        K, d = model._sizes()
        self.X = as_matrix(X, d)
        self.y = labelling.check_labels(Y, K, "Y")
        if self.y.size != self.X.shape[0]:
            raise ValueError(f"X has {self.X.shape[0]} examples, Y has {self.y.size}.")
        self.n_examples = self.X.shape[0]
        self.n_weights = model.n_weights

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> Rivals:
        scores, cost = self.model.class_scores(self.X[ids], w), self.model._costs()[self.y[ids]]
        if self.model.rescaling == "slack":
            behind = scores - scores[np.arange(ids.size), self.y[ids]][:, None]
            violated = cost * (1.0 + behind)
        else:
            violated = scores + cost
        found = self.planes(ids, np.argmax(violated, axis=1).tolist())
        return replace(found, rounding=partial(self._rounding, ids, w))

    def _rounding(self, ids: np.ndarray, w: np.ndarray) -> np.ndarray:
        """By how much rounding in the search may have hidden a better class."""
        K, d = self.model._sizes()
        largest, cost = np.abs(np.reshape(w, (K, d))).max(axis=0), self.model._costs().max()
        slack = self.model.rescaling == "slack"
        size = 2.0 * np.asarray(abs(self.X[ids]) @ largest) + cost + slack
        return search_rounding(size, (d + 8.0) * (cost if slack else 1.0))

    def planes(self, ids: np.ndarray, labels: Sequence[object]) -> Rivals:
        K, d = self.model._sizes()
        y, z = self.y[ids], labelling.check_labels(np.asarray(labels, dtype=np.int64), K, "An answer")
        losses = self.model._costs()[y, z]
        x = sp.csr_matrix(self.X[ids])
        size = np.diff(x.indptr)
        row = np.repeat(np.arange(ids.size), size)
        factor = losses if self.model.rescaling == "slack" else np.where(y == z, 0.0, 1.0)
        data = x.data * (factor if self.model.rescaling == "slack" else factor.astype(x.dtype))[row]
        table = sp.csr_matrix((data, (row, x.indices + y[row] * d)), shape=(ids.size, K * d)) - sp.csr_matrix(
            (data, (row, x.indices + z[row] * d)), shape=(ids.size, K * d)
        )
        table.eliminate_zeros()
        return Rivals(z.tolist(), as_rows(table), losses)
