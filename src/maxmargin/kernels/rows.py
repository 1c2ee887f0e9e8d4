"""One row of data against a weight vector: the two loops in which all time is spent.

A stored matrix is five values, always in this order: ``indptr, indices, data, width, bias``. Dense data has
empty ``indices``: row r is then ``data[r*width:(r+1)*width]``. ``bias`` stands for one more constant column
that is never stored. Row i of a problem is stored row ``i``, or, where ``minus`` is not empty, the difference of
two, ``plus[i] − minus[i]`` (ranking pairs).

Loops count with unsigned integers: signed counters are tested for wrap-around at every element, which keeps dense
loops out of vector registers (a factor of four to ten) and slows sparse ones. These have four partial sums, because
gather instructions are slower than plain loads on many processors. Together that is worth a factor of three.
"""

from typing import NamedTuple

import numpy as np
from numpy import uint32, uint64

from ..rounding import UNIT
from . import compiled, compiled_sum, inlined
from .vectors import two_sum

_LARGEST = 1e37  # of a number that float32 may hold


class RowArrays(NamedTuple):
    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    width: int
    bias: float
    plus: np.ndarray
    minus: np.ndarray


@compiled_sum
def _dense_dot(data, start, width, w):
    total = 0.0
    begin = uint64(start)
    for k in range(uint64(width)):
        total += data[begin + k] * w[k]
    return total


@compiled_sum
def _sum_of_squares(data, start, stop):
    total = 0.0
    for k in range(uint64(start), uint64(stop)):
        total += np.float64(data[k]) * data[k]
    return total


@compiled_sum
def _dense_inner(data, a, b, width):
    total = 0.0
    p = uint64(a)
    q = uint64(b)
    for k in range(uint64(width)):
        total += np.float64(data[p + k]) * data[q + k]
    return total


@compiled_sum
def _dense_difference(data, a, b, width):
    total = 0.0
    p = uint64(a)
    q = uint64(b)
    for k in range(uint64(width)):
        difference = np.float64(data[p + k]) - data[q + k]
        total += difference * difference
    return total


@compiled
def _sparse_dot(indices, data, start, stop, w):
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    k = uint64(start)
    end = uint64(stop)
    one = uint64(1)
    two = uint64(2)
    three = uint64(3)
    four = uint64(4)
    while k + four <= end:
        s0 += data[k] * w[uint32(indices[k])]
        s1 += data[k + one] * w[uint32(indices[k + one])]
        s2 += data[k + two] * w[uint32(indices[k + two])]
        s3 += data[k + three] * w[uint32(indices[k + three])]
        k += four
    while k < end:
        s0 += data[k] * w[uint32(indices[k])]
        k += one
    return (s0 + s1) + (s2 + s3)


@compiled_sum
def _dense_dot_and_size(data, start, width, w):
    total = 0.0
    size = 0.0
    begin = uint64(start)
    for k in range(uint64(width)):
        term = data[begin + k] * w[k]
        total += term
        size += abs(term)
    return total, size


@compiled_sum
def _sparse_dot_and_size(indices, data, start, stop, w):
    total = 0.0
    size = 0.0
    for k in range(uint64(start), uint64(stop)):
        term = data[k] * w[uint32(indices[k])]
        total += term
        size += abs(term)
    return total, size


@inlined
def remembered(norms, i, norm):
    """A squared norm, to float32; one that is too large for that is formed anew every time."""
    if norm < _LARGEST:
        norms[i] = norm
        return np.float64(norms[i])
    return norm


@inlined
def dot(indptr, indices, data, width, bias, r, w):
    """w · (stored row r, bias)."""
    if indices.size == 0:
        total = _dense_dot(data, r * width, width, w)
    else:
        total = _sparse_dot(indices, data, indptr[r], indptr[r + 1], w)
    if bias != 0.0:
        total += bias * w[width]
    return total


@inlined
def bounded_dot(indptr, indices, data, width, bias, a, b, w):
    """w · (stored row a, minus stored row b if that is not negative), and by how much it may be off.

    Differences are formed entry by entry: rows far from the origin have large scores that nearly cancel.
    """
    if b >= 0:
        total, size, n = _difference_dot_and_size(indptr, indices, data, width, a, b, w)
        return total, 1.01 * UNIT * (n + 5) * size
    if indices.size == 0:
        n = width
        total, size = _dense_dot_and_size(data, a * width, width, w)
    else:
        n = indptr[a + 1] - indptr[a]
        total, size = _sparse_dot_and_size(indices, data, indptr[a], indptr[a + 1], w)
    if bias != 0.0:
        total += bias * w[width]
        size += abs(bias * w[width])
    return total, 1.01 * UNIT * (n + 4) * size


