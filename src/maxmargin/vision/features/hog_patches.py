"""Patches of a pyramid of gradient histograms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...persistence import storable_part
from ..images import pillow
from ..kernels.hog import LENGTH
from .hog import hog, mirrored
from .numbers import MOST_SCALES, whole
from .patch_format import checked_precision, patch_dtype, windows_of

_VERSION = 1  # of the numbers: raised when the same settings give others
_THIN = 100


@storable_part("size", "cell", "octave_scales", "stride", "max_side", "flips", "color", "dtype")
@dataclass(eq=False, repr=False)
class HOGPatches:
    """All square patches of a pyramid of histograms of oriented gradients (Naderi Parizi, chapter 3).

    Called with an image, it gives an array with a row for each patch, whose fields are ``window``, its left, top, right
    and bottom as shares of width and height, and ``value``, its features, ``size`` by ``size`` by 32 numbers. Large
    images come first, then smaller ones, in which the same number of cells covers more. Images that are smaller than a
    patch are enlarged.

    Parameters
    ----------
    size : int, default 6
        Rows, and columns, of cells in a patch.
    cell : int, default 8
        Side of a cell in pixels.
    octave_scales : int, default 3
        Sizes of the image until it is halved.
    stride : int, default 1
        Cells from one patch to the next, across and down.
    max_side : int or None, default 400
        Larger images are first reduced to so many pixels across and down, at most. The number of patches grows with
        the square.
    flips : bool, default True
        Also the patches of the mirror image, after the others. They cost no second pass over its pixels.
    color : bool, default True
        Colours are looked at apart, and the one with the longest gradient counts at each pixel; otherwise the image is
        made grey, which is twice as fast.
    dtype : {"float32", "float16"}
        Of the values.

    Examples
    --------
    >>> image = np.random.default_rng(0).integers(0, 256, (64, 96)).astype(np.uint8)
    >>> found = HOGPatches()(image)
    >>> found["value"].shape  # 3 × 7 + 1 × 4 patches, and as many in the mirror
    (50, 1152)
    >>> found["window"][0].round(3).tolist()
    [0.0, 0.0, 0.5, 0.75]
    """

    size: int = 6
    _: KW_ONLY
    cell: int = 8
    octave_scales: int = 3
    stride: int = 1
    max_side: int | None = 400
    flips: bool = True
    color: bool = True
    dtype: str = "float32"

    releases_gil = True

    def __post_init__(self) -> None:
        self.size = whole("size", self.size, 1, "cells")
        self.cell = whole("cell", self.cell, 2, "pixels")
        self.octave_scales = whole("octave_scales", self.octave_scales, 1, most=MOST_SCALES)
        self.stride = whole("stride", self.stride, 1, "cells")
        if self.max_side is not None:
            self.max_side = whole("max_side", self.max_side, self.size * self.cell, "pixels")
        self.flips, self.color, self.dtype = bool(self.flips), bool(self.color), checked_precision(self.dtype)

    @property
    def n_views(self) -> int:
        return 2 if self.flips else 1

    @property
    def patch_shape(self) -> tuple[int, int, int]:
        return (self.size, self.size, LENGTH)

    def settings(self) -> str:
        """All that the values depend on, as a text."""
        return (
            f"hog patches {_VERSION} size={self.size} cell={self.cell} octave_scales={self.octave_scales} "
            f"stride={self.stride} max_side={self.max_side} flips={self.flips} color={self.color} dtype={self.dtype}"
        )

    def __call__(self, image: np.ndarray) -> np.ndarray:
        """The patches of an image.

        Parameters
        ----------
        image : ndarray of uint8, shape (h, w) or (h, w, 3)
            As ``read_image`` gives it.
        """
        height, width = image.shape[:2]
        if max(height, width) > _THIN * min(height, width):  # enlarged until a patch fits, it would fill the memory
            raise ValueError(
                f"The image has {width} × {height} pixels, and is too thin for square patches: one side must not be "
                f"more than {_THIN} times the other. Leave it out, or cut it into pieces."
            )
        levels = list(pyramid(image, self.octave_scales, self.size * self.cell, self.max_side))
        cells = [hog(level, self.cell) for level in levels]
        placed = [self._windows(level.shape, found.shape) for level, found in zip(levels, cells, strict=True)]
        windows = np.concatenate(placed)
        out = np.empty(self.n_views * len(windows), patch_dtype(int(np.prod(self.patch_shape)), self.dtype))
        out["window"] = np.tile(windows, (self.n_views, 1))
        if self.flips:
            cells += [mirrored(found) for found in cells]
        at = 0
        for found in cells:
            patches = self._patches(found)
            values = out["value"][at : at + patches.shape[0] * patches.shape[1]]
            values.reshape(patches.shape)[...] = patches
            at += len(values)
        return out

    def unreduced(self, w: np.ndarray) -> np.ndarray:
        """Filters over the values of a patch, (…, n_features), as filters over its cells, (…, size, size, 32)."""
        w = np.asarray(w)
        return w.reshape(*w.shape[:-1], *self.patch_shape)

    def _patches(self, cells: np.ndarray) -> np.ndarray:
        """A view of the cells: patches down and across, and of each its rows of cells."""
        cells = np.ascontiguousarray(cells)
        rows, columns = self._counts(cells.shape)
        r, c, one = cells.strides
        return as_strided(
            cells,
            (rows, columns, self.size, self.size * LENGTH),
            (self.stride * r, self.stride * c, r, one),
            writeable=False,
        )

    def _counts(self, cells: tuple[int, ...]) -> tuple[int, int]:
        rows, columns = ((side - self.size) // self.stride + 1 for side in cells[:2])
        return rows, columns

    def _windows(self, pixels: tuple[int, ...], cells: tuple[int, ...]) -> np.ndarray:
        down, across = (
            (0.5 * (side - count * self.cell) / side, self.cell / side)
            for side, count in zip(pixels[:2], cells[:2], strict=True)
        )
        return windows_of(*self._counts(cells), self.size, self.stride, across, down)


def resized(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """An image of unsigned bytes at another size; what it is reduced by is averaged over, so that nothing flickers.

    >>> resized(np.array([[0, 100], [100, 200]], np.uint8), 1, 1).tolist()
    [[100]]
    """
    if image.shape[:2] == (height, width):
        return image
    Image = pillow()
    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR))


def pyramid(image: np.ndarray, octave_scales: int, least: int, max_side: int | None = None) -> Iterator[np.ndarray]:
    """An image, and then ever smaller ones, ``octave_scales`` of them until the side is halved.

    Parameters
    ----------
    image : ndarray of uint8, shape (h, w) or (h, w, 3)
    octave_scales : int
        Each level is smaller than the last by 2^(1/octave_scales).
    least : int
        The shorter side of the smallest level has so many pixels or some more. An image that is smaller from the start
        is enlarged to that, and is then the only level.
    max_side : int, optional
        The longer side of the largest level has at most so many pixels, as far as ``least`` allows.

    Examples
    --------
    >>> [level.shape for level in pyramid(np.zeros((60, 90), np.uint8), octave_scales=2, least=20)]
    [(60, 90), (42, 64), (30, 45), (21, 32)]
    """
    height, width = image.shape[:2]
    short, long = min(height, width), max(height, width)
    first = 1.0 if max_side is None else min(1.0, max_side / long)
    first = max(first, least / short)
    for level in range(octave_scales * 64):
        scale = first * 2.0 ** (-level / octave_scales)
        if level and math.floor(short * scale + 1e-9) < least:
            return
        yield resized(image, *(max(least, round(side * scale)) for side in (height, width)))
