"""Constraints that are written out as rows, where those of an example share one slack."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels import shared as kernels
from ..kernels.vectors import bounded_dot
from ..problem import Rows
from ..rounding import UNIT
from ..validation import shown
from .base import Closed, check_entries, own
from .description import Description
from .matrices import mean_squared_norm
from .slots import InteriorSlots, SharedSlots
from .small import bounded_scores, project, total_of


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
    side : int8 array (n_examples,) or (1,)
        −1 where x_ij is minus the row; the row itself (+1) by default.
    """

    _kernels = kernels
    by_example = False

    def __init__(
        self, rows: Rows, loss: np.ndarray, first: np.ndarray, budget: np.ndarray, side: np.ndarray | None = None
    ) -> None:
        super().__init__(rows)
        self.loss = np.ascontiguousarray(loss, dtype=np.float64)
        self.first = np.ascontiguousarray(first, dtype=np.int64)
        self.budget = np.atleast_1d(np.asarray(budget, dtype=np.float64))
        self.side = np.ones(1, np.int8) if side is None else np.ascontiguousarray(side, dtype=np.int8)
        self.n_constraints = len(rows)
        self.n_examples = self.first.size - 1
        self.n_weights = rows.n_weights
        n = self.n_constraints
        ascending = self.first[0] == 0 and (np.diff(self.first) >= 0).all() and self.first[-1] == n
        if self.loss.shape != (n,) or not np.isfinite(self.loss).all() or not ascending:
            raise ValueError(
                f"SharedSlack: {n} rows need {n} finite losses, and offsets from 0 to {n} that never fall; got "
                f"{self.loss.size} losses and offsets {shown(self.first)}."
            )
        self.dual_shape = (n,)
        check_entries(self, self.n_examples, budget=self.budget, side=self.side)
        if (np.abs(self.side) != 1).any():
            raise ValueError("SharedSlack: sides must be 1 or −1.")
        # Which constraints sweeps visit between two passes over everything: the kernel's memory, in no way a result.
        self._awake = np.arange(self.n_constraints), np.diff(self.first)

    def kernel_arguments(self) -> tuple[Any, ...]:
        return self._arrays, self.loss, self.first, self.side, self.budget, *self._awake

    def _describe(self) -> Description:
        return Description(
            kind=type(self).__name__,
            n_examples=self.n_examples,
            slots_per_example=1.0 + self.n_constraints / max(self.n_examples, 1),
            dense=True,  # as Newton steps write them out
            width=self.n_weights,
            stored=float(self.n_weights),
            squared_norm=mean_squared_norm(self.rows),
            budget=float(self.budget.mean()) if self.n_examples else 0.0,
        )

    def as_slots(self, of_all: Description) -> InteriorSlots:
        return SharedSlots(self)

    def _small_loss(self, w: np.ndarray) -> tuple[float, float]:
        score, error = bounded_scores(self.rows, w)
        example = np.repeat(np.arange(self.n_examples), np.diff(self.first))
        missing = self.loss - score * (self.side[example] if self.side.size > 1 else self.side)
        error += np.where(score == 0.0, 0.0, 2.0 * UNIT * np.abs(missing))
        worst, most = np.zeros((2, self.n_examples))
        np.maximum.at(worst, example, missing)
        np.maximum.at(most, example, missing + error)
        return total_of(worst * self.budget, most * self.budget)

    def feasible(self, alpha: np.ndarray) -> np.ndarray:
        alpha = own(alpha, self.dual_shape)
        project(alpha, self.first, self.budget)
        return alpha

    def _bounded_linear(self, alpha: np.ndarray) -> tuple[float, float]:
        return bounded_dot(self.loss, alpha)

    def _signed(self, alpha: np.ndarray) -> np.ndarray:
        """Dual variables times the sides of their examples."""
        return alpha * (np.repeat(self.side, np.diff(self.first)) if self.side.size > 1 else self.side)
