"""What users hand over to be learned from by parts: images, or patches of them in one of several forms."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import given
from .images import ImageFolder
from .parts.patches import Patches


@dataclass(frozen=True)
class GivenPatches:
    """Images, or their patches, never both; labels where a folder had them, or where they were given."""

    images: Sequence[Any] | None = None
    patches: Patches | None = None
    labels: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.images) if self.images is not None else len(self.patches)  # type: ignore[arg-type]


def training(X: Any, y: Any) -> GivenPatches:
    """What to learn from. A folder has one sub-folder for each class, and then there is no ``y``."""
    patches = _patches(X)
    if patches is not None:
        return GivenPatches(patches=patches, labels=given.checked_labels(y, len(patches)))
    found = given.training(X, y)
    if found.regions is not None:
        return GivenPatches(patches=_of_regions(found.regions), labels=found.labels)
    return GivenPatches(images=found.images, labels=found.labels)


def described(X: Any) -> GivenPatches:
    """The same without labels."""
    patches = _patches(X)
    if patches is not None:
        return GivenPatches(patches=patches)
    found = given.described(X)
    if found.regions is not None:
        return GivenPatches(patches=_of_regions(found.regions))
    return GivenPatches(images=found.images)


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
    regions = given.checked_regions(regions, np.arange(len(regions)))
    n, rows, columns, d = regions.shape
    values = regions.reshape(n, -1, d).astype(regions.dtype if regions.dtype.kind == "f" else np.float32, copy=False)
    top, left = (corner.ravel() for corner in np.mgrid[0:rows, 0:columns])
    windows = np.column_stack([left / columns, top / rows, (left + 1) / columns, (top + 1) / rows])
    return Patches.stack(list(values), [windows] * n).checked()
