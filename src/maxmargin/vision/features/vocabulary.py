"""Visual words: descriptors are told apart only by which of K words they are nearest to."""

from __future__ import annotations

from typing import Any

import numpy as np

from .numbers import whole

_BLOCK = 1024  # rows whose products with all words stay in the cache of a core


class Vocabulary:
    """K words, found by k-means.

    Parameters
    ----------
    n_words : int
    max_iter : int
        The most iterations of k-means. It ends before, when no word moves by more than rounding.
    random_state : int
        Where k-means starts from.

    Attributes
    ----------
    words_ : array (n_words, n_features) of float32

    Examples
    --------
    >>> values = np.array([[0.0, 1.0], [0.1, 0.9], [1.0, 0.0], [0.9, 0.1]], dtype=np.float32)
    >>> vocabulary = Vocabulary(n_words=2).fit(values)
    >>> words = vocabulary.assign(values)
    >>> bool(words[0] == words[1]), bool(words[2] == words[3]), bool(words[0] == words[2])
    (True, True, False)
    """

    def __init__(self, n_words: int = 200, *, max_iter: int = 100, random_state: int = 0) -> None:
        self.n_words = whole("n_words", n_words, 1)
        self.max_iter = whole("max_iter", max_iter, 1)
        self.random_state = random_state

    @classmethod
    def of(cls, words: Any) -> Vocabulary:
        """A vocabulary of given words, an array (n_words, n_features)."""
        words = np.array(words, dtype=np.float32, order="C")
        if words.ndim != 2 or not words.size or not np.isfinite(words).all():
            raise ValueError(f"Words are the rows of a matrix of finite numbers, got an array of shape {words.shape}.")
        vocabulary = cls(len(words))
        vocabulary._set(words)
        return vocabulary

    def fit(self, values: np.ndarray, *, n_jobs: int | None = None) -> Vocabulary:
        """Words for the descriptors ``values``, an array (n, n_features)."""
        from ...estimators.inputs import check_threads

        threads = check_threads(n_jobs)
        values = _matrix(values)
        if not np.isfinite(values).all():
            raise ValueError("Descriptors must be finite, and some are not.")
        distinct = _distinct(values, self.n_words)
        if distinct < self.n_words:
            raise ValueError(
                f"{self.n_words} words need as many different descriptors; {len(values)} were given, {distinct} of "
                "them different. Give more images, or ask for fewer words with n_words."
            )
        self._set(self._means(values, threads))
        return self

    def _means(self, values: np.ndarray, threads: int) -> np.ndarray:
        import warnings

        from sklearn.cluster import KMeans
        from sklearn.exceptions import ConvergenceWarning
        from threadpoolctl import threadpool_limits

        kmeans = KMeans(self.n_words, n_init=1, max_iter=self.max_iter, tol=1e-5, random_state=self.random_state)
        with threadpool_limits(threads), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # words a little off their means are words all the same
            return kmeans.fit(values).cluster_centers_

    def _set(self, words: np.ndarray) -> None:
        self.words_ = np.ascontiguousarray(words, dtype=np.float32)
        self._half = 0.5 * np.einsum("ij,ij->i", self.words_, self.words_)

    def assign(self, values: np.ndarray) -> np.ndarray:
        """The number of the nearest word for each row of ``values``, as int32.

        ‖v − w‖² is least where v·w − ‖w‖²/2 is largest: one product of matrices. Words that are equally far but for
        rounding may be taken for each other.
        """
        values = _matrix(values)
        if values.shape[1] != self.words_.shape[1]:
            raise ValueError(
                f"Descriptors have {values.shape[1]} numbers, and words {self.words_.shape[1]}. "
                "Take descriptors with the settings that the vocabulary was learned with."
            )
        out = np.empty(len(values), np.int32)
        for start in range(0, len(values), _BLOCK):
            scores = values[start : start + _BLOCK] @ self.words_.T
            scores -= self._half
            out[start : start + _BLOCK] = scores.argmax(axis=1)
        return out


def _matrix(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, dtype=np.float32)
    if values.ndim != 2:
        raise ValueError(f"Descriptors are the rows of a matrix, got an array of shape {values.shape}.")
    return values


def _distinct(values: np.ndarray, enough: int) -> int:
    """How many different rows there are; not counted further than needed."""
    head = len(np.unique(values[: 4 * enough], axis=0))
    return head if head >= enough else len(np.unique(values, axis=0))
