"""Regions of a grid, each explained by one of M parts: scores, the best parts, differences of feature vectors.

    f(x, k, z) = Σ_r B_{k,z_r}·x_r + A_{k,r,z_r}  (+ pairs of neighbours)          Naderi Parizi (2.17), (2.20)

Weights stand one after the other: B (classes or 1, M, D), A (classes, R, M), pairs (classes, Q). Products B·x_r come
ready-made, ``products[i, r, k, j]``; with shared parts there is one k for all classes.

Pairs of neighbours are counted once each, from left to right and from top to bottom (MATH: each ordered edge once):

    0: none
    1: S(j, k) = −(T_j + T_k)/2 where j ≠ k, else 0
    2: S(j, k) = β_jk − α_jk + (γ_j + γ_k)/(2√R) with β antisymmetric, α symmetric; for horizontal and for vertical
       pairs each; weights γ, β (j < k), α (j < k)

Written with T_j where j = k instead, as in (2.21), S differs by a score of single regions, Σ_r T_{z_r}·(neighbours)/2,
which A has already; and so does γ. Its features would be as large as the grid and drown all others: the dual would take
far more steps. Borders between parts are few.
"""

import numpy as np

from ...kernels import compiled, inlined


@compiled
def all_classes(products, prior, out):
    """out[i, k] += Σ_r max_j: the score of every class."""
    n, R, P, M = products.shape
    for i in range(n):
        for k in range(prior.shape[0]):
            shared = 0 if P == 1 else k
            total = out[i, k]
            for r in range(R):
                best = -np.inf
                for j in range(M):
                    best = max(best, products[i, r, shared, j] + prior[k, r, j])
                total += best
            out[i, k] = total


@inlined
def _place(j, k, M):
    """Number of the pair j < k among all such pairs."""
    return j * (2 * M - j - 1) // 2 + k - j - 1


@inlined
def _count_pair(pairs, j, k, M, at, scale, out):
    """Features of one pair of neighbours; ``at`` is where the weights of its direction begin."""
    if pairs == 1:
        if j != k:
            out[j] -= 0.5
            out[k] -= 0.5
        return
    half = M * (M - 1) // 2
    out[at + j] += 0.5 * scale
    out[at + k] += 0.5 * scale
    if j < k:
        p = _place(j, k, M)
        out[at + M + p] += 1.0
        out[at + M + half + p] -= 1.0
    elif k < j:
        p = _place(k, j, M)
        out[at + M + p] -= 1.0
        out[at + M + half + p] -= 1.0


@compiled
def pair_features(pairs, z, rows, cols, M, out):
    """Features of all pairs of neighbours of one labelling."""
    out[:] = 0.0
    if pairs == 0:
        return
    scale = 1.0 / np.sqrt(rows * cols)
    for r in range(rows * cols):
        if (r + 1) % cols != 0:
            _count_pair(pairs, z[r], z[r + 1], M, 0, scale, out)
        if r + cols < rows * cols:
            _count_pair(pairs, z[r], z[r + cols], M, M * M, scale, out)


@inlined
def _write(values, offset, at, indices, data):
    """Entries of a row from what is not zero; zeros are left behind. Returns where the next one goes."""
    for q in range(values.size):
        if values[q] != 0.0:
            indices[at] = offset + q
            data[at] = values[q]
            at += 1
            values[q] = 0.0
    return at


@compiled
def differences(x, n_blocks, n_classes, M, pairs, cols, Q, k_true, z_true, k_other, z_other, indptr, indices, data):
    """φ(x, k_true, z_true) − φ(x, k_other, z_other) for each example, as CSR rows; returns the entries written.

    ``x`` (n, R, D) are the features of these examples. Entries are summed in float64 and rounded once.
    """
    n, R, D = x.shape
    first_prior = n_blocks * M * D
    first_pair = first_prior + n_classes * R * M
    # Of the two classes in the order of their weights; 0 is for both where they are the same.
    looks = np.zeros((2, M, D))
    used = np.zeros((2, M), np.bool_)
    places = np.zeros((2, R * M))
    beside = np.zeros((2, Q))
    counted = np.empty(Q)
    at = 0
    indptr[0] = 0
    for p in range(n):
        same = k_true[p] == k_other[p]
        mine = np.int64(k_true[p] > k_other[p])
        other = 0 if same else 1 - mine
        my_look = 0 if n_blocks == 1 else mine
        other_look = 0 if n_blocks == 1 else other
        for r in range(R):
            j = z_true[p, r]
            k = z_other[p, r]
            places[mine, r * M + j] += 1.0
            places[other, r * M + k] -= 1.0
            if my_look == other_look and j == k:
                continue
            used[my_look, j] = True
            used[other_look, k] = True
            for d in range(D):
                looks[my_look, j, d] += x[p, r, d]
            for d in range(D):
                looks[other_look, k, d] -= x[p, r, d]
        if pairs > 0:
            pair_features(pairs, z_true[p], R // cols, cols, M, counted)
            beside[mine] += counted
            pair_features(pairs, z_other[p], R // cols, cols, M, counted)
            beside[other] -= counted
        classes = (min(k_true[p], k_other[p]), max(k_true[p], k_other[p]))
        for side in range(1 if same or n_blocks == 1 else 2):
            c = 0 if n_blocks == 1 else classes[side]
            for j in range(M):
                if used[side, j]:
                    at = _write(looks[side, j], (c * M + j) * D, at, indices, data)
                    used[side, j] = False
        for side in range(1 if same else 2):
            at = _write(places[side], first_prior + classes[side] * R * M, at, indices, data)
        for side in range(1 if same else 2):
            at = _write(beside[side], first_pair + classes[side] * Q, at, indices, data)
        indptr[p + 1] = at
    return at
