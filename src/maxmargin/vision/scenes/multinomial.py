"""Scenes whose words are drawn independently, given the class (BoW) or the class and the region (SBoW)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .counts import checked_counts, checked_positive, log_class_prior, log_frequencies, pieces, training_data


@dataclass(frozen=True)
class BagOfWords:
    """Generative bag of words: p(x, y) = γ_y mult(x, θ_y)^{1/T}, (2.1)–(2.3) of Naderi Parizi (2016).

    Regions play no part: their counts are added up. Made by ``fit``, or from its arrays.

    Parameters
    ----------
    log_words : float array (n_classes, n_words)
        log θ.
    log_prior : float array (n_classes,)
        log γ.
    temperature : float
        T weighs the words against the prior; where all classes are as likely it changes no decision.

    Examples
    --------
    >>> X = [[[3, 0], [2, 1]], [[1, 3], [0, 4]]]
    >>> model = BagOfWords.fit(X, [0, 1])
    >>> model.scores(X).argmax(axis=1)
    array([0, 1])
    >>> np.exp(model.log_words).round(2)
    array([[0.75, 0.25],
           [0.2 , 0.8 ]])
    """

    log_words: np.ndarray
    log_prior: np.ndarray
    temperature: float = 1.0

    def __post_init__(self) -> None:
        _check_arrays(self.log_words, 2, self.log_prior)

    @classmethod
    def fit(cls, X: Any, y: Any, *, smoothing: float = 1.0, temperature: float = 1.0, prior: Any = None) -> BagOfWords:
        """Smoothed frequencies of words by class, (2.3).

        Parameters
        ----------
        X : array (n, n_regions, n_words)
            Counts, whole or not.
        y : int array (n,)
            Class numbers 0, 1, …
        smoothing : float, more than 0
            Added to the count of each word.
        temperature : float, 1 or more
        prior : array (n_classes,), optional
            Weights of the classes; their frequencies unless said otherwise.
        """
        return cls(*_fit(X, y, smoothing, temperature, prior, whole=True))

    def scores(self, X: Any) -> np.ndarray:
        """log p(x, y), (n, n_classes), up to the multinomial coefficient, which is the same for all classes."""
        X = checked_counts(X, (None, self.log_words.shape[1]))
        return _linear_scores(X.sum(axis=1, dtype=np.float64), self.linear())

    def linear(self) -> np.ndarray:
        """Weights (n_classes, n_words + 1) that score [x; 1], x the words of the image, as the model does: (2.7)."""
        return np.column_stack([self.log_words / self.temperature, self.log_prior])


@dataclass(frozen=True)
class SpatialBagOfWords:
    """Generative spatial bag of words: p(x, y) = γ_y Π_r mult(x_r, θ_{y,r})^{1/T}, (2.8) of Naderi Parizi (2016).

    Parameters
    ----------
    log_words : float array (n_classes, n_regions, n_words)
        log θ.
    log_prior : float array (n_classes,)
        log γ.
    temperature : float
        T, as in ``BagOfWords``.

    Examples
    --------
    >>> X = [[[4, 0], [0, 4]], [[0, 4], [4, 0]]]  # the same words, in other places
    >>> SpatialBagOfWords.fit(X, [0, 1]).scores(X).argmax(axis=1)
    array([0, 1])
    """

    log_words: np.ndarray
    log_prior: np.ndarray
    temperature: float = 1.0

    def __post_init__(self) -> None:
        _check_arrays(self.log_words, 3, self.log_prior)

    @classmethod
    def fit(
        cls, X: Any, y: Any, *, smoothing: float = 1.0, temperature: float = 1.0, prior: Any = None
    ) -> SpatialBagOfWords:
        """Smoothed frequencies of words by class and region; parameters as for ``BagOfWords.fit``."""
        return cls(*_fit(X, y, smoothing, temperature, prior, whole=False))

    def scores(self, X: Any) -> np.ndarray:
        """log p(x, y), (n, n_classes), up to the multinomial coefficients, which are the same for all classes."""
        X = checked_counts(X, (self.log_words.shape[1], self.log_words.shape[2]))
        return _linear_scores(X.reshape(len(X), X.shape[1] * X.shape[2]), self.linear())

    def linear(self) -> np.ndarray:
        """Weights (n_classes, n_regions · n_words + 1) that score [x_1; …; x_R; 1] as the model does: (2.9)."""
        return np.column_stack([self.log_words.reshape(len(self.log_words), -1) / self.temperature, self.log_prior])


def _fit(
    X: Any, y: Any, smoothing: float, temperature: float, prior: Any, *, whole: bool
) -> tuple[np.ndarray, np.ndarray, float]:
    X, y, n_classes = training_data(X, y)
    smoothing = checked_positive("smoothing", smoothing)
    temperature = checked_positive("temperature", temperature, 1.0, least_allowed=True)
    log_prior = log_class_prior(y, n_classes, prior)
    counts = np.array([X[y == c].sum(axis=(0, 1) if whole else 0, dtype=np.float64) for c in range(n_classes)])
    return log_frequencies(counts, smoothing), log_prior, temperature


def _linear_scores(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    scores = np.empty((len(x), len(weights)))
    for piece in pieces(x, x.shape[1]):
        scores[piece] = x[piece].astype(np.float64) @ weights[:, :-1].T + weights[:, -1]
    return scores


def _check_arrays(log_words: np.ndarray, n_axes: int, log_prior: np.ndarray) -> None:
    if log_words.ndim != n_axes or log_prior.shape != log_words.shape[:1]:
        raise ValueError(
            f"log_words has shape {log_words.shape} and log_prior {log_prior.shape}; "
            f"they need {n_axes} axes and one, with a class in each row."
        )
