"""Dual coordinate ascent with one variable per example.

    minimise   Ω(w) + Σ_i C_i·loss_i(w·x_i)
    maximise   D(β) = Σ_i [t_i β_i − ε|β_i| − ½ q_i β_i²] − Ω*(v),   v = Σ_i β_i x_i,   lo_i ≤ β_i ≤ hi_i

| problem            | t_i          | ε | lo … hi                         |
| ------------------ | ------------ | - | ------------------------------- |
| binary, ranking    | y_i·margin_i | 0 | 0 … U_i (y=+1), −U_i … 0 (y=−1) |
| regression         | y_i          | ε | −U_i … U_i                      |

U_i and q_i are the loss's (``losses`` has a table). ``side`` is +1, −1 or 0 (both). The rows are the user's own: no
label is multiplied into them.
Ramanan, Algorithm 1 (with a single constraint per example), after Hsieh et al. 2008.

The duality gap is a sum over examples, P − D = Σ_i gap_i with gap_i ≥ 0, because Ω(w) + Ω*(v) = w·v.
An example whose variable sits at a bound on the right side has gap 0 and is left alone until the
next full pass ("dormant").
"""

import numpy as np
from numpy import uint64

from ..rounding import UNIT
from . import compiled, maps, order as _order
from .losses import cost, dual_curvature, dual_term, excess_of, limits
from .rows import at, bounded_dot, count, remembered, stored_pair
from .vectors import difference_error, two_sum


@compiled
def sweep(rows, target, side, budget, loss, beta, m, norms, order, n_active, block, seed):
    """One coordinate step for each of ``order[:n_active]``, in random order.

    Returns the number of examples that stay active (they are moved to the front of ``order``),
    the duality gap as seen while passing (an estimate), and the change of Σ t β − ε|β| − ½ q β².
    ``norms`` remembers ‖x_i‖² in the metric of the regularizer (negative: not known yet).
    """
    indptr, indices, data, width, bias, plus, minus = rows
    epsilon = loss.epsilon
    blocks, size, state = _order.shuffled_blocks(n_active, block, uint64(seed))
    gap = 0.0
    change = 0.0
    for z in range(blocks.size):
        start = blocks[z] * size
        stop = min(start + size, n_active)
        state = _order.shuffle(order, start, stop, state)
        for p in range(start, stop):
            i = order[p]
            c = at(budget, i)
            s = at(side, i)
            t = np.float64(at(target, i))
            old = beta[i]
            a, b = stored_pair(plus, minus, i)
            residual = t - maps.score(indptr, indices, data, width, bias, a, b, m)
            gap += cost(excess_of(residual, s, loss), c, loss) - old * residual + epsilon * abs(old)
            low, high = limits(s, c, loss)
            q = dual_curvature(c, loss)
            gap += 0.5 * q * old * old
            g = residual - q * old
            # Directional derivatives upwards and downwards: they differ by 2ε at zero.
            up = g - epsilon if old >= 0.0 else g + epsilon
            down = g + epsilon if old <= 0.0 else g - epsilon
            if (up <= 0.0 or old >= high) and (down >= 0.0 or old <= low):
                order[p] = -i - 1
                continue
            h = np.float64(norms[i])
            if h < 0.0:
                h = remembered(norms, i, maps.curvature(indptr, indices, data, width, bias, a, b, m))
            h += q
            if h > 0.0:
                new = old + g / h
                shrink = epsilon / h
                if new > shrink:
                    new -= shrink
                elif new < -shrink:
                    new += shrink
                else:
                    new = 0.0
                new = min(max(new, low), high)
            else:
                # An empty row cannot move its score: all the way, or nothing where the loss is free.
                new = high if g > epsilon else (low if g < -epsilon else 0.0)
            if new != old:
                beta[i] = new
                change += dual_term(new, t, c, loss) - dual_term(old, t, c, loss)
                maps.move(indptr, indices, data, width, bias, a, b, new - old, m)
    return _order.active_first(order, n_active), gap, change


@compiled
def extrapolate(rows, target, side, budget, loss, beta, previous, momentum, m, order, active, visited):
    """β ← Proj(β + momentum·(β − previous)) for ``order[:active]``, then previous ← the old β.

    v has been extrapolated by the caller already (it is linear in β): only examples that are held back are
    corrected in it, by the projection or because the last sweep, which went through ``order[:visited]``, has put
    them to sleep. Returns the change of Σ t β − ε|β| − ½ q β².
    """
    indptr, indices, data, width, bias, plus, minus = rows
    change = 0.0
    for p in range(visited):
        i = order[p]
        old = beta[i]
        step = old - previous[i]
        previous[i] = old
        if step == 0.0:
            continue
        c = at(budget, i)
        s = at(side, i)
        free = old + momentum * step
        if p >= active:
            new = old
        else:
            low, high = limits(s, c, loss)
            new = min(max(free, low), high)
        t = np.float64(at(target, i))
        beta[i] = new
        change += dual_term(new, t, c, loss) - dual_term(old, t, c, loss)
        if new != free:
            a, b = stored_pair(plus, minus, i)
            maps.move(indptr, indices, data, width, bias, a, b, new - free, m)
    return change


@compiled
def total_loss(rows, target, side, budget, loss, w):
    """Σ_i C_i·loss_i(w·x_i), every example at this one w, and by how much rounding may have lowered it."""
    indptr, indices, data, width, bias, plus, minus = rows
    total = 0.0
    low = 0.0
    rounding = 0.0
    for i in range(count(rows)):
        a, b = stored_pair(plus, minus, i)
        t = np.float64(at(target, i))
        score, error = bounded_dot(indptr, indices, data, width, bias, a, b, w)
        residual = t - score
        excess = excess_of(residual, at(side, i), loss)
        paid = cost(excess, at(budget, i), loss)
        most = cost(excess + error + difference_error(score, residual), at(budget, i), loss)
        total, low = two_sum(total, low, paid)
        rounding += most - paid + 8.0 * UNIT * most
    return total + low, 1.01 * rounding + 2.0 * UNIT * total
