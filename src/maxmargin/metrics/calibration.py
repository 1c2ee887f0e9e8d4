"""How far probabilities are from frequencies: of what was said with 80 % confidence, 80 % should be right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..validation import check_unmasked, one_of, shown, whole


class Bins(NamedTuple):
    """Answers of similar confidence: how many there are, their mean confidence, and the share that is right."""

    size: np.ndarray
    confidence: np.ndarray
    right: np.ndarray


def calibration_error(
    y_true: Any,
    probabilities: Any,
    classes: Iterable[Any] | None = None,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
) -> float:
    """Expected calibration error: how far the confidence of answers is from the share of them that is right.

    Answers are put into bins by their confidence; the result is the mean difference between the mean confidence of a
    bin and the share of its answers that are right, weighted by the number of answers.

    Parameters
    ----------
    y_true : list of lists of labels, array of labels, or bool array (n,)
        What is true of each token or example; without ``classes`` whether what was said is true.
    probabilities : list of arrays (n_tokens, n_classes), array (n, n_classes), or array (n,)
        Of each label, as ``predict_proba`` gives them: the most probable one is the answer, its probability the
        confidence. Without ``classes`` the probability that what was said is true.
    classes : array (n_classes,) or None
        The labels in the order of the columns, such as ``tagger.classes_``.
    n_bins : int
    strategy : {"uniform", "quantile"}
        Bins of equal width, or with equally many answers. Where most answers are sure, the second looks closer.

    Returns
    -------
    float
        0 to 1; 0 is perfect. It is above 0 by chance, too, the more so the fewer answers there are in a bin.

    Examples
    --------
    >>> calibration_error([True, True, False, True], [0.75, 0.75, 0.75, 0.75])
    0.0
    >>> calibration_error(["a", "b"], [[0.9, 0.1], [0.6, 0.4]], classes=["a", "b"])
    0.35
    """
    bins = reliability_bins(y_true, probabilities, classes, n_bins=n_bins, strategy=strategy)
    return float(np.sum(bins.size * np.abs(bins.confidence - bins.right)) / bins.size.sum())


def reliability_bins(
    y_true: Any,
    probabilities: Any,
    classes: Iterable[Any] | None = None,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
) -> Bins:
    """The bins of :func:`calibration_error` that are not empty, by confidence.

    Parameters
    ----------
    y_true, probabilities, classes, n_bins, strategy
        As for :func:`calibration_error`.

    Returns
    -------
    named tuple of arrays
        ``size``, ``confidence`` and ``right``: how many answers are in a bin, their mean confidence, and the share of
        them that is right.

    Examples
    --------
    >>> reliability_bins([True, False, True], [0.5, 0.6, 1.0], n_bins=2).size.tolist()
    [1, 2]
    """
    whole("n_bins", n_bins)
    one_of("strategy", strategy, ("uniform", "quantile"))
    confidence, right = _binary(y_true, probabilities) if classes is None else _top(y_true, probabilities, classes)
    order = np.argsort(confidence, kind="stable")
    confidence, right = confidence[order], right[order]
    if strategy == "quantile":
        edges = np.linspace(0, confidence.size, n_bins + 1).round().astype(int)[1:-1]
    else:
        edges = np.searchsorted(confidence, np.linspace(0.0, 1.0, n_bins + 1)[1:-1], side="right")
    pairs = zip(np.split(confidence, edges), np.split(right, edges), strict=True)
    parts = [(part.size, part.mean(), true.mean()) for part, true in pairs if part.size]
    return Bins(*(np.array(column) for column in zip(*parts, strict=True)))


def _binary(y_true: Any, probabilities: Any) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of statements, and whether they are true."""
    check_unmasked("probabilities", probabilities)
    try:
        p, right = np.asarray(probabilities, dtype=np.float64), np.asarray(y_true)
    except (TypeError, ValueError):
        p, right = np.zeros((0, 0)), np.zeros(0)
    if p.ndim != 1:
        raise ValueError(
            "classes is None: then probabilities must be one number for each example. Give classes, the labels of the "
            "columns, such as tagger.classes_."
        )
    if right.shape != p.shape or not p.size or not np.isin(right, (0, 1)).all():
        raise ValueError(
            f"y_true must say True or False of each of the {p.size} probabilities, at least one; got {shown(y_true)}. "
            "For labels, give classes."
        )
    return _checked(p), right.astype(np.float64)


def _top(y_true: Any, probabilities: Any, classes: Iterable[Any]) -> tuple[np.ndarray, np.ndarray]:
    """The probability of the most probable label, and whether it is the true one."""
    names = list(classes)
    tables, labels = list(probabilities), _labels(y_true)
    if tables and np.ndim(tables[0]) == 1:  # one table: its rows are examples
        tables, labels = [tables], [labels]
    if len(tables) != len(labels) or not tables:
        raise ValueError(f"y_true has {len(labels)} entries, probabilities has {len(tables)}. Give one for each.")
    confidence, right = [], []
    for i, (table, y) in enumerate(zip(tables, labels, strict=True)):
        p, true = np.asarray(table, dtype=np.float64), _labels(y)
        if p.shape != (len(true), len(names)):
            raise ValueError(
                f"probabilities[{i}] has shape {p.shape}, there are {len(true)} labels in y_true and {len(names)} "
                "classes. Give one row for each label, with a column for each class."
            )
        confidence.append(_checked(p).max(axis=1, initial=0.0))
        right.append([names[k] == label for k, label in zip(p.argmax(axis=1).tolist(), true, strict=True)])
    found = np.concatenate(confidence)
    if not found.size:
        raise ValueError("y_true has no labels. Give at least one.")
    return found, np.concatenate(right).astype(np.float64)


def _labels(y: Any) -> Sequence[Any]:
    if not isinstance(y, Iterable):
        raise TypeError(
            f"y_true must hold labels, got {type(y).__name__}. Give the labels of X, tagger.predict_proba(X) and "
            "tagger.classes_."
        )
    return y.tolist() if hasattr(y, "tolist") else list(y)


def _checked(p: np.ndarray) -> np.ndarray:
    if not ((p >= 0.0) & (p <= 1.0 + 1e-9)).all():
        raise ValueError(
            "probabilities must be numbers from 0 to 1. Scores and margins are none: call calibrate first."
        )
    return p
