"""Sums over dual variables that know their own rounding errors: what lower bounds are made of."""

from __future__ import annotations

import math

import numpy as np

from ..kernels import rows as row_kernels
from ..kernels.vectors import bounded_dot, two_sums
from ..problem import Rivals, Rows, Totals
from ..rounding import UNIT
from . import small

_EACH = 4  # a product of a share and a difference of features, perhaps times a loss


class DualSums:
    """v = Σ α (truth − rival) and Σ l α, gathered part by part.

    >>> from maxmargin.data.arrays import as_rows
    >>> sums = DualSums(n_weights=1)
    >>> sums.add_rows(as_rows(np.array([[1e17], [1.0], [-1e17]])), np.ones(3))
    >>> sums.totals().v
    array([1.])
    """

    def __init__(self, n_weights: int) -> None:
        self.v, self.low, self.size = np.zeros((3, n_weights))
        self._linear: list[float] = []
        self._linear_error = 0.0
        self._error = np.zeros(n_weights)
        self._n = 0
        self._each = 1

    def add_rows(self, rows: Rows, coefficients: np.ndarray) -> None:
        """v += Σ_i coefficients_i·row i."""
        if small.is_small(rows):
            self.add_sums(*small.bounded_combine(rows, coefficients))
        else:
            row_kernels.bounded_combine(rows.arrays, coefficients, self.v, self.low, self.size)
        self.count(coefficients.size, 2)  # a product, perhaps with a difference of two rows

    def add_sums(self, v: np.ndarray, low: np.ndarray, size: np.ndarray) -> None:
        """Compensated sums, v + low, and those of the absolute values of their terms."""
        with np.errstate(invalid="ignore"):
            self.v, lost = two_sums(self.v, v)
        self.low += lost + low
        self.size += size

    def count(self, n: int, each: int = 1) -> None:
        """So many terms were added to every weight, at most; each took so many operations."""
        self._n += n
        self._each = max(self._each, each)

    def add_linear(self, total: float, error: float) -> None:
        self._linear.append(total)
        self._linear_error += error

    def add_planes(self, rivals: Rivals, shares: np.ndarray) -> None:
        """The shares of some answers, with what rounding may have changed in their rows and losses."""
        self.add_rows(rivals.rows, shares)
        self.count(0, _EACH)
        total, error = bounded_dot(rivals.losses, shares)
        if rivals.errors is not None:
            self._error += rivals.errors.total(shares)
            error += rivals.errors.loss * abs(total)
        self.add_linear(total, error)

    def add(self, totals: Totals) -> None:
        """What somebody else has gathered."""
        self.add_sums(totals.v, np.zeros_like(self.low), np.abs(totals.v))
        self._error += totals.v_error
        self.add_linear(totals.linear, totals.linear_error)
        self.count(1, 0)

    def totals(self) -> Totals:
        v = self.v + self.low
        error = 1.01 * (UNIT * np.abs(v) + (self._each * UNIT + (self._n * UNIT) ** 2) * self.size + self._error)
        linear = math.fsum(self._linear)
        return Totals(linear, v, 1.01 * self._linear_error + UNIT * abs(linear), error)
