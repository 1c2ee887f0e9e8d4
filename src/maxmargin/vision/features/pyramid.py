"""The same image at several sizes, so that what is searched at one size is found at others."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ..images import pillow


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
