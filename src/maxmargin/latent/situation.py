from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..protocols import LatentObjective, Standing


@dataclass(frozen=True)
class Situation:
    """Where a search stands after a bound was minimised: all that a chooser may want to know.

    ``latent`` are the values fixed in that bound, ``weights`` its minimiser, ``standing`` the objective there, ``gap``
    d = bound − F, and ``budget`` the total regret that the next bound may have: (1 − η)·d. ``number`` counts bounds.
    ``train(weights)`` minimises the same bound once more with the C_i multiplied, and gives its minimiser; ``carries``
    says which examples have a share in the last solution: the others can be left out without changing it.
    """

    objective: LatentObjective
    latent: Any
    weights: np.ndarray
    standing: Standing
    gap: float
    budget: float
    number: int
    carries: np.ndarray
    train: Callable[[np.ndarray], np.ndarray]

    def everybody(self) -> np.ndarray:
        return np.arange(self.objective.n_examples)

    def touching(self) -> Any:
        """The bound that touches F: every example has its best value, the one it had where that is as good."""
        stay = self.standing.regrets(self.everybody(), self.latent) <= 0.0
        return merged(self.standing.best, self.latent, stay)


def merged(values: Any, others: Any, chosen: np.ndarray) -> Any:
    """``others`` where ``chosen``, else ``values``; a new sequence of the same kind."""
    if isinstance(values, np.ndarray):
        return np.where(chosen, np.asarray(others), values)
    return [b if c else a for a, b, c in zip(values, others, chosen.tolist(), strict=True)]


def differ(values: Any, others: Any) -> np.ndarray:
    """Which examples have another value."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return values != np.asarray(others)
    return np.array([not np.array_equal(a, b) for a, b in zip(values, others, strict=True)], bool)
