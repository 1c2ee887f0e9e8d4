"""The model of sets of labels, with weights for pairs of labels."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import minimum_spanning_tree

from ..data.arrays import as_matrix, as_rows
from ..inference import cuts, trws
from ..inference.trees import visiting_order
from ..kernels import multilabel as kernels
from ..problem import Rivals, RowErrors, Rows
from ..rounding import gamma
from ..validation import one_of
from .labelling import LOSSES, as_weights, check_sizes, check_switches, joined, sizes
from .rounding import score_sizes, search_rounding

_MOST_TRIED = 16  # labels of which all 2^L subsets are tried
_NO_LABELS = np.empty((0, 0), np.int8)


class Multilabel:
    """Several labels that are each present or not: weights for features per label, and for pairs of labels.

        w·φ(x, y) = Σ_l y_l (w_l·x + b_l) + Σ_{e=(a,b)} pairwise[e, y_a, y_b]

    x is a vector of features, a row of the matrix X, dense or sparse; y is a vector of zeros and ones.

    Parameters
    ----------
    n_labels, n_features : int or None
        Taken from the data by default.
    edges : {"none", "tree", "full"} or int array (n_edges, 2)
        Which pairs of labels have weights of their own, one for each combination 00, 01, 10, 11. "tree" takes the
        tree of most mutual information between labels (Chow and Liu, 1968), found by ``sized``.
    loss : {"hamming", "normalized_hamming"} or array (n_labels,)
        Wrong labels counted, their share, or the sum of the costs of those that are wrong.
    bias : bool
        Whether each label has a weight of its own.

    Notes
    -----
    Inference is exact where the pairs make up a forest, and for up to 16 labels. With more labels it is exact at
    weights by which all pairs would rather agree, and approximate at others, where message passing bounds what it may
    miss: ``Rivals.excess`` says so.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.models.multilabel import Multilabel
    >>> model = Multilabel(n_labels=2, n_features=1, edges="full", bias=False)
    >>> both_or_none = [1.0, 0.0, 0.0, 1.0]
    >>> model.predict(np.array([1.0]), np.array([2.0, -0.5, *both_or_none]))
    array([1, 1], dtype=int8)
    """

    rescaling = "margin"

    def __init__(
        self,
        n_labels: int | None = None,
        n_features: int | None = None,
        *,
        edges: Any = "none",
        loss: Any = "hamming",
        bias: bool = True,
    ) -> None:
        check_sizes(n_labels=n_labels, n_features=n_features)
        check_switches(bias=bias)
        if isinstance(edges, str):
            one_of("edges", edges, ("none", "tree", "full"), " or pairs of labels")
        if isinstance(loss, str):
            one_of("loss", loss, LOSSES, " or the costs of the labels")
        self.n_labels = n_labels
        self.n_features = n_features
        self.edges = edges
        self.cost = loss
        self.bias = bias
        self.seen: tuple[int, np.ndarray] | None = None
        """How many examples the tree of labels was found in, and how often each two labels came together there."""
        if n_labels is not None and n_features is not None:  # complain before any work
            _ = isinstance(edges, str) or self.pairs
            _ = isinstance(loss, str) or self.costs

    def sized(self, X: Any, Y: Any) -> Multilabel:
        """A copy that knows its sizes, and the tree of its labels, from the data."""
        sized = copy.copy(self)
        sized.n_features = X.shape[1] if hasattr(X, "shape") else len(X[0])
        if self.n_labels is None:
            sized.n_labels = Y.shape[1] if hasattr(Y, "shape") else len(Y[0])
        if isinstance(self.edges, str) and self.edges == "tree":
            labels = _labels(Y, sized.n_labels).astype(np.float64)  # type: ignore[arg-type]
            sized.seen = (len(labels), labels.T @ labels)
            sized.edges = tree_of(*sized.seen)
        return sized

    def joined(self, others: Sequence[Multilabel]) -> Multilabel:
        """The model that knows the sizes of this one and others, and the tree of all labels that they have seen."""
        whole = joined([self, *others], ["n_features", "n_labels"], [])
        seen = [model.seen for model in (self, *others) if model.seen is not None]
        if seen:
            whole.seen = sum(n for n, _ in seen), np.sum([together for _, together in seen], axis=0)
            whole.edges = tree_of(*whole.seen)
        return whole

    @property
    def pairs(self) -> np.ndarray:
        """The pairs of labels that have weights, as an array (n_edges, 2)."""
        L: int = self._sizes()[0]
        if not isinstance(self.edges, str):
            pairs = np.asarray(self.edges)
            if pairs.size == 0:
                return np.empty((0, 2), np.int32)
            if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
                raise ValueError(f"edges must be pairs of labels, got an array {pairs.shape} of {pairs.dtype}.")
            if pairs.min() < 0 or pairs.max() >= L or (pairs[:, 0] == pairs[:, 1]).any():
                raise ValueError(f"edges must join two different labels out of 0 … {L - 1}.")
            return np.ascontiguousarray(pairs, dtype=np.int32)
        if self.edges == "tree":
            raise ValueError('The tree of labels is found in the data: use sized(X, Y) with edges="tree".')
        chosen = combinations(range(L), 2) if self._is_full() else ()
        return np.array(list(chosen), dtype=np.int32).reshape(-1, 2)

    def _is_full(self) -> bool:
        return isinstance(self.edges, str) and self.edges == "full"

    @property
    def exact(self) -> bool:
        """Whether every search is exact, whatever the weights."""
        L = self._sizes()[0]
        return L <= _MOST_TRIED or visiting_order(L, self.pairs) is not None

    @property
    def pair_at(self) -> int:
        """Where the weights of pairs begin."""
        n_labels, n_features = self._sizes()
        return n_labels * (n_features + self.bias)

    @property
    def n_weights(self) -> int:
        n_labels = self._sizes()[0]
        return self.pair_at + 4 * (n_labels * (n_labels - 1) // 2 if self._is_full() else len(self.pairs))

    @property
    def costs(self) -> np.ndarray:
        """What each label costs when it is wrong."""
        L = self._sizes()[0]
        if isinstance(self.cost, str):
            return np.full(L, 1.0 if self.cost == "hamming" else 1.0 / L)
        cost = np.ascontiguousarray(self.cost, dtype=np.float64)
        if cost.shape != (L,) or not (cost >= 0).all() or not np.isfinite(cost).all():
            raise ValueError(f"The costs of labels must be {L} finite numbers that are not negative.")
        return cost

    def __repr__(self) -> str:
        edges = self.edges if isinstance(self.edges, str) else f"{len(self.edges)} pairs"
        return f"Multilabel(n_labels={self.n_labels}, n_features={self.n_features}, edges={edges!r})"

    def features(self, x: Any, y: Any) -> sp.csr_matrix:
        """φ(x, y), as a sparse matrix of one row."""
        y = _labels([y], self._sizes()[0])[0]
        row = sp.coo_matrix(as_matrix(x, self.n_features))
        present, pairs = np.flatnonzero(y), self.pairs
        keys = [(row.col[:, None].astype(np.int64) * y.size + present).ravel()]
        values = [np.repeat(row.data, present.size)]
        if self.bias:
            keys.append(self.pair_at - y.size + present)
            values.append(np.ones(present.size))
        keys.append(self.pair_at + 4 * np.arange(len(pairs)) + 2 * y[pairs[:, 0]] + y[pairs[:, 1]])
        values.append(np.ones(len(pairs)))
        key = np.concatenate(keys)
        return sp.csr_matrix((np.concatenate(values), (np.zeros(key.size, int), key)), shape=(1, self.n_weights))

    def loss(self, y: object, y_hat: object) -> float:
        return float(self.costs[np.asarray(y) != np.asarray(y_hat)].sum())

    def predict(self, x: object, w: np.ndarray) -> np.ndarray:
        """The labels of the highest score w·φ(x, y)."""
        return self.predict_all(as_matrix(x, self.n_features), w)[0]

    def predict_all(self, X: object, w: np.ndarray) -> np.ndarray:
        """The best labels of every row of X, as a matrix of zeros and ones."""
        oracle = MultilabelOracle(self, X)
        return oracle.best(np.arange(oracle.n_examples), w)[0]

    def most_violated(self, x: object, y: object, w: np.ndarray) -> np.ndarray:
        """The labels ŷ of the highest loss(y, ŷ) + w·φ(x, ŷ)."""
        return MultilabelOracle(self, as_matrix(x, self.n_features), [y]).best(np.zeros(1, np.int64), w)[0][0]

    def oracle(self, X: object, Y: object) -> MultilabelOracle:
        return MultilabelOracle(self, X, Y)

    def _sizes(self) -> tuple[int, ...]:
        return sizes(self, "n_labels", "n_features")


class MultilabelOracle:
    """A ``Multilabel`` model bound to data. All examples of a call are searched in compiled code, but for loopy
    pairs of more than 16 labels.

    Parameters
    ----------
    model : Multilabel
    X : matrix (n, n_features)
    Y : matrix (n, n_labels) of zeros and ones, or None
        Without them the search is for the highest score, as in prediction.
    """

    def __init__(self, model: Multilabel, X: Any, Y: Any = None) -> None:
        self.n_weights = model.n_weights
        self.n_labels = model._sizes()[0]
        self.rows = as_rows(as_matrix(X, model.n_features))
        self.n_examples = len(self.rows)
        self.y = _NO_LABELS if Y is None else _labels(Y, self.n_labels)
        if Y is not None and len(self.y) != self.n_examples:
            raise ValueError(f"There are {self.n_examples} examples, but labels for {len(self.y)}.")
        self.costs = model.costs
        self.pairs = model.pairs
        self.pair_at = model.pair_at
        self.bias_at = model.pair_at - self.n_labels if model.bias else -1
        self.visit = visiting_order(self.n_labels, self.pairs)
        self.releases_gil = model.exact
        self.network: cuts.Network | None = None if model.exact else cuts.Network(self.n_labels, self.pairs)

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> Rivals:
        labels, excess = self.best(ids, w)
        found = self._planes(ids, labels, excess if excess.any() else None)
        return replace(found, rounding=partial(self._rounding, ids, w))

    def _rounding(self, ids: np.ndarray, w: np.ndarray) -> np.ndarray:
        """By how much rounding in the search may have hidden better labels: every term counts, chosen or not."""
        width = self.rows.width
        size = score_sizes(self.rows, ids, ids + 1, w[: width * self.n_labels], self.n_labels)
        size *= np.sqrt(self.n_labels)  # all labels may be present at once
        rest = 8.0 * np.abs(w[width * self.n_labels :]).sum() + self.costs.sum()
        operations = width + 8.0 * (self.n_labels + len(self.pairs))
        if self.visit is None and self.network is None:
            operations += 2.0**self.n_labels  # the walk through all subsets changes one sum at every step
        return search_rounding(size + rest, operations)

    def planes(self, ids: np.ndarray, labels: Sequence[Any]) -> Rivals:
        table = _labels(labels, self.n_labels) if len(labels) else np.empty((0, self.n_labels), np.int8)
        return self._planes(ids, table, None)

    def best(self, ids: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The best labels for each example of ``ids``, costs included where the true labels are known.

        Also returns by how much better ones may exceed them.
        """
        w = as_weights(w, self.n_weights)
        gains = np.empty((ids.size, self.n_labels))
        stored = self.rows.arrays[:4]
        kernels.label_gains(*stored, self.n_labels, ids, w, self.bias_at, self.costs, self.y, gains)
        tables = w[self.pair_at :].reshape(-1, 2, 2)
        labels, excess = np.empty((ids.size, self.n_labels), np.int8), np.zeros(ids.size)
        if self.visit is not None:
            kernels.best_on_forest(gains, self.pairs, tables, *self.visit, labels)
        elif self.network is None:
            self._add_pairs(gains, tables)
            kernels.best_subsets(np.ascontiguousarray(gains.T), self._joint(tables), labels)
        else:
            by_cut = cuts.submodular(tables)
            for p, gain in enumerate(gains):
                unary = np.stack([np.zeros_like(gain), gain], axis=1)
                if by_cut:
                    labels[p], _, excess[p] = cuts.best_binary(unary, tables, self.network)
                else:
                    labels[p], _, excess[p] = trws.best(unary, self.pairs, tables)
        return labels, excess

    def _add_pairs(self, gains: np.ndarray, tables: np.ndarray) -> None:
        """Gains of a label that comes alone: table[y_a, y_b] = s00 + (s10−s00) y_a + (s01−s00) y_b + joint·y_a y_b."""
        alone = np.bincount(self.pairs[:, 0], tables[:, 1, 0] - tables[:, 0, 0], minlength=self.n_labels)
        alone += np.bincount(self.pairs[:, 1], tables[:, 0, 1] - tables[:, 0, 0], minlength=self.n_labels)
        gains += alone

    def _joint(self, tables: np.ndarray) -> np.ndarray:
        joint = np.zeros((self.n_labels, self.n_labels))
        both = tables[:, 1, 1] + tables[:, 0, 0] - tables[:, 0, 1] - tables[:, 1, 0]
        np.add.at(joint, (self.pairs[:, 0], self.pairs[:, 1]), both)
        return joint + joint.T

    def _planes(self, ids: np.ndarray, labels: np.ndarray, excess: np.ndarray | None) -> Rivals:
        indptr = np.empty(ids.size + 1, np.int64)
        places = self.pairs, self.bias_at, self.pair_at
        indices, data = kernels.differences(*self.rows.arrays[:4], self.n_labels, ids, *places, self.y, labels, indptr)
        losses = (self.y[ids] != labels) @ self.costs
        rows = Rows(indptr, indices, data, ids.size, self.n_weights)
        errors = RowErrors(np.zeros(ids.size), np.zeros(self.n_weights), gamma(self.n_labels + 2))
        return Rivals(list(labels), rows, losses, excess, errors=errors)


