"""Whole-vector operations that NumPy could only do with temporary arrays."""

from . import compiled


@compiled
def extrapolate(v, previous, momentum):
    """v ← v + momentum·(v − previous), previous ← the old v."""
    for j in range(v.size):
        old = v[j]
        v[j] = old + momentum * (old - previous[j])
        previous[j] = old
