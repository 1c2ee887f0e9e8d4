"""Vector operations that NumPy could only do with temporary arrays, on other threads, or not at all; and sums whose
rounding errors are known, which certificates are made of.

A compensated sum keeps what each addition rounds away in a second number, ``low`` (Knuth's two-sum; Ogita, Rump and
Oishi 2005). With n terms its error is at most UNIT·|sum| + (n·UNIT)²·Σ|terms|, whatever cancels.
"""

import numpy as np

from ..rounding import UNIT
from . import compiled, inlined


def dot(a, b):
    """a·b on the calling thread.

    BLAS hands long vectors to its thread pool and waits; inside a solver that calls it once per pass, on a
    machine with other work to do, the waiting took most of the time of a fit.

    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return float(np.einsum("i,i->", a, b))


@compiled
def extrapolate(v, previous, momentum):
    """v ← v + momentum·(v − previous), previous ← the old v."""
    for j in range(v.size):
        old = v[j]
        v[j] = old + momentum * (old - previous[j])
        previous[j] = old


@compiled
def largest(values, first, out):
    """out[i]: the place of the largest value of example i, the first of equal ones, among its own.

    These are ``values[first[i]] … values[first[i+1] − 1]``, at least one.
    """
    for i in range(out.size):
        best = first[i]
        for p in range(first[i] + 1, first[i + 1]):
            if values[p] > values[best]:
                best = p
        out[i] = best - first[i]


@inlined
def two_sum(total, low, term):
    """total + low + term, as a new total and what is too small for it."""
    new = total + term
    part = new - total
    return new, low + ((total - (new - part)) + (term - part))


@compiled
def sum_error(total, size, n, each):
    """By how much a compensated sum of n terms may be off: ``size`` is Σ|terms|, each formed in ``each`` operations."""
    return 1.01 * (UNIT * abs(total) + (each * UNIT + (n * UNIT) ** 2) * size)


@inlined
def difference_error(subtracted, difference):
    """By how much a difference may be off: not at all where nothing was subtracted."""
    return 2.0 * UNIT * abs(difference) if subtracted != 0.0 else 0.0


@compiled
def bounded_dot(a, b):
    """a·b and by how much it may be off."""
    total = 0.0
    low = 0.0
    size = 0.0
    for i in range(a.size):
        term = np.float64(a[i]) * b[i]
        total, low = two_sum(total, low, term)
        size += abs(term)
    total += low
    return total, sum_error(total, size, a.size, 1)


@compiled
def within(values, total):
    """Scale values ≥ 0 down, in place, by a few units of rounding, if their exact sum may be above ``total``."""
    used = 0.0
    n = 0
    for k in range(values.size):
        used += values[k]
        n += values[k] > 0.0
    # One value is its own sum. The exact sum of several is above the computed one by a share (n − 1)·UNIT at most.
    room = total if n <= 1 else total * (1.0 - 2.0 * (n + 4) * UNIT)
    if used > room:
        factor = room / used
        for k in range(values.size):
            values[k] *= factor
