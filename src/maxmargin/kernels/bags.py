"""Bags of instances: which of its rows a bag shows.

    score of a bag   f(x_i) = max_z w·x_iz            z_i = argmax_z w·x_iz, the first of equals

Bag i owns the rows ``offsets[i] … offsets[i+1]−1`` of a matrix that is read once, in order.
"""

import numpy as np

from . import compiled
from .rows import add, dot, squares


@compiled
def look(rows, offsets, bags, w, place, scores, best):
    """Scores of all instances of the bags named in ``bags``, the k-th at ``scores[place[k]:]``, and the best of each.

    Best instances are counted from 0 within their bag.
    """
    indptr, indices, data, width, bias, first, second = rows
    for k in range(bags.size):
        start = offsets[bags[k]]
        top = -np.inf
        best[k] = 0
        for z in range(offsets[bags[k] + 1] - start):
            score = dot(indptr, indices, data, width, bias, start + z, w)
            scores[place[k] + z] = score
            if score > top:
                top = score
                best[k] = z


@compiled
def nearest_to_mean(rows, offsets, bags, best):
    """Of each of these bags the instance at the least distance from the mean of the bag.

    ‖x_z − m‖² = ‖x_z‖² − 2 x_z·m + ‖m‖², of which the last term is the same for all.
    """
    indptr, indices, data, width, bias, first, second = rows
    mean = np.zeros(width)
    for k in range(bags.size):
        start = offsets[bags[k]]
        size = offsets[bags[k] + 1] - start
        mean[:] = 0.0
        for r in range(start, start + size):
            add(indptr, indices, data, width, 0.0, r, 1.0 / size, mean)
        least = np.inf
        best[k] = 0
        for z in range(size):
            r = start + z
            far = squares(indptr, indices, data, width, 0.0, r) - 2.0 * dot(
                indptr, indices, data, width, 0.0, r, mean
            )
            if far < least:
                least = far
                best[k] = z
