"""The picture of a labelled grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .needs import axes_for, bare, needs_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@needs_matplotlib
def segmentation(
    labels: ArrayLike,
    image: ArrayLike | None = None,
    ax: Axes | None = None,
    *,
    names: Sequence[str] | None = None,
    opacity: float = 0.45,
) -> Axes:
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

    ax = axes_for(ax)
    height, width = table.shape
    colours = colormaps["tab10" if table.max() < 10 else "tab20"]
    draw_cells(
        ax, table.astype(int), [colours(k) for k in range(colours.N)], dict(enumerate(names or ())), picture=image,
        extent=(-0.5, width - 0.5, height - 0.5, -0.5), opacity=opacity,
    )  # fmt: skip
    return ax


def draw_cells(
    ax: Axes,
    table: np.ndarray,
    palette: Sequence[tuple[float, float, float, float]],
    names: dict[int, str],
    *,
    picture: ArrayLike | None,
    extent: tuple[float, float, float, float],
    opacity: float,
    title: str | None = None,
) -> None:
    """Cells in their colours over a picture, with lines between unlike neighbours, and names in a legend."""
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Patch

    if picture is not None:
        ax.imshow(picture, cmap="gray", extent=extent)
    cells, alpha = np.array(palette)[table % len(palette)], opacity if picture is not None else 1.0
    ax.imshow(cells, extent=extent, alpha=alpha, interpolation="nearest")
    left, right, bottom, top = extent
    corner, size = np.array([left, top]), np.array([right - left, bottom - top]) / table.shape[::-1]
    row, column = np.nonzero(table[:, 1:] != table[:, :-1])
    upright = [((c + 1, r), (c + 1, r + 1)) for r, c in zip(row, column, strict=True)]
    row, column = np.nonzero(table[1:] != table[:-1])
    level = [((c, r + 1), (c + 1, r + 1)) for r, c in zip(row, column, strict=True)]
    lines = [corner + size * np.array(ends) for ends in upright + level]
    ax.add_collection(LineCollection(lines, colors="black", linewidths=0.8))
    bare(ax, edges=True)
    if names:
        handles = [Patch(color=palette[k % len(palette)], label=name) for k, name in names.items()]
        ax.legend(handles=handles, title=title, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
