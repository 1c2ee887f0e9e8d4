"""Graphs with cycles by message passing: a labelling, and a bound on how much better any other can be."""

from __future__ import annotations

import numpy as np

from ..kernels import trws as kernels
from ..kernels.graphs import labelling_score
from .trees import as_edges, as_tables


def best(unary: np.ndarray, edges: np.ndarray, tables: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Labels of a high score Σ_v unary[v, y_v] + Σ_e tables[e, y_a, y_b], their score, and by how much a better
    labelling could exceed it.

    Parameters
    ----------
    unary : array (n_nodes, n_labels)
    edges : int array (n_edges, 2)
    tables : array (n_edges, n_labels, n_labels), or one table for all edges
        Scores of the labels at both ends of an edge, in any form.

    >>> square = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    >>> unary = np.array([[0.5, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    >>> labels, score, excess = best(unary, square, -np.eye(2))
    >>> labels, score, excess < 1e-9
    (array([0, 1, 0, 1], dtype=int32), 0.5, True)
    """
    unary = np.ascontiguousarray(unary, dtype=np.float64)
    edges = as_edges(edges, len(unary))
    tables = as_tables(tables, len(edges), unary.shape[1])
    if (edges[:, 0] == edges[:, 1]).any():
        raise ValueError("An edge joins a node to itself.")
    if not (np.isfinite(unary).all() and np.isfinite(tables).all()):
        raise ValueError("Scores must be finite: messages are sums of them.")
    both_ways = np.ascontiguousarray(np.stack([tables, tables.transpose(0, 2, 1)]))
    labels = np.empty(len(unary), np.int32)
    excess = kernels.search(unary, edges, both_ways, np.zeros((len(edges), 2, unary.shape[1])), labels)
    return labels, float(labelling_score(unary, edges, tables, labels)), float(excess)
