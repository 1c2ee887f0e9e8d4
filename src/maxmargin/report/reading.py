"""One pass over data with a model at hand: its answers chunk by chunk, and what the data looks like on the way."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..protocols import Chunk, Source
from . import numbers
from .tallies import Tally, tally_for, task_of

# Labels are counted by value up to here: beyond it they are measurements, or too many to list.
_MOST_LABELS = 10_000


@dataclass
class Survey:
    """What a pass has seen of the data."""

    rows: int = 0
    features: int = 0
    stored: int = 0
    """Values other than zero."""
    longest: int = 0
    """Most of them in one row."""
    labels: Counter[str] = field(default_factory=Counter)
    labels_whole: bool = True
    """Whether every label is in ``labels``."""
    label_range: tuple[float, float] | None = None
    weighted: bool = False
    left_out: tuple[int, list[str]] = (0, [])

    def add(self, chunk: Chunk) -> None:
        self.rows += len(chunk)
        self.features = max(self.features, chunk.x.shape[1])
        filled = np.diff(chunk.x.indptr) if sp.issparse(chunk.x) else np.count_nonzero(chunk.x, axis=1)
        self.stored += int(filled.sum())
        self.longest = max(self.longest, int(filled.max(initial=0)))
        self.weighted |= chunk.weight is not None
        if chunk.y is not None and len(chunk):
            self._add_labels(np.asarray(chunk.y))

    def _add_labels(self, y: np.ndarray) -> None:
        if y.dtype.kind in "biuf":
            low, high = float(y.min()), float(y.max())
            before = self.label_range or (low, high)
            self.label_range = min(low, before[0]), max(high, before[1])
        if self.labels_whole:
            values, times = np.unique(y, return_counts=True)
            if values.size + len(self.labels) > _MOST_LABELS:
                self.labels_whole = False
                self.labels.clear()
                return
            for value, n in zip(values, times, strict=True):
                self.labels[numbers.label(value)] += int(n)


def scored(estimator: Any, source: Source, survey: Survey) -> Iterator[tuple[Chunk, np.ndarray]]:
    """Every chunk, as wide as the model, with the model's scores; ``survey`` sees it as it came.

    Features that the model does not know have no weight and are left out; those that the data lacks are zero.
    """
    for chunk in source.chunks():
        if not len(chunk):
            continue
        survey.add(chunk)
        fitting = replace(chunk, x=to_width(chunk.x, estimator.n_features_in_))
        yield fitting, _scores(estimator, fitting.x)
    survey.left_out = left_out(source)


def _scores(estimator: Any, x: Any) -> np.ndarray:
    score = estimator.decision_function if task_of(estimator) == "classify" else estimator.predict
    with warnings.catch_warnings():
        # Sources give columns without names, also to models that were trained on a data frame.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return np.asarray(score(x))


def measure(estimator: Any, source: Source) -> tuple[Tally, Survey]:
    """Answers against labels, and what the data looks like, in one pass."""
    tally, survey = tally_for(estimator), Survey()
    for chunk, scores in scored(estimator, source, survey):
        if chunk.y is not None:
            tally.add(chunk, scores)
    return tally, survey


def to_width(x: Any, width: int) -> Any:
    """The same rows with as many columns as wanted: cut off, or filled with zeros.

    >>> to_width(np.ones((1, 2)), 3)
    array([[1., 1., 0.]])
    """
    if x.shape[1] == width:
        return x
    if sp.issparse(x):
        if x.shape[1] > width:
            return x[:, :width]
        return sp.csr_matrix((x.data, x.indices, x.indptr), shape=(x.shape[0], width))
    return x[:, :width] if x.shape[1] > width else np.pad(x, ((0, 0), (0, width - x.shape[1])))


def left_out(source: Any) -> tuple[int, list[str]]:
    """How many rows the last pass over a source could not use, and what it says of them (of the first, if many)."""
    said = [str(entry) for entry in getattr(source, "skipped", None) or ()]
    return int(getattr(source, "n_skipped", len(said))), said
