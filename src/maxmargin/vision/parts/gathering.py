"""The patches of many images, gathered from an extractor."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..features.extraction import feed_images
from ..features.stacking import Growing, GrowingFields, Stack
from .patches import Patches


def gather_patches(
    images: Sequence[Any],
    extractor: Any,
    *,
    cache: str | os.PathLike[str] | None = None,
    **run: Any,
) -> tuple[Patches, np.ndarray]:
    """The patches of many images.

    Parameters
    ----------
    images : sequence of paths and arrays
        Anything that ``read_image`` takes.
    extractor : HOGPatches, CNNPatches, ReducedPatches, or the like
        Gives an array with the fields ``window`` and ``value`` for an image, and has ``settings()`` and ``color``; and
        ``n_views``, if not 1.
    cache, **run
        ``n_jobs``, ``on_error`` and ``verbose`` are those of ``extraction.feed_images``. Without a cache all is in
        memory; with one, values and windows are views of a file that is mapped.

    Returns
    -------
    patches : Patches
        Of the images that could be used.
    kept : ndarray of int, shape (n_kept,)
        Their positions in ``images``, ascending.

    Examples
    --------
    >>> from maxmargin.vision import HOGPatches
    >>> images = [np.random.default_rng(n).integers(0, 256, (50, n)).astype(np.uint8) for n in (56, 64)]
    >>> patches, _ = gather_patches(images, HOGPatches())
    >>> patches.values.shape, patches.first.tolist()
    ((10, 1152), [0, 2, 4, 7, 10])
    """
    views = int(getattr(extractor, "n_views", 1))
    # In memory values and windows are apart, each in one piece.
    with Stack(cache, ragged=True, memory=GrowingFields if cache is None else Growing) as rows:
        kept = feed_images(images, _Checked(extractor, views), rows, settings=extractor.settings(), cache=cache, **run)
        found = rows.finish()
    return Patches(found["value"], _by_view(rows.first, views), found["window"], views), kept


def _by_view(first: np.ndarray, views: int) -> np.ndarray:
    """Where the patches of each view begin, if those of each image are divided evenly."""
    starts = first[:-1, None] + np.diff(first)[:, None] // views * np.arange(views)
    return np.append(starts.ravel(), first[-1])


class _Checked:
    """The extractor, if it gives what it should."""

    def __init__(self, extractor: Any, views: int) -> None:
        self.extractor, self.views = extractor, views
        self.color = bool(extractor.color)
        self.releases_gil = getattr(extractor, "releases_gil", False)

    def __call__(self, image: np.ndarray) -> np.ndarray:
        found = np.asarray(self.extractor(image))
        if found.ndim != 1 or found.dtype.names is None or not {"window", "value"} <= set(found.dtype.names):
            raise ValueError(
                f"patches must come as rows with the fields window and value; got {found.dtype} of shape {found.shape}"
            )
        shapes = [found[name].shape[1:] for name in ("window", "value")]
        if shapes[0] != (4,) or len(shapes[1]) != 1 or found["value"].dtype.kind != "f":
            raise ValueError(
                f"the window of a patch must be 4 numbers, its value a vector of floats; got {found.dtype}"
            )
        if not len(found) or len(found) % self.views:
            raise ValueError(
                f"there are {len(found)} patches in {self.views} views; all views must have as many, and not none"
            )
        if not np.isfinite(found["value"]).all():
            raise ValueError("a patch is not finite: there is a NaN or an infinity among its features")
        return found
