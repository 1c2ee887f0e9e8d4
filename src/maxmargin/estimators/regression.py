"""LinearSVR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, field
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from .. import losses
from ..constraints.base import Closed
from ..data.arrays import rows_of
from ..models import regression
from ..persistence import storable
from ..protocols import Chunk, Loss, Seekable
from . import inputs, training
from .fingerprints import of_arrays
from .holders import InMemory
from .inputs import Column, Matrix
from .linear import LinearEstimator, RowFacts, checked_weights, labels_of
from .settings import with_parameters


@storable(coef_="float[d]", intercept_="float", _alpha="float[n]|none", _fitted_C="float")
@with_parameters
class LinearSVR(RegressorMixin, LinearEstimator):
    """Linear support vector regression with a certificate of optimality.

    Minimises Ω(w) + C Σ_i max(0, abs(w·x_i − y_i) − ε), or with the squares of these losses.

    Parameters
    ----------
    C : float
    epsilon : float
        Errors below this cost nothing.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"} or object from ``maxmargin.losses``
        What an error beyond ``epsilon`` costs. An object has an ``epsilon`` of its own.

    Notes
    -----
    The other parameters and the attributes are those of :class:`LinearSVC`; ``coef_`` has shape (n_features,),
    ``intercept_`` is a number, ``dual_coef_`` has shape (1, n_samples).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> svr = LinearSVR(C=10.0, epsilon=5.0, random_state=0).fit(X, y)
    >>> svr.certificate_.relative_gap <= 1e-3
    True
    """

    C: float = 1.0
    epsilon: float = 0.1
    _: KW_ONLY
    loss: str | Loss = "epsilon_insensitive"
    fit_intercept: bool = True
    intercept_scaling: float = 1.0

    coef_: np.ndarray = field(init=False)
    intercept_: float = field(init=False)

    def partial_fit(self, X: Matrix, y: Column, sample_weight: Column = None) -> LinearSVR:
        """Learn from one more chunk of a stream, of any size; see :meth:`LinearSVC.partial_fit`."""
        return training.partial_fit(self, X, y=y, sample_weight=sample_weight)

    def _arrays(self, X: object, *, reset: bool, y: Any = None, sample_weight: Column = None) -> InMemory:
        X, y = inputs.check_matrix(self, X, y, reset=reset, y_numeric=True)
        weight = inputs.check_weights(sample_weight, X)
        return self._in_memory(X, y, None, weight, lambda: of_arrays(X, y, sample_weight))

    def _survey(self, source: Seekable) -> tuple[Seekable, RowFacts]:
        for chunk in labels_of(source):
            inputs.check_numbers(chunk.y, "targets", chunk.ids)
        return source, RowFacts(self.n_features_in_)

    def _constraints_of(self, chunk: Chunk, facts: RowFacts, which: Sequence[int]) -> list[Closed]:
        constraints = regression(
            rows_of(chunk.x, self._bias()),
            inputs.check_numbers(chunk.y, "targets", chunk.ids),
            inputs.check_budget(self.C, checked_weights(chunk)),
            loss=self._loss(),
        )
        return [constraints]

    def _learned(self, facts: RowFacts, weights: list[np.ndarray]) -> None:
        coef, intercept = self._split(weights[0][None, :])
        self.coef_, self.intercept_ = coef[0], float(intercept[0])

    def _loss(self) -> Loss:
        epsilon = inputs.check_positive("epsilon", self.epsilon, zero=True)
        return losses.named(self.loss, losses.DISTANCE, epsilon=epsilon)

    def predict(self, X: Matrix) -> np.ndarray:
        return self._scores(X) + self.intercept_

    def score(self, X: Matrix, y: Column, sample_weight: Column = None) -> float:
        """Coefficient of determination R² of the predictions: 1 is perfect."""
        inputs.check_scored(self, X, y, sample_weight)
        return super().score(X, inputs.check_numbers(y, "targets"), sample_weight)
