"""Whole data sets of segmentations: their losses, the feature difference of two of them, and their lists of segments.

A segmentation is two numbers for each token: its label, and the length of the segment that begins there, or 0. Weights
are stored in blocks: of each feature those of the K labels as any token of a segment, then as its first one and as its
last one (or none of these two); then lengths (longest × K) and transitions (K×K, from × to). An offset of −1 says that
a block is missing.
"""

import numpy as np

from . import compiled, inlined
from .chains import put_merged

TOKENS = 1
SEGMENTS = 2
"""What losses count: tokens of which label or beginning is wrong, or segments that only one of both has."""


@inlined
def _ends(t, t1, length):
    """Whether the last token of a segment is at t."""
    return t == t1 - 1 or length[t + 1] > 0


@inlined
def _put(keys, values, n, at, a, b, value):
    """+value for a and −value for b, in ascending order; nothing where they are the same, or negative."""
    if a == b:
        return n
    if min(a, b) >= 0:
        keys[n] = at + min(a, b)
        values[n] = value if a < b else -value
        n += 1
    keys[n] = at + max(a, b)
    values[n] = value if a > b else -value
    return n + 1


@inlined
def _marks(t, t1, labels, length, n_labels, boundaries):
    """The places of the weights that each feature of a token meets: as a token of its segment, the first, the last."""
    label = np.int64(labels[t])
    first = n_labels + label if boundaries and length[t] > 0 else -1
    last = 2 * n_labels + label if boundaries and _ends(t, t1, length) else -1
    return label, first, last


@compiled
def losses(offsets, y, y_length, kind, scale, outside, ids, z, z_length, z_first):
    """What each answer costs that is given for an example of ``ids``."""
    out = np.zeros(ids.size)
    for p in range(ids.size):
        i = ids[p]
        wrong = 0
        for t in range(offsets[i], offsets[i + 1]):
            at = z_first[p] + t - offsets[i]
            if kind == TOKENS:
                wrong += y[t] != z[at] or (y_length[t] > 0) != (z_length[at] > 0)
            elif y[t] != z[at] or y_length[t] != z_length[at]:
                wrong += y_length[t] > 0 and y[t] != outside
                wrong += z_length[at] > 0 and z[at] != outside
        out[p] = wrong * scale[i]
    return out


@compiled
def segments(first, labels, length, outside, out_first):
    """Rows (start, end, label) of segmentations that stand one after another, those of the p-th from out_first[p] on.

    Segments of the label ``outside`` are left out.
    """
    count = 0
    for t in range(length.size):
        count += length[t] > 0 and labels[t] != outside
    out = np.empty((count, 3), np.int32)
    at = 0
    for p in range(first.size - 1):
        out_first[p] = at
        for t in range(first[p], first[p + 1]):
            if length[t] > 0 and labels[t] != outside:
                out[at, 0] = t - first[p]
                out[at, 1] = t - first[p] + length[t]
                out[at, 2] = labels[t]
                at += 1
    out_first[first.size - 1] = at
    return out


@compiled
def differences(
    indptr, indices, values, offsets, y, y_length, n_labels, layout, ids, z, z_length, z_first, out_indptr, kind
):
    """Rows φ(x, y) − φ(x, z) for some examples, as (indices, data); ``z[z_first[p]:]`` labels example ids[p].

    The features of a token ascend, so every token that differs gives a run of ascending entries, and another where
    segments begin. ``kind`` is an array of the type that the data shall have.
    """
    width, length_at, transition = layout
    boundaries = width > n_labels
    room = 0
    longest = 0
    for p in range(ids.size):
        n = 0
        t1 = offsets[ids[p] + 1]
        shift = z_first[p] - offsets[ids[p]]
        for t in range(offsets[ids[p]], t1):
            here = _marks(t, t1, y, y_length, n_labels, boundaries)
            if here != _marks(shift + t, shift + t1, z, z_length, n_labels, boundaries):
                n += 6 * (indptr[t + 1] - indptr[t])
            n += 4
        room += n
        longest = max(longest, n)
    keys = np.empty(longest, np.int64)
    vals = np.empty(longest)
    spare_keys = np.empty(longest, np.int64)
    spare_vals = np.empty(longest)
    run = np.empty(longest + 1, np.int64)
    out_indices = np.empty(room + 1, np.int32)
    out_data = np.empty(room + 1, kind.dtype)
    filled = 0
    out_indptr[0] = 0
    for p in range(ids.size):
        t0 = offsets[ids[p]]
        t1 = offsets[ids[p] + 1]
        shift = z_first[p] - t0
        n = 0
        runs = 0
        for t in range(t0, t1):
            a, first_a, last_a = _marks(t, t1, y, y_length, n_labels, boundaries)
            b, first_b, last_b = _marks(shift + t, shift + t1, z, z_length, n_labels, boundaries)
            if a != b or first_a != first_b or last_a != last_b:
                run[runs] = n
                runs += 1
                for q in range(indptr[t], indptr[t + 1]):
                    at = np.int64(indices[q]) * width
                    x = np.float64(values[q])
                    n = _put(keys, vals, n, at, a, b, x)
                    n = _put(keys, vals, n, at, first_a, first_b, x)
                    n = _put(keys, vals, n, at, last_a, last_b, x)
            a_begins = y_length[t] > 0
            b_begins = z_length[shift + t] > 0
            if a_begins or b_begins:
                run[runs] = n
                runs += 1
                if length_at >= 0:
                    size_a = (np.int64(y_length[t]) - 1) * n_labels + a if a_begins else -1
                    size_b = (np.int64(z_length[shift + t]) - 1) * n_labels + b if b_begins else -1
                    n = _put(keys, vals, n, length_at, size_a, size_b, 1.0)
                if transition >= 0 and t > t0:
                    step_a = np.int64(y[t - 1]) * n_labels + a if a_begins else -1
                    step_b = np.int64(z[shift + t - 1]) * n_labels + b if b_begins else -1
                    n = _put(keys, vals, n, transition, step_a, step_b, 1.0)
                runs -= run[runs - 1] == n
        run[runs] = n
        filled = put_merged(keys, vals, spare_keys, spare_vals, run, runs, out_indices, out_data, filled)
        out_indptr[p + 1] = filled
    return out_indices[: max(filled, 1)], out_data[: max(filled, 1)]
