"""Bounds that touch, and random ones inside the budget (CCCP and G-MM; Naderi Parizi, chapter 5).

A bound is valid if its total regret, at the minimiser of the last bound, is at most (1 − η)·d. With η = 1 only bounds
that touch F are, which is CCCP.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels import walks
from .search_state import Latent, SearchState, Stepwise, by_proposals, merged


@dataclass(frozen=True)
class CCCP:
    """The concave-convex procedure: the next bound touches F at the last minimiser.

    F itself never rises then; and the search never leaves the valley it begins in.
    """

    def choose(self, search_state: SearchState, rng: np.random.Generator) -> Latent:
        return search_state.touching()


@dataclass(frozen=True)
class RandomWalk(Stepwise):
    """G-MM, the estimators' ``bound="gmm"``: a bound drawn uniformly from all valid ones, by a random walk over single
    changes (§5.4).

    A step picks an example and another value for it, and stays where it is if the budget does not allow the change:
    neighbours lead to each other with the same probability, so all valid bounds are equally likely in the long run.
    The walk begins at the bound that touches F, which is always valid.

    Parameters
    ----------
    sweeps : int
        Steps for each example.
    """

    sweeps: int = 20

    def choose(self, search_state: SearchState, rng: np.random.Generator) -> Latent:
        here, listed = search_state.touching(), search_state.evaluation.listed()
        if listed is None:
            return by_proposals(search_state, list(here), self.sweeps, rng)
        regrets, first = listed
        latent = np.array(here, np.int64)
        steps = self.sweeps * latent.size
        walks.walk(regrets, first, latent, search_state.budget, steps, int(rng.integers(1, 2**63)))
        return latent


@dataclass(frozen=True)
class RandomSubset:
    """Random examples move to their best value, the others keep theirs (§5.5.2).

    Parameters
    ----------
    growth : float
        The subset is this share of the examples in the first bound, twice as much in the second, and so on; more where
        that is needed to make the bound valid.
    """

    growth: float = 0.2

    def __post_init__(self) -> None:
        if not (isinstance(self.growth, int | float | np.number) and 0.0 < self.growth <= 1.0):
            raise ValueError(f"RandomSubset: growth must be above 0 and at most 1, got {self.growth!r}.")

    def choose(self, search_state: SearchState, rng: np.random.Generator) -> Latent:
        n = search_state.objective.n_examples
        regret = search_state.regret
        order = rng.permutation(n)
        # What is left after so many of them have moved; the first count that the budget allows.
        left = regret.sum() - np.cumsum(regret[order])
        needed = 1 + int(np.argmax(left <= search_state.budget)) if left[-1] <= search_state.budget else n
        size = min(n, max(needed, int(np.ceil(self.growth * search_state.number * n))))
        stay = np.ones(n, bool)
        stay[order[:size]] = False
        return merged(search_state.touching(), search_state.latent, stay)
