"""Primal–dual Newton steps for one dual variable per example: everything that is done once per row.

    minimise   Ω(w) + Σ_i [C_i·ξ_i + ½ e_i²/q_i]       over w, ξ ≥ 0, e       r_i = t_i − w·x_i
               ξ_i + e_i ≥ r_i − ε,  ξ_i + e_i ≥ −r_i − ε
    maximise   Σ_i [t_i β_i − ε(a_i + b_i) − ½ q_i (a_i + b_i)²] − Ω*(Σ_i β_i x_i)
               β = a − b,  a, b ≥ 0,  a + b ≤ C

(the table in ``scalar`` has the sides; a one-sided example has no b, and side −1 is side +1 with x, t and β
negated; q is that of ``losses``). With e = q·(a + b) throughout, y = ξ + e + ε − r, z = ξ + e + ε + r and
s = C − a − b a solution has a·y = b·z = s·ξ = 0; the iterates
keep all six positive and drive the products to zero together (Mehrotra 1992; for this problem Ferris & Munson
2002, Woodsend & Gondzio 2011). The constraints hold exactly at every iterate, only S⁻¹(w − m) = Σ β x is
approached. A loss that is not bounded has no s and no ξ: what is written ξ below is e, and s/ξ is 1/q.

Newton's equations of one example, given the change du of w·x and right-hand sides f (in units of a, b, s),

    da + p·dy = f_a,   db + q·dz = f_b,   ds + h·dξ = f_s,      p = a/y,  q = b/z,  h = s/ξ
    dy = dη + du,      dz = dη − du,      da + db + ds = 0,     dη = dξ + q·(da + db)

(where the last q is the loss's) leave, after elimination, dβ = k − D·du with one positive weight D per example. In them
a parabola divides h and f_s by 1 + q·h, and dξ becomes dη. So there is one system for all:

    (S⁻¹ + Xᵀ D X) dw = Xᵀ(β + k) − S⁻¹(w − m)

Three directions are computed with one factorization (``look``): the affine one (products → 0), Mehrotra's, which
aims at a common target and corrects what the affine one leaves of second order, and Gondzio's (1996), which
in addition pulls those products back that a full step would leave far from the target.

**Storage.** β in float64, and in float32 the two numbers that β and w leave open: ``excess`` = min(ξ, y, z),
by which the slack exceeds the loss, and ``common`` = min(a, b). Rounding these moves a point along the
constraints, never off them.
"""

from typing import NamedTuple

import numpy as np
from numpy import uint64

from . import compiled, compiled_sum, inlined
from .losses import cost, dual_curvature, dual_term, excess_of
from .rows import add, at, dot, stored_pair

CHUNK = 512  # rows worked on together: they stay in the cache from the first product to the last
_TINY = 1e-15  # of C, the least distance of a variable from it: above the rounding of C − a
_LEAST = 1e-3  # of a variable, what a step leaves of it at least: less than any step asks for, so only noise meets it
_SMALLEST = 1e-37  # float32 can still tell it from zero
FAR = 10.0  # a product this many times too small or too large is pulled back

CORRECTED, CENTRED = 2, 3  # directions known so far, the first being the affine one


class Point(NamedTuple):
    """Strictly inside all bounds; ``excess`` is empty for unbounded losses, ``common`` without two-sided examples."""

    beta: np.ndarray
    excess: np.ndarray
    common: np.ndarray


@compiled_sum
def _dense_scores(data, width, start, stop, w, out):
    n = uint64(width)
    for i in range(uint64(start), uint64(stop)):
        first = i * n
        total = 0.0
        for k in range(n):
            total += data[first + k] * w[k]
        out[i - uint64(start)] = total


@compiled_sum
def _dense_combine(data, width, start, stop, coefficients, v):
    n = uint64(width)
    for i in range(uint64(start), uint64(stop)):
        first = i * n
        c = coefficients[i - uint64(start)]
        for k in range(n):
            v[k] += c * data[first + k]


