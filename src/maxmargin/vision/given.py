"""What users hand over, told apart and checked: folders, files, images as arrays, features of regions, and so on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..estimators import inputs
from .features.maps import first_not_finite
from .images import ImageFolder, list_images

_CHANNELS = (1, 3, 4)
_LARGE = 40  # rows and columns that no grid has, where a region has one, three or four features


@dataclass(frozen=True)
class Given:
    """Images, or features of their regions (n, rows, columns, features), never both; labels where a folder had them."""

    images: Sequence[Any] | None = None
    regions: np.ndarray | None = None
    labels: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.images) if self.images is not None else len(self.regions)  # type: ignore[arg-type]


def training(X: Any, y: Any) -> Given:
    """What to learn from. A folder has one sub-folder for each class, and then there is no ``y``."""
    if isinstance(X, str | os.PathLike | ImageFolder):
        if y is not None:
            raise ValueError(
                "A folder of images brings its labels, the names of its sub-folders: leave y out. With labels of your "
                "own give a list of files."
            )
        folder = X if isinstance(X, ImageFolder) else ImageFolder(X)
        return Given(images=folder.paths, labels=folder.labels)
    given = described(X)
    return Given(given.images, given.regions, checked_labels(y, len(given)))


def checked_labels(y: Any, n: int) -> np.ndarray:
    """One label for each image."""
    if y is None:
        raise ValueError(
            "y is missing: one class for each image. Only a folder with one sub-folder per class does without."
        )
    inputs.check_labels(y)  # as they came: an array of text and numbers is one of text
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"X has {n} images, y has shape {labels.shape}; one label for each image is needed.")
    return labels


def classes_of(labels: Any, estimator: str) -> tuple[np.ndarray, np.ndarray]:
    """The classes there are, and which of them each image is of."""
    inputs.check_classes(labels)
    classes, label = np.unique(labels, return_inverse=True)
    if classes.size < 2:
        raise ValueError(f"{estimator} needs images of at least 2 classes, got {classes[0]} alone.")
    return classes, label


def check_all_there(classes: np.ndarray, label: np.ndarray) -> None:
    """Whether images of every class are left, where some could not be read."""
    gone = np.setdiff1d(np.arange(classes.size), label)
    if gone.size:
        raise ValueError(f"No image of the class {classes[gone[0]]} could be read.")


def described(X: Any) -> Given:
    """Images or regions without labels: files, folders and patterns of files, arrays of pixels, or features."""
    if isinstance(X, str | os.PathLike):
        return Given(images=list_images(X))
    if isinstance(X, ImageFolder):
        return Given(images=X.paths)
    if isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind in "UO":  # of paths, or of images of any size
        X = X.tolist()
    if isinstance(X, np.ndarray):
        if _pixels(X, X.ndim - 1):
            if X.ndim == 3 and X.shape[-1] in _CHANNELS[1:]:
                raise ValueError(f"X of shape {X.shape} is one image in colour. Give a list of images: [image].")
            return Given(images=list(X))
        if X.ndim == 4:
            _check_no_pictures(X[0] if len(X) else X)
            return Given(regions=X)
        raise ValueError(
            f"X is an array of {X.dtype} of shape {X.shape}. Images are arrays of unsigned bytes (n, height, width) or "
            "(n, height, width, 3); features of regions are arrays (n, rows, columns, features). One image: [image]."
        )
    X = list(X) if hasattr(X, "to_numpy") else X  # a column of a table
    if not isinstance(X, Sequence) or not len(X):
        raise ValueError(
            f"X must be a folder, a list of files or of images, or an array; got {'nothing' if _empty(X) else type(X)}."
        )
    if all(isinstance(x, str | os.PathLike) for x in X):
        return Given(images=list(X))
    if any(hasattr(x, "getexif") for x in X):  # images of Pillow's
        return Given(images=list(X))
    arrays = [np.asarray(x) for x in X if not isinstance(x, str | os.PathLike)]
    if len(arrays) == len(X) and all(a.ndim == 3 and not _pixels(a, 3) for a in arrays):
        _check_no_pictures(arrays[0])
        shapes = {a.shape for a in arrays}
        if len(shapes) > 1:
            raise ValueError(f"Features of regions must have the same shape in all images, got {sorted(shapes)[:3]}.")
        return Given(regions=np.stack(arrays))
    return Given(images=list(X))


def _pixels(array: np.ndarray, ndim: int) -> bool:
    """Whether an array holds images of so many dimensions rather than features."""
    if array.dtype != np.uint8:
        return False
    return ndim == 2 or (ndim == 3 and array.shape[-1] in _CHANNELS)


def _check_no_pictures(array: np.ndarray) -> None:
    """Pictures as floating numbers look like features of very many regions."""
    if array.ndim == 3 and array.shape[-1] in _CHANNELS and min(array.shape[:2]) > _LARGE:
        raise ValueError(
            f"Are these images, or features of {array.shape[0]} × {array.shape[1]} regions? Images must be arrays of "
            f"unsigned bytes, got {array.dtype}: (255 * image).astype(np.uint8), if they run from 0 to 1."
        )


def _empty(X: Any) -> bool:
    return hasattr(X, "__len__") and len(X) == 0


def checked_regions(regions: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Regions that can be learned from; ``number`` says which image each belongs to."""
    if regions.ndim != 4 or regions.dtype.kind not in "fiub" or 0 in regions.shape:
        raise ValueError(
            "Features of regions must be numbers, for each image an array (rows, columns, features); got "
            f"{regions.dtype} of shape {regions.shape}."
        )
    bad = first_not_finite(regions)
    if bad is not None:
        raise ValueError(
            f"The features of image {number[bad]} are not finite: there is a NaN or an infinity among them. Leave this "
            "image out, or mend its features."
        )
    return regions


def check_counts(what: str, regions: np.ndarray, instead: str) -> None:
    if regions.min() < 0:
        raise ValueError(f"{what} is for counts of words, and there is a value of {regions.min():.6g}. Use {instead}.")


def checked_weights(sample_weight: Any, n: int) -> np.ndarray:
    weights = np.asarray(sample_weight)
    if weights.shape != (n,):
        raise ValueError(
            f"There are {n} images, sample_weight has shape {weights.shape}; one weight for each image is needed."
        )
    return weights


def checked_parts(Z: Any, n: int, grid: tuple[int, int], n_parts: int) -> np.ndarray:
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
    return parts.reshape(n, *grid).astype(np.int16)
