"""The probabilities that a chain's scores stand for at some temperature, and the temperature that fits true labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..data.sequences import Sequences
from ..kernels import chains, marginals
from ..validation import shown
from . import labelling

if TYPE_CHECKING:
    from .chain import Chain

Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Scores of transitions, starts and ends."""


class ChainDistribution:
    """Labellings of sequences with the probabilities p(y) = exp(w·φ(x, y) / T + Σ_t offset[y_t]) / Z.

    >>> from maxmargin.models import Chain
    >>> chain = Chain(2, 1, transitions=False)
    >>> x, w = np.array([[1.0], [0.0]]), np.array([0.0, np.log(3.0)])
    >>> ChainDistribution(chain, [x], w).marginals()[0].round(2).tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    >>> ChainDistribution(chain, [x], w, temperature=2.0).log_probabilities([[1, 0]]).round(2).tolist()
    [-1.15]

    Parameters
    ----------
    model : Chain
    X : list of matrices, or Sequences
    w : array (n_weights,)
    temperature : float
    label_offsets : array (n_labels,) or None
    """

    def __init__(
        self,
        model: Chain,
        X: object,
        w: np.ndarray,
        temperature: float = 1.0,
        label_offsets: np.ndarray | None = None,
    ) -> None:
        self._score = ChainScores(model, X, w)
        self._offsets = self._score.offsets
        self._table, self._pairs = self._score.scaled(1.0 / temperature, label_offsets)

    def marginals(self) -> list[np.ndarray]:
        """p(y_t = k) for every token of every sequence, (n_tokens, n_labels) each."""
        table = self._table.copy()
        self._score.check(marginals.marginals(table, self._offsets, self._pairs))
        return labelling.split(table, self._offsets)

    def log_probabilities(self, Y: Sequence[np.ndarray]) -> np.ndarray:
        """log p(y) of one labelling of every sequence; −∞ where it has a forbidden pair."""
        y = labelling.concatenated(list(Y), np.diff(self._offsets), self._table.shape[1])
        return np.minimum(score_of(self._table, self._pairs, self._offsets, y) - self._log_z, 0.0)

    @cached_property
    def _log_z(self) -> np.ndarray:
        return self._score.check(marginals.log_partitions(self._table, self._offsets, self._pairs))

    def log_segments(self, segments: np.ndarray, goes_on: np.ndarray, type_of: np.ndarray) -> np.ndarray:
        """The logarithm of the probability of each segment, a row (sequence, first token, token behind the last, type).

        ``goes_on`` says from which label to which a segment goes on, ``type_of`` which types labels have. Rows are in
        the order of sequences.
        """
        found = marginals.segment_log_probabilities(self._table, self._offsets, self._pairs, goes_on, type_of, segments)
        return self._score.check(found, impossible=True)


