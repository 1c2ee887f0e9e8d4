"""The section that shows how the bounds closed in on the optimum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..plots.convergence import runs_of, summed
from . import numbers
from .charts import Line, step_chart
from .markup import Markup, element, table, together

# More points than this cannot be told apart in a chart, and would only make the file large.
_MOST_POINTS = 120


def convergence(estimator: Any) -> Markup | None:
    """Charts of bounds and gap, and the same as a table; None where no pass was recorded."""
    if not estimator.history_:
        return None
    runs = runs_of(estimator.history_)
    seconds, lower, upper = (summed(runs, name) for name in ("seconds", "lower", "upper"))
    lower = np.maximum.accumulate(lower)  # a lower bound stays true for ever
    exact = all(record.exact for run in runs for record in run)
    passes = np.arange(1, seconds.size + 1)
    guess = summed(runs, "estimate") if len(runs) == 1 else np.full(seconds.size, np.inf)
    shown = _thinned(seconds.size)
    seconds, lower, upper, passes, guess = (a[shown] for a in (seconds, lower, upper, passes, guess))
    known = np.isfinite(upper)
    gap = np.full(upper.size, np.inf)
    gap[known] = np.maximum(upper[known] - lower[known], 0.0) / np.maximum(np.abs(upper[known]), 1e-300)
    notes = [
        f"pass {p}, {numbers.duration(s)}\nbounds {numbers.number(a)} … {numbers.number(b)}\ngap {_gap(g)}"
        for s, p, a, b, g in zip(seconds, passes, lower, upper, gap, strict=True)
    ]
    # A first pass that takes most of the time (it reads, or compiles) would squeeze the others against the rim.
    slow_start = seconds.size > 1 and seconds[0] > 0.4 * seconds[-1]
    views = []
    for name, place, first in (("seconds", seconds, not slow_start), ("passes", passes, slow_start)):
        bounds = _bounds_chart(name, place, lower, upper, exact, notes)
        charts = [bounds, _gap_chart(name, place, gap, guess, estimator.tol, notes)]
        switch = element("input", type="radio", name="along", id=f"along-{name}", checked="" if first else None)
        figures = element("div", *[element("figure", c) for c in charts if c is not None], class_="charts")
        views.append(together(switch, element("label", name, for_=f"along-{name}"), figures))
    rows = [
        [str(p), numbers.duration(s), f"{a:.8g}", f"{b:.8g}" if math.isfinite(b) else "–", _gap(g)]
        for s, p, a, b, g in zip(seconds, passes, lower, upper, gap, strict=True)
    ]
    thin = [rows[i] for i in sorted({*np.linspace(0, len(rows) - 1, min(len(rows), 25)).astype(int).tolist()})]
    return together(
        element("div", *views, class_="views"),
        element(
            "details",
            element("summary", "As a table"),
            table(["pass", "time", "lower bound", "upper bound", "relative gap"], thin, "numbers"),
        ),
    )


def _thinned(n: int) -> np.ndarray:
    return np.unique(np.linspace(0, n - 1, min(n, _MOST_POINTS)).astype(int))


def _gap(gap: float) -> str:
    return f"{gap:.1e}" if math.isfinite(gap) else "not known yet"


def _bounds_chart(
    along: str, place: np.ndarray, lower: np.ndarray, upper: np.ndarray, exact: bool, notes: list[str]
) -> Markup:
    known = np.isfinite(upper)
    best = float(lower[-1])
    top = float(upper[known].max()) if known.any() else float(lower.max())
    # Where the first weights were many times worse than the last, only a logarithm shows both ends.
    log = best > 0.0 and top > 10.0 * best
    # An objective is never below zero: that the first lower bounds are, often far below, is not worth the space.
    bottom = max(float(lower.min()), best / 10.0 if log else 0.0) if best > 0.0 else float(lower.min())
    if not log:
        margin = 0.05 * ((top - bottom) or abs(top) or 1.0)
        bottom, top = max(bottom - margin, 0.0) if best > 0.0 else bottom - margin, top + margin
    lines = [Line("lower bound: no weights get below", "lower", place, lower)]
    if known.any():
        name = "upper bound: these weights reach it" if exact else "objective, as far as the search could see"
        lines.insert(0, Line(name, "upper", place[known], upper[known]))
    return step_chart(
        lines, title="Bounds on the objective", x_label=along, y_label="objective", log=log,
        y_range=(bottom, top), notes=list(zip(place, notes, strict=True)),
    )  # fmt: skip


def _gap_chart(
    along: str, place: np.ndarray, gap: np.ndarray, guess: np.ndarray, tol: float, notes: list[str]
) -> Markup | None:
    """The gap where it was proved; before that, what the solver took it for."""
    drawn = np.isfinite(gap) & (gap > 0.0)
    if not drawn.any():
        return None
    first = int(np.argmax(drawn))
    guessed = np.isfinite(guess) & (guess > 0.0) & (np.arange(guess.size) <= first) & (first > 0)
    lines = [Line("proved", "gap", place[drawn], gap[drawn])]
    if guessed.any():
        lines.insert(0, Line("as the solver estimates it", "estimate", place[guessed], guess[guessed]))
    low = min(*(float(line.y.min()) for line in lines), tol)
    high = max(*(float(line.y.max()) for line in lines), tol)
    limits = 10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high) + 1e-9)
    return step_chart(
        lines,
        title="Relative gap between the bounds", x_label=along, y_label="relative gap", log=True, y_range=limits,
        goal=(tol, f"goal {tol:g}"), notes=list(zip(place, notes, strict=True)),
    )  # fmt: skip
