"""Pictures of training: bounds on the optimum over time, and a search over convex bounds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..problem import Record
from ..validation import one_of, shown
from .needs import figure_for, open_frame

_LOWER, _UPPER = "#1b6ca8", "#c8553d"


def convergence(estimator_or_history: object, ax: object = None, *, against: str = "seconds") -> Any:
    """Draw how the two bounds closed in on the optimum, and the relative gap between them.

    One-vs-rest problems are drawn as the one problem they add up to.

    Parameters
    ----------
    estimator_or_history : fitted estimator, or list of Record
        Something with ``history_``, or such a history itself.
    ax : pair of matplotlib Axes or None
        Where to draw the bounds and the gap; a new figure by default.
    against : {"seconds", "oracle_calls", "passes"}
        What runs along the bottom. Oracle calls count how often an example was searched or visited: they are the
        same on every machine.

    Returns
    -------
    pair of Axes
        The panel of the bounds and that of the gap.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import LinearSVC
    >>> bounds, gap = convergence(LinearSVC(random_state=0).fit(*load_iris(return_X_y=True)))
    >>> gap.get_yscale()
    'log'
    """
    one_of("against", against, ("seconds", "oracle_calls", "passes"))
    runs = runs_of(_history(estimator_or_history))
    lower, upper = (summed(runs, name) for name in ("lower", "upper"))
    place = np.arange(1.0, lower.size + 1.0) if against == "passes" else summed(runs, against)
    # A lower bound stays true for ever: the best so far is what is known.
    lower = np.maximum.accumulate(lower)
    known = np.isfinite(upper)
    bounds, gap = _pair(ax)

    exact = all(record.exact for run in runs for record in run)
    name = "upper bound (these weights reach it)" if exact else "objective, as far as the search could see"
    bounds.step(place[known], upper[known], where="post", color=_UPPER, label=name)
    bounds.step(place, lower, where="post", color=_LOWER, label="lower bound (no weights get below)")
    bounds.plot(place[-1:], upper[-1:], "o", color=_UPPER, markersize=4)
    bounds.fill_between(place[known], lower[known], upper[known], step="post", color="0.85", linewidth=0)
    bounds.legend(frameon=False, loc="best")

    relative = np.maximum(upper[known] - lower[known], 0.0) / np.maximum(np.abs(upper[known]), 1e-300)
    drawn = relative > 0.0
    gap.step(place[known][drawn], relative[drawn], where="post", color="0.2")
    gap.plot(place[known][drawn][-1:], relative[drawn][-1:], "o", color="0.2", markersize=4)
    gap.set_yscale("log")
    across = against.replace("_", " ")
    open_frame(bounds, across, "objective")
    open_frame(gap, across, "relative gap" if exact else "relative gap, as far as the search could see")
    for panel in (bounds, gap):
        panel.set_xlim(0.0, 1.03 * place[-1])
        panel.locator_params(axis="x", nbins=5)
    return bounds, gap


def bounds(estimator_or_history: object, ax: object = None) -> Any:
    """Draw a search over bounds: bound and objective, the gap between them, and how many latent values changed.

    Parameters
    ----------
    estimator_or_history : fitted estimator with latent variables, or list of BoundRecord
        Where the numbers of bounds begin anew, as after the roots of a detector, another search has begun: its curves
        stand to the right of a dotted line.
    ax : pair of matplotlib Axes or None
        Where to draw the values, and the gap with the share of changes; a new figure by default.

    Returns
    -------
    pair of Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from maxmargin import LatentStructuralSVM
    >>> from maxmargin.models import Bags
    >>> X, y = np.random.default_rng(0).normal(size=(20, 3, 2)), np.arange(20) % 2
    >>> values, gap = bounds(LatentStructuralSVM(Bags(), bound="gmm", random_state=0).fit(X, y))
    >>> values.get_xlabel()
    'bounds'
    """
    history = _history(estimator_or_history)
    if not isinstance(history, Sequence) or not history or not hasattr(history[0], "changed"):
        raise ValueError(
            f"bounds draws a fitted estimator with latent variables or its history, got {estimator_or_history!r}."
        )
    values, gap = _pair(ax)
    bound, objective, d, changed = (column(history, name) for name in ("bound", "objective", "gap", "changed"))
    place = np.arange(1.0, bound.size + 1.0)
    begins = np.flatnonzero(np.diff(column(history, "number")) <= 0.0) + 1
    for k, search in enumerate(np.split(np.arange(bound.size), begins)):
        at, names = place[search], ("bound at its minimiser", "objective there") if k == 0 else (None, None)
        values.plot(at, bound[search], ".-", color=_UPPER, label=names[0])
        values.plot(at, objective[search], ".-", color=_LOWER, label=names[1])
        values.fill_between(at, objective[search], bound[search], color="0.9", linewidth=0)
        gap.plot(at, np.where(d[search] > 0.0, d[search], np.nan), ".-", color="0.2")
    values.set_ylabel("objective")
    values.legend(frameon=False)
    gap.set_yscale("log")
    gap.set_ylabel("gap between bound and objective")
    share = gap.twinx()
    known = np.delete(np.arange(bound.size), [0, *begins])  # what the first bound of a search changed is no news
    share.bar(place[known], 100.0 * changed[known], color="0.8", zorder=0)
    share.set_ylabel("latent values changed (%)")
    share.set_ylim(0.0, 100.0)
    gap.set_zorder(share.get_zorder() + 1)
    gap.patch.set_visible(False)
    for panel in (values, gap):
        for begin in begins:
            panel.axvline(begin + 0.5, color="0.5", linewidth=0.8, linestyle=":")
        panel.set_xlabel("bounds")
        panel.set_xlim(0.4, bound.size + 0.6)  # where a single bound is in the middle, at a whole number
        panel.locator_params(axis="x", integer=True, min_n_ticks=1)
        panel.spines["top"].set_visible(False)
    return values, gap


def _history(estimator_or_history: object) -> Any:
    return getattr(estimator_or_history, "history_", estimator_or_history)


def runs_of(history: Sequence[Record]) -> list[Sequence[Record]]:
    """The history of each problem: they stand one after another, each beginning with pass 1."""
    if not isinstance(history, Sequence) or not history or not hasattr(history[0], "number"):
        raise ValueError(
            f"estimator_or_history must be a fitted estimator or a list of records, got {shown(history)}. Call fit "
            "first."
        )
    if not hasattr(history[0], "upper"):
        raise ValueError("convergence draws the passes of one convex problem; plots.bounds draws a search over bounds.")
    starts = [i for i, record in enumerate(history) if record.number == 1]
    return [history[a:b] for a, b in pairwise([*starts, len(history)])]


def summed(runs: list[Sequence[Record]], name: str) -> np.ndarray:
    """Sum over the problems at every pass; one that has ended keeps its last value."""
    longest = max(len(run) for run in runs)
    values = [column(run, name) for run in runs]
    return np.sum([np.pad(v, (0, longest - v.size), mode="edge") for v in values], axis=0)


def column(history: Sequence[Any], name: str) -> np.ndarray:
    """One number of all records."""
    return np.array([getattr(record, name) for record in history], dtype=np.float64)


def _pair(ax: object) -> tuple[Any, Any]:
    """Two axes side by side to draw into: those given, or those of a new figure."""
    given = np.asarray(figure_for(None, (10, 3.6)).subplots(1, 2) if ax is None else ax, dtype=object).ravel()
    if given.size != 2:
        raise ValueError(f"ax must be two Axes, one for the bounds and one for the gap, got {given.size}.")
    return given[0], given[1]
