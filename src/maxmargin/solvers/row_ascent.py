"""What the ascents over blocks and over streams share: a pool of rows, and passes over it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ..constraints.pool import Pool
from ..protocols import ClosedConstraints, Regularizer
from .dual_coordinate import DualCoordinate
from .explore import Explore, Explored
from .pooling import PoolWork, Swept, sweep_block, with_share, work_on
from .state import Weighted


@dataclass(kw_only=True)
class RowState(Explored, Weighted):
    """A pool of examples, and v and the dual objective of all there are."""

    alpha: np.ndarray
    pool: Pool
    rng: np.random.Generator


State = TypeVar("State", bound=RowState)


class RowAscent(Explore[State]):
    """Examples of a block are swept while it is at hand; the pool keeps copies of those that matter."""

    n_threads: int

    def _sweep(self, state: State, block: ClosedConstraints, alpha: np.ndarray, sweeps: int) -> Swept:
        swept = sweep_block(block, alpha, state.map, sweeps, state.rng)
        state.linear += swept.change
        state.met += swept.met
        return swept

    def _work(self, regularizer: Regularizer, state: State, alpha: np.ndarray, momentum_after: int = 8) -> PoolWork:
        """Passes to be made over the pool, whose dual variables are ``alpha``."""
        pool = state.pool
        coordinate = DualCoordinate(random_state=state.rng, n_threads=self.n_threads, momentum_after=momentum_after)
        return work_on(
            pool.constraints(), pool.norms, regularizer, state.shape, state.map, alpha, state.linear, coordinate,
            state.rng,
        )  # fmt: skip

    def _settle(self, state: State, work: PoolWork) -> None:
        """Passes over the pool are done."""
        state.linear, state.lower = work.state.linear, work.state.lower
        state.pool_gap = max(work.state.seen, 0.0)


def leaving(at_rest: np.ndarray, alpha: np.ndarray | None, most: int) -> np.ndarray:
    """Which examples leave a pool of which at most so many may stay, as a mask: those at rest first (of these the ones
    without a share, if ``alpha`` is given), then those that came first."""
    n = at_rest.size
    shares = np.zeros(n, bool) if alpha is None else with_share(alpha)
    mask = np.zeros(n, bool)
    mask[np.lexsort((np.arange(n), shares, ~at_rest))[: n - most]] = True
    return mask
