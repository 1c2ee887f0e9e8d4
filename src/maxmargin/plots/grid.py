"""The picture of a labelled grid."""

from __future__ import annotations

from typing import Any

import numpy as np

from .needs import axes_for, needs_matplotlib


@needs_matplotlib
def segmentation(labels: Any, image: Any = None, ax: Any = None, *, names: Any = None, opacity: float = 0.45) -> Any:
    """Draw a labelled grid: the labels as colours, over the image they belong to, with the borders between them.

    Parameters
    ----------
    labels : int array (height, width)
    image : array (H, W) or (H, W, 3), or None
        Drawn in grey or colour below the labels, stretched over the same area.
    ax : matplotlib Axes or None
        A new figure by default.
    names : list of str or None
        Names of the labels 0, 1, …, for a legend.
    opacity : float
        How much the labels cover the image.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> axes = segmentation(np.array([[0, 0, 1], [0, 1, 1]]), names=["sky", "land"])
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['sky', 'land']
    """
    table = np.asarray(labels)
    if table.ndim != 2 or table.dtype.kind not in "iub":
        raise ValueError(f"labels must be whole numbers in a table of height × width, got {table.dtype} {table.shape}.")
    from matplotlib import colormaps
    from matplotlib.patches import Patch

    ax = axes_for(ax)
    height, width = table.shape
    extent = (-0.5, width - 0.5, height - 0.5, -0.5)
    colours = colormaps["tab10" if table.max() < 10 else "tab20"]
    if image is not None:
        ax.imshow(image, cmap="gray", extent=extent)
    ax.imshow(colours(table.astype(int) % colours.N), extent=extent, alpha=opacity if image is not None else 1.0)
    _borders(table, ax)
    ax.set_xticks([])
    ax.set_yticks([])
    if names is not None:
        handles = [Patch(color=colours(k % colours.N), label=name) for k, name in enumerate(names)]
        ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return ax


def _borders(table: np.ndarray, ax: Any) -> None:
    """A line between neighbours with different labels."""
    from matplotlib.collections import LineCollection

    row, column = np.nonzero(table[:, 1:] != table[:, :-1])
    upright = [((c + 0.5, r - 0.5), (c + 0.5, r + 0.5)) for r, c in zip(row, column, strict=True)]
    row, column = np.nonzero(table[1:] != table[:-1])
    level = [((c - 0.5, r + 0.5), (c + 0.5, r + 0.5)) for r, c in zip(row, column, strict=True)]
    ax.add_collection(LineCollection(upright + level, colors="black", linewidths=0.8))
