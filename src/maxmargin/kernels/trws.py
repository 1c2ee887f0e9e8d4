"""Graphs with cycles: sequential tree-reweighted message passing (TRW-S; Kolmogorov, PAMI 2006).

    maximise   Σ_v unary[v, y_v] + Σ_{e=(a,b)} table_e[y_a, y_b]

A message m_ev tells node v what edge e would add to each of its labels. Whatever the messages are, no labelling scores
more than

    Σ_v max_k (unary_v + Σ_e m_ev)(k) + Σ_e max_{k,j} (table_e(k, j) − m_ea(k) − m_eb(j))

because they cancel in the score of any labelling. Passes over the nodes, forwards and back, lower this bound, and each
reads off a labelling on its way. The bound that is returned is computed from the last messages, so that neither
rounding on the way nor messages of other weights can make it false.
"""

import numpy as np

from ..rounding import UNIT
from . import compiled
from .chains import node_scores
from .graphs import edge_tables
from .vectors import two_sum
from .viterbi import longest_of

_PASSES = 100
_STALL = 10  # pairs of passes that must have closed a share of the gap
_SHARE = 1e-3
_NOTHING = -37.0  # what is so many temperatures below the highest does not change a soft maximum


@compiled
def neighbours(n_nodes, edges):
    """The edges of each node v: to earlier nodes at first[v] … middle[v] − 1, to later ones up to first[v + 1] − 1,
    each as a number and as the end of the edge that v is."""
    first = np.zeros(n_nodes + 1, np.int64)
    earlier = np.zeros(n_nodes, np.int64)
    for e in range(edges.shape[0]):
        for end in range(2):
            v = edges[e, end]
            first[v + 1] += 1
            earlier[v] += edges[e, 1 - end] < v
    for v in range(n_nodes):
        first[v + 1] += first[v]
    middle = first[:-1] + earlier
    filled = first[:-1].copy(), middle.copy()
    edge = np.empty(first[n_nodes], np.int64)
    end_at = np.empty(first[n_nodes], np.int8)
    for e in range(edges.shape[0]):
        for end in range(2):
            v = edges[e, end]
            place = filled[0] if edges[e, 1 - end] < v else filled[1]
            edge[place[v]] = e
            end_at[place[v]] = end
            place[v] += 1
    return first, middle, edge, end_at


@compiled
def one_pass(forward, unary, edges, tables, around, messages, labels, heat, beliefs):
    """One pass: new messages and ``labels``; returns their score, and the bound but for rounding.

    ``tables[s, e]`` has a row for each label of end s of edge e. A node is labelled by its own scores, the tables at
    neighbours that are labelled already, and the messages of the others. With ``heat`` messages are soft maxima, and
    shares of the labels at each node are added to ``beliefs``, if it has a row for each.
    """
    first, middle, edge, end_at = around
    n_nodes, n_labels = unary.shape
    shared = tables.shape[1] == 1
    total = np.empty(n_labels)
    choice = np.empty(n_labels)
    out = np.empty(n_labels)
    score = 0.0
    bound = 0.0
    for step in range(n_nodes):
        v = step if forward else n_nodes - 1 - step
        begin, mid, stop = first[v], middle[v], first[v + 1]
        gamma = 1.0 / max(mid - begin, stop - mid, 1)
        for k in range(n_labels):
            total[k] = unary[v, k]
            choice[k] = unary[v, k]
        for p in range(begin, stop):
            e = edge[p]
            s = end_at[p]
            message = messages[e, s]
            for k in range(n_labels):
                total[k] += message[k]
            if (p < mid) == forward:
                row = tables[1 - s, 0 if shared else e, labels[edges[e, 1 - s]]]
                for k in range(n_labels):
                    choice[k] += row[k]
            else:
                for k in range(n_labels):
                    choice[k] += message[k]
        chosen = 0
        highest = total[0]
        for k in range(1, n_labels):
            highest = max(highest, total[k])
            if choice[k] > choice[chosen]:
                chosen = k
        labels[v] = chosen
        score += unary[v, chosen]
        bound += highest
        if beliefs.shape[0] > 0:
            for k in range(n_labels):
                choice[k] = np.exp(gamma * (total[k] - highest) / heat)
            whole = choice.sum()
            for k in range(n_labels):
                beliefs[v, k] += choice[k] / whole
        for p in range(begin, stop):
            e = edge[p]
            s = end_at[p]
            if (p < mid) == forward:
                score += tables[1 - s, 0 if shared else e, labels[edges[e, 1 - s]], chosen]
                continue
            table = tables[s, 0 if shared else e]
            message = messages[e, s]
            for j in range(n_labels):
                out[j] = -np.inf
            for k in range(n_labels):
                rest = gamma * (total[k] - highest) - message[k]
                row = table[k]
                for j in range(n_labels):
                    out[j] = max(out[j], rest + row[j])
            if heat > 0.0:
                for j in range(n_labels):
                    whole = 0.0
                    for k in range(n_labels):
                        rest = gamma * (total[k] - highest) - message[k]
                        below = (rest + table[k, j] - out[j]) / heat
                        if below > _NOTHING:
                            whole += np.exp(below)
                    out[j] += heat * np.log(whole)
            most = out[0]
            for j in range(1, n_labels):
                most = max(most, out[j])
            bound += most
            back = messages[e, 1 - s]
            for j in range(n_labels):
                back[j] = out[j] - most
    return score, bound