@inlined
def add(indptr, indices, data, width, bias, r, c, v):
    """v += c · (stored row r, bias)."""
    if indices.size == 0:
        start = uint64(r * width)
        for k in range(uint64(width)):
            v[k] += c * data[start + k]
    else:
        for k in range(uint64(indptr[r]), uint64(indptr[r + 1])):
            v[uint32(indices[k])] += c * data[k]
    if bias != 0.0:
        v[width] += c * bias


@inlined
def squares(indptr, indices, data, width, bias, r):
    """‖(stored row r, bias)‖²."""
    if indices.size == 0:
        total = _sum_of_squares(data, r * width, (r + 1) * width)
    else:
        total = _sum_of_squares(data, indptr[r], indptr[r + 1])
    return total + bias * bias


@inlined
def bounds(indptr, indices, width, r):
    """Where stored row r begins and ends in ``data``."""
    if indices.size == 0:
        return np.int64(r) * width, (np.int64(r) + 1) * width
    return np.int64(indptr[r]), np.int64(indptr[r + 1])


@inlined
def column(indices, k, start):
    """The column of the k-th stored value, in a row that begins at ``start``."""
    if indices.size == 0:
        return k - start
    return np.int64(indices[k])


@inlined
def next_difference(indices, data, width, i, i_stop, i_start, j, j_stop, j_start):
    """The first entry of a row minus another, whose columns ascend: (column, value, where both go on).

    Rows are given by where they go on, end and begin in ``data``.
    """
    p = column(indices, i, i_start) if i < i_stop else np.int64(width)
    q = column(indices, j, j_start) if j < j_stop else np.int64(width)
    difference = 0.0
    if p <= q:
        difference += data[i]
        i += 1
    if q <= p:
        difference -= data[j]
        j += 1
    return min(p, q), difference, i, j


@compiled
def _difference_dot_and_size(indptr, indices, data, width, a, b, w):
    """w · (row a − row b), Σ|terms|, and how many there are."""
    i, i_stop = bounds(indptr, indices, width, a)
    j, j_stop = bounds(indptr, indices, width, b)
    i_start = i
    j_start = j
    total = 0.0
    size = 0.0
    n = 0
    while i < i_stop or j < j_stop:
        k, difference, i, j = next_difference(indices, data, width, i, i_stop, i_start, j, j_stop, j_start)
        term = difference * w[k]
        total += term
        size += abs(term)
        n += 1
    return total, size, n


@compiled
def weighted_inner(indptr, indices, data, width, bias, a, b, scale):
    """Σ_j scale_j a_j b_j over two stored rows (columns ascending); an empty ``scale`` means ones."""
    i, i_stop = bounds(indptr, indices, width, a)
    j, j_stop = bounds(indptr, indices, width, b)
    i_start = i
    j_start = j
    total = 0.0
    if indices.size == 0 and scale.size == 0:
        return _dense_inner(data, i, j, width) + bias * bias
    while i < i_stop and j < j_stop:
        p = column(indices, i, i_start)
        q = column(indices, j, j_start)
        if p == q:
            term = np.float64(data[i]) * data[j]
            total += term * scale[p] if scale.size else term
            i += 1
            j += 1
        elif p < q:
            i += 1
        else:
            j += 1
    if bias != 0.0:
        total += bias * bias * scale[width] if scale.size else bias * bias
    return total


@compiled
def weighted_difference(indptr, indices, data, width, a, b, scale):
    """Σ_j scale_j (a_j − b_j)² over two stored rows (columns ascending); an empty ``scale`` means ones.

    Summed entry by entry: from the squared norms it would be a difference of nearly equal numbers.
    """
    i, i_stop = bounds(indptr, indices, width, a)
    j, j_stop = bounds(indptr, indices, width, b)
    i_start = i
    j_start = j
    total = 0.0
    if indices.size == 0 and scale.size == 0:
        return _dense_difference(data, i, j, width)
    while i < i_stop or j < j_stop:
        k, difference, i, j = next_difference(indices, data, width, i, i_stop, i_start, j, j_stop, j_start)
        total += difference * difference * scale[k] if scale.size else difference * difference
    return total


@inlined
def at(values, i):
    """values_i, or the one value that all examples share."""
    return values[i] if values.size > 1 else values[0]


@inlined
def stored_pair(plus, minus, i):
    """The stored rows behind row i: (row, −1), or (plus, minus) of a difference."""
    if minus.size > 0:
        return np.int64(plus[i]), np.int64(minus[i])
    return np.int64(i), np.int64(-1)


