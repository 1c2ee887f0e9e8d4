"""Graphs with cycles, by minimum cuts: exact for two labels that like to agree, moves that only improve for more.

    maximise  Σ_v unary[v, y_v] + Σ_{e=(a,b)} table_e[y_a, y_b]

Two labels: if every table has s00 + s11 ≥ s01 + s10 (*submodular*), then up to a constant

    score(t) = Σ_v gain_v t_v − Σ_e penalty_e [t_a = 0 and t_b = 1],   penalty_e = s00 + s11 − s01 − s10 ≥ 0

and the maximum is a minimum cut (Kolmogorov and Zabih, 2004). Capacities are rounded *down* to integers, so the cut
found is a lower bound on every true cut; the part of its own capacity that rounding took away bounds what is lost.

More labels (Boykov, Veksler and Zabih, 2001): each node chooses between two labels at a time, its own and α
(expansion), or α and β (swap). Tables of such a move that are not submodular are lowered at choices other than
the present one until they are: what improves the lowered score improves the true one at least as much.
"""

from __future__ import annotations

from itertools import combinations, cycle
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import maximum_flow

from ..kernels.graphs import labelling_score, reachable
from .trees import as_edges, as_tables

_LARGEST = 29  # bits of a capacity: two arcs, there and back, together stay within int32
_ROUNDING = 1e-12  # tables miss being submodular by so little, relative to their entries, when sums were rounded


