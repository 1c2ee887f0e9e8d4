"""Frank-Wolfe steps on the dual of a structural SVM, one example at a time, over the planes that are cached of it.

    maximise   D(α) = Σ l_ij α_ij − Ω*(v),   v = Σ α_ij x_ij,   α_i in C_i·simplex

The truth is the last corner of the simplex: a plane of zeros, whose share is what the budget leaves over. With
g_j = l_j − w·x_j, the slopes, u the steepest corner (which the oracle names) and a the flattest one that has a share,
a step of example i goes along

    toward     d = C_i e_u − α_i,   by 1 at most          Lacoste-Julien, Jaggi, Schmidt, Pletscher (2013), Algorithm 4
    away       d = α_i − C_i e_a,   until α_ia is zero, where that is steeper than toward
    pairwise   d = e_u − e_a,       until α_ia is zero    Osokin, Alayrac, Lukasewitz, Dokania, Lacoste-Julien (2016)

and as far as an exact line search says: g·d/dᵀGd with the Gram block G_jk = x_ijᵀ S x_ik. Where Ω* is not quadratic, S
bounds its curvature from above, and a step never lowers D. C_i max_j g_j − Σ_j α_ij g_ij is the gap of the block; the
gaps of all examples at the same w sum up to the duality gap.
"""

import numpy as np

from . import compiled, inlined, maps
from .rows import at

_NOTHING = 1e-12  # of the budget: what rounding has left of the share of the truth, which no step should move
LOOK, TOWARD, AWAY, PAIRWISE = range(4)


@inlined
def _direction(g, share, k, c, up, down, gap, kind, d):
    """The direction, in ``d[:k]``, and the longest step along it."""
    for j in range(k):
        d[j] = 0.0
    if kind == PAIRWISE:
        d[up] = 1.0
        d[down] = -1.0
        return share[down]
    paid = c * g[up] - gap
    if kind == AWAY and paid - c * g[down] > gap and share[down] < c:
        for j in range(k):
            d[j] = share[j]
        d[down] -= c
        return share[down] / (c - share[down])
    for j in range(k):
        d[j] = -share[j]
    d[up] += c
    return 1.0


@compiled
def visit(rows, slots, budget, alpha, m, ids, kind, gaps):
    """One step for each of some examples, or only a look; ``gaps`` gets the gaps before. Returns how Σ l α changed."""
    indptr, indices, data, width = rows
    row, shift, loss, first, count, gram_first, gram, hot = slots
    longest = 0
    for p in range(ids.size):
        longest = max(longest, np.int64(count[ids[p]]))
    g = np.empty(longest + 1)
    share = np.empty(longest + 1)
    d = np.empty(longest + 1)
    change = 0.0
    for p in range(ids.size):
        i = ids[p]
        start = first[i]
        k = np.int64(count[i])
        c = at(budget, i)
        g[k] = 0.0
        share[k] = c
        for j in range(k):
            s = start + j
            g[j] = loss[s] - maps.score(indptr, indices, data, width, 0.0, row[s], shift[i], m)
            share[j] = alpha[s]
            share[k] -= alpha[s]
        if share[k] <= _NOTHING * c:
            share[k] = 0.0
        up = k
        down = -1
        paid = 0.0
        for j in range(k + 1):
            paid += share[j] * g[j]
            if g[j] > g[up]:
                up = j
            if share[j] > 0.0 and (down < 0 or g[j] < g[down]):
                down = j
        gaps[i] = max(c * g[up] - paid, 0.0)
        if kind == LOOK or gaps[i] <= 0.0 or down < 0 or down == up:
            continue
        most = _direction(g, share, k + 1, c, up, down, gaps[i], kind, d)
        slope = 0.0
        curvature = 0.0
        n_slots = first[i + 1] - start
        for j in range(k):
            slope += g[j] * d[j]
            if d[j] != 0.0:
                for l in range(k):
                    curvature += d[j] * d[l] * gram[gram_first[i] + j * n_slots + l]
        if slope <= 0.0:
            continue
        step = most if slope >= most * curvature else slope / curvature
        for j in range(k):
            if d[j] == 0.0:
                continue
            s = start + j
            moved = max(share[j] + step * d[j], 0.0)
            if step == most and j == down and d[j] < 0.0 and kind != TOWARD:
                moved = 0.0
            alpha[s] = moved
            change += (moved - share[j]) * loss[s]
            maps.move(indptr, indices, data, width, 0.0, row[s], shift[i], moved - share[j], m)
    return change
