"""What ``solve`` reads of every state: the base of those that solvers keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..kernels.maps import WeightMap
from ..problem import TotalLoss
from ..protocols import Regularizer
from ..regularizers.shape import Shape, refresh, weights_of


@dataclass(kw_only=True)
class Progress:
    """Where a solver stands after a step; see ``protocols.State``. Changed in place."""

    lower: float = -np.inf
    estimate: float = np.inf
    goal: float = 0.0
    visited: int = 0
    stuck: bool = False
    evaluated: tuple[np.ndarray, TotalLoss] | None = None
    beat: Callable[[], object] | None = None


@dataclass(kw_only=True)
class Weighted(Progress):
    """Progress with v, the weights that follow from it, and the part of the dual objective that is linear in α."""

    shape: Shape
    map: WeightMap
    linear: float = 0.0

    def weights(self) -> np.ndarray:
        return weights_of(self.map)

    def bound(self, regularizer: Regularizer) -> None:
        """The lower bound as it follows from v and the linear part."""
        self.lower = self.linear - regularizer.conjugate(self.map.v)

    def stand(self, v: np.ndarray, linear: float, regularizer: Regularizer) -> None:
        """Go on at this v, as it follows from the dual variables."""
        self.map.v[:], self.linear = v, linear
        refresh(self.map)
        self.bound(regularizer)
