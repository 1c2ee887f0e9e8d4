"""The picture of transition weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from .needs import axes_for, needs_matplotlib


@needs_matplotlib
def transitions(estimator: Any, ax: Any = None, *, most: int = 30) -> Any:
    """Draw the weights of neighbouring labels as a heat map: which label likes to follow which.

    Parameters
    ----------
    estimator : fitted SequenceSVM
        Something with ``transitions_`` and ``classes_``.
    ax : matplotlib Axes or None
        A new figure by default.
    most : int
        If there are more labels, only those with the largest weights in their row or column are drawn.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from maxmargin import SequenceSVM
    >>> svm = SequenceSVM(random_state=0).fit([[["a"], ["b"]], [["b"], ["a"]]], [["A", "B"], ["B", "A"]])
    >>> transitions(svm).get_xlabel()
    'next label'
    """
    if not hasattr(estimator, "transitions_"):
        raise ValueError(f"transitions draws a fitted SequenceSVM, got {estimator!r}. Call fit first.")
    table, names = np.asarray(estimator.transitions_), list(estimator.classes_)
    forbidden: Any = getattr(estimator.model_, "forbidden", None)
    strength = np.maximum(np.abs(table).max(axis=0), np.abs(table).max(axis=1))
    shown = np.sort(np.argsort(-strength, kind="stable")[:most])
    drawn = np.ma.masked_array(table, mask=forbidden)[np.ix_(shown, shown)]
    side = 2.2 + 0.26 * shown.size
    ax = axes_for(ax, (side + 0.8, side))
    limit = float(np.abs(drawn).max()) or 1.0
    ax.set_facecolor("0.85")  # what is forbidden
    image = ax.imshow(drawn, cmap="RdBu_r", vmin=-limit, vmax=limit)
    labels = [str(names[k]) for k in shown]
    ax.set_xticks(np.arange(shown.size), labels, rotation=90)
    ax.set_yticks(np.arange(shown.size), labels)
    ax.set_xlabel("next label")
    ax.set_ylabel("label")
    ax.figure.colorbar(image, ax=ax, shrink=0.8, label="weight")
    for side in ax.spines.values():
        side.set_visible(False)
    return ax
