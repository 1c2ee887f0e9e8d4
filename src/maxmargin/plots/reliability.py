"""Reliability diagrams: whether probabilities are what they say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..metrics import reliability_bins
from .needs import axes_for, open_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def reliability(
    y_true: Any,
    probabilities: Any,
    classes: Iterable[Any] | None = None,
    ax: Axes | None = None,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    name: str | None = None,
) -> Axes:
    """Draw a reliability diagram: the share of answers that are right against their confidence.

    On the diagonal probabilities are what they say; below it the model is too sure, above it not sure enough. The areas
    of the dots are as the numbers of answers. Drawn into the same axes, several models can be compared.

    Parameters
    ----------
    y_true, probabilities, classes, n_bins, strategy
        As for :func:`maxmargin.metrics.calibration_error`.
    ax : matplotlib Axes or None
        A new figure by default.
    name : str or None
        What made the probabilities, for the legend, which has the expected calibration error, too.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> axes = reliability([True, True, False, True], [0.75, 0.75, 0.75, 0.75], name="coin")
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['coin: calibration error 0.00 %']
    """
    bins = reliability_bins(y_true, probabilities, classes, n_bins=n_bins, strategy=strategy)
    share = bins.size / bins.size.sum()
    error = 100.0 * float(np.sum(share * np.abs(bins.confidence - bins.right)))
    ax = axes_for(ax, (4.2, 4.0))
    if not ax.lines:
        ax.plot([0.0, 1.0], [0.0, 1.0], color="0.6", linewidth=0.8, linestyle=":")
    label = ("" if name is None else f"{name}: ") + f"calibration error {error:.2f} %"
    (line,) = ax.plot(bins.confidence, bins.right, linewidth=1.2, label=label)
    ax.scatter(bins.confidence, bins.right, s=8.0 + 120.0 * share, color=line.get_color(), alpha=0.8, zorder=3)
    open_frame(ax, "confidence", "share that is right")
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.set_aspect("equal")
    ax.legend(frameon=False, loc="upper left")
    return ax
