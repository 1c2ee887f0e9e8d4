"""Primal–dual Newton steps for one dual variable per example: everything that is done once per row.

    minimise   Ω(w) + Σ_i C_i·ξ_i          over w, ξ ≥ 0      (or Σ_i C_i·ξ_i², squared loss)
               ξ_i ≥ r_i − ε,  ξ_i ≥ −r_i − ε                 r_i = t_i − w·x_i
    maximise   Σ_i [t_i β_i − ε(a_i + b_i)] − Ω*(Σ_i β_i x_i)     β = a − b,  a, b ≥ 0,  a + b ≤ C

(the table in ``scalar`` has the sides; a one-sided example has no b, and side −1 is side +1 with x, t and β
negated). With y = ξ + ε − r, z = ξ + ε + r and s = C − a − b a solution has a·y = b·z = s·ξ = 0; the iterates
keep all six positive and drive the products to zero together (Mehrotra 1992; for this problem Ferris & Munson
2002, Woodsend & Gondzio 2011). The constraints hold exactly at every iterate, only S⁻¹(w − m) = Σ β x is
approached. Squared loss has no s: there a + b = 2C·ξ holds exactly, and what is written s/ξ below is 2C.

Newton's equations of one example, given the change du of w·x and right-hand sides f (in units of a, b, s),

    da + p·dy = f_a,   db + q·dz = f_b,   ds + h·dξ = f_s,      p = a/y,  q = b/z,  h = s/ξ
    dy = dξ + du,      dz = dξ − du,      da + db + ds = 0

leave, after elimination, dβ = k − D·du with one positive weight D per example, and so one system for all:

    (S⁻¹ + Xᵀ D X) dw = Xᵀ(β + k) − S⁻¹(w − m)

**Storage.** β in float64, and in float32 the two numbers that β and w leave open: ``excess`` = min(ξ, y, z),
by which the slack exceeds the loss, and ``common`` = min(a, b). Rounding these moves a point along the
constraints, never off them.
"""

from typing import NamedTuple

import numpy as np
from numpy import uint64

from . import compiled, compiled_sum, inlined
from .rows import add, dot, stored_pair
from .scalar import _at, _dual_term, _loss

CHUNK = 512  # rows worked on together: they stay in the cache from the first product to the last
TINY = 1e-15


class Point(NamedTuple):
    """A point strictly inside all bounds; the second array is empty for squared loss, the third without b."""

    beta: np.ndarray
    excess: np.ndarray
    common: np.ndarray


class Sums(NamedTuple):
    """Positions in the sums that the kernels return."""

    loss: int = 0
    linear: int = 1
    products: int = 2
    pairs: int = 3
    free: int = 4


class StepSums(NamedTuple):
    """The same for a direction: how far it goes, and the products along it as a polynomial of the step."""

    block: int = 0
    slope: int = 1
    bend: int = 2


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
    indptr, indices, data, width, bias, first, second = rows
    if indices.size == 0 and second.size == 0:
        _dense_scores(data, width, start, stop, w, out)
        if bias != 0.0:
            for i in range(stop - start):
                out[i] += bias * w[width]
        return
    for i in range(start, stop):
        a, b = stored_pair(first, second, i)
        out[i - start] = dot(indptr, indices, data, width, bias, a, w)
        if b >= 0:
            out[i - start] -= dot(indptr, indices, data, width, bias, b, w)


@compiled
def combine(rows, start, stop, coefficients, v):
    """v += Σ coefficients_i · row i over start … stop."""
    indptr, indices, data, width, bias, first, second = rows
    if indices.size == 0 and second.size == 0:
        _dense_combine(data, width, start, stop, coefficients, v)
        if bias != 0.0:
            for i in range(stop - start):
                v[width] += coefficients[i] * bias
        return
    for i in range(start, stop):
        a, b = stored_pair(first, second, i)
        add(indptr, indices, data, width, bias, a, coefficients[i - start], v)
        if b >= 0:
            add(indptr, indices, data, width, bias, b, -coefficients[i - start], v)


