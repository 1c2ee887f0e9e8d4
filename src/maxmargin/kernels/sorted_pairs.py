"""Sums over all pairs of a group in O(n log n): rows are sorted by score, and grades counted in Fenwick trees.

Group g consists of the rows ``order[start[g]]`` … ``order[start[g+1] − 1]``, scores ascending; ``rank`` numbers the
grades of a group from 0. A pair (a, b) has grade_a > grade_b. Scores are whole numbers q, so that all sums are exact.

    worse_a = {b: grade_b < grade_a, q_a − q_b < margin},    better_b = {a: b in worse_a}

The pairs whose margin is missed are those of a merge of two sorted lists (Joachims, *Training linear SVMs in linear
time*, 2006); a tree over the grades instead of one merge for each of them is from Lee and Lin, *Large-scale linear
rankSVM*, 2014.
"""

import numpy as np

from . import compiled, inlined
from .rows import bounds, column


@compiled
def sort(order, start, q):
    """Sort the rows of every group by q."""
    for g in range(start.size - 1):
        members = order[start[g] : start[g + 1]]
        members[:] = members[np.argsort(q[members])]


@compiled
def hinge_sums(order, start, rank, q, margin, plus, minus, degree):
    """For every row i:

    plus_i = Σ margin − (q_i − q_b) over b in worse_i,    minus_i = Σ margin − (q_a − q_i) over a in better_i,
    degree_i = |worse_i| + |better_i|
    """
    count = np.zeros(rank.max() + 2, np.int64)
    total = np.zeros_like(count)
    for g in range(start.size - 1):
        first = start[g]
        last = start[g + 1]
        levels = _levels(order, rank, first, last)
        count[: levels + 1] = 0
        total[: levels + 1] = 0
        j = last - 1
        for p in range(last - 1, first - 1, -1):
            a = order[p]
            while j >= first and q[order[j]] > q[a] - margin:
                _insert(count, total, levels, rank[order[j]], q[order[j]])
                j -= 1
            n, s = _below(count, total, rank[a])
            plus[a] = n * (margin - q[a]) + s
            degree[a] = n
        count[: levels + 1] = 0
        total[: levels + 1] = 0
        inserted = 0
        sum_inserted = 0
        j = first
        for p in range(first, last):
            b = order[p]
            while j < last and q[order[j]] < q[b] + margin:
                _insert(count, total, levels, rank[order[j]], q[order[j]])
                inserted += 1
                sum_inserted += q[order[j]]
                j += 1
            n, s = _below(count, total, rank[b] + 1)
            n = inserted - n
            minus[b] = n * (margin + q[b]) - (sum_inserted - s)
            degree[b] += n


@inlined
def _levels(order, rank, first, last):
    """How many places the tree of these rows needs."""
    found = 0
    for p in range(first, last):
        found = max(found, np.int64(rank[order[p]]) + 1)
    return found


@inlined
def _insert(count, total, levels, rank, value):
    i = np.int64(rank) + 1
    while i <= levels:
        count[i] += 1
        total[i] += value
        i += i & -i


@inlined
def _below(count, total, rank):
    """How many were inserted whose rank is smaller, and their sum."""
    n = 0
    s = 0
    i = np.int64(rank)
    while i > 0:
        n += count[i]
        s += total[i]
        i -= i & -i
    return n, s


@compiled
def curvature(rows, order, start, rank, q, margin, width, degree, out):
    """out += G with G + Gᵀ = Σ (x_a − x_b)(x_a − x_b)ᵀ over all pairs with margin − width ≤ q_a − q_b < margin.

    ``degree`` has the number of these pairs of each row. G = Σ_a x_a (½ degree_a x_a − Σ_b x_b)ᵀ, where b goes through
    the pairs in which a is the better one: their rows come into a tree and leave it as a window slides down the scores.
    """
    indptr, indices, data, d, _, _, _ = rows
    tree = np.zeros((rank.max() + 2) * d)
    t = np.empty(d)
    for g in range(start.size - 1):
        first = start[g]
        last = start[g + 1]
        levels = _levels(order, rank, first, last)
        tree[: (levels + 1) * d] = 0.0
        enter = last - 1
        leave = last - 1
        for p in range(last - 1, first - 1, -1):
            a = order[p]
            while enter >= first and q[order[enter]] > q[a] - margin:
                _add_row(indptr, indices, data, d, order[enter], 1.0, tree, levels, rank[order[enter]])
                enter -= 1
            while leave > enter and q[order[leave]] > q[a] - margin + width:
                _add_row(indptr, indices, data, d, order[leave], -1.0, tree, levels, rank[order[leave]])
                leave -= 1
            if degree[a] == 0:
                continue
            t[:] = 0.0
            i = np.int64(rank[a])
            while i > 0:
                for k in range(d):
                    t[k] -= tree[i * d + k]
                i -= i & -i
            begin, end = bounds(indptr, indices, d, a)
            for k in range(begin, end):
                t[column(indices, k, begin)] += 0.5 * degree[a] * data[k]
            for k in range(begin, end):
                j = column(indices, k, begin)
                x = np.float64(data[k])
                for m in range(d):
                    out[j, m] += x * t[m]


@inlined
def _add_row(indptr, indices, data, d, r, c, tree, levels, rank):
    begin, end = bounds(indptr, indices, d, r)
    i = np.int64(rank) + 1
    while i <= levels:
        for k in range(begin, end):
            tree[i * d + column(indices, k, begin)] += c * data[k]
        i += i & -i
