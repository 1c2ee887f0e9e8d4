"""The objective of the latent structural SVM, and its convex bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..constraints import Searched
from ..constraints.oracle import is_exact
from ..problem import Planes, Problem
from ..protocols import LatentOracle, OracleError, Regularizer
from ..validation import shown
from .search_state import Latent


class StructuralObjective:
    """The latent structural SVM.

        F(w) = Ω(w) + Σ_i C_i [max_{ŷ,ẑ} (loss + w·φ(x_i, ŷ, ẑ)) − max_z w·φ(x_i, y_i, z)]

    Fixing z_i in the last term gives a convex bound, whose distance from F is the regret of z_i (Yu & Joachims 2009;
    Naderi Parizi (5.34), (5.35)).

    Parameters
    ----------
    oracle : LatentOracle
    budget : float array (n_examples,) or (1,)
        C_i.
    regularizer : Regularizer
    """

    def __init__(self, oracle: LatentOracle, budget: np.ndarray, regularizer: Regularizer) -> None:
        self.oracle = oracle
        self.budget = np.atleast_1d(np.asarray(budget, dtype=np.float64))
        self.regularizer = regularizer
        self.n_examples, self.n_weights = oracle.n_examples, oracle.n_weights

    def problem(self, latent: Latent, factors: np.ndarray | None = None) -> Problem:
        budget = self.budget if factors is None else self.budget * factors
        return Problem(Searched(self.oracle.bound(latent), budget), self.regularizer)

    def with_oracle(self, oracle: LatentOracle) -> StructuralObjective:
        """The same objective, asked by another way."""
        return StructuralObjective(oracle, self.budget, self.regularizer)

    def evaluate(self, w: np.ndarray) -> StructuralEvaluation:
        return StructuralEvaluation(self, w)

    def initial(self, rng: np.random.Generator | None) -> Latent:
        """The model's own values; else those that are best at random weights.

        Values drawn one by one would contradict each other: the minimum of such a bound is near w = 0, where all values
        are alike and there is nothing to go on from.
        """
        own = self.oracle.initial() if rng is None else None
        if own is not None:
            return own
        rng = np.random.default_rng(0) if rng is None else rng
        return self.oracle.complete(rng.normal(size=self.n_weights))[0]

    def carriers(self, alpha: Planes) -> np.ndarray:
        carries = np.zeros(self.n_examples, bool)
        carries[alpha.example[alpha.alpha > 0.0]] = True
        return carries


class StructuralEvaluation:
    """The regrets of latent values at one w: C_i·(best score − score)."""

    def __init__(self, objective: StructuralObjective, w: np.ndarray) -> None:
        self._oracle, self._budget, self._w = objective.oracle, objective.budget, w
        self.best, self._top = self._oracle.complete(w)
        exact_at = getattr(self._oracle, "exact_at", None)
        self._exact = is_exact(self._oracle) if exact_at is None else exact_at(w)

    def _weighted(self, regret: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Regrets times C_i, cleared of rounding.

        A value better than the best is a mistake of the model's, unless it says that its search is approximate: then
        there is no regret as far as it could see.
        """
        top = self._top[ids]
        worst = np.argmin(regret / (1.0 + np.abs(top))) if regret.size else 0
        if self._exact and regret.size and regret[worst] < -1e-5 * (1.0 + abs(top[worst])):
            i = int(ids[worst])
            raise OracleError(
                f"complete is not the maximiser on example {i}: it gives latent value {shown(self.best[i])} with score "
                f"{top[worst]:.6g}, another one has {top[worst] - regret[worst]:.6g}. Try checks.check_model.",
                i,
            )
        regret = np.where(regret <= 1e-12 * (1.0 + np.abs(top)), 0.0, regret)
        return (self._budget[ids] if self._budget.size > 1 else self._budget) * regret

    def regrets(self, ids: np.ndarray, latent: Latent) -> np.ndarray:
        return self._weighted(self._top[ids] - self._oracle.scores(ids, latent, self._w), ids)

    def listed(self) -> tuple[np.ndarray, np.ndarray] | None:
        found = self._oracle.listed(self._w)
        if found is None:
            return None
        scores, first = found
        ids = np.repeat(np.arange(first.size - 1), np.diff(first))
        return self._weighted(self._top[ids] - scores, ids), first

    def propose(self, i: int, z: object, rng: np.random.Generator) -> Any:
        return self._oracle.propose(i, z, self._w, rng)
