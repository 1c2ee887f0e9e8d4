"""How training went: curves over passes or bounds, several panels over the same points, and the same as a table.

They are still pictures that a little script brings to life. Without the script the page shows the pictures and a switch
for what runs along the bottom; with it, pointing, touching or the arrow keys tell values, the scale can be changed and
a part looked at closely. The numbers are in the page once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence, Sized
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..plots.convergence import column, runs_of, summed
from ..problem import BoundRecord, Record
from . import numbers
from .charts import Curve, Panel, is_counted, step_chart
from .markup import Markup, element, note, table, together

if TYPE_CHECKING:
    from ..clustering.kmeans import ClusterRecord
    from ..vision.parts.joint import JointRecord

# More points than this cannot be told apart in a chart, and would only make the file large.
_MOST_POINTS = 120
_MOST_ROWS = 25


def convergence(history: Sequence[Record], tol: float) -> Markup | None:
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
    panels = [_bounds_panel(lower, upper, exact), _proved_panel(gap, guess, tol)]
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


def _proved_panel(gap: np.ndarray, guess: np.ndarray, tol: float) -> Panel | None:
    """The gap where it was proved; before that, what the solver took it for."""
    proved = np.isfinite(gap) & (gap > 0.0)
    if not proved.any():
        return None
    first = int(np.argmax(proved))
    guessed = np.isfinite(guess) & (guess > 0.0) & (np.arange(guess.size) <= first) & (first > 0)
    curves = [Curve("proved", "gap", np.where(proved, gap, np.nan))]
    if guessed.any():
        curves.insert(0, Curve("estimated by the solver, not proved yet", "estimate", np.where(guessed, guess, np.nan)))
    seen = np.concatenate([c.values[np.isfinite(c.values)] for c in curves])
    return Panel(
        "Relative gap between the bounds", "relative gap", curves, linear_range(seen, 0.0),
        decade_range(float(seen.min()), float(seen.max()), tol), "log", (tol, f"goal {tol:g}"),
    )  # fmt: skip


def search(
    history: Sequence[BoundRecord | ClusterRecord], bound_tol: float | None = None, what: str = "latent values"
) -> Markup | None:
    """Charts of bounds, objective and the gap between them. ``what`` is what ``changed`` counts."""
    if not history:
        return None
    seconds, bound, objective, gap, changed = (
        column(history, name) for name in ("seconds", "bound", "objective", "gap", "changed")
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


def steps(history: Sequence[JointRecord]) -> Markup | None:
    """Joint training: the objective after each step for weights or for filters."""
    if not history:
        return None
    notes, rows = [], []
    for r in history:
        seconds, taken = numbers.duration(r.seconds), "" if r.taken else ", not taken"
        notes.append(f"round {r.round}, {r.step}: objective {numbers.number(r.objective)}{taken}, {seconds}")
        rows.append([str(r.round), r.step, seconds, f"{r.objective:.8g}", "yes" if r.taken else "no"])
    panel = _objective_panel("Objective after each step", [Curve("objective", "lower", column(history, "objective"))])
    along = {"steps": _counted(history), "seconds": column(history, "seconds")}
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


def _counted(history: Sized) -> np.ndarray:
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


def drawn(
    along: dict[str, np.ndarray],
    panels: Sequence[Panel | None],
    notes: Sequence[str],
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
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
    listed = table(list(head), [rows[i] for i in thinned(len(rows), _MOST_ROWS)], "numbers")
    return together(
        element("div", *views, class_="views", data_curves=_numbers(along, kept, notes)),
        element("details", element("summary", "As a table"), listed),
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
