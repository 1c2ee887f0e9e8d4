"""Bags of instances, as users give them, in one matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..validation import check_unmasked
from .arrays import as_table, as_tables, check_finite, stacked

_ONE = " A bag of one instance is a matrix of one row: x.reshape(1, -1)."


@dataclass(frozen=True)
class Bags:
    """Bags of instances as one matrix: bag i is the rows ``first[i]`` … ``first[i+1] − 1`` of ``matrix``.

    Estimators make this from a list of matrices. Who has all instances in one matrix saves a copy by giving it.

    Parameters
    ----------
    matrix : array or CSR matrix (n_instances, n_features)
    first : int array (n_bags + 1,)

    Examples
    --------
    >>> bags = Bags(np.arange(6.0).reshape(3, 2), np.array([0, 1, 3]))
    >>> len(bags), bags[1]
    (2, array([[2., 3.],
           [4., 5.]]))
    """

    matrix: Any
    first: np.ndarray

    def __len__(self) -> int:
        return len(self.first) - 1

    def __getitem__(self, i: int) -> Any:
        if not 0 <= i < len(self):
            raise IndexError(f"bag {i} of {len(self)}")
        return self.matrix[self.first[i] : self.first[i + 1]]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.first)

    def check_finite(self) -> None:
        """Complain of the first value that is not finite."""
        check_finite(self.matrix, self.first, "Bag", "instance")

    def between(self, a: int, b: int) -> Bags:
        """Bags a … b − 1."""
        return Bags(self.matrix[self.first[a] : self.first[b]], self.first[a : b + 1] - self.first[a])

    def means(self) -> Bags:
        """Bags of one instance each: their means."""
        return Bags(self._means(), np.arange(len(self) + 1))

    def _means(self) -> Any:
        if sp.issparse(self.matrix):
            share = np.repeat(1.0 / self.sizes, self.sizes).astype(self.matrix.dtype)
            instance = np.arange(share.size)
            table = sp.csr_matrix((share, instance, self.first), shape=(len(self), share.size)) @ self.matrix
            table.sort_indices()
            return table
        sums = np.add.reduceat(self.matrix, self.first[:-1], axis=0, dtype=np.float64)
        return (sums / self.sizes[:, None]).astype(self.matrix.dtype)


def as_bags(X: Any, width: int | None = None, *, finite: bool = True) -> Bags:
    """Bags from a list of matrices (dense or sparse), one for each bag, or from an array (bags, instances, features).

    float32 and float64 stay as they are. Bags with as many instances may be given as one array, which is not copied;
    nor are ``Bags``, which are only checked. Whoever looks at a part of the numbers only may do without the check that
    all are ``finite``.

    >>> as_bags([np.ones((2, 3)), np.ones((1, 3))]).first
    array([0, 2, 3])
    """
    X = X.to_list() if hasattr(X, "to_list") else X
    if sp.issparse(X):
        raise ValueError(
            f"X must be a list of matrices, one for each bag; got one sparse matrix of shape {X.shape}. Wrap the rows "
            "that belong together: [X[0:3], X[3:5], …]."
        )
    if not isinstance(X, Sized) or isinstance(X, str | dict):
        raise ValueError(f"X must be a list of matrices, one for each bag, got {type(X).__name__}.")
    if len(X) == 0:
        raise ValueError("There are no bags.")
    if hasattr(X, "matrix") and hasattr(X, "first"):
        bags = _of_matrix(X.matrix, np.asarray(X.first))
    elif isinstance(X, np.ndarray) and X.dtype != object:
        check_unmasked("X", X)
        bags = _of_array(X)
    else:
        bags = _of_list(X, width)
    if width is not None and bags.matrix.shape[1] != width:
        raise ValueError(f"Bags have {bags.matrix.shape[1]} features, {width} are needed.")
    if finite:
        bags.check_finite()
    return bags


def _of_matrix(matrix: object, first: np.ndarray) -> Bags:
    table = _numbers(matrix, "The matrix of instances")
    if first.ndim != 1 or first.dtype.kind not in "iu" or first[0] != 0 or first[-1] != table.shape[0]:
        raise ValueError(
            f"Bags: first must be whole numbers from 0 to the number of instances, {table.shape[0]}; got {first!r}."
        )
    first = first.astype(np.int64)
    empty = np.flatnonzero(np.diff(first) <= 0)
    if empty.size:
        raise ValueError(f"Bag {empty[0]} is empty. Drop bags without instances, and their labels.")
    return Bags(table, first)


def _of_array(X: np.ndarray) -> Bags:
    if X.ndim != 3:
        raise ValueError(
            "X must be a list of matrices, one row per instance, or an array (bags, instances, features); got an array "
            f"of shape {X.shape}. Wrap the rows that belong together: [X[0:3], X[3:5], …]."
        )
    if X.shape[1] == 0:
        raise ValueError("Every bag must have an instance, X has none at all.")
    return Bags(_numbers(X.reshape(-1, X.shape[2]), "The array of bags"), np.arange(len(X) + 1) * X.shape[1])


def _of_list(X: Any, width: int | None) -> Bags:
    tables = as_tables(X, "Bag", "instance", width, hint=_ONE)
    return Bags(*stacked(tables, np.float32 if all(t.dtype == np.float32 for t in tables) else np.float64))


def _numbers(x: object, name: str) -> Any:
    """A matrix, dense in C order or CSR; float32 stays, other numbers become float64."""
    table = as_table(x, name, "one row per instance", hint=_ONE)
    precision = np.float32 if table.dtype == np.float32 else np.float64
    return table.astype(precision, copy=False) if sp.issparse(table) else np.ascontiguousarray(table, dtype=precision)
