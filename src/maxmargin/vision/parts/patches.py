"""The patches of many images in one table, where each image begins, and how an extractor's are gathered."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..features.extraction import feed_images
from ..features.stacking import Stack

_BLOCK = 2**16  # patches that are looked at together


@dataclass(frozen=True)
class Patches:
    """Features of all places where a part may be, of all images, one image after the other.

    An image has one view or several, such as itself and its mirror image; what parts respond is averaged over them.

    Parameters
    ----------
    values : array (n_patches, n_features)
        float16, float32 or float64; in memory, or a map of a file.
    first : int array (n_images·n_views + 1,)
        Where the patches of each view begin, the views of an image one after the other.
    windows : float array (n_patches, 4) or None
        Left, top, right and bottom of each patch as shares of the width and the height of its view. None: nobody knows.
    n_views : int
        Views of an image. The second of two is the first seen in a mirror.
    """

    values: np.ndarray
    first: np.ndarray
    windows: np.ndarray | None = None
    n_views: int = 1

    @classmethod
    def stack(
        cls, values: Sequence[np.ndarray], windows: Sequence[np.ndarray] | None = None, n_views: int = 1
    ) -> Patches:
        """From an array (n_patches, n_features) for each view of each image, with windows if they are known.

        >>> Patches.stack([np.ones((3, 2)), np.zeros((5, 2))]).first.tolist()
        [0, 3, 8]
        """
        shapes = {np.shape(v)[1:] for v in values}
        if len(shapes) != 1 or len(next(iter(shapes))) != 1:
            raise ValueError(
                "Patches of an image are an array (patches, features), with as many features in all images; got shapes "
                f"{[next(np.shape(v) for v in values if np.shape(v)[1:] == s) for s in sorted(shapes)[:3]]}."
            )
        first = np.concatenate([[0], np.cumsum([len(v) for v in values])])
        found = None if windows is None else np.concatenate(windows).astype(np.float32)
        return cls(np.concatenate(values), first, found, n_views)

    def checked(self) -> Patches:
        """These, if they are what patches should be; else an error that says what is wrong, and where."""
        values, first = self.values, self.first
        if not all(isinstance(given, np.ndarray) for given in (values, first)):
            raise ValueError(f"Patches are made of arrays, got {type(values)} and {type(first)}. Use np.asarray.")
        if values.ndim != 2 or values.dtype.kind != "f" or values.shape[1] == 0:
            raise ValueError(f"Patches must be floats (n_patches, n_features), got {values.dtype} of {values.shape}.")
        numbered = first.ndim == 1 and first.size >= 1 and first.dtype.kind in "iu"
        if not numbered or first[0] != 0 or first[-1] != len(values) or (first[1:] < first[:-1]).any():
            raise ValueError(
                f"first must rise from 0 to the number of patches, {len(values)}, in whole numbers; got {first!r}."
            )
        if first.size == 1:
            raise ValueError("There are patches of no images. Give some.")
        if not isinstance(self.n_views, int | np.integer) or self.n_views < 1 or (first.size - 1) % self.n_views:
            raise ValueError(f"{first.size - 1} views are not those of images with n_views={self.n_views} each.")
        empty = np.flatnonzero(np.diff(first) == 0)
        if empty.size:
            raise ValueError(f"Image {empty[0] // self.n_views} has no patches. Leave it out.")
        if self.windows is not None:
            self._check_windows(self.windows)
        for start in range(0, len(values), _BLOCK):
            bad = np.flatnonzero(~np.isfinite(values[start : start + _BLOCK]).all(axis=1))
            if bad.size:
                view = int(np.searchsorted(first, start + bad[0], "right")) - 1
                raise ValueError(
                    f"A patch of image {view // self.n_views} is not finite: it has a NaN or an infinity. Leave it "
                    "out, or mend its features."
                )
        return self

    def _check_windows(self, windows: np.ndarray) -> None:
        if np.shape(windows) != (len(self.values), 4):
            raise ValueError(f"There are {len(self.values)} patches, windows have shape {np.shape(windows)}.")
        if not isinstance(windows, np.ndarray) or windows.dtype.kind not in "fiu" or not np.isfinite(windows).all():
            raise ValueError("windows must be an array of finite numbers: left, top, right and bottom of each patch.")

    def __len__(self) -> int:
        return (self.first.size - 1) // self.n_views

    @property
    def n_features(self) -> int:
        return int(self.values.shape[1])

    @cached_property
    def largest(self) -> np.ndarray:
        """The largest absolute value of each feature."""
        found = np.zeros(self.n_features)
        for start in range(0, len(self.values), _BLOCK):
            np.maximum(found, np.abs(self.values[start : start + _BLOCK]).max(axis=0), out=found)
        return found

    def of(self, i: int) -> slice:
        """All patches of an image."""
        return slice(int(self.first[i * self.n_views]), int(self.first[(i + 1) * self.n_views]))

    def take(self, ids: np.ndarray, n_views: int | None = None) -> Patches:
        """The patches of some images, copied; only of their first so many views, if these are not to be all.

        >>> Patches.stack([np.full((2, 1), 7.0), np.full((3, 1), 8.0)]).take(np.array([1])).values.ravel().tolist()
        [8.0, 8.0, 8.0]
        """
        n_views = self.n_views if n_views is None else n_views
        views = (np.asarray(ids)[:, None] * self.n_views + np.arange(n_views)).ravel()
        parts = [slice(self.first[view], self.first[view + 1]) for view in views]
        first = np.concatenate([[0], np.cumsum(np.diff(self.first)[views])])
        windows = None if self.windows is None else np.concatenate([self.windows[part] for part in parts])
        return Patches(np.concatenate([self.values[part] for part in parts]), first, windows, n_views)


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
    work = _Checked(extractor, views)
    with Stack(cache, ragged=True) as values, Stack(cache, ragged=True) as windows:

        def take(i: int, found: np.ndarray) -> str:
            return values.take(i, found["value"]) or windows.take(i, found["window"])

        kept = feed_images(images, work, take, settings=extractor.settings(), cache=cache, **run)
        # Those of each image are divided evenly among its views.
        starts = values.first[:-1, None] + np.diff(values.first)[:, None] // views * np.arange(views)
        first = np.append(starts.ravel(), values.first[-1])
        return Patches(values.finish(), first, windows.finish(), views), kept


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
