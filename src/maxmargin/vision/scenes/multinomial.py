"""Scenes whose words are drawn independently, given the class (BoW) or the class and the region (SBoW)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ...estimators.inputs import check_positive
from ...persistence import storable_part
from .counts import checked_counts, checked_temperature, log_class_prior, log_frequencies, pieces, training_data


@dataclass(frozen=True)
class _Multinomial:
    """What both models share: log θ, log γ and T, fitted by counting, and a score that is linear in counts."""

    log_words: np.ndarray
    log_prior: np.ndarray
    temperature: float = 1.0
    _spatial: ClassVar[bool]
    # What ``ReconfigurableBagOfWords`` has besides: parts to choose from, and the history of their estimation.
    log_parts: ClassVar[None] = None
    likelihoods: ClassVar[tuple[float, ...]] = ()

    def __post_init__(self) -> None:
        n_axes = 3 if self._spatial else 2
        if self.log_words.ndim != n_axes or self.log_prior.shape != self.log_words.shape[:1]:
            raise ValueError(
                f"log_words has shape {self.log_words.shape} and log_prior {self.log_prior.shape}; "
                f"they need {n_axes} axes and one, with a class in each row."
            )

    @classmethod
    def fit(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        *,
        smoothing: float = 1.0,
        temperature: float = 1.0,
        prior: ArrayLike | None = None,
    ) -> Self:
        """Smoothed frequencies of words by class, and by region where these count, (2.3).

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
        X, y, n_classes = training_data(X, y)
        smoothing, temperature = check_positive("smoothing", smoothing), checked_temperature(temperature)
        log_prior = log_class_prior(y, n_classes, prior)
        over = 0 if cls._spatial else (0, 1)
        counts = np.array([X[y == c].sum(axis=over, dtype=np.float64) for c in range(n_classes)])
        return cls(log_frequencies(counts, smoothing), log_prior, temperature)

    def scores(self, X: ArrayLike) -> np.ndarray:
        """log p(x, y), (n, n_classes), up to the multinomial coefficients, which are the same for all classes."""
        n_regions = self.log_words.shape[1] if self._spatial else None
        X = checked_counts(X, (n_regions, self.log_words.shape[-1]))
        x = X.reshape(len(X), X.shape[1] * X.shape[2]) if self._spatial else X.sum(axis=1, dtype=np.float64)
        weights = self.linear()
        scores = np.empty((len(x), len(weights)))
        for piece in pieces(x, x.shape[1]):
            scores[piece] = x[piece].astype(np.float64) @ weights[:, :-1].T + weights[:, -1]
        return scores

    def linear(self) -> np.ndarray:
        """Weights that score [x; 1] as the model does, x the words of the image, or of all regions: (2.7), (2.9)."""
        return np.column_stack([self.log_words.reshape(len(self.log_words), -1) / self.temperature, self.log_prior])


_STORED = storable_part(log_words="float[...]", log_prior="float[k]", temperature="float")


@_STORED
@dataclass(frozen=True)
class BagOfWords(_Multinomial):
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

    _spatial = False


@_STORED
@dataclass(frozen=True)
class SpatialBagOfWords(_Multinomial):
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

    _spatial = True