@inlined
def _pairs(beta, excess, common, two, c, r, epsilon, squared):
    """(a, b, s, y, z, ξ) of an example from what is stored."""
    a = max(beta, 0.0) + common if two else beta
    b = max(-beta, 0.0) + common if two else 0.0
    if squared:
        xi = (a + b) * (0.5 / c)
        # Where the constraint is tight y is a difference of equals: rounding must not make it negative.
        floor = TINY * (xi + abs(r) + epsilon)
        y = max(xi + epsilon - r, floor)
        z = max(xi + epsilon + r, floor) if two else 1.0
        return a, b, a + b, y, z, xi
    top = max(r - epsilon, 0.0)
    if two:
        top = max(top, -r - epsilon)
    y = (top + epsilon - r) + excess
    z = (top + epsilon + r) + excess if two else 1.0
    return a, b, max(c - (a + b), TINY * c), y, z, top + excess


@inlined
def _respond(a, b, s, y, z, xi, fa, fb, fs, du):
    """(da, db, dy, dz, dξ): how an example answers the change du of its score."""
    p = a / y
    q = b / z
    h = s / xi
    dxi = (fa + fb + fs - (p - q) * du) / (h + p + q)
    dy = dxi + du
    dz = dxi - du
    return fa - p * dy, fb - q * dz, dy, dz, dxi


@inlined
def _shift(a, b, s, y, z, xi, fa, fb, fs):
    """k of dβ = k − D·du."""
    p = a / y
    q = b / z
    h = s / xi
    return (fa * (h + 2.0 * q) - fb * (h + 2.0 * p) - (p - q) * fs) / (h + p + q)


@inlined
def _corrected(a, b, s, y, z, xi, two, squared, affine, target):
    """Mehrotra's right-hand sides: products → target, less what the affine step would leave of second order."""
    fs = 0.0 if squared else -s
    da, db, dy, dz, dxi = _respond(a, b, s, y, z, xi, -a, -b, fs, affine)
    fa = (target - da * dy) / y - a
    fb = (target - db * dz) / z - b if two else 0.0
    fs = 0.0 if squared else (target + (da + db) * dxi) / xi - s
    return fa, fb, fs


@compiled
def centre(rows, target, side, budget, epsilon, squared, w, mu, start, stop, point):
    """The point at which every product of an example is mu·C, at these weights: Newton's method on ξ."""
    beta, excess, common = point
    u = np.empty(CHUNK)
    for begin in range(start, stop, CHUNK):
        end = min(begin + CHUNK, stop)
        scores(rows, begin, end, w, u)
        for i in range(begin, end):
            c = _at(budget, i)
            side_i = _at(side, i)
            two = side_i == 0
            sign = -1.0 if side_i < 0 else 1.0
            beta[i] = 0.0
            if c <= 0.0:
                continue
            r = sign * (np.float64(_at(target, i)) - u[i - begin])
            a, b, gap = _central(mu * c, two, c, r, epsilon, squared)
            beta[i] = sign * (a - b)
            if not squared:
                excess[i] = gap
            if two:
                common[i] = min(a, b)


@inlined
def _central(mu, two, c, r, epsilon, squared):
    """(a, b, excess) with a·y = b·z = s·ξ = mu."""
    top = max(abs(r) if two else r, 0.0 if squared else epsilon) - epsilon
    # F(gap) = mu/y + mu/z + mu/ξ − C falls and is convex: from a point to the left of its zero, where the
    # largest term alone is accounted for, Newton's method approaches from one side.
    if squared:
        root = np.sqrt(top * top + 2.0 * mu / c)
        gap = (mu / c) / (top + root) if top > 0.0 else 0.5 * (root - top)
    else:
        gap = mu / c
    a = 0.0
    b = 0.0
    for _ in range(30):
        xi = top + gap
        y = xi + epsilon - r if top + epsilon > r else gap
        z = xi + epsilon + r if top + epsilon > -r else gap
        a = mu / y
        b = mu / z if two else 0.0
        slope = a / y + b / z
        if squared:
            excess = a + b - 2.0 * c * xi
            slope += 2.0 * c
        else:
            excess = a + b + mu / xi - c
            slope += mu / (xi * xi)
        gap += excess / slope
        if excess <= 1e-6 * c * gap * slope:
            break
    scale = 1.0 if squared else c / (a + b + mu / (top + gap))
    return a * scale, b * scale, gap


