"""Features of tokens from templates: numbers of values are looked up in tables, and no text is looked at."""

import numpy as np
from numpy import uint64

from . import compiled


@compiled
def find_pairs(values, first, second):
    """The place of each pair (values[p], values[p + 1]) among the known ones; their number where it is not known.

    The known pairs that begin with v have the places ``first[v]`` to ``first[v + 1] − 1``, where ``second`` ascends.
    """
    unknown = second.size
    found = np.full(values.size, np.int32(unknown))
    for p in range(values.size - 1):
        low = first[values[p]]
        end = first[values[p] + 1]
        high = end
        wanted = values[p + 1]
        while low < high:
            middle = (low + high) // 2
            if second[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        if low < end and second[low] == wanted:
            found[p] = low
    return found


@compiled
def number_features(at, rows, slots, table, indptr, indices):
    """The features of all tokens, slot by slot; returns how many there are.

    A slot is (row, by, start, stride): its feature of token t is ``table[start + stride·rows[row, at[t] + by]]``, −1
    where the token has none. ``indices`` has room for one more than all features that there may be.
    """
    n = uint64(0)
    for t in range(at.size):
        for s in range(slots.shape[0]):
            value = rows[slots[s, 0], at[t] + slots[s, 1]]
            feature = table[slots[s, 2] + slots[s, 3] * value]
            indices[n] = feature
            n += uint64(feature >= 0)
        indptr[t + 1] = np.int64(n)
    return np.int64(n)
