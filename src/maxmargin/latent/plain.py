"""A latent model of the user's as an oracle for whole data sets, one example at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..constraints.oracle import PlainOracle, as_vector, count, failing, is_exact
from ..protocols import LatentModel, LatentOracle, OracleError
from ..validation import shown


def latent_oracle_for(model: Any, X: Any, Y: Any) -> LatentOracle:
    """The model's own oracle for whole data sets where it has one, else one example at a time."""
    return model.latent_oracle(X, Y) if hasattr(model, "latent_oracle") else PlainLatentOracle(model, X, Y)


class Completed:
    """A latent model with its latent values fixed, as a plain ``Model``: truths are pairs (y, z) too."""

    def __init__(self, model: LatentModel) -> None:
        self.model = model
        self.n_weights = int(model.n_weights)
        self.exact = is_exact(model)
        self.called = getattr(model, "called", {})

    def features(self, x: object, answer: object) -> Any:
        return self.model.features(x, answer)

    def loss(self, truth: Any, answer: Any) -> float:
        return self.model.loss(truth[0], answer)

    def predict(self, x: Any, w: np.ndarray) -> Any:
        return self.model.predict(x, w)

    def most_violated(self, x: object, truth: Any, w: np.ndarray) -> Any:
        return self.model.most_violated(x, truth[0], w)


class PlainLatentOracle:
    """A latent model written in plain Python, bound to data: its methods are called example by example.

    Parameters
    ----------
    model : LatentModel
    X, Y : sequences
        Inputs and true labels.
    """

    def __init__(self, model: LatentModel, X: Sequence[object], Y: Sequence[Any]) -> None:
        self.model = model
        self.X, self.Y = X, Y
        self.n_examples = count(X)
        self.n_weights = int(model.n_weights)
        self.exact = is_exact(model)
        self._can_list = hasattr(model, "latent_scores")

    def bound(self, latent: object) -> PlainOracle:
        return PlainOracle(Completed(self.model), self.X, self.truths(np.arange(self.n_examples), latent))

    def truths(self, ids: np.ndarray, latent: Any) -> list[Any]:
        return [(self.Y[i], z) for i, z in zip(ids.tolist(), latent, strict=True)]

    def complete(self, w: np.ndarray) -> tuple[Any, np.ndarray]:
        w = _guarded(w)
        best = self._sequence([self._ask("complete", i, self.Y[i], w) for i in range(self.n_examples)])
        return best, self.scores(np.arange(self.n_examples), best, w)

    def scores(self, ids: np.ndarray, latent: Any, w: np.ndarray) -> np.ndarray:
        scores = np.empty(ids.size)
        for p, (i, z) in enumerate(zip(ids.tolist(), latent, strict=True)):
            with failing(self.model, f"features failed on example {i} with latent value {shown(z)}", i):
                features = as_vector(self.model.features(self.X[i], (self.Y[i], z)), self.n_weights)
            scores[p] = np.asarray(features @ w).item()
        return scores

    def listed(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        if not self._can_list:
            return None
        w = _guarded(w)
        parts = []
        for i in range(self.n_examples):
            scores = np.asarray(self._ask("latent_scores", i, self.Y[i], w), dtype=np.float64).ravel()
            if not scores.size:
                raise OracleError(f"Example {i} has no latent value: latent_scores gave none for its label.", i)
            if not np.isfinite(scores).all():
                raise OracleError(f"latent_scores on example {i} gave scores that are not finite.", i)
            parts.append(scores)
        return np.concatenate(parts), np.concatenate([[0], np.cumsum([part.size for part in parts])])

    def propose(self, i: int, z: object, w: np.ndarray, rng: np.random.Generator) -> Any:
        if not hasattr(self.model, "propose"):
            raise ValueError(
                f"{type(self.model).__name__} can neither list its latent values (latent_scores) nor change one a "
                "little (propose): random bounds need one of the two. Use bound='cccp', or define it."
            )
        return self._ask("propose", i, self.Y[i], z, _guarded(w), rng)

    def initial(self) -> Any:
        """What the model's ``initial_all`` or ``initial`` says, if it has one."""
        if hasattr(self.model, "initial_all"):
            values = list(self.model.initial_all(self.X, self.Y))
            if len(values) != self.n_examples:
                raise ValueError(f"initial_all gave {len(values)} latent values for {self.n_examples} examples.")
            return self._sequence(values)
        if hasattr(self.model, "initial"):
            return self._sequence([self._ask("initial", i, self.Y[i]) for i in range(self.n_examples)])
        return None

    def _sequence(self, values: list[Any]) -> Any:
        for i, z in enumerate(values):
            if z is None:
                raise OracleError(f"Example {i} has no latent value: complete or initial gave None.", i)
            if self._can_list and not isinstance(z, int | np.integer):
                raise OracleError(
                    f"The latent value of example {i} is {shown(z)}. A model with latent_scores lists all values, and "
                    "each is known by its number in that list: complete and initial must give whole numbers.",
                    i,
                )
        return np.array(values, np.int64) if self._can_list else values

    def _ask(self, method: str, i: int, *args: Any) -> Any:
        with failing(self.model, f"{method} failed on example {i}", i):
            return getattr(self.model, method)(self.X[i], *args)


def _guarded(w: np.ndarray) -> np.ndarray:
    w = w.view()
    w.flags.writeable = False  # they are the solver's own
    return w
