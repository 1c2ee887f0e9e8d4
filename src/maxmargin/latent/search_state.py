"""The state of a search over convex bounds, as those who choose the next bound see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..protocols import Evaluation, LatentObjective
from ..validation import whole

Latent = np.ndarray | list[Any]
"""Latent values of all examples: numbers where they can be listed, else whatever the model's are."""


@dataclass(frozen=True)
class SearchState:
    """Where a search stands after a bound was minimised: all that a chooser may want to know.

    ``latent`` are the values fixed in that bound, ``weights`` its minimiser, ``evaluation`` the objective there and
    ``regret`` what each value has there; ``gap`` is d = bound − F, the sum of them, and ``budget`` the total regret
    that the next bound may have: (1 − η)·d. ``number`` counts bounds.
    ``train(factors)`` minimises the same bound once more with the C_i multiplied, and gives its minimiser; ``carries``
    says which examples have a share in the last solution: the others can be left out without changing it.
    """

    objective: LatentObjective
    latent: Latent
    weights: np.ndarray
    evaluation: Evaluation
    regret: np.ndarray
    gap: float
    budget: float
    number: int
    carries: np.ndarray
    train: Callable[[np.ndarray], np.ndarray]

    def everybody(self) -> np.ndarray:
        return np.arange(self.objective.n_examples)

    def touching(self) -> Latent:
        """The bound that touches F: every example has its best value, the one it had where that is as good."""
        return merged(self.evaluation.best, self.latent, self.regret <= 0.0)


def check_choice_of(objective: LatentObjective, chooser: object, *, listed: bool = False) -> None:
    """Whether this objective can give a chooser what it needs: all values in a list, or else small changes of one.

    Asked before the first bound, so that nobody learns of it after hours.
    """
    with np.errstate(all="ignore"):  # weights of zero may mean nothing, as for parts that move at no cost
        evaluation = objective.evaluate(np.zeros(objective.n_weights))
    if evaluation.listed() is not None:
        return
    if listed:
        raise ValueError(
            f"{type(chooser).__name__} draws from all latent values, which this model does not list: define "
            "latent_scores, or use another bound, such as 'gmm'."
        )
    evaluation.propose(0, evaluation.best[0], np.random.default_rng(0))


class Stepwise:
    """Choosers that take ``sweeps`` steps for each example, over listed values or by the model's own proposals."""

    sweeps: int

    def __post_init__(self) -> None:
        whole(f"{type(self).__name__}: sweeps", self.sweeps)

    def check(self, objective: LatentObjective) -> None:
        check_choice_of(objective, self)


def by_proposals(
    search_state: SearchState,
    latent: Latent,
    sweeps: int,
    rng: np.random.Generator,
    welcome: Callable[[int, Any], bool] = lambda i, z: True,
) -> Latent:
    """Change ``latent``, in place, by proposals for one example at a time, so many for each of them.

    One is made if the budget allows it and it is ``welcome``. Proposals are the model's own.
    """
    evaluation = search_state.evaluation
    regret = evaluation.regrets(search_state.everybody(), latent)
    total = float(regret.sum())
    for i in rng.integers(0, len(latent), sweeps * len(latent)).tolist():
        proposed = evaluation.propose(i, latent[i], rng)
        new = float(evaluation.regrets(np.array([i]), [proposed])[0])
        if total - regret[i] + new <= search_state.budget and welcome(i, proposed):
            total += new - regret[i]
            latent[i], regret[i] = proposed, new
    return latent


def merged(values: Latent, others: Latent, chosen: np.ndarray) -> Latent:
    """``others`` where ``chosen``, else ``values``; a new sequence of the same kind."""
    if isinstance(values, np.ndarray):
        return np.where(chosen, np.asarray(others), values)
    return [b if c else a for a, b, c in zip(values, others, chosen.tolist(), strict=True)]


def differ(values: Latent, others: Latent) -> np.ndarray:
    """Which examples have another value."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return values != np.asarray(others)
    return np.array([not _same(a, b) for a, b in zip(values, others, strict=True)], bool)


def _same(a: Any, b: Any) -> bool:
    """Whether two latent values are equal, whatever they are made of."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    if type(a) is not type(b):
        return bool(a == b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(value, b[key]) for key, value in a.items())
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)
