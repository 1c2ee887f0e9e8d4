"""The sections of plain facts: data and settings."""

from __future__ import annotations

from typing import Any

from ..wording import shown
from . import numbers
from .bars import bars
from .markup import Markup, element, table, together
from .reading import Survey

_MOST_LABELS = 20
_MOST_TEXT = 400  # characters of a setting: tables of costs or weights of many classes have no end


def data_summary(survey: Survey, task: str) -> Markup:
    """Sizes, labels and what was left out."""
    per_row = survey.stored / max(survey.rows, 1)
    facts = [
        ["rows", numbers.count(survey.rows)],
        ["features", numbers.count(survey.features)],
        ["values other than zero", f"{per_row:.1f} per row, at most {numbers.count(survey.longest)}"],
        ["filled", numbers.share(survey.stored / max(survey.rows * survey.features, 1))],
    ]
    if task != "classify" and survey.label_range:
        low, high = survey.label_range
        facts.append(["labels", f"from {numbers.number(low)} to {numbers.number(high)}"])
    if survey.weighted:
        facts.append(["weights of rows", "yes"])
    n, said = survey.left_out
    listed = element("details", element("summary", numbers.count(n)), *[element("p", text) for text in said[:10]])
    facts.append(["rows left out", listed if n else "none"])
    return together(table([], facts, "facts"), _labels(survey) if task != "regress" else None)


def _labels(survey: Survey) -> Markup | None:
    if not survey.labels or not survey.labels_whole:
        return None
    most = survey.labels.most_common(_MOST_LABELS)
    entries = [(name, n, f"{numbers.count(n)} ({numbers.share(n / survey.rows)})") for name, n in most]
    others = len(survey.labels) - len(most)
    return together(
        element("h3", "Labels"),
        bars(entries),
        element("p", f"and {numbers.count(others)} more.", class_="note") if others else None,
    )


def settings(estimator: Any) -> Markup:
    """Every parameter; those that differ from their default stand out."""
    given = estimator.get_params(deep=False)
    defaults = type(estimator)().get_params(deep=False) if _has_defaults(estimator) else given
    rows = []
    for key, value in given.items():
        same = key in defaults and repr(defaults[key]) == repr(value)
        rows.append([key, _setting(value) if same else element("b", _setting(value))])
    return table([], rows, "facts")


def _setting(value: Any) -> Any:
    """What tells the value; of an object that does not describe itself, its class, as its address tells nothing."""
    if value is None:
        return "–"
    if isinstance(value, str | int | float):
        return value
    return type(value).__name__ if type(value).__repr__ is object.__repr__ else shown(value, _MOST_TEXT)


def _has_defaults(estimator: Any) -> bool:
    """Whether the estimator can be made without arguments (a structural one needs its model)."""
    import inspect

    parameters = inspect.signature(type(estimator)).parameters.values()
    return all(p.default is not p.empty for p in parameters)
