"""Objectives with latent variables whose examples are on workers; bounds are minimised by the driver.

Where bounds are searched, workers complete, score and search among their own examples (``RemoteLatentOracle``). Where
they are closed problems, workers look at all latent values (``RemoteObjective``). The constraints of such a bound are
few beside the latent values that there are to choose from: one instance of each positive bag, say. So the convex
problem stays in one place, and what is shared out is the look at everything.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..latent.search_state import differ
from ..problem import Problem
from ..protocols import Evaluation, LatentObjective, LatentOracle
from .oracles import RemoteOracle, introduced
from .requests import Requests, together
from .searching import OfObjective, Piece
from .worker_group import WorkerGroup


class Evaluations(OfObjective):
    """What workers answer about an objective whose bounds are closed problems."""

    _last: tuple[np.ndarray, Evaluation] | None = None

    def _evaluated(self, w: np.ndarray) -> Evaluation:
        """Several questions are asked about the same weights."""
        if self._last is None or not np.array_equal(self._last[0], w):
            w = np.array(w)
            self._last = w, self._objective.evaluate(w)
        return self._last[1]

    def best(self, w: np.ndarray) -> Any:
        return self._evaluated(w).best

    def regrets(self, ids: np.ndarray, latent: Any, w: np.ndarray) -> np.ndarray:
        return self._evaluated(w).regrets(ids, latent)

    def listed(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        return self._evaluated(w).listed()


class RemoteLatentOracle:
    """A ``LatentOracle`` whose examples are with the workers of a group, each of which has a ``LatentSearches``.

    What is asked once, or about few examples, is answered here: starts may look at all examples together, and the
    random walk over bounds asks about one at a time, which is not worth a message.

    Parameters
    ----------
    here : LatentOracle
        The same with all examples.
    requests : Requests
    pieces : list of Piece
    """

    def __init__(self, here: LatentOracle, requests: Requests, pieces: list[Piece]) -> None:
        self._here, self._requests, self._pieces = here, requests, pieces
        self.n_examples, self.n_weights = here.n_examples, here.n_weights
        self.exact = bool(getattr(here, "exact", True))
        if hasattr(here, "exact_at"):
            self.exact_at = here.exact_at
        self.truths, self.propose, self.initial = here.truths, here.propose, here.initial
        self._fixed: Any = None

    def bound(self, latent: Any) -> RemoteOracle:
        like = self._here.bound(latent)  # complains of values that some examples do not have
        requests = self._requests
        if self._fixed is None or differ(latent, self._fixed).any():
            self._fixed = latent.copy() if isinstance(latent, np.ndarray) else list(latent)
        fixed = self._fixed

        def before() -> None:
            requests.tell(fixed, lambda k: ("fix", requests.cut(fixed, k)))

        pieces = [piece._replace(releases_gil=like.releases_gil) for piece in self._pieces]
        return RemoteOracle(requests, pieces, self.n_weights, before)

    def complete(self, w: np.ndarray) -> tuple[Any, np.ndarray]:
        sent = self._requests.sent(w)
        found = self._requests.ask_all(lambda k: ("complete", sent))
        return _in_order([best for best, _ in found]), np.concatenate([scores for _, scores in found])

    def scores(self, ids: np.ndarray, latent: Any, w: np.ndarray) -> np.ndarray:
        if ids.size < len(self._pieces):
            return self._here.scores(ids, latent, w)
        return _asked_about(self._requests, ids, latent, "scores", w)

    def listed(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        sent = self._requests.sent(w)
        return _end_to_end(self._requests.ask_all(lambda k: ("listed", sent)))


def _asked_about(requests: Requests, ids: np.ndarray, latent: Any, method: str, w: np.ndarray) -> np.ndarray:
    """One number for each of these examples with these latent values, at some weights, in the order asked for."""
    worker, numbers, sent = requests.whose(ids), np.empty(ids.size), requests.sent(w)
    places = [np.flatnonzero(worker == k) for k in np.unique(worker).tolist()]
    calls = []
    for at in places:
        k = int(worker[at[0]])
        values = np.asarray(latent)[at] if isinstance(latent, np.ndarray) else [latent[p] for p in at.tolist()]
        calls.append(requests.ask(k, method, ids[at] - requests.first[k], values, sent))
    for at, found in zip(places, together(calls), strict=True):
        numbers[at] = found
    return numbers


def _in_order(parts: list[Any]) -> Any:
    """Latent values of all examples: an array where all parts are arrays of numbers, else a list."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return [value for part in parts for value in part]


def _end_to_end(parts: list[tuple[np.ndarray, np.ndarray] | None]) -> tuple[np.ndarray, np.ndarray] | None:
    """Lists of numbers and where those of each example begin, as one; None if one of them cannot list."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    sizes = np.concatenate([np.diff(first) for _, first in known])
    return np.concatenate([numbers for numbers, _ in known]), np.concatenate([[0], np.cumsum(sizes)])


class RemoteObjective:
    """A ``LatentObjective`` that is looked at by workers.

    Parameters
    ----------
    here : LatentObjective
        The same with all examples.
    requests : Requests
    """

    def __init__(self, here: LatentObjective, requests: Requests) -> None:
        self.here, self.requests = here, requests
        self.n_examples, self.n_weights = here.n_examples, here.n_weights
        self.regularizer = here.regularizer

    def problem(self, latent: Any, weights: np.ndarray | None = None) -> Problem:
        return self.here.problem(latent, weights)

    def evaluate(self, w: np.ndarray) -> RemoteEvaluation:
        return RemoteEvaluation(self, w)

    def initial(self, rng: np.random.Generator | None) -> Any:
        return self.here.initial(rng)

    def carriers(self, alpha: Any) -> np.ndarray:
        return self.here.carriers(alpha)


class RemoteEvaluation:
    """An ``Evaluation`` that workers look up; questions about few examples are answered by the driver."""

    def __init__(self, objective: RemoteObjective, w: np.ndarray) -> None:
        self._objective, self._requests = objective, objective.requests
        self._w = w.copy()
        sent = self._requests.sent(self._w)
        self.best: Any = _in_order(self._requests.ask_all(lambda k: ("best", sent)))

    @cached_property
    def _here(self) -> Evaluation:
        return self._objective.here.evaluate(self._w)

    def regrets(self, ids: np.ndarray, latent: Any) -> np.ndarray:
        if ids.size < self._requests.workers.size:
            return self._here.regrets(ids, latent)
        return _asked_about(self._requests, ids, latent, "regrets", self._w)

    def listed(self) -> tuple[np.ndarray, np.ndarray] | None:
        sent = self._requests.sent(self._w)
        return _end_to_end(self._requests.ask_all(lambda k: ("listed", sent)))

    def propose(self, i: int, z: Any, rng: np.random.Generator) -> Any:
        return self._here.propose(i, z, rng)


def remote_objective(objective: LatentObjective, workers: WorkerGroup) -> LatentObjective:
    """The same objective with its examples on the workers: ``LatentSearches`` where bounds are searched, else
    ``Evaluations``."""
    requests, pieces = introduced(workers, objective.n_examples)
    if not is_searched(objective):
        return RemoteObjective(objective, requests)
    known: Any = objective
    return known.with_oracle(RemoteLatentOracle(known.oracle, requests, pieces))


def is_searched(objective: LatentObjective) -> bool:
    """Whether the bounds of this objective are open problems, made by a latent oracle."""
    return hasattr(objective, "with_oracle")
