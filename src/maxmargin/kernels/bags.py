"""Bags of instances, one of which is looked at: scores, the search for the worst offender, differences of rows.

    score of class k and instance z = w_b·(x_z, bias),   b = k (shared states) or (k, z) (a block of weights for each)

Instances are stored rows, those of bag i next to each other from ``first[i]``. A block whose weights are all zero is
not ``alive``: its score is zero and its instance is not read.
"""

import numpy as np

from . import compiled, inlined
from .rows import bounds, column, dot, next_difference


@inlined
def _block(k, z, n_states):
    return k * n_states + (z if n_states > 1 else 0)


@compiled
def search(rows, first, ids, label, cost, w, alive, n_classes, n_states, best_class, best_instance, best_score):
    """For each bag of ``ids`` the class and instance with the largest score, plus cost where ``cost`` is not empty.

    Ties go to the first class, and in it to the first instance.
    """
    indptr, indices, data, width, bias, _, _ = rows
    size = width + (1 if bias != 0.0 else 0)
    for p in range(ids.size):
        i = ids[p]
        top = -np.inf
        best_class[p] = 0
        best_instance[p] = 0
        for k in range(n_classes):
            extra = cost[label[i], k] if cost.size > 0 else 0.0
            for r in range(first[i], first[i + 1]):
                z = r - first[i]
                b = _block(k, z, n_states)
                score = extra
                if alive[b]:
                    score += dot(indptr, indices, data, width, bias, r, w[b * size : (b + 1) * size])
                if not np.isfinite(score):
                    top = np.nan  # which nothing exceeds: the caller sees it
                elif score > top:
                    top = score
                    best_class[p] = k
                    best_instance[p] = z
        best_score[p] = top


@compiled
def look(rows, first, ids, label, w, alive, n_states, place, scores, best):
    """Scores of all instances of the bags ``ids`` for the labels of these bags, the p-th from ``scores[place[p]]`` on,
    and the best instance of each.

    Best instances are counted from 0 within their bag; ties go to the first.
    """
    indptr, indices, data, width, bias, _, _ = rows
    size = width + (1 if bias != 0.0 else 0)
    for p in range(ids.size):
        start = first[ids[p]]
        top = -np.inf
        best[p] = 0
        for z in range(first[ids[p] + 1] - start):
            b = _block(label[ids[p]], z, n_states)
            score = 0.0
            if alive[b]:
                score = dot(indptr, indices, data, width, bias, start + z, w[b * size : (b + 1) * size])
            scores[place[p] + z] = score
            if score > top:
                top = score
                best[p] = z


@compiled
def differences(rows, first, ids, k_true, z_true, k_other, z_other, n_states, out_indptr, out_indices, out_data):
    """φ(x, k_true, z_true) − φ(x, k_other, z_other) for each bag of ``ids``, as CSR rows; returns entries written."""
    indptr, indices, data, width, bias, _, _ = rows
    size = width + (1 if bias != 0.0 else 0)
    at = 0
    out_indptr[0] = 0
    for p in range(ids.size):
        i = ids[p]
        a = first[i] + z_true[p]
        b = first[i] + z_other[p]
        block_a = _block(k_true[p], z_true[p], n_states)
        block_b = _block(k_other[p], z_other[p], n_states)
        if block_a == block_b:
            if a != b:
                at = _merged(indptr, indices, data, width, a, b, block_a * size, out_indices, out_data, at)
        elif block_a < block_b:
            at = _shifted(indptr, indices, data, width, bias, a, block_a * size, 1.0, out_indices, out_data, at)
            at = _shifted(indptr, indices, data, width, bias, b, block_b * size, -1.0, out_indices, out_data, at)
        else:
            at = _shifted(indptr, indices, data, width, bias, b, block_b * size, -1.0, out_indices, out_data, at)
            at = _shifted(indptr, indices, data, width, bias, a, block_a * size, 1.0, out_indices, out_data, at)
        out_indptr[p + 1] = at
    return at


@inlined
def _shifted(indptr, indices, data, width, bias, r, offset, sign, out_indices, out_data, at):
    start, stop = bounds(indptr, indices, width, r)
    for k in range(start, stop):
        out_indices[at] = offset + column(indices, k, start)
        out_data[at] = sign * data[k]
        at += 1
    if bias != 0.0:
        out_indices[at] = offset + width
        out_data[at] = sign * bias
        at += 1
    return at


@inlined
def _merged(indptr, indices, data, width, a, b, offset, out_indices, out_data, at):
    """Row a minus row b in one block, where bias cancels."""
    i, i_stop = bounds(indptr, indices, width, a)
    j, j_stop = bounds(indptr, indices, width, b)
    i_start = i
    j_start = j
    while i < i_stop or j < j_stop:
        k, difference, i, j = next_difference(indices, data, width, i, i_stop, i_start, j, j_stop, j_start)
        out_indices[at] = offset + k
        out_data[at] = difference
        at += 1
    return at
