"""Filters over histograms of oriented gradients, drawn as the edges that they like."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ...plots.needs import axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ORIENTATIONS = 9
_LENGTH = 32  # features of a cell
_SIDE = 20  # pixels of a drawn cell


def hog_glyphs(weights: object, ax: Axes | None = None, *, limit: float | None = None) -> Axes:
    """Draw a filter over histograms of gradients: in every cell the edges that it likes, brighter the more it does.

    A cell has 9 bars, one for each orientation of an edge. What a bar stands for is the sum of all positive weights of
    its orientation: of the two directions in which brightness can rise across such an edge, and of both together.
    The weights of textures, which have no orientation, are not shown. ``hog_glyphs(-weights)`` draws what it dislikes.

    Parameters
    ----------
    weights : float array (rows, columns, 32)
        Of a filter, such as one of ``PartClassifier.filter_images()``; or the features themselves.
    ax : matplotlib Axes or None
        A new figure by default.
    limit : float or None
        What is drawn as white; the largest value by default. Give it to make several filters comparable.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> weights = np.zeros((2, 3, 32))
    >>> weights[0, 1, 4] = 1.0
    >>> hog_glyphs(weights).images[0].get_array().shape
    (40, 60)
    """
    liked, _ = edge_strengths(weights)
    picture = glyph_image(liked)
    down, across = (max(side / 40.0, 1.5) for side in picture.shape)  # half an inch for a cell
    ax = axes_for(ax, (across, down))
    white = float(liked.max()) if limit is None else float(limit)
    ax.imshow(picture, cmap="gray", vmin=0.0, vmax=white or 1.0, interpolation="antialiased")
    ax.set_axis_off()
    return ax


def edge_strengths(weights: object) -> tuple[np.ndarray, np.ndarray]:
    """How much each orientation is liked, and how much disliked: two arrays (rows, columns, 9), nowhere negative."""
    try:
        w = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        w = np.empty(0)
    if w.ndim != 3 or w.shape[2] != _LENGTH or not w.size:
        raise ValueError(
            f"weights: a filter over histograms of gradients is an array of rows, columns and {_LENGTH} features, got "
            "shape "
            f"{w.shape}. One of PartClassifier.filter_images() is such an array, if features are 'hog'."
        )
    by_orientation = w[:, :, : 3 * _ORIENTATIONS].reshape(*w.shape[:2], 3, _ORIENTATIONS)
    liked, disliked = (np.maximum(sign * by_orientation, 0.0).sum(axis=2) for sign in (1.0, -1.0))
    return liked, disliked


def glyph_image(strengths: np.ndarray) -> np.ndarray:
    """A picture with a glyph for each cell: of the bars that meet in a pixel the strongest is seen."""
    rows, columns = strengths.shape[:2]
    bars = strengths[:, :, :, None, None] * _bars()
    return bars.max(axis=2).swapaxes(1, 2).reshape(rows * _SIDE, columns * _SIDE)


@cache
def _bars() -> np.ndarray:
    """Of each orientation a bar, (9, side, side): across the gradient, as an edge is."""
    y, x = (np.mgrid[:_SIDE, :_SIDE] + 0.5) / (0.5 * _SIDE) - 1.0
    angle = np.deg2rad(180.0 / _ORIENTATIONS) * np.arange(_ORIENTATIONS)[:, None, None]
    away = np.abs(x * np.cos(angle) + y * np.sin(angle))  # along the gradient
    along = np.abs(y * np.cos(angle) - x * np.sin(angle))
    thin, short = (np.clip((limit - distance) * 0.5 * _SIDE + 0.5, 0.0, 1.0) for distance, limit in
                   ((away, 0.09), (along, 0.92)))  # fmt: skip
    return thin * short
