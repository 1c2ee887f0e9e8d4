"""The content of a linear model: answers beside labels, and the heaviest weights, for a class and against it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..protocols import Source
from . import numbers
from .answers import answers
from .content import ReportContent
from .curves import convergence
from .markup import Markup, bars, count_bars, element, facts, note, together
from .tallies import Survey, measure, tally_for, task_of

if TYPE_CHECKING:
    from ..estimators.bags import LatentSVC
    from ..estimators.linear import LinearEstimator

Names = Sequence[str] | np.ndarray | None
MOST_CLASSES = 12
SCALE = "A weight counts per unit of its feature: only features of similar scale can be compared."
_MOST_LABELS = 20


def content(estimator: LinearEstimator, source: Source | None, on: str) -> ReportContent:
    """``source`` is read once, chunk by chunk."""
    task = task_of(estimator)
    tally, survey = measure(estimator, source) if source is not None else (tally_for(estimator), None)
    told = ReportContent(tally.kind, history=convergence(estimator.history_, estimator.tol))
    if tally.score is not None:
        told.tiles.append((f"{tally.name} on {on}", numbers.score(task, tally.score)))
    if survey is not None:
        told.tiles.append((f"rows of {on}", numbers.count(survey.rows)))
        told.facts = _data_summary(survey, task)
    told.tiles.append(("features", numbers.count(estimator.n_features_in_)))
    if task == "classify":
        told.tiles.append(("classes", numbers.count(estimator.classes_.size)))
    if tally.rows:
        told.sections.append((f"Answers on {on}", answers(tally)))
    told.sections.append(("Heaviest weights", weights(estimator)))
    told.hint = (
        "With data there are answers beside labels, too: maxmargin report MODEL DATA, or model.report(path, X, y)"
    )
    return told


def _data_summary(survey: Survey, task: str) -> Markup:
    """Sizes, labels and what was left out."""
    per_row = survey.stored / max(survey.rows, 1)
    known: list[tuple[str, Markup | str]] = [
        ("rows", numbers.count(survey.rows)),
        ("features", numbers.count(survey.features)),
        ("values other than zero", f"{per_row:.1f} per row, at most {numbers.count(survey.longest)}"),
        ("filled", numbers.share(survey.stored / max(survey.rows * survey.features, 1))),
    ]
    if task != "classify" and survey.label_range:
        low, high = survey.label_range
        known.append(("labels", f"from {numbers.number(low)} to {numbers.number(high)}"))
    if survey.weighted:
        known.append(("weights of rows", "yes"))
    n, said = survey.left_out
    listed = element("details", element("summary", numbers.count(n)), *[element("p", text) for text in said[:10]])
    known.append(("rows left out", listed if n else "none"))
    return together(facts(*known), _labels(survey) if task != "regress" else None)


def _labels(survey: Survey) -> Markup | None:
    if not survey.labels or not survey.labels_whole:
        return None
    most = survey.labels.most_common(_MOST_LABELS)
    others = len(survey.labels) - len(most)
    return together(
        element("h3", "Labels"),
        count_bars(most, survey.rows),
        note(f"and {numbers.count(others)} more." if others else None),
    )


def weights(estimator: LinearEstimator | LatentSVC) -> Markup:
    """Bars of the largest weights, class by class (the first dozen classes where there are more)."""
    coef, names, task = np.atleast_2d(estimator.coef_), _names(estimator), task_of(estimator)
    used = int(np.count_nonzero(coef.any(axis=0)))
    remark = SCALE + (" Features have no names here; they are counted from 0." if names is None else "")
    remark += f" {numbers.count(used)} of {numbers.count(coef.shape[1])} features have a weight other than zero."
    if coef.shape[0] > 1:
        titles = [f"for {numbers.label(c)}" for c in estimator.classes_]
        return by_class(titles, coef, names, "the class", remark)
    if task == "classify":
        low, high = (numbers.label(c) for c in estimator.classes_)
        if getattr(estimator, "positive_", None) == estimator.classes_[0]:  # bags: weights are the positive class's
            low, high = high, low
        panels = [panel(f"for {high}", coef[0], names, 10, "up"), panel(f"for {low}", -coef[0], names, 10, "up")]
    else:
        up, down = ("raise the answer", "lower it") if task == "regress" else ("rank higher", "rank lower")
        panels = [panel(up, coef[0], names, 10, "up"), panel(down, coef[0], names, 10, "down")]
    return together(element("div", *panels, class_="panels"), note(remark))


def _names(estimator: LinearEstimator | LatentSVC) -> Names:
    """What features are called: their names, or their numbers as the data counts them."""
    origin = getattr(estimator, "origin_", {})
    names = getattr(estimator, "feature_names_in_", origin.get("columns"))
    if names is None and origin.get("zero_based") is False:
        names = [f"feature {i + 1}" for i in range(estimator.n_features_in_)]
    return names


def by_class(titles: list[str], coef: np.ndarray, names: Names, what: str = "it", remark: str = SCALE) -> Markup:
    """Panels of the features that matter most to each class; ``coef`` has a row for each."""
    panels = [panel(title, row, names, 5) for title, row in zip(titles[:MOST_CLASSES], coef, strict=False)]
    if len(titles) > MOST_CLASSES:
        remark += f" The first {MOST_CLASSES} of {len(titles)} classes are shown."
    lead = element("p", f"Blue speaks for {what}, red against it.")
    return together(lead, element("div", *panels, class_="panels"), note(remark))


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
