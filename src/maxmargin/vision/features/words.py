"""Histograms of visual words for the regions of an image: the input of bag-of-words models of scenes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any

import numpy as np

from ...persistence import storable_part
from ..images import ImageSource
from .numbers import checked_grid, whole
from .sift import DenseSIFT, Descriptors

_VERSION = 1  # of the numbers: raised when the same settings give others
_BLOCK = 1024  # rows whose products with all words stay in the cache of a core


@storable_part("grid", "n_words", "n_sampled", "max_iter", "random_state", sift="DenseSIFT", vocabulary_="float[n, d]")
@dataclass(eq=False, repr=False)
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

    grid: Any = 4
    n_words: int = 200
    sift: Any = None
    _: KW_ONLY
    n_sampled: int = 100_000
    max_iter: int = 100
    random_state: int = 0

    color = False  # what extraction.over_images asks of its work: a grey image,
    releases_gil = True  # and kernels and products of matrices that let other threads run

    def __post_init__(self) -> None:
        self.grid = checked_grid(self.grid)
        self.sift = self.sift or DenseSIFT()
        self.n_sampled = whole("n_sampled", self.n_sampled, 1)
        self.random_state = whole("random_state", self.random_state, 0, most=2**63 - 1)
        self.n_words = whole("n_words", self.n_words, 1)
        self.max_iter = whole("max_iter", self.max_iter, 1)
        self._words: np.ndarray | None = None

    @property
    def vocabulary_(self) -> np.ndarray:
        if self._words is None:
            raise AttributeError("There is no vocabulary yet: call fit with images, or set vocabulary_.")
        return self._words

    @vocabulary_.setter
    def vocabulary_(self, words: np.ndarray) -> None:
        words = np.array(words, dtype=np.float32, order="C")
        if words.ndim != 2 or not words.size or not np.isfinite(words).all():
            raise ValueError(f"Words are the rows of a matrix of finite numbers, got an array of shape {words.shape}.")
        if len(words) != self.n_words:
            raise ValueError(f"n_words is {self.n_words}, and the vocabulary has {len(words)} words.")
        self._words = words

    def fit(
        self, images: Sequence[ImageSource], *, cache: Any = None, n_jobs: int | None = None, **run: Any
    ) -> WordHistograms:
        """Learn the vocabulary from images: paths or arrays, whatever ``read_image`` takes.

        ``cache``, ``n_jobs``, ``on_error`` and ``verbose`` are those of ``extraction.over_images``; the cache keeps the
        vocabulary, too. Where this is interrupted, the vocabulary is the one from before.
        """
        from .cache import FeatureCache
        from .extraction import Draw, over_ragged_images

        if not len(images):
            raise ValueError("A vocabulary is learned from images, and none were given.")
        draw = Draw(
            lambda image: self.sift.describe(image).values, json.dumps(asdict(self.sift), sort_keys=True),
            -(-self.n_sampled // len(images)), self.random_state, color=False, releases_gil=True,
        )  # fmt: skip
        drawn, _, _ = over_ragged_images(images, draw, settings=draw.settings(), cache=cache, n_jobs=n_jobs, **run)
        kept, key, words = None, "", None
        if cache is not None:
            kept = FeatureCache(cache, f"vocabulary {_VERSION} {self.n_words} {self.max_iter} {self.random_state}")
            key = kept.key(drawn)
            words = kept.load(key)
        if words is None:
            words = learn_words(drawn, self.n_words, self.max_iter, self.random_state, n_jobs)
            if kept is not None:
                kept.store(key, words)
        self.vocabulary_ = words
        return self

    def histogram(self, image: np.ndarray) -> np.ndarray:
        """Counts of words in the regions of a grey image, an array (rows, columns, n_words) of float32."""
        words = self.vocabulary_
        found = self.sift.describe(image)
        cell = _regions(found, self.grid) * len(words) + nearest_words(found.values, words)
        rows, columns = self.grid
        counts = np.bincount(cell, minlength=rows * columns * len(words))
        return counts.reshape(rows, columns, len(words)).astype(np.float32)

    __call__ = histogram

    def settings(self) -> str:
        """Everything that the counts depend on, as a line of text: equal lines, equal counts."""
        vocabulary = hashlib.blake2b(self.vocabulary_.astype("<f4").tobytes(), digest_size=16).hexdigest()
        said = {"words": _VERSION, "grid": self.grid, "sift": asdict(self.sift), "vocabulary": vocabulary}
        return json.dumps(said, sort_keys=True, default=lambda number: number.item())


def learn_words(
    values: np.ndarray, n_words: int, max_iter: int = 100, random_state: int = 0, n_jobs: int | None = None
) -> np.ndarray:
    """Words for the descriptors ``values`` (n, n_features), by k-means: float32 (n_words, n_features).

    K-means ends when no word moves by more than rounding, or after ``max_iter`` iterations.

    >>> values = np.array([[0.0, 1.0], [0.1, 0.9], [1.0, 0.0], [0.9, 0.1]], dtype=np.float32)
    >>> number = nearest_words(values, learn_words(values, 2))
    >>> bool(number[0] == number[1]), bool(number[2] == number[3]), bool(number[0] == number[2])
    (True, True, False)
    """
    import warnings

    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    from ...estimators.inputs import check_threads

    threads = check_threads(n_jobs)
    distinct = _distinct(values, n_words)
    if distinct < n_words:
        raise ValueError(
            f"{n_words} words need as many different descriptors; {len(values)} were given, {distinct} of "
            "them different. Give more images, or ask for fewer words with n_words."
        )
    kmeans = KMeans(n_words, n_init=1, max_iter=max_iter, tol=1e-5, random_state=random_state)
    with threadpool_limits(threads), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # words a little off their means are words all the same
        return np.ascontiguousarray(kmeans.fit(values).cluster_centers_, dtype=np.float32)


def nearest_words(values: np.ndarray, words: np.ndarray) -> np.ndarray:
    """The number of the nearest word for each row of ``values``, as int32.

    ‖v − w‖² is least where v·w − ‖w‖²/2 is largest: one product of matrices. Words that are equally far but for
    rounding may be taken for each other.
    """
    half = 0.5 * np.einsum("ij,ij->i", words, words)
    if values.shape[1] != words.shape[1]:
        raise ValueError(
            f"Descriptors have {values.shape[1]} numbers, and words {words.shape[1]}. "
            "Take descriptors with the settings that the vocabulary was learned with."
        )
    out = np.empty(len(values), np.int32)
    for start in range(0, len(values), _BLOCK):
        scores = values[start : start + _BLOCK] @ words.T
        scores -= half
        out[start : start + _BLOCK] = scores.argmax(axis=1)
    return out


def _distinct(values: np.ndarray, enough: int) -> int:
    """How many different rows there are; not counted further than needed."""
    head = len(np.unique(values[: 4 * enough], axis=0))
    return head if head >= enough else len(np.unique(values, axis=0))


def _regions(found: Descriptors, grid: tuple[int, int]) -> np.ndarray:
    """The region of each patch's centre, row by row."""
    (rows, columns), (height, width) = grid, found.shape
    return (found.y * rows // height).astype(np.int64) * columns + (found.x * columns // width).astype(np.int64)
