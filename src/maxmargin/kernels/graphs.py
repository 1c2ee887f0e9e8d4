"""Labelled graphs: visiting orders, max-sum on forests, and the feature difference of two labellings.

    maximise  Σ_v score[v, y_v] + Σ_{e=(a,b)} table_e[y_a, y_b]

Data sets are stored end to end: nodes of graph i are ``offsets[i]:offsets[i+1]``, its edges
``edge_offsets[i]:edge_offsets[i+1]``, and edges name nodes by their place within the graph.

Weights are stored in blocks: features of nodes, ``w[f*K + k]``, then bias (K) where there is one (its offset is −1
otherwise), then for each edge feature one weight per pair of labels; ``pairs[a, b]`` says which. Without edge
features (an array of width 0) every edge counts as one constant feature.
"""

import numpy as np

from . import compiled
from .chains import node_scores, put_merged, put_pair
from .viterbi import longest_of


@compiled
def visit(n_nodes, edges, order, parent_edge):
    """Whether the graph is a forest; ``order`` receives its nodes, roots first, parents before their children.

    ``parent_edge[v]`` is the edge that leads from v towards its root, −1 at the root itself. Each tree is rooted at
    its last node: then a chain is worked through as Viterbi's algorithm does it.
    """
    first = np.zeros(n_nodes + 1, np.int64)
    for e in range(edges.shape[0]):
        first[edges[e, 0] + 1] += 1
        first[edges[e, 1] + 1] += 1
    for v in range(n_nodes):
        first[v + 1] += first[v]
    filled = first[:-1].copy()
    incident = np.empty(2 * edges.shape[0], np.int64)
    for e in range(edges.shape[0]):
        for side in range(2):
            v = edges[e, side]
            incident[filled[v]] = e
            filled[v] += 1
    seen = np.zeros(n_nodes, np.bool_)
    n_seen = 0
    n_roots = 0
    for root in range(n_nodes - 1, -1, -1):
        if seen[root]:
            continue
        seen[root] = True
        parent_edge[root] = -1
        order[n_seen] = root
        done = n_seen
        n_seen += 1
        n_roots += 1
        while done < n_seen:
            v = order[done]
            done += 1
            for p in range(first[v], first[v + 1]):
                e = incident[p]
                other = edges[e, 0] + edges[e, 1] - v
                if not seen[other]:
                    seen[other] = True
                    parent_edge[other] = e
                    order[n_seen] = other
                    n_seen += 1
    return edges.shape[0] == n_nodes - n_roots


@compiled
def max_sum(value, n_nodes, edges, tables, order, parent_edge, labels):
    """Fill ``labels`` with the best labelling of a forest and return its score.

    ``value`` holds the scores of labels at nodes; the best of everything below a node is added to them on the way.
    One table may serve all edges. As in Viterbi's algorithm, which label of a child gave the best value is found
    again on the way back.
    """
    n_labels = value.shape[1]
    shared = tables.shape[0] == 1
    best = np.empty(n_labels)
    for i in range(n_nodes - 1, -1, -1):
        v = order[i]
        e = parent_edge[v]
        if e < 0:
            continue
        table = tables[0 if shared else e]
        if edges[e, 0] == v:
            parent = edges[e, 1]
            first = value[v, 0]
            for k in range(n_labels):
                best[k] = first + table[0, k]
            for j in range(1, n_labels):
                below = value[v, j]
                for k in range(n_labels):
                    best[k] = max(best[k], below + table[j, k])
        else:
            parent = edges[e, 0]
            for k in range(n_labels):
                highest = value[v, 0] + table[k, 0]
                for j in range(1, n_labels):
                    highest = max(highest, value[v, j] + table[k, j])
                best[k] = highest
        for k in range(n_labels):
            value[parent, k] += best[k]
    total = 0.0
    for i in range(n_nodes):
        v = order[i]
        e = parent_edge[v]
        highest = -np.inf
        chosen = 0
        for k in range(n_labels):
            candidate = value[v, k]
            if e >= 0:
                at = 0 if shared else e
                if edges[e, 0] == v:
                    candidate += tables[at, k, labels[edges[e, 1]]]
                else:
                    candidate += tables[at, labels[edges[e, 0]], k]
            if candidate > highest:
                highest = candidate
                chosen = k
        labels[v] = chosen
        if e < 0:
            total += highest
    return total


