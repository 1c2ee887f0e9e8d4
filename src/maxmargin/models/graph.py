"""The model of graphs: features at nodes, and pairs of labels at edges."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..constraints.searched import violations
from ..constraints.sourced import joined
from ..data.graphs import Graphs
from ..inference import branching, cuts
from ..kernels import graph_slack, graphs as kernels, trws
from ..problem import Rivals
from ..protocols import OracleError
from ..validation import one_of
from . import fractional, labelling
from .rounding import LabellingErrors

_METHODS = ("auto", "tree", "cut", "trws", "branch", "relaxed", "swap", "expansion")
_BY_TREE = ("auto", "tree", "branch", "relaxed")  # where a graph is one
_PARTS = 200  # that branch and bound may look at in one search


class Graph:
    """Labels for the nodes of a graph: weights for features of nodes and for the labels at both ends of an edge.

        w·φ(x, y) = Σ_v w[:, y_v]·x_v + Σ_{e=(a,b)} Σ_f edge_features[e, f]·pairwise[f, y_a, y_b]  (+ bias if asked for)

    x is a tuple (node features, edges) or (node features, edges, edge features): a matrix of nodes by features, dense
    or sparse, pairs of nodes, a matrix of edges by features. Without edge features each edge has one that is
    constant. y is an array of labels 0 … n_labels−1, one per node. On paths with edges (t−1, t) this is ``Chain``.

    Parameters
    ----------
    n_labels, n_features, n_edge_features : int or None
        Taken from the data by default; ``n_edge_features=0`` says that there are none.
    loss : {"hamming", "normalized_hamming"} or array (n_labels, n_labels)
        Wrong labels counted, their share of the graph, or the sum of ``loss[true, answer]``.
    bias : bool
        Whether each label has a weight of its own.
    symmetric : bool
        Whether labels (a, b) share a weight with (b, a), so that the direction of an edge means nothing.
    inference : {"auto", "tree", "cut", "trws", "branch", "relaxed", "swap", "expansion"}
        "tree" and "cut" are exact, and an error where they do not apply: a graph with a cycle; more than two labels,
        or weights by which the labels of some edge would rather differ. "trws" is approximate and says by how much:
        tree-reweighted message passing bounds the score of every labelling. "branch" goes on by branch and bound where
        that leaves a gap: slower, and mostly exact on graphs of a hundred nodes. "relaxed" trains on the relaxation, to
        which the lower bound then belongs: where message passing leaves a gap, rivals are ``marginals`` that may be
        those of no labelling. "swap" and "expansion" are moves that bound nothing. "auto" takes a tree where it can,
        else a cut where it can, else "trws".
    rescaling : {"margin", "slack"}
        "slack": errors are weighted by the loss instead of adding it to the margin. For graphs without cycles and
        Hamming losses.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.models.graph import Graph, grid
    >>> image = np.array([[[1.0], [0.8]], [[-0.1], [-1.0]]])
    >>> model = Graph(n_labels=2, n_features=1, n_edge_features=2)
    >>> w = np.array([-1.0, 1.0, *np.eye(2).ravel(), *(0.1 * np.eye(2)).ravel()])
    >>> model.predict(grid(image), w).reshape(2, 2)
    array([[1, 1],
           [0, 0]], dtype=int32)
    """

    def __init__(
        self,
        n_labels: int | None = None,
        n_features: int | None = None,
        n_edge_features: int | None = None,
        *,
        loss: object = "hamming",
        bias: bool = False,
        symmetric: bool = False,
        inference: str = "auto",
        rescaling: str = "margin",
    ) -> None:
        labelling.check_sizes(n_labels=n_labels, n_features=n_features, n_edge_features=n_edge_features)
        labelling.check_switches(bias=bias, symmetric=symmetric)
        one_of("inference", inference, _METHODS)
        labelling.check_loss(loss, n_labels)
        one_of("rescaling", rescaling, ("margin", "slack"))
        if rescaling == "slack" and not (isinstance(loss, str) and inference in ("auto", "tree")):
            raise ValueError(
                'rescaling="slack" takes a Hamming loss and graphs without cycles: give loss="hamming" or '
                '"normalized_hamming" and inference="auto" or "tree".'
            )
        self.rescaling = rescaling
        self.n_labels = n_labels
        self.n_features = n_features
        self.n_edge_features = n_edge_features
        self.cost = loss
        self.bias = bias
        self.symmetric = symmetric
        self.inference = inference
        self.only_forests = inference == "tree"

    def sized(self, X: Sequence[object], Y: Sequence[object]) -> Graph:
        """A copy that knows its sizes from the data."""
        graphs, Y = self._graphs(X), self._labels(Y)
        sized = copy.copy(self)
        sized.n_features = graphs.nodes.n_features
        sized.n_edge_features = graphs.edge_features.shape[1]
        sized.only_forests = bool(graphs.forest.all())
        if self.n_labels is None:
            sized.n_labels = labelling.n_labels(Y, self.cost)
        labelling.check_loss(self.cost, sized.n_labels)
        return sized

    def _graphs(self, X: Sequence[Any]) -> Graphs:
        """Inputs as graphs, checked."""
        return Graphs.of(X, self.n_features, self.n_edge_features)

    def _labels(self, Y: Sequence[Any]) -> Sequence[Any]:
        """Answers as arrays with a label for each node."""
        return Y

    def joined(self, others: Sequence[Graph]) -> Graph:
        """The model that knows the sizes of this one and others, each sized on a part of the data."""
        models = [self, *others]
        # Graphs without edges say nothing about the features of edges.
        whole = labelling.joined(models, ["n_features"], ["n_labels", "n_edge_features"])
        whole.only_forests = all(model.only_forests for model in models)
        return whole

    @property
    def exact(self) -> bool:
        """Whether every search is exact, as far as the data that the model was sized on can tell.

        A loopy graph of two labels under "auto" may or may not be searched exactly: ``Rivals.excess`` says so.
        """
        return self.inference == "cut" or (self.only_forests and self.inference in _BY_TREE)

    @property
    def relaxed(self) -> bool:
        """Whether fractional answers are rivals, too: the lower bound is then one of the relaxed problem."""
        return self.inference == "relaxed" and not self.only_forests

    @property
    def n_weights(self) -> int:
        K, blocks = self._sizes()[0], max(self.n_edge_features or 0, 1)
        return self.pair_at + blocks * (K * (K + 1) // 2 if self.symmetric else K * K)

    @property
    def pair_at(self) -> int:
        """Where the weights of pairs begin."""
        n_labels, n_features = self._sizes()
        return n_labels * (n_features + self.bias)

    @property
    def pairs(self) -> np.ndarray:
        """pairs[a, b]: which weight of a block belongs to labels (a, b)."""
        K, _ = self._sizes()
        if not self.symmetric:
            return np.arange(K * K).reshape(K, K)
        pairs = np.zeros((K, K), np.int64)
        above = np.triu_indices(K)
        pairs[above] = np.arange(above[0].size)
        return np.maximum(pairs, pairs.T)

    def _sizes(self) -> tuple[int, ...]:
        return labelling.sizes(self, "n_labels", "n_features")

    def node_table(self, w: np.ndarray) -> np.ndarray:
        """The weights of features of nodes by label, (n_features, n_labels), the bias last if there is one."""
        return w[: self.pair_at].reshape(-1, self._sizes()[0])

    def pair_tables(self, w: np.ndarray) -> np.ndarray:
        """The weights of labels at both ends of an edge, (n_edge_features or 1, n_labels, n_labels)."""
        return w[self.pair_at :].reshape(max(self.n_edge_features or 0, 1), -1)[:, self.pairs]

    def __repr__(self) -> str:
        return f"Graph(n_labels={self.n_labels}, n_features={self.n_features}, inference={self.inference!r})"

    def features(self, x: object, y: object) -> sp.csr_matrix:
        """φ(x, y), as a sparse matrix of one row."""
        return fractional.joint(GraphOracle(self, [x]), 0, *self._shares(x, y))

    def loss(self, y: Any, y_hat: Any) -> float:
        if self.inference == "relaxed" and np.size(y_hat) > np.size(y):
            return fractional.loss(self.cost, self._sizes()[0], np.asarray(y), np.asarray(y_hat))
        return labelling.loss(self.cost, y, y_hat)

    def marginals(self, x: object, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """The shares of labels at nodes (n_nodes, n_labels) and of pairs at edges (n_edges, n_labels, n_labels) of an
        answer: zeros and ones, but for rivals under ``inference="relaxed"``."""
        nodes, pairs = self._shares(x, y)
        return nodes / fractional.WHOLE, pairs / fractional.WHOLE

    def _shares(self, x: object, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """The same as whole numbers."""
        graphs, n_labels = self._graphs([x]), self._sizes()[0]
        if self.inference == "relaxed" and np.ndim(y) == 1 and len(y) > graphs.nodes.n_tokens:
            return fractional.checked(np.asarray(y), graphs.edges, graphs.nodes.n_tokens, n_labels)
        return fractional.of_labels(GraphOracle(self, [x], [y]).y, graphs.edges, n_labels)

    def predict(self, x: object, w: np.ndarray) -> np.ndarray:
        """The labels of the highest score w·φ(x, y)."""
        return self.predict_all([x], w)[0]

    def predict_all(self, X: Sequence[object], w: np.ndarray) -> list[np.ndarray]:
        """The best labels of every graph."""
        return GraphOracle(self, X).best(np.arange(len(X)), w)

    def most_violated(self, x: object, y: object, w: np.ndarray) -> np.ndarray:
        """The labels ŷ of the highest loss(y, ŷ) + w·φ(x, ŷ)."""
        return GraphOracle(self, [x], [y]).best(np.zeros(1, np.int64), w)[0]

    def oracle(self, X: Sequence[object], Y: Sequence[object]) -> GraphOracle:
        return GraphOracle(self, X, Y)


class GraphOracle(labelling.LabellingOracle):
    """A ``Graph`` model bound to data: graphs are asked about in compiled calls, but for cuts, which go one by one."""

    model: Graph

    def __init__(self, model: Graph, X: Sequence[object], Y: Sequence[Any] | None = None) -> None:
        self.graphs = graphs = model._graphs(X)
        super().__init__(model, graphs.nodes, None if Y is None else model._labels(Y))
        self.data = self.tokens, self.first_token, (graphs.edges, graphs.edge_offsets, graphs.edge_features)
        self.pairs = model.pairs
        n_labels, n_features = model._sizes()
        self.layout = (n_labels * n_features if model.bias else -1, model.pair_at)
        self.slack = model.rescaling == "slack" and self.y.size > 0
        self.by_tree = graphs.forest & (model.inference in _BY_TREE)
        self.may_cut = model.inference in ("cut", "swap", "expansion") or (model.inference == "auto" and n_labels == 2)
        self.relaxed = model.relaxed
        self.releases_gil = bool(self.by_tree.all()) or not (self.may_cut or model.inference == "branch")
        self.networks: dict[int, cuts.Network] = {}
        self.messages = np.zeros((0, 2, n_labels), np.float32)
        n_features_of_edges = max(graphs.edge_features.shape[1], 1)
        pairs = np.abs(graphs.edge_features).max(axis=0, initial=0.0) if graphs.edge_features.shape[1] else np.ones(1)
        self.errors = LabellingErrors(
            graphs.nodes,
            n_labels,
            np.concatenate([np.ones(n_labels * model.bias), np.repeat(pairs, int(self.pairs.max()) + 1)]),
            self.length + np.diff(graphs.edge_offsets) * n_features_of_edges,
            cost=self.cost.max(initial=0.0) * self.scale,
            slack=self.length * self.scale if model.rescaling == "slack" else None,
        )
        for setting in ['inference="tree"'] * (model.inference == "tree") + ['rescaling="slack"'] * self.slack:
            if not graphs.forest.all():
                raise ValueError(f"Graph {graphs.forest.argmin()} has a cycle: {setting} is for forests.")
        if model.inference == "cut" and n_labels != 2:
            raise ValueError(f'inference="cut" is for two labels, the model has {n_labels}.')

    def search(self, ids: np.ndarray, w: np.ndarray, first: np.ndarray, flat: np.ndarray) -> np.ndarray | None:
        if self.slack:
            visit = self.graphs.order, self.graphs.parent_edge
            of_model = w, self.layout, self.pairs
            graph_slack.search_slack(*self.data, *visit, *of_model, ids, self.scale, self.y, first, flat)
            return None
        excess = np.zeros(ids.size)
        trees = self.by_tree[ids]
        visit, costs = (self.graphs.order, self.graphs.parent_edge), self.costs(w)
        found = np.flatnonzero(trees)
        kernels.search_forests(*self.data, *visit, w, self.layout, self.pairs, ids[found], *costs, first[found], flat)
        loopy = []
        for p in np.flatnonzero(~trees).tolist():
            by_cut = self._cut(int(ids[p]), w) if self.may_cut else None
            if by_cut is None:
                loopy.append(p)
            else:
                flat[first[p] : first[p + 1]], excess[p] = by_cut
        if loopy:
            if not self.messages.size:
                self.messages = np.zeros((len(self.graphs.edges), 2, self.n_labels), np.float32)
            missed = np.empty(len(loopy))
            trws.search_graphs(
                *self.data, w, self.layout, self.pairs, ids[loopy], *costs, self.messages, first[loopy], flat, missed
            )
            excess[loopy] = missed
            for p in loopy if self.model.inference == "branch" else ():
                labels = flat[first[p] : first[p + 1]]
                labels[:], excess[p] = branching.improved(*self.scores_of(int(ids[p]), w), labels.copy(), most=_PARTS)
        return excess if excess.any() else None

    def costs(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What is added to scores: a table with a row for every true label, factors of examples, and true labels."""
        return self.cost, self.scale, self.y

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> Rivals:
        found = super().rivals(ids, w)
        if not self.relaxed or found.excess is None:
            return found
        answers, excess = fractional.searched(self, found, ids, w)
        return replace(self.planes(ids, answers), excess=excess, rounding=found.rounding)

    def planes(self, ids: np.ndarray, labels: Sequence[Any]) -> Rivals:
        """Fractional answers are longer than labels."""
        if not self.relaxed:
            return super().planes(ids, labels)
        longer = np.fromiter(map(len, labels), np.int64, len(labels)) > self.length[ids]
        halves = np.flatnonzero(~longer), np.flatnonzero(longer)
        answers = [[labels[p] for p in half.tolist()] for half in halves]
        whole = super().planes(ids[halves[0]], answers[0])
        return joined([whole, fractional.planes(self, ids[halves[1]], answers[1])], np.concatenate(halves))

    def refined(self, ids: np.ndarray, w: np.ndarray, seconds: float) -> Rivals:
        """As ``rivals``, with so much time for branch and bound where searches have left a gap."""
        if self.relaxed:
            raise ValueError(
                'exact_seconds is for fits on labellings, inference="relaxed" is a fit on their relaxation: its lower '
                "bound does not hold for what exact searches find. Certify it without them."
            )
        found = self.rivals(ids, w)
        if found.excess is None:
            return found
        missing, labels, excess = violations(found, w), list(found.labels), found.excess.copy()
        loose = np.flatnonzero(missing + excess > np.maximum(missing, 0.0))
        end = time.monotonic() + seconds
        for n, p in enumerate(loose.tolist()):
            labels[p], excess[p] = branching.improved(
                *self.scores_of(int(ids[p]), w),
                labels[p],
                enough=max(-missing[p], 0.0),
                seconds=(end - time.monotonic()) / (loose.size - n),
            )
        return replace(self.planes(ids, labels), excess=excess, rounding=found.rounding)

    def scores_of(self, i: int, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores of the labels of one graph, costs included where the true ones are known; its edges; their tables."""
        a, b = self.first_token[i], self.first_token[i + 1]
        e0, e1 = self.graphs.edge_offsets[i], self.graphs.edge_offsets[i + 1]
        tables = np.empty((e1 - e0 if self.graphs.edge_features.shape[1] else 1, self.n_labels, self.n_labels))
        kernels.edge_tables(self.graphs.edge_features, e0, e1, w, self.layout[1], self.pairs, tables)
        unary = np.empty((b - a, self.n_labels))
        cost, scale, y = self.costs(w)
        kernels.node_scores(self.tokens, a, b, self.n_labels, w, self.layout[0], cost, scale[i], y, unary)
        return unary, self.graphs.edges[e0:e1], tables

    def _cut(self, i: int, w: np.ndarray) -> tuple[np.ndarray, float] | None:
        """Labels of one graph by cuts, and by how much better ones may exceed them; None where message passing is to
        label it."""
        unary, edges, tables = self.scores_of(i, w)
        moves = {"swap": cuts.swap, "expansion": cuts.expansion}.get(self.model.inference)
        if moves is None and not cuts.submodular(tables):
            if self.model.inference == "auto":
                return None
            raise OracleError(
                f"At these weights the labels of some edge of example {i} would rather differ, and a cut cannot find "
                'the best labelling. inference="auto" goes on with approximate searches.',
                i,
            )
        if i not in self.networks:
            self.networks[i] = cuts.Network(len(unary), edges)
        if moves is not None:
            return moves(unary, tables, self.networks[i])[0], np.inf
        labels, _, missed = cuts.best_binary(unary, tables, self.networks[i])
        return labels, missed

    def differences(self, ids: np.ndarray, first: np.ndarray, flat: np.ndarray, indptr: np.ndarray) -> Any:
        return kernels.differences(
            *self.data, self.y, self.n_weights, self.layout, self.pairs, ids, flat, first, indptr
        )


def grid(features: object, *, directions: bool = True) -> tuple[np.ndarray, ...]:
    """A picture as a graph: every pixel is a node, joined to the next one to its right and the one below.

    Parameters
    ----------
    features : array (height, width, n_features)
    directions : bool
        Whether edge features say which edges are horizontal (1, 0) and which are vertical (0, 1).

    >>> nodes, edges, edge_features = grid(np.zeros((2, 2, 3)))
    >>> nodes.shape, edges.tolist()
    ((4, 3), [[0, 1], [2, 3], [0, 2], [1, 3]])
    """
    features = np.asarray(features)
    if features.ndim != 3:
        raise ValueError(f"A grid needs an array (height, width, n_features), got shape {features.shape}.")
    height, width, n_features = features.shape
    node = np.arange(height * width, dtype=np.int32).reshape(height, width)
    across = np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()], axis=1)
    down = np.stack([node[:-1].ravel(), node[1:].ravel()], axis=1)
    nodes, edges = features.reshape(-1, n_features), np.concatenate([across, down])
    if not directions:
        return nodes, edges
    return nodes, edges, np.repeat(np.eye(2), [len(across), len(down)], axis=0)
