"""Tables of weights with a colour behind each: blue above zero, red below, the deeper the larger."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import numbers
from .markup import Markup, element, table

MOST = 15
"""More rows or columns than this are no longer readable, and on a phone not even visible."""


def heat_table(
    rows: list[str], columns: list[str], values: np.ndarray, corner: str = "", *, dark: np.ndarray | None = None
) -> Markup:
    """Values with names of rows and columns. Where ``dark`` is True there is no value."""
    shown = np.isfinite(values) if dark is None else np.isfinite(values) & ~dark
    largest = float(np.abs(values[shown]).max(initial=0.0)) or 1.0
    body = []
    for i, name in enumerate(rows):
        cells: list[Any] = [element("th", name, scope="row")]
        for j, column in enumerate(columns):
            if not shown[i, j]:
                cells.append(element("td", "", class_="none", title=f"{name}, {column}: none"))
                continue
            value = float(values[i, j]) if abs(values[i, j]) > 1e-9 * largest else 0.0  # rounding is no weight
            depth = f"--depth:{100.0 * abs(value) / largest:.0f}%"
            note = f"{name}, {column}: {numbers.number(value)}"
            cells.append(element("td", _short(value), class_="minus" if value < 0 else "plus", style=depth, title=note))
        body.append(cells)
    return table([corner, *columns], body, "heat")


def _short(value: float) -> str:
    """Three digits are enough beside a colour.

    >>> _short(-0.01234), _short(0.0)
    ('−0.0123', '0')
    """
    return f"{value:.3g}".replace("-", "−")
