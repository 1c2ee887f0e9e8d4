"""Pictures need matplotlib, which not everybody has installed, and a place to be drawn at."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

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


def axes_for(ax: Any, size: tuple[float, float] | None = None) -> Any:
    """The axes to draw into: those given, or those of a new figure of so many inches."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(figsize=size, layout="constrained")[1]


def pair_for(ax: Any) -> tuple[Any, Any]:
    """Two axes side by side to draw into: those given, or those of a new figure."""
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")[1]
    panels = tuple(np.ravel(ax))
    if len(panels) != 2:
        raise ValueError(f"ax must be two Axes, one for the bounds and one for the gap, got {len(panels)}.")
    return panels


def figure_for(fig: Any, size: tuple[float, float]) -> Any:
    """The figure to draw into: the one given, or a new one of so many inches."""
    if fig is not None:
        return fig
    from matplotlib import pyplot

    return pyplot.figure(figsize=size, layout="constrained")
