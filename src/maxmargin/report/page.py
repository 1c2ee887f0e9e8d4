"""The page: one HTML file with everything in it, to be opened anywhere and sent to anybody."""

from __future__ import annotations

import math
import time
from importlib import resources
from pathlib import Path
from typing import Any

from .. import __version__
from ..protocols import Source
from . import numbers
from .answers import answers
from .convergence import convergence
from .markup import Markup, element, together
from .reading import measure
from .summary import data_summary, settings
from .tallies import task_of
from .weights import weights

_TASKS = {"classify": "Classification", "regress": "Regression", "rank": "Ranking"}

_PROOF = (
    "This is proved, not estimated: these weights reach the upper value, no weights whatever get below the lower one, "
    "and both follow from weights, dual variables and data alone. It speaks of the training problem; how well the "
    "model does on new data, only a test can tell."
)
_NO_PROOF_YET = (
    "These weights reach the upper value, and no weights whatever get below the lower one. More passes bring the two "
    "together; features of similar scale, or a smaller C, do so sooner."
)


def write(path: str | Path, estimator: Any, data: Source | None = None, summary: dict[str, Any] | None = None) -> None:
    """Write a report on a fitted estimator as one self-contained HTML file.

    Parameters
    ----------
    path : path
    estimator : fitted estimator
        Any that has a certificate; weights and answers are shown for the linear ones.
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
    Path(path).write_text(page(estimator, data, summary), encoding="utf-8")


def page(estimator: Any, data: Source | None = None, summary: dict[str, Any] | None = None) -> str:
    """The same as text."""
    summary = summary or {}
    linear = is_linear(estimator)
    task = task_of(estimator) if linear else None
    tally, survey = measure(estimator, data) if data is not None and linear else (None, None)
    name = summary.get("title") or (_TASKS[task] if task else type(estimator).__name__)
    on = summary.get("data") or "this data"

    score = None if tally is None else tally.score
    tiles = (
        []
        if score is None or tally is None or task is None
        else [(f"{tally.name} on {on}", numbers.score(task, score))]
    )
    if survey is not None:
        tiles.append((f"rows of {on}", numbers.count(survey.rows)))
    if linear:
        tiles.append(("features", numbers.count(estimator.n_features_in_)))
    if task == "classify":
        tiles.append(("classes", numbers.count(estimator.classes_.size)))
    tiles.append(("passes", numbers.count(estimator.n_passes_)))
    seconds = summary.get("seconds") or (estimator.history_[-1].seconds if estimator.history_ else None)
    tiles += [] if seconds is None else [("time", numbers.duration(seconds))]
    tiles += [("peak memory", numbers.size(summary["peak_memory"]))] if summary.get("peak_memory") else []

    sections: list[Markup | None] = [
        _headline(estimator, name, tiles),
        section("How it got there", convergence(estimator)),
    ]
    if tally is not None and task is not None and tally.rows:
        sections.append(section(f"Answers on {on}", answers(task, tally)))
    if linear:
        sections.append(section("Heaviest weights", weights(estimator)))
    facts = section("Data", data_summary(survey, task)) if survey is not None and task is not None else None
    sections.append(element("div", facts, section("Settings", settings(estimator)), class_="two"))
    if data is None and linear:
        hint = "Name data to see answers beside labels: maxmargin report MODEL DATA -o REPORT.html"
        sections.append(element("p", hint, class_="note"))
    sections.append(element("footer", f"maxmargin {__version__}, {time.strftime('%Y-%m-%d')}"))
    return document(name, together(*sections))


def is_linear(estimator: Any) -> bool:
    """Whether the estimator scores rows of a matrix by weights; structured ones have a model of their own."""
    return all(hasattr(estimator, part) for part in ("coef_", "n_features_in_")) and not hasattr(estimator, "model_")


def _headline(estimator: Any, name: str, tiles: list[tuple[str, str]]) -> Markup:
    certificate = estimator.certificate_
    gap = certificate.relative_gap
    reached = gap <= estimator.tol
    if gap < 1.0:
        claim = together("The objective is within ", element("b", numbers.share(gap)), " of the best possible.")
    elif certificate.exact:
        claim = together("How far the objective is from the best possible is ", element("b", "not known yet"), ".")
    else:
        claim = together("The objective is ", element("b", "not bounded"), " from above: the search was approximate.")
    goal = f"Training ended before the goal of {numbers.share(estimator.tol)}." if certificate.exact else ""
    proof = _PROOF if gap < 1.0 else _NO_PROOF_YET
    return element(
        "header",
        element("h1", name),
        element("p", claim, class_="claim" if reached else "claim missed"),
        element("p", goal) if goal and not reached else None,
        _bracket(certificate.lower, certificate.upper),
        element("p", proof, class_="note"),
        element(
            "dl", *[element("div", element("dt", key), element("dd", value)) for key, value in tiles], class_="tiles"
        ),
    )


def _bracket(lower: float, upper: float) -> Markup:
    """Both bounds with as many digits as it takes to tell them apart."""
    digits = 5
    while digits < 12 and f"{lower:.{digits}g}" == f"{upper:.{digits}g}":
        digits += 1
    shown = [f"{v:.{digits + 1}g}" if math.isfinite(v) else numbers.number(v) for v in (lower, upper)]
    return element(
        "div",
        element("div", element("strong", shown[0]), element("small", "nothing gets below"), class_="low"),
        element("hr"),
        element("div", element("strong", shown[1]), element("small", "these weights"), class_="high"),
        class_="bracket",
    )


def section(title: str, content: Markup | None) -> Markup | None:
    return None if content is None else element("section", element("h2", title), content)


def document(title: str, body: Markup) -> str:
    style = resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{title} · maxmargin"),
        element("style", Markup(style)),
    )
    return "<!doctype html>\n" + element("html", head, element("body", element("main", body)), lang="en") + "\n"
