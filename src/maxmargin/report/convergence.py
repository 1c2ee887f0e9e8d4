"""The section that shows how the bounds of a convex problem closed in on its optimum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..plots.convergence import runs_of, summed
from . import numbers
from .charts import Curve, Panel
from .curves import decade_range, drawn, linear_range, thinned
from .markup import Markup


def convergence(history: list[Any], tol: float) -> Markup | None:
    """Charts of bounds and gap, and the same as a table; None where no pass was recorded."""
    if not history:
        return None
    runs = runs_of(history)
    seconds, lower, upper = (summed(runs, name) for name in ("seconds", "lower", "upper"))
    lower = np.maximum.accumulate(lower)  # a lower bound stays true for ever
    exact = all(record.exact for run in runs for record in run)
    passes = np.arange(1, seconds.size + 1)
    guess = summed(runs, "estimate") if len(runs) == 1 else np.full(seconds.size, np.inf)
    shown = thinned(seconds.size)  # so that the gap that was estimated ends where the one that is shown begins
    seconds, lower, upper, passes, guess = (a[shown] for a in (seconds, lower, upper, passes, guess))
    known = np.isfinite(upper)
    gap = np.full(upper.size, np.inf)
    gap[known] = np.maximum(upper[known] - lower[known], 0.0) / np.maximum(np.abs(upper[known]), 1e-300)
    points = list(zip(passes, seconds, lower, upper, gap, strict=True))
    notes = [
        f"pass {p}, {numbers.duration(s)}: "
        + (
            f"bounds {numbers.number(a)} and {numbers.number(b)}, gap {_gap(g)}"
            if math.isfinite(b)
            else f"lower bound {numbers.number(a)}, no upper bound yet"
        )
        for p, s, a, b, g in points
    ]
    rows = [
        [str(p), numbers.duration(s), f"{a:.8g}", f"{b:.8g}" if math.isfinite(b) else "–", _gap(g)]
        for p, s, a, b, g in points
    ]
    panels = [_bounds_panel(lower, upper, exact), _gap_panel(gap, guess, tol)]
    # Passes first: the first one may take most of the time (it reads, or compiles), and squeeze the others.
    along = {"passes": passes.astype(np.float64), "seconds": seconds}
    head = ["pass", "time", "lower bound", "upper bound", "relative gap"]
    return drawn(along, panels, notes, head, rows)


def _gap(gap: float) -> str:
    return f"{gap:.1e}" if math.isfinite(gap) else "not known yet"


def _bounds_panel(lower: np.ndarray, upper: np.ndarray, exact: bool) -> Panel:
    known = np.isfinite(upper)
    best = float(lower[-1])
    top = float(upper[known].max()) if known.any() else float(lower.max())
    # An objective is never below zero: that the first lower bounds are, often far below, is not worth the space.
    bottom = max(float(lower.min()), 0.0) if best > 0.0 else float(lower.min())
    # Where the first weights were many times worse than the last, only a logarithm shows both ends.
    scale = "log" if best > 0.0 and top > 10.0 * best else "linear"
    curves = [Curve("lower bound: no weights get below", "lower", lower)]
    if known.any():
        name = "upper bound: these weights reach it" if exact else "objective, as far as the search could see"
        curves.insert(0, Curve(name, "upper", upper))
    return Panel(
        "Bounds on the objective", "objective", curves, linear_range(np.array([top]), bottom),
        (max(bottom, best / 10.0), 1.1 * top) if best > 0.0 else None, scale,
    )  # fmt: skip


def _gap_panel(gap: np.ndarray, guess: np.ndarray, tol: float) -> Panel | None:
    """The gap where it was proved; before that, what the solver took it for."""
    proved = np.isfinite(gap) & (gap > 0.0)
    if not proved.any():
        return None
    first = int(np.argmax(proved))
    guessed = np.isfinite(guess) & (guess > 0.0) & (np.arange(guess.size) <= first) & (first > 0)
    curves = [Curve("proved", "gap", np.where(proved, gap, np.nan))]
    if guessed.any():
        curves.insert(0, Curve("estimated by the solver, not proved yet", "estimate", np.where(guessed, guess, np.nan)))
    drawn_values = np.concatenate([c.values[np.isfinite(c.values)] for c in curves])
    return Panel(
        "Relative gap between the bounds", "relative gap", curves, linear_range(drawn_values, 0.0),
        decade_range(float(drawn_values.min()), float(drawn_values.max()), tol), "log", (tol, f"goal {tol:g}"),
    )  # fmt: skip
