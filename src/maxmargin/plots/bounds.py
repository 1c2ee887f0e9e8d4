from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_BOUND, _OBJECTIVE = "#c8553d", "#1b6ca8"


def bounds(estimator_or_history: Any, ax: Any = None) -> Any:
    """Draw a search over bounds: bound and objective, the gap between them, and how many latent values changed.

    Parameters
    ----------
    estimator_or_history : fitted estimator with latent variables, or list of BoundRecord
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
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")[1]
    values, gap = np.ravel(ax)
    number, bound, objective, d, changed = (
        np.array([getattr(record, name) for record in history], dtype=np.float64)
        for name in ("number", "bound", "objective", "gap", "changed")
    )
    values.plot(number, bound, ".-", color=_BOUND, label="bound at its minimiser")
    values.plot(number, objective, ".-", color=_OBJECTIVE, label="objective there")
    values.fill_between(number, objective, bound, color="0.9", linewidth=0)
    values.set_ylabel("objective")
    values.legend(frameon=False)
    gap.plot(number, np.where(d > 0.0, d, np.nan), ".-", color="0.2")
    gap.set_yscale("log")
    gap.set_ylabel("gap between bound and objective")
    share = gap.twinx()
    share.bar(number[1:], 100.0 * changed[1:], color="0.8", zorder=0)
    share.set_ylabel("latent values changed (%)")
    share.set_ylim(0.0, 100.0)
    gap.set_zorder(share.get_zorder() + 1)
    gap.patch.set_visible(False)
    for panel in (values, gap):
        panel.set_xlabel("bounds")
        panel.locator_params(axis="x", integer=True)
        panel.spines["top"].set_visible(False)
    return values, gap
