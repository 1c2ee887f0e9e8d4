"""Curves of training: several panels over the same points, as still pictures that a little script brings to life.

Without the script the page shows the pictures and a switch for what runs along the bottom; with it, pointing, touching
or the arrow keys tell values, the scale can be changed and a part looked at closely. The numbers are in the page once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .charts import Line, step_chart
from .markup import Markup, element, table, together

# More points than this cannot be told apart in a chart, and would only make the file large.
_MOST_POINTS = 120
_MOST_ROWS = 25


@dataclass(frozen=True)
class Curve:
    """Values at all points, NaN or infinite where there is none."""

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


@dataclass(frozen=True)
class Curves:
    """Panels over the same points.

    ``along`` has what may run along the bottom with its values at the points, the first of them shown first; ``notes``
    say in one line what there is to know about a point, ``rows`` the same for a table under ``head``.
    """

    along: dict[str, np.ndarray]
    panels: Sequence[Panel]
    notes: Sequence[str]
    head: Sequence[str]
    rows: Sequence[Sequence[Any]]


def thinned(n: int) -> np.ndarray:
    """The points to show of n: the first, the last and as many between as can be told apart."""
    return np.unique(np.linspace(0, n - 1, min(n, _MOST_POINTS)).astype(int))


def drawn(curves: Curves, name: str = "along") -> Markup:
    """The pictures, the switch, and the numbers as a table. ``name`` tells switches of one page apart.

    Of one point there is only the table: a picture of it shows nothing.
    """
    if len(curves.rows) == 1:
        return table(list(curves.head), [list(curves.rows[0])], "numbers")
    views = []
    for k, (along, place) in enumerate(curves.along.items()):
        figures = [element("figure", _still(panel, along, place, curves.notes)) for panel in curves.panels]
        key = f"{name}-{k}"
        switch = element("input", type="radio", name=name, id=key, checked="" if k == 0 else None)
        views.append(together(switch, element("label", along, for_=key), element("div", *figures, class_="charts")))
    shown = sorted({*np.linspace(0, len(curves.rows) - 1, min(len(curves.rows), _MOST_ROWS)).astype(int).tolist()})
    numbers = table(list(curves.head), [list(curves.rows[i]) for i in shown], "numbers")
    return together(
        element("div", *views, class_="views", data_curves=_numbers(curves)),
        element("details", element("summary", "As a table"), numbers),
    )


def linear_range(values: np.ndarray, bottom: float | None = None) -> tuple[float, float]:
    """From the smallest value (or ``bottom``) to the largest, with some air; what is never negative starts above 0."""
    low = float(values.min()) if bottom is None else bottom
    high = float(values.max())
    margin = 0.05 * ((high - low) or abs(high) or 1.0)
    return (max(low - margin, 0.0) if low >= 0.0 else low - margin), high + margin


def decade_range(*values: float) -> tuple[float, float]:
    """Whole decades around some values above zero."""
    low, high = 10.0 ** math.floor(math.log10(min(values))), 10.0 ** math.ceil(math.log10(max(values)) + 1e-9)
    return low, high if high > low else 10.0 * low


def _counted(along: str) -> bool:
    """Whether passes, bounds or steps run along the bottom, which are counted from one; seconds begin at zero."""
    return along != "seconds"


def _still(panel: Panel, along: str, place: np.ndarray, notes: Sequence[str]) -> Markup:
    lines = []
    for curve in panel.curves:
        there = np.isfinite(curve.values) & ((curve.values > 0.0) | (panel.scale == "linear"))
        if there.any():
            lines.append(Line(curve.name, curve.style, place[there], curve.values[there]))
    log = panel.scale == "log"
    limits = panel.log if log else panel.linear
    if limits is None:
        raise ValueError(f"{panel.title} has no range for its {panel.scale} scale.")
    return step_chart(
        lines, title=panel.title, x_label=along, y_label=panel.label, log=log, y_range=limits, goal=panel.goal,
        notes=list(zip(place, notes, strict=True)), start=float(_counted(along)), whole=_counted(along),
    )  # fmt: skip


def _numbers(curves: Curves) -> str:
    """All that the script needs, as JSON."""
    panels = [
        {
            "label": panel.label, "scale": panel.scale, "linear": panel.linear, "log": panel.log, "goal": panel.goal,
            "lines": [{"style": c.style, "values": _short(c.values)} for c in panel.curves],
        }
        for panel in curves.panels
    ]  # fmt: skip
    along = [[name, _short(place), _counted(name)] for name, place in curves.along.items()]
    return json.dumps({"along": along, "panels": panels, "notes": list(curves.notes)}, separators=(",", ":"))


def _short(values: np.ndarray) -> list[float | None]:
    return [float(f"{v:.9g}") if math.isfinite(v) else None for v in values.tolist()]
