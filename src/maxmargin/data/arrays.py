"""User matrices as ``Rows``: no copy of float32 or float64 data, dense (C order) or CSR."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..problem import Rows

_EMPTY = np.empty(0, np.int32)


def as_matrix(X: Any, width: int | None = None) -> Any:
    """A matrix of finite numbers, dense or CSR, one row per example; a single vector is one row.

    float32 and float64 stay as they are, other numbers become float64.

    >>> as_matrix([1, 2]).shape
    (1, 2)
    """
    try:
        table = X.tocsr() if sp.issparse(X) else np.atleast_2d(np.asarray(X))
    except ValueError:
        raise ValueError("X has rows of different lengths. Give all as many numbers.") from None
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        raise ValueError(
            f"X must be a matrix of numbers, one row per example; got {table.dtype} of shape {table.shape}."
        )
    if width is not None and table.shape[1] != width:
        raise ValueError(f"X has {table.shape[1]} features, {width} are needed, as in training.")
    table = table.astype(table.dtype if table.dtype in (np.float32, np.float64) else np.float64, copy=False)
    if not np.isfinite(table.data if sp.issparse(table) else table).all():
        raise ValueError("X has entries that are not finite. Fill in or drop missing values first.")
    return table


def as_rows(X: Any, bias: float = 0.0) -> Rows:
    """View a checked matrix as rows.

    Sparse matrices must be CSR; entries are brought into canonical form (sorted, no duplicates) on a copy
    of their own if they are not: norms and inner products of rows rely on it.

    >>> len(as_rows(np.eye(3)))
    3
    """
    if sp.issparse(X):
        X = X.tocsr()
        if X.shape[1] >= 2**32:
            raise ValueError(f"At most {2**32 - 1} columns can be addressed, X has {X.shape[1]}.")
        if X.nnz and (X.indices.min() < 0 or X.indices.max() >= X.shape[1]):
            raise ValueError(
                f"X has column indices from {X.indices.min()} to {X.indices.max()}, but {X.shape[1]} columns."
            )
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        if X.nnz == 0:
            # Empty ``indices`` would mean "dense": one entry that no row points at keeps it sparse.
            return Rows(X.indptr, np.zeros(1, np.int32), np.zeros(1, X.dtype), X.shape[0], X.shape[1], bias)
        return Rows(X.indptr, X.indices, X.data, X.shape[0], X.shape[1], bias)
    X = np.ascontiguousarray(X)
    return Rows(_EMPTY, _EMPTY, X.reshape(-1), X.shape[0], X.shape[1], bias)