def tree_of(n: int, together: np.ndarray) -> np.ndarray:
    """The edges of the tree over labels that has the most mutual information (Chow and Liu, 1968).

    Of n examples, ``together[a, b]`` have both labels a and b.

    >>> Y = np.array([[0, 0, 1], [1, 0, 1], [0, 1, 0], [1, 1, 0]])
    >>> tree_of(4, Y.T @ Y).tolist()[-1]
    [1, 2]
    """
    L = len(together)
    if L < 2:
        return np.empty((0, 2), np.int32)
    on = np.diagonal(together) / n
    both = together / n
    information = np.zeros((L, L))
    # Both labels, only the first, only the second, none.
    for a, b, joint in (
        (1, 1, both),
        (1, 0, on[:, None] - both),
        (0, 1, on[None, :] - both),
        (0, 0, 1.0 - on[:, None] - on[None, :] + both),
    ):
        alone = np.outer(on if a else 1.0 - on, on if b else 1.0 - on)
        possible = joint > 1e-12  # differences of shares: zeros are not quite zero
        information[possible] += joint[possible] * np.log(joint[possible] / alone[possible])
    # Sparse graphs have no edges of length zero: lengths are kept above one.
    tree = minimum_spanning_tree(sp.csr_matrix(np.triu(1.0 + information.max() - information, 1))).tocoo()
    edges = np.sort(np.stack([tree.row, tree.col], axis=1), axis=1)
    return edges[np.lexsort(edges.T[::-1])].astype(np.int32)


def _labels(Y: Any, n_labels: int) -> np.ndarray:
    """Zeros and ones, checked."""
    Y = Y.toarray() if sp.issparse(Y) else Y
    for i, y in enumerate(Y):
        if np.shape(y) != (n_labels,):
            raise ValueError(f"Example {i} has labels of shape {np.shape(y)}, {n_labels} are needed.")
    Y = np.asarray(Y)
    wrong = np.argwhere((Y != 0) & (Y != 1))
    if len(wrong):
        i, l = wrong[0]
        raise ValueError(f"Example {i} has {Y[i, l]} for label {l}; labels are 0 or 1.")
    return np.ascontiguousarray(Y, dtype=np.int8)