class ChainScores:
    """The scores of labels at every token, and of neighbouring labels."""

    def __init__(self, model: Chain, X: object, w: np.ndarray) -> None:
        self._model, self._w = model, w
        self._X = Sequences.of(X, model.n_features)  # type: ignore[arg-type]
        tokens, self.offsets, w, bias, self.pairs, *triples = model._arguments(self._X, w)
        if triples:
            raise ValueError(
                "Probabilities are those of chains of first order, and this one has order=2. Fit with order=1 for them."
            )
        self.table = np.empty((self._X.n_tokens, len(self.pairs[1])))
        chains.label_scores(*tokens, 0, self._X.n_tokens, self.table.shape[1], w, bias, self.table)

    def scaled(self, sharpness: float, label_offsets: np.ndarray | None) -> tuple[np.ndarray, Pairs]:
        """All scores times a number, plus a number for each label of a token; what is forbidden stays so."""
        table = sharpness * self.table
        if label_offsets is not None:
            table += label_offsets
        transition, start, end = (np.where(np.isneginf(part), -np.inf, sharpness * _open(part)) for part in self.pairs)
        return table, (transition, start, end)

    def check(self, logarithms: np.ndarray, *, impossible: bool = False) -> np.ndarray:
        """Complain where there is no labelling, or a score is not finite; some may be ``impossible``, log 0."""
        bad = np.isnan(logarithms) if impossible else ~np.isfinite(logarithms)
        if bad.any():
            self._model.predict_all(self._X, self._w)  # says what is wrong
            raise ValueError(f"Scores up to {np.abs(self.table).max():.3g} are too large for probabilities.")
        return logarithms

    def of(self, Y: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The score of one labelling of each sequence, and the labels in a row."""
        y = labelling.concatenated(list(Y), np.diff(self.offsets), self.table.shape[1])
        return score_of(self.table, self.pairs, self.offsets, y), y


def _open(part: np.ndarray) -> np.ndarray:
    """Scores with 0 for what is forbidden."""
    return np.where(np.isneginf(part), 0.0, part)


def score_of(table: np.ndarray, pairs: Pairs, offsets: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The score of the labels ``y`` of all sequences in a row, for each sequence; 0 where one is empty."""
    transition, start, end = pairs
    gain = table[np.arange(y.size), y]
    gain[1:] += transition[y[:-1], y[1:]]
    full = np.flatnonzero(np.diff(offsets))
    first, last = offsets[full], offsets[full + 1] - 1
    gain[first] = table[first, y[first]] + start[y[first]]
    out = np.zeros(offsets.size - 1)
    if full.size:
        gain[last] += end[y[last]]
        out[full] = np.add.reduceat(gain, first)
    return out


class Calibration(NamedTuple):
    """How scores become probabilities."""

    temperature: float
    label_offsets: np.ndarray | None


def calibrated(
    scores: ChainScores, Y: Sequence[np.ndarray], *, by: str = "token", offsets: bool = False
) -> Calibration:
    """The temperature, and if asked for the offsets of labels, under which the labels Y are likeliest.

        minimise  Σ_i log Z_i(β, b) − β S − b·c      over β = 1/T and b

    S is the score of Y and c counts its labels; the negative log-likelihood is convex. Its minimiser fits whole
    sequences. That fits marginals as well only if the scores are right up to their scale, so ``by="token"`` then
    stretches β and b by one number, under which Σ_t −log p(y_t), the loss of marginals, is least.

    As Platt (1999) does for binary SVMs, a share 1/(n + 1) of Y, one of the n tokens' worth, is taken to be labelled at
    random among all that is allowed: otherwise labels without a mistake would make T = 0, and a label that does not
    occur an offset of −∞.
    """
    target = _Target(scores, Y)
    sharpness, b = target.likeliest(offsets)
    if by == "token":
        stretch = target.stretch(sharpness, b)
        sharpness, b = stretch * sharpness, stretch * b
    return Calibration(1.0 / sharpness, b - b.mean() if offsets else None)


class _Target:
    """Labels that probabilities are fitted to: those given, mixed with a few at random."""

    def __init__(self, scores: ChainScores, Y: Sequence[np.ndarray]) -> None:
        self._scores = scores
        gold, y = scores.of(Y)
        self._n_tokens, n_labels = scores.table.shape
        self._raw_pairs = tuple(_open(part) for part in scores.pairs)
        self._nothing = np.zeros(n_labels)
        random_score, random_counts = self._expected(0.0, self._nothing)[1:]
        self._advantage = gold.sum() - random_score
        if not np.isfinite(self._advantage):
            scores.check(marginals.log_partitions(scores.table, scores.offsets, scores.pairs))
        if not self._advantage > 0.0:
            raise ValueError(
                f"The labels of Y score {gold.sum():.3g}, no more than labels at random do on average, "
                f"{random_score:.3g}: no temperature makes probabilities of such scores. Check that X and Y belong "
                "together and that tokens are described as they were for fit."
            )
        self._odd = 1.0 / (self._n_tokens + 1.0)
        self._score = gold.sum() - self._odd * self._advantage
        self._counts = (1.0 - self._odd) * np.bincount(y, minlength=n_labels) + self._odd * random_counts
        self._y = y

    def _expected(self, sharpness: float, b: np.ndarray) -> tuple[float, float, np.ndarray]:
        table, pairs = self._scores.scaled(sharpness, b)
        return marginals.expectations(table, self._scores.offsets, pairs, self._scores.table, self._raw_pairs)

    def likeliest(self, offsets: bool) -> tuple[float, np.ndarray]:
        """β and b that fit sequences best."""
        from scipy.optimize import minimize

        unit = self._n_tokens / self._advantage  # of β: by so much per unit of score a true label beats a random one

        def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
            b = x[1:] if offsets else self._nothing
            log_z, score, counts = self._expected(unit * x[0], b)
            slope = np.concatenate([[unit * (score - self._score)], counts - self._counts if offsets else []])
            return (log_z - unit * x[0] * self._score - b @ self._counts) / self._n_tokens, slope / self._n_tokens

        begin = np.concatenate([[1.0], self._nothing if offsets else []])
        bounds = [(1e-9, None)] + [(None, None)] * (begin.size - 1)
        means = {"maxiter": 1000, "ftol": 0.0, "gtol": 1e-9}
        best = minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=bounds, options=means).x
        return float(unit * best[0]), best[1:] if offsets else self._nothing

    def stretch(self, sharpness: float, b: np.ndarray) -> float:
        """The number by which all scores are multiplied to fit marginals best."""
        from scipy.optimize import minimize_scalar

        wanted = self._odd * self._shares(0.0, self._nothing)
        wanted[np.arange(self._y.size), self._y] += 1.0 - self._odd

        def loss(log_stretch: float) -> float:
            stretch = np.exp(log_stretch)
            p = self._shares(stretch * sharpness, stretch * b)
            return -float(np.sum(wanted * np.log(np.maximum(p, 1e-300))))  # 0 where it is less than a float can say

        far = np.log(100.0)
        return float(np.exp(minimize_scalar(loss, bounds=(-far, far), method="bounded", options={"xatol": 1e-5}).x))

    def _shares(self, sharpness: float, b: np.ndarray) -> np.ndarray:
        table, pairs = self._scores.scaled(sharpness, b)
        marginals.marginals(table, self._scores.offsets, pairs)
        return table


def check_possible(scores: np.ndarray, Y: Sequence[object]) -> None:
    """Complain of the first labelling that has a forbidden pair, start or end."""
    bad = np.flatnonzero(np.isneginf(scores))
    if bad.size:
        i = int(bad[0])
        raise ValueError(
            f"Y[{i}], {shown(Y[i])}, is a labelling that the model never predicts: it has a transition, a start or an "
            "end that is ruled out, and probability 0. Mend the labels, leave the sequence out, or allow it."
        )
