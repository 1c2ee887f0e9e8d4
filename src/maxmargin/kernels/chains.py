"""Whole data sets of chains: label scores from sparse features, and the feature difference of two labellings.

Weights are stored in blocks: emissions feature by feature, ``w[f*K + k]``, so that one feature of a token adds a
run of K neighbours to its label scores; then, where the model has them, bias (K), transitions (K×K, from × to),
start (K) and end (K). An offset of −1 says that a block is missing.
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


@inlined
def _count(indptr, t0, t1, y, z, z0, bias):
    """Most entries that the difference of two labellings can have."""
    n = 4
    for t in range(t0, t1):
        if y[t] != z[z0 + t - t0]:
            n += 2 * (indptr[t + 1] - indptr[t]) + 2 * (bias >= 0)
        n += 2
    return n


@compiled
def differences(indptr, indices, values, offsets, y, n_labels, layout, ids, z, z_first, out_indptr):
    """Rows φ(x, y) − φ(x, z) for some examples, as (indices, data); ``z[z_first[p]:]`` labels example ids[p]."""
    bias, transition, start, end = layout
    room = 0
    longest = 0
    for p in range(ids.size):
        n = _count(indptr, offsets[ids[p]], offsets[ids[p] + 1], y, z, z_first[p], bias)
        room += n
        longest = max(longest, n)
    keys = np.empty(longest, np.int64)
    vals = np.empty(longest, np.float64)
    # Sorted together: where a weight stands, and behind it which entry it came from.
    packed = np.empty(longest, np.int64)
    out_indices = np.empty(room + 1, np.int32)
    out_data = np.empty(room + 1, np.float32)
    shift = np.int64(1)
    while shift < longest:
        shift *= 2
    filled = 0
    out_indptr[0] = 0
    for p in range(ids.size):
        t0 = offsets[ids[p]]
        t1 = offsets[ids[p] + 1]
        zp = z_first[p] - t0
        n = 0
        for t in range(t0, t1):
            a = np.int64(y[t])
            b = np.int64(z[zp + t])
            if a != b:
                for q in range(indptr[t], indptr[t + 1]):
                    keys[n] = np.int64(indices[q]) * n_labels + a
                    vals[n] = values[q]
                    keys[n + 1] = np.int64(indices[q]) * n_labels + b
                    vals[n + 1] = -values[q]
                    n += 2
                if bias >= 0:
                    keys[n] = bias + a
                    vals[n] = 1.0
                    keys[n + 1] = bias + b
                    vals[n + 1] = -1.0
                    n += 2
            if transition >= 0 and t > t0:
                before_a = np.int64(y[t - 1])
                before_b = np.int64(z[zp + t - 1])
                if a != b or before_a != before_b:
                    keys[n] = transition + before_a * n_labels + a
                    vals[n] = 1.0
                    keys[n + 1] = transition + before_b * n_labels + b
                    vals[n + 1] = -1.0
                    n += 2
        if start >= 0 and y[t0] != z[zp + t0]:
            keys[n] = start + y[t0]
            vals[n] = 1.0
            keys[n + 1] = start + z[zp + t0]
            vals[n + 1] = -1.0
            n += 2
        if end >= 0 and y[t1 - 1] != z[zp + t1 - 1]:
            keys[n] = end + y[t1 - 1]
            vals[n] = 1.0
            keys[n + 1] = end + z[zp + t1 - 1]
            vals[n + 1] = -1.0
            n += 2
        for q in range(n):
            packed[q] = keys[q] * shift + q
        packed[:n].sort()
        q = 0
        while q < n:
            key = packed[q] // shift
            total = 0.0
            while q < n and packed[q] // shift == key:
                total += vals[packed[q] % shift]
                q += 1
            if total != 0.0:
                out_indices[filled] = key
                out_data[filled] = total
                filled += 1
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
