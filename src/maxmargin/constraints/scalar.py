"""Constraints with one dual variable per example: binary classification, regression, ranking."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels import scalar as kernels
from ..kernels.vectors import bounded_dot, sum_error
from ..losses import Hinge, shape_of
from ..losses.hinges import price
from ..problem import Rows
from ..protocols import Loss
from ..rounding import UNIT
from .base import Closed, check_entries, own
from .description import Description
from .matrices import mean_squared_norm
from .slots import InteriorSlots, ScalarSlots
from .small import bounded_scores, total_of


class Scalar(Closed):
    """One signed dual variable per example: binary, regression and ranking problems.

    Parameters
    ----------
    rows : Rows
        One row per example, as the user gave it.
    target : array (n,) or (1,)
        The value w·x should reach: label times margin, or the regression target.
    side : int8 array (n,) or (1,)
        +1: w·x below the target costs; −1: above it costs; 0: both do.
    budget : float array (n,) or (1,)
        C_i, the price of a unit of loss.
    loss : Loss
        What missing the target costs, in units of C; the hinge by default.
    """

    _kernels = kernels

    def __init__(
        self,
        rows: Rows,
        target: np.ndarray,
        side: np.ndarray,
        budget: np.ndarray,
        loss: Loss | None = None,
    ) -> None:
        super().__init__(rows)
        self.target = target
        self.side = side
        self.budget = budget
        self.loss = Hinge() if loss is None else loss
        self.loss_shape = shape_of(self.loss)
        self.n_examples = self.n_constraints = len(rows)
        self.n_weights = rows.n_weights
        check_entries(self, self.n_examples, target=target, side=side, budget=budget)
        self.dual_shape = (self.n_examples,)

    def kernel_arguments(self) -> tuple[Any, ...]:
        return self._arrays, self.target, self.side, self.budget, self.loss_shape

    def columns(self) -> dict[str, np.ndarray]:
        """The constructor's arguments with one entry per example, or one for all."""
        return {"target": self.target, "side": self.side, "budget": self.budget}

    def settings(self) -> dict[str, Any]:
        """The constructor's other arguments, but for the rows."""
        return {"loss": self.loss}

    def _describe(self) -> Description:
        rows, some = self.rows, self.n_examples > 0
        return Description(
            kind=type(self).__name__,
            n_examples=self.n_examples,
            scalar=True,
            slots_per_example=1.0 + self.loss_shape.bounded + bool((self.side == 0).any()),
            loss=self.loss_shape,
            two_sided=bool((self.side == 0).any()),
            dense=rows.dense,
            paired=rows.minus.size > 0,
            width=rows.width,
            stored=rows.n_stored / rows.n_rows if some else 0.0,
            squared_norm=mean_squared_norm(rows),
            budget=float(self.budget.mean()) if some else 0.0,
        )

    def as_slots(self, of_all: Description) -> InteriorSlots:
        return ScalarSlots(self, of_all.two_sided)

    def _small_loss(self, w: np.ndarray) -> tuple[float, float]:
        score, error = bounded_scores(self.rows, w)
        residual = self.target - score
        excess = np.where(self.side == 0, np.abs(residual), np.where(self.side > 0, residual, -residual))
        missed = excess - self.loss_shape.epsilon
        error += np.where(score == 0.0, 0.0, 2.0 * UNIT * np.abs(residual))
        paid, most = (self.budget * price(self.loss_shape, of) for of in (missed, missed + error))
        return total_of(paid, most)

    def feasible(self, alpha: np.ndarray) -> np.ndarray:
        free = np.where(self.budget > 0.0, np.inf, 0.0)  # what nothing can be paid for stays at zero
        top = self.budget if self.loss_shape.bounded else free
        return np.clip(
            own(alpha, self.dual_shape), np.where(self.side > 0, 0.0, -top), np.where(self.side < 0, 0.0, top)
        )

    def _bounded_linear(self, alpha: np.ndarray) -> tuple[float, float]:
        held = np.flatnonzero(alpha)
        target, budget = (np.broadcast_to(a, alpha.shape)[held] for a in (self.target, self.budget))
        epsilon, curvature, _ = self.loss_shape
        share = alpha[held]
        reached, free = target * share, epsilon * np.abs(share)
        penalty = share * share / ((2.0 / curvature) * budget) if curvature > 0.0 else np.zeros(held.size)
        total, _ = bounded_dot(reached - free - penalty, np.ones(held.size))
        size = float((np.abs(reached) + free + penalty).sum())
        return total, sum_error(total, size, alpha.size, 6)
