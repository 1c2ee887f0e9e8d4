"""Clusters on the command line."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..cli.grouped import Collected, InMemory, collected
from ..report.content import Data


class Clusters(InMemory):
    """Rows without labels; those that files have are not looked at."""

    unit = "rows"
    measure = "objective"
    helps = "More --max-iter helps."
    uncertified = "k-means ends with an objective"

    def open(self, args: argparse.Namespace, paths: list[str], model: Any = None) -> Collected:
        data = collected(args, paths, model)
        X = data.X.toarray() if sp.issparse(data.X) else data.X
        return Collected(X, None, weight=data.weight)

    def arguments(self, data: Any) -> tuple[Any, ...]:
        return data.X, None, data.weight

    def page(self, data: Any, name: str) -> Data:
        return Data(data.X, name=name)

    def facts(self, model: Any, data: Any) -> dict[str, Any]:
        return {"features": model.n_features_in_, "clusters": len(model.cluster_centers_)}

    def outcome(self, model: Any, interrupted: bool) -> dict[str, Any]:
        reached = model.n_iter_ < model.max_iter and not interrupted
        return {"certificate": None, "tol": model.tol, "converged": reached, "objective": model.inertia_}

    def rows(self, model: Any, facts: dict[str, Any]) -> list[tuple[str, str]]:
        return [
            *super().rows(model, facts),
            ("clusters", str(facts["clusters"])),
            ("objective", f"{facts['objective']:.8g}, the sum of squared distances to the centres"),
        ]

    def about(self, model: Any) -> str:
        return ""

    def score(self, args: argparse.Namespace, model: Any, data: Any) -> dict[str, Any]:
        return {"score": self.measure, "value": -float(np.asarray(model.score(data.X))), self.unit: self.count(data)}

    def in_words(self, score: dict[str, Any]) -> str:
        return f"{score['value']:.8g} on {score[self.unit]} rows"

    def next_steps(self, args: argparse.Namespace, model: str, data: str) -> list[tuple[str, str]]:
        return [step for step in super().next_steps(args, model, data) if step[0] != "prove it again"]
