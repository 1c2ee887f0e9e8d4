"""Labels at positions: what chains and graphs share. Labels are whole numbers 0 … K−1, losses add over positions."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..data.sequences import Sequences
from ..kernels import chains as kernels
from ..problem import Rivals, Rows
from ..validation import as_float, one_of, shown, switch, whole
from .rounding import LabellingErrors

if TYPE_CHECKING:
    from .chain import Chain
    from .graph import Graph

ModelT = TypeVar("ModelT")

LOSSES = ("hamming", "normalized_hamming")
NO_LABELS = np.empty(0, np.int32)
_MOST_LABELS = 1_000_000  # what nobody means


def as_weights(w: object, n_weights: int) -> np.ndarray:
    """Weights as kernels read them: they would read past anything shorter."""
    w = np.ascontiguousarray(w, dtype=np.float64)
    if w.shape != (n_weights,):
        raise ValueError(f"The model has {n_weights} weights, got an array of shape {w.shape}.")
    return w


def check_sizes(**sizes: Any) -> None:
    """Sizes of a model: whole numbers, or None for those that data will tell."""
    for name, size in sizes.items():
        if size is not None:
            whole(name, size, 0 if name == "n_edge_features" else 1)


def sizes(model: object, *names: str) -> tuple[int, ...]:
    """The sizes of a model that knows them."""
    found = tuple(getattr(model, name) for name in names)
    if None in found:
        raise ValueError(f"This model does not know its sizes: give {' and '.join(names)}, or use sized(X, Y).")
    return found


def check_switches(**switches: Any) -> None:
    """Whether a model has some weights or not."""
    for name, value in switches.items():
        switch(name, value)


def check_loss(cost: object, n_labels: int | None, name: str = "loss", known: Sequence[str] = LOSSES) -> None:
    """A known name, or a table of costs with zeros on the diagonal."""
    if isinstance(cost, str) and known:
        one_of(name, cost, known, " or a table of costs")
        return
    table = np.asarray(cost)
    if table.dtype.kind not in "iufb":
        raise ValueError(f"{name} must be a table of numbers, true × answered, got {shown(cost)}.")
    if table.ndim != 2 or table.shape[0] != table.shape[1] or (n_labels is not None and table.shape[0] != n_labels):
        wanted = "square" if n_labels is None else f"{n_labels} × {n_labels}"
        raise ValueError(f"{name}: a table of losses must be {wanted}, true × answered; got shape {table.shape}.")
    if not np.isfinite(table).all() or (table < 0).any() or np.diagonal(table).any():
        raise ValueError(f"{name}: a table of losses must be finite and not negative, with zeros on the diagonal.")


def check_bias(bias: object) -> float:
    """The value of one more feature, 0 for none."""
    if not isinstance(bias, int | float | np.number) or not np.isfinite(as_float(bias)):
        raise ValueError(f"bias must be a finite number, 0 for none; got {shown(bias)}.")
    return float(bias)


def n_labels(Y: Sequence[object], cost: Any) -> int:
    """How many labels there are: as the table of costs says, or one more than the largest label."""
    if not isinstance(cost, str):
        return len(cost)
    largest = [int(check_labels(y, np.inf, f"Y[{i}]").max(initial=0)) for i, y in enumerate(Y)]
    most = max(largest, default=0)
    if most >= _MOST_LABELS:
        raise ValueError(
            f"Y[{largest.index(most)}] has the label {most}: labels are numbers from 0 on, and there are weights for "
            "all of them and their pairs. Number those that occur (SequenceSVM does), or give n_labels."
        )
    return 1 + most


def joined(models: Sequence[ModelT], same: Sequence[str], most: Sequence[str]) -> ModelT:
    """A copy of the first model with the sizes of all: some must be the same in all, of others the largest counts."""
    whole = copy.copy(models[0])
    for name in same:
        sizes = [getattr(model, name) for model in models]
        if len(set(sizes)) > 1:
            raise ValueError(
                f"{name} must be the same in all parts of the data, it is {sizes[-1]} here and was {sizes[0]}."
            )
    for name in most:
        setattr(whole, name, max(getattr(model, name) for model in models))
    return whole


def costs(cost: object, n_labels: int, length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A table true × answered, and a factor for each example."""
    table = 1.0 - np.eye(n_labels) if isinstance(cost, str) else np.ascontiguousarray(cost, dtype=np.float64)
    normalized = isinstance(cost, str) and cost == "normalized_hamming"
    return table, 1.0 / length if normalized else np.ones(length.size)


def loss(cost: object, y: object, y_hat: object) -> float:
    """The loss of answering ``y_hat`` where ``y`` is true."""
    y, y_hat = np.asarray(y), np.asarray(y_hat)
    if y.shape != y_hat.shape:
        raise ValueError(f"Labels of {y.size} positions cannot be compared with labels of {y_hat.size}.")
    if not isinstance(cost, str):
        return float(np.asarray(cost)[y, y_hat].sum())
    wrong = float(np.count_nonzero(y != y_hat))
    return wrong / y.size if cost == "normalized_hamming" else wrong


