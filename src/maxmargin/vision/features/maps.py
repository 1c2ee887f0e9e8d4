"""Feature maps ψ: what is done to the features of every region before they are learned from."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from ...data.arrays import first_not_finite
from .stacking import Stack

_BLOCK = 2**24  # values at a time
_DENSE = 0.8


def square_root(regions: np.ndarray) -> np.ndarray:
    """The square root of a histogram that was scaled to sum 1 (Naderi Parizi §2.6): a vector of length 1.

    Empty histograms stay zero.

    >>> square_root(np.array([1.0, 3.0, 0.0, 0.0])).tolist()
    [0.5, 0.8660253882408142, 0.0, 0.0]
    """
    x = np.asarray(regions, dtype=np.float32)
    if x.size and x.min() < 0.0:
        raise ValueError(
            f"feature_map='sqrt' is for histograms, and there is a value of {x.min():.6g}. Use feature_map='none'."
        )
    return np.sqrt(x / np.maximum(x.sum(axis=-1, keepdims=True), np.float32(1e-30)))


def unit_length(regions: np.ndarray) -> np.ndarray:
    """Every vector scaled to length 1; zero stays zero."""
    x = np.asarray(regions, dtype=np.float32)
    return x / np.maximum(np.sqrt((x * x).sum(axis=-1, keepdims=True)), np.float32(1e-30))


def as_is(regions: np.ndarray) -> np.ndarray:
    return np.asarray(regions, dtype=np.float32)


def root(regions: np.ndarray) -> np.ndarray:
    """The square root of each count: words that occur often in a region occur in bursts, and count for less."""
    x = np.asarray(regions, dtype=np.float32)
    if x.size and x.min() < 0.0:
        raise ValueError(f"feature_map='root' is for counts, and there is a value of {x.min():.6g}.")
    return np.sqrt(x)


MAPS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sqrt": square_root,
    "root": root,
    "l2": unit_length,
    "none": as_is,
}


def map_for(regions: np.ndarray) -> str:
    """Which map suits these features: histograms are whole numbers from 0 on."""
    some = np.asarray(regions[: max(1, _BLOCK // max(1, regions[0].size))])
    return "sqrt" if some.min(initial=0) >= 0 and np.array_equal(some, np.rint(some)) else "none"


def mostly_sparse(regions: np.ndarray) -> bool:
    """Whether enough features are zero for it to pay that they are left out."""
    some = np.asarray(regions[: max(1, _BLOCK // max(1, regions[0].size))])
    return bool(np.count_nonzero(some) < _DENSE * some.size)


def first_image_not_finite(regions: np.ndarray) -> int | None:
    """The first image with a feature that is NaN or infinite, found block by block."""
    size = max(1, _BLOCK // max(1, int(np.prod(regions.shape[1:]))))
    for start in range(0, len(regions), size):
        block = regions[start : start + size]
        if (bad := first_not_finite(block.reshape(len(block), -1))) is not None:
            return start + bad[0]
    return None


def mapped(
    name: str, regions: np.ndarray, mean: np.ndarray | None = None, folder: str | os.PathLike[str] | None = None
) -> np.ndarray:
    """ψ of many images, less a mean, block by block; in a file of that folder where the regions are mapped from one."""
    size = max(1, _BLOCK // max(1, int(np.prod(regions.shape[1:]))))
    with Stack(folder if isinstance(regions, np.memmap) else None, ragged=True, room=len(regions)) as rows:
        for start in range(0, len(regions), size):
            block = MAPS[name](regions[start : start + size])
            rows.take(start, block if mean is None else (block - mean).astype(np.float32, copy=False))
        return rows.finish()