@compiled
def scores(rows, start, stop, w, out):
    """out = w · rows start … stop. Unsigned counters let the dense loops run in vector registers."""
    indptr, indices, data, width, bias, plus, minus = rows
    if indices.size == 0 and minus.size == 0:
        _dense_scores(data, width, start, stop, w, out)
        if bias != 0.0:
            for i in range(stop - start):
                out[i] += bias * w[width]
        return
    for i in range(start, stop):
        a, b = stored_pair(plus, minus, i)
        out[i - start] = dot(indptr, indices, data, width, bias, a, w)
        if b >= 0:
            out[i - start] -= dot(indptr, indices, data, width, bias, b, w)


@compiled
def combine(rows, start, stop, coefficients, v):
    """v += Σ coefficients_i · row i over start … stop."""
    indptr, indices, data, width, bias, plus, minus = rows
    if indices.size == 0 and minus.size == 0:
        _dense_combine(data, width, start, stop, coefficients, v)
        if bias != 0.0:
            for i in range(stop - start):
                v[width] += coefficients[i] * bias
        return
    for i in range(start, stop):
        a, b = stored_pair(plus, minus, i)
        add(indptr, indices, data, width, bias, a, coefficients[i - start], v)
        if b >= 0:
            add(indptr, indices, data, width, bias, b, -coefficients[i - start], v)


@inlined
def _known(side, budget, loss, excess, common, i):
    """What is known of an example without its score: C, the loss's q, whether it has two sides, the sign of its one
    side, and what is stored of its point besides β."""
    c = at(budget, i)
    two = at(side, i) == 0
    sign = -1.0 if at(side, i) < 0 else 1.0
    e = np.float64(excess[i]) if loss.bounded else 0.0
    m = np.float64(common[i]) if two else 0.0
    return c, dual_curvature(c, loss), two, sign, e, m


@inlined
def _pairs(beta, excess, common, two, c, bend, r, loss):
    """(a, b, s, y, z, ξ) of an example from what is stored; ``bend`` is the loss's q."""
    a = max(beta, 0.0) + common if two else beta
    b = max(-beta, 0.0) + common if two else 0.0
    if not loss.bounded:
        xi = (a + b) * bend
        # Where the constraint is tight y is a difference of equals: rounding must not make it negative.
        floor = _TINY * (xi + abs(r) + loss.epsilon)
        y = max(xi + loss.epsilon - r, floor)
        z = max(xi + loss.epsilon + r, floor) if two else 1.0
        return a, b, a + b, y, z, xi
    free = loss.epsilon + bend * (a + b)
    top = max(r - free, 0.0)
    if two:
        top = max(top, -r - free)
    y = (top + free - r) + excess
    z = (top + free + r) + excess if two else 1.0
    return a, b, max(c - (a + b), _TINY * c), y, z, top + excess


@inlined
def _gains(a, b, s, y, z, xi, bend, loss):
    """(p, q, h), 1/(p + q + h), and by what a parabola has divided h and divides f_s."""
    p = a / y
    q = b / z
    h = s / xi
    damp = 1.0
    if loss.bounded and bend > 0.0:
        damp = 1.0 / (1.0 + bend * h)
        h *= damp
    return p, q, h, 1.0 / (p + q + h), damp


@inlined
def _weight(p, q, h, inverse):
    """D of dβ = k − D·du."""
    return (h * (p + q) + 4.0 * p * q) * inverse


@inlined
def _shift(p, q, h, inverse, damp, fa, fb, fs):
    """k of dβ = k − D·du."""
    return (fa * (h + 2.0 * q) - fb * (h + 2.0 * p) - (p - q) * (damp * fs)) * inverse


@inlined
def _respond(p, q, h, inverse, damp, bend, fa, fb, fs, du):
    """(da, db, dy, dz, dξ): how an example answers the change du of its score."""
    deta = (fa + fb + damp * fs - (p - q) * du) * inverse
    dy = deta + du
    dz = deta - du
    da = fa - p * dy
    db = fb - q * dz
    return da, db, dy, dz, deta - bend * (da + db)


