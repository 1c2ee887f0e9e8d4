"""Constraints with one dual variable per example: binary classification, regression, ranking."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels import scalar as kernels
from ..losses import Hinge, shape_of
from ..problem import Rows
from ..protocols import Loss
from .base import Closed
from .description import Description
from .slots import ScalarSlots, Slots


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
        self._check(target=target, side=side, budget=budget)
        self.dual_shape = (self.n_examples,)
        self._terms = (target, side, budget, self.loss_shape)

    def columns(self) -> dict[str, np.ndarray]:
        """The constructor's arguments with one entry per example, or one for all."""
        return {"target": self.target, "side": self.side, "budget": self.budget}

    def settings(self) -> dict[str, Any]:
        """The constructor's other arguments, but for the rows."""
        return {"loss": self.loss}

    def describe(self) -> Description:
        rows, some = self.rows, self.n_examples > 0
        return Description(
            kind=type(self).__name__,
            n_examples=self.n_examples,
            scalar=True,
            slots=1.0 + self.loss_shape.bounded + bool((self.side == 0).any()),
            loss=self.loss_shape,
            two_sided=bool((self.side == 0).any()),
            dense=rows.dense,
            paired=rows.second.size > 0,
            width=rows.width,
            stored=rows.n_stored / rows.n_rows if some else 0.0,
            squared_norm=self.mean_squared_norm() if some else 0.0,
            budget=float(self.budget.mean()) if some else 0.0,
        )

    def as_slots(self, whole: Description) -> Slots:
        return ScalarSlots(self, whole.two_sided)

    def quiet_radius(self, w: np.ndarray) -> float:
        """How far w may move, at least, before any example has a loss; negative if one has now."""
        return kernels.quiet_radius(self._arrays, self.target, self.side, self.loss_shape, w)

    def feasible(self, alpha: np.ndarray) -> np.ndarray:
        alpha = self._own(alpha)
        kernels.project_examples(self.side, self.budget, self.loss_shape, alpha)
        return alpha

    def mean_squared_norm(self) -> float:
        """The mean of ‖x_i‖² over some of the rows: what C is to be measured by."""
        some = np.linspace(0, self.n_examples - 1, min(self.n_examples, 1000)).astype(np.int64)
        return kernels.mean_squared_norm(self._arrays, some)

    def _bounded_linear(self, alpha: np.ndarray) -> tuple[float, float]:
        return kernels.dual_linear(*self._terms, alpha)
