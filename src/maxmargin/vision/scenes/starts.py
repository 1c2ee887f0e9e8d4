"""Which part each region begins with: discriminative training is sensitive to it (Naderi Parizi §2.4.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...clustering import GMMKMeans
from .em import ReconfigurableBagOfWords

STARTS = ("em", "kmeans", "fixed", "random")


def initial_parts(
    how: str,
    regions: np.ndarray,
    label: np.ndarray,
    n_parts: int,
    *,
    shared: bool,
    rng: np.random.Generator,
    **em: Any,
) -> np.ndarray:
    """Parts (n, n_regions) for images of known classes.

    Parameters
    ----------
    how : {"em", "kmeans", "fixed", "random"}
        The likeliest parts under a generative model trained by EM, for counts; clusters of the regions of each class,
        for features of any kind; the same parts for the same region in all images; random ones.
    regions : array (n, n_regions, n_features)
    label : int array (n,)
    n_parts : int
    shared : bool
        Whether all classes have their parts in common.
    rng : Generator
    em : settings of ``ReconfigurableBagOfWords.fit``
    """
    n, R, D = regions.shape
    if how == "random":
        return rng.integers(0, n_parts, (n, R)).astype(np.int16)
    if how == "fixed":
        return np.tile((np.arange(R) * n_parts // R).astype(np.int16), (n, 1))
    if how == "em":
        model = ReconfigurableBagOfWords.fit(regions, label, n_parts=n_parts, shared=shared, random_state=rng, **em)
        return model.assign(regions, label).astype(np.int16)
    parts = np.empty((n, R), np.int16)
    for k in [None] if shared else np.unique(label).tolist():
        mine = np.arange(n) if k is None else np.flatnonzero(label == k)
        points = np.asarray(regions[mine], dtype=np.float32).reshape(-1, D)
        clusters = GMMKMeans(min(n_parts, len(points)), random_state=rng).fit(points)
        parts[mine] = clusters.labels_.reshape(mine.size, R)
    return parts
