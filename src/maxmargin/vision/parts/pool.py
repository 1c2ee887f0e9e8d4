"""Random parts: single patches, whitened by mean and covariance of all, of which useful ones are selected later."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .patches import Patches

_BLOCK = 4096  # patches that are looked at together: all of a sample, as float64 and squared, took gigabytes


@dataclass(frozen=True)
class Whitening:
    """What patches look like on the whole, and what is left of one when that is taken away: Σ⁻¹(f − μ).

    As a filter, Σ⁻¹(f − μ) is what linear discriminant analysis finds to tell patches like f from all others
    (Hariharan, Malik and Ramanan, 2012): a part from a single example.

    Parameters
    ----------
    mean : array (n_features,)
    precision : array (n_features, n_features)
        The inverse of the covariance.
    shrinkage : float
        How far the covariance was drawn towards a multiple of the identity, from 0 to 1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> whitening = Whitening.estimate(rng.normal(size=(5000, 2)) * [1.0, 10.0] + 3.0, rng=rng)
    >>> whitening.filters(np.array([[4.0, 13.0]])).round(1)
    array([[1. , 0.1]])
    """

    mean: np.ndarray
    precision: np.ndarray
    shrinkage: float

    @classmethod
    def estimate(
        cls,
        values: np.ndarray,
        *,
        rng: np.random.Generator,
        shrinkage: str | float = "auto",
        n_sampled: int = 50_000,
    ) -> Whitening:
        """From patches of many images.

        Parameters
        ----------
        values : array (n_patches, n_features)
            In memory, or a map of a file: blocks of the sample are read, from first to last, twice.
        rng : Generator
            Says which patches are looked at, if there are more than ``n_sampled``.
        shrinkage : "auto" or float
            From 0, the covariance as it is, to 1, a multiple of the identity. "auto" is the share that Ledoit and
            Wolf (2004) found to be nearest to the true covariance.
        n_sampled : int
            Most patches to look at.
        """
        from sklearn.covariance import shrunk_covariance

        chosen = np.arange(len(values))
        if len(values) > n_sampled:
            chosen = np.sort(rng.choice(len(values), size=n_sampled, replace=False))
        n, d = chosen.size, values.shape[1]
        blocks = np.split(chosen, range(_BLOCK, n, _BLOCK))
        mean = sum((values[block].sum(axis=0, dtype=np.float64) for block in blocks), np.zeros(d)) / n
        if not np.isfinite(mean).all():
            raise ValueError("Patches must be finite, and some are not.")
        products, fourth = np.zeros((d, d)), 0.0
        for block in blocks:
            off = values[block] - mean
            products += off.T @ off
            fourth += float((np.einsum("ij,ij->i", off, off) ** 2).sum())
        covariance = products / n
        share = _ledoit_wolf(covariance, fourth / n, n) if isinstance(shrinkage, str) else float(shrinkage)
        covariance = shrunk_covariance(covariance, share)
        if not np.trace(covariance) > 0.0:
            raise ValueError(f"All of the {n} patches are the same: there is nothing to tell them apart by.")
        try:
            np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            raise ValueError(
                f"The covariance of {n} patches with {d} features has no inverse with shrinkage={shrinkage!r}. "
                "Give more patches that differ, or some shrinkage: shrinkage=0.01."
            ) from None
        precision = np.linalg.inv(covariance)
        return cls(mean, 0.5 * (precision + precision.T), share)

    @property
    def offset(self) -> float:
        """How long the mean is, in units of the length by which patches are away from it, √(trace Σ)."""
        return float(np.linalg.norm(self.mean) / np.sqrt(np.trace(np.linalg.inv(self.precision))))

    def filters(self, values: np.ndarray) -> np.ndarray:
        """Σ⁻¹(f − μ) for each row f."""
        return (np.asarray(values, dtype=np.float64) - self.mean) @ self.precision

    def strength(self, values: np.ndarray) -> np.ndarray:
        """‖Σ⁻¹(f − μ)‖ for each row f: how far a patch is from what is everywhere."""
        filters = self.filters(values)
        return np.sqrt(np.einsum("ij,ij->i", filters, filters))

    def spread(self, values: np.ndarray) -> np.ndarray:
        """The standard deviation, over all patches, of what the filter of each row f responds.

        With w = Σ⁻¹(f − μ) it is √(wᵀΣw) = √(w·(f − μ)).
        """
        off = np.asarray(values, dtype=np.float64) - self.mean
        return np.sqrt(np.maximum(np.einsum("ij,ij->i", off @ self.precision, off), 0.0))


def _ledoit_wolf(covariance: np.ndarray, fourth: float, n: int) -> float:
    """The share of scikit-learn's ``ledoit_wolf``, from the covariance S of n centred rows and the mean of ‖x‖⁴.

    It is the mean of ‖xxᵀ − S‖²/n, which is how much S itself varies, over ‖S − mI‖², which is how much of S there is
    to lose.
    """
    squares = float((covariance**2).sum())
    off = squares - float(np.trace(covariance)) ** 2 / len(covariance)
    return min(max(fourth - squares, 0.0) / n / off, 1.0) if off > 0.0 else 0.0


def random_parts(
    patches: Patches, n_parts: int, whitening: Whitening, *, rng: np.random.Generator, keep: float = 0.5
) -> tuple[np.ndarray, np.ndarray]:
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

    Returns
    -------
    filters : float array (n_parts, n_features)
        Scaled so that responses to patches at random have a standard deviation of 1.
    source : int array (n_parts,)
        Which patch each part was made of.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> patches = Patches(rng.normal(size=(40, 3)), first=np.arange(0, 41, 10))
    >>> filters, source = random_parts(patches, 6, Whitening.estimate(patches.values, rng=rng), rng=rng)
    >>> filters.shape, len(set(source.tolist()))
    ((6, 3), 6)
    """
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
    return whitening.filters(values) / np.where(spread > 0.0, spread, 1.0)[:, None], source


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
