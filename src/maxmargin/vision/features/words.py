"""Histograms of visual words for the regions of an image: the input of bag-of-words models of scenes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from .grid import checked_grid
from .numbers import generator_for, whole
from .sift import DenseSIFT, Descriptors
from .vocabulary import Vocabulary

_VERSION = 1  # of the numbers: raised when the same settings give others


class WordHistograms:
    """How often each visual word occurs in each region of a regular grid.

    Naderi Parizi §2.6: descriptors of densely sampled patches, a vocabulary learned by k-means from some of them, and
    for each region the number of patches of each word. A patch belongs to the region that its centre lies in.

    Parameters
    ----------
    grid : int or (int, int)
        Rows and columns of regions; a single number for both.
    n_words : int
    sift : DenseSIFT or None
        How descriptors are taken; None: as ``DenseSIFT()`` does.
    n_sampled : int
        Descriptors that the vocabulary is learned from: as many from each image, drawn at random.
    max_iter : int
        The most iterations of k-means.
    random_state : int
        Seed of the draw and of k-means. The draw depends on an image's pixels, not on its place among the others.

    Attributes
    ----------
    vocabulary_ : array (n_words, 128) of float32
        The words. Setting it is as good as ``fit``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> images = [rng.integers(0, 256, (40, 60)).astype(np.uint8) for _ in range(5)]
    >>> words = WordHistograms(grid=(2, 3), n_words=8).fit(images)
    >>> counts = words.histogram(images[0])
    >>> counts.shape, int(counts.sum()), len(words.sift.describe(images[0]))
    ((2, 3, 8), 47, 47)
    """

    grid: tuple[int, int]
    sift: DenseSIFT
    n_sampled: int
    random_state: int
    n_words: int
    max_iter: int

    color = False  # what extraction.over_images asks of its work: a grey image,
    releases_gil = True  # and kernels and products of matrices that let other threads run

    def __init__(
        self,
        grid: int | tuple[int, int] = 4,
        n_words: int = 200,
        sift: DenseSIFT | None = None,
        *,
        n_sampled: int = 100_000,
        max_iter: int = 100,
        random_state: int = 0,
    ) -> None:
        self.grid = checked_grid(grid)
        self.sift = DenseSIFT() if sift is None else sift
        self.n_sampled = whole("n_sampled", n_sampled, 1)
        self.random_state = whole("random_state", random_state, 0, most=2**63 - 1)
        self._vocabulary = Vocabulary(n_words, max_iter=max_iter, random_state=self.random_state)
        self.n_words, self.max_iter = self._vocabulary.n_words, self._vocabulary.max_iter

    @property
    def vocabulary_(self) -> np.ndarray:
        words = getattr(self._vocabulary, "words_", None)
        if words is None:
            raise AttributeError("There is no vocabulary yet: call fit with images, or set vocabulary_.")
        return words

    @vocabulary_.setter
    def vocabulary_(self, words: np.ndarray) -> None:
        given = Vocabulary.of(words)
        if given.words_.shape[0] != self.n_words:
            raise ValueError(f"n_words is {self.n_words}, and the vocabulary has {given.words_.shape[0]} words.")
        self._vocabulary = given

    def fit(
        self,
        images: Sequence[Any],
        *,
        cache: str | os.PathLike[str] | None = None,
        n_jobs: int | None = None,
        on_error: str = "raise",
        verbose: int = 0,
    ) -> WordHistograms:
        """Learn the vocabulary from images: paths or arrays, whatever ``read_image`` takes.

        ``cache``, ``n_jobs``, ``on_error`` and ``verbose`` are those of ``extraction.over_images``; the cache keeps the
        vocabulary, too. Where this is interrupted, the vocabulary is the one from before.
        """
        from .cache import FeatureCache
        from .extraction import over_images

        if not len(images):
            raise ValueError("A vocabulary is learned from images, and none were given.")
        draw = _Draw(self.sift, -(-self.n_sampled // len(images)), self.random_state)
        drawn, _ = over_images(
            images, draw, settings=draw.settings(), cache=cache, n_jobs=n_jobs, on_error=on_error, verbose=verbose
        )
        drawn = drawn.reshape(-1, drawn.shape[-1])
        drawn = drawn[~np.isnan(drawn[:, 0])]
        learned = Vocabulary(self.n_words, max_iter=self.max_iter, random_state=self.random_state)
        if cache is None:
            self._vocabulary = learned.fit(drawn, n_jobs=n_jobs)
            return self
        kept = FeatureCache(cache, f"vocabulary {_VERSION} {self.n_words} {self.max_iter} {self.random_state}")
        key = kept.key(drawn)
        words = kept.load(key)
        if words is None:
            words = learned.fit(drawn, n_jobs=n_jobs).words_
            with contextlib.suppress(OSError):  # a full disk: it is learned anew the next time
                kept.store(key, words)
        self._vocabulary = Vocabulary.of(words)
        return self

    def histogram(self, image: np.ndarray) -> np.ndarray:
        """Counts of words in the regions of a grey image, an array (rows, columns, n_words) of float32."""
        words = self.vocabulary_.shape[0]
        found = self.sift.describe(image)
        cell = _regions(found, self.grid) * words + self._vocabulary.assign(found.values)
        rows, columns = self.grid
        counts = np.bincount(cell, minlength=rows * columns * words)
        return counts.reshape(rows, columns, words).astype(np.float32)

    __call__ = histogram

    def settings(self) -> str:
        """Everything that the counts depend on, as a line of text: equal lines, equal counts."""
        vocabulary = hashlib.blake2b(self.vocabulary_.astype("<f4").tobytes(), digest_size=16).hexdigest()
        said = {"words": _VERSION, "grid": self.grid, "sift": asdict(self.sift), "vocabulary": vocabulary}
        return json.dumps(said, sort_keys=True, default=lambda number: number.item())


class _Draw:
    """Some descriptors of an image, drawn without replacement; rows of NaN where it has fewer."""

    color = False
    releases_gil = True

    def __init__(self, sift: DenseSIFT, size: int, seed: int) -> None:
        self.sift, self.size, self.seed = sift, size, seed

    def settings(self) -> str:
        return json.dumps({"drawn": self.size, "seed": self.seed, "sift": asdict(self.sift)}, sort_keys=True)

    def __call__(self, image: np.ndarray) -> np.ndarray:
        values = self.sift.describe(image).values
        chosen = generator_for(image, self.seed).permutation(len(values))[: self.size]
        out = np.full((self.size, values.shape[1]), np.nan, np.float32)
        out[: chosen.size] = values[chosen]
        return out


def _regions(found: Descriptors, grid: tuple[int, int]) -> np.ndarray:
    """The region of each patch's centre, row by row."""
    (rows, columns), (height, width) = grid, found.shape
    return (found.y * rows // height).astype(np.int64) * columns + (found.x * columns // width).astype(np.int64)