def check_labels(y: object, n_labels: float, what: str = "y") -> np.ndarray:
    """Labels as an integer array, in range."""
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.dtype.kind not in "iub":
        raise ValueError(
            f"{what} must be a list of whole numbers, got {labels.dtype} of shape {labels.shape}. Turn other labels "
            "into numbers first (SequenceSVM and LatentSVC do that for you), and tables into lists with .ravel()."
        )
    if labels.size and not (labels.min() >= 0 and labels.max() < n_labels):
        allowed = f"allowed are 0 to {n_labels - 1}" if np.isfinite(n_labels) else "they are counted from 0"
        raise ValueError(f"{what} has labels from {labels.min()} to {labels.max()}, {allowed}.")
    return labels.astype(np.int64)


def starts(offsets: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Where the labels of each of these examples begin when they stand one after another, and where the last end."""
    return np.concatenate([[0], np.cumsum(offsets[ids + 1] - offsets[ids])])


def split(flat: np.ndarray, first: np.ndarray) -> list[np.ndarray]:
    """Labels that stand one after another, by example."""
    return [flat[a:b] for a, b in pairwise(first.tolist())]


def concatenated(Y: Sequence[object], length: np.ndarray, n_labels: int) -> np.ndarray:
    """All labels one after another, checked against the number of positions of each example."""
    if len(Y) != length.size:
        raise ValueError(f"X has {length.size} examples, Y has {len(Y)}. Give one answer for each.")
    parts = []
    for i, y in enumerate(Y):
        labels = check_labels(y, n_labels, f"Y[{i}]")
        if labels.size != length[i]:
            raise ValueError(f"Example {i} has {length[i]} positions, but {labels.size} labels. Give one for each.")
        parts.append(labels)
    return np.concatenate(parts).astype(np.int32)


class LabellingOracle:
    """A chain or a graph bound to data: what searches over labels at positions share.

    Without ``Y`` the search is for the highest score, as in prediction.
    """

    errors: LabellingErrors

    def __init__(self, model: Chain | Graph, X: Sequences, Y: Sequence[object] | None) -> None:
        self.model = model
        self.X = X
        self.n_examples, self.n_weights = len(X), model.n_weights
        self.n_labels, _ = model._sizes()
        self.first_token, self.length = X.offsets, np.diff(X.offsets)
        self.tokens = (X.indptr, X.indices, X.values)
        self.y = NO_LABELS if Y is None else concatenated(Y, self.length, self.n_labels)
        self.cost, self.scale = costs(model.cost, self.n_labels, self.length)

    def search(self, ids: np.ndarray, w: np.ndarray, first: np.ndarray, flat: np.ndarray) -> np.ndarray | None:
        """Fill ``flat`` with the best labels of some examples, those of the p-th from ``first[p]`` on.

        Returns by how much better ones may exceed them, where they may.
        """
        raise NotImplementedError

    def differences(self, ids: np.ndarray, first: np.ndarray, flat: np.ndarray, indptr: np.ndarray) -> Any:
        """Indices and data of rows φ(x, y) − φ(x, labels); ``indptr`` is filled."""
        raise NotImplementedError

    def check_answers(self, first: np.ndarray, flat: np.ndarray) -> None:
        """Complain about labels that are no answer of this model."""

    def best(self, ids: np.ndarray, w: np.ndarray) -> list[np.ndarray]:
        """The best labels of some examples, costs included where the true labels are known."""
        first = starts(self.first_token, ids)
        self.search(ids, as_weights(w, self.n_weights), first, flat := np.empty(first[-1], np.int32))
        return split(flat, first)

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> Rivals:
        first = starts(self.first_token, ids)
        excess = self.search(ids, as_weights(w, self.n_weights), first, flat := np.empty(first[-1], np.int32))
        found = self._planes(ids, first, flat)
        return replace(found, excess=excess, rounding=partial(self.errors.of_search, ids, w))

    def planes(self, ids: np.ndarray, labels: Sequence[Any]) -> Rivals:
        first = starts(self.first_token, ids)
        if not np.array_equal(np.fromiter(map(len, labels), np.int64, len(labels)), np.diff(first)):
            raise ValueError("These answers do not belong to this data: their lengths differ.")
        flat = check_labels(np.concatenate([NO_LABELS, *labels]), self.n_labels, "An answer").astype(np.int32)
        self.check_answers(first, flat)
        return self._planes(ids, first, flat)

    def _planes(self, ids: np.ndarray, first: np.ndarray, flat: np.ndarray) -> Rivals:
        indptr = np.empty(ids.size + 1, np.int64)
        indices, data = self.differences(ids, first, flat, indptr)
        losses = kernels.losses(self.first_token, self.y, self.cost, self.scale, ids, flat, first)
        if self.model.rescaling == "slack":
            data = data.astype(np.float64)
            data[: indptr[-1]] *= np.repeat(losses, np.diff(indptr))
        rows = Rows(indptr, indices, data, ids.size, self.n_weights)
        return Rivals(split(flat, first), rows, losses, errors=self.errors.of_rows(ids))
