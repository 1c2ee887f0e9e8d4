"""Labelled forests with slack rescaling: maximise loss·(1 + score − score of the truth).

The loss is the number of wrong labels times a factor. For every such number the best score is found, by max-sum with
the number of wrong labels below a node as a part of its state, and then the best product. Where a node meets its
children one after another the numbers add up, which comes to n² pairs of numbers for a tree of n nodes.
"""

import numpy as np

from . import compiled
from .chains import label_scores
from .graphs import edge_tables, labelling_score
from .viterbi import longest_of


@compiled
def _score(edges, tables, e, parent, k, j):
    """Of edge e where the node nearer to the root has label k and the other one j."""
    table = tables[0 if tables.shape[0] == 1 else e]
    return table[k, j] if edges[e, 0] == parent else table[j, k]


@compiled
def _joined(value, n_value, below, n_below, k, share, out):
    """out[c] = max over c' of value[c − c'] + below[c'] for label k; ``share`` receives c'. Then value is out."""
    for c in range(n_value + n_below + 1):
        out[c] = -np.inf
        for part in range(max(0, c - n_value), min(c, n_below) + 1):
            candidate = value[c - part, k] + below[part]
            if candidate > out[c]:
                out[c] = candidate
                share[c, k] = part
    for c in range(n_value + n_below + 1):
        value[c, k] = out[c]


@compiled
def best_product(unary, y, factor, edges, tables, order, parent_edge, labels):
    """Fill ``labels`` with those of the largest factor·wrong·(1 + score − score of y); with y where none is above 0."""
    n, n_labels = unary.shape
    # value[v, c, k]: v has label k, and c labels from v on downwards are wrong. The last row gathers the roots.
    value = np.full((n + 1, n + 1, n_labels), -np.inf)
    size = np.ones(n + 1, np.int64)
    share = np.zeros((n, n + 1, n_labels), np.int32)
    choice = np.zeros((n, n + 1, n_labels), np.int32)
    below = np.empty(n + 1)
    out = np.empty(n + 1)
    size[n] = 0
    value[n, 0, 0] = 0.0
    for v in range(n):
        for k in range(n_labels):
            value[v, np.int64(k != y[v]), k] = unary[v, k]
    for i in range(n - 1, -1, -1):
        v = order[i]
        e = parent_edge[v]
        parent = n if e < 0 else np.int64(edges[e, 0] + edges[e, 1]) - v
        for k in range(n_labels if e >= 0 else 1):
            for c in range(size[v] + 1):
                below[c] = -np.inf
                for j in range(n_labels):
                    pair = _score(edges, tables, e, parent, k, j) if e >= 0 else 0.0
                    if value[v, c, j] + pair > below[c]:
                        below[c] = value[v, c, j] + pair
                        choice[v, c, k] = j
            _joined(value[parent], size[parent], below, size[v], k, share[v], out)
        size[parent] += size[v]
    truth = labelling_score(unary, edges, tables, y)
    wrong = np.zeros(n + 1, np.int64)
    highest = 0.0
    for c in range(1, n + 1):
        total = factor * c * (1.0 + value[n, c, 0] - truth)
        if total > highest:
            highest = total
            wrong[n] = c
    for i in range(n):
        v = order[i]
        e = parent_edge[v]
        parent = n if e < 0 else np.int64(edges[e, 0] + edges[e, 1]) - v
        k = 0 if e < 0 else np.int64(labels[parent])
        wrong[v] = share[v, wrong[parent], k]
        wrong[parent] -= wrong[v]
        labels[v] = choice[v, wrong[v], k]


@compiled
def search_slack(tokens, offsets, graph, order, parent_edge, w, layout, pairs, ids, scale, y, out_first, out):
    """The labels of the largest product for the forests of ``ids``; ``out[out_first[p]:]`` receives those of ids[p]."""
    indptr, indices, values = tokens
    edges, edge_offsets, edge_features = graph
    bias, pair_at = layout
    n_labels = pairs.shape[0]
    constant = edge_features.shape[1] == 0
    unary = np.empty((longest_of(offsets, ids), n_labels))
    tables = np.empty((1 if constant else max(longest_of(edge_offsets, ids), 1), n_labels, n_labels))
    for p in range(ids.size):
        i = ids[p]
        t0, t1 = offsets[i], offsets[i + 1]
        e0, e1 = edge_offsets[i], edge_offsets[i + 1]
        label_scores(indptr, indices, values, t0, t1, n_labels, w, bias, unary)
        if not constant or p == 0:
            edge_tables(edge_features, e0, e1, w, pair_at, pairs, tables)
        labels = out[out_first[p] : out_first[p] + t1 - t0]
        some = tables if constant else tables[: e1 - e0]
        best_product(unary[: t1 - t0], y[t0:t1], scale[i], edges[e0:e1], some, order[t0:t1], parent_edge[t0:t1], labels)
