"""Charts as SVG, drawn by hand: colours come from the page's style, so that they follow its light or dark scheme.

Charts are drawn for a width of 400 units and stretched to their column, so text stays readable on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from . import numbers
from .markup import Markup, element, together

WIDTH, HEIGHT = 400.0, 250.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 390.0, 28.0, 212.0
_UNITS = ((2e9, 1e9, " G"), (2e6, 1e6, " M"), (2e4, 1e3, " k"))  # from which size on, what it is, its name
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Axis:
    """A map from values to places, with ticks where people expect them."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    whole: bool = False
    """Whether what is measured is counted, so that there is nothing between two whole numbers."""

    def __call__(self, value: float) -> float:
        """The place of a value; what lies outside is put on the rim."""
        value = min(max(value, self.low), self.high)
        if self.log:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        return self._decades() if self.log else self._steps()

    def _decades(self) -> list[tuple[float, str]]:
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        every = max(1, math.ceil((last - first + 1) / 7))
        return [(10.0**e, "10" + str(e).translate(_SUPERSCRIPT)) for e in range(first, last + 1, every)]

    def _steps(self) -> list[tuple[float, str]]:
        rough = (self.high - self.low) / 5.0
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * m for m in (1.0, 2.0, 5.0, 10.0) if unit * m >= rough * 0.999)
        step = max(step, 1.0) if self.whole else step
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        largest = max(abs(self.low), abs(self.high))
        scale, suffix = next(((unit, name) for start, unit, name in _UNITS if largest >= start), (1.0, ""))
        digits = max(0, -math.floor(math.log10(step / scale) + 1e-9))
        return [
            (k * step, f"{k * step / scale:.{digits}f}{suffix if k else ''}".replace("-", "−"))
            for k in range(first, last + 1)
        ]


class Curve(NamedTuple):
    """Values that hold from their point to the next one, NaN or infinite where there is none."""

    name: str
    style: str
    values: np.ndarray


@dataclass(frozen=True)
class Panel:
    """One picture. ``linear`` and ``log`` are its ranges of values, the latter None where values are not above zero."""

    title: str
    label: str
    curves: Sequence[Curve]
    linear: tuple[float, float] | None
    log: tuple[float, float] | None
    scale: str
    goal: tuple[float, str] | None = None


def is_counted(along: str) -> bool:
    """Whether passes, bounds or steps run along the bottom, which are counted from one; seconds begin at zero."""
    return along != "seconds"


def step_chart(panel: Panel, along: str, place: np.ndarray, notes: Sequence[str]) -> Markup:
    """Curves that go down or up in steps at these places; ``notes`` are shown where the pointer rests."""
    log = panel.scale == "log"
    limits = panel.log if log else panel.linear
    if limits is None:
        raise ValueError(f"{panel.title} has no range for its {panel.scale} scale.")
    start, last = float(is_counted(along)), float(place.max())
    across = Axis(start, last if last > start else start + 1.0, _LEFT, _RIGHT, whole=is_counted(along))
    up = Axis(*limits, _BOTTOM, _TOP, log)
    parts: list[Markup] = [_frame(across, up, along, panel.label)]
    if panel.goal is not None and up.low <= panel.goal[0] <= up.high:
        y = up(panel.goal[0])
        parts.append(element("line", x1=_LEFT, x2=_RIGHT, y1=_place(y), y2=_place(y), class_="goal"))
        parts.append(element("text", panel.goal[1], x=_LEFT + 4, y=_place(y - 5), class_="goal-name"))
    there = [np.isfinite(curve.values) & ((curve.values > 0.0) | (not log)) for curve in panel.curves]
    lines = [(curve, place[at], curve.values[at]) for curve, at in zip(panel.curves, there, strict=True) if at.any()]
    for k, (curve, along_x, along_y) in enumerate(lines):
        points = [(_place(across(a)), _place(up(b))) for a, b in zip(along_x, along_y, strict=True)]
        path = "M{} {}".format(*points[0]) + "".join(f"H{a}V{b}" for a, b in points[1:])
        parts.append(element("path", d=path, class_=f"line {curve.style}"))
        # Lines end where they meet: the end of each shows around that of the next.
        end = {"cx": points[-1][0], "cy": points[-1][1], "r": 3.2 + 1.8 * (len(lines) - 1 - k)}
        parts.append(element("circle", **end, class_=curve.style))
    parts.append(_resting_places(place, notes, across))
    legend = [element("span", element("i", class_=curve.style), curve.name) for curve, *_ in lines]
    return together(_svg(panel.title, parts), element("p", *legend, class_="legend") if len(lines) > 1 else None)


