"""Settings that are numbers, checked before any image is read."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...wording import shown


def whole(name: str, value: Any, least: int, of: str = "") -> int:
    """A whole number that is not too small.

    >>> whole("stride", 2, least=1)
    2
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number{of and f' of {of}'}, at least {least}, got {shown(value)}.")
    return int(value)
