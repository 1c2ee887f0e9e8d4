"""Vector operations that NumPy could only do with temporary arrays, or not at all."""

from . import compiled


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
