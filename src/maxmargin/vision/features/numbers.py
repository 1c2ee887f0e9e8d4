"""Settings of features, checked before any image is read."""

from __future__ import annotations

import numpy as np

from ...validation import shown

MOST_SCALES = 64  # of an octave: more would take the memory of all of them and tell nothing
FINEST = 8.0  # times that images may be enlarged
_MOST = 2**31 - 1  # what nobody means
_FINEST_GRID = 256  # in a row or a column


def whole(name: str, value: object, least: int, of: str = "", most: int = _MOST) -> int:
    """A whole number that is neither too small nor too large.

    >>> whole("stride", 2, least=1)
    2
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        limits = f"at least {least}" + (f" and at most {most}" if most < _MOST else "")
        raise ValueError(f"{name} must be a whole number{of and f' of {of}'}, {limits}, got {shown(value)}.")
    return int(value)


def share(name: str, value: object) -> None:
    """Complain of what is no share of something: above 0 and at most 1."""
    if not (isinstance(value, int | float | np.number) and 0.0 < value <= 1.0):
        raise ValueError(f"{name} must be above 0 and at most 1, got {shown(value)}.")


def checked_grid(grid: object) -> tuple[int, int]:
    """Rows and columns of regions; a single number is both.

    >>> checked_grid(4), checked_grid((2, 3))
    ((4, 4), (2, 3))
    """
    sides = tuple(grid) if isinstance(grid, tuple | list) else (grid, grid)
    known = all(isinstance(n, int | np.integer) and not isinstance(n, bool) and 0 < n <= _FINEST_GRID for n in sides)
    if len(sides) != 2 or not known:
        raise ValueError(
            f"grid must be a whole number, or rows and columns, at least 1 and at most {_FINEST_GRID} each, "
            f"got {grid!r}."
        )
    return int(sides[0]), int(sides[1])
