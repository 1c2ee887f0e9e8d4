"""Patches of an image as a convolutional network sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .network import CELL, CHANNELS, NAME, checked_context, checked_size, last_map, tempered
from .numbers import whole
from .patch_format import checked_precision, patch_dtype, windows_of

_VERSION = 1  # of the numbers: raised when the same settings give others


class CNNPatches:
    """Windows of the last convolutional map of EfficientNet-lite0, at several sizes of the image, and the whole image.

    Called with an image, it gives an array with a row for each patch, whose fields are ``window``, its left, top, right
    and bottom as shares of width and height, and ``value``, 1280 averages over the window. The whole image comes
    first, as the first of the sizes shows it; then come the windows of each size.

    Parameters
    ----------
    sizes : sequence of int, default (256, 384)
        The image is resized to squares of so many pixels, multiples of 32. The map has a cell for every 32 of them.
    window : int, default 4
        Rows, and columns, of cells in a window.
    stride : int, default 2
        Cells from one window to the next, across and down.
    flips : bool, default True
        Also the patches of the mirror image, after the others; this takes the network twice as long.
    context : float, default 0.0
        Between 0 and 1: how much of the average over the whole map is mixed into each window.
    root : bool, default True
        Take the square root of each value (none is negative), which tempers channels that fire strongly.
    normalize : bool, default True
        Scale the vector of each patch to length one.
    dtype : {"float32", "float16"}
        Of the values.

    Examples
    --------
    >>> patches = CNNPatches()
    >>> patches.n_patches, patches.patch_shape  # 1 + 3 × 3 + 5 × 5, and in the mirror
    (70, (1280,))
    """

    sizes: tuple[int, ...]
    window: int
    stride: int
    flips: bool
    context: float
    root: bool
    normalize: bool
    dtype: str

    color = True

    def __init__(
        self,
        sizes: Any = (256, 384),
        *,
        window: int = 4,
        stride: int = 2,
        flips: bool = True,
        context: float = 0.0,
        root: bool = True,
        normalize: bool = True,
        dtype: str = "float32",
    ) -> None:
        given = (sizes,) if isinstance(sizes, int | np.integer) else tuple(sizes)
        if not given:
            raise ValueError("sizes must name at least one size of the image in pixels, got none.")
        self.sizes = tuple(checked_size(size, "each of sizes") for size in given)
        self.window = whole("window", window, 1, "cells")
        self.stride = whole("stride", stride, 1, "cells")
        if self.window * CELL > min(self.sizes):
            cells = min(self.sizes) // CELL
            raise ValueError(
                f"A window of {self.window} × {self.window} cells does not fit into the map, which has {cells} × "
                f"{cells} cells at a size of {min(self.sizes)}. Use sizes of {self.window * CELL} or more, or a "
                "smaller window."
            )
        self.flips = bool(flips)
        self.context = checked_context(context)
        self.root = bool(root)
        self.normalize = bool(normalize)
        self.dtype = checked_precision(dtype)

    @property
    def n_views(self) -> int:
        return 2 if self.flips else 1

    @property
    def n_patches(self) -> int:
        """Of an image: as many for all images."""
        return self.n_views * (1 + sum(self._count(size) ** 2 for size in self.sizes))

    @property
    def patch_shape(self) -> tuple[int]:
        return (CHANNELS,)

    def settings(self) -> str:
        """All that the values depend on, as a text."""
        return (
            f"{NAME} patches {_VERSION} sizes={'+'.join(map(str, self.sizes))} window={self.window} "
            f"stride={self.stride} flips={self.flips} context={self.context!r} root={self.root} "
            f"normalize={self.normalize} dtype={self.dtype}"
        )

    def __call__(self, image: np.ndarray) -> np.ndarray:
        """The patches of an image.

        Parameters
        ----------
        image : ndarray of uint8, shape (h, w, 3) or (h, w)
            As ``read_image`` gives it.
        """
        views = [image, image[:, ::-1]] if self.flips else [image]
        out = np.empty(self.n_patches, patch_dtype(CHANNELS, self.dtype))
        out["window"] = np.tile(self._windows(), (self.n_views, 1))
        out["value"] = np.concatenate([self._values(np.ascontiguousarray(view)) for view in views])
        return out

    def unreduced(self, w: np.ndarray) -> np.ndarray:
        """Filters over the values of a patch, (…, 1280): as they are."""
        return np.asarray(w)

    def _values(self, view: np.ndarray) -> np.ndarray:
        found: list[np.ndarray] = []
        for size in self.sizes:
            cells = last_map(view, size)
            everywhere = cells.mean(axis=(0, 1))
            local = sliding_window_view(cells, (self.window, self.window), axis=(0, 1))
            start = self._start(size)
            local = local[start :: self.stride, start :: self.stride].mean(axis=(3, 4)).reshape(-1, CHANNELS)
            if not found:
                local = np.concatenate([everywhere[None], local])
            found.append(tempered(local, everywhere, self.context, self.root, self.normalize))
        return np.concatenate(found)

    def _count(self, size: int) -> int:
        return (size // CELL - self.window) // self.stride + 1

    def _start(self, size: int) -> int:
        """The first cell of the first window: what remains beside the last one is shared out between both ends."""
        return (size // CELL - self.window) % self.stride // 2

    def _windows(self) -> np.ndarray:
        found = [np.array([[0.0, 0.0, 1.0, 1.0]], np.float32)]
        for size in self.sizes:
            n, span = self._count(size), (self._start(size) * CELL / size, CELL / size)
            found.append(windows_of(n, n, self.window, self.stride, span, span))
        return np.concatenate(found)
