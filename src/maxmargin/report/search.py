"""The section that shows a search over bounds: how an objective that is not convex came down, and what moved.

Latent estimators, detectors and k-means keep one record per bound; joint training of parts one per step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import numbers
from .curves import Curve, Curves, Panel, decade_range, drawn, linear_range, thinned
from .markup import Markup, element, together

_HEAD = ["bound", "time", "bound at its minimiser", "objective", "gap", "latent values changed"]


def search(history: Sequence[Any], bound_tol: float | None = None, what: str = "latent values") -> Markup | None:
    """Charts of bounds, objective and the gap between them. ``what`` is what ``changed`` counts."""
    if not history:
        return None
    names = ("seconds", "bound", "objective", "gap", "changed")
    seconds, bound, objective, gap, changed = (
        np.array([getattr(record, name) for record in history], dtype=np.float64) for name in names
    )
    number = np.arange(1, len(history) + 1)
    shown = thinned(number.size)
    number, seconds, bound, objective, gap, changed = (
        a[shown] for a in (number, seconds, bound, objective, gap, changed)
    )
    share = np.maximum(gap, 0.0) / np.maximum(np.abs(objective), 1e-300)
    notes = [
        f"bound {n}, {numbers.duration(s)}: bound {numbers.number(b)}, objective {numbers.number(f)}, "
        + ("no gap" if g <= 0.0 else f"gap {g:.1e} of it")
        + ("" if k == 0 else f", {numbers.share(c)} of {what} changed")
        for k, (n, s, b, f, g, c) in enumerate(zip(number, seconds, bound, objective, share, changed, strict=True))
    ]
    rows = [
        [str(n), numbers.duration(s), f"{b:.8g}", f"{f:.8g}", f"{g:.1e}", "–" if k == 0 else numbers.share(c)]
        for k, (n, s, b, f, g, c) in enumerate(zip(number, seconds, bound, objective, gap, changed, strict=True))
    ]
    values = Panel(
        "Bounds and objective", "objective",
        [Curve("bound at its minimiser", "upper", bound), Curve("objective there", "lower", objective)],
        linear_range(np.concatenate([bound, objective])), _above_zero(bound, objective), "linear",
    )  # fmt: skip
    panels = [values, _gap_panel(share, bound_tol), _changes_panel(changed, what)]
    head = [*_HEAD[:-1], f"{what} changed"]
    along = {"bounds": number.astype(np.float64), "seconds": seconds}
    curves = Curves(along, [panel for panel in panels if panel is not None], notes, head, rows)
    lead = "Every bound lies above the objective. A search goes on from the minimiser of each to the next."
    return together(element("p", lead, class_="note"), drawn(curves, "search"))


def steps(history: Sequence[Any]) -> Markup | None:
    """Joint training: the objective after each step for weights or for filters."""
    if not history:
        return None
    seconds, objective = (
        np.array([getattr(r, name) for r in history], dtype=np.float64) for name in ("seconds", "objective")
    )
    number = np.arange(1, len(history) + 1)
    taken = ["" if record.taken else ", not taken" for record in history]
    notes = [
        f"round {r.round}, {r.step}: objective {numbers.number(r.objective)}{t}, {numbers.duration(r.seconds)}"
        for r, t in zip(history, taken, strict=True)
    ]
    rows = [
        [str(r.round), r.step, numbers.duration(r.seconds), f"{r.objective:.8g}", "no" if t else "yes"]
        for r, t in zip(history, taken, strict=True)
    ]
    shown = thinned(number.size)
    panel = Panel(
        "Objective after each step", "objective", [Curve("objective", "lower", objective[shown])],
        linear_range(objective), _above_zero(objective), "linear",
    )  # fmt: skip
    along = {"steps": number[shown].astype(np.float64), "seconds": seconds[shown]}
    kept = [notes[i] for i in shown], [rows[i] for i in shown]
    return drawn(Curves(along, [panel], kept[0], ["round", "step", "time", "objective", "taken"], kept[1]), "steps")


def climb(likelihoods: Sequence[float]) -> Markup | None:
    """Likelihoods of EM, which only rise."""
    if len(likelihoods) < 2:
        return None
    values = np.asarray(likelihoods, dtype=np.float64)
    number = np.arange(1, values.size + 1)
    shown = thinned(values.size)
    notes = [f"iteration {n}: log-likelihood {numbers.number(v)}" for n, v in zip(number, values, strict=True)]
    rows = [[str(n), f"{v:.8g}"] for n, v in zip(number, values, strict=True)]
    panel = Panel(
        "Log-likelihood", "log-likelihood", [Curve("log-likelihood", "lower", values[shown])],
        linear_range(values), None, "linear",
    )  # fmt: skip
    along = {"iterations": number[shown].astype(np.float64)}
    head = ["iteration", "log-likelihood"]
    return drawn(Curves(along, [panel], [notes[i] for i in shown], head, [rows[i] for i in shown]), "em")


def _above_zero(*values: np.ndarray) -> tuple[float, float] | None:
    every = np.concatenate(values)
    low, high = float(every.min()), float(every.max())
    return (low / 1.1, 1.1 * high) if low > 0.0 else None


def _gap_panel(share: np.ndarray, goal: float | None) -> Panel | None:
    positive = share[share > 0.0]
    if not positive.size:
        return None
    goals = () if not goal else (goal,)
    scale = "log" if positive.size == share.size else "linear"  # on which there is a place for no gap at all
    return Panel(
        "Gap between bound and objective", "gap, share of objective", [Curve("gap", "gap", share)],
        linear_range(share, 0.0), decade_range(float(positive.min()), float(positive.max()), *goals), scale,
        (goal, f"goal {goal:g}") if goal else None,
    )  # fmt: skip


def _changes_panel(changed: np.ndarray, what: str) -> Panel | None:
    """How many changed; what the first bound changed is no news."""
    if changed.size < 3:
        return None
    values = np.where(np.arange(changed.size) == 0, np.nan, 100.0 * changed)
    return Panel(
        f"How many {what} changed", f"{what} changed, %", [Curve("changed", "gap", values)],
        (0.0, max(1.0, 1.05 * float(np.nanmax(values)))), None, "linear",
    )  # fmt: skip
