from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .arrays import as_matrix


@dataclass(frozen=True)
class Bags:
    """Bags of instances as one matrix: bag i is the rows ``first[i]`` … ``first[i+1] − 1`` of ``matrix``."""

    matrix: Any
    first: np.ndarray

    def __len__(self) -> int:
        return self.first.size - 1

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.first)


def as_bags(X: Any, width: int | None = None) -> Bags:
    """Bags from a list of matrices (dense or sparse), one for each bag, or from an array (bags, instances, features).

    float32 and float64 stay as they are. Bags with as many instances may be given as one array, which is not copied.

    >>> as_bags([np.ones((2, 3)), np.ones((1, 3))]).first
    array([0, 2, 3])
    """
    if sp.issparse(X):
        raise ValueError(
            f"X must be a list of matrices, one for each bag; got one sparse matrix of shape {X.shape}. Wrap the rows "
            "that belong together: [X[0:3], X[3:5], …]."
        )
    if len(X) == 0:
        raise ValueError("There are no bags.")
    if isinstance(X, np.ndarray) and X.dtype != object:
        if X.ndim != 3:
            raise ValueError(
                f"X must be a list of matrices, one row per instance, or an array (bags, instances, features); got an "
                f"array of shape {X.shape}. Wrap the rows that belong together: [X[0:3], X[3:5], …]."
            )
        if X.shape[1] == 0:
            raise ValueError("Every bag must have an instance, X has none at all.")
        return Bags(
            as_matrix(np.ascontiguousarray(X).reshape(-1, X.shape[2]), width), np.arange(len(X) + 1) * X.shape[1]
        )
    tables = [_bag(x, i, width) for i, x in enumerate(X)]
    for i, table in enumerate(tables):
        if table.shape[1] != tables[0].shape[1]:
            raise ValueError(
                f"Bag {i} has {table.shape[1]} features, bag 0 has {tables[0].shape[1]}: all must have as many."
            )
    first = np.concatenate([[0], np.cumsum([table.shape[0] for table in tables])])
    if any(sp.issparse(table) for table in tables):
        return Bags(sp.vstack([sp.csr_matrix(table) for table in tables], format="csr"), first)
    return Bags(np.concatenate(tables), first)


def _bag(x: Any, i: int, width: int | None) -> Any:
    if sp.issparse(x):
        x = x.tocsr()
    else:
        x = np.asarray(x)
        if x.ndim != 2 or x.dtype.kind not in "fiub":
            raise ValueError(
                f"Bag {i} must be a matrix of numbers, one row per instance; got {x.dtype} of shape {x.shape}. A bag "
                "of one instance is a matrix of one row: x.reshape(1, -1)."
            )
    if x.shape[0] == 0:
        raise ValueError(f"Bag {i} is empty. Every bag must have an instance: leave empty ones out, with their labels.")
    if width is not None and x.shape[1] != width:
        raise ValueError(f"Bag {i} has {x.shape[1]} features, {width} are needed.")
    if not np.isfinite(x.data if sp.issparse(x) else x).all():
        instance, feature = _not_finite(x)
        raise ValueError(
            f"Bag {i} has a value that is not finite, in instance {instance}, feature {feature}. Fill in or drop "
            "missing values first."
        )
    return as_matrix(x)


def _not_finite(x: Any) -> tuple[int, int]:
    """Row and column of the first value that is not finite."""
    if sp.issparse(x):
        at = int(np.argmin(np.isfinite(x.data)))
        return int(np.searchsorted(x.indptr, at, side="right")) - 1, int(x.indices[at])
    row, column = np.argwhere(~np.isfinite(x))[0]
    return int(row), int(column)
