"""How a certificate looks in a notebook: a bracket, in the colours of the text around it, dark or light."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .problem import Certificate

_GRID = (
    "display:inline-grid;grid-template-columns:auto minmax(5em,17em) auto;gap:.1em .8em;align-items:center;"
    "margin:.5em 0;line-height:1.3;font-family:system-ui,sans-serif;font-size:14px;font-variant-numeric:tabular-nums"
)
_BAR = "height:6px;border-radius:3px;background:linear-gradient(90deg,#2f86c9,{end})"
_SMALL = "font-size:12px;opacity:.75"


def as_html(certificate: Certificate, note: str = "") -> str:
    """The certificate as HTML that needs no style sheet; ``note`` is one more line below."""
    lower, upper = told_apart(certificate.lower, certificate.upper)
    bar = _BAR.format(end="#d9674e" if math.isfinite(certificate.upper) else "transparent")
    if math.isfinite(certificate.upper):
        loose = f", of which relaxation {certificate.loose:.1e}" if certificate.loose else ""
        gap = f'<span style="white-space:nowrap">relative gap {certificate.relative_gap:.1e}{loose}</span>'
        reached = "these weights reach"
    elif certificate.exact:
        gap, reached = "certify(X, y) adds the upper bound", "not computed"
    else:
        gap, reached = "the search was approximate", "not bounded"
    below = "nothing gets below on the relaxed problem" if certificate.relaxed else "nothing gets below"
    cells = [
        f"<strong>{lower}</strong>",
        f'<span style="{bar}"></span>',
        f'<strong style="text-align:right">{upper}</strong>',
        f'<span style="{_SMALL}">{below}</span>',
        f'<span style="{_SMALL};text-align:center">{gap}</span>',
        f'<span style="{_SMALL};text-align:right">{reached}</span>',
    ]
    if note:
        cells.append(f'<span style="{_SMALL};grid-column:1/-1">{escape(note)}</span>')
    return f'<div class="maxmargin-certificate" style="{_GRID}">{"".join(cells)}</div>'


def told_apart(lower: float, upper: float) -> tuple[str, str]:
    """Both bounds with as many digits as it takes to tell them apart."""
    digits = 5
    while digits < 12 and f"{lower:.{digits}g}" == f"{upper:.{digits}g}":
        digits += 1
    return _shown(lower, digits + 1), _shown(upper, digits + 1)


def _shown(bound: float, digits: int) -> str:
    if math.isinf(bound):
        return "∞" if bound > 0 else "−∞"
    return f"{bound + 0.0:.{digits}g}"  # 0, not -0
