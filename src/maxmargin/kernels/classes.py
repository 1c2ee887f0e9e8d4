"""Dual coordinate ascent for multiclass problems, all classes of an example at once.

    minimise   Ω(W) + Σ_i C_i·max_k (cost[y_i, k] + (w_k − w_{y_i})·x_i)            (Crammer & Singer)
    maximise   D(α) = Σ cost[y_i, k] α_ik − Ω*(V),   α_ik ≥ 0,   Σ_{k≠y_i} α_ik ≤ C_i

with V_{y_i} = Σ_i (Σ_k α_ik) x_i and V_k = −Σ_i α_ik x_i. Weights are stored feature by feature,
``w[j*K + k]``, so that one stored value of x meets K weights that lie side by side.

The step for one example is exact. With β_k = α_ik for k ≠ y, β_y = C − Σ_k α_ik (what is left of the budget),
g_k = cost[y, k] + s_k − s_y and h = ‖x‖², the best new β is the projection of β + g/h onto the simplex
{β ≥ 0, Σ β = C}: the leftover makes the shared slack an ordinary simplex.

Kernels here take the weight map as a ``Boxed`` tuple; empty ``scale`` means that w is v itself, empty ``ceiling`` that
there is none.
"""

import numpy as np
from numpy import uint32, uint64

from ..rounding import UNIT
from . import compiled, inlined, order as _order
from .rows import at, remembered
from .simplex import to_simplex
from .vectors import two_sum


@inlined
def _gather(indptr, indices, data, width, bias, r, n_classes, base, value):
    """Row r as (first weight, value) pairs without its zeros, the bias as one of them; returns how many."""
    n = uint64(0)
    one = uint64(1)
    none = uint64(0)
    stride = uint64(n_classes)
    if indices.size == 0:
        start = uint64(r) * uint64(width)
        at = none
        for p in range(uint64(width)):
            # Written without a branch: in rows with many zeros it would be mispredicted all the time.
            x = data[start + p]
            base[n] = at
            value[n] = x
            n += one if x != 0.0 else none
            at += stride
    else:
        for p in range(uint64(indptr[r]), uint64(indptr[r + 1])):
            base[n] = uint64(uint32(indices[p])) * stride
            value[n] = data[p]
            n += one
    if bias != 0.0:
        base[n] = uint64(width) * stride
        value[n] = bias
        n += one
    return np.int64(n)


@compiled
def _room(indptr, indices, width):
    """Room for the longest row as ``_gather`` writes it."""
    longest = width if indices.size == 0 else 0
    if indices.size > 0:
        for r in range(indptr.size - 1):
            longest = max(longest, indptr[r + 1] - indptr[r])
    return np.empty(longest + 1, np.uint64), np.empty(longest + 1)


@compiled
def _score(base, value, n, w, out):
    """out_k = w_k · row, four entries at a time: then ``out`` is read and written once for four products."""
    n_classes = uint64(out.size)
    one = uint64(1)
    two = uint64(2)
    three = uint64(3)
    out[:] = 0.0
    p = uint64(0)
    end = uint64(n)
    while p + uint64(4) <= end:
        a = base[p]
        b = base[p + one]
        c = base[p + two]
        d = base[p + three]
        xa = value[p]
        xb = value[p + one]
        xc = value[p + two]
        xd = value[p + three]
        for k in range(n_classes):
            out[k] += (xa * w[a + k] + xb * w[b + k]) + (xc * w[c + k] + xd * w[d + k])
        p += uint64(4)
    while p < end:
        a = base[p]
        xa = value[p]
        for k in range(n_classes):
            out[k] += xa * w[a + k]
        p += one


@compiled
def _size(base, value, n, w, out):
    """out_k = Σ |w_kj x_j|: what rounding in the score of class k is measured by."""
    out[:] = 0.0
    for p in range(uint64(n)):
        for k in range(uint64(out.size)):
            out[k] += abs(value[p] * w[base[p] + k])


