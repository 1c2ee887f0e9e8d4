"""Dense SIFT descriptors of a grey image."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...persistence import storable_part
from ..images import pillow, said_of
from ..kernels.sift import LENGTH, SIDE, cells, descriptors, directions
from .numbers import whole


@dataclass(frozen=True)
class Descriptors:
    """Descriptors of the patches of one image.

    ``values`` has a row of 128 numbers for each patch; ``x`` and ``y`` are the patches' centres, in pixels from left
    and top of the image; ``shape`` is the image's height and width.
    """

    values: np.ndarray
    x: np.ndarray
    y: np.ndarray
    shape: tuple[int, int]

    def __len__(self) -> int:
        return self.x.size


_LARGEST = 2**20  # pixels: no image is larger


@storable_part("patch", "step", "scales", root="bool|int", contrast="float", clip="float", max_side="float|none")
@dataclass(frozen=True)
class DenseSIFT:
    """SIFT descriptors of upright square patches on a regular grid.

    The image is not smoothed first: on photographs of scenes every bit of smoothing cost accuracy. Gradients are pooled
    with triangular windows, as in the fast variant of VLFeat's dense SIFT.

    The defaults are the best that we found for 200 visual words on the 15-Scene data, whose images have some 300 × 250
    pixels. There several sizes of patches help discriminative models. ``root`` helps those of whole images, and costs
    generative models of regions accuracy.

    Parameters
    ----------
    patch : int
        Side of a patch in pixels, a multiple of 4.
    step : int
        Pixels from one patch to the next, across and down.
    scales : tuple of float
        Patches of these multiples of ``patch`` are taken, each size on a grid of the same ``step``. Sides are rounded
        to multiples of 4.
    root : bool
        RootSIFT: the square root of descriptors that sum up to one.
    contrast : float
        Patches with less contrast than this are flat: their descriptors are shorter than one, in proportion. It is
        measured as the length of the vector of 128 mean gradients, in grey levels per pixel. 0 makes all descriptors
        equally long, and lets the noise of a clear sky look like structure.
    clip : float
        The most that one of the 128 numbers may have of the descriptor's length, before it is scaled again.
    max_side : int or None
        Larger images are first reduced to so many pixels across and down, at most: patches are of a size in pixels, and
        words learned from small images mean nothing in photographs of twelve million.

    Examples
    --------
    >>> image = np.tile(np.arange(0, 160, 4, dtype=np.uint8), (24, 1))  # grows brighter to the right
    >>> found = DenseSIFT(scales=(1.0,)).describe(image)
    >>> found.values.shape, found.x.tolist(), found.y.tolist()
    ((8, 128), [8.0, 16.0, 24.0, 32.0, 8.0, 16.0, 24.0, 32.0], [8.0, 8.0, 8.0, 8.0, 16.0, 16.0, 16.0, 16.0])
    >>> found.values[1, :8].round(2).tolist()  # all in the first of eight directions
    [0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """

    patch: int = 16
    step: int = 8
    scales: tuple[float, ...] = (1.0, 1.5, 2.0, 3.0)
    root: bool = False
    contrast: float = 6.0
    clip: float = 0.2
    max_side: int | None = 640

    def __post_init__(self) -> None:
        for name in ("patch", "step"):
            whole(name, getattr(self, name), 1, "pixels")
        if self.patch % SIDE:
            raise ValueError(
                f"patch must be a multiple of {SIDE}, since a patch has {SIDE} × {SIDE} cells, got {self.patch}."
            )
        scales = (self.scales,) if isinstance(self.scales, int | float) else tuple(self.scales)
        if not scales or not all(0 < s * self.patch < _LARGEST for s in scales):
            raise ValueError(
                f"scales must be positive numbers, at least one, for patches of less than {_LARGEST} pixels; got "
                f"{self.scales!r}."
            )
        if not (math.isfinite(self.contrast) and self.contrast >= 0):
            raise ValueError(f"contrast must be zero or positive, in grey levels per pixel, got {self.contrast!r}.")
        if not 0 < self.clip <= 1:
            raise ValueError(f"clip must be in (0, 1], got {self.clip!r}.")
        if self.max_side is not None and not self.max_side >= self.patch:
            raise ValueError(f"max_side must be at least a patch, {self.patch} pixels, or None; got {self.max_side!r}.")
        object.__setattr__(self, "scales", tuple(float(s) for s in scales))

    def describe(self, image: np.ndarray) -> Descriptors:
        """The descriptors of a grey image of unsigned bytes, size by size, each from left to right, top to bottom.

        The grids are centred on the image. Patches lie within it; a size that does not fit is left out.
        """
        if not (isinstance(image, np.ndarray) and image.ndim == 2 and image.dtype == np.uint8):
            raise ValueError(
                f"Descriptors are taken of grey images, arrays (height, width) of uint8; got {said_of(image)}. "
                "maxmargin.vision.images.read_image makes one of any image."
            )
        full_size = image.shape
        image = self._reduced(image)
        height, width = image.shape
        fitting = [cell for cell in self._cells() if SIDE * cell <= min(height, width)]
        if not fitting:
            least = SIDE * min(self._cells())
            raise ValueError(
                f"The image has {width} × {height} pixels, and a patch needs {least} × {least}. "
                "Leave the image out, enlarge it, or take a smaller patch."
            )
        gradients = directions(np.ascontiguousarray(image))
        parts = [self._one_size(gradients, image.shape, cell) for cell in fitting]
        values, x, y = (np.concatenate(part) if len(parts) > 1 else part[0] for part in zip(*parts, strict=True))
        return Descriptors(values, x * (full_size[1] / width), y * (full_size[0] / height), full_size)

    def _reduced(self, image: np.ndarray) -> np.ndarray:
        if self.max_side is None or max(image.shape) <= self.max_side:
            return image
        ratio = self.max_side / max(image.shape)
        height, width = (max(1, round(side * ratio)) for side in image.shape)
        Image = pillow()
        return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BOX))

    def _cells(self) -> list[int]:
        """Widths of the cells, for all sizes of patches."""
        return [max(1, round(self.patch * scale / SIDE)) for scale in self.scales]

    def _one_size(self, gradients: tuple, shape: tuple[int, int], cell: int) -> tuple[np.ndarray, ...]:
        side, step = SIDE * cell, self.step
        pitch = math.gcd(cell, step)
        stride, reach = step // pitch, cell // pitch
        down, across = ((size - side) // step + 1 for size in shape)
        top, left = ((size - side) % step // 2 for size in shape)
        needed = (SIDE - 1) * reach + 1
        found = cells(*gradients, cell, pitch, left, top, (across - 1) * stride + needed, (down - 1) * stride + needed)
        values = np.empty((down * across, LENGTH), np.float32)
        descriptors(found, stride, reach, float(self.contrast), float(self.clip), bool(self.root), across, values)
        x = np.tile(left + 0.5 * side + step * np.arange(across), down)
        y = np.repeat(top + 0.5 * side + step * np.arange(down), across)
        return values, x, y