@inlined
def _second_order(iy, iz, ix, two, loss, target, fa, fb, fs, da, db, dy, dz, dxi):
    """Right-hand sides that aim at the target and undo what the affine step leaves of second order."""
    fa += (target - da * dy) * iy
    if two:
        fb += (target - db * dz) * iz
    if loss.bounded:
        fs += (target + (da + db) * dxi) * ix
    return fa, fb, fs


@inlined
def _pull(product, target):
    """What to add to a product that a full step would leave too small or too large."""
    return max(min(max(product, target / FAR), target * FAR) - product, -target * FAR)


@inlined
def _centrality(a, b, s, y, z, xi, iy, iz, ix, two, loss, target, fa, fb, fs, da, db, dy, dz, dxi):
    fa += _pull((a + da) * (y + dy), target) * iy
    if two:
        fb += _pull((b + db) * (z + dz), target) * iz
    if loss.bounded:
        fs += _pull((s - da - db) * (xi + dxi), target) * ix
    return fa, fb, fs


@inlined
def _along(a, b, s, y, z, xi, bend, two, loss, mu, depth, du0, du1, du2):
    """Along the last of the directions: (gains, right-hand sides of the next direction, how the example answers)."""
    p, q, h, inverse, damp = _gains(a, b, s, y, z, xi, bend, loss)
    iy = 1.0 / y
    iz = 1.0 / z
    ix = 1.0 / xi
    fa = -a
    fb = -b
    fs = -s if loss.bounded else 0.0
    da, db, dy, dz, dxi = _respond(p, q, h, inverse, damp, bend, fa, fb, fs, du0)
    aim = mu if depth >= CORRECTED else 0.0
    na, nb, ns = _second_order(iy, iz, ix, two, loss, aim, fa, fb, fs, da, db, dy, dz, dxi)
    if depth >= CORRECTED:
        fa, fb, fs = na, nb, ns
        da, db, dy, dz, dxi = _respond(p, q, h, inverse, damp, bend, fa, fb, fs, du1)
        na, nb, ns = _centrality(a, b, s, y, z, xi, iy, iz, ix, two, loss, mu, fa, fb, fs, da, db, dy, dz, dxi)
    if depth >= CENTRED:
        da, db, dy, dz, dxi = _respond(p, q, h, inverse, damp, bend, na, nb, ns, du2)
    return (p, q, h, inverse, damp), (na, nb, ns), (da, db, dy, dz, dxi)


@compiled
def centre(rows, target, side, budget, loss, w, per_budget, start, stop, point):
    """The point at which the products of an example are ``per_budget`` times its C, at these weights."""
    beta, excess, common = point
    u = np.empty(CHUNK)
    for begin in range(start, stop, CHUNK):
        end = min(begin + CHUNK, stop)
        scores(rows, begin, end, w, u)
        for i in range(begin, end):
            c = at(budget, i)
            side_i = at(side, i)
            two = side_i == 0
            sign = -1.0 if side_i < 0 else 1.0
            beta[i] = 0.0
            if c <= 0.0:
                continue
            r = sign * (np.float64(at(target, i)) - u[i - begin])
            a, b, gap = _central(per_budget * c, two, c, r, loss)
            beta[i] = sign * (a - b)
            if loss.bounded:
                excess[i] = gap
            if two:
                common[i] = min(a, b)


