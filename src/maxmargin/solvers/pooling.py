"""What solvers share that see their examples block by block and keep some of them in a pool.

v, and the part of the dual objective that is linear in α, are always those of the whole problem: what is worked on is
only a part of the examples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from ..constraints.base import Closed
from ..constraints.pool import Pool
from ..problem import Problem
from ..protocols import Regularizer
from .dual_coordinate import DualCoordinate, DualState
from .explore import Explore, Explored
from .state import Weighted


class Swept(NamedTuple):
    """A block after some sweeps."""

    awake: np.ndarray
    """Its examples that still had a gap of their own in the last sweep."""
    norms: np.ndarray
    met: float
    """The gap that the first sweep met."""
    awake_at_first: int


@dataclass(kw_only=True)
class RowState(Explored, Weighted):
    """A pool of examples, and v and the dual objective of all there are."""

    alpha: np.ndarray
    pool: Pool
    rng: np.random.Generator

    def sweep(self, block: Closed, alpha: np.ndarray, sweeps: int) -> Swept:
        """Sweeps over a block while it is at hand: all of it once, then what is awake."""
        n = block.n_examples
        norms, order, active = np.full(n, -1.0, np.float32), np.arange(n, dtype=np.int32), n
        size = 8 if block.rows.indices.size else 1
        met = change = 0.0
        at_first = 0
        for sweep in range(sweeps):
            seed = int(self.rng.integers(1, 2**63))
            active, seen, more = block.sweep(alpha, self.map, norms, order, active, size, seed)
            change += more
            if sweep == 0:
                met, at_first = max(seen, 0.0), active
            if active == 0:
                break
        self.linear += change
        self.met += met
        return Swept(order[:active], norms, met, at_first)


State = TypeVar("State", bound=RowState)


class RowAscent(Explore[State]):
    """Examples of a block are swept while it is at hand; the pool keeps copies of those that matter."""

    n_threads: int

    def _work(
        self, regularizer: Regularizer, state: State, alpha: np.ndarray, momentum_after: int = 8
    ) -> tuple[DualCoordinate, Problem, DualState]:
        """Passes to be made over the pool, whose dual variables are ``alpha``: who makes them, of what, where from."""
        pool = state.pool
        coordinate = DualCoordinate(state.rng, n_threads=self.n_threads, momentum_after=momentum_after)
        problem = Problem(pool.constraints(), regularizer)
        inner = coordinate.state(problem, alpha, state.shape, state.map, state.linear, pool.norms, state.rng)
        return coordinate, problem, inner

    def _settle(self, state: State, inner: DualState) -> None:
        """Passes over the pool are done."""
        state.linear, state.lower = inner.linear, inner.lower
        state.pool_gap = max(inner.seen, 0.0)


def leaving(at_rest: np.ndarray, alpha: np.ndarray | None, most: int) -> np.ndarray:
    """Which examples leave a pool of which at most so many may stay, as a mask: those at rest first (of these the ones
    without a share, if ``alpha`` is given), then those that came first."""
    n = at_rest.size
    shares = np.zeros(n, bool) if alpha is None else with_share(alpha)
    mask = np.zeros(n, bool)
    mask[np.lexsort((np.arange(n), shares, ~at_rest))[: n - most]] = True
    return mask


def with_share(alpha: np.ndarray) -> np.ndarray:
    """Which examples have a share in the weights, as a mask."""
    return np.asarray(alpha.any(axis=1) if alpha.ndim > 1 else alpha != 0.0)