@compiled
def _add(base, value, n, step, moved, n_moved, v, w, centre, scale, floor, ceiling):
    """V_k += step_k · row for the classes listed in ``moved``, and the weights follow."""
    for q in range(uint64(n_moved)):
        k = uint64(moved[q])
        a = step[k]
        for p in range(uint64(n)):
            v[base[p] + k] += a * value[p]
        if scale.size > 0:
            for p in range(uint64(n)):
                j = base[p] + k
                w[j] = max(centre[j] + scale[j] * v[j], floor[j])
        if ceiling.size > 0:
            for p in range(uint64(n)):
                j = base[p] + k
                w[j] = min(w[j], ceiling[j])


@compiled
def _curvature(base, value, n, scale, n_classes):
    """‖row‖² in the metric of the regularizer, the largest over the classes."""
    total = 0.0
    for p in range(uint64(n)):
        s = 1.0
        if scale.size > 0:
            s = scale[base[p]]
            for k in range(uint64(1), uint64(n_classes)):
                s = max(s, scale[base[p] + k])
        total += s * value[p] * value[p]
    return total


@compiled
def _change(i, y, trial, alpha, cost, step, moved):
    """Set α_i to ``trial`` (entry y ignored): the classes that move, how many, and the change of Σ cost α."""
    change = 0.0
    total = 0.0
    n_moved = 0
    for k in range(trial.size):
        if k != y:
            a = trial[k] - alpha[i, k]
            if a != 0.0:
                alpha[i, k] = trial[k]
                change += a * cost[y, k]
                total += a
                step[k] = -a
                moved[n_moved] = k
                n_moved += 1
    if total != 0.0:
        step[y] = total
        moved[n_moved] = y
        n_moved += 1
    return n_moved, change


@compiled
def sweep(rows, label, cost, budget, alpha, m, norms, order, n_active, block, seed):
    """One exact block step for each of ``order[:n_active]``.

    Returns (examples still active, gap as seen, change of Σ cost α); ``norms`` remembers ‖x_i‖² (negative:
    not known yet).
    """
    indptr, indices, data, width, bias, _, _ = rows
    v, w, centre, scale, floor, ceiling = m
    n_classes = cost.shape[0]
    base, value = _room(indptr, indices, width)
    score = np.empty(n_classes)
    trial = np.empty(n_classes)
    step = np.zeros(n_classes)
    moved = np.empty(n_classes, np.int64)
    blocks, size, state = _order.shuffled_blocks(n_active, block, uint64(seed))
    gap = 0.0
    change = 0.0
    for z in range(blocks.size):
        start = blocks[z] * size
        stop = min(start + size, n_active)
        state = _order.shuffle(order, start, stop, state)
        for p in range(start, stop):
            i = order[p]
            y = label[i]
            c = at(budget, i)
            n = _gather(indptr, indices, data, width, bias, i, n_classes, base, value)
            _score(base, value, n, w, score)
            worst = 0.0
            paid = 0.0
            used = 0.0
            for k in range(n_classes):
                if k != y:
                    g = cost[y, k] + score[k] - score[y]
                    worst = max(worst, g)
                    paid += alpha[i, k] * g
                    used += alpha[i, k]
                    trial[k] = g
            seen = c * worst - paid
            gap += seen
            # No rival violates its margin, or all of the budget is with the one that does most.
            if seen <= 1e-14 * c or (worst <= 0.0 and used == 0.0):
                order[p] = -i - 1
                continue
            h = np.float64(norms[i])
            if h < 0.0:
                h = remembered(norms, i, _curvature(base, value, n, scale, n_classes))
            if h > 0.0:
                for k in range(n_classes):
                    trial[k] = c - used if k == y else alpha[i, k] + trial[k] / h
                to_simplex(trial, c)
            else:
                # An empty row has no score to weigh: all budget to the dearest rival.
                trial[:] = 0.0
                trial[np.argmax(cost[y])] = c
            n_moved, gained = _change(i, y, trial, alpha, cost, step, moved)
            _add(base, value, n, step, moved, n_moved, v, w, centre, scale, floor, ceiling)
            change += gained
    return _order.active_first(order, n_active), gap, change


