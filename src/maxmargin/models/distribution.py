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


class Span(NamedTuple):
    """What is asked of some tokens in a row: which labels each may have."""

    sequence: int
    first: int
    allowed: np.ndarray
    """bool (n_tokens of the span, n_labels)"""


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

    def log_spans(self, spans: Sequence[Span]) -> np.ndarray:
        """The logarithm of the probability that the tokens of each span all have labels it allows."""
        if not spans:
            return np.zeros(0)
        order = sorted(range(len(spans)), key=lambda s: spans[s].sequence)
        chosen = [spans[s] for s in order]
        first = np.concatenate([[0], np.cumsum([len(span.allowed) for span in chosen])])
        out = np.empty(len(spans))
        out[order] = marginals.span_log_probabilities(
            self._table,
            self._offsets,
            self._pairs,
            np.array([span.sequence for span in chosen]),
            np.array([span.first for span in chosen]),
            first,
            np.concatenate([span.allowed for span in chosen]),
        )
        return self._score.check(out, np.array([span.sequence for span in spans]))


class ChainScores:
    """The scores of labels at every token, and of neighbouring labels."""

    def __init__(self, model: Chain, X: object, w: np.ndarray) -> None:
        self._model, self._w = model, w
        self._X = Sequences.of(X, model.n_features)  # type: ignore[arg-type]
        tokens, self.offsets, w, bias, self.pairs = model._arguments(self._X, w)
        self.table = np.empty((self._X.n_tokens, len(self.pairs[1])))
        chains.label_scores(*tokens, 0, self._X.n_tokens, self.table.shape[1], w, bias, self.table)

    def scaled(self, sharpness: float, label_offsets: np.ndarray | None) -> tuple[np.ndarray, Pairs]:
        """All scores times a number, plus a number for each label of a token; what is forbidden stays so."""
        table = sharpness * self.table
        if label_offsets is not None:
            table += label_offsets
        transition, start, end = (np.where(np.isneginf(part), -np.inf, sharpness * _open(part)) for part in self.pairs)
        return table, (transition, start, end)

    def check(self, logarithms: np.ndarray, sequences: np.ndarray | None = None) -> np.ndarray:
        """Complain where there is no labelling, or a score is not finite; of probabilities of spans only NaN."""
        bad = np.isnan(logarithms) if sequences is not None else ~np.isfinite(logarithms)
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


def calibrated(scores: ChainScores, Y: Sequence[np.ndarray], *, offsets: bool) -> Calibration:
    """The temperature, and if asked for the offsets of labels, under which the labels Y are likeliest.

        minimise  Σ_i log Z_i(β, b) − β S − b·c      over β = 1/T and b

    S is the score of Y and c counts its labels; the negative log-likelihood is convex. As Platt (1999) does for binary
    SVMs, a share 1/(n + 1) of Y, one of the n tokens' worth, is taken to be labelled at random among all that is
    allowed: otherwise labels without a mistake would make T = 0, and a label that does not occur an offset of −∞.
    """
    from scipy.optimize import minimize

    gold, y = scores.of(Y)
    n_tokens, n_labels = scores.table.shape
    raw_pairs = tuple(_open(part) for part in scores.pairs)

    def expected(sharpness: float, b: np.ndarray) -> tuple[float, float, np.ndarray]:
        table, pairs = scores.scaled(sharpness, b)
        return marginals.expectations(table, scores.offsets, pairs, scores.table, raw_pairs)

    random_score, random_counts = expected(0.0, np.zeros(n_labels))[1:]
    advantage = gold.sum() - random_score
    if not np.isfinite(advantage):
        scores.check(marginals.log_partitions(scores.table, scores.offsets, scores.pairs))
    if not advantage > 0.0:
        raise ValueError(
            f"The labels of Y score {gold.sum():.3g}, no more than labels at random do on average, {random_score:.3g}: "
            "no temperature makes probabilities of such scores. Check that X and Y belong together and that tokens are "
            "described as they were for fit."
        )
    odd = 1.0 / (n_tokens + 1.0)
    target = gold.sum() - odd * advantage
    counts = (1.0 - odd) * np.bincount(y, minlength=n_labels) + odd * random_counts
    unit = n_tokens / advantage  # of 1/T: by so much per unit of score a true label is likelier than others on average

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        b = x[1:] if offsets else np.zeros(n_labels)
        log_z, score, found = expected(unit * x[0], b)
        slope = np.concatenate([[unit * (score - target)], (found - counts) if offsets else []])
        return (log_z - unit * x[0] * target - b @ counts) / n_tokens, slope / n_tokens

    begin = np.concatenate([[1.0], np.zeros(n_labels if offsets else 0)])
    bounds = [(1e-9, None)] + [(None, None)] * (begin.size - 1)
    best = minimize(
        loss, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 1000, "ftol": 0.0, "gtol": 1e-9}
    ).x
    return Calibration(float(1.0 / (unit * best[0])), best[1:] - best[1:].mean() if offsets else None)


def check_possible(scores: np.ndarray, Y: Sequence[object]) -> None:
    """Complain of the first labelling that has a forbidden pair, start or end."""
    bad = np.flatnonzero(np.isneginf(scores))
    if bad.size:
        i = int(bad[0])
        raise ValueError(
            f"Y[{i}], {shown(Y[i])}, is a labelling that the model never predicts: it has a transition, a start or an "
            "end that is ruled out, and probability 0. Mend the labels, leave the sequence out, or allow it."
        )
