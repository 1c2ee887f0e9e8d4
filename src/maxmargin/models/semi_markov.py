"""The model of labelled segmentations: a semi-Markov chain."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Sequence, Sized
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..data.sequences import Sequences
from ..data.transitions import first_fault
from ..kernels import semi_markov as kernels
from ..problem import Rivals, Rows
from ..validation import one_of, shown, whole
from . import labelling
from .rounding import LabellingErrors, whole_sums
from .sequence_model import SequenceModel, block, switches

_LOSSES = ("hamming", "normalized_hamming", "segments")
_NOWHERE = -1
_MOST_LENGTHS = 100_000_000  # weights of lengths, of all labels


class Segmentation(NamedTuple):
    """Segmentations of examples one after another: for each token its label, and the length of the segment that begins
    there, or 0."""

    labels: np.ndarray
    length: np.ndarray


class SemiMarkov(SequenceModel):
    """Sequences that are cut into labelled segments: weights for features of whole segments, and of neighbouring ones.

        w·φ(x, y) = Σ_(s,e,k) ( Σ_{s≤t<e} token[:, k]·x_t + first[:, k]·x_s + last[:, k]·x_{e−1} + length[e−s, k] )
                    + Σ transition[k', k]  over segments of labels k', k that follow one another

    x is a matrix of tokens by features, dense or sparse. y is a list of segments ``(start, end, label)``, or an array
    of such rows: in order, without gaps, each over the tokens ``start … end − 1``, with labels 0 … n_labels−1. Answers
    are arrays of such rows.

    Parameters
    ----------
    n_labels, n_features : int or None
        Taken from the data by default.
    max_length : int, array (n_labels,) or None
        Tokens that a segment may have at most; one number for each label, if there are several. By default as many as
        the longest segment of the data.
    outside : int or None
        The label of tokens that no segment covers: each of them is a segment of one token, which y need not list and
        answers do not. By default every token must be covered.
    loss : {"hamming", "normalized_hamming", "segments"}
        With "hamming", the number of tokens whose label is wrong, or at which a segment begins in one of y and ŷ only:
        Hamming loss of the tags B-label, I-label. With "normalized_hamming", their share. With "segments",
        the segments of y that ŷ lacks and those of ŷ that y lacks: missed and wrong ones, which differ in start, end or
        label; those of the label ``outside`` do not count. The share needs answers that cover every token.
    boundaries : bool
        Whether the features of the first and of the last token of a segment have weights of their own.
    lengths : bool
        Whether each label has a weight for each length.
    transitions : bool
        Whether neighbouring segments interact.
    forbidden : bool array (n_labels, n_labels) or None
        Pairs (from, to) of labels that no two neighbouring segments of an answer may have.

    Notes
    -----
    The search is exact and takes a time that grows with n_tokens · n_labels · (n_labels + max_length).

    Examples
    --------
    >>> model = SemiMarkov(n_labels=2, n_features=1, max_length=3, boundaries=False)
    >>> token, length, transition = [-1.0, 1.0], [0.0, 0.0, 0.0, 0.0, 0.0, 5.0], [0.0] * 4
    >>> model.predict(np.array([[-1.0], [1.0], [-0.5], [1.0]]), np.array([*token, *length, *transition]))
    array([[0, 1, 0],
           [1, 4, 1]], dtype=int32)

    Here three tokens of label 1 in a row are worth 5, more than the second of them costs.
    """

    rescaling = "margin"
    _impossible = (
        "every segmentation of that length contains a forbidden pair. Allow more transitions, or longer segments."
    )

    def __init__(
        self,
        n_labels: int | None = None,
        n_features: int | None = None,
        *,
        max_length: Any = None,
        outside: int | None = None,
        loss: str = "hamming",
        boundaries: bool = True,
        lengths: bool = True,
        transitions: bool = True,
        forbidden: Any = None,
    ) -> None:
        labelling.check_sizes(n_labels=n_labels, n_features=n_features)
        labelling.check_switches(boundaries=boundaries, lengths=lengths, transitions=transitions)
        one_of("loss", loss, _LOSSES)
        if outside is not None:
            whole("outside", outside, 0)
            if loss == "normalized_hamming":
                raise ValueError(
                    'loss="normalized_hamming" needs answers that cover every token: leave outside=None, or take '
                    'loss="hamming".'
                )
        self.n_labels = n_labels
        self.n_features = n_features
        self.max_length = max_length if max_length is None else _limits(max_length)
        self.outside = outside
        self.cost = loss
        self.boundaries = boundaries
        self.lengths = lengths
        self.transitions = transitions
        self.forbidden = switches(forbidden)
        self._check_labels()

    def _check_labels(self) -> None:
        """What is given for each label must be given for all of them."""
        self._check_forbidden()
        K = self.n_labels
        if K is None:
            return
        if isinstance(self.max_length, np.ndarray) and self.max_length.size != K:
            raise ValueError(f"max_length has {self.max_length.size} entries, there are {K} labels. Give one for each.")
        if self.outside is not None and self.outside >= K:
            raise ValueError(f"outside={self.outside} is none of the {K} labels, which are counted from 0.")

    def sized(self, X: Any, Y: Any) -> SemiMarkov:
        """A copy that knows its sizes: from the data, where they were not given."""
        X = Sequences.of(X, self.n_features)
        sized = copy.copy(self)
        sized.n_features = X.n_features
        if self.n_labels is None or self.max_length is None:
            rows, _ = _listed(Y)
            if self.n_labels is None:
                sized.n_labels = 1 + max(int(rows[:, 2].max(initial=0)), self.outside or 0)
            if self.max_length is None:
                sized.max_length = int((rows[:, 1] - rows[:, 0]).max(initial=1))
        if sized.lengths and sized.longest * sized._sizes()[0] > _MOST_LENGTHS:
            raise ValueError(
                f"max_length={sized.longest} makes as many weights of lengths for each of {sized.n_labels} labels. "
                "Give the longest segments that there are, or lengths=False: then it may be any number."
            )
        sized._check_labels()
        return sized

    def joined(self, others: Sequence[SemiMarkov]) -> SemiMarkov:
        """The model that knows the sizes of this one and others, each sized on a part of the data."""
        most = ["n_labels"] if isinstance(self.max_length, np.ndarray) else ["n_labels", "max_length"]
        return labelling.joined([self, *others], ["n_features"], most)

    @property
    def longest(self) -> int:
        """Tokens that any segment may have at most."""
        if self.max_length is None:
            raise ValueError("This model does not know its sizes: give max_length, or use sized(X, Y).")
        return int(np.max(self.max_length))

    @property
    def limits(self) -> np.ndarray:
        """Tokens that a segment may have at most, for each label."""
        _ = self.longest
        limits = np.broadcast_to(np.asarray(self.max_length), self._sizes()[0]).astype(np.int64)
        if self.outside is not None:
            limits[self.outside] = 1
        return limits

    @property
    def width(self) -> int:
        """Weights of one feature."""
        return self._sizes()[0] * (3 if self.boundaries else 1)

    @property
    def n_weights(self) -> int:
        K, d = self._sizes()
        return d * self.width + K * self.longest * self.lengths + K * K * self.transitions

    @property
    def layout(self) -> tuple[int, int, int]:
        """How many weights a feature has, and where those of lengths and of transitions begin (−1: there are none)."""
        K, d = self._sizes()
        length = d * self.width
        transition = length + K * self.longest * self.lengths
        return self.width, length if self.lengths else -1, transition if self.transitions else -1

    def emissions(self, w: np.ndarray) -> np.ndarray:
        """The weights of features by label, (n_features, n_blocks, n_labels): of all tokens of a segment, and, where
        the model has them, of its first and of its last one."""
        K, d = self._sizes()
        return w[: d * self.width].reshape(d, -1, K)

    def length_table(self, w: np.ndarray) -> np.ndarray:
        """The weights of lengths from one on by label, (longest, n_labels); zeros if there are none."""
        return block(w, self.layout[1], self.longest, self._sizes()[0])

    def transition_table(self, w: np.ndarray) -> np.ndarray:
        """The weights of labels of neighbouring segments, from × to; zeros if there are none."""
        return block(w, self.layout[2], *self._sizes()[:1] * 2)

    def __repr__(self) -> str:
        return (
            f"SemiMarkov(n_labels={self.n_labels}, n_features={self.n_features}, max_length={self.max_length}, "
            f"loss={self.cost!r})"
        )

    def tokens(self, x: Any, y: Any) -> np.ndarray:
        """The label of every token of x, where y are its segments.

        >>> SemiMarkov(3, 1, max_length=2, outside=0).tokens(np.ones((4, 1)), [(1, 3, 2)])
        array([0, 2, 2, 0], dtype=int32)
        """
        return self._segmentation([y], np.array([0, np.shape(x)[0]])).labels

    def features(self, x: Any, y: Any) -> sp.csr_matrix:
        x = Sequences.of([x], self._sizes()[1])
        y = self._segmentation([y], x.offsets)
        every = np.eye(self._sizes()[0])
        begin = np.flatnonzero(y.length)
        label, size = y.labels[begin], y.length[begin]
        out = np.zeros(self.n_weights)
        table = self.emissions(out)
        table[:, 0] = x[0].T @ every[y.labels]
        if self.boundaries:
            table[:, 1] = x[0][begin].T @ every[label]
            table[:, 2] = x[0][begin + size - 1].T @ every[label]
        if self.lengths:
            np.add.at(self.length_table(out), (size - 1, label), 1.0)
        np.add.at(self.transition_table(out), (label[:-1], label[1:]), 1.0)
        return sp.csr_matrix(out)

    def loss(self, y: Any, y_hat: Any) -> float:
        n_tokens = [int(_listed([z])[0][:, 1].max(initial=0)) for z in (y, y_hat)]
        if n_tokens[0] != n_tokens[1] and self.outside is None:
            raise ValueError(f"Segments of {n_tokens[0]} tokens cannot be compared with segments of {n_tokens[1]}.")
        offsets = np.array([0, max(n_tokens)])
        true, found = self._segmentation([y], offsets), self._segmentation([y_hat], offsets)
        costs = self._costs(np.diff(offsets))
        return float(kernels.losses(offsets, *true, *costs, np.zeros(1, np.int64), *found, np.zeros(1, np.int64))[0])

    def _costs(self, n_tokens: np.ndarray) -> tuple[int, np.ndarray, int]:
        """What a loss counts, the price of one of these in each example, and the label that does not count."""
        scale = 1.0 / np.maximum(n_tokens, 1) if self.cost == "normalized_hamming" else np.ones(n_tokens.size)
        return kernels.SEGMENTS if self.cost == "segments" else kernels.TOKENS, scale, self._outside

    @property
    def _outside(self) -> int:
        return _NOWHERE if self.outside is None else self.outside

    def scored(self, X: Any, w: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """The best segmentation of every sequence, and its score."""
        X = Sequences.of(X, self._sizes()[1])
        found = Segmentation(np.empty(X.n_tokens, np.int32), np.empty(X.n_tokens, np.int32))
        none = (kernels.TOKENS, np.empty(0), _NOWHERE, labelling.NO_LABELS, labelling.NO_LABELS)
        scores = kernels.search(*self._arguments(X, w), np.arange(len(X)), *none, X.offsets, *found)
        self._check_found(scores, X, w)
        return self._answers(X.offsets, found), scores

    def _arguments(self, X: Sequences, w: np.ndarray) -> tuple[Any, ...]:
        """What every search over these sequences is given first."""
        w = labelling.as_weights(w, self.n_weights)
        # No longer than the sequences are: without weights of lengths max_length may be any number.
        most = min(self.longest, max(1, int(np.diff(X.offsets).max(initial=1))))
        too_long = np.arange(1, most + 1)[:, None] > self.limits
        lengths = np.where(too_long, -np.inf, self.length_table(w)[:most] if self.lengths else 0.0)
        forbidden = False if self.forbidden is None else self.forbidden
        transition = np.where(forbidden, -np.inf, self.transition_table(w))
        return (X.indptr, X.indices, X.values), X.offsets, w, self.width, lengths, transition

    def _answers(self, first: np.ndarray, found: Segmentation) -> list[np.ndarray]:
        """Segmentations as users see them."""
        at = np.empty_like(first)
        rows = kernels.segments(first, *found, self._outside, at)
        return labelling.split(rows, at)

    def _segmentation(self, Y: Sequence[Any], offsets: np.ndarray) -> Segmentation:
        """The segments of all examples, checked, token by token."""
        if len(Y) != offsets.size - 1:
            raise ValueError(f"X has {offsets.size - 1} examples, Y has {len(Y)}. Give one answer for each.")
        rows, first = _listed(Y)
        example = np.repeat(np.arange(len(Y)), np.diff(first))
        _check_rows(rows, first, example, np.diff(offsets), self.limits, self.outside is None)
        start, size, label = rows[:, 0], rows[:, 1] - rows[:, 0], rows[:, 2]
        labels = np.full(offsets[-1], self.outside or 0, np.int32)
        length = np.full(offsets[-1], int(self.outside is not None), np.int32)
        at = offsets[example] + start
        covered = np.repeat(at - (np.cumsum(size) - size), size) + np.arange(size.sum())
        labels[covered], length[covered] = np.repeat(label, size), 0
        length[at] = size
        return Segmentation(labels, length)

    def oracle(self, X: object, Y: Any) -> SemiMarkovOracle:
        return SemiMarkovOracle(self, X, Y)


def _limits(max_length: Any) -> Any:
    """A whole number, or an array of them."""
    if np.ndim(max_length) == 0:
        return whole("max_length", max_length)
    limits = np.asarray(max_length)
    if limits.ndim != 1 or limits.dtype.kind not in "iu" or limits.size == 0 or limits.min() < 1:
        raise ValueError(
            f"max_length must be a whole number of at least 1, or one for each label; got {shown(max_length)}."
        )
    return limits.astype(np.int64)


def _listed(Y: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """The segments of all examples one after another, and where those of each begin."""
    parts = []
    for i, y in enumerate(Y):
        rows: Any = np.empty(0)
        with contextlib.suppress(ValueError, TypeError):  # NumPy's word for rows of different lengths
            rows = np.asarray(y) if not isinstance(y, Sized) or len(y) else np.empty((0, 3), np.int64)
        if rows.ndim != 2 or rows.shape[1] != 3 or rows.dtype.kind not in "iu":
            raise ValueError(
                f"Y[{i}] must be a list of segments (start, end, label) of whole numbers, such as "
                f"[(0, 2, 1), (2, 3, 0)]; got {shown(y)}."
            )
        parts.append(rows)
    first = np.cumsum([0, *map(len, parts)])
    return np.concatenate([np.empty((0, 3), np.int64), *parts]).astype(np.int64), first


def _check_rows(
    rows: np.ndarray, first: np.ndarray, example: np.ndarray, n_tokens: np.ndarray, limits: np.ndarray, cover: bool
) -> None:
    """Segments are tokens of their sequences, in order, not too long and, if they must ``cover`` it, without gaps."""
    start, end, label = rows.T
    limit = limits[np.clip(label, 0, limits.size - 1)]
    before = np.concatenate([[0], end[:-1]])[: len(rows)]
    before[first[:-1][np.diff(first) > 0]] = 0
    for bad, what in (
        ((label < 0) | (label >= limits.size), f"allowed are labels 0 to {limits.size - 1}"),
        ((start < 0) | (end <= start) | (end > n_tokens[example]), "start must be below end, and end {n} at most"),
        (start < before, "segments must be in order, and none may overlap the one before"),
        ((start > before) & cover, "the tokens before it belong to no segment. Give them one, or say outside=label"),
        (end - start > limit, "max_length is {limit} for its label. Raise max_length, or cut the segment"),
    ):
        wrong = np.flatnonzero(bad)
        if wrong.size:
            i = int(example[wrong[0]])
            raise ValueError(
                f"Y[{i}] has the segment {tuple(rows[wrong[0]].tolist())}, of a sequence of {n_tokens[i]} tokens: "
                f"{what.format(n=n_tokens[i], limit=limit[wrong[0]])}."
            )
    last = np.zeros(n_tokens.size, np.int64)
    np.maximum.at(last, example, end)
    short = np.flatnonzero((last < n_tokens) & cover)
    if short.size:
        i = int(short[0])
        raise ValueError(
            f"The segments of Y[{i}] end at {last[i]}, its sequence has {n_tokens[i]} tokens. Give every token a "
            "segment, or say outside=label."
        )


class SemiMarkovOracle:
    """A semi-Markov model bound to data: whole batches are searched in one compiled call."""

    releases_gil = True

    def __init__(self, model: SemiMarkov, X: Any, Y: Any) -> None:
        self.model = model
        self.X = X = Sequences.of(X, model._sizes()[1]).sorted()
        self.n_examples, self.n_weights = len(X), model.n_weights
        self.length = np.diff(X.offsets)
        self.y = model._segmentation(Y, X.offsets)
        self.costs = model._costs(self.length)
        self._check_allowed(X.offsets, self.y, "Example {}. Allow it, or mend the labels.")
        most = 2 * int(self.length.max(initial=0))
        self._kind = np.empty(0, np.float32 if whole_sums(X.values, most, 2.0**24) else np.float64)
        # A token has up to three costs (its own, that of a beginning in its place, and what a true segment gets back)
        # and nine additions: to the sum of its segment, and to enter a new one.
        self.errors = LabellingErrors(
            X,
            model.width,
            np.ones(self.n_weights - model.width * X.n_features),
            self.length,
            cost=3.0 * self.costs[1],
            exact=whole_sums(X.values, most),
            per_token=3 if model.boundaries else 1,
            steps=9,
        )

    def _check_allowed(self, first: np.ndarray, found: Segmentation, message: str) -> None:
        """Complain of neighbouring segments whose labels must not be neighbours."""
        if self.model.forbidden is None:
            return
        begins = np.flatnonzero(found.length)
        at = np.searchsorted(begins, first)
        fault = first_fault(at, found.labels[begins], self.model._sizes()[0], self.model.forbidden)
        if fault is not None:
            i, s, label, follower = fault
            raise ValueError(
                message.format(
                    f"{i} has a segment of label {label} followed by one of label {follower} at position "
                    f"{begins[at[i] + s + 1] - first[i]}, a pair that is forbidden"
                )
            )

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> Rivals:
        first = labelling.starts(self.X.offsets, ids)
        found = Segmentation(np.empty(first[-1], np.int32), np.empty(first[-1], np.int32))
        kernels.search(*self.model._arguments(self.X, w), ids, *self.costs, *self.y, first, *found)
        rivals = self._planes(ids, first, found)
        return replace(rivals, rounding=partial(self.errors.of_search, ids, w))

    def planes(self, ids: np.ndarray, labels: Sequence[Any]) -> Rivals:
        first = labelling.starts(self.X.offsets, ids)
        found = self.model._segmentation(labels, first)
        self._check_allowed(first, found, "These answers do not belong to this model: number {}.")
        return self._planes(ids, first, found)

    def _planes(self, ids: np.ndarray, first: np.ndarray, found: Segmentation) -> Rivals:
        X, K = self.X, self.model._sizes()[0]
        indptr = np.empty(ids.size + 1, np.int64)
        tokens = (X.indptr, X.indices, X.values)
        answers = (ids, *found, first)
        indices, data = kernels.differences(
            *tokens, X.offsets, *self.y, K, self.model.layout, *answers, indptr, self._kind
        )
        losses = kernels.losses(X.offsets, *self.y, *self.costs, *answers)
        rows = Rows(indptr, indices, data, ids.size, self.n_weights)
        return Rivals(self.model._answers(first, found), rows, losses, errors=self.errors.of_rows(ids))
