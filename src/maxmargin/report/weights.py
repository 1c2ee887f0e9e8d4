"""The section of the heaviest weights: what speaks for a class, and what against it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from . import numbers
from .markup import Markup, bars, element, note, together
from .tallies import task_of

if TYPE_CHECKING:
    from ..estimators.bags import LatentSVC
    from ..estimators.linear import LinearEstimator

Names = Sequence[str] | np.ndarray | None
MOST_CLASSES = 12
SCALE = "A weight counts per unit of its feature: only features of similar scale can be compared."


def weights(estimator: LinearEstimator | LatentSVC) -> Markup:
    """Bars of the largest weights, class by class (the first dozen classes where there are more)."""
    coef, names, task = np.atleast_2d(estimator.coef_), _names(estimator), task_of(estimator)
    used = int(np.count_nonzero(coef.any(axis=0)))
    unnamed = " Features have no names here; they are counted from 0." if names is None else ""
    counted = f" {numbers.count(used)} of {numbers.count(coef.shape[1])} features have a weight other than zero."
    if coef.shape[0] > 1:
        titles = [f"for {numbers.label(c)}" for c in estimator.classes_]
        return by_class(titles, coef, names, "the class", SCALE + unnamed, " classes", counted)
    if task == "classify":
        low, high = (numbers.label(c) for c in estimator.classes_)
        if getattr(estimator, "positive_", None) == estimator.classes_[0]:  # bags: weights are the positive class's
            low, high = high, low
        panels = [panel(f"for {high}", coef[0], names, 10, "up"), panel(f"for {low}", -coef[0], names, 10, "up")]
    else:
        up, down = ("raise the answer", "lower it") if task == "regress" else ("rank higher", "rank lower")
        panels = [panel(up, coef[0], names, 10, "up"), panel(down, coef[0], names, 10, "down")]
    return together(element("div", *panels, class_="panels"), note(SCALE + unnamed + counted))


def _names(estimator: LinearEstimator | LatentSVC) -> Names:
    """What features are called: their names, or their numbers as the data counts them."""
    origin = getattr(estimator, "origin_", {})
    names = getattr(estimator, "feature_names_in_", origin.get("columns"))
    if names is None and origin.get("zero_based") is False:
        names = [f"feature {i + 1}" for i in range(estimator.n_features_in_)]
    return names


def by_class(
    titles: list[str],
    coef: np.ndarray,
    names: Names,
    what: str = "it",
    remark: str = SCALE,
    many: str = "",
    after: str = "",
) -> Markup:
    """Panels of the features that matter most to each class; ``coef`` has a row for each."""
    panels = [panel(title, row, names, 5) for title, row in zip(titles[:MOST_CLASSES], coef, strict=False)]
    first = f" The first {MOST_CLASSES} of {len(titles)}{many} are shown." if len(titles) > MOST_CLASSES else ""
    lead = element("p", f"Blue speaks for {what}, red against it.")
    return together(lead, element("div", *panels, class_="panels"), note(remark + first + after))


def panel(title: str, row: np.ndarray, names: Names, most: int, side: str = "both") -> Markup:
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
