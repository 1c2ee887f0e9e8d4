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

from ..constraints.sourced import chosen
from ..latent.search_state import differ
from ..protocols import Evaluation, LatentObjective, LatentOracle
from .oracles import RemoteOracle
from .requests import Requests
from .worker_group import WorkerGroup


class _Asked:
    """Something with all examples here, of which workers answer some questions about their own.

    What is asked once, or about few examples, is answered here: starts may look at all examples together, and the
    random walk over bounds asks about one at a time, which is not worth a message.

    Parameters
    ----------
    here : LatentOracle or LatentObjective
        The same with all examples.
    requests : Requests
        To workers that each have a ``LatentSearches``.
    """

    def __init__(self, here: Any, requests: Requests) -> None:
        self.here, self.requests = here, requests

    def __getattr__(self, name: str) -> Any:
        return getattr(self.here, name)


class RemoteLatentOracle(_Asked):
    """A ``LatentOracle`` whose examples are with the workers of a group."""

    _fixed: Any = None

    def bound(self, latent: Any) -> RemoteOracle:
        like = self.here.bound(latent)  # complains of values that some examples do not have
        requests = self.requests
        if self._fixed is None or differ(latent, self._fixed).any():
            self._fixed = latent.copy() if isinstance(latent, np.ndarray) else list(latent)
        fixed = self._fixed

        def before() -> None:
            requests.tell(fixed, lambda k: ("fix", requests.cut(fixed, k)))

        oracle = RemoteOracle(requests, self.n_weights, before)
        oracle.releases_gil = like.releases_gil
        return oracle

    def complete(self, w: np.ndarray) -> tuple[Any, np.ndarray]:
        sent = self.requests.sent(w)
        found = self.requests.ask_all(lambda k: ("latent", "complete", sent))
        return _in_order([best for best, _ in found]), np.concatenate([scores for _, scores in found])

    def scores(self, ids: np.ndarray, latent: Any, w: np.ndarray) -> np.ndarray:
        if ids.size < self.requests.workers.size:
            return self.here.scores(ids, latent, w)
        return _asked_about(self.requests, ids, latent, "latent", "scores", w)

    def listed(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        return _listed(self.requests, "latent", w)


class RemoteObjective(_Asked):
    """A ``LatentObjective`` that is looked at by workers."""

    def evaluate(self, w: np.ndarray) -> RemoteEvaluation:
        return RemoteEvaluation(self, w)


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
        return _asked_about(self._requests, ids, latent, "evaluation", "regrets", self._w)

    def listed(self) -> tuple[np.ndarray, np.ndarray] | None:
        return _listed(self._requests, "evaluation", self._w)

    def propose(self, i: int, z: Any, rng: np.random.Generator) -> Any:
        return self._here.propose(i, z, rng)


def _asked_about(requests: Requests, ids: np.ndarray, latent: Any, whom: str, method: str, w: np.ndarray) -> np.ndarray:
    """One number for each of these examples with these latent values, at some weights, in the order asked for."""
    numbers, sent = np.empty(ids.size), requests.sent(w)
    calls = [
        (at, requests.ask(k, whom, method, sent, ids[at] - requests.first[k], chosen(latent, at)))
        for k, at in requests.by_worker(ids)
    ]
    for at, call in calls:
        numbers[at] = call.result()
    return numbers


def _in_order(parts: list[Any]) -> Any:
    """Latent values of all examples: an array where all parts are arrays of numbers, else a list."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return [value for part in parts for value in part]


def _listed(requests: Requests, whom: str, w: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Lists of numbers and where those of each example begin, as one; None if one of the workers cannot list."""
    sent = requests.sent(w)
    parts = requests.ask_all(lambda k: (whom, "listed", sent))
    if any(part is None for part in parts):
        return None
    sizes = np.concatenate([np.diff(first) for _, first in parts])
    return np.concatenate([numbers for numbers, _ in parts]), np.concatenate([[0], np.cumsum(sizes)])


def remote_objective(objective: LatentObjective, workers: WorkerGroup) -> LatentObjective:
    """The same objective with its examples on the workers, each of which has a ``LatentSearches``."""
    requests = Requests(workers, objective.n_examples)
    known: Any = objective
    if hasattr(objective, "with_oracle"):  # its bounds are open problems, made by a latent oracle
        here: LatentOracle = known.oracle
        return known.with_oracle(RemoteLatentOracle(here, requests))
    remote: Any = RemoteObjective(objective, requests)
    return remote
