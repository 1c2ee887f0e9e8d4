"""Whole data sets of chains: label scores from sparse features, and the feature difference of two labellings.

Weights are stored in blocks: emissions feature by feature, ``w[f*K + k]``, so that one feature of a token adds a
run of K neighbours to its label scores; then, where the model has them, bias (K), transitions (K×K, from × to),
start (K), end (K) and triples (K×K×K, in their order). An offset of −1 says that a block is missing.
"""

import numpy as np
from numpy import uint32, uint64

from . import compiled, inlined


@compiled
def label_scores(indptr, indices, values, t0, t1, n_labels, w, bias, out):
    """out[t − t0, k] = w·(features of token t with label k)."""
    for t in range(t0, t1):
        row = out[t - t0]
        if bias >= 0:
            for k in range(n_labels):
                row[k] = w[bias + k]
        else:
            for k in range(n_labels):
                row[k] = 0.0
        for p in range(uint64(indptr[t]), uint64(indptr[t + 1])):
            x = np.float64(values[p])
            at = uint64(uint32(indices[p])) * uint64(n_labels)
            for k in range(n_labels):
                row[k] += x * w[at + uint64(k)]


@compiled
def node_scores(tokens, t0, t1, n_labels, w, bias, cost, scale, y, out):
    """Scores of labels at the tokens t0 … t1−1, with scaled costs added where ``y`` is not empty."""
    indptr, indices, values = tokens
    label_scores(indptr, indices, values, t0, t1, n_labels, w, bias, out)
    if y.size > 0:
        for t in range(t0, t1):
            for k in range(n_labels):
                out[t - t0, k] += scale * cost[y[t], k]


@inlined
def _count(indptr, t0, t1, y, z, z0, bias, triple):
    """Most entries that the difference of two labellings can have."""
    n = 4
    for t in range(t0, t1):
        if y[t] != z[z0 + t - t0]:
            n += 2 * (indptr[t + 1] - indptr[t]) + 2 * (bias >= 0)
        n += 2 + 2 * (triple >= 0)
    return n


@compiled
def _merge(keys, values, a, b, c, to_keys, to_values, at):
    """Merge two runs of ascending keys, a … b−1 and b … c−1; equal keys are added up. Returns where the result ends."""
    i = a
    j = b
    while i < b and j < c:
        p = keys[i]
        q = keys[j]
        if p == q:
            to_keys[at] = p
            to_values[at] = values[i] + values[j]
            i += 1
            j += 1
        elif p < q:
            to_keys[at] = p
            to_values[at] = values[i]
            i += 1
        else:
            to_keys[at] = q
            to_values[at] = values[j]
            j += 1
        at += 1
    while i < b:
        to_keys[at] = keys[i]
        to_values[at] = values[i]
        i += 1
        at += 1
    while j < c:
        to_keys[at] = keys[j]
        to_values[at] = values[j]
        j += 1
        at += 1
    return at


@compiled
def rooms_for(longest):
    """Working memory of ``put_merged``: keys, values, twice, and where runs begin."""
    keys = np.empty((2, longest), np.int64)
    values = np.empty((2, longest))
    return keys[0], values[0], keys[1], values[1], np.empty(longest + 1, np.int64)


@inlined
def put_merged(keys, values, spare_keys, spare_values, run, runs, out_indices, out_data, filled):
    """Write runs of ascending keys as one row; returns where it ends. Run r begins at ``run[r]``, the last one ends at
    ``run[runs]``.

    Runs are merged in pairs until one is left.
    """
    while runs > 1:
        at = np.int64(0)
        merged = 0
        for r in range(0, runs, 2):
            first = run[r]
            middle = run[min(r + 1, runs)]
            last = run[min(r + 2, runs)]
            run[merged] = at
            merged += 1
            at = _merge(keys, values, first, middle, last, spare_keys, spare_values, at)
        run[merged] = at
        runs = merged
        keys, spare_keys = spare_keys, keys
        values, spare_values = spare_values, values
    for q in range(run[runs]):
        if values[q] != 0.0:
            out_indices[filled] = keys[q]
            out_data[filled] = values[q]
            filled += 1
    return filled


