"""The page: one HTML file with everything in it, to be opened anywhere and sent to anybody."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Sequence
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

from .. import __version__
from ..files import check_writable, replacing
from ..notebook import told_apart
from ..validation import shown as shortened
from . import numbers
from .content import Data, ReportContent
from .markup import Markup, counted, element, facts, note, together

_MOST_TEXT = 400  # characters of a setting: tables of costs or weights of many classes have no end
_PROOF = (
    "This is proved, not estimated: these weights reach the upper value, no weights get below the lower one, "
    "and both follow from weights, dual variables and data alone. It speaks of the training problem; how well the "
    "model does on new data, only a test can tell."
)
_HINT = (
    "With data the page also shows how well the answers are: model.report(path, X, y), or maxmargin report MODEL DATA."
)
_RELAXED = (
    "Training was on a relaxed problem: some rivals are no answers, and the lower bound is one of that problem only. "
    "The upper bound holds without them, too."
)
_SHORT = 9  # letters that fit into a tile
_RELAXATION = (
    "Of this gap {} is relaxation: the search is approximate, and more than it has found it only bounds. No further "
    "training closes that part."
)
_NO_PROOF_YET = (
    "These weights reach the upper value, and no weights get below the lower one. More passes bring the two "
    "together; features of similar scale, or a smaller C, do so sooner."
)


def write(path: str | Path, estimator: object, data: object = None, summary: dict[str, Any] | None = None) -> None:
    """Write a report on a fitted estimator as one self-contained HTML file.

    The estimators' own method ``report`` does the same for data in memory.

    Parameters
    ----------
    path : path
    estimator : fitted estimator
        Any of this package.
    data : Source or None
        What to compare answers with, read once, chunk by chunk (``maxmargin.data.open`` makes one).
    summary : dict or None
        What only the caller knows: ``title``, ``data`` (what to call it), ``seconds``, ``peak_memory`` in bytes.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import LinearSVC, report
    >>> svm = LinearSVC(random_state=0).fit(*load_iris(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report.write(f"{folder}/iris.html", svm)
    """
    check_path(path)
    text = page(estimator, data, summary)
    with replacing(path) as new:
        new.write_text(text, encoding="utf-8")


def check_path(path: object) -> Path:
    """Complain about a place that cannot be written to before any work is done."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"path must name the HTML file to write, got {type(path).__name__}: {shortened(path)}. It comes first, the "
            'data after it: report("report.html", X, y).'
        )
    return check_writable(path)


def page(estimator: object, data: object = None, summary: dict[str, Any] | None = None) -> str:
    """The same as text."""
    summary = summary or {}
    if not isinstance(data, Data):
        data = Data(data, name=summary.get("data") or "this data")
    if not hasattr(estimator, "_report_content"):
        raise TypeError(f"A report is about an estimator of maxmargin, got {shortened(estimator)}.")
    told = estimator._report_content(data)
    title = summary.get("title") or told.kind
    body = together(
        _headline(estimator, title, told, told.results | told.tiles | _costs(estimator, summary)),
        section("How training got there", told.history),
        *[section(name, content) for name, content in told.sections],
        element("div", section("Data", told.facts), section("Settings", settings(estimator)), class_="two"),
        None if data.given else note(_HINT),
        element("footer", f"maxmargin {__version__}, {time.strftime('%Y-%m-%d')}"),
    )
    return document(title, body)


def _headline(estimator: object, title: str, content: ReportContent, tiles: dict[str, str | int]) -> Markup:
    """What is proved, both bounds, and the numbers that matter most. The claim is the content's own where there is no
    certificate."""
    claim = content.claim if content.claim is not None else _certified(estimator, content)
    shown = [  # long words are set smaller, so that they need not be broken
        element("div", element("dt", k), element("dd", v, class_="word" if len(v) > _SHORT and v.isalpha() else None))
        for k, v in ((name, counted(value)) for name, value in tiles.items())
    ]
    return element("header", element("h1", title), claim, element("dl", *shown, class_="tiles"))


def _certified(estimator: Any, content: ReportContent) -> Markup:
    certificate, tol = estimator.certificate_, estimator.tol
    gap, exact = certificate.relative_gap, certificate.exact
    reached = gap <= tol
    early = exact and gap - certificate.loose > tol
    best = " of the best possible on the relaxed problem." if certificate.relaxed else " of the best possible."
    far = ("is within ", numbers.share(gap), best)
    if gap >= 1.0:
        far = ("is ", "not bounded yet" if exact else "not bounded", "." if exact else ": the search was approximate.")
    claim = f"{content.subject} {far[0]}", element("b", far[1]), far[2]
    low, high = told_apart(certificate.lower, certificate.upper)
    bracket = element(
        "div",
        element("div", element("strong", low), element("small", "nothing gets below"), class_="low"),
        element("hr"),
        element("div", element("strong", high), element("small", "these weights"), class_="high"),
        class_="bracket",
    )
    return together(
        element("p", *claim, class_="claim" if reached else "claim missed"),
        element("p", f"Training ended before the goal of {numbers.share(tol)}.") if early else None,
        bracket,
        element("p", _RELAXATION.format(numbers.share(certificate.loose))) if certificate.loose else None,
        element("p", _RELAXED) if certificate.relaxed else None,
        element("p", f"The bounds are those {content.about}.") if content.about else None,
        note(_PROOF if gap < 1.0 else _NO_PROOF_YET),
    )


def _costs(estimator: object, summary: dict[str, Any]) -> dict[str, str | int]:
    """What training took."""
    tiles: dict[str, str | int] = {}
    passes = getattr(estimator, "n_passes_", None)
    if passes is not None:
        tiles["passes"] = passes
    seconds = summary.get("seconds") or _seconds(getattr(estimator, "history_", None) or [])
    if seconds:
        tiles["time"] = numbers.duration(seconds)
    if summary.get("peak_memory"):
        tiles["peak memory"] = numbers.size(summary["peak_memory"])
    return tiles


def _seconds(history: Sequence[object]) -> float:
    """Seconds count from the first record of a problem; of several, solved one after another, they add up."""
    ends = [a for a, b in pairwise([*history, None]) if b is None or getattr(b, "number", 0) == 1]
    return sum(getattr(record, "seconds", 0.0) for record in ends)


def settings(estimator: Any) -> Markup:
    """Every parameter; those that differ from their default stand out."""
    parameters = inspect.signature(type(estimator)).parameters
    rows = []
    for key, value in estimator.get_params(deep=False).items():
        same = repr(parameters[key].default) == repr(value)
        rows.append((key, _setting(value) if same else element("b", _setting(value))))
    return facts(*rows)


def _setting(value: object) -> str:
    """What tells the value; of an object that does not describe itself, its class, as its address tells nothing."""
    if value is None:
        return "–"
    if isinstance(value, str | int | float):
        return str(value)
    return type(value).__name__ if type(value).__repr__ is object.__repr__ else shortened(value, _MOST_TEXT)


def section(title: str, content: Markup | None) -> Markup | None:
    return None if content is None else element("section", element("h2", title), content)


def document(title: str, body: Markup) -> str:
    """The whole file: style and script are within it, and nothing is loaded."""
    own = resources.files(__package__)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{title} · maxmargin"),
        element("style", Markup(own.joinpath("style.css").read_text(encoding="utf-8"))),
    )
    script = element("script", Markup(own.joinpath("chart.js").read_text(encoding="utf-8")))
    content = element("body", element("main", body), script if "data-chart" in body else None)
    return "<!doctype html>\n" + element("html", head, content, lang="en") + "\n"