class Network:
    """The arcs of one graph, laid out once for many cuts.

    Parameters
    ----------
    n_nodes : int
    edges : int array (n_edges, 2)
        Several edges may join the same nodes, but none a node to itself.
    """

    def __init__(self, n_nodes: int, edges: np.ndarray) -> None:
        self.n_nodes = n_nodes
        self.edges = edges = as_edges(edges, n_nodes)
        if (edges[:, 0] == edges[:, 1]).any():
            raise ValueError("An edge joins a node to itself.")
        nodes = np.arange(n_nodes)
        self.source, self.sink = n_nodes, n_nodes + 1
        # Arcs in this order: source to node, node to sink, along edges; each also backwards, where nothing may flow.
        tail = np.concatenate([np.full(n_nodes, self.source), nodes, edges[:, 0]])
        head = np.concatenate([nodes, np.full(n_nodes, self.sink), edges[:, 1]])
        size = n_nodes + 2
        places, place = np.unique(np.concatenate([tail * size + head, head * size + tail]), return_inverse=True)
        self.n_arcs = places.size
        self.place = place[: tail.size]
        self.head = (places % size).astype(np.int32)
        self.first = np.searchsorted(places // size, np.arange(size + 1)).astype(np.int32)
        self.tail = (places // size).astype(np.int32)

    def best(self, gain: np.ndarray, penalty: np.ndarray) -> tuple[np.ndarray, float]:
        """The t in {0, 1}^n that maximises Σ_v gain_v t_v − Σ_e penalty_e [t_a = 0 and t_b = 1].

        Returns t and a bound on how much better any other t could be. Penalties must not be negative.
        """
        # The source's side is t = 0: cut off from the source, a node pays its loss; from the sink, its gain forgone.
        wanted = np.concatenate([np.maximum(-gain, 0.0), np.maximum(gain, 0.0), penalty])
        capacity = np.bincount(self.place, wanted, minlength=self.n_arcs)
        bits = _LARGEST - int(np.frexp(capacity.max(initial=0.0))[1])
        whole = np.floor(np.ldexp(capacity, bits))
        by_source = self._by_source(whole.astype(np.int32))
        crossing = by_source[self.tail] & ~by_source[self.head]
        excess = float((capacity - np.ldexp(whole, -bits))[crossing].sum())
        return (~by_source[: self.n_nodes]).astype(np.int8), excess

    def _by_source(self, capacity: np.ndarray) -> np.ndarray:
        """Which nodes the source still reaches after a maximum flow."""
        size = self.n_nodes + 2
        arcs = sp.csr_matrix((capacity, self.head, self.first), shape=(size, size))
        left = capacity - maximum_flow(arcs, self.source, self.sink).flow.data
        return reachable(self.first, self.head, left, self.source)


def submodular(tables: np.ndarray) -> bool:
    """Whether all 2×2 tables of scores prefer equal labels: s00 + s11 ≥ s01 + s10.

    >>> submodular(np.eye(2)[None]), submodular(-np.eye(2)[None])
    (True, False)
    """
    return bool((_penalty(tables) >= -_ROUNDING * np.abs(tables).max(initial=0.0)).all())


def best_binary(unary: np.ndarray, tables: np.ndarray, network: Network) -> tuple[np.ndarray, float, float]:
    """The best labelling with labels 0 and 1: labels, their score, and by how much a better one could exceed it.

    Parameters
    ----------
    unary : array (n_nodes, 2)
    tables : array (n_edges, 2, 2), (1, 2, 2) or (2, 2)
        Scores of the labels at both ends of an edge, submodular; one table may serve all edges.
    network : Network
        The graph.

    >>> unary = np.array([[0.0, 1.0], [0.2, 0.0], [0.3, 0.0]])
    >>> labels, score, excess = best_binary(unary, np.eye(2), Network(3, np.array([[0, 1], [1, 2], [2, 0]])))
    >>> labels, score
    (array([1, 1, 1], dtype=int32), 4.0)
    """
    unary, tables = _checked(unary, tables, network)
    if unary.shape[1] != 2:
        raise ValueError(f"A single cut chooses between 2 labels, got {unary.shape[1]}.")
    if not submodular(tables):
        raise ValueError("Some table is not submodular (s00 + s11 < s01 + s10): a cut would not be exact.")
    t, excess = _cut(network, unary, np.broadcast_to(tables, (len(network.edges), 2, 2)))
    labels = t.astype(np.int32)
    return labels, float(labelling_score(unary, network.edges, tables, labels)), excess


def expansion(
    unary: np.ndarray, tables: np.ndarray, network: Network, start: np.ndarray | None = None
) -> tuple[np.ndarray, float]:
    """A labelling that no expansion move improves, and its score, never below that of ``start``.

    In a move every node may change to one label α. By default the start is each node's best label by itself.

    >>> triangle = Network(3, np.array([[0, 1], [1, 2], [2, 0]]))
    >>> expansion(np.diag([1.0, 0.5, 0.5]), np.eye(3), triangle)
    (array([0, 0, 0], dtype=int32), 4.0)
    """
    return _improve(unary, tables, network, start, [_Move(None, alpha) for alpha in range(np.shape(unary)[1])])


def swap(
    unary: np.ndarray, tables: np.ndarray, network: Network, start: np.ndarray | None = None
) -> tuple[np.ndarray, float]:
    """A labelling that no swap move improves, and its score, never below that of ``start``.

    In a move the nodes labelled α or β choose anew between these two. By default the start is each node's best
    label by itself.
    """
    both = combinations(range(np.shape(unary)[1]), 2)
    return _improve(unary, tables, network, start, [_Move(*pair) for pair in both])


class _Move(NamedTuple):
    """Between which labels the nodes may choose; ``None`` stands for whatever label a node has."""

    zero: int | None
    one: int

    def choices(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both labels that each node may choose from, and which of them it has at present."""
        if self.zero is None:
            return np.stack([labels, np.full_like(labels, self.one)], axis=1), np.zeros(labels.size, np.int8)
        free = (labels == self.zero) | (labels == self.one)
        both = np.array([self.zero, self.one], labels.dtype)
        return np.where(free[:, None], both, labels[:, None]), (labels == self.one).astype(np.int8)


def _improve(
    unary: np.ndarray, tables: np.ndarray, network: Network, start: np.ndarray | None, moves: list[_Move]
) -> tuple[np.ndarray, float]:
    """Go round the moves until none of them improves the score."""
    unary, tables = _checked(unary, tables, network)
    labels = unary.argmax(axis=1).astype(np.int32) if start is None else np.array(start, dtype=np.int32)
    score = labelling_score(unary, network.edges, tables, labels)
    in_vain = 0
    for move in cycle(moves):
        if in_vain == len(moves):
            break
        proposal = _moved(unary, tables, network, *move.choices(labels))
        value = labelling_score(unary, network.edges, tables, proposal)
        in_vain += 1
        if value > score:
            labels, score, in_vain = proposal, value, 0
    return labels, float(score)


def _moved(
    unary: np.ndarray, tables: np.ndarray, network: Network, choices: np.ndarray, present: np.ndarray
) -> np.ndarray:
    """Every node chooses between two labels; better than the present choices, or as good."""
    nodes = np.arange(network.n_nodes)
    a, b = network.edges[:, 0], network.edges[:, 1]
    which = np.arange(a.size) if tables.shape[0] == a.size else np.zeros(a.size, np.int64)
    pair = tables[which[:, None, None], choices[a][:, :, None], choices[b][:, None, :]]
    lowered = _lowered(pair, present[a], present[b])
    t, _ = _cut(network, unary[nodes[:, None], choices], lowered)
    return choices[nodes, t]


def _lowered(tables: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Tables that are not submodular, lowered where labels differ until they are, but never at the present (a, b)."""
    missing = np.maximum(-_penalty(tables), 0.0)
    at_01 = np.where((a == 0) & (b == 1), 0.0, np.where((a == 1) & (b == 0), 1.0, 0.5))
    lowered = tables.copy()
    lowered[:, 0, 1] -= at_01 * missing
    lowered[:, 1, 0] -= (1.0 - at_01) * missing
    return lowered


def _penalty(tables: np.ndarray) -> np.ndarray:
    return tables[:, 0, 0] + tables[:, 1, 1] - tables[:, 0, 1] - tables[:, 1, 0]


def _cut(network: Network, unary: np.ndarray, tables: np.ndarray) -> tuple[np.ndarray, float]:
    """The best choice of zeros and ones for submodular tables, one per edge; and how much better another may be."""
    a, b = network.edges[:, 0], network.edges[:, 1]
    n = network.n_nodes
    gain = unary[:, 1] - unary[:, 0]
    gain = gain + np.bincount(a, tables[:, 1, 0] - tables[:, 0, 0], minlength=n)
    gain += np.bincount(b, tables[:, 1, 1] - tables[:, 1, 0], minlength=n)
    penalty = _penalty(tables)
    # A penalty below zero by a rounding error counts as zero, which may hide so much of another choice's score.
    t, excess = network.best(gain, np.maximum(penalty, 0.0))
    return t, excess - float(penalty[penalty < 0.0].sum())


def _checked(unary: np.ndarray, tables: np.ndarray, network: Network) -> tuple[np.ndarray, np.ndarray]:
    unary = np.ascontiguousarray(unary, dtype=np.float64)
    tables = as_tables(tables, len(network.edges), unary.shape[1])
    if not (np.isfinite(unary).all() and np.isfinite(tables).all()):
        raise ValueError("Scores must be finite: capacities of a cut are.")
    return unary, tables