@compiled
def extrapolate(rows, label, cost, budget, alpha, previous, momentum, m, order, active, visited):
    """α ← Proj(α + momentum·(α − previous)) for the examples of ``order[:active]``, then previous ← the old α.

    v has been extrapolated by the caller already (it is linear in α): only what is held back is corrected in it,
    by the projection or because the last sweep, which went through ``order[:visited]``, has put the example to
    sleep. Returns the change of Σ cost α.
    """
    indptr, indices, data, width, bias, _, _ = rows
    v, w, centre, scale, floor, ceiling = m
    n_classes = cost.shape[0]
    base, value = _room(indptr, indices, width)
    free = np.empty(n_classes)
    trial = np.empty(n_classes)
    step = np.zeros(n_classes)
    moved = np.empty(n_classes, np.int64)
    change = 0.0
    for p in range(visited):
        i = order[p]
        y = label[i]
        used = 0.0
        lowest = 0.0
        for k in range(n_classes):
            a = alpha[i, k]
            free[k] = a + momentum * (a - previous[i, k])
            previous[i, k] = a
            change += (free[k] - a) * cost[y, k]
            lowest = min(lowest, free[k])
            used += max(free[k], 0.0)
            trial[k] = max(free[k], 0.0) if p < active else a
            alpha[i, k] = free[k]
        if p < active:
            if lowest >= 0.0 and used <= at(budget, i):
                continue
            if used > at(budget, i):
                to_simplex(trial, at(budget, i))
        n_moved, gained = _change(i, y, trial, alpha, cost, step, moved)
        if n_moved > 0:
            n = _gather(indptr, indices, data, width, bias, i, n_classes, base, value)
            _add(base, value, n, step, moved, n_moved, v, w, centre, scale, floor, ceiling)
            change += gained
    return change


@compiled
def bounded_combine(rows, label, alpha, v, low, size):
    """v + low += Σ_ik α_ik·(x_i for the true class, −x_i for k) in compensated sums; ``size`` grows by |terms|."""
    indptr, indices, data, width, bias, _, _ = rows
    n_classes = alpha.shape[1]
    base, value = _room(indptr, indices, width)
    for i in range(alpha.shape[0]):
        used = 0.0
        for k in range(n_classes):
            used += alpha[i, k]
        if used == 0.0:
            continue
        n = _gather(indptr, indices, data, width, bias, i, n_classes, base, value)
        for k in range(uint64(n_classes)):
            a = used if k == uint64(label[i]) else -alpha[i, k]
            if a != 0.0:
                for p in range(uint64(n)):
                    j = base[p] + k
                    term = a * value[p]
                    v[j], low[j] = two_sum(v[j], low[j], term)
                    size[j] += abs(term)


@compiled
def total_loss(rows, label, cost, budget, w):
    """Σ_i C_i·max_k (cost[y_i, k] + s_k − s_y), and by how much rounding may have lowered it."""
    indptr, indices, data, width, bias, _, _ = rows
    n_classes = cost.shape[0]
    base, value = _room(indptr, indices, width)
    score = np.empty(n_classes)
    size = np.empty(n_classes)
    total = 0.0
    low = 0.0
    rounding = 0.0
    for i in range(label.size):
        n = _gather(indptr, indices, data, width, bias, i, n_classes, base, value)
        y = label[i]
        _score(base, value, n, w, score)
        _size(base, value, n, w, size)
        worst = 0.0
        most = 0.0
        for k in range(n_classes):
            if k != y:
                missing = cost[y, k] + score[k] - score[y]
                # Scores are sums of n products; nothing is lost in those that are empty.
                sizes = size[k] + size[y]
                error = 1.01 * UNIT * ((n + 6) * sizes + 4.0 * abs(cost[y, k])) if sizes > 0.0 else 0.0
                worst = max(worst, missing)
                most = max(most, missing + error)
        c = at(budget, i)
        total, low = two_sum(total, low, worst * c)
        rounding += (most - worst + 8.0 * UNIT * most) * c
    return total + low, 1.01 * rounding + 2.0 * UNIT * total
