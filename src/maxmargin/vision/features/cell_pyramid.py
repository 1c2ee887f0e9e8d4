"""Histograms of oriented gradients of an image at several sizes, on cells and on cells half as large.

What filters search at one size is found at others, and parts are searched on cells that are finer than those of the
whole. A coarse cell covers four fine ones exactly, so that places on both grids can be told from each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...kernels.hog import LENGTH, padded_features, votes
from ...kernels.resize import resize
from .hog import checked_pixels, mirrored
from .numbers import whole


@dataclass(frozen=True)
class Level:
    """The cells of an image at one size, with the padding around them.

    Attributes
    ----------
    coarse : ndarray of float32, shape (R, C, 32)
    fine : ndarray of float32, shape (2R, 2C, 32), or None
        Coarse cell (r, c) covers the fine cells of rows 2r and 2r + 1 and columns 2c and 2c + 1.
    top, left : float
        Where the upper left corner of the padded grid lies, in pixels of the image.
    height, width : float
        What a coarse cell covers, in pixels of the image.
    """

    coarse: np.ndarray
    fine: np.ndarray | None
    top: float
    left: float
    height: float
    width: float

    @property
    def nbytes(self) -> int:
        """Bytes of both grids."""
        return self.coarse.nbytes + (0 if self.fine is None else self.fine.nbytes)

    def box(self, row: Any, column: Any, rows: Any, columns: Any) -> tuple[Any, Any, Any, Any]:
        """x_min, y_min, x_max, y_max of windows of coarse cells, in pixels of the image.

        Numbers, or arrays that are broadcast. Halves are fine cells.
        """
        x, y = self.left + np.asarray(column) * self.width, self.top + np.asarray(row) * self.height
        return x, y, x + np.asarray(columns) * self.width, y + np.asarray(rows) * self.height

    def mirrored(self, image_width: float) -> Level:
        """The same level of the mirrored image, ``image[:, ::-1]``, but for rounding."""
        right = self.left + self.coarse.shape[1] * self.width
        return Level(
            np.ascontiguousarray(mirrored(self.coarse)),
            None if self.fine is None else np.ascontiguousarray(mirrored(self.fine)),
            self.top,
            image_width - right,
            self.height,
            self.width,
        )


def cell_pyramid(
    image: np.ndarray,
    *,
    cell: int = 8,
    octave_scales: int = 5,
    finest: float = 1.0,
    least: tuple[int, int] = (1, 1),
    pad: tuple[int, int] = (0, 0),
    fine: bool = True,
) -> list[Level]:
    """The cells of an image at ever smaller sizes.

    Parameters
    ----------
    image : ndarray of uint8, shape (h, w) or (h, w, 3)
        As ``read_image`` gives it.
    cell : int, default 8
        Side of a coarse cell in pixels of the resized image, an even number: fine cells are half as large.
    octave_scales : int, default 5
        Each level is smaller than the last by 2^(1/octave_scales).
    finest : float, default 1.0
        Size of the first level as a share of the image's. More than 1 enlarges it, so that small things are found.
    least : (int, int), default (1, 1)
        Rows and columns of coarse cells, without padding, that a level has at least. The first one may have fewer.
    pad : (int, int), default (0, 0)
        Rows of coarse cells above and below, and columns on both sides, that lie beyond the image. As ``padded`` makes
        them, they have nothing but a 1 in the last feature.
    fine : bool, default True
        Whether to make the fine grids.

    Returns
    -------
    list of Level
        From the largest to the smallest; empty if the image has no whole coarse cell.

    Notes
    -----
    A grid lies in the middle of its level. Its border, less than half a cell on each side, gives gradients to the
    pixels next to it and is otherwise left out. Levels of less than half the size of the image are reduced from the
    level one octave above, which is faster and differs by rounding and a little blur.

    Examples
    --------
    >>> levels = cell_pyramid(np.zeros((48, 64), np.uint8), octave_scales=1, pad=(1, 2))
    >>> [(level.coarse.shape, level.fine.shape, level.width) for level in levels]
    [((8, 12, 32), (16, 24, 32), 8.0), ((5, 8, 32), (10, 16, 32), 16.0), ((3, 6, 32), (6, 12, 32), 32.0)]
    >>> levels[0].box(1, 2, 6, 8) == (0.0, 0.0, 64.0, 48.0)
    True
    """
    pixels = checked_pixels(image)
    plan = _Plan(cell, octave_scales, finest, least, pad)
    sizes = list(plan.sizes(*image.shape[:2]))
    made: list[np.ndarray] = []
    levels = []
    for k, (height, width) in enumerate(sizes):
        above = k - plan.octave_scales
        source = made[above] if above >= 0 and plan.scale(above) <= 1.0 else pixels
        here = source if (height, width) == (source.shape[0], source.shape[2]) else resize(source, height, width)
        made.append(here)
        rows, columns = height // plan.cell, width // plan.cell
        y, x = image.shape[0] / height, image.shape[1] / width  # pixels of the image to one of the level
        up, aside = plan.pad
        levels.append(
            Level(
                _grid(here, plan.cell, rows, columns, up, aside),
                _grid(here, plan.cell // 2, 2 * rows, 2 * columns, 2 * up, 2 * aside) if fine else None,
                y * (0.5 * (height - rows * plan.cell) - up * plan.cell),
                x * (0.5 * (width - columns * plan.cell) - aside * plan.cell),
                y * plan.cell,
                x * plan.cell,
            )
        )
    return levels


def grid_sizes(
    height: int,
    width: int,
    *,
    cell: int = 8,
    octave_scales: int = 5,
    finest: float = 1.0,
    least: tuple[int, int] = (1, 1),
    pad: tuple[int, int] = (0, 0),
    fine: bool = True,
) -> list[tuple[int, int]]:
    """Rows and columns of the padded coarse grids that ``cell_pyramid`` makes of an image of that size.

    The settings are those of ``cell_pyramid``; ``fine`` changes nothing here, and is taken so that the same settings
    can be handed to both.

    >>> grid_sizes(48, 64, octave_scales=1, pad=(1, 2))
    [(8, 12), (5, 8), (3, 6)]
    """
    plan = _Plan(cell, octave_scales, finest, least, pad)
    up, aside = plan.pad
    sizes = plan.sizes(whole("height", height, 1, "pixels"), whole("width", width, 1, "pixels"))
    return [(h // plan.cell + 2 * up, w // plan.cell + 2 * aside) for h, w in sizes]


class _Plan:
    """The settings of a pyramid, checked, and the sizes of its levels."""

    def __init__(
        self, cell: int, octave_scales: int, finest: float, least: tuple[int, int], pad: tuple[int, int]
    ) -> None:
        self.cell = whole("cell", cell, 4, "pixels")
        if self.cell % 2:
            raise ValueError(f"cell must be even, because fine cells are half as large, got {cell}.")
        self.octave_scales = whole("octave_scales", octave_scales, 1)
        if isinstance(finest, bool) or not isinstance(finest, int | float | np.number) or not 0 < finest < np.inf:
            raise ValueError(f"finest must be a number above 0, the size of the first level, got {finest!r}.")
        self.finest = float(finest)
        self.least = _pair("least", least, 1)
        self.pad = _pair("pad", pad, 0)

    def scale(self, level: int) -> float:
        return self.finest * 2.0 ** (-level / self.octave_scales)

    def sizes(self, height: int, width: int) -> Iterator[tuple[int, int]]:
        """Heights and widths of the levels in pixels."""
        level = 0
        while True:
            tall, wide = round(height * self.scale(level)), round(width * self.scale(level))
            rows, columns = self.least if level else (1, 1)
            if tall // self.cell < rows or wide // self.cell < columns:
                return
            yield tall, wide
            level += 1


def _pair(name: str, value: Any, least: int) -> tuple[int, int]:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ValueError(f"{name} must be two whole numbers, of rows and of columns, got {value!r}.")
    rows, columns = (whole(f"{name}[{k}]", value[k], least, "cells") for k in range(2))
    return rows, columns


def _grid(pixels: np.ndarray, cell: int, rows: int, columns: int, up: int, aside: int) -> np.ndarray:
    """Features of the cells in the middle of an image, written into a grid that is padded already."""
    out = np.empty((rows + 2 * up, columns + 2 * aside, LENGTH), np.float32)
    padded_features(votes(pixels, cell, rows, columns), up, aside, out)
    return out
