"""What ``solve`` reads of every state: the base of those that solvers keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..kernels.maps import WeightMap
from ..problem import TotalLoss
from ..protocols import Regularizer
from ..regularizers.shape import Shape


@dataclass(kw_only=True)
class Progress:
    """Where a solver stands after a step. Changed in place.

    States also have their dual variables, ``alpha``, and the weights that belong to them, ``weights()``; ``active``,
    how many of the visited examples still move; ``n_constraints`` and ``nbytes``, the constraints at hand and the bytes
    of dual variables and cache.
    """

    second_order: ClassVar[bool] = False
    """Whether this is the state of an interior-point method."""
    lower: float = -np.inf
    """The dual objective at ``alpha``."""
    estimate: float = np.inf
    """The relative gap as far as the pass could see: it may call for a check, never end a run."""
    goal: float = 0.0
    """The relative gap at which the run will end, set by ``solve``: reason enough to look up from inner work."""
    visited: int = 0
    """How many examples the pass went through."""
    done: float = 0.0
    """The share of a long pass that is behind us."""
    spent: float = 0.0
    """What all passes came to so far, for those who change to another method when one takes too many."""
    watched: tuple[int, float] | None = None
    """Of passes that finish what another method began: how many since the gap was last looked at, and that gap."""
    stuck: bool = False
    """Whether further steps would be in vain, because of rounding."""
    evaluated: tuple[np.ndarray, TotalLoss] | None = None
    """Weights whose loss the step has computed on its way, for all examples at once; ``solve`` need not repeat it."""
    beat: Callable[[], object] | None = None
    """Set by ``solve``: to be called in long steps whenever ``alpha`` and all that follows from it agree."""


@dataclass(kw_only=True)
class Weighted(Progress):
    """Progress with v, the weights that follow from it, and the part of the dual objective that is linear in α."""

    shape: Shape
    map: WeightMap
    linear: float = 0.0

    def weights(self) -> np.ndarray:
        return self.map.weights()

    def update_lower(self, regularizer: Regularizer) -> None:
        """The lower bound as it follows from v and the linear part."""
        self.lower = self.linear - regularizer.conjugate(self.map.v)

    def regularize(self, regularizer: Regularizer) -> bool:
        """Go on under another regularizer of the same weights; whether it measures rows by another metric."""
        before, self.shape = self.shape, regularizer.shape(self.map.v.size)
        self.map = self.shape.bind(self.map.v)
        self.update_lower(regularizer)
        return not self.shape.same_metric(before)

    def stand(self, v: np.ndarray, linear: float, regularizer: Regularizer) -> None:
        """Go on at this v, as it follows from the dual variables."""
        self.map.v[:], self.linear = v, linear
        self.map.refresh()
        self.update_lower(regularizer)
