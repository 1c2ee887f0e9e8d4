"""k-means as a sequence of bounds (Naderi Parizi §5.4.1): distances, means, and the choice of the next bound.

    F(μ) = Σ_i s_i min_z ‖x_i − μ_z‖²          the objective, s_i the weights of the points
    b(μ) = Σ_i s_i ‖x_i − μ_{z_i}‖²            the bound of the labels z, least where μ are the weighted means (5.32)
    regret_i(z) = s_i (‖x_i − μ_z‖² − min_z' ‖x_i − μ_z'‖²)

d = b(μ) − F(μ) is the sum of the regrets. A next bound is valid if its regrets, at the same μ, sum up to at most
(1 − η)·d. All kernels here choose labels within such a ``budget``.

Distances to all centres are taken for blocks of rows: in a plain loop where columns are few, by a matrix product
where they are many. The product loses digits where the data is far from the origin, so ``shift`` (the mean of the data)
is taken off first; it is taken in float64 whatever the data is, since centres close together could not be told apart in
float32; and where a sum decides about labels it only ranks the centres, and distances are taken term by term.
"""

import math

import numpy as np
from numpy import uint64

from ..kernels import compiled, compiled_sum, inlined
from ..kernels.order import below, next_random

BLOCK = 128
FEW_COLUMNS = 12
NEVER = 40.0  # e⁻⁴⁰ is below the rounding of a probability of 1


@compiled_sum
def _far(X, i, centres, z):
    """‖x_i − μ_z‖²"""
    total = 0.0
    for j in range(X.shape[1]):
        gap = X[i, j] - centres[z, j]
        total += gap * gap
    return total


@compiled
def _prepared(shift, centres):
    """The centres as both ways of ``_block`` read them: transposed, and for the product shifted, with ½‖μ‖².

    And room for a block of rows and their products with the centres, next to none where these are not used.
    """
    k, width = centres.shape
    table = np.empty((width, k))
    half = np.zeros(k)
    few = width <= FEW_COLUMNS
    for z in range(k):
        for j in range(width):
            value = centres[z, j] if few else centres[z, j] - shift[j]
            table[j, z] = value
            half[z] += 0.5 * value * value
    n = 1 if few else BLOCK
    return table, half, np.zeros((n, 1 if few else width)), np.empty((n, k)), np.empty((BLOCK, k))


@compiled
def _block(X, shift, table, half, rows, products, start, stop, out):
    """out[i − start, z] = ‖x_i − μ_z‖² for the rows from ``start`` to ``stop``, at most ``BLOCK`` of them."""
    width, k = table.shape
    if width <= FEW_COLUMNS:
        for i in range(start, stop):
            line = out[i - start]
            for z in range(k):
                line[z] = 0.0
            for j in range(width):
                x = np.float64(X[i, j])
                across = table[j]
                for z in range(k):
                    gap = x - across[z]
                    line[z] += gap * gap
        return
    for i in range(start, stop):
        for j in range(width):
            rows[i - start, j] = X[i, j] - shift[j]
    np.dot(rows, table, products)
    for i in range(start, stop):
        norm = 0.0
        for j in range(width):
            norm += rows[i - start, j] * rows[i - start, j]
        for z in range(k):
            out[i - start, z] = max(0.0, norm + 2.0 * (half[z] - products[i - start, z]))


@inlined
def _lowest(table, i):
    """The least number of a line: four minima at a time do not wait for each other."""
    line = table[i]
    k = line.size
    low0 = low1 = low2 = low3 = np.inf
    z = 0
    while z + 4 <= k:
        low0 = min(low0, line[z])
        low1 = min(low1, line[z + 1])
        low2 = min(low2, line[z + 2])
        low3 = min(low3, line[z + 3])
        z += 4
    while z < k:
        low0 = min(low0, line[z])
        z += 1
    return min(low0, low1, low2, low3)


@compiled
def measure(X, s, shift, centres, label, near, least, start, stop):
    """Nearest centres of some rows and their squared distances: (F, d of the bound of ``label``, labels changed)."""
    table, half, rows, products, out = _prepared(shift, centres)
    few = X.shape[1] <= FEW_COLUMNS
    objective = 0.0
    gap = 0.0
    changed = 0
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        _block(X, shift, table, half, rows, products, first, last, out)
        for i in range(first, last):
            row = i - first
            lowest = _lowest(out, row)
            z = label[i]  # most labels are right already
            best = z
            if out[row, z] > lowest:
                best = 0
                while out[row, best] > lowest:
                    best += 1
            at = lowest if few else _far(X, i, centres, best)
            if z != best:
                own = out[row, z] if few else _far(X, i, centres, z)
                # A product may have ranked two centres wrongly that are equally far but for rounding.
                if own < at:
                    best = z
                    at = own
                gap += s[i] * (own - at)
                changed += best != z
            near[i] = best
            least[i] = at
            objective += s[i] * at
    return objective, gap, changed


@compiled
def add_rows(X, s, label, start, stop, total, mass):
    """total_z += Σ s_i x_i and mass_z += Σ s_i over the rows of label z."""
    width = X.shape[1]
    for i in range(start, stop):
        z = label[i]
        mass[z] += s[i]
        for j in range(width):
            total[z, j] += s[i] * X[i, j]


