"""The picture of a search over convex bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .needs import needs_matplotlib, pair_for

_BOUND, _OBJECTIVE = "#c8553d", "#1b6ca8"


@needs_matplotlib
def bounds(estimator_or_history: Any, ax: Any = None) -> Any:
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
    history = getattr(estimator_or_history, "history_", estimator_or_history)
    if not isinstance(history, Sequence) or not history or not hasattr(history[0], "changed"):
        raise ValueError(
            f"bounds draws a fitted estimator with latent variables or its history, got {estimator_or_history!r}."
        )
    values, gap = pair_for(ax)
    number, bound, objective, d, changed = (
        np.array([getattr(record, name) for record in history], dtype=np.float64)
        for name in ("number", "bound", "objective", "gap", "changed")
    )
    begins = np.flatnonzero(np.diff(number, prepend=-np.inf) <= 0.0).tolist()
    for begin in begins:
        number[begin:] += number[begin - 1]
    for k, search in enumerate(np.split(np.arange(number.size), begins)):
        at, names = number[search], ("bound at its minimiser", "objective there") if k == 0 else (None, None)
        values.plot(at, bound[search], ".-", color=_BOUND, label=names[0])
        values.plot(at, objective[search], ".-", color=_OBJECTIVE, label=names[1])
        values.fill_between(at, objective[search], bound[search], color="0.9", linewidth=0)
        gap.plot(at, np.where(d[search] > 0.0, d[search], np.nan), ".-", color="0.2")
    values.set_ylabel("objective")
    values.legend(frameon=False)
    gap.set_yscale("log")
    gap.set_ylabel("gap between bound and objective")
    share = gap.twinx()
    known = np.delete(np.arange(number.size), [0, *begins])  # what the first bound of a search changed is no news
    share.bar(number[known], 100.0 * changed[known], color="0.8", zorder=0)
    share.set_ylabel("latent values changed (%)")
    share.set_ylim(0.0, 100.0)
    gap.set_zorder(share.get_zorder() + 1)
    gap.patch.set_visible(False)
    for panel in (values, gap):
        for begin in begins:
            panel.axvline(0.5 * (number[begin - 1] + number[begin]), color="0.5", linewidth=0.8, linestyle=":")
        panel.set_xlabel("bounds")
        panel.set_xlim(number[0] - 0.6, number[-1] + 0.6)  # where a single bound is in the middle, at a whole number
        panel.locator_params(axis="x", integer=True, min_n_ticks=1)
        panel.spines["top"].set_visible(False)
    return values, gap
