"""Dual coordinate ascent when all constraints of an example share one slack.

    minimise   Ω(w) + Σ_i C_i·max(0, max_j (l_ij − w·x_ij))
    maximise   D(α) = Σ l_ij α_ij − Ω*(v),   v = Σ α_ij x_ij,   α_ij ≥ 0,   Σ_j α_ij ≤ C_i

Ramanan, Algorithm 1, with the signs and clips corrected:

    single   a = clip(g_j/h_j, −α_j, C_i − Σ_j α_j)                      g_j = l_j − w·x_j
    pair     a = clip((g_j − g_k)/‖x_j − x_k‖², −α_j, α_k)               moved from k to j

A pair step is taken when the budget of the example is used up; k is drawn among α_ik > 0. Rows of
example i are ``first[i] … first[i+1]−1``.
"""

import numpy as np
from numpy import uint64

from . import compiled, inlined, maps, order as _order
from .rows import dot, stored_pair

_USED_UP = 1.0 - 1e-13


@inlined
def budget_of(budget, i):
    """C_i, or the one budget that all examples share."""
    return budget[i] if budget.size > 1 else budget[0]


@compiled
def _random_support(alpha, start, stop, j, state):
    """A random k ≠ j in start … stop−1 with α_k > 0, or −1."""
    state = _order.next_random(state)
    chosen = -1
    seen = 0
    for k in range(start, stop):
        if k != j and alpha[k] > 0.0:
            seen += 1
            if seen == 1 or _order.below(state, seen) == 0:
                chosen = k
            state = _order.next_random(state)
    return chosen, state


@compiled
def sweep(rows, loss, first, budget, alpha, m, norms, order, n_active, block, seed):
    """One visit to every constraint of each example of ``order[:n_active]``.

    Returns (examples still active, gap as seen, change of Σ l α); ``norms`` remembers ‖x_j‖² (negative:
    not known yet).
    """
    indptr, indices, data, width, bias, plus, minus = rows
    blocks, size, state = _order.shuffled_blocks(n_active, block, uint64(seed))
    longest = 0
    for i in range(first.size - 1):
        longest = max(longest, first[i + 1] - first[i])
    visits = np.empty(longest, np.int64)
    gap = 0.0
    change = 0.0
    for z in range(blocks.size):
        block_start = blocks[z] * size
        block_stop = min(block_start + size, n_active)
        state = _order.shuffle(order, block_start, block_stop, state)
        for p in range(block_start, block_stop):
            i = order[p]
            start = first[i]
            stop = first[i + 1]
            c = budget_of(budget, i)
            used = 0.0
            for j in range(start, stop):
                used += alpha[j]
                visits[j - start] = j
            state = _order.shuffle(visits, 0, stop - start, state)
            worst = 0.0
            paid = 0.0
            moved = False
            for q in range(stop - start):
                j = visits[q]
                a, b = stored_pair(plus, minus, j)
                g = loss[j] - maps.score(indptr, indices, data, width, bias, a, b, m)
                worst = max(worst, g)
                paid += alpha[j] * g
                if g <= 0.0 and alpha[j] <= 0.0:
                    continue
                if norms[j] < 0.0:
                    norms[j] = maps.curvature(indptr, indices, data, width, bias, a, b, m)
                h = np.float64(norms[j])
                floor = 0.0
                k = -1
                if g > 0.0 and used >= _USED_UP * c:
                    k, state = _random_support(alpha, start, stop, j, state)
                    if k < 0:
                        continue
                    a2, b2 = stored_pair(plus, minus, k)
                    g -= loss[k] - maps.score(indptr, indices, data, width, bias, a2, b2, m)
                    # ‖x_j − x_k‖² is a difference of nearly equal numbers: float32 norms would not do.
                    h = maps.curvature(indptr, indices, data, width, bias, a, b, m)
                    floor = 1e-13 * h
                    h += maps.curvature(indptr, indices, data, width, bias, a2, b2, m)
                    h -= 2.0 * maps.inner(indptr, indices, data, width, bias, a, b, a2, b2, m)
                room = alpha[k] if k >= 0 else max(c - used, 0.0)
                # Where there is no curvature (an empty row, x_j = x_k) only the sign of g counts.
                if h > floor:
                    step = min(max(g / h, -alpha[j]), room)
                elif g > 0.0:
                    step = room
                elif g < 0.0:
                    step = -alpha[j]
                else:
                    step = 0.0
                if step == 0.0:
                    continue
                moved = True
                alpha[j] = max(alpha[j] + step, 0.0)
                change += step * loss[j]
                maps.move(indptr, indices, data, width, bias, a, b, step, m)
                if k >= 0:
                    alpha[k] = max(alpha[k] - step, 0.0)
                    change -= step * loss[k]
                    maps.move(indptr, indices, data, width, bias, a2, b2, -step, m)
                else:
                    used += step
            seen = c * worst - paid
            gap += seen
            if not moved and seen <= 0.0:
                order[p] = -i - 1
    return _order.active_first(order, n_active), gap, change


@compiled
def project(values, total):
    """Euclidean projection, in place, onto {values ≥ 0, Σ values ≤ total}."""
    excess = 0.0
    for k in range(values.size):
        values[k] = max(values[k], 0.0)
        excess += values[k]
    if excess <= total:
        return
    ranked = np.sort(values)
    tail = 0.0
    shift = 0.0
    for k in range(values.size):
        tail += ranked[values.size - 1 - k]
        candidate = (tail - total) / (k + 1)
        if ranked[values.size - 1 - k] < candidate:
            break
        shift = candidate
    for k in range(values.size):
        values[k] = max(values[k] - shift, 0.0)


@compiled
def project_examples(alpha, first, budget):
    """Make every example's variables feasible, in place."""
    for i in range(first.size - 1):
        project(alpha[first[i] : first[i + 1]], budget_of(budget, i))


@compiled
def extrapolate(rows, loss, first, budget, alpha, previous, momentum, m, order, active, visited):
    """α ← Proj(α + momentum·(α − previous)) for the examples of ``order[:active]``, then previous ← the old α.

    v has been extrapolated by the caller already: only what is held back is corrected in it, by the projection
    or because the last sweep, which went through ``order[:visited]``, has put the example to sleep.
    """
    indptr, indices, data, width, bias, plus, minus = rows
    change = 0.0
    for p in range(visited):
        i = order[p]
        start = first[i]
        stop = first[i + 1]
        free = alpha[start:stop].copy()
        for j in range(start, stop):
            free[j - start] += momentum * (alpha[j] - previous[j])
            previous[j] = alpha[j]
        if p < active:
            trial = free.copy()
            project(trial, budget_of(budget, i))
        else:
            trial = alpha[start:stop].copy()
        for j in range(start, stop):
            new = trial[j - start]
            change += (new - alpha[j]) * loss[j]
            alpha[j] = new
            if new != free[j - start]:
                a, b = stored_pair(plus, minus, j)
                maps.move(indptr, indices, data, width, bias, a, b, new - free[j - start], m)
    return change


@compiled
def total_loss(rows, loss, first, budget, w):
    """Σ_i C_i·max(0, max_j (l_ij − w·x_ij))."""
    indptr, indices, data, width, bias, plus, minus = rows
    total = 0.0
    for i in range(first.size - 1):
        worst = 0.0
        for j in range(first[i], first[i + 1]):
            a, b = stored_pair(plus, minus, j)
            score = dot(indptr, indices, data, width, bias, a, w)
            if b >= 0:
                score -= dot(indptr, indices, data, width, bias, b, w)
            worst = max(worst, loss[j] - score)
        total += worst * budget_of(budget, i)
    return total
