"""Shares of a budget: Euclidean projections onto simplices, by the method of Michelot (1986), which sorts nothing."""

from . import compiled, inlined
from .rows import at
from .vectors import within


@compiled
def to_simplex(values, total):
    """Project onto {values ≥ 0, Σ values = total}, in place.

    Entries that fall below the common shift leave, the shift is found anew, until none does.
    """
    inside = values.size
    mass = 0.0
    for k in range(values.size):
        mass += values[k]
    shift = (mass - total) / inside
    while True:
        kept = 0
        mass = 0.0
        for k in range(values.size):
            if values[k] > shift:
                kept += 1
                mass += values[k]
        # In exact arithmetic the number never grows; rounding must not make this loop go back and forth.
        if kept >= inside or kept == 0:
            break
        inside = kept
        shift = (mass - total) / inside
    for k in range(values.size):
        values[k] = max(values[k] - shift, 0.0)


@compiled
def project(values, total):
    """Project onto {values ≥ 0, Σ values ≤ total}, in place."""
    used = 0.0
    for k in range(values.size):
        values[k] = max(values[k], 0.0)
        used += values[k]
    if used > total:
        to_simplex(values, total)


@inlined
def project_first(values, n, total):
    """The same for the first n values alone: a slice taken here has no references that would be counted."""
    project(values[:n], total)


@compiled
def project_examples(alpha, first, budget):
    """Make every example's variables feasible, in place: those of example i begin at ``first[i]``."""
    for i in range(first.size - 1):
        project(alpha[first[i] : first[i + 1]], at(budget, i))
        within(alpha[first[i] : first[i + 1]], at(budget, i))
