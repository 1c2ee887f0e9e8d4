"""Sums over rows: those of small problems in array code, as a kernel that does the same would first be compiled, for
longer than any of these takes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from ..kernels import rows as kernels
from ..kernels.simplex import project_examples
from ..kernels.vectors import compensated
from ..problem import Rows
from ..rounding import UNIT
from .matrices import written_out

_limit = {"values": 1 << 16}  # with the zeros of sparse rows


@contextlib.contextmanager
def none_is_small() -> Iterator[None]:
    """Meanwhile every problem is one for the kernels, which may have to be compiled beforehand, or to be tested."""
    before = _limit["values"]
    _limit["values"] = 0
    try:
        yield
    finally:
        _limit["values"] = before


def is_small(rows: Rows, columns: int = 1) -> bool:
    """Whether rows times columns of weights are few enough numbers to be written out."""
    return is_few(max(rows.n_rows, len(rows)) * rows.width * columns)


def is_few(n: int) -> bool:
    """Whether so many numbers are written out."""
    return n <= _limit["values"]


def table(rows: Rows) -> np.ndarray:
    """The rows of a problem written out, dense in any case."""
    if rows.dense or rows.minus.size:
        X = written_out(rows)
        return X.toarray() if sp.issparse(X) else X
    n, width = rows.n_rows, rows.n_weights  # SciPy would take five times as long for the few rows that a chunk has
    indptr = rows.indptr[: n + 1].astype(np.int64)
    place = np.repeat(np.arange(n) * width, np.diff(indptr)) + rows.indices[: indptr[-1]]
    X = np.bincount(place, rows.data[: indptr[-1]], n * width).astype(np.float64, copy=False).reshape(n, width)
    if rows.bias:
        X[:, -1] = rows.bias
    return X


def add_rows(rows: Rows, coefficients: np.ndarray, v: np.ndarray) -> None:
    """v += Σ_i coefficients_i · row i, in array code or by the kernel."""
    if is_small(rows):
        v += coefficients @ table(rows)
    else:
        kernels.combine(rows.arrays, coefficients, v)


def scores(rows: Rows, w: np.ndarray) -> np.ndarray:
    """w · row i, in array code or by the kernel."""
    if is_small(rows):
        return table(rows) @ w
    out = np.empty(len(rows))
    kernels.scores(rows.arrays, np.ascontiguousarray(w, dtype=np.float64), out)
    return out


def bounded_scores(rows: Rows, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same, and by how much each may be off."""
    if is_small(rows):
        X = table(rows)
        return X @ w, 1.01 * UNIT * (w.size + 5) * (np.abs(X) @ np.abs(w))
    out, error = np.empty((2, len(rows)))
    kernels.bounded_scores(rows.arrays, np.ascontiguousarray(w, dtype=np.float64), out, error)
    return out, error


def bounded_combine(rows: Rows, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Σ_i coefficients_i · row i as two arrays, (sum, what was rounded away), and the sums of the absolute values.

    A matrix of coefficients has a column for each vector of weights.
    """
    c = coefficients[:, None] if coefficients.ndim == 1 else coefficients
    held = c.any(axis=1)
    X, c = table(rows)[held], c[held]
    terms = (X[:, :, None] * c[:, None, :]).reshape(len(X), X.shape[1] * c.shape[1])
    return *compensated(terms), np.abs(terms).sum(axis=0)


def total_of(paid: np.ndarray, most: np.ndarray) -> tuple[float, float]:
    """What all examples pay, and by how much rounding may have lowered it if each of them pays so much at most.

    Both were formed from their excess in a few operations.
    """
    total, low = (float(part) for part in compensated(paid))
    return total + low, 1.01 * float((most - paid + 8.0 * UNIT * most).sum()) + 2.0 * UNIT * total


def project(alpha: np.ndarray, first: np.ndarray, budget: np.ndarray) -> None:
    """Make the dual variables of every example feasible, in place: those of example i begin at ``first[i]``."""
    sizes = np.diff(first)
    n, width = sizes.size, int(sizes.max(initial=0))
    if not is_few(n * width):
        project_examples(alpha, first, budget)
        return
    table, there = np.zeros((n, width)), np.arange(width) < sizes[:, None]
    table[there] = alpha
    _project_rows(table, np.broadcast_to(budget, n))
    alpha[...] = table[there]


def _project_rows(alpha: np.ndarray, budget: np.ndarray) -> None:
    """As ``kernels.simplex.project_examples`` does. What is padded with zeros stays zero."""
    width = alpha.shape[1]
    np.maximum(alpha, 0.0, out=alpha)
    over = np.flatnonzero(alpha.sum(axis=1) > budget)
    falling = -np.sort(-alpha[over], axis=1)
    shifts = (np.cumsum(falling, axis=1) - budget[over, None]) / np.arange(1, width + 1)
    inside = np.maximum((falling > shifts).sum(axis=1), 1)
    alpha[over] = np.maximum(alpha[over] - shifts[np.arange(over.size), inside - 1, None], 0.0)
    used, several = alpha.sum(axis=1), (alpha > 0.0).sum(axis=1)
    room = np.where(several > 1, budget * (1.0 - 2.0 * (several + 4) * UNIT), budget)  # see ``vectors.within``
    above = used > room
    alpha[above] *= (room[above] / used[above])[:, None]
