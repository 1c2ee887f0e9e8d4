"""Patches of one image as rows of an array: where they are, and what they look like.

An *extractor of patches* is called with an image and returns such an array. It has ``color`` and ``settings()`` as
every extractor does, and ``n_views``: with 2 the first half of the rows are patches of the image, and the others are
those of its mirror image, at the same places of a frame of its own. ``patch_shape`` is the shape that the values of a
patch had before they became a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_PRECISIONS = ("float16", "float32")


def patch_dtype(n_features: int, precision: str) -> np.dtype:
    """Rows with a ``window`` (left, top, right, bottom, as shares of width and height) and a ``value``."""
    return np.dtype([("window", "<f4", (4,)), ("value", np.dtype(precision).newbyteorder("<"), (n_features,))])


def checked_precision(dtype: Any) -> str:
    name = dtype if isinstance(dtype, str) else getattr(np.dtype(dtype), "name", "")
    if name not in _PRECISIONS:
        raise ValueError(f"dtype must be one of {', '.join(_PRECISIONS)}, got {dtype!r}.")
    return name


def windows_of(
    rows: int, columns: int, side: int, stride: int, across: tuple[float, float], down: tuple[float, float]
) -> np.ndarray:
    """Windows of ``side`` × ``side`` cells, ``stride`` cells apart, row by row, as shares (left, top, right, bottom).

    ``rows`` and ``columns`` count windows; ``across`` and ``down`` are where the first window begins and how large a
    cell is, as shares of the width and of the height.
    """
    left = across[0] + across[1] * stride * np.arange(columns)
    top = down[0] + down[1] * stride * np.arange(rows)
    out = np.empty((rows, columns, 4), np.float32)
    out[..., 0], out[..., 1] = left, top[:, None]
    out[..., 2], out[..., 3] = left + side * across[1], (top + side * down[1])[:, None]
    return out.reshape(-1, 4)
