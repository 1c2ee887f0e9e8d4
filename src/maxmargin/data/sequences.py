"""Sequences of feature vectors, as users give them, in one sparse matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .arrays import as_tables, check_finite, stacked

LARGEST = 1e150
"""The largest value of a feature: its square must not be more than numbers can hold."""


@dataclass(frozen=True)
class Sequences:
    """Many sequences of feature vectors in one sparse matrix: sequence i is the rows ``offsets[i]:offsets[i+1]``.

    >>> pair = Sequences.of([np.eye(2), np.ones((1, 2))])
    >>> len(pair), pair.n_tokens, pair[1].toarray()
    (2, 3, array([[1., 1.]]))
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    offsets: np.ndarray
    n_features: int

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, i: int) -> sp.csr_matrix:
        if not 0 <= i < len(self):
            raise IndexError(f"sequence {i} of {len(self)}")
        a, b = self.offsets[i], self.offsets[i + 1]
        p, q = self.indptr[a], self.indptr[b]
        shape = (b - a, self.n_features)
        return sp.csr_matrix((self.values[p:q], self.indices[p:q], self.indptr[a : b + 1] - p), shape=shape)

    def alone(self, i: int) -> Sequences:
        """Sequence i, without a copy."""
        a, b = self.offsets[i], self.offsets[i + 1]
        return Sequences(self.indptr[a : b + 1], self.indices, self.values, np.array([0, b - a]), self.n_features)

    def sorted(self) -> Sequences:
        """The same with the features of every token in ascending order, each at most once."""
        shape = (self.n_tokens, self.n_features)
        table = sp.csr_matrix((self.values, self.indices, self.indptr), shape=shape)
        if table.has_canonical_format:
            return self
        table = table.copy()
        table.sum_duplicates()
        return Sequences(
            table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data, self.offsets, self.n_features
        )

    def only(self, kept: np.ndarray) -> Sequences:
        """The same with these features alone, given by their numbers in ascending order."""
        place = np.full(self.n_features, -1, np.int32)
        place[kept] = np.arange(kept.size)
        number = place[self.indices]
        here = number >= 0
        before = np.concatenate([[0], np.cumsum(here)])
        return Sequences(before[self.indptr], number[here], self.values[here], self.offsets, kept.size)

    @property
    def n_tokens(self) -> int:
        return int(self.offsets[-1])

    @classmethod
    def of(
        cls,
        X: Sequence[Any] | Sequences,
        n_features: int | None = None,
        name: str = "Sequence",
        row: str = "token",
        part: str = "",
    ) -> Sequences:
        """Matrices of tokens by features, dense or sparse, all of one width; the words are for messages."""
        if isinstance(X, Sequences):
            if n_features is not None and X.n_features != n_features:
                raise ValueError(f"The sequences have {X.n_features} features, {n_features} are needed.")
            return X
        if hasattr(X, "shape") and len(X.shape) == 2:
            raise ValueError(
                "Expected a list of sequences, each a matrix of tokens by features; got one matrix of shape "
                f"{tuple(X.shape)}. Put a single sequence into a list: [x]."
            )
        hint = "" if part else " Names of features must be text."
        parts = as_tables(X, name, row, n_features, part=part, hint=hint)
        if not parts:
            raise ValueError(f"There are no {name.lower()}s.")
        if parts[0].shape[1] >= 2**31:
            raise ValueError(
                f"At most {2**31 - 1} features can be addressed, {name.lower()}s have {parts[0].shape[1]}."
            )
        table, offsets = stacked(parts, np.result_type(*{_precision(part.dtype) for part in parts}))
        table = sp.csr_matrix(table)
        table.sum_duplicates()
        check_finite(table, offsets, name, row)
        _check_size(table, offsets, name, row)
        return cls(table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data, offsets, table.shape[1])


def _check_size(table: Any, first: np.ndarray, name: str, row: str) -> None:
    """Complain of the first value whose square is more than numbers can hold."""
    values = table.data
    if values.dtype == np.float32 or not values.size or max(values.max(), -values.min()) <= LARGEST:
        return
    place = int(np.argmax(np.abs(values) > LARGEST))
    at = int(np.searchsorted(table.indptr, place, side="right")) - 1
    i = int(np.searchsorted(first, at, side="right")) - 1
    raise ValueError(
        f"{name} {i} has the value {values[place]:g} at {row} {at - first[i]}, feature {table.indices[place]}; values "
        f"must be {LARGEST:g} at most. Leave out what is missing, and scale the rest."
    )


def _precision(dtype: np.dtype) -> type:
    """float32 for what it holds exactly, float64 for the rest."""
    small = dtype.kind in "bui" and dtype.itemsize <= 2
    return np.float32 if small or dtype == np.float32 else np.float64
