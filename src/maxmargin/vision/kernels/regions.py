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
def best_class(products, prior, label, cost, classes, z, score):
    """For each example the class with the largest Σ_r max_j, plus cost where there is any; its parts and its score.

    Ties go to the first class, and in it to the first part.
    """
    n, R, P, M = products.shape
    for i in range(n):
        top = -np.inf
        classes[i] = 0
        for k in range(prior.shape[0]):
            shared = 0 if P == 1 else k
            total = cost[label[i], k] if cost.size > 0 else 0.0
            for r in range(R):
                best = -np.inf
                for j in range(M):
                    best = max(best, products[i, r, shared, j] + prior[k, r, j])
                total += best
            if total > top:
                top = total
                classes[i] = k
        score[i] = top
        k = classes[i]
        shared = 0 if P == 1 else k
        for r in range(R):
            best = -np.inf
            for j in range(M):
                value = products[i, r, shared, j] + prior[k, r, j]
                if value > best:
                    best = value
                    z[i, r] = j


@compiled
def all_classes(products, prior, out):
    """out[i, k] = Σ_r max_j: the score of every class."""
    n, R, P, M = products.shape
    for i in range(n):
        for k in range(prior.shape[0]):
            shared = 0 if P == 1 else k
            total = 0.0
            for r in range(R):
                best = -np.inf
                for j in range(M):
                    best = max(best, products[i, r, shared, j] + prior[k, r, j])
                total += best
            out[i, k] = total


@compiled
def best_parts(unary, z, score):
    """The best part of every region, and the sum of their scores; ``unary`` is (n, R, M)."""
    for i in range(unary.shape[0]):
        score[i] = 0.0
        for r in range(unary.shape[1]):
            best = -np.inf
            for j in range(unary.shape[2]):
                if unary[i, r, j] > best:
                    best = unary[i, r, j]
                    z[i, r] = j
            score[i] += best


@compiled
def unaries(products, prior, out):
    """out[i, k, r, j]: the score of part j in region r for class k."""
    n, R, P, M = products.shape
    for i in range(n):
        for k in range(prior.shape[0]):
            shared = 0 if P == 1 else k
            for r in range(R):
                for j in range(M):
                    out[i, k, r, j] = products[i, r, shared, j] + prior[k, r, j]


@compiled
def part_scores(unary, z, out):
    """Σ_r unary[i, r, z_r] for each example."""
    for i in range(unary.shape[0]):
        out[i] = 0.0
        for r in range(unary.shape[1]):
            out[i] += unary[i, r, z[i, r]]


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


@compiled
def pair_tables(pairs, w, M, R, horizontal, vertical):
    """Scores of neighbours, from the weights (classes, Q) of the pairs: tables (classes, M, M)."""
    scale = 1.0 / np.sqrt(R)
    half = M * (M - 1) // 2
    for c in range(w.shape[0]):
        for direction in range(2):
            table = horizontal[c] if direction == 0 else vertical[c]
            at = M * M * direction
            for j in range(M):
                for k in range(M):
                    if pairs == 1:
                        table[j, k] = 0.0 if j == k else -0.5 * (w[c, j] + w[c, k])
                        continue
                    table[j, k] = 0.5 * scale * (w[c, at + j] + w[c, at + k])
                    if j < k:
                        p = _place(j, k, M)
                        table[j, k] += w[c, at + M + p] - w[c, at + M + half + p]
                    elif k < j:
                        p = _place(k, j, M)
                        table[j, k] -= w[c, at + M + p] + w[c, at + M + half + p]


@compiled
def differences(x, n_blocks, n_classes, M, pairs, cols, Q, k_true, z_true, k_other, z_other, indptr, indices, data):
    """φ(x, k_true, z_true) − φ(x, k_other, z_other) for each example, as CSR rows; returns the entries written.

    ``x`` (n, R, D) are the features of these examples. Entries are summed in float64 and rounded once.
    """
    n, R, D = x.shape
    first_prior = n_blocks * M * D
    first_pair = first_prior + n_classes * R * M
    sums = np.zeros((2, M, D))
    used = np.zeros((2, M), np.bool_)
    pair_true = np.zeros(Q)
    pair_other = np.zeros(Q)
    at = 0
    indptr[0] = 0
    for p in range(n):
        same = k_true[p] == k_other[p]
        together = same or n_blocks == 1
        # Blocks in the order of their weights: 0 belongs to the first class of the two, or to both.
        mine = 0 if together or k_true[p] < k_other[p] else 1
        other = 0 if together else 1 - mine
        for r in range(R):
            j = z_true[p, r]
            k = z_other[p, r]
            if together and j == k:
                continue
            used[mine, j] = True
            used[other, k] = True
            for d in range(D):
                sums[mine, j, d] += x[p, r, d]
            for d in range(D):
                sums[other, k, d] -= x[p, r, d]
        for block in range(2):
            c = 0 if n_blocks == 1 else min(k_true[p], k_other[p]) if block == 0 else max(k_true[p], k_other[p])
            for j in range(M):
                if not used[block, j]:
                    continue
                offset = (c * M + j) * D
                for d in range(D):
                    if sums[block, j, d] != 0.0:
                        indices[at] = offset + d
                        data[at] = sums[block, j, d]
                        at += 1
                    sums[block, j, d] = 0.0
                used[block, j] = False
        if same:
            for r in range(R):
                j = z_true[p, r]
                k = z_other[p, r]
                if j != k:
                    offset = first_prior + (k_true[p] * R + r) * M
                    indices[at] = offset + min(j, k)
                    data[at] = 1.0 if j < k else -1.0
                    indices[at + 1] = offset + max(j, k)
                    data[at + 1] = -1.0 if j < k else 1.0
                    at += 2
        else:
            for turn in range(2):
                of_truth = (turn == 0) == (k_true[p] < k_other[p])
                c = k_true[p] if of_truth else k_other[p]
                for r in range(R):
                    j = z_true[p, r] if of_truth else z_other[p, r]
                    indices[at] = first_prior + (c * R + r) * M + j
                    data[at] = 1.0 if of_truth else -1.0
                    at += 1
        if pairs > 0:
            pair_features(pairs, z_true[p], R // cols, cols, M, pair_true)
            pair_features(pairs, z_other[p], R // cols, cols, M, pair_other)
            for turn in range(1 if same else 2):
                of_truth = same or (turn == 0) == (k_true[p] < k_other[p])
                c = k_true[p] if of_truth else k_other[p]
                for q in range(Q):
                    value = pair_true[q] if of_truth else 0.0
                    if same or not of_truth:
                        value -= pair_other[q]
                    if value != 0.0:
                        indices[at] = first_pair + c * Q + q
                        data[at] = value
                        at += 1
        indptr[p + 1] = at
    return at
