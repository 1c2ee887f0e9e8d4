"""Latent models on workers: they complete, score and search among their own examples; bounds are minimised here."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..latent.situation import differ
from ..protocols import LatentOracle
from .asking import Asking, together
from .oracles import RemoteOracle
from .searching import Piece


class RemoteLatentOracle:
    """A ``LatentOracle`` whose examples are with the workers of a crew, each of which has a ``LatentSearches``.

    What is asked once, or about few examples, is answered here: starts may look at all examples together, and the
    random walk over bounds asks about one at a time, which is not worth a message.

    Parameters
    ----------
    here : LatentOracle
        The same with all examples.
    asking : Asking
    pieces : list of Piece
    """

    def __init__(self, here: LatentOracle, asking: Asking, pieces: list[Piece]) -> None:
        self._here, self._asking, self._pieces = here, asking, pieces
        self.n_examples, self.n_weights = here.n_examples, here.n_weights
        self.exact = bool(getattr(here, "exact", True))
        if hasattr(here, "exact_at"):
            self.exact_at = here.exact_at
        self.truths, self.propose, self.initial = here.truths, here.propose, here.initial
        self._fixed: Any = None

    def bound(self, latent: Any) -> RemoteOracle:
        like = self._here.bound(latent)  # complains of values that some examples do not have
        asking = self._asking
        if self._fixed is None or differ(latent, self._fixed).any():
            self._fixed = latent.copy() if isinstance(latent, np.ndarray) else list(latent)
        fixed = self._fixed

        def before() -> None:
            asking.tell(fixed, lambda k: ("fix", asking.cut(fixed, k)))

        pieces = [piece._replace(releases_gil=like.releases_gil) for piece in self._pieces]
        return RemoteOracle(asking, pieces, self.n_weights, before)

    def complete(self, w: np.ndarray) -> tuple[Any, np.ndarray]:
        sent = self._asking.sent(w)
        found = self._asking.ask_all(lambda k: ("complete", sent))
        return in_order([best for best, _ in found]), np.concatenate([scores for _, scores in found])

    def scores(self, ids: np.ndarray, latent: Any, w: np.ndarray) -> np.ndarray:
        if ids.size < len(self._pieces):
            return self._here.scores(ids, latent, w)
        return asked_about(self._asking, ids, latent, "scores", w)

    def listed(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        sent = self._asking.sent(w)
        return end_to_end(self._asking.ask_all(lambda k: ("listed", sent)))


def asked_about(asking: Asking, ids: np.ndarray, latent: Any, method: str, w: np.ndarray) -> np.ndarray:
    """One number for each of these examples with these latent values, at some weights, in the order asked for."""
    worker, numbers, sent = asking.whose(ids), np.empty(ids.size), asking.sent(w)
    places = [np.flatnonzero(worker == k) for k in np.unique(worker).tolist()]
    calls = []
    for at in places:
        k = int(worker[at[0]])
        values = np.asarray(latent)[at] if isinstance(latent, np.ndarray) else [latent[p] for p in at.tolist()]
        calls.append(asking.ask(k, method, ids[at] - asking.first[k], values, sent))
    for at, found in zip(places, together(calls), strict=True):
        numbers[at] = found
    return numbers


def in_order(parts: list[Any]) -> Any:
    """Latent values of all examples: an array where all parts are arrays of numbers, else a list."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return [value for part in parts for value in part]


def end_to_end(parts: list[tuple[np.ndarray, np.ndarray] | None]) -> tuple[np.ndarray, np.ndarray] | None:
    """Lists of numbers and where those of each example begin, as one; None if one of them cannot list."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    sizes = np.concatenate([np.diff(first) for _, first in known])
    return np.concatenate([numbers for numbers, _ in known]), np.concatenate([[0], np.cumsum(sizes)])
