"""The picture of a confusion matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from .needs import axes_for, needs_matplotlib


@needs_matplotlib
def confusion(y_true: Any, y_pred: Any, classes: Any = None, ax: Any = None, *, name: str | None = None) -> Any:
    """Draw which class was taken for which, in per cent of the true class, with the mean of the diagonal in the title.

    That mean is the *mean per-class accuracy*: small classes count as much as large ones.

    Parameters
    ----------
    y_true, y_pred : arrays (n,)
    classes : list or None
        The classes in the order to draw them, all that occur among them; sorted by default. One without examples has
        an empty row, and no part in the mean.
    ax : matplotlib Axes or None
        A new figure by default.
    name : str or None
        What made the answers, for the title.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> confusion(["a", "a", "b"], ["a", "b", "b"], name="BoW").get_title()
    'BoW (75.0)'
    """
    true, answered = np.asarray(y_true), np.asarray(y_pred)
    if true.ndim != 1 or true.shape != answered.shape or not true.size:
        raise ValueError(
            f"y_true and y_pred need one class for each example, got shapes {true.shape} and {answered.shape}."
        )
    known = np.union1d(true, answered) if classes is None else np.asarray(classes)
    place = {label: k for k, label in enumerate(known.tolist())}
    missing = sorted({str(label) for label in (*true.tolist(), *answered.tolist()) if label not in place})
    if missing:
        raise ValueError(f"classes must name all that occur; {', '.join(missing[:5])} is missing.")
    counts = np.zeros((known.size, known.size))
    np.add.at(counts, ([place[c] for c in true.tolist()], [place[c] for c in answered.tolist()]), 1.0)
    totals = counts.sum(axis=1, keepdims=True)
    share = 100.0 * counts / np.where(totals > 0.0, totals, np.nan)
    side = 1.8 + 0.42 * known.size
    ax = axes_for(ax, (side, side))
    ax.set_facecolor("0.9")  # classes without examples
    ax.imshow(share, cmap="Blues", vmin=0.0, vmax=100.0)
    for (row, column), value in np.ndenumerate(share):
        if value >= 0.5:  # what rounds to nothing would only hide what matters
            ink = "white" if value > 55 else "0.15"
            ax.text(column, row, f"{value:.0f}", ha="center", va="center", fontsize=8, color=ink)
    labels = [str(label) for label in known]
    ax.set_xticks(np.arange(known.size), labels, rotation=90 if known.size > 3 else 0)
    ax.set_yticks(np.arange(known.size), labels)
    ax.set_xlabel("answer")
    ax.set_ylabel("class")
    ax.tick_params(length=0)
    mean = float(np.nanmean(np.diag(share)))
    ax.set_title(f"mean of the diagonal: {mean:.1f} %" if name is None else f"{name} ({mean:.1f})")
    for edge in ax.spines.values():
        edge.set_visible(False)
    return ax