@compiled
def labelling_score(unary, edges, tables, labels):
    """Σ_v unary[v, y_v] + Σ_e table_e[y_a, y_b]."""
    shared = tables.shape[0] == 1
    total = 0.0
    for v in range(labels.size):
        total += unary[v, labels[v]]
    for e in range(edges.shape[0]):
        total += tables[0 if shared else e, labels[edges[e, 0]], labels[edges[e, 1]]]
    return total


@compiled
def reachable(indptr, indices, residual, source):
    """Which nodes a path of arcs with something left in them leads to."""
    seen = np.zeros(indptr.size - 1, np.bool_)
    waiting = np.empty(indptr.size - 1, np.int64)
    seen[source] = True
    waiting[0] = source
    n = 1
    while n > 0:
        n -= 1
        v = waiting[n]
        for p in range(indptr[v], indptr[v + 1]):
            if residual[p] > 0 and not seen[indices[p]]:
                seen[indices[p]] = True
                waiting[n] = indices[p]
                n += 1
    return seen


@compiled
def edge_tables(edge_features, e0, e1, w, pair_at, pairs, out):
    """out[e − e0, a, b]: the score of labels (a, b) at edge e; one table for all edges without features."""
    n_labels = pairs.shape[0]
    n_pairs = pairs.max() + 1
    if edge_features.shape[1] == 0:
        for a in range(n_labels):
            for b in range(n_labels):
                out[0, a, b] = w[pair_at + pairs[a, b]]
        return
    for e in range(e0, e1):
        table = out[e - e0]
        table[:] = 0.0
        for f in range(edge_features.shape[1]):
            x = edge_features[e, f]
            if x != 0.0:
                at = pair_at + f * n_pairs
                for a in range(n_labels):
                    for b in range(n_labels):
                        table[a, b] += x * w[at + pairs[a, b]]


@compiled
def search_forests(tokens, offsets, graph, order, parent_edge, w, layout, pairs, ids, cost, scale, y, out_first, out):
    """The best labelling of each forest of ``ids``; with costs added where ``y`` is not empty.

    ``out[out_first[p]:]`` receives the labels of graph ids[p].
    """
    edges, edge_offsets, edge_features = graph
    bias, pair_at = layout
    n_labels = pairs.shape[0]
    most_nodes, most_edges = longest_of(offsets, ids), max(longest_of(edge_offsets, ids), 1)
    constant = edge_features.shape[1] == 0
    tables = np.empty((1 if constant else most_edges, n_labels, n_labels))
    if constant:
        edge_tables(edge_features, 0, 0, w, pair_at, pairs, tables)
    value = np.empty((most_nodes, n_labels))
    for p in range(ids.size):
        i = ids[p]
        t0 = offsets[i]
        t1 = offsets[i + 1]
        e0 = edge_offsets[i]
        e1 = edge_offsets[i + 1]
        node_scores(tokens, t0, t1, n_labels, w, bias, cost, scale[i], y, value)
        if not constant:
            edge_tables(edge_features, e0, e1, w, pair_at, pairs, tables)
        first = out_first[p]
        max_sum(value, t1 - t0, edges[e0:e1], tables, order[t0:t1], parent_edge[t0:t1], out[first : first + t1 - t0])