def histogram(
    edges: np.ndarray, heights: np.ndarray, *, title: str, x_label: str, y_label: str, what: str = "rows"
) -> Markup:
    """Bars over neighbouring intervals; the numbers are shown where the pointer rests."""
    across = Axis(float(edges[0]), float(edges[-1]), _LEFT, _RIGHT)
    up = Axis(0.0, float(heights.max(initial=1)) * 1.05, _BOTTOM, _TOP)
    parts: list[Markup] = [_frame(across, up, x_label, y_label)]
    for low, high, n in zip(edges[:-1], edges[1:], heights, strict=True):
        x, y = across(low), up(float(n))
        width = max(across(high) - x - 0.8, 0.4)
        note = f"{numbers.number(low)} to {numbers.number(high)}: {numbers.counted(n, what)}"
        bar = element("rect", x=_place(x), y=_place(y), width=_place(width), height=_place(_BOTTOM - y), class_="bar")
        parts.append(element("g", element("title", note), bar))
    if across.low < 0.0 < across.high:
        zero = _place(across(0.0))
        parts.append(element("line", x1=zero, x2=zero, y1=_TOP, y2=_BOTTOM, class_="goal"))
    return _svg(title, parts)


def _svg(title: str, parts: list[Markup]) -> Markup:
    inside = [element("title", title), *parts]
    return element("svg", *inside, viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", role="img", aria_label=title)


def _frame(across: Axis, up: Axis, x_label: str, y_label: str) -> Markup:
    """Axes, ticks, grid and what is measured along them."""
    parts = []
    for value, name in up.ticks():
        y = _place(up(value))
        parts.append(element("line", x1=_LEFT, x2=_RIGHT, y1=y, y2=y, class_="grid"))
        parts.append(element("text", name, x=_LEFT - 6, y=y, dy="0.35em", text_anchor="end"))
    for value, name in across.ticks():
        x = _place(across(value))
        parts.append(element("line", x1=x, x2=x, y1=_BOTTOM, y2=_BOTTOM + 4, class_="axis"))
        parts.append(element("text", name, x=x, y=_BOTTOM + 17, text_anchor="middle"))
    parts.append(element("line", x1=_LEFT, x2=_RIGHT, y1=_BOTTOM, y2=_BOTTOM, class_="axis"))
    parts.append(element("text", x_label, x=_RIGHT, y=HEIGHT - 6, text_anchor="end", class_="measure"))
    parts.append(element("text", y_label, x=4, y=12, class_="measure"))
    return together(*parts)


def _resting_places(place: np.ndarray, notes: Sequence[str], across: Axis) -> Markup:
    """Strips that cannot be seen, one for each note, from half-way to its neighbours."""
    places = [across(x) for x in place]
    borders = [_LEFT, *[(a + b) / 2 for a, b in pairwise(places)], _RIGHT]
    strips = []
    for text, a, b, x in zip(notes, borders, borders[1:], places, strict=False):
        rect = element("rect", x=_place(a), y=_TOP, width=_place(max(b - a, 0.0)), height=_BOTTOM - _TOP, class_="hit")
        mark = element("line", x1=_place(x), x2=_place(x), y1=_TOP, y2=_BOTTOM, class_="mark")
        strips.append(element("g", element("title", text), rect, mark, class_="rest"))
    return together(*strips)


def _place(value: float) -> str:
    """A tenth of a unit is finer than any screen."""
    return f"{value:.1f}".removesuffix(".0")