@inlined
def _central(mu, two, c, r, loss):
    """(a, b, excess) with a·y = b·z = s·ξ = mu, or nearly: Newton's method on ξ.

    For a bounded loss the parabola is left out: it moves y and z by less than its width, far from any bound.
    """
    epsilon = loss.epsilon
    stiff = c / loss.curvature  # 1/q
    top = max(abs(r) if two else r, epsilon if loss.bounded else 0.0) - epsilon
    # F = mu/y + mu/z + mu/ξ − C falls and is convex in ξ: from the left of its zero, where the largest term
    # alone is accounted for, Newton's method comes nearer from one side.
    if loss.bounded:
        gap = mu / c
    else:
        root = np.sqrt(top * top + 4.0 * mu / stiff)
        gap = (2.0 * mu / stiff) / (top + root) if top > 0.0 else 0.5 * (root - top)
    a = 0.0
    b = 0.0
    for _ in range(20):
        xi = top + gap
        y = (top + epsilon - r) + gap
        z = (top + epsilon + r) + gap if two else 1.0
        a = mu / y
        b = mu / z if two else 0.0
        slope = a / y + b / z
        if loss.bounded:
            excess = a + b + mu / xi - c
            slope += mu / (xi * xi)
        else:
            excess = a + b - stiff * xi
            slope += stiff
        gap += excess / slope
        if abs(excess) <= 1e-6 * gap * slope:
            break
    scale = c / (a + b + mu / (top + gap)) if loss.bounded else 1.0
    return a * scale, b * scale, gap


@compiled
def look(rows, target, side, budget, loss, w, directions, mu, start, stop, point, vector, sums):
    """Look along the last of the directions: how far it goes, and what the next one has to correct.

    ``directions`` holds the affine one, Mehrotra's and Gondzio's, as far as they are known. vector += Xᵀ(k − D·du)
    with the right-hand sides of the next direction and du of this one (without the share of the target if the
    next is Mehrotra's: it is not known yet). sums: the largest rate at which anything approaches its bound, and
    slope and curvature of the sum of all products.
    """
    beta, excess, common = point
    depth = len(directions)
    u = np.empty(CHUNK)
    du = np.zeros((3, CHUNK))
    k = np.empty(CHUNK)
    rate = 0.0
    slope = 0.0
    curvature = 0.0
    for begin in range(start, stop, CHUNK):
        end = min(begin + CHUNK, stop)
        scores(rows, begin, end, w, u)
        for j in range(depth):
            scores(rows, begin, end, directions[j], du[j])
        for i in range(begin, end):
            j = i - begin
            c, bend, two, sign, e, m = _known(side, budget, loss, excess, common, i)
            if c <= 0.0:
                k[j] = 0.0
                continue
            r = sign * (np.float64(at(target, i)) - u[j])
            a, b, s, y, z, xi = _pairs(sign * beta[i], e, m, two, c, bend, r, loss)
            (p, q, h, inverse, damp), (na, nb, ns), (da, db, dy, dz, dxi) = _along(
                a, b, s, y, z, xi, bend, two, loss, mu, depth, sign * du[0, j], sign * du[1, j], sign * du[2, j]
            )
            rate = max(rate, -da / a, -dy * (1.0 / y))
            slope += da * y + a * dy
            curvature += da * dy
            if two:
                rate = max(rate, -db / b, -dz * (1.0 / z))
                slope += db * z + b * dz
                curvature += db * dz
            if loss.bounded:
                rate = max(rate, (da + db) / s, -dxi * (1.0 / xi))
                slope += s * dxi - (da + db) * xi
                curvature -= (da + db) * dxi
            k[j] = sign * _shift(p, q, h, inverse, damp, na, nb, ns) - _weight(p, q, h, inverse) * du[depth - 1, j]
        if depth < CENTRED:
            combine(rows, begin, end, k, vector)
    sums[0] = max(sums[0], rate)
    sums[1] += slope
    sums[2] += curvature


