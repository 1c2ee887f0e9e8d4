"""What maps share whose weights are an array of their own, or whose metric is a diagonal."""

from ..rows import bounds, column, dot, weighted_difference, weighted_inner


def score_of_weights(indptr, indices, data, width, bias, r, m):
    return dot(indptr, indices, data, width, bias, r, m.w)


def inner(indptr, indices, data, width, bias, a, b, m):
    return weighted_inner(indptr, indices, data, width, bias, a, b, m.scale)


def difference(indptr, indices, data, width, bias, a, b, m):
    return weighted_difference(indptr, indices, data, width, a, b, m.scale)


def spread(indptr, indices, data, width, bias, r, c, m, out):
    start, stop = bounds(indptr, indices, width, r)
    for k in range(start, stop):
        j = column(indices, k, start)
        out[j] += c * data[k] * m.scale[j]
    if bias != 0.0:
        out[width] += c * bias * m.scale[width]
