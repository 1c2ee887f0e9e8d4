"""Fractional answers about graphs: shares of labels at nodes, and of pairs of labels at edges, that agree.

Such an answer is one array of whole numbers, shares of ``WHOLE``: labels at each node, then pairs at each edge. So that
shares agree can be told exactly, and answers are kept in memory and in files as labels are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..constraints.oracle import stack
from ..kernels import relaxation as kernels
from ..kernels.relaxation import WHOLE
from ..problem import Rivals
from . import labelling

if TYPE_CHECKING:
    from .graph import GraphOracle

_LEAST = 1e-4  # less than this share of the loss is not worth a search


def searched(oracle: GraphOracle, rivals: Rivals, ids: np.ndarray, w: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Answers, fractional ones where such are found to be worse offenders than labels that leave something open, and by
    how much any other may exceed them."""
    answers, excess = list(rivals.labels), np.array(rivals.excess)
    for p in np.flatnonzero(excess > _LEAST * (1.0 + rivals.losses)).tolist():
        i = int(ids[p])
        unary, edges, tables = oracle.scores_of(i, w)
        first = oracle.graphs.edge_offsets[i]
        messages = oracle.messages[first : first + len(edges)].astype(np.float64)
        both_ways = np.ascontiguousarray(np.stack([tables, tables.transpose(0, 2, 1)]))
        answer = np.empty(unary.size + len(edges) * oracle.n_labels**2, np.int32)
        parts = split(answer, *unary.shape)
        gain, excess[p] = kernels.search(unary, edges, both_ways, messages, answers[p], excess[p], *parts)
        if gain > 0.0:
            answers[p] = answer
    return answers, excess


def split(answer: np.ndarray, n_nodes: int, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Shares of labels at nodes (n_nodes, n_labels), and of pairs at edges (n_edges, n_labels, n_labels)."""
    nodes, pairs = np.split(answer, [n_nodes * n_labels])
    return nodes.reshape(n_nodes, n_labels), pairs.reshape(-1, n_labels, n_labels)


def of_labels(labels: np.ndarray, edges: np.ndarray, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """The same of labels: all or nothing."""
    nodes = WHOLE * np.eye(n_labels, dtype=np.int64)[labels]
    pairs = np.zeros((len(edges), n_labels, n_labels), np.int64)
    pairs[np.arange(len(edges)), labels[edges[:, 0]], labels[edges[:, 1]]] = WHOLE
    return nodes, pairs


def checked(answer: np.ndarray, edges: np.ndarray, n_nodes: int, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """The shares of a fractional answer, or an error where they do not agree."""
    size = n_nodes * n_labels + len(edges) * n_labels**2
    if answer.ndim == 1 and answer.dtype.kind in "iu" and answer.size == size:
        nodes, pairs = split(answer.astype(np.int64), n_nodes, n_labels)
        agree = all(np.array_equal(pairs.sum(axis=2 - end), nodes[edges[:, end]]) for end in (0, 1))
        if agree and answer.min(initial=0) >= 0 and (nodes.sum(axis=1) == WHOLE).all():
            return nodes, pairs
    raise ValueError(
        f"An answer of {answer.size} numbers is neither labels of {n_nodes} nodes nor shares of {n_labels} labels at "
        f"them and of pairs at {len(edges)} edges, parts of {WHOLE} that agree."
    )


def joint(oracle: GraphOracle, i: int, nodes: np.ndarray, pairs: np.ndarray) -> sp.csr_matrix:
    """φ(x_i, shares), as a sparse matrix of one row. Shares are whole numbers: those of pairs that have one weight are
    added up exactly."""
    graphs, n_edges = oracle.graphs, len(pairs)
    weights_of_pairs = np.eye(int(oracle.pairs.max()) + 1, dtype=np.int64)[oracle.pairs.ravel()]
    folded = pairs.reshape(n_edges, oracle.n_labels**2) @ weights_of_pairs
    first = graphs.edge_offsets[i]
    features = graphs.edge_features[first : first + n_edges]
    features = features if features.shape[1] else np.ones((n_edges, 1))
    of_nodes = sp.csr_matrix(graphs.nodes[i].T.astype(np.float64) @ sp.csr_matrix(nodes / WHOLE))
    bias = nodes.sum(axis=0) / WHOLE if oracle.layout[0] >= 0 else np.empty(0)
    others = np.concatenate([bias, (features.T @ (folded / WHOLE)).ravel()])
    return sp.csr_matrix(sp.hstack([of_nodes.reshape(1, -1), sp.csr_matrix(others[None])]))


def planes(oracle: GraphOracle, ids: np.ndarray, answers: list[np.ndarray]) -> Rivals:
    """Rows and losses of fractional answers."""
    rows, losses = [], np.empty(ids.size)
    for p, (i, answer) in enumerate(zip(ids.tolist(), answers, strict=True)):
        edges = oracle.graphs.edges[oracle.graphs.edge_offsets[i] : oracle.graphs.edge_offsets[i + 1]]
        y = oracle.y[oracle.first_token[i] : oracle.first_token[i + 1]]
        nodes, pairs = checked(np.asarray(answer), edges, y.size, oracle.n_labels)
        true_nodes, true_pairs = of_labels(y, edges, oracle.n_labels)
        rows.append(joint(oracle, i, true_nodes - nodes, true_pairs - pairs))
        losses[p] = loss(oracle.model.cost, oracle.n_labels, y, answer)
    return Rivals(answers, stack(rows, oracle.n_weights), losses, errors=oracle.errors.of_rows(ids))


def loss(cost: object, n_labels: int, y: np.ndarray, answer: np.ndarray) -> float:
    """The loss of a fractional answer: the costs of its shares at nodes."""
    table, scale = labelling.costs(cost, n_labels, np.array([y.size]))
    answered = np.zeros(table.shape)
    np.add.at(answered, y, split(answer, y.size, n_labels)[0])
    return float(scale[0]) * math.fsum((answered * table).ravel().tolist()) / WHOLE
