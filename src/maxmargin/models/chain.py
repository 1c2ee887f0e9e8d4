from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data.sequences import Sequences
from ..inference import viterbi
from ..kernels import chains as kernels
from ..problem import Rivals, Rows


class Chain:
    """Sequences of labels: weights for features at every position and for neighbouring labels.

        w·φ(x, y) = Σ_t w[:, y_t]·x_t + Σ_{t>0} transition[y_{t−1}, y_t]  (+ bias, start and end weights if asked for)

    x is a matrix of tokens by features, dense or sparse; y an array of labels 0 … n_labels−1.

    Parameters
    ----------
    n_labels, n_features : int or None
        Taken from the data by default.
    loss : {"hamming", "normalized_hamming"} or array (n_labels, n_labels)
        Wrong labels counted, their share of the sequence, or the sum of ``loss[true, answer]``.
    bias, start, end : bool
        Whether each label has a weight of its own at every, the first, the last position.
    transitions : bool
        Whether neighbouring labels interact.
    forbidden : bool array (n_labels, n_labels) or None
        Pairs (from, to) that no answer may contain.
    """

    exact = True
    rescaling = "margin"

    def __init__(
        self,
        n_labels: int | None = None,
        n_features: int | None = None,
        *,
        loss: Any = "hamming",
        bias: bool = False,
        start: bool = False,
        end: bool = False,
        transitions: bool = True,
        forbidden: Any = None,
    ) -> None:
        self.n_labels = n_labels
        self.n_features = n_features
        self.loss_kind = loss
        self.bias = bias
        self.start = start
        self.end = end
        self.transitions = transitions
        self.forbidden = forbidden

    def oracle(self, X: Any, Y: Any) -> ChainOracle:
        return ChainOracle(self, X, Y)

    def sized(self, X: Any, Y: Any) -> Chain:
        X = Sequences.of(X, self.n_features)
        sized = copy.copy(self)
        sized.n_features = X.n_features
        if self.n_labels is None:
            sized.n_labels = 1 + max(int(np.max(y)) for y in Y)
        return sized

    @property
    def n_weights(self) -> int:
        K, d = self.n_labels, self.n_features
        return K * d + K * (self.bias + self.start + self.end) + K * K * self.transitions

    @property
    def layout(self) -> tuple[int, int, int, int]:
        """Where the blocks of bias, transition, start and end weights begin (−1: there is none)."""
        K = self.n_labels
        at = K * self.n_features
        places = []
        for present, size in ((self.bias, K), (self.transitions, K * K), (self.start, K), (self.end, K)):
            places.append(at if present else -1)
            at += size * present
        return tuple(places)


class ChainOracle:
    releases_gil = True

    def __init__(self, model, X, Y):
        self.model = model
        self.n_weights = model.n_weights
        self.X = X = Sequences.of(X, model.n_features)
        self.n_examples = len(X)
        self.y = np.concatenate([np.asarray(y) for y in Y]).astype(np.int32)
        self.tokens = (X.indptr, X.indices, X.values)
        K = model.n_labels
        self.cost = 1.0 - np.eye(K) if isinstance(model.loss_kind, str) else np.asarray(model.loss_kind, float)
        length = np.diff(X.offsets)
        self.scale = 1.0 / length if model.loss_kind == "normalized_hamming" else np.ones(len(X))
        self.forbidden = np.empty((0, 0), bool) if model.forbidden is None else np.asarray(model.forbidden, bool)

    def _first(self, ids):
        return np.concatenate([[0], np.cumsum(self.X.offsets[ids + 1] - self.X.offsets[ids])])

    def rivals(self, ids, w):
        first = self._first(ids)
        flat = np.empty(first[-1], np.int32)
        viterbi.search(
            self.tokens,
            self.X.offsets,
            self.model.n_labels,
            w,
            self.model.layout,
            self.forbidden,
            ids,
            self.cost,
            self.scale,
            self.y,
            first,
            flat,
        )
        return self._planes(ids, first, flat)

    def planes(self, ids, labels):
        return self._planes(
            ids, self._first(ids), np.concatenate(labels).astype(np.int32) if len(labels) else np.empty(0, np.int32)
        )

    def _planes(self, ids, first, flat):
        indptr = np.empty(ids.size + 1, np.int64)
        indices, data = kernels.differences(
            *self.tokens, self.X.offsets, self.y, self.model.n_labels, self.model.layout, ids, flat, first, indptr
        )
        losses = kernels.losses(self.X.offsets, self.y, self.cost, self.scale, ids, flat, first)
        rows = Rows(indptr, indices, data, ids.size, self.n_weights)
        labels = [flat[a:b] for a, b in zip(first[:-1].tolist(), first[1:].tolist())]
        return Rivals(labels, rows, losses)
