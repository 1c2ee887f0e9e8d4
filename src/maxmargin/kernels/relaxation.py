"""Graphs with cycles, relaxed: marginals of nodes and edges that agree, in place of labels.

    maximise   Σ_v μ_v·unary_v + Σ_{e=(a,b)} π_e·table_e   where the rows of π_e sum to μ_a and its columns to μ_b

Labellings are the marginals of zeros and ones. The bound of message passing is one for all marginals, and its least
value is their best score. Soft passes at falling temperatures lead to marginals of nodes, and a transport problem
between the ends of each edge to those of pairs. They are whole numbers, parts of ``WHOLE``: so they agree exactly.
"""

import numpy as np

from ..rounding import UNIT
from . import compiled
from .trws import missed, neighbours, one_pass, spread

WHOLE = 2**14
_HEAT = 0.1  # of the range of the tables, to begin with
_HOTTER = 10.0  # than what would smooth the score of all nodes by as much as labels leave open
_COOLER = 0.6
_STAGES = 15
_PASSES = 10  # there and back, of each stage
_SHARE = 0.01  # of what labels leave open: less is not worth another stage


@compiled
def _rounded(beliefs, counts):
    """The same shares as whole numbers: what rounding down leaves goes to the largest."""
    for v in range(beliefs.shape[0]):
        left = WHOLE
        total = beliefs[v].sum()
        for k in range(beliefs.shape[1]):
            counts[v, k] = int(beliefs[v, k] / total * WHOLE + 1e-6)
            left -= counts[v, k]
        counts[v, np.argmax(beliefs[v])] += left


@compiled
def _transport(value, a, b, pairs):
    """Fill ``pairs`` with a table of row sums a and column sums b of a high Σ value·pairs: pairs of a high value first,
    then exchanges while they help."""
    n_labels = a.size
    rows = a.copy()
    columns = b.copy()
    pairs[:] = 0
    for q in np.argsort(-value.ravel()):
        i, j = q // n_labels, q % n_labels
        moved = min(rows[i], columns[j])
        pairs[i, j] = moved
        rows[i] -= moved
        columns[j] -= moved
    better = True
    while better:
        better = False
        for i in range(n_labels):
            for j in range(n_labels):
                if pairs[i, j] == 0:
                    continue
                for k in range(n_labels):
                    for m in range(n_labels):
                        moved = min(pairs[i, j], pairs[k, m])
                        if moved == 0:
                            continue
                        gain = value[i, m] + value[k, j] - value[i, j] - value[k, m]
                        if gain > 1e-9 * (abs(value[i, j]) + abs(value[k, m])):
                            pairs[i, j] -= moved
                            pairs[k, m] -= moved
                            pairs[i, m] += moved
                            pairs[k, j] += moved
                            better = True


@compiled
def _gain(unary, edges, tables, labels, nodes, pairs):
    """By how much the score of marginals exceeds that of labels, and how far rounding may have put that off."""
    shared = tables.shape[1] == 1
    gain = 0.0
    size = 0.0
    for v in range(labels.size):
        for k in range(unary.shape[1]):
            term = unary[v, k] * ((nodes[v, k] - WHOLE * (labels[v] == k)) / WHOLE)
            gain += term
            size += abs(term)
    for e in range(edges.shape[0]):
        table = tables[0, 0 if shared else e]
        for k in range(unary.shape[1]):
            for j in range(unary.shape[1]):
                whole = WHOLE * (labels[edges[e, 0]] == k and labels[edges[e, 1]] == j)
                term = table[k, j] * ((pairs[e, k, j] - whole) / WHOLE)
                gain += term
                size += abs(term)
    return gain, 1.1 * UNIT * (unary.size + pairs.size + 4.0) * size


@compiled
def search(unary, edges, tables, messages, labels, open_, nodes, pairs):
    """Fill ``nodes`` and ``pairs`` with marginals that score more than ``labels`` do, as far as such are found.

    ``open_`` is by how much any may exceed labels, ``messages`` those of the search that says so. Returns by how much
    these exceed labels (0.0: none were found, and nothing is filled in) and by how much others may exceed these.
    """
    n_nodes, n_labels = unary.shape
    around = neighbours(n_nodes, edges)
    some_nodes, some_pairs = np.empty_like(nodes), np.empty_like(pairs)
    no_beliefs, reduced = np.empty((0, n_labels)), np.empty((n_labels, n_labels))
    now = np.empty(labels.size, labels.dtype)
    messages = messages.copy()
    heat = _HEAT * (tables.max() - tables.min())
    heat = min(heat, _HOTTER * open_ / (n_nodes * np.log(n_labels)))
    enough = _SHARE * open_
    best = 0.0
    slack = 0.0
    for _ in range(_STAGES if heat > 0.0 else 0):
        beliefs = np.zeros((n_nodes, n_labels))
        for n in range(_PASSES):
            for forward in (True, False):
                written = beliefs if n == _PASSES - 1 else no_beliefs
                one_pass(forward, unary, edges, tables, around, messages, now, heat, written)
        _rounded(beliefs, some_nodes)
        for e in range(edges.shape[0]):
            table = tables[0, 0 if tables.shape[1] == 1 else e]
            for k in range(n_labels):
                for j in range(n_labels):
                    reduced[k, j] = table[k, j] - messages[e, 0, k] - messages[e, 1, j]
            _transport(reduced, some_nodes[edges[e, 0]], some_nodes[edges[e, 1]], some_pairs[e])
        gain, error = _gain(unary, edges, tables, labels, some_nodes, some_pairs)
        if gain > best + error:
            best = gain
            slack = error
            nodes[:] = some_nodes
            pairs[:] = some_pairs
        hard = messages.copy()
        for _ in range(2):
            for forward in (True, False):
                one_pass(forward, unary, edges, tables, around, hard, now, 0.0, no_beliefs)
        open_ = min(open_, missed(unary, edges, tables, spread(unary, edges, hard), labels))
        if open_ - best <= enough:
            break
        heat *= _COOLER
    return best, max(open_ - best + (slack + 4.0 * UNIT * (open_ + best)), 0.0)