@compiled
def _climb(unary, edges, tables, around, labels):
    """Change one label at a time while that helps: iterated conditional modes."""
    first, _, edge, end_at = around
    n_nodes, n_labels = unary.shape
    shared = tables.shape[1] == 1
    value = np.empty(n_labels)
    better = True
    while better:
        better = False
        for v in range(n_nodes):
            for k in range(n_labels):
                value[k] = unary[v, k]
            for p in range(first[v], first[v + 1]):
                e = edge[p]
                s = end_at[p]
                row = tables[1 - s, 0 if shared else e, labels[edges[e, 1 - s]]]
                for k in range(n_labels):
                    value[k] += row[k]
            best = labels[v]
            for k in range(n_labels):
                if value[k] > value[best] + 1e-12 * abs(value[best]):
                    best = k
            if best != labels[v]:
                labels[v] = best
                better = True


@compiled
def spread(unary, edges, messages):
    """The messages after a pass back, with what is left at each node shared out among its edges to earlier nodes: they
    prove the bound of that pass."""
    first, middle, edge, end_at = neighbours(unary.shape[0], edges)
    messages = messages.copy()
    n_nodes, n_labels = unary.shape
    total = np.empty(n_labels)
    for v in range(n_nodes):
        begin, mid, stop = first[v], middle[v], first[v + 1]
        gamma = 1.0 / max(mid - begin, stop - mid, 1)
        total[:] = unary[v]
        for p in range(begin, stop):
            for k in range(n_labels):
                total[k] += messages[edge[p], end_at[p], k]
        highest = total.max()
        for p in range(begin, mid):
            for k in range(n_labels):
                messages[edge[p], end_at[p], k] -= gamma * (total[k] - highest)
    return messages


