"""A model whose score is a maximum over one set of parts and a minimum over another."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..inference import max_min as games
from ..protocols import Regularizer
from ..validation import as_float, shown
from . import labelling
from .max_min_objective import MaxMinObjective

_MOST_LEVELS = 15  # arrays of NumPy 1 have 32 axes at most


class MaxMin:
    """Two classes told apart by a game: one side shows what speaks for class 1, the other what speaks against it.

        f(x) = max_{a1} min_{b1} … max_{aK} min_{bK} w·φ(x, a1, b1, …, aK, bK),    class 1 where f(x) > 0

    (Naderi Parizi, chapter 4). x is an array of shape (A1, B1, …, AK, BK, n_features): the features of every course
    that the game can take; the numbers of moves may differ from example to example. y is 0 or 1. The game itself is
    latent. With a single move b it is the latent SVM of Felzenszwalb et al. (2010). Train it by
    ``LatentStructuralSVM``.

    Parameters
    ----------
    levels : int
        K, how often both sides move.
    n_features : int or None
        Taken from the data by default.
    bias : float
        Value of one more feature that is the same for all courses; 0 for none.

    Examples
    --------
    >>> x = np.array([[[3.0], [1.0]], [[2.0], [4.0]]])  # two moves each, one feature
    >>> MaxMin(n_features=1).predict(x, np.array([1.0, -1.5]))  # max_a min_b is 2, at a = 1 and b = 0
    (1, (1, 0))
    """

    exact = True

    def __init__(self, levels: int = 1, n_features: int | None = None, bias: float = 1.0) -> None:
        if isinstance(levels, bool) or not isinstance(levels, int | np.integer) or not 1 <= levels <= _MOST_LEVELS:
            raise ValueError(f"levels must be a whole number from 1 to {_MOST_LEVELS}, got {shown(levels)}.")
        labelling.check_sizes(n_features=n_features)
        if not (isinstance(bias, int | float | np.number) and np.isfinite(as_float(bias))):
            raise ValueError(f"bias must be a finite number, 0 for none; got {shown(bias)}.")
        self.levels = int(levels)
        self.n_features = n_features
        self.bias = float(bias)

    def __repr__(self) -> str:
        return f"MaxMin(levels={self.levels}, n_features={self.n_features}, bias={self.bias})"

    def sized(self, X: Any, Y: Any) -> MaxMin:
        """A copy that knows its number of features from the data."""
        sized = copy.copy(self)
        if self.n_features is None:
            sized.n_features = self._table(X[0], "X[0]").shape[-1]
        return sized

    def joined(self, others: Sequence[MaxMin]) -> MaxMin:
        """The model that knows the sizes of this one and others, each sized on a part of the data."""
        return labelling.joined([self, *others], ["n_features"], [])

    @property
    def n_weights(self) -> int:
        if self.n_features is None:
            raise ValueError("This model does not know its sizes: give n_features, or use sized(X, Y).")
        return self.n_features + (self.bias != 0.0)

    def features(self, x: Any, answer: Any) -> np.ndarray:
        """φ(x, a1, b1, …) of the moves of an answer (y, moves), with the bias: the same for both labels."""
        course = self._table(x)[tuple(answer[1])]
        return np.append(course, self.bias) if self.bias else course

    def loss(self, y: Any, answer: Any) -> float:
        """1 where the label is wrong, whatever the moves."""
        return float(int(y) != int(answer[0]))

    def score(self, x: Any, w: np.ndarray) -> float:
        """f(x)."""
        return float(games.value(self._scores(x, w), self.levels))

    def predict(self, x: Any, w: np.ndarray) -> tuple[int, tuple[int, ...]]:
        """(label, moves): the class, and what both sides play where they play their best."""
        scores = self._scores(x, w)
        moves = games.moves(scores, self.levels)
        return int(scores[moves] > 0.0), moves

    def latent_objective(self, X: Any, Y: Any, budget: np.ndarray, regularizer: Regularizer) -> MaxMinObjective:
        """Ω(w) + Σ_i C_i max(0, 1 − y_i f(x_i)) on these data, y_i counted as −1 or 1, with its convex bounds."""
        if len(X) != len(Y):
            raise ValueError(f"X has {len(X)} examples, Y has {len(Y)}.")
        tables = [self._table(x, f"X[{i}]") for i, x in enumerate(X)]
        positive = labelling.check_labels(Y, 2, "Y") == 1
        return MaxMinObjective(tables, positive, self.levels, self.bias, budget, regularizer)

    def _scores(self, x: Any, w: np.ndarray) -> np.ndarray:
        w = labelling.as_weights(w, self.n_weights)
        scores = self._table(x) @ w[: self.n_features]
        return scores + self.bias * w[-1] if self.bias else scores

    def _table(self, x: Any, what: str = "x") -> np.ndarray:
        """An example, checked; float32 and float64 stay as they are."""
        table = np.asarray(x)
        axes = ", ".join(f"A{k}, B{k}" for k in range(1, self.levels + 1))
        if table.dtype.kind not in "fiub" or table.ndim != 2 * self.levels + 1:
            raise ValueError(
                f"{what} must be an array of numbers of shape ({axes}, n_features), got {table.dtype} of shape "
                f"{table.shape}. With levels={self.levels} it has {2 * self.levels + 1} axes; where one side has no "
                "choice its axis has length 1."
            )
        if not table.size:
            raise ValueError(
                f"{what} has shape {table.shape}: every side must have a move, and there must be features."
            )
        if self.n_features is not None and table.shape[-1] != self.n_features:
            raise ValueError(f"{what} has {table.shape[-1]} features, {self.n_features} are needed.")
        table = table.astype(table.dtype if table.dtype in (np.float32, np.float64) else np.float64, copy=False)
        if not np.isfinite(table).all():
            raise ValueError(f"{what} has entries that are not finite. Fill in or drop missing values first.")
        return table
