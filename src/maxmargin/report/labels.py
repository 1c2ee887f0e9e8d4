"""How well each label is found: precision, recall and what lies between, as a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import numbers
from .markup import Markup, element, table, together

_MOST = 40


def label_table(
    names: Sequence[str], present: np.ndarray, found: np.ndarray, right: np.ndarray, what: str = "there"
) -> Markup:
    """Of every label: how often it is true, how often it was the answer, and how often it was both."""
    precision, recall, both = scores(present, found, right)
    order = np.argsort(-present, kind="stable")[:_MOST]
    rows = [
        [
            names[k], numbers.count(present[k]), numbers.count(found[k]), _share(precision[k]), _share(recall[k]),
            _share(both[k]),
        ]
        for k in order
    ]  # fmt: skip
    head = ["label", what, "answered", "precision", "recall", "F1"]
    more = f"The {_MOST} most frequent of {len(names)} labels are shown." if len(names) > _MOST else None
    return together(table(head, rows, "pairs by-label"), element("p", more, class_="note") if more else None)


def scores(present: np.ndarray, found: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Precision, recall and F1, NaN where nothing was found, or nothing was there."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return right / found, right / present, 2.0 * right / (present + found)


def _share(value: float) -> str:
    return numbers.share(float(value)) if np.isfinite(value) else "–"