@compiled
def probe(rows, target, side, budget, epsilon, squared, w, affine, start, stop, point, vectors, sums):
    """Look along the affine direction (products → 0): how far it goes, and what it leaves of second order.

    vectors += Xᵀ D X affine, Xᵀ k of the second-order terms.
    """
    beta, excess, common = point
    u = np.empty(CHUNK)
    du = np.empty(CHUNK)
    k = np.empty(CHUNK)
    block = 0.0
    slope = 0.0
    bend = 0.0
    for begin in range(start, stop, CHUNK):
        end = min(begin + CHUNK, stop)
        scores(rows, begin, end, w, u)
        scores(rows, begin, end, affine, du)
        for i in range(begin, end):
            j = i - begin
            c = _at(budget, i)
            k[j] = 0.0
            if c <= 0.0:
                du[j] = 0.0
                continue
            side_i = _at(side, i)
            two = side_i == 0
            sign = -1.0 if side_i < 0 else 1.0
            r = sign * (np.float64(_at(target, i)) - u[j])
            a, b, s, y, z, xi = _pairs(
                sign * beta[i],
                excess[i] if not squared else 0.0,
                common[i] if two else 0.0,
                two,
                c,
                r,
                epsilon,
                squared,
            )
            fs = 0.0 if squared else -s
            da, db, dy, dz, dxi = _respond(a, b, s, y, z, xi, -a, -b, fs, sign * du[j])
            block = max(block, max(-da / a, -dy / y))
            slope += da * y + a * dy
            bend += da * dy
            fa = -da * dy / y
            fb = 0.0
            if two:
                block = max(block, max(-db / b, -dz / z))
                slope += db * z + b * dz
                bend += db * dz
                fb = -db * dz / z
            if not squared:
                ds = -(da + db)
                block = max(block, max(-ds / s, -dxi / xi))
                slope += ds * xi + s * dxi
                bend += ds * dxi
                fs = -ds * dxi / xi
            k[j] = sign * _shift(a, b, s, y, z, xi, fa, fb, fs)
            # D·du by the same elimination, with nothing on the right-hand sides
            p = a / y
            q = b / z
            h = s / xi
            du[j] *= (h * (p + q) + 4.0 * p * q) / (h + p + q)
        combine(rows, begin, end, du, vectors[0])
        combine(rows, begin, end, k, vectors[1])
    sums[0] = max(sums[0], block)
    sums[1] += slope
    sums[2] += bend


@compiled
def reach(rows, target, side, budget, epsilon, squared, w, affine, dw, mu, start, stop, point, sums):
    """How far the corrected direction goes before something reaches its bound, and the products along it."""
    beta, excess, common = point
    u = np.empty(CHUNK)
    du = np.empty(CHUNK)
    dua = np.empty(CHUNK)
    block = 0.0
    slope = 0.0
    bend = 0.0
    for begin in range(start, stop, CHUNK):
        end = min(begin + CHUNK, stop)
        scores(rows, begin, end, w, u)
        scores(rows, begin, end, affine, dua)
        scores(rows, begin, end, dw, du)
        for i in range(begin, end):
            j = i - begin
            c = _at(budget, i)
            if c <= 0.0:
                continue
            side_i = _at(side, i)
            two = side_i == 0
            sign = -1.0 if side_i < 0 else 1.0
            r = sign * (np.float64(_at(target, i)) - u[j])
            a, b, s, y, z, xi = _pairs(
                sign * beta[i],
                excess[i] if not squared else 0.0,
                common[i] if two else 0.0,
                two,
                c,
                r,
                epsilon,
                squared,
            )
            fa, fb, fs = _corrected(a, b, s, y, z, xi, two, squared, sign * dua[j], mu)
            da, db, dy, dz, dxi = _respond(a, b, s, y, z, xi, fa, fb, fs, sign * du[j])
            block = max(block, max(-da / a, -dy / y))
            slope += da * y + a * dy
            bend += da * dy
            if two:
                block = max(block, max(-db / b, -dz / z))
                slope += db * z + b * dz
                bend += db * dz
            if not squared:
                ds = -(da + db)
                block = max(block, max(-ds / s, -dxi / xi))
                slope += ds * xi + s * dxi
                bend += ds * dxi
    sums[0] = max(sums[0], block)
    sums[1] += slope
    sums[2] += bend


