"""HTML and SVG that no label, file name or feature name can break: text is escaped unless it was built here."""

from __future__ import annotations

from html import escape
from typing import Any

_VOID = frozenset({"meta", "input", "hr", "img"})
_SHAPES = frozenset({"line", "rect", "path", "circle"})  # of SVG: they are closed by a slash


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
    if name in _VOID or name in _SHAPES:
        return Markup(f"<{name}{given}/>" if name in _SHAPES else f"<{name}{given}>")
    return Markup(f"<{name}{given}>{together(*children)}</{name}>")


def together(*children: Any) -> Markup:
    """Pieces one after another, each escaped unless it is ``Markup``."""
    return Markup("".join(c if isinstance(c, Markup) else escape(str(c)) for c in children if c is not None))


def table(head: list[Any], rows: list[list[Any]], class_: str | None = None) -> Markup:
    """A table with a head; wide ones scroll inside their own box, not the page."""
    top = element("thead", element("tr", *[_cell("th", cell, scope="col") for cell in head])) if head else None
    body = element("tbody", *[element("tr", *[_cell("td", cell) for cell in row]) for row in rows])
    return element("div", element("table", top, body, class_=class_), class_="scroll")


def _cell(name: str, content: Any, **attributes: Any) -> Markup:
    """A cell, unless the content is one already."""
    ready = isinstance(content, Markup) and content.startswith(("<td", "<th"))
    return content if ready else element(name, content, **attributes)
