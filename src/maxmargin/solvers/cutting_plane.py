"""One-slack cutting planes: the slow reference for open problems.

    minimise   Ω(w) + ξ      such that   w·Σ_i C_i x_i(ŷ_i) ≥ Σ_i C_i l_i(ŷ_i) − ξ     for every ŷ = (ŷ_1, …, ŷ_n)

Naderi Parizi §1.5.2, after Joachims: one constraint stands for one answer to *every* example, and all constraints
share one slack. The dual is that of a problem with a single example of budget 1, so a cache of one example serves.
A share β of such a constraint is a share C_i·β of each of its answers: feasible for the original problem, which
is what is certified.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..constraints.answers import joined_planes
from ..constraints.cache import Cache
from ..constraints.searched import uncertainty, violations
from ..data.arrays import as_rows
from ..kernels import rows as row_kernels
from ..kernels.vectors import dot
from ..problem import Planes, Problem, Rivals, TotalLoss
from .ascent_state import AscentState
from .dual_coordinate import DualCoordinate
from .searchers import search

_ALONE = np.zeros(1, np.int64)


@dataclass(frozen=True)
class CuttingPlane:
    """Settings of the one-slack cutting plane solver.

    Parameters
    ----------
    inner_fraction : float
        The planes at hand are optimized until their gap is this fraction of the gap of the problem.
    idle_steps : int
        Drop planes without a share after so many steps.
    n_jobs : int
        Threads or processes that search.
    """

    inner_fraction: float = 0.1
    idle_steps: int = 50
    n_jobs: int = 1

    def start(self, problem: Problem, warm: Planes | None = None) -> CuttingState:
        """Shares to start from, of whatever answers, make one plane; it has the whole budget."""
        cache, coordinate = Cache(1, problem.n_weights, np.ones(1)), DualCoordinate()
        state = CuttingState.over(cache, problem.regularizer, coordinate, gap=np.inf)
        if warm is not None:
            shares = problem.searched.feasible(warm)
            linear, v, *_ = problem.searched.sums(shares)
            _add(state, shares, v, linear)
            state.inner.alpha[cache.used()] = 1.0
            state.recombine()
        return state

    def step(self, problem: Problem, state: CuttingState) -> CuttingState:
        """Search, add one plane, optimize over the planes at hand."""
        constraints, w = problem.searched, state.weights().copy()
        n, answers, losses = constraints.n_examples, [], []
        budget = np.broadcast_to(constraints.budget, n)
        plane, loss = np.zeros(problem.n_weights), 0.0
        parts = constraints.at_once(np.arange(n), np.array_split(np.arange(n), max(self.n_jobs, n // 512)))
        for ids, _, rivals in search(constraints.oracle, parts, lambda: w, self.n_jobs):
            losses.append(constraints.weighted(ids, violations(rivals, w), *uncertainty(rivals, w)))
            row_kernels.combine(rivals.rows.arrays, budget[ids], plane)
            loss += float(budget[ids] @ rivals.losses)
            answers.append(Planes(ids, rivals.labels, budget[ids]))
        found = TotalLoss.sum(losses)
        state.visited, state.evaluated = n, (w, found)
        state.gap = max(problem.regularizer.value(w) + found.total - state.lower, 0.0)
        cache = state.cache
        cache.age(state.inner.alpha)
        state.rearrange(cache.tidy(cache.used() & (cache.idle < self.idle_steps)))
        if loss - dot(plane, w) > float(cache.worst(_ALONE, w)[0]):
            _add(state, joined_planes(answers), plane, loss)
        inner = state.inner
        for _ in range(1000):
            order = np.zeros(1, np.int32)
            _, seen, _ = cache.sweep(inner.alpha, inner.map, np.empty(0, np.float32), order, 1, 1, 1)
            if seen <= self.inner_fraction * state.gap:
                break
        state.recombine()
        state.estimate = state.gap / max(abs(state.lower + state.gap), 1e-300)
        return state


def _add(state: CuttingState, answers: Planes, plane: np.ndarray, loss: float) -> None:
    """One plane more, and the answers that it is made of, with their shares in it."""
    rival = Rivals([answers], as_rows(sp.csr_matrix(plane)), np.array([loss]))
    state.cache.add(_ALONE, rival, np.ones(1, bool), state.inner.map)


@dataclass(kw_only=True)
class CuttingState(AscentState):
    """The planes at hand, as those of one example."""

    @property
    def alpha(self) -> Planes:
        shared = np.flatnonzero(self.cache.used() & (self.inner.alpha > 0.0)).tolist()
        planes: list[Planes] = [self.cache.labels[slot] for slot in shared]
        shares = self.inner.alpha[shared].tolist()
        return joined_planes([share * p for p, share in zip(planes, shares, strict=True)])

    @property
    def active(self) -> int:
        return self.visited
