"""Vectors of 0/1 labels over one feature vector each: scores, exact searches, differences.

    score = Σ_l y_l (w_l·x + b_l) + Σ_{e=(a,b)} table_e[y_a, y_b]

Weights are stored feature by feature, ``w[f*L + l]``, then bias (L) where there is one (its offset is −1
otherwise), then four for each edge, for the labels 00, 01, 10, 11 at its ends.
"""

import numpy as np

from . import compiled
from .chains import put_pair
from .graphs import max_sum
from .rows import bounds, column


@compiled
def label_gains(indptr, indices, data, width, n_labels, ids, w, bias, cost, y, out):
    """out[p, l]: what label l of example ids[p] gains by being 1 rather than 0, costs included where y is given."""
    for p in range(ids.size):
        i = ids[p]
        row = out[p]
        for l in range(n_labels):
            row[l] = w[bias + l] if bias >= 0 else 0.0
        start, stop = bounds(indptr, indices, width, i)
        for k in range(start, stop):
            x = np.float64(data[k])
            if x != 0.0:
                at = column(indices, k, start) * n_labels
                for l in range(n_labels):
                    row[l] += x * w[at + l]
        if y.size > 0:
            for l in range(n_labels):
                row[l] += -cost[l] if y[i, l] else cost[l]


@compiled
def best_on_forest(gains, edges, tables, order, parent_edge, out):
    """out[p]: the best labels of each row of gains, where the edges make up a forest."""
    n_labels = gains.shape[1]
    value = np.empty((n_labels, 2))
    labels = np.empty(n_labels, np.int64)
    for p in range(gains.shape[0]):
        for l in range(n_labels):
            value[l, 0] = 0.0
            value[l, 1] = gains[p, l]
        max_sum(value, n_labels, edges, tables, order, parent_edge, labels)
        for l in range(n_labels):
            out[p, l] = labels[l]


@compiled
def best_subsets(gains, joint, out):
    """out[p]: the y in {0,1}^L that maximises gains[:, p]·y + ½ y·joint·y; joint is symmetric, zero on its diagonal.

    The Gray code walks through all 2^L vectors, one label changing at a time. What the change is worth to the
    pairs of labels is the same for all examples, so a block of them walks together.
    """
    n_labels, n = gains.shape
    block = 64
    score = np.empty(block)
    highest = np.empty(block)
    winner = np.empty(block, np.int64)
    y = np.empty(n_labels)
    for start in range(0, n, block):
        size = min(block, n - start)
        score[:size] = 0.0
        highest[:size] = 0.0
        winner[:size] = 0
        y[:] = 0.0
        code = np.int64(0)
        for step in range(1, np.int64(1) << n_labels):
            flipped = 0
            while not (step >> flipped) & 1:
                flipped += 1
            sign = 1.0 - 2.0 * y[flipped]
            pairs = 0.0
            for l in range(n_labels):
                pairs += joint[flipped, l] * y[l]
            pairs *= sign
            y[flipped] = 1.0 - y[flipped]
            code ^= np.int64(1) << flipped
            gain = gains[flipped, start : start + size]
            for p in range(size):
                value = score[p] + (sign * gain[p] + pairs)
                score[p] = value
                better = value > highest[p]
                highest[p] = value if better else highest[p]
                winner[p] = code if better else winner[p]
        for p in range(size):
            for l in range(n_labels):
                out[start + p, l] = (winner[p] >> l) & 1


@compiled
def differences(indptr, indices, data, width, n_labels, ids, edges, bias, pair_at, y, z, out_indptr):
    """Rows φ(x, y) − φ(x, z) as (indices, data), for the labels z[p] of example ids[p]."""
    room = 0
    for p in range(ids.size):
        n_wrong = 0
        for l in range(n_labels):
            n_wrong += y[ids[p], l] != z[p, l]
        start, stop = bounds(indptr, indices, width, ids[p])
        room += n_wrong * (stop - start + 1) + 2 * edges.shape[0]
    # One entry at least: rows without indices would count as dense.
    out_indices = np.empty(room + 1, np.int32)
    out_data = np.empty(room + 1, np.float64)
    out_indices[0] = 0
    wrong = np.empty(n_labels, np.int64)
    filled = np.int64(0)
    out_indptr[0] = 0
    for p in range(ids.size):
        i = ids[p]
        n_wrong = 0
        for l in range(n_labels):
            if y[i, l] != z[p, l]:
                wrong[n_wrong] = l
                n_wrong += 1
        start, stop = bounds(indptr, indices, width, i)
        for k in range(start, stop):
            x = np.float64(data[k])
            if x != 0.0:
                at = column(indices, k, start) * n_labels
                for q in range(n_wrong):
                    out_indices[filled] = at + wrong[q]
                    out_data[filled] = x if y[i, wrong[q]] else -x
                    filled += 1
        if bias >= 0:
            for q in range(n_wrong):
                out_indices[filled] = bias + wrong[q]
                out_data[filled] = 1.0 if y[i, wrong[q]] else -1.0
                filled += 1
        for e in range(edges.shape[0]):
            a = edges[e, 0]
            b = edges[e, 1]
            right = 2 * y[i, a] + y[i, b]
            given = 2 * z[p, a] + z[p, b]
            if right != given:
                put_pair(out_indices, out_data, filled, pair_at + 4 * e, right, given, 1.0)
                filled += 2
        out_indptr[p + 1] = filled
    return out_indices[: max(filled, 1)], out_data[: max(filled, 1)]