@compiled
def _most_entries(indptr, offsets, graph, i, y, z, z0, bias):
    """Most entries that the difference of two labellings can have before equal weights are put together."""
    _, edge_offsets, edge_features = graph
    n = 0
    for t in range(offsets[i], offsets[i + 1]):
        if y[t] != z[z0 + t - offsets[i]]:
            n += 2 * (indptr[t + 1] - indptr[t]) + 2 * (bias >= 0)
    return n + 2 * (edge_offsets[i + 1] - edge_offsets[i]) * max(edge_features.shape[1], 1)


@compiled
def _put_dense(keys, vals, n, dense, out_indices, out_data, filled):
    """Write entries as one row, those of the same weight added up; returns where it ends."""
    dense[:] = 0.0
    for q in range(n):
        dense[keys[q]] += vals[q]
    for key in range(dense.size):
        if dense[key] != 0.0:
            out_indices[filled] = key
            out_data[filled] = dense[key]
            filled += 1
    return filled


@compiled
def differences(tokens, offsets, graph, y, n_weights, layout, pairs, ids, z, z_first, out_indptr):
    """Rows φ(x, y) − φ(x, z) for some graphs, as (indices, data); ``z[z_first[p]:]`` labels graph ids[p].

    The features of a node ascend, and so do those of an edge: each gives a run of ascending entries.
    """
    indptr, indices, values = tokens
    edges, edge_offsets, edge_features = graph
    bias, pair_at = layout
    n_labels = pairs.shape[0]
    n_pairs = pairs.max() + 1
    constant = edge_features.shape[1] == 0
    room = 0
    longest = 0
    for p in range(ids.size):
        n = _most_entries(indptr, offsets, graph, ids[p], y, z, z_first[p], bias)
        room += min(n, n_weights)
        longest = max(longest, n)
    keys = np.empty(longest, np.int64)
    vals = np.empty(longest, np.float64)
    spare_keys = np.empty(longest, np.int64)
    spare_vals = np.empty(longest, np.float64)
    run = np.empty(longest + 1, np.int64)
    dense = np.empty(n_weights if longest > n_weights else 0, np.float64)
    # One entry at least: rows without indices would count as dense.
    out_indices = np.empty(room + 1, np.int32)
    out_data = np.empty(room + 1, np.float64)
    out_indices[0] = 0
    filled = 0
    out_indptr[0] = 0
    for p in range(ids.size):
        i = ids[p]
        t0 = offsets[i]
        zp = z_first[p] - t0
        n = 0
        runs = 0
        for t in range(t0, offsets[i + 1]):
            a = np.int64(y[t])
            b = np.int64(z[zp + t])
            if a == b:
                continue
            run[runs] = n
            for q in range(indptr[t], indptr[t + 1]):
                at = np.int64(indices[q]) * n_labels
                put_pair(keys, vals, n, at, a, b, np.float64(values[q]))
                n += 2
            if bias >= 0:
                put_pair(keys, vals, n, bias, a, b, 1.0)
                n += 2
            runs += n > run[runs]
        for e in range(edge_offsets[i], edge_offsets[i + 1]):
            s = t0 + edges[e, 0]
            t = t0 + edges[e, 1]
            right = pairs[y[s], y[t]]
            wrong = pairs[z[zp + s], z[zp + t]]
            if right == wrong:
                continue
            run[runs] = n
            for f in range(1 if constant else edge_features.shape[1]):
                x = 1.0 if constant else edge_features[e, f]
                if x != 0.0:
                    put_pair(keys, vals, n, pair_at + f * n_pairs, right, wrong, x)
                    n += 2
            runs += n > run[runs]
        run[runs] = n
        if n > n_weights:  # then one pass over all weights is cheaper
            filled = _put_dense(keys, vals, n, dense, out_indices, out_data, filled)
        else:
            filled = put_merged(keys, vals, spare_keys, spare_vals, run, runs, out_indices, out_data, filled)
        out_indptr[p + 1] = filled
    return out_indices[: max(filled, 1)], out_data[: max(filled, 1)]
