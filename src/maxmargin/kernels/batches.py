"""Batches of rows on their way between files and memory: checked once, dealt and gathered.

Problem, dual and paper: none; these kernels move rows. What they guarantee is that no other kernel ever reads out of
bounds, whatever a file says: ``check_rows`` looks at every offset and index before a batch is handed out.
"""

import numpy as np

from . import compiled

# What ``check_rows`` finds, in this order.
GOOD, BAD_OFFSETS, BAD_INDEX, UNSORTED, NOT_FINITE = range(5)


@compiled
def check_rows(indptr, indices, values, n_features):
    """(verdict, row, entry) of the first thing that is wrong with CSR rows; ``GOOD`` if nothing is."""
    n = indptr.size - 1
    if n < 0 or indptr[0] != 0 or indptr[n] != indices.size or indices.size != values.size:
        return BAD_OFFSETS, 0, 0
    for i in range(n):  # first all offsets: until they are known to be good, no entry may be looked at
        if indptr[i + 1] < indptr[i] or indptr[i + 1] > indices.size:
            return BAD_OFFSETS, i, 0
    unsorted_row = -1
    unsorted_entry = -1
    for i in range(n):
        last = np.int64(-1)
        for p in range(indptr[i], indptr[i + 1]):
            j = np.int64(indices[p])
            if j < 0 or j >= n_features:
                return BAD_INDEX, i, p
            if j <= last and unsorted_row < 0:
                unsorted_row = i
                unsorted_entry = p
            last = j
            if not np.isfinite(values[p]):
                return NOT_FINITE, i, p
    if unsorted_row >= 0:
        return UNSORTED, unsorted_row, unsorted_entry
    return GOOD, 0, 0


@compiled
def gather_entries(order, starts, sizes, indices, values, out_offsets, out_indices, out_values):
    """The entries of the rows ``order``, one after another; offsets (int32) of where each row begins."""
    at = np.int64(0)
    for k in range(order.size):
        i = order[k]
        out_offsets[k] = at
        first = starts[i]
        size = np.int64(sizes[i])
        for p in range(size):  # two loops, each of which the compiler turns into wide copies
            out_indices[at + p] = indices[first + p]
        for p in range(size):
            out_values[at + p] = values[first + p]
        at += size
    out_offsets[order.size] = at


def scrambled(numbers: np.ndarray, seed: np.uint64) -> np.ndarray:
    """A 64-bit key for each number, as good as random and never the same for two numbers.

    The finalizer of SplitMix64 (Steele, Lea & Flood 2014): a bijection, so sorting by the key is a shuffle that
    depends on the numbers and the seed alone, not on how they come in pieces.
    """
    z = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + seed
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return z ^ (z >> np.uint64(31))
