"""Dual coordinate ascent when all constraints of an example share one slack.

    minimise   Ω(w) + Σ_i C_i·max(0, max_j (l_ij − w·x_ij))
    maximise   D(α) = Σ l_ij α_ij − Ω*(v),   v = Σ α_ij x_ij,   α_ij ≥ 0,   Σ_j α_ij ≤ C_i

Ramanan, Algorithm 1, with the signs and clips corrected:

    single   a = clip(g_j/h_j, −α_j, C_i − Σ_j α_j)                      g_j = l_j − w·x_j
    pair     a = clip((g_j − g_k)/‖x_j − x_k‖², −α_j, α_k)               moved from k to j

A pair step is taken when the budget of the example is used up; k is drawn among α_ik > 0. Rows of
example i are ``first[i] … first[i+1]−1``, times its ``side``: x_ij may be the user's own row (+1) or minus it (−1).
"""

import numpy as np
from numpy import uint64

from ..rounding import UNIT
from . import compiled, inlined, maps, order as _order
from .rows import at, bounded_dot, remembered, stored_pair
from .simplex import project_first
from .vectors import difference_error, two_sum

_USED_UP = 1.0 - 1e-13


@compiled
def _random_support(alpha, awake, start, stop, j, state):
    """A random k ≠ j of those awake in start … stop−1 with α_k > 0, or −1."""
    state = _order.next_random(state)
    chosen = -1
    seen = 0
    for q in range(start, stop):
        k = awake[q]
        if k != j and alpha[k] > 0.0:
            seen += 1
            if seen == 1 or _order.below(state, seen) == 0:
                chosen = k
            state = _order.next_random(state)
    return chosen, state


@inlined
def _longest(first):
    """The most constraints that an example has."""
    longest = 0
    for i in range(first.size - 1):
        longest = max(longest, first[i + 1] - first[i])
    return longest


@compiled
def _wake(indptr, indices, data, width, bias, plus, minus, m, loss, sign, alpha, start, stop, awake, missing):
    """Put the constraints of an example first that have a share, or miss something of their margin; returns how many.

    A function of its own, in the order of storage: next to the code that moves v the compiler would not let the scores
    be summed in vector registers.
    """
    for j in range(start, stop):
        a, b = stored_pair(plus, minus, j)
        missing[j - start] = loss[j] - sign * maps.stored_score(indptr, indices, data, width, bias, a, m)
    if minus.size > 0:
        for j in range(start, stop):
            a, b = stored_pair(plus, minus, j)
            if b >= 0:
                missing[j - start] += sign * maps.stored_score(indptr, indices, data, width, bias, b, m)
    front = start
    back = stop
    for j in range(start, stop):
        if missing[j - start] > 0.0 or alpha[j] > 0.0:
            awake[front] = j
            front += 1
        else:
            back -= 1
            awake[back] = j
    return front - start


