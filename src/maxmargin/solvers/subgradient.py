"""Stochastic subgradient descent with weighted averaging, for open problems: Pegasos, seen from the dual.

With step sizes 1/t, which suit a strongly convex Ω (Shalev-Shwartz, Singer, Srebro and Cotter, 2011), the weights after
t searches are

    w_t = ∇Ω*(v_t),    v_t = n/t · Σ_{s ≤ t} C_i x_i(ŷ_s),    i the example of search s

so each answer that was found has got a share of n C_i/t. An epoch visits every example once, in random order: at its
end the shares of an example sum up to C_i at most, dual variables that are feasible, and D at them is a lower bound. It
is true, and slower to rise than a method's that chooses its shares.

The upper bound is the objective at the average Σ t w_t / Σ t (Lacoste-Julien, Schmidt and Bach, 2012).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..constraints.searched import Searched, violations
from ..kernels import rows as row_kernels
from ..problem import Planes, Problem, Rivals
from ..protocols import Seed
from ..validation import whole
from .searchers import search
from .solve import Weighted


@dataclass(frozen=True)
class Subgradient:
    """Settings of the stochastic subgradient method, a solver to compare with.

    Parameters
    ----------
    batch : int
        Examples searched at the same weights.
    random_state : int, Generator or None
        Order of visits.
    n_jobs : int
        Threads or processes that search, at weights that are a few steps old.
    """

    batch: int = 1
    random_state: Seed = None
    n_jobs: int = 1

    def __post_init__(self) -> None:
        whole("batch", self.batch)

    def start(self, problem: Problem, warm: Planes | None = None) -> SubgradientState:
        """Shares to start from count for one epoch."""
        state = SubgradientState.at_zero(problem, self.random_state)
        if warm is not None and len(warm):
            self._go_on(problem, state, warm, 1)
        return state

    def _go_on(self, problem: Problem, state: SubgradientState, shares: Planes, epochs: int) -> None:
        shares = problem.searched.feasible(shares)
        linear, v, *_ = problem.searched.sums(shares)
        state.met.put(shares, epochs)
        state.total[:], state.losses, state.epochs = epochs * v, epochs * linear, epochs
        state.average_to(problem)
        state.mean[:] = state.map.weights()

    def save(self, state: SubgradientState, settled: bool) -> dict[str, Any] | None:
        """In the midst of an epoch shares are not feasible."""
        return {"alpha": state.alpha, "epochs": state.epochs, "mean": state.mean} if settled else None

    def restore(self, problem: Problem, saved: dict[str, Any]) -> SubgradientState:
        state = self.start(problem)
        self._go_on(problem, state, saved["alpha"], saved["epochs"])
        state.mean[:] = saved["mean"]
        return state

    def step(self, problem: Problem, state: SubgradientState) -> SubgradientState:
        """One epoch."""
        constraints = problem.searched
        n = constraints.searchable.size
        found: list[tuple[np.ndarray, Rivals, np.ndarray]] = []
        state.visited, paid = 0, 0.0
        chunks = batches(constraints, state.rng, self.batch)
        for ids, w, rivals in search(constraints.oracle, chunks, state.map.weights, self.n_jobs):
            state.visited += ids.size
            missing = violations(rivals, w)
            budget = constraints.budget_of(ids) * (missing > 0.0)
            paid += float(budget @ np.maximum(missing, 0.0))
            row_kernels.combine(rivals.rows.arrays, budget, state.total)
            found.append((ids, rivals, budget))
            t = state.epochs * n + state.visited
            state.move(state.total * (n / t), 2.0 * ids.size / (t + ids.size))
        state.epochs += 1
        for ids, rivals, budget in found:
            state.met.add(ids, rivals, budget)
            state.losses += float(budget @ rivals.losses)
        state.average_to(problem)
        gap = max(problem.regularizer.value(state.mean) + paid - state.lower, 0.0)
        state.estimate = gap / max(abs(state.lower + gap), 1e-300)
        return state


def batches(constraints: Searched, rng: np.random.Generator, size: int) -> Iterator[np.ndarray]:
    """All examples that weigh something, in random order, so many at a time."""
    ids = rng.permutation(constraints.searchable)
    for start in range(0, ids.size, size):
        yield ids[start : start + size]


@dataclass(kw_only=True)
class Averaged(Weighted):
    """A state with a sum of rows, weights that follow from it, and their average along the way, which is the result."""

    rng: np.random.Generator
    total: np.ndarray
    """Σ C_i x_i(ŷ) over all searches."""
    mean: np.ndarray
    """The average of the weights, later ones counting more."""
    epochs: int = 0

    @classmethod
    def at_zero(cls, problem: Problem, seed: Seed) -> Any:
        shape = problem.regularizer.shape(problem.n_weights)
        map_ = shape.bind(np.zeros(problem.n_weights))
        mean = map_.weights().copy()
        return cls(shape=shape, map=map_, rng=np.random.default_rng(seed), total=np.zeros(problem.n_weights), mean=mean)

    def move(self, v: np.ndarray, share: float) -> None:
        """The weights follow v, and have this share in the average."""
        self.map.v[:] = v
        self.map.refresh()
        self.mean += share * (self.map.weights() - self.mean)

    def weights(self) -> np.ndarray:
        return self.mean

    @property
    def active(self) -> int:
        return self.visited


@dataclass(kw_only=True)
class SubgradientState(Averaged):
    """Sums over all answers that were found, and these answers."""

    met: Answers = field(init=False)
    losses: float = 0.0
    """Σ C_i l_i(ŷ) over all searches."""

    def __post_init__(self) -> None:
        self.met = Answers(np.random.default_rng(0).normal(size=self.total.size))

    def average_to(self, problem: Problem) -> None:
        """v and the lower bound at the end of an epoch."""
        self.map.v[:], self.linear = self.total / self.epochs, self.losses / self.epochs
        self.map.refresh()
        self.update_lower(problem.regularizer)

    @property
    def alpha(self) -> Planes:
        return self.met.planes(max(self.epochs, 1))

    @property
    def n_constraints(self) -> int:
        return len(self.met.labels)

    @property
    def nbytes(self) -> int:
        return 8 * (2 * self.total.size + 3 * self.n_constraints)


class Answers:
    """Answers that were found, and how much of its budget each example has spent on them, over all epochs.

    An answer found again is recognized by its loss and the product of its row with one random vector.
    """

    def __init__(self, probe: np.ndarray) -> None:
        self._probe = probe
        self._place: dict[tuple[int, float, float], int] = {}
        self.example: list[int] = []
        self.labels: list[Any] = []
        self.spent: list[float] = []

    def add(self, ids: np.ndarray, rivals: Rivals, budget: np.ndarray) -> None:
        products = rivals.losses - violations(rivals, self._probe)
        for p in np.flatnonzero(budget).tolist():
            key = (int(ids[p]), float(rivals.losses[p]), float(products[p]))
            place = self._place.setdefault(key, len(self.labels))
            if place == len(self.labels):
                self._append(key[0], rivals.labels[p], 0.0)
            self.spent[place] += float(budget[p])

    def put(self, shares: Planes, epochs: int) -> None:
        """Shares that stand for so many epochs."""
        for i, label, share in zip(shares.example.tolist(), shares.labels, shares.alpha.tolist(), strict=True):
            self._append(i, label, epochs * share)

    def _append(self, i: int, label: Any, spent: float) -> None:
        self.example.append(i)
        self.labels.append(label)
        self.spent.append(spent)

    def planes(self, epochs: int) -> Planes:
        return Planes(np.array(self.example, np.int64), list(self.labels), np.array(self.spent) / epochs)
