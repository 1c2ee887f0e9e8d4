"""How training went: curves over passes or bounds, several panels over the same points, and the same as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..plots.convergence import column, runs_of, summed
from ..problem import BoundRecord, Record
from . import numbers
from .charts import Curve, Panel, chart
from .markup import Markup, note, together

if TYPE_CHECKING:
    from ..clustering.kmeans import ClusterRecord
    from ..vision.parts.joint import JointRecord


def convergence(history: Sequence[Record], tol: float) -> Markup | None:
    """Charts of bounds and gap; None where no pass was recorded."""
    if not history:
        return None
    runs = runs_of(history)
    seconds, lower, upper = (summed(runs, name) for name in ("seconds", "lower", "upper"))
    lower = np.maximum.accumulate(lower)  # a lower bound stays true for ever
    with np.errstate(invalid="ignore"):  # there may be no upper bound yet, and no gap then
        gap = np.maximum(upper - lower, 0.0) / np.maximum(np.abs(upper), 1e-300)
    exact = all(record.exact for run in runs for record in run)
    passes = np.arange(1.0, seconds.size + 1.0)
    reached = "upper bound: these weights reach it" if exact else "objective, as far as the search could see"
    curves = [Curve(reached, "upper", upper), Curve("lower bound: no weights get below", "lower", lower)]
    # The first lower bounds are often far below: they are not worth the space. Where the first weights were many times
    # worse than the last, only a logarithm shows both ends.
    best, worst = float(lower[-1]), float(upper[np.isfinite(upper)].max(initial=-math.inf))
    panels = [
        Panel("objective", curves, log=0.0 < 10.0 * best < worst, floor=best / 10.0 if best > 0.0 else None),
        Panel("relative gap", [Curve("relative gap", "gap", gap)], log=True, goal=tol),
    ]
    rows = [
        [f"{p:.0f}", numbers.duration(s), _value(a), _value(b), _value(g, ".1e")]
        for p, s, a, b, g in zip(passes, seconds, lower, upper, gap, strict=True)
    ]
    # Passes first: the first one may take most of the time (it reads, or compiles), and squeeze the others.
    head = ["pass", "time", "lower bound", "upper bound", "relative gap"]
    return chart({"passes": passes, "seconds": seconds}, panels, head, rows)


def _value(value: float, digits: str = ".8g") -> str:
    return format(value, digits) if math.isfinite(value) else "–"


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
    changed[0] = np.nan  # what the first bound changed is no news
    curves = [Curve("bound at its minimiser", "upper", bound), Curve("objective there", "lower", objective)]
    panels = [
        Panel("objective", curves),
        # Only on the other scale there is a place for no gap at all.
        Panel("gap, share of objective", [Curve("gap", "gap", share)], log=bool((share > 0.0).all()), goal=bound_tol),
        Panel(f"{what} changed, %", [Curve("changed", "gap", 100.0 * changed)]),
    ]
    counted = np.arange(1.0, len(history) + 1.0)
    rows = [
        [f"{k:.0f}", numbers.duration(s), _value(b), _value(f), _value(d, ".1e"), numbers.share(c) if k > 1 else "–"]
        for k, s, b, f, d, c in zip(counted, seconds, bound, objective, share, changed, strict=True)
    ]
    head = ["bound", "time", "bound at its minimiser", "objective", "gap", f"{what} changed"]
    lead = "Every bound lies above the objective. A search goes on from the minimiser of each to the next."
    return together(note(lead), chart({"bounds": counted, "seconds": seconds}, panels, head, rows))


def steps(history: Sequence[JointRecord]) -> Markup | None:
    """Joint training: the objective after each step for weights or for filters."""
    if not history:
        return None
    rows = [
        [str(r.round), r.step, numbers.duration(r.seconds), _value(r.objective), "yes" if r.taken else "no"]
        for r in history
    ]
    panel = Panel("objective", [Curve("objective", "lower", column(history, "objective"))])
    along = {"steps": np.arange(1.0, len(history) + 1.0), "seconds": column(history, "seconds")}
    return chart(along, [panel], ["round", "step", "time", "objective", "taken"], rows)


def climb(likelihoods: Sequence[float]) -> Markup | None:
    """Likelihoods of EM, which only rise."""
    if len(likelihoods) < 2:
        return None
    name = "log-likelihood"
    panel = Panel(name, [Curve(name, "lower", np.array(likelihoods, dtype=np.float64))])
    rows = [[str(n), _value(v)] for n, v in enumerate(likelihoods, 1)]
    return chart({"iterations": np.arange(1.0, len(rows) + 1.0)}, [panel], ["iteration", name], rows)
