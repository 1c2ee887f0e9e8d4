"""Pictures of tables with the names of classes: confusions, and weights of neighbouring labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .needs import axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..estimators import SequenceSVM


def confusion(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    classes: Sequence[Any] | np.ndarray | None = None,
    ax: Axes | None = None,
    *,
    name: str | None = None,
) -> Axes:
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
    missing = sorted(set(map(str, np.union1d(true, answered))) - set(map(str, known)))
    if missing:
        raise ValueError(f"classes must name all that occur; {', '.join(missing[:5])} is missing.")
    counts = np.array([[np.sum((true == one) & (answered == other)) for other in known] for one in known], float)
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
    names = [str(name) for name in known]
    ax.set_xticks(np.arange(len(names)), names, rotation=90 if len(names) > 3 else 0)
    ax.set_yticks(np.arange(len(names)), names)
    ax.set_xlabel("prediction")
    ax.set_ylabel("class")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    mean = float(np.nanmean(np.diag(share)))
    ax.set_title(f"mean of the diagonal: {mean:.1f} %" if name is None else f"{name} ({mean:.1f})")
    return ax


def transitions(estimator: SequenceSVM, ax: Axes | None = None, *, most: int = 30) -> Axes:
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
    strength = np.maximum(np.abs(table).max(axis=0), np.abs(table).max(axis=1))
    shown = np.sort(np.argsort(-strength, kind="stable")[:most])
    forbidden = estimator.model_.forbidden
    drawn = np.ma.masked_array(table, mask=False if forbidden is None else forbidden)[np.ix_(shown, shown)]
    side = 2.2 + 0.26 * shown.size
    ax = axes_for(ax, (side + 0.8, side))
    ax.set_facecolor("0.85")  # what is forbidden
    draw_weights(ax, drawn, float(np.abs(drawn).max()), names=[str(names[k]) for k in shown], label="weight")
    ax.set_yticks(np.arange(shown.size), [str(names[k]) for k in shown])
    ax.set_xlabel("next label")
    ax.set_ylabel("label")
    return ax


def draw_weights(ax: Axes, table: np.ndarray, limit: float, *, names: list[str], label: str = "") -> None:
    """Weights as a heat map about zero, up to a limit: red above, blue below, with a scale and names of columns."""
    limit = limit or 1.0
    image = ax.imshow(table, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest")
    ax.set_xticks(np.arange(len(names)), names, rotation=90 if len(names) > 3 else 0)
    ax.tick_params(length=0)
    ax.figure.colorbar(image, ax=ax, shrink=0.8, label=label)
