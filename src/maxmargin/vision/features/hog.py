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
        18 signed directions, 9 unsigned ones, 4 energies of texture, and one that is 0 here, and 1 in cells beyond the
        image (see ``features_of_cells``).

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
    return features_of_cells(pixels, cell, pixels.shape[0] // cell, pixels.shape[2] // cell)


def features_of_cells(
    pixels: np.ndarray, cell: int, rows: int, columns: int, up: int = 0, aside: int = 0
) -> np.ndarray:
    """Features of the cells in the middle of an image (h, channels, w), with cells around them that lie beyond it.

    There are ``up`` rows of these above and below, and ``aside`` columns on both sides. They have no gradients, and a 1
    as their last feature: a filter can learn what it costs to reach beyond.
    """
    out = np.empty((rows + 2 * up, columns + 2 * aside, LENGTH), np.float32)
    if out.size:
        features(votes(pixels, cell, rows, columns), up, aside, out)
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
