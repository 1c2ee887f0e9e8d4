"""What solvers share that see their examples block by block and keep some of them in a pool.

v, and the part of the dual objective that is linear in α, are always those of the whole problem: what is worked on is
only a part of the examples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels.maps import WeightMap
from ..problem import Problem
from ..protocols import ClosedConstraints, Constraints, Regularizer
from ..regularizers.shape import Shape
from .dual_coordinate import DualCoordinate, DualState


@dataclass(frozen=True)
class Swept:
    """A block after some sweeps."""

    awake: np.ndarray
    """Its examples that still had a gap of their own in the last sweep."""
    norms: np.ndarray
    met: float
    """The gap that the first sweep met."""
    change: float
    """What the sweeps added to the linear part of the dual objective."""
    awake_at_first: int


def sweep_block(
    block: ClosedConstraints, alpha: np.ndarray, weights: WeightMap, sweeps: int, rng: np.random.Generator
) -> Swept:
    """Sweeps over a block while it is at hand: all of it once, then what is awake."""
    n = block.n_examples
    norms, order, active = np.full(n, -1.0, np.float32), np.arange(n, dtype=np.int32), n
    size = 8 if block.rows.indices.size else 1
    met = change = 0.0
    at_first = 0
    for sweep in range(sweeps):
        seed = int(rng.integers(1, 2**63))
        active, seen, more = block.sweep(alpha, weights, norms, order, active, size, seed)
        change += more
        if sweep == 0:
            met, at_first = max(seen, 0.0), active
        if active == 0:
            break
    return Swept(order[:active], norms, met, change, at_first)


def work_on(
    constraints: Constraints,
    norms: np.ndarray,
    regularizer: Regularizer,
    shape: Shape,
    weights: WeightMap,
    alpha: np.ndarray,
    linear: float,
    coordinate: DualCoordinate,
    rng: np.random.Generator,
) -> PoolWork:
    """Make ready to work on the constraints of a pool, whose dual variables are ``alpha``."""
    problem = Problem(constraints, regularizer)
    order = np.arange(constraints.n_examples, dtype=np.int32)
    state = DualState(
        alpha=alpha,
        shape=shape,
        map=weights,
        linear=linear,
        norms=norms,
        order=order,
        active=order.size,
        rng=rng,
        lower=linear - regularizer.conjugate(weights.v),
        fraction=coordinate.inner_fraction,
        n_constraints=problem.closed.n_constraints,
    )
    return PoolWork(problem, coordinate, state)


@dataclass
class PoolWork:
    """Coordinate passes over a pool."""

    problem: Problem
    coordinate: DualCoordinate
    state: DualState
    visited: int = 0
    passes: int = 0

    def run(self, passes: int, wanted: float, before: Callable[[int], None] | None = None) -> None:
        """Passes until the pool's own gap is as small as wanted; ``before`` each of them is told its number."""
        self.state.goal = wanted / max(abs(self.state.lower), 1e-300)
        for n in range(passes):
            if before is not None:
                before(n)
            self.state = self.coordinate.step(self.problem, self.state)
            self.visited += self.state.visited
            self.passes += 1
            if self.state.inner == 0 and self.state.seen <= wanted:
                break

    @property
    def at_rest(self) -> np.ndarray:
        """Which examples had no gap of their own in the last pass, as a mask."""
        mask = np.zeros(self.state.order.size, bool)
        mask[self.state.order[self.state.active :]] = True
        return mask


def with_share(alpha: Any) -> np.ndarray:
    """Which examples have a share in the weights, as a mask."""
    return np.asarray(alpha.any(axis=1) if alpha.ndim > 1 else alpha != 0.0)
