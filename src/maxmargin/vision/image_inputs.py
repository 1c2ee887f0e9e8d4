"""What users hand over, told apart and checked: folders, files, images as arrays, features of regions or patches."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..estimators import inputs
from ..validation import shown
from .features.maps import first_image_not_finite
from .images import ImageFolder, list_images
from .parts.patches import Patches

_CHANNELS = (1, 3, 4)
_LARGE = 40  # rows and columns that no grid has, where a region has one, three or four features


@dataclass(frozen=True)
class ImageInputs:
    """Images, or features of them, never both; labels where a folder had them, or where they were given."""

    images: Sequence[Any] | None = None
    features: Any = None
    """Of regions, an array (n, rows, columns, features); or of patches, ``Patches``."""
    labels: np.ndarray | None = None

    @property
    def given(self) -> Any:
        return self.features if self.images is None else self.images

    def __len__(self) -> int:
        return len(self.given)

    def weights(self, sample_weight: ArrayLike | None) -> np.ndarray | None:
        """The weights of all images, those included that cannot be read."""
        if sample_weight is None:
            return None
        weights = one_each("sample_weight", sample_weight, len(self))
        return inputs.check_weights(weights, weights)


def one_each(name: str, values: ArrayLike, n: int) -> np.ndarray:
    """Labels or weights of n images."""
    found = np.asarray(values)
    if found.shape != (n,):
        raise ValueError(f"There are {n} images, {name} has shape {found.shape}; one entry for each image is needed.")
    return found


def images_or_regions(X: Any) -> ImageInputs:
    """Images or regions without labels: files, folders and patterns of files, arrays of pixels, or features."""
    if isinstance(X, str | os.PathLike):
        return ImageInputs(images=list_images(X))
    if isinstance(X, ImageFolder):
        return ImageInputs(images=X.paths)
    if isinstance(X, np.ndarray) and _pixels(X) and X.shape[2:] in ((3,), (4,)):
        raise ValueError(f"X of shape {X.shape} is one image in colour. Give a list of images: [image].")
    if isinstance(X, np.ndarray) and X.dtype.kind in "fiub" and X.ndim != 4 and (X.ndim != 3 or X.dtype != np.uint8):
        raise ValueError(
            f"X is an array of {X.dtype} of shape {X.shape}. Images are arrays of unsigned bytes (n, height, width) or "
            "(n, height, width, 3); features of regions are arrays (n, rows, columns, features). One image: [image]."
        )
    listed = isinstance(X, Sequence | np.ndarray) or hasattr(X, "to_numpy")  # as columns of tables have it
    items = list(X) if listed else []
    if not items:
        raise ValueError(f"X must be a folder, a list of files or of images, or an array; got {shown(X)}.")
    if not all(isinstance(x, np.ndarray) and x.ndim == 3 and not _pixels(x) for x in items):
        return ImageInputs(images=items)
    _check_no_pictures(items[0])
    shapes = {x.shape for x in items}
    if len(shapes) > 1:
        raise ValueError(f"Features of regions must have the same shape in all images, got {sorted(shapes)[:3]}.")
    return ImageInputs(features=X if isinstance(X, np.ndarray) and X.ndim == 4 else np.stack(items))


def images_or_patches(X: object) -> ImageInputs:
    """The same, where the patches of an image are its features; those of regions are patches, too."""
    patches = _patches(X)
    if patches is not None:
        return ImageInputs(features=patches)
    found = images_or_regions(X)
    return found if found.features is None else ImageInputs(features=_of_regions(found.features))


def _patches(X: Any) -> Patches | None:
    """Patches, if that is what was given: ``Patches`` or bags of feature vectors."""
    if isinstance(X, Patches):
        return X.checked()
    if isinstance(X, str | os.PathLike | ImageFolder) or not hasattr(X, "__len__") or not len(X):
        return None
    if isinstance(X, np.ndarray) and X.dtype != object:
        return Patches.stack(list(X)).checked() if X.dtype.kind == "f" and X.ndim == 3 else None
    arrays = [x for x in X if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
    if len(arrays) < len(X) or arrays[0].ndim != 2:
        return None
    return Patches.stack(arrays).checked()


def _of_regions(regions: np.ndarray) -> Patches:
    """Features of the cells of a grid, (n, rows, columns, features): every cell is a patch."""
    regions = checked_regions(regions, np.arange(len(regions)))
    n, rows, columns, d = regions.shape
    values = regions.reshape(n, -1, d).astype(regions.dtype if regions.dtype.kind == "f" else np.float32, copy=False)
    top, left = (corner.ravel() for corner in np.mgrid[0:rows, 0:columns])
    windows = np.column_stack([left / columns, top / rows, (left + 1) / columns, (top + 1) / rows])
    return Patches.stack(list(values), [windows] * n).checked()


def _pixels(array: np.ndarray) -> bool:
    """Whether an array holds an image rather than features."""
    return array.dtype == np.uint8 and (array.ndim == 2 or (array.ndim == 3 and array.shape[-1] in _CHANNELS))


def _check_no_pictures(array: np.ndarray) -> None:
    """Pictures as floating numbers look like features of very many regions."""
    if array.shape[-1] in _CHANNELS and min(array.shape[:2]) > _LARGE:
        raise ValueError(
            f"Are these images, or features of {array.shape[0]} × {array.shape[1]} regions? Images must be arrays of "
            f"unsigned bytes, got {array.dtype}: (255 * image).astype(np.uint8), if they run from 0 to 1."
        )


def checked_regions(regions: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Regions that can be learned from; ``number`` says which image each belongs to."""
    if regions.ndim != 4 or regions.dtype.kind not in "fiub" or 0 in regions.shape:
        raise ValueError(
            "Features of regions must be numbers, for each image an array (rows, columns, features); got "
            f"{regions.dtype} of shape {regions.shape}."
        )
    bad = first_image_not_finite(regions)
    if bad is not None:
        raise ValueError(
            f"The features of image {number[bad]} are not finite: there is a NaN or an infinity among them. Leave this "
            "image out, or mend its features."
        )
    return regions


def check_counts(what: str, regions: np.ndarray, instead: str) -> None:
    if regions.min() < 0:
        raise ValueError(f"{what} is for counts of words, and there is a value of {regions.min():.6g}. Use {instead}.")


def checked_parts(Z: ArrayLike, n: int, grid: tuple[int, int], n_parts: int) -> np.ndarray:
    """Parts of the regions of n images, (n, n_regions)."""
    try:
        parts = np.asarray(Z)
    except ValueError:  # of rows of different lengths
        parts = np.asarray(Z, dtype=object)
    if parts.size != n * grid[0] * grid[1] or len(parts) != n or parts.dtype.kind not in "iu":
        raise ValueError(
            f"Z must be whole numbers, one part for each region: shape {(n, *grid)}; got {parts.dtype} of shape "
            f"{parts.shape}."
        )
    if parts.min() < 0 or parts.max() >= n_parts:
        raise ValueError(f"Z has parts from {parts.min()} to {parts.max()}, n_parts={n_parts} counts from 0.")
    return parts.reshape(n, -1).astype(np.int16)
