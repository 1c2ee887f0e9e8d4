"""Rows as matrices of NumPy and SciPy: all that are stored, a few of them, or those of a problem written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..problem import Rows

_SAMPLE = 1000  # rows that tell the scale of the data


def stored(rows: Rows) -> np.ndarray | sp.csr_matrix:
    """Stored rows as a matrix on the same arrays, dense or sparse as they are."""
    if rows.dense:
        return rows.data[: rows.n_rows * rows.width].reshape(rows.n_rows, rows.width)
    end = rows.indptr[rows.n_rows]
    parts = (rows.data[:end], rows.indices[:end], rows.indptr[: rows.n_rows + 1])
    return sp.csr_matrix(parts, shape=(rows.n_rows, rows.width))


def as_sparse(rows: Rows) -> sp.csr_matrix:
    """The same as a sparse matrix in any case."""
    return sp.csr_matrix(stored(rows)) if rows.dense else stored(rows)


def picked(rows: Rows, chosen: np.ndarray) -> Any:
    """A few stored rows as a matrix of their own, dense or sparse as they are; no others are looked at."""
    if rows.dense:
        return stored(rows)[chosen]
    start = rows.indptr[chosen]
    indptr = np.concatenate([[0], np.cumsum(rows.indptr[chosen + 1] - start)])
    at = np.arange(indptr[-1]) + np.repeat(start - indptr[:-1], np.diff(indptr))
    return sp.csr_matrix((rows.data[at], rows.indices[at], indptr), shape=(chosen.size, rows.width))


def written_out(rows: Rows) -> Any:
    """The rows of a problem in float64, with differences and intercept: dense or sparse as they are stored."""
    if not rows.minus.size:
        return _completed(rows, stored(rows))
    # Only rows that are asked for: a cache may not have written to the others yet.
    apart = rows.minus >= 0
    first, other = (_completed(rows, picked(rows, i)) for i in (rows.plus, np.where(apart, rows.minus, rows.plus)))
    return first - (other * apart[:, None] if rows.dense else sp.diags_array(apart.astype(float)) @ other)


def _completed(rows: Rows, X: Any) -> Any:
    """In float64, with the intercept."""
    X = X.astype(np.float64, copy=False)
    if not rows.bias:
        return X
    column = np.full((X.shape[0], 1), float(rows.bias))
    return np.hstack([X, column]) if rows.dense else sp.hstack([X, column], format="csr")


def mean_squared_norm(rows: Rows) -> float:
    """The mean of ‖x‖² over some of the rows of a problem: what C is to be measured by."""
    n = len(rows)
    if not n:
        return 0.0
    some = np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.int64)
    plus, minus = (rows.plus[some], rows.minus[some]) if rows.minus.size else (some, np.full(some.size, -1))
    apart = minus >= 0
    chosen = [picked(rows, plus[~apart])]
    if apart.any():
        chosen.append(picked(rows, plus[apart]) - picked(rows, minus[apart]))
    squares = sum(float(np.square(x.data if sp.issparse(x) else x, dtype=np.float64).sum()) for x in chosen)
    return (squares + np.count_nonzero(~apart) * rows.bias**2) / some.size
