"""The section that shows a search over bounds: how an objective that is not convex came down, and what moved.

Latent estimators, detectors and k-means keep one record per bound; joint training of parts one per step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import numbers
from .charts import Curve, Panel
from .curves import decade_range, drawn, linear_range
from .markup import Markup, note, together


def search(history: Sequence[Any], bound_tol: float | None = None, what: str = "latent values") -> Markup | None:
    """Charts of bounds, objective and the gap between them. ``what`` is what ``changed`` counts."""
    if not history:
        return None
    seconds, bound, objective, gap, changed = (
        _column(history, name) for name in ("seconds", "bound", "objective", "gap", "changed")
    )
    share = np.maximum(gap, 0.0) / np.maximum(np.abs(objective), 1e-300)
    notes, rows = [], []
    for k, (s, b, f, d, g, c) in enumerate(zip(seconds, bound, objective, gap, share, changed, strict=True)):
        moved = numbers.share(c) if k else "–"
        notes.append(
            f"bound {k + 1}, {numbers.duration(s)}: bound {numbers.number(b)}, objective {numbers.number(f)}, "
            + ("no gap" if g <= 0.0 else f"gap {g:.1e} of it")
            + (f", {moved} of {what} changed" if k else "")
        )
        rows.append([str(k + 1), numbers.duration(s), f"{b:.8g}", f"{f:.8g}", f"{d:.1e}", moved])
    curves = [Curve("bound at its minimiser", "upper", bound), Curve("objective there", "lower", objective)]
    panels = [_objective_panel("Bounds and objective", curves), _gap_panel(share, bound_tol)]
    head = ["bound", "time", "bound at its minimiser", "objective", "gap", f"{what} changed"]
    lead = "Every bound lies above the objective. A search goes on from the minimiser of each to the next."
    charts = drawn(
        {"bounds": _counted(history), "seconds": seconds}, [*panels, _changes_panel(changed, what)], notes, head, rows,
        "search",
    )  # fmt: skip
    return together(note(lead), charts)


def steps(history: Sequence[Any]) -> Markup | None:
    """Joint training: the objective after each step for weights or for filters."""
    if not history:
        return None
    notes, rows = [], []
    for r in history:
        seconds, taken = numbers.duration(r.seconds), "" if r.taken else ", not taken"
        notes.append(f"round {r.round}, {r.step}: objective {numbers.number(r.objective)}{taken}, {seconds}")
        rows.append([str(r.round), r.step, seconds, f"{r.objective:.8g}", "yes" if r.taken else "no"])
    panel = _objective_panel("Objective after each step", [Curve("objective", "lower", _column(history, "objective"))])
    along = {"steps": _counted(history), "seconds": _column(history, "seconds")}
    return drawn(along, [panel], notes, ["round", "step", "time", "objective", "taken"], rows, "steps")


def climb(likelihoods: Sequence[float]) -> Markup | None:
    """Likelihoods of EM, which only rise."""
    if len(likelihoods) < 2:
        return None
    values = np.asarray(likelihoods, dtype=np.float64)
    name = "log-likelihood"
    panel = Panel(name.capitalize(), name, [Curve(name, "lower", values)], linear_range(values), None, "linear")
    notes = [f"iteration {n}: log-likelihood {numbers.number(v)}" for n, v in enumerate(values, 1)]
    rows = [[str(n), f"{v:.8g}"] for n, v in enumerate(values, 1)]
    return drawn({"iterations": _counted(likelihoods)}, [panel], notes, ["iteration", name], rows, "em")


def _column(history: Sequence[Any], name: str) -> np.ndarray:
    return np.array([getattr(record, name) for record in history], dtype=np.float64)


def _counted(history: Sequence[Any]) -> np.ndarray:
    return np.arange(1.0, len(history) + 1.0)


def _objective_panel(title: str, curves: list[Curve]) -> Panel:
    values = np.concatenate([curve.values for curve in curves])
    low, high = float(values.min()), float(values.max())
    log = (low / 1.1, 1.1 * high) if low > 0.0 else None
    return Panel(title, "objective", curves, linear_range(values), log, "linear")


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
