"""Bounds that a bias prefers, among the valid ones (G-MM; Naderi Parizi §5.2.2, "deterministic bound generation").

    maximise Σ_i g_i(z_i)   with   Σ_i regret_i(z_i) ≤ budget

A knapsack. For a price t of regret each example takes the value with the largest g_i − t·regret_i; the smallest price
that keeps to the budget is found by bisection, and what is then left of the budget is spent on single changes, those
first that gain most for their regret. At most one example's gain is lost against the best there is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..validation import shown
from .gmme import largest
from .search_state import Latent, SearchState, Stepwise, by_proposals


class _ByFunction(Stepwise):
    """What both kinds of bias share: a function of the user's, which must give finite numbers."""

    bias: Callable[..., float]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.bias):
            raise ValueError(f"{type(self).__name__} needs a function, got {self.bias!r}.")

    def _ask(self, *about: Any) -> float:
        value = float(self.bias(*about))
        if not np.isfinite(value):
            where = f" for latent value {shown(about[1])} of example {about[0]}" if len(about) == 3 else ""
            raise ValueError(
                f"The bias function gave {value}{where}; it must give a finite number for every choice of latent "
                "values. For values that are to be avoided give a large negative one."
            )
        return value


@dataclass(frozen=True)
class Biased(_ByFunction):
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

    def _by_proposals(self, search_state: SearchState, latent: list[Any], rng: np.random.Generator) -> Latent:
        gain = [self._ask(i, z, search_state.weights) for i, z in enumerate(latent)]

        def welcome(i: int, z: Any) -> bool:
            there = self._ask(i, z, search_state.weights)
            if there < gain[i]:
                return False
            gain[i] = there
            return True

        return by_proposals(search_state, latent, self.sweeps, rng, welcome)


@dataclass(frozen=True)
class BiasedJointly(_ByFunction):
    """The same for a bias that looks at all examples together, such as one for balance. It is climbed step by step.

    Parameters
    ----------
    bias : function (latent, w) -> float
        How welcome a sequence of latent values, one for each example, is at the weights w.
    sweeps : int
        Tried changes for each example; one is made if the bias does not fall and the budget allows it.
    """

    bias: Callable[[Sequence[Any], np.ndarray], float]
    sweeps: int = 5

    def choose(self, search_state: SearchState, rng: np.random.Generator) -> Latent:
        touching, listed = search_state.touching(), search_state.evaluation.listed()
        latent: Latent = np.array(touching) if listed is not None else list(touching)
        here = self._ask(latent, search_state.weights)

        def welcome(i: int, z: Any) -> bool:
            nonlocal here
            before, latent[i] = latent[i], z
            there = self._ask(latent, search_state.weights)
            if there < here:
                latent[i] = before
                return False
            here = there
            return True

        return by_proposals(search_state, latent, self.sweeps, rng, welcome, listed)


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
