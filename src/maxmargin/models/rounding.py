"""What rounding may change in searches and in rows that are sums: built-in models account for it in ``Rivals``."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..constraints.matrices import stored
from ..constraints.small import is_small
from ..data.sequences import Sequences
from ..kernels import rows as kernels
from ..problem import RowErrors, Rows
from ..rounding import gamma


def search_rounding(size: np.ndarray, operations: Any) -> np.ndarray:
    """By how much an answer may be better than the one that a search has found to be the best.

    ``size`` bounds Σ|terms| of the score of any answer: the computed scores of both may be off by γ·size.
    """
    return 2.0 * gamma(1) * operations * size


def whole_sums(values: np.ndarray, most: int, limit: float = 2.0**53) -> bool:
    """Whether sums of so many of these values are whole numbers that floating point holds exactly.

    >>> whole_sums(np.array([32767.0]), 2000, limit=2.0**24)
    False
    """
    largest = np.abs(values).max(initial=1.0)  # so often are labels and pairs of them counted, too
    return bool(largest * most < limit and np.array_equal(values, np.rint(values)))


def largest_values(rows: Rows) -> np.ndarray:
    """The largest absolute value of every column, in float64."""
    X = stored(rows)
    largest = abs(X).max(axis=0)
    flat = (largest.toarray() if sp.issparse(largest) else largest).ravel().astype(np.float64)
    return np.append(flat, abs(rows.bias)) if rows.bias else flat


def score_sizes(rows: Rows, first: np.ndarray, last: np.ndarray, table: np.ndarray, n_labels: int = 1) -> np.ndarray:
    """Σ_j |x_j|·‖w_j‖ over the stored rows first[p] … last[p] − 1, the norm over the labels of a feature: whichever
    label each row has, its score has no larger terms. ``table`` is flat, the labels of a feature side by side."""
    size = np.zeros(first.size)
    if not (rows.data.size or rows.bias):  # all zeros, which would be taken for dense rows
        return size
    if is_small(rows, n_labels):
        norms = np.sqrt(np.square(table.reshape(-1, n_labels)).sum(axis=1))
        each = np.abs(stored(rows)) @ norms[: rows.width] + (abs(rows.bias) * norms[rows.width] if rows.bias else 0.0)
        size[:] = [each[a:b].sum() for a, b in zip(first.tolist(), last.tolist(), strict=True)]
    elif rows.data.size:
        kernels.sizes(rows.arrays, first, last, table, n_labels, size)
    return size


class LabellingErrors:
    """Of labellings whose score is a sum over parts: labelled tokens with their features, and pairs of labels.

    Weights of features come first, ``w[feature, label]`` flattened.

    Parameters
    ----------
    X : Sequences
        The tokens of all examples.
    n_labels : int
    others : float array
        The largest absolute value that multiplies each of the other weights, in one part.
    n_parts : int array (n,)
        Parts of each example.
    cost : float array (n,)
        The largest cost of one part.
    slack : float array (n,) or None
        What rows are multiplied by at most, where slacks are rescaled.
    exact : bool
        Whether sums of these features are exact.
    per_token : int
        How many weights of one feature a token may meet.
    steps : int
        Additions of a search in one part, besides those over features.
    """

    def __init__(
        self,
        X: Sequences,
        n_labels: int,
        others: np.ndarray,
        n_parts: np.ndarray,
        cost: np.ndarray,
        slack: np.ndarray | None = None,
        exact: bool = False,
        per_token: int = 1,
        steps: int = 4,
    ) -> None:
        factor = np.ones(1) if slack is None else slack
        self._margin = 0.0 if slack is None else 1.0  # what is rescaled is what is missing of a margin of one
        self._X, self._n_labels, self._others, self._cost = X, n_labels, others, cost
        self._per_token = float(per_token)
        self._n_parts = n_parts.astype(np.float64)
        self._operations = (np.diff(X.indptr).max(initial=0) + float(steps) * self._n_parts + 16.0) * factor
        most = np.zeros(X.n_features)
        np.maximum.at(most, X.indices, np.abs(X.values))
        self._scale = np.concatenate([np.repeat(most, n_labels), others])
        self._factor = (0.0 if exact and slack is None else gamma(2)) * (self._n_parts + 2.0) * self._n_parts * factor
        self._loss = gamma(n_parts.max(initial=0) + 4)

    def of_rows(self, ids: np.ndarray) -> RowErrors:
        """A row sums what the parts of an example have, those of the truth and those of an answer."""
        return RowErrors(self._factor[ids], self._scale, self._loss)

    def of_search(self, ids: np.ndarray, w: np.ndarray) -> np.ndarray:
        """By how much rounding may have hidden a better labelling at w."""
        n = w.size - self._others.size
        X = self._X
        tokens = Rows(X.indptr, X.indices, X.values, X.n_tokens, X.n_features)
        size = score_sizes(tokens, X.offsets[ids], X.offsets[ids + 1], w[:n], self._n_labels)
        # A part has a bias, a pair and, at both ends of a chain, one more weight at most.
        pairs = 4.0 * (np.abs(w[n:]) * self._others).max(initial=0.0)
        return search_rounding(
            self._per_token * size + self._n_parts[ids] * (pairs + self._cost[ids] + self._margin),
            self._operations[ids],
        )
