"""Where a part responds most."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from .patches import Patches

_OVERLAP = 0.5  # of the area of both together: two places that share more are the same one


class Detection(NamedTuple):
    """A place where a part responds.

    ``window`` is left, top, right and bottom as shares of the image's width and height, in the image itself even if it
    was seen in the mirror (``mirrored``); None where nobody knows where patches are. ``patch`` counts within its view.
    """

    image: int
    score: float
    window: tuple[float, float, float, float] | None
    mirrored: bool
    patch: int


def best_detections(patches: Patches, filter_: np.ndarray, n: int, per_image: int, start: int = 0) -> list[Detection]:
    """The places with the largest scores, so many in all and in one image; images are counted from ``start``."""
    if not all(isinstance(number, int | np.integer) and number >= 1 for number in (n, per_image)):
        raise ValueError(f"At least one place is needed, got n={n!r}, per_image={per_image!r}.")
    found = (one for i in range(len(patches)) for one in _of_image(patches, filter_, per_image, i, start))
    return strongest(found, n)


def strongest(found: Iterable[Detection], n: int) -> list[Detection]:
    """Those with the largest scores, the best first, and of equal ones the first."""
    return heapq.nlargest(n, found, key=lambda detection: detection.score)


def _of_image(patches: Patches, filter_: np.ndarray, per_image: int, i: int, start: int) -> list[Detection]:
    some = patches.of(i)
    dtype = np.float64 if patches.values.dtype == np.float64 else np.float32
    scores = patches.values[some].astype(dtype, copy=False) @ filter_.astype(dtype)
    first = patches.first[i * patches.n_views : (i + 1) * patches.n_views]
    chosen: list[Detection] = []
    for q in np.argsort(-scores, kind="stable").tolist():
        view = int(np.searchsorted(first, some.start + q, "right")) - 1
        window = None if patches.windows is None else _in_image(patches.windows[some.start + q], view)
        if window is None or all(d.window is None or _overlap(window, d.window) < _OVERLAP for d in chosen):
            chosen.append(Detection(start + i, float(scores[q]), window, view == 1, int(some.start + q - first[view])))
        if len(chosen) == per_image:
            break
    return chosen


def _in_image(window: np.ndarray, view: int) -> tuple[float, float, float, float]:
    left, top, right, bottom = (float(x) for x in window)
    return (1.0 - right, top, 1.0 - left, bottom) if view == 1 else (left, top, right, bottom)


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    """The area that two windows share, as a share of what they cover together."""
    across, down = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if across <= 0.0 or down <= 0.0:
        return 0.0
    area = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1])
    return across * down / (area - across * down)
