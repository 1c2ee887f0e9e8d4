"""Charts: numbers that the page's script draws, and the same numbers as a table where no script runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from . import numbers
from .markup import Markup, element, table

# More points than this cannot be told apart, and would only make the file large.
_MOST_POINTS = 120


class Curve(NamedTuple):
    """Values that hold from their point to the next one, not finite where there is none.

    ``style`` is a class of ``style.css`` that has a colour: lower, upper, gap, or bar for those of a histogram.
    """

    name: str
    style: str
    values: np.ndarray


class Panel(NamedTuple):
    """One picture. ``log`` is whether its first scale is logarithmic; nothing below ``floor`` is worth its space."""

    label: str
    curves: Sequence[Curve]
    log: bool = False
    floor: float | None = None
    goal: float | None = None


def chart(
    along: dict[str, np.ndarray], panels: Sequence[Panel], head: Sequence[str], rows: Sequence[Sequence[str]]
) -> Markup:
    """Panels over the same points; of one point there is only the table.

    Parameters
    ----------
    along : dict
        What may run along the bottom, with its values at the points; the first is shown first.
    panels : list of Panel
    head, rows : list
        The points as a table. The script shows the row of a point that is pointed at.
    """
    at = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _MOST_POINTS)).astype(int))
    listed = table(head, [rows[i] for i in at], "numbers")
    if len(rows) == 1:
        return listed
    data = {
        "along": [[name, _short(place[at])] for name, place in along.items()],
        "panels": [
            panel._asdict() | {"curves": [c._asdict() | {"values": _short(c.values[at])} for c in panel.curves]}
            for panel in panels
        ],
    }
    # Open where no script closes it.
    closed = element("details", element("summary", "As a table"), listed, open="")
    return element("div", closed, class_="chart", data_chart=json.dumps(data, ensure_ascii=False, allow_nan=False))


def histogram(edges: np.ndarray, heights: np.ndarray, label: str, what: str) -> Markup:
    """How many of ``what`` lie in each of some intervals, which are equally wide."""
    rows = [
        [numbers.number(low), numbers.number(high), numbers.count(n)]
        for low, high, n in zip(edges[:-1], edges[1:], heights, strict=True)
    ]
    panel = Panel(what, [Curve(what, "bar", heights.astype(np.float64))])
    return chart({label: edges[:-1]}, [panel], ["from", "to", what], rows)


def _short(values: np.ndarray) -> list[float | None]:
    """Seven digits are more than a screen can show; null where there is no value."""
    return [float(f"{v:.7g}") if np.isfinite(v) else None for v in values.tolist()]