@compiled
def advance(rows, target, side, budget, loss, w, directions, mu, step, start, stop, point, weight, vectors, sums):
    """Take a step in the last of the directions, and gather at the new point all that the next one needs.

    With no directions only the latter. weight = √D; vectors += Xᵀβ, Xᵀk for products → 0, Xᵀk for one unit of the
    target. sums: loss, dual objective without Ω*, sum of all products, their number, examples off their bounds.
    """
    beta, excess, common = point
    depth = len(directions)
    u = np.empty(CHUNK)
    du = np.zeros((3, CHUNK))
    k = np.zeros((3, CHUNK))
    paid = 0.0
    linear = 0.0
    products = 0.0
    pairs = 0
    free = 0
    for begin in range(start, stop, CHUNK):
        end = min(begin + CHUNK, stop)
        scores(rows, begin, end, w, u)
        for j in range(depth):
            scores(rows, begin, end, directions[j], du[j])
        for i in range(begin, end):
            j = i - begin
            c, bend, two, sign, e, m = _known(side, budget, loss, excess, common, i)
            if c <= 0.0:
                k[:, j] = 0.0
                weight[i - start] = 0.0
                continue
            t = np.float64(at(target, i))
            a, b, s, y, z, xi = _pairs(sign * beta[i], e, m, two, c, bend, sign * (t - u[j]), loss)
            if depth > 0:
                _, _, (da, db, dy, dz, dxi) = _along(
                    a, b, s, y, z, xi, bend, two, loss, mu, depth, sign * du[0, j], sign * du[1, j], sign * du[2, j]
                )
                u[j] += step * du[depth - 1, j]
                a = max(a + step * da, _LEAST * a, _SMALLEST)
                b = max(b + step * db, _LEAST * b, _SMALLEST) if two else 0.0
                beta[i] = sign * (a - b)
                if loss.bounded:
                    beta[i] = min(max(beta[i], -c), c)
                    e = min(xi + step * dxi, y + step * dy)
                    if two:
                        e = min(e, z + step * dz)
                    excess[i] = max(e, _SMALLEST)
                    e = np.float64(excess[i])
                if two:
                    common[i] = min(a, b)
                    m = np.float64(common[i])
                a, b, s, y, z, xi = _pairs(sign * beta[i], e, m, two, c, bend, sign * (t - u[j]), loss)
            paid += cost(excess_of(t - u[j], at(side, i), loss), c, loss)
            linear += dual_term(beta[i], t, c, loss)
            products += a * y
            pairs += 1
            if two:
                products += b * z
                pairs += 1
            if loss.bounded:
                products += s * xi
                pairs += 1
            free += max(a, b) > 1e-3 * c and s > 1e-3 * c
            p, q, h, inverse, damp = _gains(a, b, s, y, z, xi, bend, loss)
            weight[i - start] = np.sqrt(_weight(p, q, h, inverse))
            k[0, j] = beta[i]
            k[1, j] = sign * _shift(p, q, h, inverse, damp, -a, -b, -s if loss.bounded else 0.0)
            k[2, j] = sign * _shift(
                p, q, h, inverse, damp, 1.0 / y, 1.0 / z if two else 0.0, 1.0 / xi if loss.bounded else 0.0
            )
        for j in range(3):
            combine(rows, begin, end, k[j], vectors[j])
    sums[0] += paid
    sums[1] += linear
    sums[2] += products
    sums[3] += pairs
    sums[4] += free


@compiled
def scale_rows(rows, weight, start, stop, out):
    """out = weight ∘ rows start … stop, written out densely."""
    indptr, indices, data, width, bias, plus, minus = rows
    n = uint64(width)
    for i in range(stop - start):
        a, b = stored_pair(plus, minus, start + i)
        c = weight[i]
        line = out[i]
        if indices.size == 0 and b < 0:
            begin = uint64(a) * n
            for k in range(n):
                line[k] = c * data[begin + k]
            if bias != 0.0:
                line[width] = c * bias
        else:
            line[:] = 0.0
            add(indptr, indices, data, width, bias, a, c, line)
            if b >= 0:
                add(indptr, indices, data, width, bias, b, -c, line)


@compiled
def add_outer(rows, weight, start, stop, gram):
    """gram += Σ weight_i² x_i x_iᵀ, upper triangle, for sparse rows (their columns ascend)."""
    indptr, indices, data, width, bias, _, _ = rows
    for i in range(stop - start):
        d = weight[i] * weight[i]
        begin = uint64(indptr[start + i])
        end = uint64(indptr[start + i + 1])
        for k in range(begin, end):
            c = d * data[k]
            line = gram[uint64(indices[k])]
            for l in range(k, end):
                line[uint64(indices[l])] += c * data[l]
            if bias != 0.0:
                line[width] += c * bias
        if bias != 0.0:
            gram[width, width] += d * bias * bias
