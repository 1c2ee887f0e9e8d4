"""Multi-fold training as a way to choose bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..protocols import Evaluation
from .biased import within_budget
from .search_state import Latent, SearchState, merged


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

    def choose(self, search_state: SearchState, rng: np.random.Generator) -> Latent:
        touching = search_state.touching()
        n = search_state.objective.n_examples
        folds = np.array_split(rng.permutation(n), min(self.folds or n, n))
        listed = search_state.evaluation.listed()
        gains = None if listed is None else np.empty(listed[0].size)
        liked = list(touching)
        gain = np.zeros(n)
        for fold in folds:
            there = self._without(search_state, fold)
            theirs = there.listed() if gains is not None else None
            if theirs is not None and gains is not None:
                regrets, first = theirs
                for i in fold.tolist():
                    gains[first[i] : first[i + 1]] = -regrets[first[i] : first[i + 1]]
            else:
                gain[fold] = there.regrets(fold, [touching[i] for i in fold.tolist()])  # what their value would save
                for i in fold.tolist():
                    liked[i] = there.best[i]
        if listed is not None and gains is not None:
            return within_budget(gains, *listed, search_state.budget)
        return self._two_options(search_state, touching, liked, gain)

    def _without(self, search_state: SearchState, fold: np.ndarray) -> Evaluation:
        """The objective where a model stands that has not seen the fold."""
        if not search_state.carries[fold].any():
            return search_state.evaluation
        mask = np.ones(search_state.objective.n_examples)
        mask[fold] = 0.0
        return search_state.objective.evaluate(search_state.train(mask))

    def _two_options(self, search_state: SearchState, touching: Latent, liked: list[Any], gain: np.ndarray) -> Latent:
        """Where values cannot be listed: the one that touches, or the one that the model of the other folds likes."""
        n = len(touching)
        regret = search_state.evaluation.regrets(search_state.everybody(), liked)
        options = np.arange(n + 1) * 2
        gains, regrets = np.zeros(2 * n), np.zeros(2 * n)
        gains[1::2], regrets[1::2] = gain, regret
        return merged(touching, liked, within_budget(gains, regrets, options, search_state.budget) == 1)