@compiled
def sweep(rows, loss, first, side, budget, awake, n_awake, alpha, m, norms, order, n_active, block, seed):
    """One visit to the constraints of each example of ``order[:n_active]``.

    A pass over all examples looks at all constraints. Those with α = 0 that have no reason to move go to sleep until
    the next such pass: most examples have one or two constraints that matter. ``awake`` has the constraints of an
    example in its own place, those awake first, and ``n_awake`` says how many these are.

    Returns (examples still active, gap as seen, change of Σ l α); ``norms`` remembers ‖x_j‖² (negative:
    not known yet).
    """
    indptr, indices, data, width, bias, plus, minus = rows
    blocks, size, state = _order.shuffled_blocks(n_active, block, uint64(seed))
    everything = n_active == first.size - 1
    missing = np.empty(_longest(first) if everything else 0)
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
            c = at(budget, i)
            sign = np.float64(at(side, i))
            if everything:
                n_awake[i] = _wake(
                    indptr, indices, data, width, bias, plus, minus, m, loss, sign, alpha, start, stop, awake, missing
                )
            state = _order.shuffle(awake, start, start + n_awake[i], state)
            used = 0.0
            for q in range(start, start + n_awake[i]):
                used += alpha[awake[q]]
            worst = 0.0
            paid = 0.0
            moved = False
            q = start
            while q < start + n_awake[i]:
                j = awake[q]
                q += 1
                a, b = stored_pair(plus, minus, j)
                g = loss[j] - sign * maps.score(indptr, indices, data, width, bias, a, b, m)
                worst = max(worst, g)
                paid += alpha[j] * g
                k = -1
                step = 0.0
                if g > 0.0 or alpha[j] > 0.0:
                    h = np.float64(norms[j])
                    if h < 0.0:
                        h = remembered(norms, j, maps.curvature(indptr, indices, data, width, bias, a, b, m))
                    floor = 0.0
                    room = max(c - used, 0.0)
                    if g > 0.0 and used >= _USED_UP * c:
                        k, state = _random_support(alpha, awake, start, start + n_awake[i], j, state)
                        room = 0.0
                        if k >= 0:
                            a2, b2 = stored_pair(plus, minus, k)
                            g -= loss[k] - sign * maps.score(indptr, indices, data, width, bias, a2, b2, m)
                            room = alpha[k]
                            floor = 1e-13 * h
                            if b < 0 and b2 < 0:
                                h = maps.curvature(indptr, indices, data, width, bias, a, a2, m)
                            else:
                                # A difference of nearly equal numbers: float32 norms would not do.
                                h = maps.curvature(indptr, indices, data, width, bias, a, b, m)
                                h += maps.curvature(indptr, indices, data, width, bias, a2, b2, m)
                                h -= 2.0 * maps.inner(indptr, indices, data, width, bias, a, b, a2, b2, m)
                    # Where there is no curvature (an empty row, x_j = x_k) only the sign of g counts.
                    if h > floor:
                        step = min(max(g / h, -alpha[j]), room)
                    elif g > 0.0:
                        step = room
                    elif g < 0.0:
                        step = -alpha[j]
                if step != 0.0:
                    moved = True
                    alpha[j] = max(alpha[j] + step, 0.0)
                    change += step * loss[j]
                    maps.move(indptr, indices, data, width, bias, a, b, sign * step, m)
                    if k >= 0:
                        alpha[k] = max(alpha[k] - step, 0.0)
                        change -= step * loss[k]
                        maps.move(indptr, indices, data, width, bias, a2, b2, -sign * step, m)
                    else:
                        used += step
                elif alpha[j] <= 0.0 and c > 0.0:
                    q -= 1
                    n_awake[i] -= 1
                    awake[q] = awake[start + n_awake[i]]
                    awake[start + n_awake[i]] = j
            seen = c * worst - paid
            gap += seen
            if not moved and seen <= 0.0:
                order[p] = -i - 1
    return _order.active_first(order, n_active), gap, change


@compiled
def extrapolate(rows, loss, first, side, budget, awake, n_awake, alpha, previous, momentum, m, order, active, visited):
    """α ← Proj(α + momentum·(α − previous)) for the examples of ``order[:active]``, then previous ← the old α.

    v has been extrapolated by the caller already: only what is held back is corrected in it, by the projection
    or because the last sweep, which went through ``order[:visited]``, has put the example to sleep. Constraints that
    are and were at zero stay there: no projection raises them.
    """
    indptr, indices, data, width, bias, plus, minus = rows
    longest = _longest(first)
    free = np.empty(longest)
    trial = np.empty(longest)
    touched = np.empty(longest, np.int64)
    change = 0.0
    for p in range(visited):
        i = order[p]
        sign = np.float64(at(side, i))
        n = 0
        for j in range(first[i], first[i + 1]):
            if alpha[j] != 0.0 or previous[j] != 0.0:
                touched[n] = j
                free[n] = alpha[j] + momentum * (alpha[j] - previous[j])
                previous[j] = alpha[j]
                trial[n] = free[n] if p < active else alpha[j]
                n += 1
        if p < active:
            project_first(trial, n, at(budget, i))
        for q in range(n):
            j = touched[q]
            change += (trial[q] - alpha[j]) * loss[j]
            alpha[j] = trial[q]
            if trial[q] != free[q]:
                a, b = stored_pair(plus, minus, j)
                maps.move(indptr, indices, data, width, bias, a, b, sign * (trial[q] - free[q]), m)
    return change


@compiled
def total_loss(rows, loss, first, side, budget, awake, n_awake, w):
    """Σ_i C_i·max(0, max_j (l_ij − w·x_ij)), and by how much rounding may have lowered it."""
    indptr, indices, data, width, bias, plus, minus = rows
    total = 0.0
    low = 0.0
    rounding = 0.0
    for i in range(first.size - 1):
        worst = 0.0
        most = 0.0
        sign = np.float64(at(side, i))
        for j in range(first[i], first[i + 1]):
            a, b = stored_pair(plus, minus, j)
            score, error = bounded_dot(indptr, indices, data, width, bias, a, b, w)
            missing = loss[j] - sign * score
            worst = max(worst, missing)
            most = max(most, missing + error + difference_error(score, missing))
        c = at(budget, i)
        total, low = two_sum(total, low, worst * c)
        rounding += (most - worst + 8.0 * UNIT * most) * c
    return total + low, 1.01 * rounding + 2.0 * UNIT * total