@compiled
def count(rows):
    """How many rows there are."""
    if rows.minus.size > 0:
        return rows.minus.size
    if rows.indices.size == 0:
        return rows.data.size // rows.width
    return rows.indptr.size - 1


@compiled
def combine(rows, coefficients, v):
    """v += Σ_i coefficients_i · row i."""
    indptr, indices, data, width, bias, plus, minus = rows
    for i in range(coefficients.size):
        c = coefficients[i]
        if c != 0.0:
            a, b = stored_pair(plus, minus, i)
            add(indptr, indices, data, width, bias, a, c, v)
            if b >= 0:
                add(indptr, indices, data, width, bias, b, -c, v)


@inlined
def _bounded_add(indptr, indices, data, width, bias, r, c, v, low, size):
    """v + low += c · (stored row r, bias), nothing rounded away; ``size`` grows by |c · row|."""
    start, stop = bounds(indptr, indices, width, r)
    for k in range(start, stop):
        j = column(indices, k, start)
        term = c * data[k]
        v[j], low[j] = two_sum(v[j], low[j], term)
        size[j] += abs(term)
    if bias != 0.0:
        v[width], low[width] = two_sum(v[width], low[width], c * bias)
        size[width] += abs(c * bias)


@compiled
def _bounded_add_difference(indptr, indices, data, width, a, b, c, v, low, size):
    """The same for c · (stored row a − stored row b), whose bias cancels."""
    i, i_stop = bounds(indptr, indices, width, a)
    j, j_stop = bounds(indptr, indices, width, b)
    i_start = i
    j_start = j
    while i < i_stop or j < j_stop:
        k, difference, i, j = next_difference(indices, data, width, i, i_stop, i_start, j, j_stop, j_start)
        term = c * difference
        v[k], low[k] = two_sum(v[k], low[k], term)
        size[k] += abs(term)


@compiled
def bounded_combine(rows, coefficients, v, low, size):
    """The same as ``combine`` in compensated sums v + low, and the sums of the terms' absolute values in ``size``."""
    indptr, indices, data, width, bias, plus, minus = rows
    for i in range(coefficients.size):
        c = coefficients[i]
        if c != 0.0:
            a, b = stored_pair(plus, minus, i)
            if b >= 0:
                _bounded_add_difference(indptr, indices, data, width, a, b, c, v, low, size)
            else:
                _bounded_add(indptr, indices, data, width, bias, a, c, v, low, size)


@compiled
def scores(rows, w, out):
    """out_i = w · row i."""
    indptr, indices, data, width, bias, plus, minus = rows
    for i in range(out.size):
        a, b = stored_pair(plus, minus, i)
        out[i] = dot(indptr, indices, data, width, bias, a, w)
        if b >= 0:
            out[i] -= dot(indptr, indices, data, width, bias, b, w)


@compiled
def bounded_scores(rows, w, out, error):
    """out_i = w · row i, and by how much it may be off."""
    indptr, indices, data, width, bias, plus, minus = rows
    for i in range(out.size):
        a, b = stored_pair(plus, minus, i)
        out[i], error[i] = bounded_dot(indptr, indices, data, width, bias, a, b, w)


@compiled
def sizes(rows, first, last, table, n_labels, out):
    """out_p = Σ |x_j|·‖table_j‖ over all entries of the stored rows first[p] … last[p] − 1.

    Row j of the flat table are the weights of feature j for all labels. None of them is larger than its norm, which
    takes fewer instructions than the largest.
    """
    indptr, indices, data, width, bias, _, _ = rows
    for p in range(out.size):
        total = 0.0
        for r in range(first[p], last[p]):
            start, stop = bounds(indptr, indices, width, r)
            for k in range(start, stop):
                j = column(indices, k, start) * n_labels
                total += abs(data[k]) * np.sqrt(_sum_of_squares(table, j, j + n_labels))
            if bias != 0.0:
                j = np.int64(width) * n_labels
                total += abs(bias) * np.sqrt(_sum_of_squares(table, j, j + n_labels))
        out[p] = total


@compiled
def copy_rows(indptr, indices, data, dense, width, chosen, to_indptr, to_indices, to_data, at):
    """Put the chosen stored rows behind the first ``at`` rows of another store of the same kind."""
    if dense:
        for n in range(chosen.size):
            r = chosen[n]
            for k in range(width):
                to_data[(at + n) * width + k] = data[r * width + k]
        return
    end = to_indptr[at]
    for n in range(chosen.size):
        r = chosen[n]
        for k in range(indptr[r], indptr[r + 1]):
            to_indices[end] = indices[k]
            to_data[end] = data[k]
            end += 1
        to_indptr[at + n + 1] = end
