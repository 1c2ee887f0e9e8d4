"""Bars with names on their left and numbers on their right."""

from __future__ import annotations

from collections.abc import Iterable

from .markup import Markup, element


def bars(entries: Iterable[tuple[str, float, str]], kind: str = "bars labels", full: float | None = None) -> Markup:
    """(name, length, text) of each; lengths below zero are drawn in the other colour.

    ``full`` is the length that fills its track, by default the largest of these.
    """
    listed = list(entries)
    largest = full or max((abs(size) for _, size, _ in listed), default=0.0) or 1.0
    cells = []
    for name, size, text in listed:
        part = f"width:{100.0 * abs(size) / largest:.1f}%"
        colour = "minus" if size < 0 else "plus"
        cells.append(element("span", name, class_="name", title=name))
        cells.append(element("span", element("i", class_=colour, style=part), class_="track"))
        cells.append(element("span", text, class_="value"))
    return element("div", *cells, class_=kind)
