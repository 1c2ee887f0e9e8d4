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
from .markup import Markup, bars, element, facts, note, together
from .tallies import Survey, measure, tally_for, task_of

if TYPE_CHECKING:
    from ..estimators.bags import LatentSVC
    from ..estimators.linear import LinearEstimator

MOST_CLASSES = 12
_MOST_WEIGHTS = 20  # in all panels of up to four classes; five of each where there are more
SCALE = (
    "Blue weights speak for it, red ones against it. A weight counts per unit of its feature: only features of similar "
    "scale can be compared."
)


def content(estimator: LinearEstimator, source: Source | None, on: str) -> ReportContent:
    """``source`` is read once, chunk by chunk."""
    task = task_of(estimator)
    tally, survey = measure(estimator, source) if source is not None else (tally_for(estimator), None)
    told = ReportContent(tally.kind, history=convergence(estimator.history_, estimator.tol))
    if tally.score is not None:
        told.results[f"{tally.name} on {on}"] = numbers.score(task, tally.score)
    if survey is not None:
        told.results[f"rows of {on}"] = survey.rows
        told.facts = _data_summary(survey)
    told.tiles["features"] = estimator.n_features_in_
    if task == "classify":
        told.tiles["classes"] = estimator.classes_.size
    if tally.rows:
        told.sections.append((f"Answers on {on}", answers(tally)))
    told.sections.append(("Heaviest weights", weights(estimator)))
    return told


def _data_summary(survey: Survey) -> Markup:
    n, said = survey.left_out
    listed = element("details", element("summary", numbers.count(n)), *[element("p", text) for text in said[:10]])
    return facts(
        ("rows", survey.rows),
        ("features", survey.features),
        ("values other than zero", f"{survey.stored / max(survey.rows, 1):.1f} per row"),
        ("rows left out", listed if n else "none"),
    )


def weights(estimator: LinearEstimator | LatentSVC) -> Markup:
    """Bars of the largest weights, class by class (the first dozen classes where there are more)."""
    coef, task = np.atleast_2d(estimator.coef_), task_of(estimator)
    classes = [numbers.label(c) for c in estimator.classes_] if task == "classify" else []
    origin = getattr(estimator, "origin_", {})
    names = getattr(estimator, "feature_names_in_", origin.get("columns"))
    if names is None and origin.get("zero_based") is False:
        names = [f"feature {i + 1}" for i in range(estimator.n_features_in_)]
    if len(classes) == 2 and len(coef) == 1:
        of_first = getattr(estimator, "positive_", None) == estimator.classes_[0]  # as those of bags may be
        classes = classes[:1] if of_first else classes[1:]
    titles = [f"for {name}" for name in classes] or [
        "for a larger answer" if task == "regress" else "for a higher rank"
    ]
    used = int(np.count_nonzero(coef.any(axis=0)))
    said = f"{numbers.count(used)} of {numbers.count(coef.shape[1])} features have a weight other than zero."
    return together(by_class(titles, coef, names), note(said))


def by_class(titles: list[str], coef: np.ndarray, names: Sequence[str] | np.ndarray | None) -> Markup:
    """Panels of the features that matter most to each class; ``coef`` has a row for each."""
    most = max(_MOST_WEIGHTS // len(titles), 5)
    panels = [_panel(title, row, names, most) for title, row in zip(titles[:MOST_CLASSES], coef, strict=False)]
    remark = SCALE + (" Features have no names here; they are counted from 0." if names is None else "")
    if len(titles) > MOST_CLASSES:
        remark += f" The first {MOST_CLASSES} of {len(titles)} classes are shown."
    return together(note(remark), element("div", *panels, class_="panels"))


def _panel(title: str, row: np.ndarray, names: Sequence[str] | np.ndarray | None, most: int) -> Markup:
    """The largest weights of one row, those above zero first."""
    most = min(most, row.size)
    found = np.argpartition(-np.abs(row), most - 1)[:most]
    found = found[np.argsort(-row[found], kind="stable")]
    entries = [
        (str(names[i]) if names is not None else f"feature {i}", float(row[i]), numbers.number(float(row[i])))
        for i in found.tolist()
        if row[i]
    ]
    inside = bars(entries) if entries else element("p", "None.")
    return element("div", element("h3", title), inside, class_="panel")
