"""The best labelling of a chain whose labels depend on the two before them.

    maximise  start[y_0] + Σ_t score[t, y_t] + Σ_{t>0} transition[y_{t−1}, y_t]
              + Σ_{t>1} triple[y_{t−2}, y_{t−1}, y_t] + end[y_T]

A state is a pair of neighbouring labels: ``value[t, a, b]`` is the best score of the labels 0 … t of which the last two
are a, b. A step takes O(K³) at most. What no label c can make the best is skipped: of all a before b, those for which
value[a, b] + max_c triple[a, b, c] stays below the largest value[a', b] + min_c triple[a', b, c]. Rounding is monotone,
so this never changes the result. Forbidden pairs have −∞ in ``transition``; such states are skipped with the others.
"""

import numpy as np

from . import compiled, inlined
from .chains import node_scores
from .viterbi import longest_of


@compiled
def spans_of(triple, transition, low, high):
    """The smallest and the largest weight that labels a, b may meet at the next label, as far as b, c is allowed."""
    n_labels = transition.shape[0]
    for a in range(n_labels):
        for b in range(n_labels):
            least = np.inf
            most = -np.inf
            for c in range(n_labels):
                if transition[b, c] > -np.inf:
                    least = min(least, triple[a, b, c])
                    most = max(most, triple[a, b, c])
            low[a, b] = least
            high[a, b] = most


@inlined
def begin(score, n_positions, transition, start, value):
    """``value`` of the first positions, of which the very first has one label only: it is value[0, 0]."""
    n_labels = start.size
    for a in range(n_labels):
        value[0, 0, a] = score[0, a] + start[a]
    if n_positions > 1:
        for a in range(n_labels):
            for b in range(n_labels):
                value[1, a, b] = value[0, 0, a] + transition[a, b] + score[1, b]


@compiled
def viterbi(score, n_positions, transition, start, end, triple, low, high, value, path):
    """Fill ``path`` with the best labels and return their score; ``value`` is working memory."""
    n_labels = start.size
    begin(score, n_positions, transition, start, value)
    floor = np.empty(n_labels)
    best = np.empty(n_labels)
    for t in range(2, n_positions):
        before = value[t - 1]
        for b in range(n_labels):
            floor[b] = -np.inf
        for a in range(n_labels):
            for b in range(n_labels):
                floor[b] = max(floor[b], before[a, b] + low[a, b])
        for b in range(n_labels):
            for c in range(n_labels):
                best[c] = -np.inf
            for a in range(n_labels):
                reached = before[a, b]
                if not reached + high[a, b] < floor[b]:
                    for c in range(n_labels):
                        best[c] = max(best[c], reached + triple[a, b, c])
            for c in range(n_labels):
                value[t, b, c] = best[c] + transition[b, c] + score[t, c]
    b = 0
    c = 0
    highest = -np.inf
    for i in range(n_labels if n_positions > 1 else 1):
        for j in range(n_labels):
            if value[n_positions - 1, i, j] + end[j] > highest:
                highest = value[n_positions - 1, i, j] + end[j]
                b = i
                c = j
    path[n_positions - 1] = c
    for t in range(n_positions - 1, 0, -1):
        path[t - 1] = b
        if t == 1:
            break
        best_before = -np.inf
        chosen = 0
        for a in range(n_labels):
            candidate = value[t - 1, a, b] + triple[a, b, c]
            if candidate > best_before:
                best_before = candidate
                chosen = a
        c = b
        b = chosen
    return highest


@compiled
def search(tokens, offsets, w, bias, pairs, triple, ids, cost, scale, y, out_first, out):
    """The best labelling of each example of ``ids``; with scaled costs added where ``y`` is not empty.

    ``out[out_first[p]:out_first[p+1]]`` receives the labels of example ids[p]. Returns the scores, costs included.
    """
    transition, start, end = pairs
    n_labels = start.size
    longest = longest_of(offsets, ids)
    score = np.empty((longest, n_labels))
    value = np.empty((longest, n_labels, n_labels))
    path = np.empty(longest, np.int64)
    low = np.empty((n_labels, n_labels))
    high = np.empty((n_labels, n_labels))
    spans_of(triple, transition, low, high)
    scores = np.zeros(ids.size)
    for p in range(ids.size):
        i = ids[p]
        t0 = offsets[i]
        t1 = offsets[i + 1]
        if t1 == t0:
            continue
        factor = scale[i] if y.size > 0 else 0.0
        node_scores(tokens, t0, t1, n_labels, w, bias, cost, factor, y, score)
        scores[p] = viterbi(score, t1 - t0, transition, start, end, triple, low, high, value, path)
        for t in range(t1 - t0):
            out[out_first[p] + t] = path[t]
    return scores
