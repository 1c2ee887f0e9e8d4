"""Multi-fold training as a way to choose bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..protocols import Evaluation, LatentObjective
from .biased import within_budget
from .search_state import Latent, SearchState, check_choice_of


@dataclass(frozen=True)
class MultiFold:
    """The bias of multi-fold multiple instance learning (Naderi Parizi §5.4.2).

    The examples are dealt into folds. The latent values of a fold are wanted as a model likes them that was trained
    on the other folds, with their values as in the last bound: such a model has not adapted itself to the values it
    judges. Of the bounds that are valid the one is taken that such models like best, in all.

    Parameters
    ----------
    folds : int or None
        Number of folds; None leaves out one example at a time. Where no example of a fold carries a share in the last
        solution, leaving it out changes nothing and need not be computed.
    """

    folds: int | None = 10

    def __post_init__(self) -> None:
        if self.folds is not None and (not isinstance(self.folds, int | np.integer) or self.folds < 2):
            raise ValueError(f"MultiFold: folds must be a whole number of at least 2, or None, got {self.folds!r}.")

    def check(self, objective: LatentObjective) -> None:
        check_choice_of(objective, self, listed=True)

    def choose(self, search_state: SearchState, rng: np.random.Generator) -> Latent:
        regrets, first = search_state.evaluation.listed()  # type: ignore[misc]
        n = search_state.objective.n_examples
        gains = np.empty(regrets.size)
        for fold in np.array_split(rng.permutation(n), min(self.folds or n, n)):
            theirs, _ = self._without(search_state, fold).listed()  # type: ignore[misc]
            for i in fold.tolist():
                gains[first[i] : first[i + 1]] = -theirs[first[i] : first[i + 1]]
        return within_budget(gains, regrets, first, search_state.budget)

    def _without(self, search_state: SearchState, fold: np.ndarray) -> Evaluation:
        """The objective where a model stands that has not seen the fold."""
        if not search_state.carries[fold].any():
            return search_state.evaluation
        mask = np.ones(search_state.objective.n_examples)
        mask[fold] = 0.0
        return search_state.objective.evaluate(search_state.train(mask))
