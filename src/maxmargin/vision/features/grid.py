"""Grids of regions, as settings name them."""

from __future__ import annotations

from typing import Any

import numpy as np

_MOST = 256


def checked_grid(grid: Any) -> tuple[int, int]:
    """Rows and columns of regions; a single number is both.

    >>> checked_grid(4), checked_grid((2, 3))
    ((4, 4), (2, 3))
    """
    sides = tuple(grid) if isinstance(grid, tuple | list) else (grid, grid)
    whole = all(isinstance(n, int | np.integer) and not isinstance(n, bool) and 0 < n <= _MOST for n in sides)
    if len(sides) != 2 or not whole:
        raise ValueError(
            f"grid must be a whole number, or rows and columns, at least 1 and at most {_MOST} each, got {grid!r}."
        )
    return int(sides[0]), int(sides[1])
