"""Values of several examples one behind the other: example i owns ``first[i] … first[i+1] − 1``, at least one."""

from . import compiled


@compiled
def largest(values, first, out):
    """out[i]: the place of the largest value of example i among its own, the first of equal ones."""
    for i in range(out.size):
        best = first[i]
        for p in range(first[i] + 1, first[i + 1]):
            if values[p] > values[best]:
                best = p
        out[i] = best - first[i]
