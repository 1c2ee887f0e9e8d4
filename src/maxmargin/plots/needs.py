"""Pictures need matplotlib, which not everybody has installed, and a place to be drawn at."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

P = ParamSpec("P")
T = TypeVar("T")


def needs_matplotlib(draw: Callable[P, T]) -> Callable[P, T]:
    """Decorator of what draws: where matplotlib is missing, the error says how to get it."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return draw(*args, **kwargs)
        except ImportError as error:
            if (error.name or "").partition(".")[0] != "matplotlib":
                raise
            raise ImportError(
                'Pictures are drawn with matplotlib, which is not installed: pip install "maxmargin[plots]".'
            ) from error

    return drawn


def axes_for(ax: Axes | None, size: tuple[float, float] | None = None) -> Axes:
    """The axes to draw into: those given, or those of a new figure of so many inches."""
    return figure_for(None, size).subplots() if ax is None else ax


def pair_for(ax: Sequence[Axes] | np.ndarray | None) -> tuple[Axes, Axes]:
    """Two axes side by side to draw into: those given, or those of a new figure."""
    given = figure_for(None, (10, 3.6)).subplots(1, 2) if ax is None else ax
    first, *others = np.asarray(given, dtype=object).ravel()
    if len(others) != 1:
        raise ValueError(f"ax must be two Axes, one for the bounds and one for the gap, got {1 + len(others)}.")
    return first, others[0]


def figure_for(fig: FigureBase | None, size: tuple[float, float] | None) -> FigureBase:
    """The figure to draw into: the one given, or a new one of so many inches."""
    if fig is not None:
        return fig
    from matplotlib import pyplot

    return pyplot.figure(figsize=size, layout="constrained")


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
