"""Curves of training: several panels over the same points, as still pictures that a little script brings to life.

Without the script the page shows the pictures and a switch for what runs along the bottom; with it, pointing, touching
or the arrow keys tell values, the scale can be changed and a part looked at closely. The numbers are in the page once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .charts import Panel, is_counted, step_chart
from .markup import Markup, element, table, together

# More points than this cannot be told apart in a chart, and would only make the file large.
_MOST_POINTS = 120
_MOST_ROWS = 25


def drawn(
    along: dict[str, np.ndarray],
    panels: Sequence[Panel | None],
    notes: Sequence[str],
    head: Sequence[str],
    rows: Sequence[Sequence[Any]],
    name: str = "along",
) -> Markup:
    """Panels over the same points, a switch for what runs along the bottom, and the numbers as a table.

    Of one point there is only the table: a picture of it shows nothing.

    Parameters
    ----------
    along : dict
        What may run along the bottom, with its values at the points; the first is shown first.
    panels : list of Panel
        Those that are None are left out.
    notes : list of str
        What there is to know about each point, in one line.
    head, rows : list
        The same as a table.
    name : str
        Tells switches of one page apart.
    """
    n = len(rows)
    if n == 1:
        return table(list(head), [list(rows[0])], "numbers")
    at = thinned(n)
    along = {key: place[at] for key, place in along.items()}
    notes, rows = [notes[i] for i in at], [list(rows[i]) for i in at]
    kept = [replace(p, curves=[c._replace(values=c.values[at]) for c in p.curves]) for p in panels if p is not None]
    views = []
    for k, (what, place) in enumerate(along.items()):
        figures = [element("figure", step_chart(panel, what, place, notes)) for panel in kept]
        key = f"{name}-{k}"
        switch = element("input", type="radio", name=name, id=key, checked="" if k == 0 else None)
        views.append(together(switch, element("label", what, for_=key), element("div", *figures, class_="charts")))
    numbers = table(list(head), [rows[i] for i in thinned(len(rows), _MOST_ROWS)], "numbers")
    return together(
        element("div", *views, class_="views", data_curves=_numbers(along, kept, notes)),
        element("details", element("summary", "As a table"), numbers),
    )


def thinned(n: int, most: int = _MOST_POINTS) -> np.ndarray:
    """The points to show of n: the first, the last and as many between as can be told apart."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


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


def _numbers(along: dict[str, np.ndarray], panels: Sequence[Panel], notes: Sequence[str]) -> str:
    """All that the script needs, as JSON."""
    shown = [
        {
            "label": panel.label, "scale": panel.scale, "linear": panel.linear, "log": panel.log, "goal": panel.goal,
            "lines": [{"style": c.style, "values": _short(c.values)} for c in panel.curves],
        }
        for panel in panels
    ]  # fmt: skip
    places = [[name, _short(place), is_counted(name)] for name, place in along.items()]
    return json.dumps({"along": places, "panels": shown, "notes": notes}, separators=(",", ":"))


def _short(values: np.ndarray) -> list[float | None]:
    return [float(f"{v:.9g}") if math.isfinite(v) else None for v in values.tolist()]
