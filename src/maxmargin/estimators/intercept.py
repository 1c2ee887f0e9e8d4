"""Vectors of weights with an intercept each: what estimators of one, of two classes and of several have in common."""

from __future__ import annotations

import numpy as np

from ..protocols import Regularizer
from ..regularizers import L2, Blocks
from . import inputs


class WithIntercept:
    """Base of estimators with ``coef_`` and ``intercept_``. A table has a row for each vector of weights: those of the
    features, then that of the constant ``_bias()``, if there is one."""

    fit_intercept: bool
    intercept_scaling: float
    coef_: np.ndarray
    intercept_: np.ndarray | float

    def _bias(self) -> float:
        if not self.fit_intercept:
            return 0.0
        return inputs.check_positive("intercept_scaling", self.intercept_scaling)

    def _split(self, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(coef, intercept) of a table."""
        if not self.fit_intercept:
            return np.array(table, order="C"), np.zeros(len(table))
        return np.array(table[:, :-1], order="C"), table[:, -1] * self._bias()

    def _table(self) -> np.ndarray:
        """The table of ``coef_`` and ``intercept_``."""
        coef = np.atleast_2d(self.coef_)
        return np.column_stack([coef, np.atleast_1d(self.intercept_) / self._bias()]) if self.fit_intercept else coef


def repeated(features: Regularizer | None, places: np.ndarray, n_features: int) -> Regularizer:
    """The same regularizer for the features of every vector of weights, l2 for the intercepts that may follow them.

    ``places`` has a row for each vector: which of all weights are its own.
    """
    if features is None:
        return L2()
    parts: list[tuple[np.ndarray, Regularizer]] = []
    for place in places:
        parts.append((place[:n_features], features))
        if place.size > n_features:
            parts.append((place[n_features:], L2()))
    return features if len(parts) == 1 else Blocks(parts)