@compiled
def advance(
    rows, target, side, budget, epsilon, squared, w, affine, dw, mu, step, start, stop, point, weight, vectors, sums
):
    """Take the step, and gather at the new point all that the next one needs (with step = 0: only that).

    weight = √D; vectors += v, Xᵀ k for products → 0, Xᵀ k for one unit of the target.
    """
    beta, excess, common = point
    u = np.empty(CHUNK)
    du = np.empty(CHUNK)
    dua = np.empty(CHUNK)
    k = np.zeros((3, CHUNK))
    loss = 0.0
    linear = 0.0
    products = 0.0
    pairs = 0
    free = 0
    for begin in range(start, stop, CHUNK):
        end = min(begin + CHUNK, stop)
        scores(rows, begin, end, w, u)
        if step > 0.0:
            scores(rows, begin, end, affine, dua)
            scores(rows, begin, end, dw, du)
        for i in range(begin, end):
            j = i - begin
            c = _at(budget, i)
            if c <= 0.0:
                k[:, j] = 0.0
                weight[i - start] = 0.0
                continue
            side_i = _at(side, i)
            two = side_i == 0
            sign = -1.0 if side_i < 0 else 1.0
            t = np.float64(_at(target, i))
            e = np.float64(excess[i]) if not squared else 0.0
            m = np.float64(common[i]) if two else 0.0
            a, b, s, y, z, xi = _pairs(sign * beta[i], e, m, two, c, sign * (t - u[j]), epsilon, squared)
            if step > 0.0:
                fa, fb, fs = _corrected(a, b, s, y, z, xi, two, squared, sign * dua[j], mu)
                da, db, dy, dz, dxi = _respond(a, b, s, y, z, xi, fa, fb, fs, sign * du[j])
                a = max(a + step * da, TINY * c)
                b = max(b + step * db, TINY * c) if two else 0.0
                u[j] += step * du[j]
                beta[i] = sign * (a - b)
                if not squared:
                    e = min(xi + step * dxi, y + step * dy)
                    if two:
                        e = min(e, z + step * dz)
                    excess[i] = max(e, 1e-37)
                    e = np.float64(excess[i])
                if two:
                    common[i] = min(a, b)
                    m = np.float64(common[i])
                a, b, s, y, z, xi = _pairs(sign * beta[i], e, m, two, c, sign * (t - u[j]), epsilon, squared)
            loss += _loss(t - u[j], side_i, c, epsilon, squared)
            linear += _dual_term(beta[i], t, c, epsilon, squared)
            products += a * y
            pairs += 1
            if two:
                products += b * z
                pairs += 1
            if not squared:
                products += s * xi
                pairs += 1
            if a > 1e-3 * c or b > 1e-3 * c:
                free += s > 1e-3 * c
            p = a / y
            q = b / z
            h = s / xi
            weight[i - start] = np.sqrt((h * (p + q) + 4.0 * p * q) / (h + p + q))
            k[0, j] = beta[i]
            k[1, j] = sign * _shift(a, b, s, y, z, xi, -a, -b, 0.0 if squared else -s)
            k[2, j] = sign * _shift(a, b, s, y, z, xi, 1.0 / y, 1.0 / z if two else 0.0, 0.0 if squared else 1.0 / xi)
        for row in range(3):
            combine(rows, begin, end, k[row], vectors[row])
    sums[0] += loss
    sums[1] += linear
    sums[2] += products
    sums[3] += pairs
    sums[4] += free


@compiled
def scale_rows(rows, weight, start, stop, out):
    """out = weight ∘ rows start … stop, written out densely."""
    indptr, indices, data, width, bias, first, second = rows
    n = uint64(width)
    for i in range(stop - start):
        a, b = stored_pair(first, second, start + i)
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
