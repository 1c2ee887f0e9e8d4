"""Pairs of examples of one group in which the first is preferred to the second."""

import numpy as np

from . import compiled


@compiled
def count_pairs(order, start, grade):
    """How many pairs there are when group g is ``order[start[g]:start[g+1]]``, grades ascending inside."""
    total = 0
    for g in range(start.size - 1):
        below = 0
        same = 0
        for p in range(start[g], start[g + 1]):
            if p > start[g] and grade[order[p]] > grade[order[p - 1]]:
                below += same
                same = 0
            total += below
            same += 1
    return total


@compiled
def list_pairs(order, start, grade, plus, minus):
    """Fill (plus, minus) with all pairs where grade[plus] > grade[minus], group by group."""
    n = 0
    for g in range(start.size - 1):
        for p in range(start[g], start[g + 1]):
            for q in range(start[g], p):
                if grade[order[q]] < grade[order[p]]:
                    plus[n] = order[p]
                    minus[n] = order[q]
                    n += 1


@compiled
def ordered_share(order, start, grade, score):
    """Share of the pairs whose scores are in the right order; ties count half."""
    right = 0.0
    total = 0
    for g in range(start.size - 1):
        for p in range(start[g], start[g + 1]):
            for q in range(start[g], p):
                if grade[order[q]] < grade[order[p]]:
                    difference = score[order[p]] - score[order[q]]
                    total += 1
                    right += 1.0 if difference > 0.0 else (0.5 if difference == 0.0 else 0.0)
    return right / total if total > 0 else np.nan
