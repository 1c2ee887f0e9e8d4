"""Pictures need matplotlib, which not everybody has installed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

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
