"""The best labelling of a chain: scores of labels at every position, scores of neighbouring labels.

    maximise  start[y_0] + Σ_t score[t, y_t] + Σ_{t>0} transition[y_{t−1}, y_t] + end[y_T]

Searches over data take the transition, start and end scores as ``pairs``, forbidden transitions as −∞.
The forward pass keeps only the best values: which predecessor gave them is found again on the way back, for the
one label per position that is needed. That leaves a forward loop the processor can run on whole vectors.
"""

import numpy as np

from . import compiled
from .chains import label_scores, node_scores


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
        together = n_labels - (n_labels - 1) % 4
        for j in range(1, together, 4):  # four rows at a time: ``best`` is loaded and stored a quarter as often
            before0 = value[t - 1, j]
            before1 = value[t - 1, j + 1]
            before2 = value[t - 1, j + 2]
            before3 = value[t - 1, j + 3]
            for k in range(n_labels):
                low = max(before0 + transition[j, k], before1 + transition[j + 1, k])
                high = max(before2 + transition[j + 2, k], before3 + transition[j + 3, k])
                best[k] = max(best[k], low, high)
        for j in range(together, n_labels):
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
def longest_of(offsets, ids):
    """The most tokens, nodes or edges that one of these examples has."""
    longest = 0
    for p in range(ids.size):
        longest = max(longest, offsets[ids[p] + 1] - offsets[ids[p]])
    return longest


@compiled
def search(tokens, offsets, w, bias, pairs, ids, cost, scale, y, out_first, out):
    """The best labelling of each example of ``ids``; with scaled costs added where ``y`` is not empty.

    ``out[out_first[p]:out_first[p+1]]`` receives the labels of example ids[p]. Returns the scores, costs included.
    """
    transition, start, end = pairs
    n_labels = start.size
    longest = longest_of(offsets, ids)
    score = np.empty((longest, n_labels))
    value = np.empty((longest, n_labels))
    path = np.empty(longest, np.int64)
    scores = np.zeros(ids.size)
    for p in range(ids.size):
        i = ids[p]
        t0 = offsets[i]
        t1 = offsets[i + 1]
        if t1 == t0:
            continue
        factor = scale[i] if y.size > 0 else 0.0
        node_scores(tokens, t0, t1, n_labels, w, bias, cost, factor, y, score)
        scores[p] = viterbi(score, t1 - t0, transition, start, end, value, path)
        for t in range(t1 - t0):
            out[out_first[p] + t] = path[t]
    return scores


@compiled
def search_slack(tokens, offsets, w, bias, pairs, ids, cost, scale, y, out_first, out):
    """argmax of loss·(1 + score − score of the truth), the loss being the number of wrong labels times ``scale``.

    For every number of wrong labels the best score is found (the number becomes part of the state), then the best
    product. ``cost`` is not looked at.
    """
    indptr, indices, values = tokens
    transition, start, end = pairs
    n_labels = start.size
    longest = longest_of(offsets, ids)
    score = np.empty((longest, n_labels))
    value = np.empty((longest, longest + 1, n_labels))
    for p in range(ids.size):
        i = ids[p]
        t0 = offsets[i]
        n = offsets[i + 1] - t0
        label_scores(indptr, indices, values, t0, t0 + n, n_labels, w, bias, score)
        truth = 0.0
        for t in range(n):
            truth += score[t, y[t0 + t]]
            truth += transition[y[t0 + t - 1], y[t0 + t]] if t > 0 else start[y[t0]]
        truth += end[y[t0 + n - 1]]
        value[0, : n + 1] = -np.inf
        for k in range(n_labels):
            value[0, np.int64(k != y[t0]), k] = start[k] + score[0, k]
        for t in range(1, n):
            value[t, : n + 1] = -np.inf
            for k in range(n_labels):
                wrong = np.int64(k != y[t0 + t])
                for errors in range(t + 1):
                    for j in range(n_labels):
                        candidate = value[t - 1, errors, j] + transition[j, k] + score[t, k]
                        if candidate > value[t, errors + wrong, k]:
                            value[t, errors + wrong, k] = candidate
        best = 0.0
        best_errors = 0
        last = np.int64(y[t0 + n - 1])
        for errors in range(1, n + 1):
            for k in range(n_labels):
                total = scale[i] * errors * (1.0 + value[n - 1, errors, k] + end[k] - truth)
                if total > best:
                    best = total
                    best_errors = errors
                    last = k
        errors = best_errors
        for t in range(n - 1, -1, -1):
            out[out_first[p] + t] = last
            errors -= np.int64(last != y[t0 + t])
            if t == 0:
                break
            chosen = 0
            highest = -np.inf
            for j in range(n_labels):
                if value[t - 1, errors, j] + transition[j, last] > highest:
                    highest = value[t - 1, errors, j] + transition[j, last]
                    chosen = j
            last = np.int64(chosen)


