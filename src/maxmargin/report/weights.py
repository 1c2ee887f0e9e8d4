"""The section of the heaviest weights: what speaks for a class, and what against it."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import numbers
from .markup import Markup, bars, element, note, together
from .tallies import task_of

MOST_CLASSES = 12
SCALE = "A weight counts per unit of its feature: only features of similar scale can be compared."


def weights(estimator: Any) -> Markup:
    """Bars of the largest weights, class by class (the first dozen classes where there are more)."""
    coef = np.atleast_2d(estimator.coef_)
    names = _names(estimator)
    task = task_of(estimator)
    if coef.shape[0] > 1:
        titles = [numbers.label(c) for c in estimator.classes_]
        for_, shown = 5, coef[:MOST_CLASSES]
        panels = [panel(f"for {title}", row, names, for_) for title, row in zip(titles, shown, strict=False)]
    elif task == "classify":
        low, high = (numbers.label(c) for c in estimator.classes_)
        if getattr(estimator, "positive_", None) == estimator.classes_[0]:  # bags: weights are the positive class's
            low, high = high, low
        panels = [panel(f"for {high}", coef[0], names, 10, "up"), panel(f"for {low}", -coef[0], names, 10, "up")]
    else:
        up, down = ("raise the answer", "lower it") if task == "regress" else ("rank higher", "rank lower")
        panels = [panel(up, coef[0], names, 10, "up"), panel(down, coef[0], names, 10, "down")]
    lead = "Blue speaks for the class, red against it." if coef.shape[0] > 1 else None
    remark = SCALE
    if names is None:
        remark += " Features have no names here; they are counted from 0."
    if coef.shape[0] > MOST_CLASSES:
        remark += f" The first {MOST_CLASSES} of {coef.shape[0]} classes are shown."
    used = int(np.count_nonzero(coef.any(axis=0)))
    remark += f" {numbers.count(used)} of {numbers.count(coef.shape[1])} features have a weight other than zero."
    return together(
        element("p", lead) if lead else None,
        element("div", *panels, class_="panels"),
        note(remark),
    )


def _names(estimator: Any) -> Any:
    """What features are called: their names, or their numbers as the data counts them."""
    origin = getattr(estimator, "origin_", {})
    names = getattr(estimator, "feature_names_in_", origin.get("columns"))
    if names is None and origin.get("zero_based") is False:
        names = [f"feature {i + 1}" for i in range(estimator.n_features_in_)]
    return names


def by_class(titles: list[str], coef: np.ndarray, names: Any, most: int = 5) -> Markup:
    """Panels of the features that matter most to each class; ``coef`` has a row for each."""
    shown = zip(titles[:MOST_CLASSES], coef, strict=False)
    remark = SCALE
    if len(titles) > MOST_CLASSES:
        remark += f" The first {MOST_CLASSES} of {len(titles)} are shown."
    return together(
        element("p", "Blue speaks for it, red against it."),
        element("div", *[panel(title, row, names, most) for title, row in shown], class_="panels"),
        note(remark),
    )


def panel(title: str, row: np.ndarray, names: Any, most: int, side: str = "both") -> Markup:
    """The largest weights of one row: those above zero, those below, or whichever are largest.

    Both sides of a row are drawn to one scale.
    """
    size = {"up": row, "down": -row, "both": np.abs(row)}[side]
    most = min(most, row.size)
    found = np.argpartition(-size, most - 1)[:most]
    found = found[np.argsort(-row[found] if side == "both" else -size[found], kind="stable")]
    top = [int(i) for i in found if size[i] > 0]
    entries = [
        (str(names[i]) if names is not None else f"feature {i}", float(row[i]), numbers.number(float(row[i])))
        for i in top
    ]
    inside = bars(entries, "bars", float(np.abs(row).max(initial=0.0))) if entries else element("p", "None.")
    return element("div", element("h3", title), inside, class_="panel")