@inlined
def put_pair(keys, values, n, at, a, b, value):
    """Two entries, +value for label a and −value for label b, in ascending order."""
    keys[n] = at + min(a, b)
    values[n] = value if a < b else -value
    keys[n + 1] = at + max(a, b)
    values[n + 1] = -value if a < b else value


@inlined
def _put_run(keys, values, run, runs, n, at, a, b):
    """A run of its own for the weights a and b of a block, if the model has it and they are not the same."""
    if at < 0 or a == b:
        return runs, n
    run[runs] = n
    put_pair(keys, values, n, at, a, b, 1.0)
    return runs + 1, n + 2


@compiled
def differences(indptr, indices, values, offsets, y, n_labels, layout, ids, z, z_first, out_indptr, kind):
    """Rows φ(x, y) − φ(x, z) for some examples, as (indices, data); ``z[z_first[p]:]`` labels example ids[p].

    The features of a token ascend, so every token that differs gives a run of ascending entries, and so does every
    other difference. ``kind`` is an array of the type that the data shall have.
    """
    bias, transition, start, end, triple = layout
    room = 0
    longest = np.int64(0)
    for p in range(ids.size):
        n = _count(indptr, offsets[ids[p]], offsets[ids[p] + 1], y, z, z_first[p], bias, triple)
        room += n
        longest = max(longest, n)
    keys, vals, spare_keys, spare_vals, run = rooms_for(longest)
    out_indices = np.empty(room + 1, np.int32)
    out_data = np.empty(room + 1, kind.dtype)
    filled = np.int64(0)
    out_indptr[0] = 0
    for p in range(ids.size):
        t0 = offsets[ids[p]]
        t1 = offsets[ids[p] + 1]
        zp = z_first[p] - t0
        n = np.int64(0)
        runs = np.int64(0)
        for t in range(t0, t1):
            a = np.int64(y[t])
            b = np.int64(z[zp + t])
            if a != b:
                run[runs] = n
                runs += 1
                for q in range(indptr[t], indptr[t + 1]):
                    put_pair(keys, vals, n, np.int64(indices[q]) * n_labels, a, b, np.float64(values[q]))
                    n += 2
                if bias >= 0:
                    put_pair(keys, vals, n, bias, a, b, 1.0)
                    n += 2
            if t > t0:
                pair_a = np.int64(y[t - 1]) * n_labels + a
                pair_b = np.int64(z[zp + t - 1]) * n_labels + b
                runs, n = _put_run(keys, vals, run, runs, n, transition, pair_a, pair_b)
                if t > t0 + 1:
                    square = n_labels * n_labels
                    three_a = np.int64(y[t - 2]) * square + pair_a
                    three_b = np.int64(z[zp + t - 2]) * square + pair_b
                    runs, n = _put_run(keys, vals, run, runs, n, triple, three_a, three_b)
        runs, n = _put_run(keys, vals, run, runs, n, start, np.int64(y[t0]), np.int64(z[zp + t0]))
        runs, n = _put_run(keys, vals, run, runs, n, end, np.int64(y[t1 - 1]), np.int64(z[zp + t1 - 1]))
        run[runs] = n
        filled = put_merged(keys, vals, spare_keys, spare_vals, run, runs, out_indices, out_data, filled)
        out_indptr[p + 1] = filled
    return out_indices[: max(filled, 1)], out_data[: max(filled, 1)]


@compiled
def losses(offsets, y, cost, scale, ids, z, z_first):
    """scale_i·Σ_t cost[y_t, z_t] for each example of ``ids``."""
    out = np.zeros(ids.size)
    for p in range(ids.size):
        i = ids[p]
        for t in range(offsets[i + 1] - offsets[i]):
            out[p] += cost[y[offsets[i] + t], z[z_first[p] + t]]
        out[p] *= scale[i]
    return out
