"""Segmentations: the best one of a sequence, their losses, the feature difference of two of them, lists of segments.

    maximise  Σ_segments (Σ_{s≤t<e} token[t, k] + first[s, k] + last[e−1, k] + length[e−s, k])  +  Σ transition[k', k]

over segments s … e−1 with labels k that follow one another, k' being the label of the segment before. With

    into[s, k] = first[s, k] + max_j (best[s, j] + transition[j, k])
    best[e, k] = max_l (last[e−1, k] + Σ_{e−l≤t<e} token[t, k] + into[e−l, k] + length[l, k])

n tokens take O(n·K·(K + L)) operations for K labels and segments of L tokens at most (Sarawagi and Cohen, *Semi-Markov
conditional random fields*, 2004). Sums over tokens grow with the segment, and are not differences of sums over the
sequence: rounding is that of the segment alone. Which length and which label before were best is found again on the way
back.

A segmentation is two numbers for each token: its label, and the length of the segment that begins there, or 0. Weights
are stored in blocks: of each feature those of the K labels as any token of a segment, then as its first one and as its
last one (or none of these two); then lengths (longest × K) and transitions (K×K, from × to). An offset of −1 says that
a block is missing.
"""

import numpy as np

from . import compiled, inlined
from .chains import label_scores, put_merged, rooms_for
from .viterbi import longest_of

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
    keys, vals, spare_keys, spare_vals, run = rooms_for(longest)
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


@inlined
def add_costs(t0, n, kind, scale, outside, y, y_length, score, entry):
    """Costs of answers: of tokens, into their scores; of what depends on where segments begin, into ``entry``."""
    n_labels = entry.shape[1]
    for t in range(n):
        true = y[t0 + t]
        begins = y_length[t0 + t] > 0
        if kind == TOKENS:
            for k in range(n_labels):
                if begins or k != true:
                    score[t, k] += scale
            entry[t, true] += -scale if begins else scale
        else:
            for k in range(n_labels):
                if k != outside:
                    entry[t, k] += scale


@compiled
def best_segments(score, entry, n, lengths, transition, refund, outside, t0, y, y_length, best, labels, sizes):
    """Fill ``labels`` and ``sizes`` with the best segmentation and return its score.

    ``score`` has the scores of tokens, and those of first and last tokens where the model has such weights. ``entry``
    has what is added where segments begin, and becomes ``into``. True segments get a ``refund``.
    """
    n_labels = transition.shape[0]
    boundaries = score.shape[1] > n_labels
    run = np.empty(n_labels)
    for e in range(1, n + 1):
        s = e - 1
        for k in range(n_labels):
            run[k] = 0.0 if s == 0 else -np.inf
        for j in range(n_labels if s > 0 else 0):
            for k in range(n_labels):
                run[k] = max(run[k], best[s, j] + transition[j, k])
        for k in range(n_labels):
            entry[s, k] += run[k]
            if boundaries:
                entry[s, k] += score[s, n_labels + k]
        for k in range(n_labels):
            run[k] = score[s, 2 * n_labels + k] if boundaries else 0.0
            best[e, k] = -np.inf
        for size in range(1, min(e, lengths.shape[0]) + 1):
            s = e - size
            kept = 0.0
            known = refund != 0.0 and y_length[t0 + s] == size and y[t0 + s] != outside
            if known:
                kept = entry[s, y[t0 + s]]
                entry[s, y[t0 + s]] = kept - refund
            for k in range(n_labels):
                run[k] += score[s, k]
                best[e, k] = max(best[e, k], run[k] + entry[s, k] + lengths[size - 1, k])
            if known:
                entry[s, y[t0 + s]] = kept
    label = 0
    highest = -np.inf
    for k in range(n_labels):
        if best[n, k] > highest:
            highest = best[n, k]
            label = k
    e = n
    while e > 0:
        total = score[e - 1, 2 * n_labels + label] if boundaries else 0.0
        chosen = 1
        reached = -np.inf
        for size in range(1, min(e, lengths.shape[0]) + 1):
            s = e - size
            known = refund != 0.0 and y_length[t0 + s] == size and y[t0 + s] == label and label != outside
            total += score[s, label]
            candidate = total + (entry[s, label] - refund if known else entry[s, label]) + lengths[size - 1, label]
            if candidate > reached:
                reached = candidate
                chosen = size
        s = e - chosen
        for t in range(s, e):
            labels[t] = label
            sizes[t] = 0
        sizes[s] = chosen
        before = 0
        reached = -np.inf
        for j in range(n_labels):
            if s > 0 and best[s, j] + transition[j, label] > reached:
                reached = best[s, j] + transition[j, label]
                before = j
        label = before
        e = s
    return highest


@compiled
def search(
    tokens, offsets, w, width, lengths, transition, ids, kind, scale, outside, y, y_length, out_first, out, out_length
):
    """The best segmentation of each example of ``ids``; with scaled costs of a ``kind`` added where ``y`` is not empty.

    ``width`` is the number of weights of one feature. ``out[out_first[p]:]`` receives the labels of example ids[p],
    ``out_length`` the lengths of segments where they begin, 0 elsewhere. Returns the scores, costs included.
    """
    indptr, indices, values = tokens
    n_labels = transition.shape[0]
    longest = longest_of(offsets, ids)
    score = np.empty((longest, width))
    entry = np.empty((longest, n_labels))
    best = np.empty((longest + 1, n_labels))
    scores = np.zeros(ids.size)
    for p in range(ids.size):
        i = ids[p]
        t0 = offsets[i]
        n = offsets[i + 1] - t0
        if n == 0:
            continue
        label_scores(indptr, indices, values, t0, t0 + n, width, w, -1, score)
        entry[:n] = 0.0
        refund = 0.0
        if y.size > 0:
            add_costs(t0, n, kind, scale[i], outside, y, y_length, score, entry)
            refund = 2.0 * scale[i] if kind != TOKENS else 0.0
        a = out_first[p]
        found = (out[a : a + n], out_length[a : a + n])
        scores[p] = best_segments(
            score, entry, n, lengths, transition, refund, outside, t0, y, y_length, best, found[0], found[1]
        )
    return scores
