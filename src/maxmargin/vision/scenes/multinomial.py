"""Scenes whose words are drawn independently, given the class and the region (SBoW), or the class alone (BoW)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ...estimators.inputs import check_positive
from ...persistence import storable_part
from .counts import checked_counts, checked_temperature, log_class_prior, log_frequencies, pieces, training_data


@storable_part(log_words="float[...]", log_prior="float[k]", temperature="float")
@dataclass(frozen=True)
class SpatialBagOfWords:
    """Generative spatial bag of words: p(x, y) = γ_y Π_r mult(x_r, θ_{y,r})^{1/T}, (2.8) of Naderi Parizi (2016).

    With a single region, to which the counts of all are added up, it is the bag of words, (2.1)–(2.3). Made by ``fit``,
    or from its arrays.

    Parameters
    ----------
    log_words : float array (n_classes, n_regions, n_words)
        log θ.
    log_prior : float array (n_classes,)
        log γ.
    temperature : float
        T weighs the words against the prior; where all classes are as likely it changes no decision.

    Examples
    --------
    >>> X = [[[4, 0], [0, 4]], [[0, 4], [4, 0]]]  # the same words, in other places
    >>> SpatialBagOfWords.fit(X, [0, 1]).scores(X).argmax(axis=1)
    array([0, 1])
    """

    log_words: np.ndarray
    log_prior: np.ndarray
    temperature: float = 1.0
    # What ``ReconfigurableBagOfWords`` has besides: parts to choose from, and the history of their estimation.
    log_parts: ClassVar[None] = None
    likelihoods: ClassVar[tuple[float, ...]] = ()

    def __post_init__(self) -> None:
        if self.log_words.ndim != 3 or self.log_prior.shape != self.log_words.shape[:1]:
            raise ValueError(
                f"log_words has shape {self.log_words.shape} and log_prior {self.log_prior.shape}; "
                "they need three axes and one, with a class in each row."
            )

    @classmethod
    def fit(cls, X: ArrayLike, y: ArrayLike, *, smoothing: float = 1.0, temperature: float = 1.0) -> SpatialBagOfWords:
        """Smoothed frequencies of words by class and region, (2.3).

        Parameters
        ----------
        X : array (n, n_regions, n_words)
            Counts, whole or not.
        y : int array (n,)
            Class numbers 0, 1, …
        smoothing : float, more than 0
            Added to the count of each word.
        temperature : float, 1 or more
        """
        X, y, n_classes = training_data(X, y)
        smoothing, temperature = check_positive("smoothing", smoothing), checked_temperature(temperature)
        counts = np.array([X[y == c].sum(axis=0, dtype=np.float64) for c in range(n_classes)])
        return cls(log_frequencies(counts, smoothing), log_class_prior(y, n_classes), temperature)

    def scores(self, X: ArrayLike) -> np.ndarray:
        """log p(x, y), (n, n_classes), up to the multinomial coefficients, which are the same for all classes."""
        X = checked_counts(X, self.log_words.shape[1:])
        x = X.reshape(len(X), X.shape[1] * X.shape[2])
        weights = self.log_words.reshape(len(self.log_words), -1).T / self.temperature
        scores = np.empty((len(x), len(self.log_prior)))
        for piece in pieces(x, x.shape[1]):
            scores[piece] = x[piece].astype(np.float64) @ weights + self.log_prior
        return scores
