"""Graphs whose labels stand for several states each, or that have nodes without any label: both are latent."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data.graphs import Graphs
from ..kernels.graphs import labelling_score
from ..problem import Rivals
from ..validation import shown, whole
from . import labelling
from .graph import Graph, GraphOracle

_HIDDEN = -1


class LatentGraph:
    """Labels for the nodes of a graph that are made of states nobody has labelled.

        w·φ(x, y, z) = that of ``Graph`` for the states z as labels

    Each label has states of its own, and a node that has the label is in one of them: the middle of a cross may behave
    unlike its arms though both are labelled "cross". And there may be hidden nodes with states of their own: x is
    (node features, edges) or (node features, edges, edge features) as for ``Graph``, and nodes that edges name beyond
    the rows of the node features are hidden. y are the labels of the nodes that have features, z the states of all:
    those of label 0 are 0 … n_states[0]−1, and so on; those of hidden nodes come last.

    Parameters
    ----------
    n_labels, n_features, n_edge_features : int or None
        Taken from the data by default; ``n_edge_features=0`` says that there are none.
    n_states : int or list of int
        States of each label, or of every label.
    n_hidden_states : int
        States of hidden nodes; 0 where there are no such nodes.
    loss : {"hamming", "normalized_hamming"} or array (n_labels, n_labels)
        Of labels; states cost nothing.
    bias, symmetric, inference
        As for ``Graph``, of states.

    Examples
    --------
    >>> model = LatentGraph(n_labels=2, n_features=1, n_states=[1, 2], bias=True)
    >>> model.n_weights  # three states: a feature, a bias, and all pairs
    15
    >>> w = np.array([0.0, 0.0, 1.0, 0.0, 0.5, 0.0, *np.zeros(9)])
    >>> labels, states = model.predict((np.array([[2.0], [0.1], [-1.0]]), [[0, 1], [1, 2]]), w)
    >>> labels, states
    (array([1, 1, 1], dtype=int32), array([2, 1, 1], dtype=int32))
    """

    def __init__(
        self,
        n_labels: int | None = None,
        n_features: int | None = None,
        n_edge_features: int | None = None,
        *,
        n_states: Any = 2,
        n_hidden_states: int = 0,
        loss: object = "hamming",
        bias: bool = False,
        symmetric: bool = False,
        inference: str = "auto",
    ) -> None:
        if isinstance(n_states, list | tuple | np.ndarray) and len(n_states):
            n_states = [whole("n_states", n) for n in n_states]
            if n_labels not in (None, len(n_states)):
                raise ValueError(f"n_states has {len(n_states)} numbers for {n_labels} labels. Give one for each.")
            n_labels = len(n_states)
        else:
            whole("n_states", n_states)
        whole("n_hidden_states", n_hidden_states, 0)
        if inference == "relaxed":
            raise ValueError('States are chosen by labellings: LatentGraph takes every inference but "relaxed".')
        labelling.check_loss(loss, n_labels)
        self.n_labels, self.n_features, self.n_edge_features = n_labels, n_features, n_edge_features
        self.n_states, self.n_hidden_states = n_states, n_hidden_states
        self.cost = loss
        self.bias, self.symmetric, self.inference = bias, symmetric, inference
        self.only_forests = self._graph(1).only_forests

    def __repr__(self) -> str:
        return (
            f"LatentGraph(n_labels={self.n_labels}, n_features={self.n_features}, n_states={self.n_states}, "
            f"n_hidden_states={self.n_hidden_states})"
        )

    def _graph(self, n_states: int, loss: object = "hamming") -> Graph:
        """The model of states as labels."""
        return Graph(
            n_states,
            self.n_features,
            self.n_edge_features,
            loss=loss,
            bias=self.bias,
            symmetric=self.symmetric,
            inference=self.inference,
        )

    @property
    def graph(self) -> Graph:
        """The model of states as labels: its tables are those of the weights."""
        graph = self._graph(self.label_of.size)
        graph.only_forests = self.only_forests
        return graph

    @property
    def label_of(self) -> np.ndarray:
        """The label that each state belongs to, −1 for those of hidden nodes."""
        if self.n_labels is None:
            raise ValueError("This model does not know its sizes: give n_labels and n_features, or use sized(X, Y).")
        labels = np.repeat(np.arange(self.n_labels), self.n_states)
        return np.concatenate([labels, np.full(self.n_hidden_states, _HIDDEN)])

    @property
    def n_weights(self) -> int:
        return self.graph.n_weights

    @property
    def exact(self) -> bool:
        """Whether every search is exact, as far as the data that the model was sized on can tell."""
        return self.graph.exact

    def sized(self, X: Sequence[Any], Y: Sequence[Any]) -> LatentGraph:
        """A copy that knows its sizes from the data."""
        graphs = self._graphs(X)
        sized = copy.copy(self)
        sized.n_features, sized.n_edge_features = graphs.nodes.n_features, graphs.edge_features.shape[1]
        sized.only_forests = bool(graphs.forest.all())
        if self.n_labels is None:
            sized.n_labels = labelling.n_labels(Y, self.cost)
        labelling.check_loss(self.cost, sized.n_labels)
        return sized

    def joined(self, others: Sequence[LatentGraph]) -> LatentGraph:
        """The model that knows the sizes of this one and others, each sized on a part of the data."""
        joined = labelling.joined([self, *others], ["n_features"], ["n_labels", "n_edge_features"])
        joined.only_forests = all(model.only_forests for model in (self, *others))
        return joined

    def padded(self, x: Any) -> Any:
        """The graph with rows of zeros for the features of its hidden nodes."""
        if not isinstance(x, tuple | list) or len(x) < 2 or not self.n_hidden_states:
            return x
        ends = np.asarray(x[1])
        n = int(ends.max()) + 1 - np.shape(x[0])[0] if ends.size and ends.dtype.kind in "iu" else 0
        if not 0 < n <= ends.size:  # what is wrong is told of the graph
            return x
        below = sp.csr_matrix((n, np.shape(x[0])[1])) if sp.issparse(x[0]) else np.zeros((n, np.shape(x[0])[1]))
        return ((sp.vstack if sp.issparse(x[0]) else np.concatenate)([x[0], below]), *x[1:])

    def _graphs(self, X: Sequence[Any]) -> Graphs:
        return Graphs.of([self.padded(x) for x in X], self.n_features, self.n_edge_features)

    def features(self, x: Any, answer: tuple[Any, Any]) -> sp.csr_matrix:
        """φ(x, y, z), as a sparse matrix of one row."""
        return self.graph.features(self.padded(x), answer[1])

    def loss(self, y: Any, answer: tuple[Any, Any]) -> float:
        return labelling.loss(self.cost, y, answer[0])

    def predict(self, x: Any, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The labels and states of the highest score w·φ(x, y, z)."""
        return self.predict_all([x], w)[0]

    def predict_all(self, X: Sequence[Any], w: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """The best labels and states of every graph."""
        data = _States(self, X)
        hidden = self.label_of == _HIDDEN
        rows = [np.arange(n) >= visible for n, visible in zip(data.sizes, data.visible, strict=True)]
        everybody = np.arange(len(X))
        return data.pairs(everybody, data.restricted(rows, np.stack([~hidden, hidden])).best(everybody, w))

    def most_violated(self, x: Any, y: Any, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The labels and states of the highest loss + w·φ(x, ŷ, ẑ)."""
        data = LatentGraphOracle(self, [x], [y])
        return data.bound([data.any_states(0)]).rivals(np.zeros(1, np.int64), w).labels[0]

    def complete(self, x: Any, y: Any, w: np.ndarray) -> np.ndarray:
        """The best states of nodes with these labels."""
        return LatentGraphOracle(self, [x], [y]).complete(w)[0][0]

    def propose(self, x: Any, y: Any, z: np.ndarray, w: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The same but for the state of one node."""
        return LatentGraphOracle(self, [x], [y]).propose(0, z, w, rng)

    def latent_oracle(self, X: Sequence[Any], Y: Sequence[Any]) -> LatentGraphOracle:
        return LatentGraphOracle(self, X, Y)


class _States:
    """Graphs with hidden nodes among them, as graphs of states."""

    def __init__(self, model: LatentGraph, X: Sequence[Any]) -> None:
        self.model, self.label_of = model, model.label_of
        self.X = [model.padded(x) for x in X]
        self.plain = GraphOracle(model.graph, self.X)
        self.sizes = self.plain.length.tolist()
        self.visible = [np.shape(x[0])[0] for x in X]

    def restricted(self, rows: Sequence[np.ndarray], allowed: np.ndarray) -> _Restricted:
        """Searches where a node v has a state s only if ``allowed[rows[v], s]``."""
        return _Restricted(self.model.graph, self.X, rows, allowed, np.zeros(allowed.shape), self.plain.scale)

    def pairs(self, ids: np.ndarray, states: Sequence[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Answers: states, and before them the labels of the nodes that have some."""
        labels = self.label_of.astype(np.int32)
        return [(labels[z[: self.visible[i]]], z) for i, z in zip(ids.tolist(), states, strict=True)]


class _Restricted(GraphOracle):
    """Searches for states where not every node may have every state: others cost more than any score is worth."""

    def __init__(
        self,
        graph: Graph,
        X: Sequence[Any],
        rows: Sequence[np.ndarray],
        allowed: np.ndarray,
        cost: np.ndarray,
        scale: np.ndarray,
    ) -> None:
        super().__init__(graph, X, [np.asarray(row, np.int64) for row in rows])
        self.allowed, self.cost, self.scale = allowed, cost, scale
        edges, values = self.graphs.edges, (self.graphs.nodes.values, self.graphs.edge_features)
        place = np.repeat(self.graphs.nodes.offsets[:-1], np.diff(self.graphs.edge_offsets))[:, None]
        self._degree = np.bincount((edges + place).ravel(), minlength=1).max()
        self._largest = max(1.0, *(np.abs(v).max(initial=0.0) for v in values))

    def costs(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self.allowed.all():
            return super().costs(w)
        reach = 1.0 + self._largest * np.abs(w).sum() + self.cost.max(initial=0.0)
        bar = 4.0 * (1.0 + self._degree) * reach / self.scale.min()
        return np.where(self.allowed, self.cost, -bar), self.scale, self.y

    def planes(self, ids: np.ndarray, labels: Sequence[Any]) -> Rivals:
        found = super().planes(ids, labels)
        for i, z in zip(ids.tolist(), labels, strict=True):
            y = self.y[self.first_token[i] : self.first_token[i + 1]]
            if not self.allowed[y, z].all():
                raise ValueError(f"An answer to graph {i} has states that its nodes may not have.")
        return found


class LatentGraphOracle(_States):
    """The model bound to data."""

    def __init__(self, model: LatentGraph, X: Sequence[Any], Y: Sequence[Any]) -> None:
        super().__init__(model, X)
        self.n_examples, self.n_weights, self.exact = len(X), model.n_weights, model.exact
        K: int = model.n_labels  # type: ignore[assignment]  # label_of has complained
        length = np.array(self.visible)
        labels = labelling.concatenated(Y, length, K)
        self.Y = labelling.split(labels, np.concatenate([[0], np.cumsum(length)]))
        # Hidden nodes count as those of one more label.
        self.rows = [np.append(y, np.full(n - y.size, K)) for y, n in zip(self.Y, self.sizes, strict=True)]
        self.allowed = self.label_of == np.append(np.arange(K), _HIDDEN)[:, None]
        self.completing = self.restricted(self.rows, self.allowed)
        table, scale = labelling.costs(model.cost, K, length)
        hidden = self.label_of == _HIDDEN
        self.scale = scale
        self.loss = np.where(hidden[:, None] | hidden, 0.0, table[self.label_of[:, None], self.label_of])
        self.apart = hidden[:, None] == hidden

    def bound(self, latent: Sequence[np.ndarray]) -> LatentGraphBound:
        for i, (states, row) in enumerate(zip(latent, self.rows, strict=True)):
            z = np.asarray(states)
            if z.shape != row.shape or not self.allowed[row, labelling.check_labels(z, self.label_of.size, "z")].all():
                raise ValueError(
                    f"Example {i} needs a state for each of its {row.size} nodes, one of the node's label; "
                    f"got {shown(z)}. The labels of states are {self.label_of.tolist()}, {_HIDDEN} of hidden nodes."
                )
        return LatentGraphBound(self, latent)

    def any_states(self, i: int) -> np.ndarray:
        """The first states of the labels."""
        return self.allowed[self.rows[i]].argmax(axis=1).astype(np.int32)

    def truths(self, ids: np.ndarray, latent: Sequence[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
        return [(self.Y[i], z) for i, z in zip(ids.tolist(), latent, strict=True)]

    def complete(self, w: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        everybody = np.arange(self.n_examples)
        best = self.completing.best(everybody, w)
        return best, self.scores(everybody, best, w)

    def scores(self, ids: np.ndarray, latent: Sequence[np.ndarray], w: np.ndarray) -> np.ndarray:
        w = labelling.as_weights(w, self.n_weights)
        return np.array(
            [
                labelling_score(*self.plain.scores_of(i, w), np.asarray(z, np.int32))
                for i, z in zip(ids.tolist(), latent, strict=True)
            ]
        )

    def listed(self, w: np.ndarray) -> None:
        return None

    def initial(self) -> None:
        return None

    def propose(self, i: int, z: np.ndarray, w: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        allowed = self.allowed[self.rows[i]]
        free = np.flatnonzero(allowed.sum(axis=1) > 1)
        proposed = np.array(z, np.int32)
        if free.size:
            v = rng.choice(free)
            proposed[v] = rng.choice(np.flatnonzero(allowed[v] & (np.arange(allowed.shape[1]) != z[v])))
        return proposed


class LatentGraphBound:
    """The bound in which nodes are in given states."""

    def __init__(self, data: LatentGraphOracle, latent: Sequence[np.ndarray]) -> None:
        self.data = data
        graph = data.model._graph(data.label_of.size, data.loss)
        graph.only_forests = data.model.only_forests
        self.search = _Restricted(graph, data.X, latent, data.apart, data.loss, data.scale)
        self.n_examples, self.n_weights = data.n_examples, data.n_weights
        self.releases_gil = self.search.releases_gil

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> Rivals:
        found = self.search.rivals(ids, w)
        return replace(found, labels=self.data.pairs(ids, found.labels))

    def planes(self, ids: np.ndarray, labels: Sequence[Any]) -> Rivals:
        return replace(self.search.planes(ids, [z for _, z in labels]), labels=labels)
