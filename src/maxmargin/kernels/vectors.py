"""Vector operations that NumPy could only do with temporary arrays, on other threads, or not at all; and sums whose
rounding errors are known, which certificates are made of.

A compensated sum keeps what each addition rounds away in a second number, ``low`` (Knuth's two-sum; Ogita, Rump and
Oishi 2005). With n terms its error is at most UNIT·|sum| + (n·UNIT)²·Σ|terms|, whatever cancels.
"""

import numpy as np

from ..rounding import UNIT
from . import compiled, inlined

_AT_ONCE = 1 << 15  # numbers that stay in the cache with what is made of them


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


def sum_error(total: float, size: float, n: int, each: int) -> float:
    """By how much a compensated sum of n terms may be off: ``size`` is Σ|terms|, each formed in ``each`` operations."""
    return 1.01 * (UNIT * abs(total) + (each * UNIT + (n * UNIT) ** 2) * size)


@inlined
def difference_error(subtracted, difference):
    """By how much a difference may be off: not at all where nothing was subtracted."""
    return 2.0 * UNIT * abs(difference) if subtracted != 0.0 else 0.0


def two_sums(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a + b rounded, and what was rounded away."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def compensated(terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sums over the first axis as two arrays, (sum, what was rounded away): halves are added to each other.

    >>> total, low = compensated(np.array([1e17, 1.0, -1e17]))
    >>> float(total + low)
    1.0
    """
    low = np.zeros(terms.shape[1:])
    with np.errstate(invalid="ignore"):  # infinite sums have no rest
        while len(terms) > 1:
            half = len(terms) // 2
            odd = terms[2 * half :]
            terms, lost = two_sums(terms[:half], terms[half : 2 * half])
            low += lost.sum(axis=0)
            if len(odd):
                terms[0], lost = two_sums(terms[0], odd[0])
                low += lost
    return (terms[0] if len(terms) else np.zeros_like(low)), low


def bounded_dot(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """a·b and by how much it may be off."""
    sums, size = [(0.0, 0.0)], 0.0
    for start in range(0, a.size, _AT_ONCE):
        terms = np.multiply(a[start : start + _AT_ONCE], b[start : start + _AT_ONCE], dtype=np.float64)
        size += float(np.abs(terms).sum())
        sums.append(compensated(terms))
    total, low = compensated(np.array([high for high, _ in sums]))
    total = float(total + (low + sum(rest for _, rest in sums)))
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
