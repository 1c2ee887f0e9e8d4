"""Graphs with features at nodes and edges, as users give them, in a few arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels.graphs import visit
from ..validation import check_unmasked, shown
from .sequences import Sequences


@dataclass(frozen=True)
class Graphs:
    """Many graphs end to end, with the order in which each is visited if it is a forest.

    Parameters
    ----------
    nodes : Sequences
        Features of nodes.
    edges : int array (n_edges, 2)
        Pairs of nodes, counted within each graph; ``edge_offsets`` says where the edges of each graph begin.
    edge_features : array (n_edges, n_edge_features)
    order, parent_edge : int arrays (n_nodes,)
        See ``maxmargin.inference.trees.Visit``; without meaning where ``forest`` is False.
    forest : bool array (n_graphs,)

    >>> one = Graphs.of([(np.ones((3, 2)), np.array([[0, 1], [1, 2]]))])
    >>> len(one), one.forest
    (1, array([ True]))
    """

    nodes: Sequences
    edges: np.ndarray
    edge_offsets: np.ndarray
    edge_features: np.ndarray
    order: np.ndarray
    parent_edge: np.ndarray
    forest: np.ndarray

    def __len__(self) -> int:
        return self.forest.size

    @classmethod
    def of(cls, X: Sequence[Any], n_features: int | None = None, n_edge_features: int | None = None) -> Graphs:
        """Tuples (node features, edges) or (node features, edges, edge features), checked."""
        if not len(X):
            raise ValueError("There are no graphs.")
        for i, x in enumerate(X):
            if not isinstance(x, tuple | list) or len(x) not in (2, 3):
                shape = np.shape(x) if isinstance(x, np.ndarray) else ()
                raise ValueError(
                    f"Graph {i} must be a tuple (node features, edges) or (node features, edges, edge features), got "
                    f"{shown(x) if not shape else f'an array of shape {shape}'}."
                    + (" maxmargin.models.grid(x) makes one of an image (height, width, features)." * (len(shape) == 3))
                )
        nodes = Sequences.of([x[0] for x in X], n_features, "Graph", "node", "The nodes")
        offsets = nodes.offsets
        edges = [_edges(i, x[1], offsets[i + 1] - offsets[i]) for i, x in enumerate(X)]
        features = [_edge_features(i, x[2] if len(x) == 3 else None, len(edges[i])) for i, x in enumerate(X)]
        width = n_edge_features
        if width is None:
            # A graph without edges says nothing about their features.
            width = next((f.shape[1] for f in features if len(f)), 0)
        for i, f in enumerate(features):
            if len(f) and f.shape[1] != width:
                raise ValueError(f"Graph {i} has {f.shape[1]} features per edge, {width} are needed.")
        order, parent_edge = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int32)
        forest = [
            visit(b - a, e, order[a:b], parent_edge[a:b])
            for a, b, e in zip(offsets[:-1], offsets[1:], edges, strict=True)
        ]
        return cls(
            nodes,
            np.concatenate(edges),
            np.concatenate([[0], np.cumsum([len(e) for e in edges])]),
            np.concatenate([f.reshape(len(f), width) for f in features]),
            order,
            parent_edge,
            np.array(forest),
        )


def _edges(i: int, x: object, n_nodes: int) -> np.ndarray:
    check_unmasked(f"The edges of graph {i}", x)
    edges = np.asarray(x)
    if edges.size == 0:
        return np.empty((0, 2), np.int32)
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise ValueError(f"The edges of graph {i} must be pairs of whole numbers, got {edges.shape} of {edges.dtype}.")
    if edges.min() < 0 or edges.max() >= n_nodes:
        wrong = edges.min() if edges.min() < 0 else edges.max()
        raise ValueError(f"Graph {i} has an edge to node {wrong}; its nodes are 0 … {n_nodes - 1}.")
    if (edges[:, 0] == edges[:, 1]).any():
        loop = edges[edges[:, 0] == edges[:, 1]][0, 0]
        raise ValueError(f"Graph {i} has an edge that joins node {loop} to itself.")
    return np.ascontiguousarray(edges, dtype=np.int32)


def _edge_features(i: int, x: object, n_edges: int) -> np.ndarray:
    if x is None:
        return np.empty((n_edges, 0))
    check_unmasked(f"The edge features of graph {i}", x)
    table = np.asarray(x, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] != n_edges:
        raise ValueError(f"Graph {i} has {n_edges} edges, but edge features of shape {table.shape}.")
    if not np.isfinite(table).all():
        raise ValueError(f"Graph {i} has edge features that are not finite.")
    return table
