"""Bounds that a bias prefers, among the valid ones (G-MM; Naderi Parizi §5.2.2, "deterministic bound generation").

    maximise Σ_i g_i(z_i)   with   Σ_i regret_i(z_i) ≤ budget

A knapsack. For a price t of regret each example takes the value with the largest g_i − t·regret_i; the smallest price
that keeps to the budget is found by bisection, and what is then left of the budget is spent on single changes, those
first that gain most for their regret. At most one example's gain is lost against the best there is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..models.graph import grid
from ..validation import shown
from .gmme import largest
from .search_state import Latent, SearchState, Stepwise, by_proposals


@dataclass(frozen=True)
class Biased(Stepwise):
    """The bound that a function of the user's likes best.

    Parameters
    ----------
    bias : function (i, z, w) -> float
        How welcome latent value z of example i is at the weights w; the sum over all examples is maximised.
    sweeps : int
        Proposals for each example, where latent values cannot be listed: changes that the bias welcomes are made while
        the budget lasts.
    """

    bias: Callable[[int, Any, np.ndarray], float]
    sweeps: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.bias):
            raise ValueError(f"Biased needs a function, got {self.bias!r}.")

    def choose(self, search_state: SearchState, rng: np.random.Generator) -> Latent:
        touching, listed = search_state.touching(), search_state.evaluation.listed()
        if listed is None:
            return self._by_proposals(search_state, list(touching), rng)
        regrets, first = listed
        gains = np.empty(regrets.size)
        for i in range(first.size - 1):
            for z in range(first[i + 1] - first[i]):
                gains[first[i] + z] = self._ask(i, z, search_state.weights)
        return within_budget(gains, regrets, first, search_state.budget)

    def _ask(self, i: int, z: object, w: np.ndarray) -> float:
        value = float(self.bias(i, z, w))
        if not np.isfinite(value):
            raise ValueError(
                f"The bias function gave {value} for latent value {shown(z)} of example {i}; it must give a finite "
                "number for every choice of latent values. For values that are to be avoided give a large negative one."
            )
        return value

    def _by_proposals(self, search_state: SearchState, latent: list[Any], rng: np.random.Generator) -> Latent:
        gain = [self._ask(i, z, search_state.weights) for i, z in enumerate(latent)]

        def welcome(i: int, z: object) -> bool:
            there = self._ask(i, z, search_state.weights)
            if there < gain[i]:
                return False
            gain[i] = there
            return True

        return by_proposals(search_state, latent, self.sweeps, rng, welcome)


class Coherence:
    """A bias for ``Biased``: labellings of regions are welcome where neighbours agree (Naderi Parizi (5.39)).

    Parameters
    ----------
    edges : int array (n_edges, 2) or a sequence of them
        Pairs of neighbouring regions, the same for all examples, or one array for each.

    Examples
    --------
    >>> Coherence([[0, 1], [1, 2]])(0, [4, 4, 2], None)
    -1.0
    """

    def __init__(self, edges: Any) -> None:
        if not hasattr(edges, "__len__") or isinstance(edges, str):
            raise ValueError(f"Coherence: edges must be pairs of neighbouring regions, got {shown(edges)}.")
        self.edges = edges
        each = len(edges) > 0 and np.ndim(edges[0]) == 2
        self._edges = [self._checked(e) for e in (edges if each else [edges])]

    @staticmethod
    def _checked(edges: Any) -> np.ndarray:
        edges = np.asarray(edges, dtype=np.int64).reshape(-1, 2) if np.size(edges) else np.empty((0, 2), np.int64)
        if edges.size and edges.min() < 0:
            raise ValueError(f"Coherence: regions are counted from 0, got {edges.min()}.")
        return edges

    @classmethod
    def grid(cls, height: int, width: int) -> Coherence:
        """Regions are the cells of a grid, row by row; each is a neighbour of those beside, above and below it."""
        return cls(grid(np.empty((height, width, 1)), directions=False)[1])

    def __call__(self, i: int, z: Any, w: Any) -> float:
        """Minus the number of neighbours that differ: minus the Potts energy of the labelling."""
        z = np.ravel(z)
        edges = self._edges[i if len(self._edges) > 1 else 0]
        return -float(np.count_nonzero(z[edges[:, 0]] != z[edges[:, 1]]))


def within_budget(gains: np.ndarray, regrets: np.ndarray, first: np.ndarray, budget: float) -> np.ndarray:
    """The values that maximise the sum of gains with a sum of regrets within the budget, nearly; see the module."""

    gains = gains / max(float(np.abs(gains).max(initial=0.0)), 1e-300)  # differences of huge ones would overflow

    def at(price: float) -> np.ndarray:
        return largest(gains - price * regrets, first)

    def cost(latent: np.ndarray) -> float:
        return float(regrets[first[:-1] + latent].sum())

    chosen = at(0.0)
    if cost(chosen) <= budget:
        return chosen
    spread = float(gains.max() - gains.min())
    positive = regrets[regrets > 0.0]
    low, high = 0.0, max(spread, 1e-300) / max(float(positive.min()), 1e-300)  # at this price no regret pays
    for _ in range(200):
        middle = 0.5 * (low + high)
        if cost(at(middle)) <= budget:
            high = middle
        else:
            low = middle
        if high - low <= 1e-9 * high:
            break
    chosen = at(high)
    if cost(chosen) > budget:  # gains that are equal beyond rounding: what touches is always allowed
        chosen = largest(-regrets, first)
    return _spent(gains, regrets, first, budget, chosen, high)


def _spent(
    gains: np.ndarray, regrets: np.ndarray, first: np.ndarray, budget: float, chosen: np.ndarray, price: float
) -> np.ndarray:
    """What is left of the budget goes to the single changes that gain most for their regret, one for each example.

    Of those that gain exactly the price, where the choice jumps, the largest come first: a small one would bar the
    way to a larger one of the same example.
    """
    chosen = chosen.copy()
    at = first[:-1] + chosen
    sizes = np.diff(first)
    gain, cost = gains - np.repeat(gains[at], sizes), regrets - np.repeat(regrets[at], sizes)
    left = budget - float(regrets[at].sum())
    useful = np.flatnonzero((gain > 0.0) & (cost <= left))
    moved = np.zeros(chosen.size, bool)
    worth = gain[useful] / np.maximum(cost[useful], 1e-300)
    worth[np.abs(worth - price) <= 1e-7 * price] = price
    for p in useful[np.lexsort((-gain[useful], -worth))].tolist():
        i = int(np.searchsorted(first, p, side="right")) - 1
        if not moved[i] and cost[p] <= left:
            chosen[i], left, moved[i] = p - first[i], left - cost[p], True
    return chosen
