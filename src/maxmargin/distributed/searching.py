"""What a worker answers about its own examples when somebody else optimizes: searches, and sums over what it has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..constraints import Searched
from ..constraints.answers import Packed
from ..problem import Planes, Rivals, TotalLoss, Totals
from ..protocols import Evaluation, Oracle

_NOTHING = "This worker has no examples to be asked about."


class Piece(NamedTuple):
    """What the driver must know of a worker's examples."""

    n_examples: int
    releases_gil: bool
    offsets: np.ndarray
    """Where each part begins that is in memory at a time, and the number of examples."""


class Searches(ABC):
    """The oracle of a piece of the data, for questions that come from elsewhere. Base of recipes.

    Nothing is kept between two questions, so a worker that starts anew answers like the one before it.
    """

    @abstractmethod
    def oracle(self) -> Oracle | None:
        """Asked whenever there is a question; None where the piece has no examples."""

    def piece(self) -> Piece:
        oracle = self.oracle()
        if oracle is None:
            return Piece(0, True, np.zeros(1, np.int64))
        offsets = np.asarray(getattr(oracle, "offsets", [0, oracle.n_examples]))
        return Piece(oracle.n_examples, bool(oracle.releases_gil), offsets)

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> Rivals:
        return _light(self._here().rivals(ids, np.array(w)))

    def planes(self, ids: np.ndarray, labels: Sequence[Any]) -> Rivals:
        return _light(self._here().planes(ids, list(labels)))

    def evaluate(self, w: np.ndarray, budget: np.ndarray) -> TotalLoss:
        """Σ C_i·(loss of example i) over the piece."""
        return Searched(self._here(), budget).evaluate(np.array(w))

    def sums(self, ids: np.ndarray, labels: Sequence[Any], shares: np.ndarray) -> Totals:
        """What shares of some answers come to, which stand in the order of their examples."""
        return Searched(self._here(), np.ones(1)).sums(Planes(ids, labels, shares))

    def _here(self) -> Oracle:
        oracle = self.oracle()
        if oracle is None:
            raise ValueError(_NOTHING)
        return oracle


class LatentSearches(Searches):
    """A recipe that knows the objective of a piece of the data, with latent variables.

    Parameters
    ----------
    make : function or None
        Gives the objective; None if the piece has no examples.
    """

    _fixed: Any = None
    _last: tuple[np.ndarray, Evaluation] | None = None

    def __init__(self, make: Callable[[], Any] | None) -> None:
        self._make = make

    @cached_property
    def _objective(self) -> Any:
        if self._make is None:
            raise ValueError(_NOTHING)
        return self._make()

    def piece(self) -> Piece:
        n = 0 if self._make is None else self._objective.n_examples
        return Piece(n, True, np.array([0, n]))

    def fix(self, latent: Any) -> None:
        """The latent values of the bound that is asked about from now on."""
        self._fixed = latent
        self.__dict__.pop("_bound", None)

    @cached_property
    def _bound(self) -> Oracle:
        return self._objective.oracle.bound(self._fixed)

    def oracle(self) -> Oracle | None:
        return None if self._make is None else self._bound

    def latent(self, method: str, w: np.ndarray, *args: Any) -> Any:
        """A question to the ``LatentOracle`` of an objective whose bounds are searched."""
        return getattr(self._objective.oracle, method)(*args, np.array(w))

    def best(self, w: np.ndarray) -> Any:
        return self._evaluated(w).best

    def evaluation(self, method: str, w: np.ndarray, *args: Any) -> Any:
        """A question to the ``Evaluation`` of an objective whose bounds are closed."""
        return getattr(self._evaluated(w), method)(*args)

    def _evaluated(self, w: np.ndarray) -> Evaluation:
        """Several questions are asked about the same weights."""
        if self._last is None or not np.array_equal(self._last[0], w):
            w = np.array(w)
            self._last = w, self._objective.evaluate(w)
        return self._last[1]


def _light(rivals: Rivals) -> Rivals:
    """Many small answers travel as one array."""
    return replace(rivals.evaluated(), labels=Packed(rivals.labels))
