"""Labels at positions: what chains and graphs share. Labels are whole numbers 0 … K−1, losses add over positions."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..validation import one_of, shown, switch, whole

LOSSES = ("hamming", "normalized_hamming")


def as_weights(w: Any, n_weights: int) -> np.ndarray:
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


def sizes(model: Any, *names: str) -> tuple[int, ...]:
    """The sizes of a model that knows them."""
    found = tuple(getattr(model, name) for name in names)
    if None in found:
        raise ValueError(f"This model does not know its sizes: give {' and '.join(names)}, or use sized(X, Y).")
    return found


def check_switches(**switches: Any) -> None:
    """Whether a model has some weights or not."""
    for name, value in switches.items():
        switch(name, value)


def check_loss(cost: Any, n_labels: int | None, name: str = "loss", known: Sequence[str] = LOSSES) -> None:
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


def n_labels(Y: Sequence[Any], cost: Any) -> int:
    """How many labels there are: as the table of costs says, or one more than the largest label."""
    if not isinstance(cost, str):
        return len(cost)
    return 1 + max((int(check_labels(y, np.inf, f"Y[{i}]").max(initial=0)) for i, y in enumerate(Y)), default=0)


def joined(models: Sequence[Any], same: Sequence[str], most: Sequence[str]) -> Any:
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


def costs(cost: Any, n_labels: int, length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A table true × answered, and a factor for each example."""
    table = 1.0 - np.eye(n_labels) if isinstance(cost, str) else np.ascontiguousarray(cost, dtype=np.float64)
    normalized = isinstance(cost, str) and cost == "normalized_hamming"
    return table, 1.0 / length if normalized else np.ones(length.size)


def loss(cost: Any, y: Any, y_hat: Any) -> float:
    """The loss of answering ``y_hat`` where ``y`` is true."""
    y, y_hat = np.asarray(y), np.asarray(y_hat)
    if y.shape != y_hat.shape:
        raise ValueError(f"Labels of {y.size} positions cannot be compared with labels of {y_hat.size}.")
    if not isinstance(cost, str):
        return float(np.asarray(cost)[y, y_hat].sum())
    wrong = float(np.count_nonzero(y != y_hat))
    return wrong / y.size if cost == "normalized_hamming" else wrong


def check_labels(y: Any, n_labels: float, what: str = "y") -> np.ndarray:
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


def concatenated(Y: Sequence[Any], length: np.ndarray, n_labels: int) -> np.ndarray:
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
