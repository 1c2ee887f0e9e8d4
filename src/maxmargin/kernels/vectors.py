"""Vector operations that NumPy could only do with temporary arrays, on other threads, or not at all."""

import numpy as np

from . import compiled


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
