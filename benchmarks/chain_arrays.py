"""Handwritten words as plain arrays, and the one compiled search that all peers on them share.

Weights are laid out as in `maxmargin.models.Chain` without bias: emissions feature by feature, w[f * K + k], then
transitions, from x to.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.data.sequences import Sequences
from maxmargin.kernels import compiled
from maxmargin.kernels.chains import label_scores
from maxmargin.kernels.viterbi import viterbi


class ChainArrays(NamedTuple):
    """All words in one sparse matrix; `scale` is the price of a wrong letter in each word."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    offsets: np.ndarray
    y: np.ndarray
    scale: np.ndarray
    n_labels: int
    n_features: int

    @classmethod
    def of(cls, X: list[np.ndarray], Y: list[np.ndarray], loss: str, n_labels: int) -> "ChainArrays":
        rows = Sequences.of(X)
        scale = 1.0 / np.diff(rows.offsets) if loss == "normalized_hamming" else np.ones(len(X))
        y = np.concatenate(Y).astype(np.int64)
        return cls(rows.indptr, rows.indices, rows.values, rows.offsets, y, scale, n_labels, rows.n_features)

    @property
    def n_examples(self) -> int:
        return len(self.scale)

    @property
    def n_weights(self) -> int:
        return self.n_labels * (self.n_features + self.n_labels)

    @property
    def longest(self) -> int:
        return int(np.diff(self.offsets).max())


@compiled
def worst(arrays, i, w, score, value, path):
    """path = the labels of word i that maximise loss + score; returns their loss. `score`, `value`: working memory."""
    K = arrays.n_labels
    t0 = arrays.offsets[i]
    n = arrays.offsets[i + 1] - t0
    price = arrays.scale[i]
    label_scores(arrays.indptr, arrays.indices, arrays.values, t0, t0 + n, K, w, -1, score)
    for t in range(n):
        for k in range(K):
            score[t, k] += price
        score[t, arrays.y[t0 + t]] -= price
    none = np.zeros(K)
    viterbi(score, n, w[K * arrays.n_features :].reshape(K, K), none, none, value, path)
    wrong = 0
    for t in range(n):
        wrong += path[t] != arrays.y[t0 + t]
    return price * wrong


@compiled
def add_features(arrays, i, labels, factor, out):
    """out += factor * phi(x_i, labels)."""
    K = arrays.n_labels
    t0 = arrays.offsets[i]
    transitions = K * arrays.n_features
    for t in range(arrays.offsets[i + 1] - t0):
        for q in range(arrays.indptr[t0 + t], arrays.indptr[t0 + t + 1]):
            out[np.int64(arrays.indices[q]) * K + labels[t]] += factor * arrays.values[q]
        if t > 0:
            out[transitions + labels[t - 1] * K + labels[t]] += factor


@compiled
def add_difference(arrays, i, labels, factor, out):
    """out += factor * (phi(x_i, y_i) - phi(x_i, labels)), which is cheap where most labels are right."""
    K = arrays.n_labels
    y = arrays.y
    t0 = arrays.offsets[i]
    transitions = K * arrays.n_features
    for t in range(arrays.offsets[i + 1] - t0):
        if labels[t] != y[t0 + t]:
            for q in range(arrays.indptr[t0 + t], arrays.indptr[t0 + t + 1]):
                at = np.int64(arrays.indices[q]) * K
                out[at + y[t0 + t]] += factor * arrays.values[q]
                out[at + labels[t]] -= factor * arrays.values[q]
        if t > 0:
            out[transitions + y[t0 + t - 1] * K + y[t0 + t]] += factor
            out[transitions + labels[t - 1] * K + labels[t]] -= factor
