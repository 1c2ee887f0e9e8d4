"""Pixels of images, as pictures show them."""

from __future__ import annotations

from typing import Any

import numpy as np


def pixels(image: Any) -> np.ndarray:
    """The pixels (height, width, 3) of a file or an array."""
    from ..images import read_image

    return read_image(image, color=True)


def cut_out(image: np.ndarray, window: Any, mirrored: bool = False) -> np.ndarray:
    """The pixels within a window: left, top, right and bottom as shares of the width and height.

    A window that reaches beyond the image ends at its border, and no window is empty.

    Parameters
    ----------
    image : array (height, width, …)
    window : four floats
    mirrored : bool
        Whether to show them as they are seen in a mirror.

    Examples
    --------
    >>> cut_out(np.arange(8).reshape(2, 4), (0.5, 0.0, 1.0, 1.0), mirrored=True).tolist()
    [[3, 2], [7, 6]]
    """
    (height, width), (left, top, right, bottom) = image.shape[:2], window
    rows, columns = _span(top, bottom, height), _span(left, right, width)
    found = image[rows, columns]
    return found[:, ::-1] if mirrored else found


def _span(begin: float, end: float, size: int) -> slice:
    first = min(max(round(begin * size), 0), size - 1)
    return slice(first, min(max(round(end * size), first + 1), size))
