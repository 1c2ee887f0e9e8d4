"""G-MME: bounds drawn from a distribution of maximum entropy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels import vectors
from ..protocols import LatentObjective
from .search_state import Latent, SearchState, check_choice_of


@dataclass(frozen=True)
class MaximumEntropy:
    """G-MM in expectation (Naderi Parizi §5.6): bounds drawn from the least committed distribution that makes progress.

    Latent values are independent, P_i(z) ∝ exp(−t·regret_i(z)). Of all t ≥ 0 the smallest is taken for which the
    expected total regret is within the budget; t = 0, the uniform distribution, is tried first. A bound that was
    drawn may lie outside the budget: the search can leave a valley that G-MM could not.

    Parameters
    ----------
    precision : float
        The expected regret is brought to at least this share of the budget.
    """

    precision: float = 0.999
    in_expectation = True

    def __post_init__(self) -> None:
        if not (isinstance(self.precision, int | float | np.number) and 0.0 < self.precision < 1.0):
            raise ValueError(f"MaximumEntropy: precision must be between 0 and 1, got {self.precision!r}.")

    def check(self, objective: LatentObjective) -> None:
        check_choice_of(objective, self, listed=True)

    def choose(self, search_state: SearchState, rng: np.random.Generator) -> Latent:
        listed = search_state.evaluation.listed()
        if listed is None:
            raise ValueError("MaximumEntropy needs a list of all latent values.")
        regrets, first = listed
        # A list may be off by rounding; the best of each example must have no regret, or no rate is feasible.
        regrets = regrets - np.repeat(np.minimum.reduceat(regrets, first[:-1]), np.diff(first))
        t = entropic_rate(regrets, first, search_state.budget, self.precision)
        # The largest of −t·regret plus Gumbel noise is a draw from P_i.
        noisy = rng.gumbel(size=regrets.size) - t * regrets
        return largest(noisy, first)


def expected_regret(regrets: np.ndarray, first: np.ndarray, t: float) -> float:
    """Σ_i E[regret_i(z)] under P_i(z) ∝ exp(−t·regret_i(z)). The smallest regret of each example is 0."""
    p = np.exp(-t * regrets)
    total = np.add.reduceat(p, first[:-1])
    return float((np.add.reduceat(p * regrets, first[:-1]) / total).sum())


def entropic_rate(regrets: np.ndarray, first: np.ndarray, budget: float, precision: float = 0.999) -> float:
    """The smallest t ≥ 0, up to ``precision``, with an expected regret within the budget: always the feasible end."""
    if expected_regret(regrets, first, 0.0) <= budget:
        return 0.0
    low, high = 0.0, 1.0 / max(float(regrets.max()), 1e-300)
    while expected_regret(regrets, first, high) > budget:
        low, high = high, 4.0 * high
        if not np.isfinite(high):
            return float(np.finfo(float).max)
    for _ in range(200):
        found = expected_regret(regrets, first, high)
        if found >= precision * budget or high - low <= 1e-12 * high:
            break
        middle = 0.5 * (low + high)
        if expected_regret(regrets, first, middle) <= budget:
            high = middle
        else:
            low = middle
    return high


def largest(values: np.ndarray, first: np.ndarray) -> np.ndarray:
    """The latent value with the largest of these numbers, for each example."""
    out = np.empty(first.size - 1, np.int64)
    vectors.largest(values, first, out)
    return out