@compiled
def k_best(tokens, offsets, w, bias, pairs, n_best):
    """The ``n_best`` best labellings of the first example, best first: (labels, scores)."""
    indptr, indices, values = tokens
    transition, start, end = pairs
    n_labels = start.size
    n = offsets[1] - offsets[0]
    score = np.empty((n, n_labels))
    label_scores(indptr, indices, values, offsets[0], offsets[1], n_labels, w, bias, score)
    # For each position and label the best labellings that end there: value, label before, rank there.
    value = np.full((n, n_labels, n_best), -np.inf)
    before = np.zeros((n, n_labels, n_best), np.int64)
    rank = np.zeros((n, n_labels, n_best), np.int64)
    for k in range(n_labels):
        value[0, k, 0] = start[k] + score[0, k]
    for t in range(1, n):
        for k in range(n_labels):
            for j in range(n_labels):
                for r in range(n_best):
                    candidate = value[t - 1, j, r] + transition[j, k] + score[t, k]
                    if candidate <= value[t, k, n_best - 1]:
                        break
                    q = n_best - 1
                    while q > 0 and value[t, k, q - 1] < candidate:
                        value[t, k, q] = value[t, k, q - 1]
                        before[t, k, q] = before[t, k, q - 1]
                        rank[t, k, q] = rank[t, k, q - 1]
                        q -= 1
                    value[t, k, q] = candidate
                    before[t, k, q] = j
                    rank[t, k, q] = r
    final = np.empty(n_labels * n_best)
    for k in range(n_labels):
        for r in range(n_best):
            final[k * n_best + r] = value[n - 1, k, r] + end[k]
    order = np.argsort(-final)
    count = 0
    while count < min(n_best, order.size) and final[order[count]] > -np.inf:
        count += 1
    paths = np.empty((count, n), np.int32)
    for q in range(count):
        k = order[q] // n_best
        r = order[q] % n_best
        for t in range(n - 1, -1, -1):
            paths[q, t] = k
            k, r = before[t, k, r], rank[t, k, r]
    return paths, final[order[:count]]


@compiled
def margins(tokens, offsets, w, bias, pairs, y):
    """For each token, the best score with its label in ``y`` minus the best score with any other label there."""
    indptr, indices, values = tokens
    transition, start, end = pairs
    n_labels = start.size
    longest = longest_of(offsets, np.arange(offsets.size - 1))
    score = np.empty((longest, n_labels))
    ahead = np.empty((longest, n_labels))
    behind = np.empty((longest, n_labels))
    out = np.empty(offsets[-1])
    for i in range(offsets.size - 1):
        t0 = offsets[i]
        n = offsets[i + 1] - t0
        if n == 0:
            continue
        label_scores(indptr, indices, values, t0, t0 + n, n_labels, w, bias, score)
        for k in range(n_labels):
            behind[0, k] = start[k]
            ahead[n - 1, k] = end[k]
        for t in range(1, n):
            for k in range(n_labels):
                behind[t, k] = -np.inf
                ahead[n - 1 - t, k] = -np.inf
                for j in range(n_labels):
                    behind[t, k] = max(behind[t, k], behind[t - 1, j] + score[t - 1, j] + transition[j, k])
                    after = transition[k, j] + score[n - t, j] + ahead[n - t, j]
                    ahead[n - 1 - t, k] = max(ahead[n - 1 - t, k], after)
        for t in range(n):
            own = -np.inf
            other = -np.inf
            for k in range(n_labels):
                total = behind[t, k] + score[t, k] + ahead[t, k]
                if k == y[t0 + t]:
                    own = total
                else:
                    other = max(other, total)
            out[t0 + t] = own - other
    return out
