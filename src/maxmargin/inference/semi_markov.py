"""The best segmentation of a sequence: which segments it is cut into, and what label each of them has.

    maximise  Σ_segments (Σ_{s≤t<e} token[t, k] + first[s, k] + last[e−1, k] + length[e−s, k])  +  Σ transition[k', k]

over segments s … e−1 with labels k that follow one another, k' being the label of the segment before. With

    into[s, k] = first[s, k] + max_j (best[s, j] + transition[j, k])
    best[e, k] = max_l (last[e−1, k] + Σ_{e−l≤t<e} token[t, k] + into[e−l, k] + length[l, k])

n tokens take O(n·K·(K + L)) operations for K labels and segments of L tokens at most (Sarawagi and Cohen, *Semi-Markov
conditional random fields*, 2004). Sums over tokens grow with the segment, and are not differences of sums over the
sequence: rounding is that of the segment alone. Which length and which label before were best is found again on the way
back.

A segmentation is kept as two numbers for each token: its label, and the length of the segment that begins there, or 0.
"""

import numpy as np

from ..kernels import compiled, inlined
from ..kernels.chains import label_scores
from ..kernels.semi_markov import TOKENS
from .viterbi import longest_of


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
