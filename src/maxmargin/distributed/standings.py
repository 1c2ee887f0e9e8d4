"""Objectives whose bounds are closed problems: workers look at all latent values, bounds are minimised by the driver.

The constraints of such a bound are few beside the latent values that there are to choose from: one instance of each
positive bag, say. So the convex problem stays in one place, and what is shared out is the look at everything.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ..problem import Problem
from ..protocols import LatentObjective, Standing
from .asking import Asking
from .crew import Crew
from .latent_oracle import RemoteLatentOracle, asked_about, end_to_end, in_order
from .oracles import introduced
from .searching import Piece


class Standings:
    """The objective of a piece of the data, on a worker: a recipe.

    Parameters
    ----------
    make : function or None
        Gives the objective; None if the piece has no examples.
    """

    def __init__(self, make: Callable[[], LatentObjective] | None) -> None:
        self._make = make
        self._last: tuple[np.ndarray, Standing] | None = None

    @cached_property
    def _objective(self) -> LatentObjective:
        if self._make is None:
            raise ValueError("This worker has no examples to be asked about.")
        return self._make()

    def piece(self) -> Piece:
        n = 0 if self._make is None else self._objective.n_examples
        return Piece(n, True, np.array([0, n]))

    def _standing(self, w: np.ndarray) -> Standing:
        """Several questions are asked about the same weights."""
        if self._last is None or not np.array_equal(self._last[0], w):
            w = np.array(w)
            self._last = w, self._objective.standing(w)
        return self._last[1]

    def best(self, w: np.ndarray) -> Any:
        return self._standing(w).best

    def regrets(self, ids: np.ndarray, latent: Any, w: np.ndarray) -> np.ndarray:
        return self._standing(w).regrets(ids, latent)

    def listed(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        return self._standing(w).listed()


class RemoteObjective:
    """A ``LatentObjective`` that is looked at by workers.

    Parameters
    ----------
    here : LatentObjective
        The same with all examples.
    asking : Asking
    """

    def __init__(self, here: LatentObjective, asking: Asking) -> None:
        self.here, self.asking = here, asking
        self.n_examples, self.n_weights = here.n_examples, here.n_weights
        self.regularizer = here.regularizer

    def problem(self, latent: Any, weights: np.ndarray | None = None) -> Problem:
        return self.here.problem(latent, weights)

    def standing(self, w: np.ndarray) -> RemoteStanding:
        return RemoteStanding(self, w)

    def initial(self, rng: np.random.Generator | None) -> Any:
        return self.here.initial(rng)

    def carriers(self, alpha: Any) -> np.ndarray:
        return self.here.carriers(alpha)


class RemoteStanding:
    """A ``Standing`` that workers look up; questions about few examples are answered by the driver."""

    def __init__(self, objective: RemoteObjective, w: np.ndarray) -> None:
        self._objective, self._asking = objective, objective.asking
        self._w = w.copy()
        sent = self._asking.sent(self._w)
        self.best: Any = in_order(self._asking.ask_all(lambda k: ("best", sent)))

    @cached_property
    def _here(self) -> Standing:
        return self._objective.here.standing(self._w)

    def regrets(self, ids: np.ndarray, latent: Any) -> np.ndarray:
        if ids.size < self._asking.crew.size:
            return self._here.regrets(ids, latent)
        return asked_about(self._asking, ids, latent, "regrets", self._w)

    def listed(self) -> tuple[np.ndarray, np.ndarray] | None:
        sent = self._asking.sent(self._w)
        return end_to_end(self._asking.ask_all(lambda k: ("listed", sent)))

    def propose(self, i: int, z: Any, rng: np.random.Generator) -> Any:
        return self._here.propose(i, z, rng)


def remote_objective(objective: LatentObjective, crew: Crew) -> LatentObjective:
    """The same objective with its examples on the workers: ``LatentSearches`` where bounds are searched, else
    ``Standings``."""
    asking, pieces = introduced(crew, objective.n_examples)
    if not is_searched(objective):
        return RemoteObjective(objective, asking)
    known: Any = objective
    return known.with_oracle(RemoteLatentOracle(known.oracle, asking, pieces))


def is_searched(objective: LatentObjective) -> bool:
    """Whether the bounds of this objective are open problems, made by a latent oracle."""
    return hasattr(objective, "with_oracle")
