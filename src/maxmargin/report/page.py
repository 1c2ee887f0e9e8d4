"""The page: one HTML file with everything in it, to be opened anywhere and sent to anybody."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

from .. import __version__
from ..files import replacing
from . import numbers
from .convergence import convergence
from .headline import headline
from .markup import Markup, element, together
from .output import check_path
from .story import Data, Story
from .summary import settings


def write(path: str | Path, estimator: Any, data: Any = None, summary: dict[str, Any] | None = None) -> None:
    """Write a report on a fitted estimator as one self-contained HTML file.

    The estimators' own method ``report`` does the same for data in memory.

    Parameters
    ----------
    path : path
    estimator : fitted estimator
        Any of this package; of others that have a certificate, what that says.
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


def page(estimator: Any, data: Any = None, summary: dict[str, Any] | None = None) -> str:
    """The same as text."""
    summary = summary or {}
    if not isinstance(data, Data):
        data = Data(data, name=summary.get("data") or "this data")
    told = estimator._story(data) if hasattr(estimator, "_story") else _plain_story(estimator)
    title = summary.get("title") or told.kind
    sections: list[Markup | None] = [
        headline(estimator, title, told, [*told.tiles, *_costs(estimator, summary)]),
        section("How training got there", told.history),
        *[section(name, content) for name, content in told.sections],
    ]
    facts = section("Data", told.facts)
    sections.append(element("div", facts, section("Settings", settings(estimator)), class_="two"))
    sections.append(element("p", told.hint, class_="note") if told.hint and not data.given else None)
    sections.append(element("footer", f"maxmargin {__version__}, {time.strftime('%Y-%m-%d')}"))
    return document(title, together(*sections))


def _plain_story(estimator: Any) -> Story:
    """Of an estimator that has no story of its own."""
    return Story(type(estimator).__name__, history=convergence(estimator.history_, estimator.tol))


def _costs(estimator: Any, summary: dict[str, Any]) -> list[tuple[str, str]]:
    """What training took."""
    tiles = []
    passes = getattr(estimator, "n_passes_", None)
    if passes is not None:
        tiles.append(("passes", numbers.count(passes)))
    seconds = summary.get("seconds") or _seconds(getattr(estimator, "history_", None) or [])
    if seconds:
        tiles.append(("time", numbers.duration(seconds)))
    if summary.get("peak_memory"):
        tiles.append(("peak memory", numbers.size(summary["peak_memory"])))
    return tiles


def _seconds(history: Sequence[Any]) -> float:
    """Seconds count from the first record of a problem; of several, solved one after another, they add up."""
    ends = [a for a, b in pairwise([*history, None]) if b is None or getattr(b, "number", 0) == 1]
    return sum(getattr(record, "seconds", 0.0) for record in ends)


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
    content = element("body", element("main", body), script if "data-curves" in body else None)
    return "<!doctype html>\n" + element("html", head, content, lang="en") + "\n"
