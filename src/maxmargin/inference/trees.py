"""Graphs without cycles, on which ``kernels.graphs.max_sum`` is exact: in which order their nodes are visited."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..kernels.graphs import visit


class Visit(NamedTuple):
    """In which order the nodes of a forest are visited: roots first, parents before their children.

    ``parent_edge[v]`` is the edge that leads from node v towards its root, −1 at the root.
    """

    order: np.ndarray
    parent_edge: np.ndarray


def visiting_order(n_nodes: int, edges: np.ndarray) -> Visit | None:
    """How to visit the graph if it is a forest, ``None`` if it has a cycle.

    >>> visiting_order(3, np.array([[0, 1], [1, 2]])).order
    array([2, 1, 0], dtype=int32)
    >>> visiting_order(3, np.array([[0, 1], [1, 2], [2, 0]])) is None
    True
    """
    found = Visit(np.empty(n_nodes, np.int32), np.empty(n_nodes, np.int32))
    return found if visit(n_nodes, as_edges(edges, n_nodes), *found) else None


def as_edges(edges: np.ndarray, n_nodes: int) -> np.ndarray:
    """Edges as the kernels want them, checked."""
    edges = np.ascontiguousarray(edges, dtype=np.int32).reshape(-1, 2)
    if edges.size and not 0 <= edges.min() <= edges.max() < n_nodes:
        wrong = edges.min() if edges.min() < 0 else edges.max()
        raise ValueError(f"An edge names node {wrong}; nodes are 0 … {n_nodes - 1}.")
    return edges


def as_tables(tables: np.ndarray, n_edges: int, n_labels: int) -> np.ndarray:
    """Tables of scores as the kernels want them: one for each edge, or a single one for all."""
    tables = np.ascontiguousarray(tables, dtype=np.float64).reshape(-1, n_labels, n_labels)
    if tables.shape[0] not in (1, n_edges):
        raise ValueError(f"There are {tables.shape[0]} tables for {n_edges} edges.")
    return tables
