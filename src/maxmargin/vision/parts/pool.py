"""Random parts: single patches, whitened, of which useful ones are selected later."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .patches import Patches
from .whitening import Whitening


@dataclass(frozen=True)
class Pool:
    """Parts to select from.

    Parameters
    ----------
    filters : float array (n_parts, n_features)
        Scaled so that responses to patches at random have a standard deviation of 1.
    source : int array (n_parts,)
        Which patch each part was made of.
    """

    filters: np.ndarray
    source: np.ndarray

    def __len__(self) -> int:
        return len(self.filters)


def random_parts(
    patches: Patches, n_parts: int, whitening: Whitening, *, rng: np.random.Generator, keep: float = 0.5
) -> Pool:
    """Parts of one patch each: a random image, whatever its class, and a random one of its stronger patches.

    No patch is taken twice, and none from a mirror image. Parts are in random order, so that the first so many of them
    are a pool as well.

    Parameters
    ----------
    patches : Patches
    n_parts : int
    whitening : Whitening
        Of patches like these.
    rng : Generator
    keep : float
        The share of the patches of an image, those of the largest ``strength``, that is not discarded.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> patches = Patches(rng.normal(size=(40, 3)), first=np.arange(0, 41, 10))
    >>> pool = random_parts(patches, 6, Whitening.estimate(patches.values, rng=rng), rng=rng)
    >>> pool.filters.shape, len(set(pool.source.tolist()))
    ((6, 3), 6)
    """
    if not 0.0 < keep <= 1.0:
        raise ValueError(f"keep must be a share above 0 and at most 1, got {keep!r}.")
    if n_parts < 1:
        raise ValueError(f"n_parts must be at least 1, got {n_parts}.")
    begin, end = _own(patches)
    available = _stronger(begin, end, keep)
    if n_parts > available.sum():
        raise ValueError(
            f"{n_parts} parts were asked for, but {len(patches)} images have only {available.sum()} patches to make "
            f"them of, with keep={keep}. Ask for fewer parts, keep more, or give more images."
        )
    source = np.empty(n_parts, np.int64)
    filled = 0
    for i, wanted in enumerate(_how_many_each(available, n_parts, rng)):
        if wanted > 0:
            strength = whitening.strength(patches.values[begin[i] : end[i]])
            stronger = np.argsort(-strength, kind="stable")[: available[i]]
            source[filled : filled + wanted] = begin[i] + rng.choice(stronger, size=wanted, replace=False)
            filled += wanted
    source = rng.permutation(source)
    values = patches.values[source]
    spread = whitening.spread(values)
    return Pool(whitening.filters(values) / np.where(spread > 0.0, spread, 1.0)[:, None], source)


def largest_pool(patches: Patches, keep: float = 0.5) -> int:
    """The most parts that ``random_parts`` can make of these patches."""
    return int(_stronger(*_own(patches), keep).sum())


def _own(patches: Patches) -> tuple[np.ndarray, np.ndarray]:
    """Where the patches of each image begin and end, its mirror image left out."""
    first = np.arange(len(patches)) * patches.n_views
    return patches.first[first], patches.first[first + 1]


def _stronger(begin: np.ndarray, end: np.ndarray, keep: float) -> np.ndarray:
    """How many patches of each image are not discarded."""
    return np.ceil(keep * (end - begin) - 1e-9).astype(np.int64)


def _how_many_each(available: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """How often each image is drawn, in n draws of a random image among those with something left."""
    taken = np.zeros(available.size, np.int64)
    left = n
    while left > 0:
        room = np.flatnonzero(taken < available)
        taken += np.bincount(rng.choice(room, size=left), minlength=available.size)
        taken = np.minimum(taken, available)
        left = n - int(taken.sum())
    return taken
