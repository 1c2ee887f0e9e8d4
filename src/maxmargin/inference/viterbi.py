"""The best labelling of a chain: scores of labels at every position, scores of neighbouring labels.

    maximise  start[y_0] + Σ_t score[t, y_t] + Σ_{t>0} transition[y_{t−1}, y_t] + end[y_T]

The forward pass keeps only the best values: which predecessor gave them is found again on the way back, for the
one label per position that is needed. That leaves a forward loop the processor can run on whole vectors.
"""

import numpy as np

from ..kernels import compiled
from ..kernels.chains import label_scores


@compiled
def viterbi(score, n_positions, transition, start, end, value, path):
    """Fill ``path`` with the best labels and return their score; ``value`` is working memory like ``score``."""
    n_labels = transition.shape[0]
    for k in range(n_labels):
        value[0, k] = score[0, k] + start[k]
    best = np.empty(n_labels)
    for t in range(1, n_positions):
        first = value[t - 1, 0]
        for k in range(n_labels):
            best[k] = first + transition[0, k]
        for j in range(1, n_labels):
            before = value[t - 1, j]
            for k in range(n_labels):
                best[k] = max(best[k], before + transition[j, k])
        for k in range(n_labels):
            value[t, k] = best[k] + score[t, k]
    last = 0
    highest = -np.inf
    for k in range(n_labels):
        if value[n_positions - 1, k] + end[k] > highest:
            highest = value[n_positions - 1, k] + end[k]
            last = k
    path[n_positions - 1] = last
    for t in range(n_positions - 1, 0, -1):
        best_before = -np.inf
        chosen = 0
        for j in range(n_labels):
            candidate = value[t - 1, j] + transition[j, last]
            if candidate > best_before:
                best_before = candidate
                chosen = j
        last = chosen
        path[t - 1] = last
    return highest


@compiled
def search(tokens, offsets, n_labels, w, layout, forbidden, ids, cost, scale, y, out_first, out):
    """The best labelling of each example of ``ids``; with costs added where ``y`` is not empty.

    ``out[out_first[p]:out_first[p+1]]`` receives the labels of example ids[p]. ``scale`` is the factor of the costs
    for each example. Returns the scores, costs included.
    """
    indptr, indices, values = tokens
    bias, transition_at, start_at, end_at = layout
    longest = 0
    for p in range(ids.size):
        longest = max(longest, offsets[ids[p] + 1] - offsets[ids[p]])
    score = np.empty((longest, n_labels))
    value = np.empty((longest, n_labels))
    path = np.empty(longest, np.int64)
    transition = np.zeros((n_labels, n_labels))
    start = np.zeros(n_labels)
    end = np.zeros(n_labels)
    for j in range(n_labels):
        if start_at >= 0:
            start[j] = w[start_at + j]
        if end_at >= 0:
            end[j] = w[end_at + j]
        for k in range(n_labels):
            if transition_at >= 0:
                transition[j, k] = w[transition_at + j * n_labels + k]
            if forbidden.size > 0 and forbidden[j, k]:
                transition[j, k] = -np.inf
    scores = np.empty(ids.size)
    for p in range(ids.size):
        i = ids[p]
        t0 = offsets[i]
        t1 = offsets[i + 1]
        label_scores(indptr, indices, values, t0, t1, n_labels, w, bias, score)
        if y.size > 0:
            for t in range(t0, t1):
                for k in range(n_labels):
                    score[t - t0, k] += scale[i] * cost[y[t], k]
        scores[p] = viterbi(score, t1 - t0, transition, start, end, value, path)
        for t in range(t1 - t0):
            out[out_first[p] + t] = path[t]
    return scores
