"""Counts of words by region, as the models of scenes read them: checks of what is given, and what all models share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from ...estimators.inputs import check_positive
from ...validation import shown

_CHUNK_BYTES = 32 << 20  # of float64 in flight where images are scored


def checked_counts(X: ArrayLike, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """The counts as an array (n, R, K), in the precision they came in; ``shape`` is what a model wants of (R, K)."""
    X = np.asarray(X)
    if X.ndim != 3:
        raise ValueError(
            f"X has shape {X.shape}; counts of words have three axes: images, regions, words. "
            "A grid of regions is made one axis by X.reshape(len(X), -1, X.shape[-1])."
        )
    if not X.shape[1] or not X.shape[2]:
        raise ValueError(f"X has shape {X.shape}; give at least one region and one word.")
    if X.dtype.kind not in "buif":
        raise ValueError(f"X holds {X.dtype}; counts of words are real numbers.")
    if X.size and not (X.min() >= 0 and np.isfinite(X.max())):
        raise ValueError("X holds negative numbers, infinities or NaN; counts of words are finite and not below 0.")
    if shape is not None and X.shape[1:] != shape:
        raise ValueError(
            f"X has {X.shape[1]} regions and {X.shape[2]} words, but the model is of {shape[0]} regions and {shape[1]} "
            "words. Count with the grid and the vocabulary of the training images."
        )
    return X


def checked_classes(y: ArrayLike, n_images: int, n_classes: int | None = None) -> np.ndarray:
    """Class numbers, one per image, below ``n_classes`` where that is known."""
    y = np.asarray(y)
    if y.shape != (n_images,):
        raise ValueError(f"there are {n_images} images, but the classes have shape {y.shape}; give one for each image.")
    if y.size and y.dtype.kind not in "iu":
        raise ValueError(f"classes are {y.dtype}; give class numbers, as np.unique(names, return_inverse=True) makes.")
    y = y.astype(np.intp)
    if y.size and (y.min() < 0 or (n_classes is not None and y.max() >= n_classes)):
        upper = "" if n_classes is None else f" to {n_classes - 1}"
        raise ValueError(f"class numbers go from {y.min()} to {y.max()}; give numbers from 0{upper}.")
    return y


def training_data(X: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray, int]:
    """Counts, class numbers and the number of classes; each class has an image."""
    X = checked_counts(X)
    y = checked_classes(y, len(X))
    if not len(X):
        raise ValueError("there are no images; give at least one of each class.")
    sizes = np.bincount(y)
    if not sizes.all():
        raise ValueError(f"class {sizes.argmin()} has no image; number the classes 0, 1, … without gaps.")
    return X, y, len(sizes)


def checked_temperature(temperature: float) -> float:
    """By what words within a region are divided: 1 or more."""
    if check_positive("temperature", temperature) < 1.0:
        raise ValueError(f"temperature must be at least 1, got {shown(temperature)}.")
    return float(temperature)


def log_class_prior(y: np.ndarray, n_classes: int) -> np.ndarray:
    """log p(y), (N,): of the frequencies in ``y``."""
    sizes = np.bincount(y, minlength=n_classes)
    return np.log(sizes / sizes.sum())


def log_frequencies(counts: np.ndarray, smoothing: float) -> np.ndarray:
    """(2.3), smoothed: the logarithm of (c + smoothing) / Σ (c + smoothing) along the last axis."""
    smoothed = counts + smoothing
    return np.log(smoothed) - np.log(smoothed.sum(axis=-1, keepdims=True))


def pieces(X: np.ndarray, values_per_image: int) -> Iterator[slice]:
    """Ranges of images, so that ``values_per_image`` float64 for each of them stay within a fixed size."""
    step = max(1, _CHUNK_BYTES // (8 * max(values_per_image, 1)))
    return (slice(start, start + step) for start in range(0, len(X), step))
