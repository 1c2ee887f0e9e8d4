"""One-slack cutting planes: the slow reference for open problems.

    minimise   Ω(w) + ξ      such that   w·Σ_i C_i x_i(ŷ_i) ≥ Σ_i C_i l_i(ŷ_i) − ξ     for every ŷ = (ŷ_1, …, ŷ_n)

Naderi Parizi §1.5.2, after Joachims: one constraint stands for one answer to *every* example, and all constraints
share one slack. The dual is that of a problem with a single example of budget 1, so a cache of one example serves.
A share β of such a constraint is a share C_i·β of each of its answers: feasible for the original problem, which
is what is certified.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..constraints.cache import Cache
from ..constraints.searched import uncertainty, violations
from ..data.arrays import as_rows
from ..kernels import rows as row_kernels
from ..problem import Planes, Problem, Rivals, TotalLoss
from ..protocols import Seed
from ..regularizers.vectors import dot
from .ascent_state import AscentState
from .dual_coordinate import DualCoordinate
from .searchers import search

_ALONE = np.zeros(1, np.int64)


@dataclass(frozen=True)
class CuttingPlane:
    """Settings of the one-slack cutting plane solver.

    Parameters
    ----------
    fraction : float
        Share of the examples searched in a step. Below 1, the others keep the answers they had: a true constraint,
        only not the worst one. A step over all examples follows when such a plane has little to add; only then are
        bounds taken.
    inner_fraction : float
        The planes at hand are optimized until their gap is this fraction of the gap of the problem.
    idle_steps : int
        Drop planes without a share after so many steps.
    random_state : int, Generator or None
        Which examples are searched.
    n_jobs : int
        Threads or processes that search.
    """

    fraction: float = 1.0
    inner_fraction: float = 0.1
    idle_steps: int = 50
    random_state: Seed = None
    n_jobs: int = 1

    def __post_init__(self) -> None:
        if not 0.0 < self.fraction <= 1.0:
            raise ValueError(f"fraction must be above 0 and at most 1, got {self.fraction!r}.")

    def start(self, problem: Problem, warm: Planes | None = None) -> CuttingState:
        """Begins at α = 0: shares of single examples are no shares of planes over all of them."""
        cache, coordinate = Cache(1, problem.n_weights, np.ones(1)), DualCoordinate(self.random_state)
        budget = np.broadcast_to(problem.open.budget, problem.open.n_examples)
        return CuttingState.over(cache, problem.regularizer, coordinate, budget=budget, gap=np.inf)

    def save(self, state: CuttingState, settled: bool) -> dict[str, Any] | None:
        if not settled:
            return None  # the planes of a step that was broken off may not be whole
        inner = state.inner
        shares = inner.alpha[state.shared()]
        return {"alpha": state.alpha, "shares": shares, "gap": state.gap, "random": inner.rng.bit_generator.state}

    def restore(self, problem: Problem, saved: dict[str, Any]) -> CuttingState:
        """The planes with a share, formed anew from their answers."""
        state = self.start(problem)
        state.inner.rng.bit_generator.state, state.gap = saved["random"], float(saved["gap"])
        everybody = np.arange(state.budget.size)
        for k, share in enumerate(saved["shares"].tolist()):
            answers = list(saved["alpha"].labels[k * everybody.size : (k + 1) * everybody.size])
            state.plane[:], state.loss, state.answers = 0.0, 0.0, dict(enumerate(answers))
            state.mix(everybody, problem.open.oracle.planes(everybody, answers), 1.0)
            self._add(state, True)
            state.inner.alpha[np.flatnonzero(state.cache.used())[-1]] = share
        state.answers = {}
        state.plane[:], state.loss = 0.0, 0.0
        state.recombine()
        return state

    def step(self, problem: Problem, state: CuttingState) -> CuttingState:
        """Search, add one plane, optimize over the planes at hand."""
        w = state.weights().copy()
        n = problem.open.n_examples
        everybody = self.fraction == 1.0 or state.full_next or not state.complete
        ids = np.arange(n)
        if not everybody:
            ids = np.sort(state.inner.rng.choice(n, max(1, round(self.fraction * n)), replace=False))
        found = self._search(problem, state, ids, w)
        state.visited = ids.size
        known = float(state.cache.worst(_ALONE, w)[0])
        if everybody:
            state.evaluated = (w, found)
            state.gap = max(problem.regularizer.value(w) + found.total - state.lower, 0.0)
        else:
            state.evaluated = None
        gain = state.loss - dot(state.plane, w) - known
        state.full_next = not everybody and gain <= 0.3 * state.gap
        self._add(state, gain > 0.0)
        self._optimize(state)
        state.estimate = state.gap / max(abs(state.lower + state.gap), 1e-300)
        return state

    def _search(self, problem: Problem, state: CuttingState, ids: np.ndarray, w: np.ndarray) -> TotalLoss:
        """New answers for some examples go into the plane that is under construction, old ones leave it."""
        oracle = problem.open.oracle
        losses = []
        parts = problem.open.at_once(ids, np.array_split(ids, max(self.n_jobs, ids.size // 512)))
        for part, _, rivals in search(oracle, parts, lambda: w, self.n_jobs):
            losses.append(problem.open.weighted(part, violations(rivals, w), *uncertainty(rivals, w)))
            if state.complete:
                state.mix(part, oracle.planes(part, [state.answers[i] for i in part.tolist()]), -1.0)
            state.mix(part, rivals, 1.0)
            state.answers.update(zip(part.tolist(), rivals.labels, strict=True))
        return TotalLoss.sum(losses)

    def _add(self, state: CuttingState, new: bool) -> None:
        cache = state.cache
        cache.age(state.inner.alpha)
        state.rearrange(cache.tidy(cache.used() & (cache.idle < self.idle_steps)))
        if new:
            answers = [state.answers[i] for i in range(state.budget.size)]
            plane = Rivals([answers], as_rows(sp.csr_matrix(state.plane)), np.array([state.loss]))
            cache.add(_ALONE, plane, np.ones(1, bool), state.inner.map)

    def _optimize(self, state: CuttingState) -> None:
        inner = state.inner
        for _ in range(1000):
            order = np.zeros(1, np.int32)
            _, seen, _ = state.cache.sweep(inner.alpha, inner.map, np.empty(0, np.float32), order, 1, 1, 1)
            if seen <= self.inner_fraction * state.gap:
                break
        state.recombine()


@dataclass(kw_only=True)
class CuttingState(AscentState):
    """The planes at hand, as those of one example, and the plane under construction."""

    budget: np.ndarray
    full_next: bool = False
    loss: float = 0.0

    def __post_init__(self) -> None:
        self.plane: np.ndarray = np.zeros(self.inner.map.v.size)
        self.answers: dict[int, Any] = {}

    @property
    def complete(self) -> bool:
        """Whether the plane under construction holds an answer to every example."""
        return len(self.answers) == self.budget.size

    def mix(self, ids: np.ndarray, rivals: Rivals, sign: float) -> None:
        """Put answers to some examples into the plane under construction, or take them out of it."""
        row_kernels.combine(rivals.rows.arrays, sign * self.budget[ids], self.plane)
        self.loss += sign * float(self.budget[ids] @ rivals.losses)

    def shared(self) -> np.ndarray:
        """The slots of the planes that have a share."""
        return np.flatnonzero(self.cache.used() & (self.inner.alpha > 0.0))

    @property
    def alpha(self) -> Planes:
        used = self.shared()
        n = self.budget.size
        labels = [answer for slot in used.tolist() for answer in self.cache.labels[slot]]
        return Planes(np.tile(np.arange(n), used.size), labels, (self.inner.alpha[used, None] * self.budget).ravel())

    @property
    def active(self) -> int:
        return self.visited
