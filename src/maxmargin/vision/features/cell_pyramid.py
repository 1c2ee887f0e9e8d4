"""Histograms of oriented gradients of an image at several sizes, on cells and on cells half as large.

What filters search at one size is found at others, and parts are searched on cells that are finer than those of the
whole. A coarse cell covers four fine ones exactly, so that places on both grids can be told from each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...persistence import storable_part
from ...validation import shown
from ..kernels.resize import resize
from .hog import checked_pixels, features_of_cells
from .numbers import FINEST, MOST_SCALES, whole

Numbers = float | np.ndarray
_MOST_PAD = 64  # cells: no object lies farther beyond an image


@dataclass(frozen=True)
class Frame:
    """Where a padded grid of coarse cells lies in its image.

    Attributes
    ----------
    rows, columns : int
    top, left : float
        Where the upper left corner of the padded grid lies, in pixels of the image.
    height, width : float
        What a cell covers, in pixels of the image.
    """

    rows: int
    columns: int
    top: float
    left: float
    height: float
    width: float

    def box(
        self, row: Numbers, column: Numbers, rows: Numbers, columns: Numbers
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """x_min, y_min, x_max, y_max of windows of coarse cells, in pixels of the image.

        Numbers, or arrays that are broadcast. Halves are fine cells.
        """
        x, y = self.left + np.asarray(column) * self.width, self.top + np.asarray(row) * self.height
        return x, y, x + np.asarray(columns) * self.width, y + np.asarray(rows) * self.height


@dataclass(frozen=True)
class Level:
    """The cells of an image at one size, with the padding around them.

    Attributes
    ----------
    coarse : ndarray of float32, shape (R, C, 32)
    fine : ndarray of float32, shape (2R, 2C, 32), or None
        Coarse cell (r, c) covers the fine cells of rows 2r and 2r + 1 and columns 2c and 2c + 1.
    frame : Frame
        Where they are.
    """

    coarse: np.ndarray
    fine: np.ndarray | None
    frame: Frame

    @property
    def nbytes(self) -> int:
        """Bytes of both grids."""
        return self.coarse.nbytes + (0 if self.fine is None else self.fine.nbytes)

    @cached_property
    def longest(self) -> tuple[float, float]:
        """Bounds of ‖cell‖ for all coarse cells, and for all fine ones."""
        return _longest(self.coarse), 0.0 if self.fine is None else _longest(self.fine)


@storable_part("cell", "octave_scales", "finest", "least", "pad")
@dataclass(frozen=True)
class Grid:
    """How images are cut into cells, at ever smaller sizes.

    Parameters
    ----------
    cell : int, default 8
        Side of a coarse cell in pixels of the resized image, an even number: fine cells are half as large.
    octave_scales : int, default 5
        Each level is smaller than the last by 2^(1/octave_scales).
    finest : float, default 1.0
        Size of the first level as a share of the image's. More than 1 enlarges it, so that small things are found.
    least : (int, int), default (1, 1)
        Rows and columns of coarse cells, without padding, that a level has at least. The first one may have fewer.
    pad : (int, int), default (0, 0)
        Rows of coarse cells above and below, and columns on both sides, that lie beyond the image. They have
        nothing but a 1 in the last feature.

    Notes
    -----
    The cells lie in the middle of a level. Its border, less than half a cell on each side, gives gradients to the
    pixels next to it and is otherwise left out. Levels of less than half the size of the image are reduced from the
    level one octave above, which is faster and differs by rounding and a little blur.

    Examples
    --------
    >>> levels = Grid(octave_scales=1, pad=(1, 2)).pyramid(np.zeros((48, 64), np.uint8))
    >>> [(level.coarse.shape, level.fine.shape, level.frame.width) for level in levels]
    [((8, 12, 32), (16, 24, 32), 8.0), ((5, 8, 32), (10, 16, 32), 16.0), ((3, 6, 32), (6, 12, 32), 32.0)]
    >>> levels[0].frame.box(1, 2, 6, 8) == (0.0, 0.0, 64.0, 48.0)
    True
    """

    cell: int = 8
    octave_scales: int = 5
    finest: float = 1.0
    least: tuple[int, int] = (1, 1)
    pad: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        if whole("cell", self.cell, 4, "pixels") % 2:
            raise ValueError(f"cell must be even, because fine cells are half as large, got {self.cell}.")
        whole("octave_scales", self.octave_scales, 1, most=MOST_SCALES)
        finest = self.finest
        if isinstance(finest, bool) or not isinstance(finest, int | float | np.number) or not 0 < finest <= FINEST:
            raise ValueError(
                f"finest must be a number above 0 and at most {FINEST}, the size of the first level, got {finest!r}."
            )
        object.__setattr__(self, "least", _pair("least", self.least, 1))
        object.__setattr__(self, "pad", _pair("pad", self.pad, 0, _MOST_PAD))

    def pyramid(self, image: np.ndarray, fine: bool = True) -> list[Level]:
        """The cells of an image, (h, w) or (h, w, 3) of uint8 as ``read_image`` gives it, from the largest level on.

        There are no levels if the image has no whole coarse cell. Fine grids are made only if they are asked for.
        """
        pixels = checked_pixels(image)
        up, aside = self.pad
        made: list[np.ndarray] = []
        levels = []
        for k, (height, width) in enumerate(self._sizes(*image.shape[:2])):
            above = k - self.octave_scales
            source = made[above] if above >= 0 and self._scale(above) <= 1.0 else pixels
            here = source if (height, width) == (source.shape[0], source.shape[2]) else resize(source, height, width)
            made.append(here)
            rows, columns = height // self.cell, width // self.cell
            levels.append(
                Level(
                    features_of_cells(here, self.cell, rows, columns, up, aside),
                    features_of_cells(here, self.cell // 2, 2 * rows, 2 * columns, 2 * up, 2 * aside) if fine else None,
                    self._frame(image.shape[0], image.shape[1], height, width),
                )
            )
        return levels

    def frames(self, height: int, width: int) -> list[Frame]:
        """Where the levels of an image of that size lie, without a look at its pixels.

        >>> [(frame.rows, frame.columns) for frame in Grid(octave_scales=1, pad=(1, 2)).frames(48, 64)]
        [(8, 12), (5, 8), (3, 6)]
        """
        height, width = whole("height", height, 1, "pixels"), whole("width", width, 1, "pixels")
        return [self._frame(height, width, tall, wide) for tall, wide in self._sizes(height, width)]

    def _frame(self, height: int, width: int, tall: int, wide: int) -> Frame:
        rows, columns = tall // self.cell, wide // self.cell
        y, x = height / tall, width / wide  # pixels of the image to one of the level
        up, aside = self.pad
        return Frame(
            rows + 2 * up,
            columns + 2 * aside,
            y * (0.5 * (tall - rows * self.cell) - up * self.cell),
            x * (0.5 * (wide - columns * self.cell) - aside * self.cell),
            y * self.cell,
            x * self.cell,
        )

    def _scale(self, level: int) -> float:
        return self.finest * 2.0 ** (-level / self.octave_scales)

    def _sizes(self, height: int, width: int) -> Iterator[tuple[int, int]]:
        """Heights and widths of the levels in pixels."""
        level = 0
        while True:
            tall, wide = round(height * self._scale(level)), round(width * self._scale(level))
            rows, columns = self.least if level else (1, 1)
            if tall // self.cell < rows or wide // self.cell < columns:
                return
            yield tall, wide
            level += 1


def _pair(name: str, value: object, least: int, most: int = 2**31 - 1) -> tuple[int, int]:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ValueError(f"{name} must be two whole numbers, of rows and of columns, got {shown(value)}.")
    rows, columns = (whole(f"{name}[{k}]", value[k], least, "cells", most) for k in range(2))
    return rows, columns


def _longest(cells: np.ndarray) -> float:
    """A little more than the largest norm: sums of float32 are rounded."""
    return 1.0001 * float(np.sqrt(np.einsum("ijk,ijk->ij", cells, cells).max(initial=0.0)))
