"""The picture of a labelled grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .needs import axes_for, bare

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def segmentation(
    labels: ArrayLike,
    image: ArrayLike | None = None,
    ax: Axes | None = None,
    *,
    names: Sequence[str] | None = None,
    opacity: float = 0.45,
) -> Axes:
    """Draw a labelled grid: the labels as colours, over the image they belong to, with the borders between them.

    A label has the same colour in every picture.

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
    if table.ndim != 2 or table.dtype.kind not in "iub" or not table.size:
        raise ValueError(f"labels must be whole numbers in a table of height × width, got {table.dtype} {table.shape}.")
    ax = axes_for(ax)
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Patch

    size = table.shape[::-1] if image is None else np.shape(image)[1::-1]
    extent = (0, size[0], size[1], 0)
    if image is not None:
        ax.imshow(np.asarray(image), cmap="gray", extent=extent)
    every = colormaps["tab20"].colors  # type: ignore[attr-defined]
    palette = np.array([*every[::2], *every[1::2]])  # strong colours first, then paler ones
    cells = palette[table.astype(int) % len(palette)]
    ax.imshow(cells, extent=extent, alpha=1.0 if image is None else opacity, interpolation="nearest")
    row, column = np.nonzero(table[:, 1:] != table[:, :-1])
    upright = np.stack([[column + 1, row], [column + 1, row + 1]])
    row, column = np.nonzero(table[1:] != table[:-1])
    level = np.stack([[column, row + 1], [column + 1, row + 1]])
    lines = np.concatenate([upright, level], axis=2).transpose(2, 0, 1) * np.divide(size, table.shape[::-1])
    ax.add_collection(LineCollection(list(lines), colors="black", linewidths=0.8))
    bare(ax, edges=True)
    if names is not None:
        used = [int(k) for k in np.unique(table) if 0 <= k < len(names)]
        handles = [Patch(color=palette[k % len(palette)], label=str(names[k])) for k in used]
        ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return ax
