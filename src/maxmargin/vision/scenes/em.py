"""Scenes as parts arranged anew in each image (RBoW), estimated by expectation–maximisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...estimators.inputs import check_positive
from ...persistence import storable_part
from ...validation import whole
from .counts import (
    checked_classes,
    checked_counts,
    checked_temperature,
    log_class_prior,
    log_frequencies,
    pieces,
    training_data,
)


@storable_part(
    log_words="float[...]", log_parts="float[...]", log_prior="float[k]", temperature="float", likelihoods="any",
)  # fmt: skip
@dataclass(frozen=True)
class ReconfigurableBagOfWords:
    """Generative reconfigurable bag of words, (2.10)–(2.16) of Naderi Parizi (2016).

    Each region r of an image of class y shows a part z_r, drawn from a_{y,r}, and its words are drawn from the
    distribution W_{y,z_r} of the part:

        p(x, y) = γ_y Π_r Σ_j a_{y,r,j} mult(x_r, W_{y,j})^{1/T}

    Made by ``fit``, or from its arrays.

    Parameters
    ----------
    log_words : float array (n_classes or 1, n_parts, n_words)
        log W; a single set where all classes share their parts.
    log_parts : float array (n_classes, n_regions, n_parts)
        log a; −inf where a part cannot be.
    log_prior : float array (n_classes,)
        log γ.
    temperature : float
        T: words within a region are far from independent, which makes a plain product of their probabilities too sure
        of the part, and of the class.
    likelihoods : float array (n_steps,)
        What EM made of its objective, see ``fit``; it never falls.

    Examples
    --------
    >>> X = [[[9, 0], [0, 9]], [[0, 9], [9, 0]], [[5, 5], [5, 5]], [[6, 4], [4, 6]]]
    >>> model = ReconfigurableBagOfWords.fit(X, [0, 0, 1, 1], n_parts=2, temperature=1, random_state=0)
    >>> model.scores(X).argmax(axis=1)
    array([0, 0, 1, 1])
    >>> z = model.assign(X[:2], [0, 0])  # the two images are made of the same parts, arranged differently
    >>> bool((z[0] == z[1][::-1]).all())
    True
    """

    log_words: np.ndarray
    log_parts: np.ndarray
    log_prior: np.ndarray
    temperature: float = 1.0
    likelihoods: np.ndarray | None = None

    def __post_init__(self) -> None:
        words, parts, n_classes = self.log_words.shape, self.log_parts.shape, len(self.log_prior)
        fits = len(words) == len(parts) == 3 and words[0] in (1, n_classes)
        if not fits or parts[0] != n_classes or parts[2] != words[1]:
            raise ValueError(
                f"log_words, log_parts and log_prior have shapes {words}, {parts} and {self.log_prior.shape}; they "
                "need (classes or 1, parts, words), (classes, regions, parts) and (classes,)."
            )

    @classmethod
    def fit(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        *,
        n_parts: int = 16,
        smoothing: float = 1.0,
        part_smoothing: float = 0.1,
        temperature: float | None = None,
        shared: bool = False,
        start: str | ArrayLike = "random",
        max_iter: int = 100,
        tol: float = 1e-3,
        random_state: int | np.random.Generator | None = None,
    ) -> ReconfigurableBagOfWords:
        """Estimate the parts by EM.

        EM climbs the tempered log-likelihood with Dirichlet priors on W and a:

            Σ_i Σ_r log Σ_j a_{y_i,r,j} exp(x_{i,r} · log W_{y_i,j} / T)
                + (smoothing / T) Σ log W + part_smoothing Σ log a

        Tempering is thus the same as counting 1/T for each word. Each step is an exact maximisation of a lower bound
        that touches: a ∝ Σ_i Q_{i,r,j} + part_smoothing and W ∝ Σ_i Σ_r Q_{i,r,j} x_{i,r} + smoothing, with Q from
        (2.14). Classes with parts of their own are estimated one by one.

        Parameters
        ----------
        X : array (n, n_regions, n_words)
            Counts, whole or not. Words of photographs come in bursts: the square roots of counts often tell classes
            better.
        y : int array (n,)
            Class numbers 0, 1, …
        n_parts : int
            Parts of each class; of all together where they are shared.
        smoothing : float, more than 0
            Added to the count of each word in each part.
        part_smoothing : float, 0 or more
            Added to how often each part is seen in each region. With 0 a part that starts out missing from a region
            never comes there: with ``start="fixed"`` the model is then the spatial bag of words.
        temperature : float, 1 or more
            A tenth of the mean number of words in a region unless said otherwise: patches that overlap say the same
            again, so that a denser sample is no surer. Words that are independent want 1.
        shared : bool
            One set of parts for all classes; where they are likely remains a matter of the class.
        start : "random", "fixed" or int array (n, n_regions)
            The parts that regions have at first: random ones, part r for region r in all images (neighbours have the
            same where there are fewer parts than regions), or those given.
        max_iter : int
        tol : float
            Stop when a step gains less than this for each region of each image.
        random_state : int, Generator or None
        """
        X, y, n_classes = training_data(X, y)
        if temperature is None:
            temperature = max(1.0, X.sum(dtype=np.float64) / (10 * X.shape[0] * X.shape[1]))
        settings: dict[str, Any] = {
            "n_parts": whole("n_parts", n_parts),
            "smoothing": check_positive("smoothing", smoothing),
            "part_smoothing": check_positive("part_smoothing", part_smoothing, zero=True),
            "temperature": checked_temperature(temperature),
            "max_iter": whole("max_iter", max_iter),
            "tol": check_positive("tol", tol, zero=True),
        }
        z = _start(start, X.shape[0], X.shape[1], n_parts)
        rng = np.random.default_rng(random_state)
        alone = np.zeros_like(y)
        owner, within = (alone, y) if shared else (y, alone)  # of the parts, and the class among those that share them
        runs = []
        for own in (owner == c for c in range(owner.max() + 1)):
            first = rng.integers(n_parts, size=(int(own.sum()), X.shape[1])) if z is None else z[own]
            runs.append(_run(X[own], within[own], first, **settings))
        return cls(
            np.array([run.log_words for run in runs]),
            np.concatenate([run.log_parts for run in runs]),
            log_class_prior(y, n_classes),
            float(temperature),
            _total([run.likelihoods for run in runs]),
        )

    def scores(self, X: ArrayLike) -> np.ndarray:
        """log p(x, y), (n, n_classes), up to the multinomial coefficients, which are the same for all classes."""
        X = self._checked(X)
        n_classes, n_regions, n_parts = self.log_parts.shape
        n_words = X.shape[2]
        weights = self.log_words.reshape(-1, n_words).T / self.temperature
        scores = np.empty((len(X), n_classes))
        for piece in pieces(X, n_regions * max(n_words, n_classes * n_parts)):
            x = X[piece].reshape(-1, n_words).astype(np.float64)
            words = (x @ weights).reshape(-1, n_regions, len(self.log_words), n_parts)
            joint = words + self.log_parts.transpose(1, 0, 2)
            scores[piece] = _log_sum_exp(joint)[0].sum(axis=1) + self.log_prior
        return scores

    def assign(self, X: ArrayLike, classes: ArrayLike) -> np.ndarray:
        """The most probable part of each region, (n, n_regions), if the images are of the given classes."""
        X = self._checked(X)
        n_classes, n_regions, _ = self.log_parts.shape
        classes = checked_classes(classes, len(X), n_classes)
        z = np.empty((len(X), n_regions), np.intp)
        for c in np.unique(classes):
            mine = np.flatnonzero(classes == c)
            log_words = self.log_words[0 if len(self.log_words) == 1 else c]
            for piece in pieces(mine, n_regions * X.shape[2]):
                x = X[mine[piece]].astype(np.float64)
                z[mine[piece]] = (x @ (log_words.T / self.temperature) + self.log_parts[c]).argmax(axis=2)
        return z

    def _checked(self, X: ArrayLike) -> np.ndarray:
        return checked_counts(X, (self.log_parts.shape[1], self.log_words.shape[2]))


class _Run(NamedTuple):
    log_words: np.ndarray  # (M, K)
    log_parts: np.ndarray  # (G, R, M)
    likelihoods: list[float]


def _start(start: str | ArrayLike, n_images: int, n_regions: int, n_parts: int) -> np.ndarray | None:
    """The first parts (n, R), or None where they are drawn for each set of parts."""
    if isinstance(start, str):
        if start == "random":
            return None
        if start != "fixed":
            raise ValueError(f'start is {start!r}; give "random", "fixed" or an array of part numbers.')
        if n_parts > n_regions:
            raise ValueError(
                f'start="fixed" gives each region a part, but there are {n_parts} parts and {n_regions} regions. '
                'Set n_parts to the number of regions or less, or start="random".'
            )
        return np.broadcast_to(np.arange(n_regions) * n_parts // n_regions, (n_images, n_regions))
    z = np.asarray(start)
    if z.shape != (n_images, n_regions) or z.dtype.kind not in "iu":
        raise ValueError(
            f"start has shape {z.shape} and holds {z.dtype}; "
            f"give a whole part number for each of {n_images} × {n_regions} regions."
        )
    if z.min() < 0 or z.max() >= n_parts:
        raise ValueError(f"start has part numbers from {z.min()} to {z.max()}; n_parts allows 0 to {n_parts - 1}.")
    return z


def _run(
    X: np.ndarray, y: np.ndarray, z: np.ndarray, *, n_parts: int, smoothing: float, part_smoothing: float,
    temperature: float, max_iter: int, tol: float,
) -> _Run:  # fmt: skip
    """EM on images X (n, R, K) whose classes y (n,) share their parts, from the parts z (n, R)."""
    x = X.reshape(-1, X.shape[2]).astype(np.float64)
    shape = (*z.shape, n_parts)
    member = np.eye(y.max() + 1)[:, y]  # (G, n)
    Q = np.eye(n_parts)[z]
    likelihoods: list[float] = []
    converged = False
    while not converged and len(likelihoods) < max_iter:
        # M: (2.15) and (2.16)
        part_counts = (member @ Q.reshape(len(z), -1)).reshape(-1, *shape[1:])
        with np.errstate(divide="ignore"):  # without smoothing a part may be missing from a region
            log_parts = log_frequencies(part_counts, part_smoothing)
        log_words = log_frequencies(Q.reshape(len(x), -1).T @ x, smoothing)
        # E: (2.14)
        joint = (x @ (log_words.T / temperature)).reshape(shape) + log_parts[y]
        evidence, Q = _log_sum_exp(joint)
        likelihood = evidence.sum() + smoothing / temperature * log_words.sum()
        if part_smoothing:
            likelihood += part_smoothing * log_parts.sum()
        converged = bool(likelihoods) and likelihood - likelihoods[-1] <= tol * z.size
        likelihoods.append(float(likelihood))
    return _Run(log_words, log_parts, likelihoods)


def _log_sum_exp(joint: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log Σ exp along the last axis, and the shares of its terms."""
    top = joint.max(axis=-1, keepdims=True)
    shares = np.exp(joint - top)
    total = shares.sum(axis=-1, keepdims=True)
    shares /= total
    return (top + np.log(total))[..., 0], shares


def _total(histories: list[list[float]]) -> np.ndarray:
    """The objective of all classes after each step; those that have ended stay where they are."""
    length = max(map(len, histories))
    return np.sum([history + history[-1:] * (length - len(history)) for history in histories], axis=0)