@compiled
def missed(unary, edges, tables, messages, labels):
    """By how much the score of a labelling may be above that of ``labels``, rounding included."""
    n_nodes, n_labels = unary.shape
    shared = tables.shape[1] == 1
    total = unary.copy()
    size = np.abs(unary)
    degree = np.zeros(n_nodes, np.int64)
    gap = 0.0
    low = 0.0
    error = 0.0
    whole = 0.0
    for e in range(edges.shape[0]):
        a, b = edges[e, 0], edges[e, 1]
        table = tables[0, 0 if shared else e]
        highest = -np.inf
        most = 0.0
        for k in range(n_labels):
            for j in range(n_labels):
                highest = max(highest, table[k, j] - messages[e, 0, k] - messages[e, 1, j])
                most = max(most, abs(table[k, j]) + abs(messages[e, 0, k]) + abs(messages[e, 1, j]))
        for k in range(n_labels):
            total[a, k] += messages[e, 0, k]
            total[b, k] += messages[e, 1, k]
            size[a, k] += abs(messages[e, 0, k])
            size[b, k] += abs(messages[e, 1, k])
        degree[a] += 1
        degree[b] += 1
        gap, low = two_sum(gap, low, highest)
        gap, low = two_sum(gap, low, -table[labels[a], labels[b]])
        error += 2.0 * most
        whole += 2.0 * most
    for v in range(n_nodes):
        highest = -np.inf
        most = 0.0
        for k in range(n_labels):
            highest = max(highest, total[v, k])
            most = max(most, size[v, k])
        gap, low = two_sum(gap, low, highest)
        gap, low = two_sum(gap, low, -unary[v, labels[v]])
        error += degree[v] * most
        whole += 2.0 * most
    n_terms = 2.0 * (n_nodes + edges.shape[0])
    error = 1.02 * UNIT * (error + abs(gap) + (n_terms * UNIT) * n_terms * whole)
    return max(gap + low + error, 0.0)


@compiled
def search(unary, edges, tables, messages, labels):
    """Fill ``labels`` with the best labelling found, and return by how much another may exceed it.

    ``messages[e, s]`` is for end s of edge e: zeros or those of an earlier search, and then those of this one.
    """
    around = neighbours(unary.shape[0], edges)
    no_beliefs = np.empty((0, unary.shape[1]))
    now = np.empty(labels.size, labels.dtype)
    size = 0.0
    for x in unary.flat:
        size = max(size, abs(x))
    for x in tables.flat:
        size = max(size, abs(x))
    tight = 1e-12 * size * (labels.size + edges.shape[0])
    best = -np.inf
    before = np.inf
    for n in range(_PASSES):
        bound = np.inf
        for forward in (True, False):
            score, bound = one_pass(forward, unary, edges, tables, around, messages, now, 0.0, no_beliefs)
            if score > best:
                best = score
                labels[:] = now
        if bound - best <= tight:
            break
        if n % _STALL == _STALL - 1:
            if before - bound <= _SHARE * (bound - best):
                break
            before = bound
    if bound - best > tight:
        _climb(unary, edges, tables, around, labels)
    return missed(unary, edges, tables, spread(unary, edges, messages), labels)


@compiled
def search_graphs(tokens, offsets, graph, w, layout, pairs, ids, cost, scale, y, kept, out_first, out, excess):
    """The best labelling found of each graph of ``ids``, with costs added where ``y`` is not empty.

    ``out[out_first[p]:]`` receives the labels of graph ids[p], ``excess[p]`` by how much others may exceed them.
    ``kept`` (edges, 2, labels) has the messages of the last search of each graph.
    """
    edges, edge_offsets, edge_features = graph
    bias, pair_at = layout
    n_labels = pairs.shape[0]
    most_nodes, most_edges = longest_of(offsets, ids), max(longest_of(edge_offsets, ids), 1)
    constant = edge_features.shape[1] == 0
    tables = np.empty((2, 1 if constant else most_edges, n_labels, n_labels))
    unary = np.empty((most_nodes, n_labels))
    messages = np.empty((most_edges, 2, n_labels))
    for p in range(ids.size):
        i = ids[p]
        t0, t1 = offsets[i], offsets[i + 1]
        e0, e1 = edge_offsets[i], edge_offsets[i + 1]
        n_edges = e1 - e0
        node_scores(tokens, t0, t1, n_labels, w, bias, cost, scale[i], y, unary)
        if not constant or p == 0:
            edge_tables(edge_features, e0, e1, w, pair_at, pairs, tables[0])
            for e in range(1 if constant else n_edges):
                tables[1, e] = tables[0, e].T
        messages[:n_edges] = kept[e0:e1]
        first = out_first[p]
        labels = out[first : first + t1 - t0]
        some = tables if constant else tables[:, :n_edges]
        excess[p] = search(unary[: t1 - t0], edges[e0:e1], some, messages[:n_edges], labels)
        kept[e0:e1] = messages[:n_edges]
