"""HTML that no label, file name or feature name can break: text is escaped unless it was built here.

Also the tables and bars that several sections are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from . import numbers

MOST = 15
"""More rows or columns of a table of weights than this are no longer readable, and on a phone not even visible."""
_MOST_LABELS = 40
_VOID = frozenset({"meta", "input", "hr", "img"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """``<name …>children</name>``. Children that are no ``Markup`` are escaped, those that are None left out.

    Attributes are written with - for _, and without a trailing one (``class_``); None leaves one out.

    >>> element("td", "a < b", class_="label")
    '<td class="label">a &lt; b</td>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{given}>")
    return Markup(f"<{name}{given}>{together(*children)}</{name}>")


def together(*children: Any) -> Markup:
    """Pieces one after another, each escaped unless it is ``Markup``."""
    return Markup("".join(c if isinstance(c, Markup) else escape(str(c)) for c in children if c is not None))


def note(text: str | None) -> Markup | None:
    """A remark in small letters; None where there is nothing to say."""
    return element("p", text, class_="note") if text else None


def counted(value: str | float) -> str:
    """Text as it is; a number is a count."""
    return value if isinstance(value, str) else numbers.count(value)


def facts(*rows: tuple[str, Any]) -> Markup:
    """Names with their values, as a table without a head; numbers are counts."""
    return table([], [[name, counted(value)] for name, value in rows], "facts")


def table(head: Sequence[Any], rows: Sequence[Sequence[object]], class_: str | None = None) -> Markup:
    """A table with a head; wide ones scroll inside their own box, not the page."""
    top = element("thead", element("tr", *[_cell("th", cell, scope="col") for cell in head])) if head else None
    body = element("tbody", *[element("tr", *[_cell("td", cell) for cell in row]) for row in rows])
    return element("div", element("table", top, body, class_=class_), class_="scroll")


def _cell(name: str, content: Any, **attributes: Any) -> Markup:
    """A cell, unless the content is one already."""
    ready = isinstance(content, Markup) and content.startswith(("<td", "<th"))
    return content if ready else element(name, content, **attributes)


def bars(entries: Iterable[tuple[str, float, str]]) -> Markup:
    """(name, length, text) of each; the largest fills its track, those below zero are drawn in the other colour."""
    listed = list(entries)
    largest = max((abs(size) for _, size, _ in listed), default=0.0) or 1.0
    cells = []
    for name, size, text in listed:
        part = f"width:{100.0 * abs(size) / largest:.1f}%"
        colour = "minus" if size < 0 else "plus"
        cells.append(element("span", name, class_="name", title=name))
        cells.append(element("span", element("i", class_=colour, style=part), class_="track"))
        cells.append(element("span", text, class_="value"))
    return element("div", *cells, class_="bars")


def count_bars(counts: Iterable[tuple[str, int]], total: int) -> Markup:
    """How many there are of each, and which share of all that is."""
    return bars((name, n, f"{numbers.count(n)} ({numbers.share(n / total)})") for name, n in counts)


def heat_table(rows: list[str], columns: list[str], values: np.ndarray, corner: str = "") -> Markup:
    """Weights with a colour behind each: blue above zero, red below, the deeper the larger; NaN where there is none."""
    largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) or 1.0

    def cell(i: int, j: int) -> Markup:
        name = f"{rows[i]}, {columns[j]}: "
        if not np.isfinite(values[i, j]):
            return element("td", "", class_="none", title=f"{name}none")
        value = float(values[i, j]) if abs(values[i, j]) > 1e-9 * largest else 0.0  # rounding is no weight
        colour = "minus" if value < 0 else "plus"
        return shaded(f"{value:.3g}".replace("-", "−"), colour, abs(value) / largest, name + numbers.number(value))

    return cell_table([corner, *columns], rows, cell, "heat")


def shaded(text: str, colour: str, depth: float, title: str | None = None) -> Markup:
    """A cell with a colour behind its text, the deeper the nearer ``depth`` is to 1."""
    return element("td", text, class_=colour, style=f"--depth:{100.0 * depth:.0f}%", title=title)


def cell_table(head: list[str], rows: Sequence[str], cell: Callable[[int, int], Markup | str], class_: str) -> Markup:
    """A table with a name before each row, and a cell for each row and column of the others."""
    across = range(len(head) - 1)
    body = [[element("th", name, scope="row"), *[cell(i, j) for j in across]] for i, name in enumerate(rows)]
    return table(head, body, class_)


def label_table(names: Sequence[str], present: np.ndarray, found: np.ndarray, right: np.ndarray) -> Markup:
    """Of every label: how often it is true, how often it was the answer, and how often it was both."""
    with np.errstate(invalid="ignore", divide="ignore"):  # where nothing was found, or nothing was there
        shares = right / found, right / present, 2.0 * right / (present + found)
    order = np.argsort(-present, kind="stable")[:_MOST_LABELS]
    rows = [
        [names[k], numbers.count(present[k]), numbers.count(found[k])]
        + [numbers.share(float(part[k])) if np.isfinite(part[k]) else "–" for part in shares]
        for k in order
    ]
    head = ["label", "true", "answered", "precision", "recall", "F1"]
    more = f"The {_MOST_LABELS} most frequent of {len(names)} labels are shown." if len(names) > _MOST_LABELS else None
    return together(table(head, rows, "pairs by-label"), note(more))
