"""Pictures need matplotlib, which not everybody has installed, and a place to be drawn at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase


def pyplot() -> Any:
    """Matplotlib's ``pyplot``; where it is missing, the error says how to get it."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            'Pictures are drawn with matplotlib, which is not installed: pip install "maxmargin[plots]".'
        ) from error
    return pyplot


def axes_for(ax: Axes | None, size: tuple[float, float] | None = None) -> Axes:
    """The axes to draw into: those given, or those of a new figure of so many inches."""
    return figure_for(None, size).subplots() if ax is None else ax


def figure_for(fig: FigureBase | None, size: tuple[float, float] | None) -> FigureBase:
    """The figure to draw into: the one given, or a new one of so many inches."""
    return pyplot().figure(figsize=size, layout="constrained") if fig is None else fig


def tiles_for(fig: FigureBase | None, n: int, columns: int, size: tuple[float, float]) -> tuple[FigureBase, np.ndarray]:
    """A figure with a row of axes after another, each of so many inches, and the axes of the first n tiles, bare."""
    across = max(1, min(columns, n))
    down = -(-n // across)
    fig = figure_for(fig, (size[0] * across, size[1] * down))
    axes = fig.subplots(down, across, squeeze=False).ravel()
    for ax in axes[n:]:
        ax.remove()
    for ax in axes[:n]:
        bare(ax)
    return fig, axes[:n]


def bare(ax: Axes, edges: bool = False) -> None:
    """Neither ticks nor, unless wanted, edges; labels stay, as they do not where axes are off."""
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(edges)


def open_frame(ax: Axes, across: str, up: str) -> None:
    """Axes of curves: what is measured along them, a grid, and no edges above and on the right."""
    ax.set_xlabel(across)
    ax.set_ylabel(up)
    ax.grid(alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
