"""Histograms of oriented gradients of whole images, cell by cell."""

from __future__ import annotations

import numpy as np

from ..images import said_of
from ..kernels.hog import DIRECTIONS, LENGTH, OUTSIDE, UNSIGNED, features, votes
from .numbers import whole

MIRRORED = np.concatenate(
    [
        (UNSIGNED - np.arange(DIRECTIONS)) % DIRECTIONS,
        DIRECTIONS + (UNSIGNED - np.arange(UNSIGNED)) % UNSIGNED,
        [29, 30, 27, 28],
        [OUTSIDE],
    ]
)
"""Where each of the 32 features of a cell stands in the mirrored image; twice is once."""


def hog(image: np.ndarray, cell: int = 8) -> np.ndarray:
    """The 32 features of Felzenszwalb et al. (2010) for every cell of an image, float32 (rows, columns, 32).

    Parameters
    ----------
    image : ndarray of uint8, shape (h, w) or (h, w, 3)
        As ``read_image`` gives it. Of the gradients of several colours the longest counts.
    cell : int, default 8
        Side of a cell in pixels. There are ``h // cell`` rows and ``w // cell`` columns, in the middle of the image.

    Returns
    -------
    ndarray of float32, shape (h // cell, w // cell, 32)
        18 signed directions, 9 unsigned ones, 4 energies of texture, and one that is 0 here, and 1 in the cells that
        ``padded`` puts around it.

    Notes
    -----
    ``hog(image[:, ::-1])`` is ``hog(image)[:, ::-1, MIRRORED]``, but for rounding.

    Examples
    --------
    >>> image = np.zeros((32, 48), np.uint8)
    >>> image[:, 24:] = 200  # bright on the right: a gradient of direction 0
    >>> found = hog(image)
    >>> found.shape, int(found[2, 3, :18].argmax()), int(hog(image[:, ::-1])[2, 3, :18].argmax())
    ((4, 6, 32), 0, 9)
    """
    pixels = checked_pixels(image)
    cell = whole("cell", cell, 2, "pixels")
    rows, columns = pixels.shape[0] // cell, pixels.shape[2] // cell
    out = np.zeros((rows, columns, LENGTH), np.float32)
    if out.size:
        features(votes(pixels, cell, rows, columns), out)
    return out


def padded(cells: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Features with so many rows of cells above and below, and columns on both sides, that lie beyond the image.

    Those cells have no gradients, and a 1 as their last feature: a filter can learn what it costs to reach beyond.

    >>> padded(np.ones((2, 3, 32), np.float32), 1, 2).shape
    (4, 7, 32)
    """
    out = np.pad(cells, ((rows, rows), (columns, columns), (0, 0)))
    outside = np.ones(out.shape[:2], bool)
    outside[rows : rows + cells.shape[0], columns : columns + cells.shape[1]] = False
    out[outside, OUTSIDE] = 1.0
    return out


def mirrored(cells: np.ndarray) -> np.ndarray:
    """Features of the mirrored image: the columns backwards, and the features of each cell in their other places."""
    return cells[:, ::-1, MIRRORED]


def checked_pixels(image: np.ndarray) -> np.ndarray:
    """The pixels of an image as the kernel takes them, (h, channels, w)."""
    known = isinstance(image, np.ndarray) and image.dtype == np.uint8
    if not known or not (image.ndim == 2 or (image.ndim == 3 and image.shape[2] in (1, 3))):
        raise ValueError(
            f"Gradients are taken of images (height, width) or (height, width, 3) of uint8; got {said_of(image)}. "
            "maxmargin.vision.images.read_image makes one of any image."
        )
    return np.ascontiguousarray(image.reshape(*image.shape[:2], -1).transpose(0, 2, 1))
