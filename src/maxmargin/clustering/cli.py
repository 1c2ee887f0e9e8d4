"""Clusters on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..cli.grouped import Collected, InMemory

if TYPE_CHECKING:
    from .estimator import GMMKMeans


class Clusters(InMemory):
    """Rows without labels; those that files have are not looked at."""

    measure = "objective"
    helps = "More --max-iter helps."
    uncertified = "k-means ends with an objective"
    model: GMMKMeans

    def open(self, paths: list[str]) -> Collected:
        data = self.collected(paths)
        return Collected(data.X.toarray() if sp.issparse(data.X) else data.X, None, weight=data.weight)

    def arguments(self, data: Collected) -> tuple[Any, ...]:
        return data.X, None, data.weight

    def facts(self, data: Collected) -> dict[str, Any]:
        return {"features": self.width(), "clusters": len(self.model.cluster_centers_)}

    def outcome(self, interrupted: bool) -> dict[str, Any]:
        reached = self.model.n_iter_ < self.model.max_iter and not interrupted
        return {"certificate": None, "tol": self.model.tol, "converged": reached, "objective": self.model.inertia_}

    def rows(self, facts: dict[str, Any]) -> list[tuple[str, str]]:
        return [
            *super().rows(facts),
            ("clusters", str(facts["clusters"])),
            ("objective", f"{facts['objective']:.8g}, the sum of squared distances to the centres"),
        ]

    def score(self, data: Collected) -> dict[str, Any]:
        return {"score": self.measure, "value": -float(np.asarray(self.model.score(data.X))), self.unit: len(data)}

    def in_words(self, score: dict[str, Any]) -> str:
        return f"{score['value']:.8g} on {score[self.unit]} rows"
