from __future__ import annotations

import numpy as np

from ..kernels import shared as kernels
from ..problem import Rows
from .base import Closed


class SharedSlack(Closed):
    """Explicit constraints w·x_ij ≥ l_ij − ξ_i, any number per example, one slack for all of an example's.

    Parameters
    ----------
    rows : Rows
        x_ij = truth − rival, the constraints of one example next to each other.
    loss : float array (n_constraints,)
        l_ij, the margin each constraint asks for.
    first : int array (n_examples + 1,)
        Example i owns the rows ``first[i] … first[i+1] − 1``.
    budget : float array (n_examples,) or (1,)
        C_i.
    """

    _kernels = kernels
    by_example = False

    def __init__(self, rows: Rows, loss: np.ndarray, first: np.ndarray, budget: np.ndarray) -> None:
        super().__init__(rows)
        self.loss = np.ascontiguousarray(loss, dtype=np.float64)
        self.first = np.ascontiguousarray(first, dtype=np.int64)
        self.budget = np.atleast_1d(np.asarray(budget, dtype=np.float64))
        self.n_constraints = len(rows)
        self.n_examples = self.first.size - 1
        self.n_weights = rows.n_weights
        if self.loss.shape != (self.n_constraints,) or self.first[-1] != self.n_constraints:
            raise ValueError(
                f"SharedSlack: {self.n_constraints} rows, {self.loss.size} losses and a last offset of "
                f"{self.first[-1]} must agree."
            )
        self.dual_shape = (self.n_constraints,)
        self._check(budget=self.budget)
        if self.first[0] != 0 or (np.diff(self.first) < 0).any():
            raise ValueError("SharedSlack: offsets must begin at 0 and never fall.")
        if not np.isfinite(self.loss).all():
            raise ValueError("SharedSlack: losses must be finite.")
        self._terms = (self.loss, self.first, self.budget)

    def feasible(self, alpha: np.ndarray) -> np.ndarray:
        alpha = self._own(alpha)
        kernels.project_examples(alpha, self.first, self.budget)
        return alpha

    def linear(self, alpha: np.ndarray) -> float:
        return float(self.loss @ alpha)