@compiled
def walk(X, s, centres, near, least, label, budget, steps, seed):
    """A random walk over labels whose regrets fit into the budget; returns their sum.

    Starts from ``near``, where every regret is zero. A step draws a point and a label, both uniformly, and goes there
    if the sum stays within the budget. The proposal is as likely one way as back, so that all valid labels together
    are equally likely in the long run (§5.4.1: a uniform stationary distribution on the graph of single changes).

    The labels of the bound before are no place to start from: they use up d, more than the budget, for every η > 0.
    """
    n, width = X.shape
    k = centres.shape[0]
    regret = np.zeros(n)
    label[:] = near
    total = 0.0
    state = uint64(seed)
    for _ in range(steps):
        state = next_random(state)
        i = below(state, n)
        state = next_random(state)
        z = below(state, k)
        if z == label[i]:
            continue
        limit = least[i] + (budget - total + regret[i]) / s[i]
        # Most proposals are far too far away, and a few columns are enough to see it.
        far = 0.0
        j = 0
        while j < width and far <= limit:
            stop = min(j + 8, width)
            while j < stop:
                gap = X[i, j] - centres[z, j]
                far += gap * gap
                j += 1
        if far > limit:
            continue
        new = 0.0 if z == near[i] else max(0.0, s[i] * (far - least[i]))
        total += new - regret[i]
        regret[i] = new
        label[i] = z
    total = 0.0
    for i in range(n):
        total += regret[i]
    return total


@compiled
def runners_up(X, s, shift, centres, near, least, second, price, start, stop):
    """The second nearest centre of some rows, and price_z += Σ regret_i(second_i) over the rows nearest to z.

    That is what it costs to give up cluster z, if its neighbours stay. With a single centre there is no second: the
    price is infinite.
    """
    table, half, rows, products, out = _prepared(shift, centres)
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        _block(X, shift, table, half, rows, products, first, last, out)
        for i in range(first, last):
            row = i - first
            own = near[i]
            out[row, own] = np.inf
            lowest = _lowest(out, row)
            best = 0
            while out[row, best] > lowest:
                best += 1
            second[i] = best
            if best == own:
                price[own] = np.inf
            else:
                price[own] += s[i] * max(0.0, _far(X, i, centres, best) - least[i])


@compiled
def expected_regret(X, s, shift, centres, least, t, start, stop):
    """Mean and variance of Σ_i regret_i(z_i) where P_i(z) ∝ exp(−t·regret_i(z)), independently (§5.6.1)."""
    k = centres.shape[0]
    table, half, rows, products, out = _prepared(shift, centres)
    mean = 0.0
    variance = 0.0
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        _block(X, shift, table, half, rows, products, first, last, out)
        for i in range(first, last):
            mass = 0.0
            one = 0.0
            two = 0.0
            for z in range(k):
                r = s[i] * max(0.0, out[i - first, z] - least[i])
                if t * r < NEVER:
                    p = math.exp(-t * r)
                    mass += p
                    one += p * r
                    two += p * r * r
            if mass > 0.0:  # else rounding leaves nothing but the nearest centre, without regret
                one /= mass
                mean += one
                variance += two / mass - one * one
    return mean, variance


@compiled
def draw(X, s, shift, centres, near, least, t, uniform, label, start, stop):
    """label_i ~ P_i(z) ∝ exp(−t·regret_i(z)), by inversion of one uniform number per point."""
    k = centres.shape[0]
    table, half, rows, products, out = _prepared(shift, centres)
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        _block(X, shift, table, half, rows, products, first, last, out)
        for i in range(first, last):
            row = i - first
            mass = 0.0
            for z in range(k):
                far = t * s[i] * max(0.0, out[row, z] - least[i])
                out[row, z] = math.exp(-far) if far < NEVER else 0.0
                mass += out[row, z]
            left = uniform[i] * mass
            label[i] = near[i]
            for z in range(k):
                left -= out[row, z]
                if left < 0.0:
                    label[i] = z
                    break


@compiled_sum
def approach(X, s, closest, candidates, total, start, stop):
    """total_c += Σ_i s_i min(closest_i, ‖x_i − x_c‖²): what the objective would be with one more centre at c."""
    width = X.shape[1]
    across = np.empty((width, BLOCK))
    far = np.empty(BLOCK)
    for first in range(start, stop, BLOCK):
        n = min(BLOCK, stop - first)
        for i in range(n):
            for j in range(width):
                across[j, i] = X[first + i, j]
        for c in range(candidates.size):
            far[:] = 0.0
            for j in range(width):
                x = np.float64(X[candidates[c], j])
                line = across[j]
                for i in range(n):
                    gap = line[i] - x
                    far[i] += gap * gap
            for i in range(n):
                near = closest[first + i]
                total[c] += s[first + i] * (far[i] if far[i] < near else near)


@compiled
def come_closer(X, s, closest, chosen, share, start, stop):
    """closest_i ← min(closest_i, ‖x_i − x_chosen‖²), share_i = s_i·closest_i."""
    for i in range(start, stop):
        far = 0.0
        for j in range(X.shape[1]):
            gap = np.float64(X[i, j]) - X[chosen, j]
            far += gap * gap
        if far < closest[i]:
            closest[i] = far
        share[i] = s[i] * closest[i]
