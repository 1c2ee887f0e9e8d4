"""The content of a linear model: answers beside labels, and the heaviest weights."""

from __future__ import annotations

from typing import Any

from ..protocols import Source
from . import numbers
from .answers import answers
from .content import ReportContent
from .curves import convergence
from .markup import Markup, bars, element, facts, note, together
from .tallies import Survey, measure, tally_for, task_of
from .weights import weights

_MOST_LABELS = 20


def content(estimator: Any, source: Source | None, on: str) -> ReportContent:
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
    known: list[tuple[str, Any]] = [
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
    entries = [(name, n, f"{numbers.count(n)} ({numbers.share(n / survey.rows)})") for name, n in most]
    others = len(survey.labels) - len(most)
    return together(
        element("h3", "Labels"),
        bars(entries),
        note(f"and {numbers.count(others)} more." if others else None),
    )
