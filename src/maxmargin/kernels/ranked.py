"""The order of the rows of each query that violates the margin of a ranking measure most.

Average precision (Yue, Finley, Radlinski, Joachims 2007, algorithm 1): relevant rows and others, each sorted by score
s and t, are merged. Putting the j-th of the others before relevant rows i … n costs and gains

    Σ_{k ≥ i} [ (k/(k + j − 1) − k/(k + j))/n − 2 (s_k − t_j)/(n m) ]

and every j may choose its i alone: the terms fall with j, so that later rows never want to be further up.
"""

import numpy as np

from . import compiled
from .rows import dot


@compiled
def scores(rows, offsets, ids, w, first, out):
    """w·x of the rows of the queries ``ids``, those of the p-th at ``out[first[p]]`` … ``out[first[p+1] − 1]``."""
    indptr, indices, data, width, bias, _, _ = rows
    for p in range(ids.size):
        begin = offsets[ids[p]]
        for r in range(begin, offsets[ids[p] + 1]):
            out[first[p] + r - begin] = dot(indptr, indices, data, width, bias, r, w)


@compiled
def least_precise(offsets, ids, relevant, first, score, value):
    """value: the order that maximises 1 − average precision + w·φ, as whole numbers that fall with the position."""
    for p in range(ids.size):
        begin = offsets[ids[p]]
        size = offsets[ids[p] + 1] - begin
        order = np.argsort(-score[first[p] : first[p] + size])
        good = np.empty(size, np.int64)
        other = np.empty(size, np.int64)
        n = 0
        m = 0
        for q in range(size):
            if relevant[begin + order[q]]:
                good[n] = order[q]
                n += 1
            else:
                other[m] = order[q]
                m += 1
        left = size
        taken = 0  # of the relevant rows
        for j in range(1, m + 1):
            t = score[first[p] + other[j - 1]]
            before = n + 1
            best = 0.0
            total = 0.0
            for k in range(n, taken, -1):
                s = score[first[p] + good[k - 1]]
                total += (k / (k + j - 1) - k / (k + j)) / n - 2.0 * (s - t) / (np.float64(n) * m)
                if total > best:
                    best = total
                    before = k
            while taken < before - 1:
                left -= 1
                value[first[p] + good[taken]] = left
                taken += 1
            left -= 1
            value[first[p] + other[j - 1]] = left
        while taken < n:
            left -= 1
            value[first[p] + good[taken]] = left
            taken += 1


@compiled
def sorted_by(first, key, value):
    """value: the order of falling keys, as whole numbers that fall with the position."""
    for p in range(first.size - 1):
        size = first[p + 1] - first[p]
        order = np.argsort(-key[first[p] : first[p + 1]])
        for q in range(size):
            value[first[p] + order[q]] = size - 1 - q
