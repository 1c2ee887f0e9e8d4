"""The regularizer inside a kernel: how the weights w answer when v = Σ α x moves along one row.

    w = ∇Ω*(v)        with u = centre + scale∘v   (or centre + covariance·v)

| map     | w                                         | used by                              |
| ------- | ----------------------------------------- | ------------------------------------ |
| Plain   | scale·v, one number for all weights       | l2                                   |
| Clipped | max(u, floor)                             | diagonal prior, lower bounds, both   |
| Grouped | max(0, 1 − threshold_p/‖u^p‖)·u^p         | group norm                           |
| Dense   | centre + covariance·v                     | full Gaussian prior                  |

Each is a tuple type of its own and ``score``, ``move`` and ``curvature`` are chosen by that type when a
kernel is compiled: one kernel in the source, one machine-code version per map, and the plain map pays
nothing for the others. In a Grouped map ``u`` is kept and ``factor`` holds the shrinkage of every group: one
row changes whole groups of weights at once, and they are scaled when they are read.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import overload
from numpy import uint32, uint64

from . import inlined
from .rows import add, bounds, column, dot, squares, weighted_difference, weighted_inner


class Plain(NamedTuple):
    v: np.ndarray
    scale: float = 1.0


class Clipped(NamedTuple):
    v: np.ndarray
    w: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    floor: np.ndarray


class Grouped(NamedTuple):
    v: np.ndarray
    u: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    group: np.ndarray
    threshold: np.ndarray
    squared_norm: np.ndarray
    factor: np.ndarray


class Dense(NamedTuple):
    v: np.ndarray
    w: np.ndarray
    centre: np.ndarray
    covariance: np.ndarray


WeightMap = Plain | Clipped | Grouped | Dense


@inlined
def _shrink_factor(squared_norm, threshold):
    if threshold == 0.0:
        return 1.0
    if squared_norm <= threshold * threshold:
        return 0.0
    return 1.0 - threshold / np.sqrt(squared_norm)


@inlined
def _grouped_dot(indptr, indices, data, width, bias, r, w, group, factor):
    start, stop = bounds(indptr, indices, width, r)
    total = 0.0
    for k in range(start, stop):
        j = column(indices, k, start)
        total += data[k] * w[j] * factor[group[j]]
    if bias != 0.0:
        total += bias * w[width] * factor[group[width]]
    return total


@inlined
def _add_clipped(indptr, indices, data, width, bias, r, c, v, w, centre, scale, floor):
    if indices.size == 0:
        start = uint64(r * width)
        for j in range(uint64(width)):
            v[j] += c * data[start + j]
            w[j] = max(centre[j] + scale[j] * v[j], floor[j])
    else:
        for k in range(uint64(indptr[r]), uint64(indptr[r + 1])):
            j = uint32(indices[k])
            v[j] += c * data[k]
            w[j] = max(centre[j] + scale[j] * v[j], floor[j])
    if bias != 0.0:
        v[width] += c * bias
        w[width] = max(centre[width] + scale[width] * v[width], floor[width])


@inlined
def _grouped_entry(j, change, v, w, centre, scale, group, threshold, squared_norm, factor):
    v[j] += change
    before = w[j]
    after = centre[j] + scale[j] * v[j]
    w[j] = after
    p = group[j]
    squared_norm[p] += after * after - before * before
    factor[p] = _shrink_factor(squared_norm[p], threshold[p])


@inlined
def _add_grouped(indptr, indices, data, width, bias, r, c, v, w, centre, scale, group, threshold, squared_norm, factor):
    start, stop = bounds(indptr, indices, width, r)
    for k in range(start, stop):
        if data[k] != 0.0:
            j = column(indices, k, start)
            _grouped_entry(j, c * data[k], v, w, centre, scale, group, threshold, squared_norm, factor)
    if bias != 0.0:
        _grouped_entry(width, c * bias, v, w, centre, scale, group, threshold, squared_norm, factor)


@inlined
def _dense_entry(j, change, v, w, covariance):
    v[j] += change
    for i in range(w.size):
        w[i] += change * covariance[j, i]


@inlined
def _add_dense(indptr, indices, data, width, bias, r, c, v, w, covariance):
    start, stop = bounds(indptr, indices, width, r)
    for k in range(start, stop):
        if data[k] != 0.0:
            _dense_entry(column(indices, k, start), c * data[k], v, w, covariance)
    if bias != 0.0:
        _dense_entry(width, c * bias, v, w, covariance)


@inlined
def _dense_inner(indptr, indices, data, width, bias, a, b, covariance):
    i_start, i_stop = bounds(indptr, indices, width, a)
    j_start, j_stop = bounds(indptr, indices, width, b)
    total = 0.0
    for i in range(i_start, i_stop):
        p = column(indices, i, i_start)
        for j in range(j_start, j_stop):
            total += data[i] * covariance[p, column(indices, j, j_start)] * data[j]
        if bias != 0.0:
            total += data[i] * covariance[p, width] * bias
    if bias != 0.0:
        for j in range(j_start, j_stop):
            total += bias * covariance[width, column(indices, j, j_start)] * data[j]
        total += bias * bias * covariance[width, width]
    return total


def _score_plain(indptr, indices, data, width, bias, r, m):
    return m.scale * dot(indptr, indices, data, width, bias, r, m.v)


def _score_weights(indptr, indices, data, width, bias, r, m):
    return dot(indptr, indices, data, width, bias, r, m.w)


def _score_grouped(indptr, indices, data, width, bias, r, m):
    return _grouped_dot(indptr, indices, data, width, bias, r, m.u, m.group, m.factor)


def _move_plain(indptr, indices, data, width, bias, r, c, m):
    add(indptr, indices, data, width, bias, r, c, m.v)


def _move_clipped(indptr, indices, data, width, bias, r, c, m):
    _add_clipped(indptr, indices, data, width, bias, r, c, m.v, m.w, m.centre, m.scale, m.floor)


def _move_grouped(indptr, indices, data, width, bias, r, c, m):
    _add_grouped(
        indptr,
        indices,
        data,
        width,
        bias,
        r,
        c,
        m.v,
        m.u,
        m.centre,
        m.scale,
        m.group,
        m.threshold,
        m.squared_norm,
        m.factor,
    )


def _move_dense(indptr, indices, data, width, bias, r, c, m):
    _add_dense(indptr, indices, data, width, bias, r, c, m.v, m.w, m.covariance)


def _inner_plain(indptr, indices, data, width, bias, a, b, m):
    if a == b:
        return m.scale * squares(indptr, indices, data, width, bias, a)
    return m.scale * weighted_inner(indptr, indices, data, width, bias, a, b, _ONES)


def _inner_scaled(indptr, indices, data, width, bias, a, b, m):
    return weighted_inner(indptr, indices, data, width, bias, a, b, m.scale)


def _inner_dense(indptr, indices, data, width, bias, a, b, m):
    return _dense_inner(indptr, indices, data, width, bias, a, b, m.covariance)


def _difference_plain(indptr, indices, data, width, bias, a, b, m):
    return m.scale * weighted_difference(indptr, indices, data, width, a, b, _ONES)


def _difference_scaled(indptr, indices, data, width, bias, a, b, m):
    return weighted_difference(indptr, indices, data, width, a, b, m.scale)


def _difference_dense(indptr, indices, data, width, bias, a, b, m):
    total = _dense_inner(indptr, indices, data, width, bias, a, a, m.covariance)
    total += _dense_inner(indptr, indices, data, width, bias, b, b, m.covariance)
    return max(total - 2.0 * _dense_inner(indptr, indices, data, width, bias, a, b, m.covariance), 0.0)


def _spread_plain(indptr, indices, data, width, bias, r, c, m, out):
    add(indptr, indices, data, width, bias, r, c * m.scale, out)


def _spread_scaled(indptr, indices, data, width, bias, r, c, m, out):
    start, stop = bounds(indptr, indices, width, r)
    for k in range(start, stop):
        j = column(indices, k, start)
        out[j] += c * data[k] * m.scale[j]
    if bias != 0.0:
        out[width] += c * bias * m.scale[width]


def _spread_dense(indptr, indices, data, width, bias, r, c, m, out):
    start, stop = bounds(indptr, indices, width, r)
    for k in range(start, stop):
        j = column(indices, k, start)
        for i in range(out.size):
            out[i] += c * data[k] * m.covariance[j, i]
    if bias != 0.0:
        for i in range(out.size):
            out[i] += c * bias * m.covariance[width, i]


_ONES = np.empty(0)
_SPREAD = {Plain: _spread_plain, Clipped: _spread_scaled, Grouped: _spread_scaled, Dense: _spread_dense}
_SCORE = {Plain: _score_plain, Clipped: _score_weights, Grouped: _score_grouped, Dense: _score_weights}
_MOVE = {Plain: _move_plain, Clipped: _move_clipped, Grouped: _move_grouped, Dense: _move_dense}
_INNER = {Plain: _inner_plain, Clipped: _inner_scaled, Grouped: _inner_scaled, Dense: _inner_dense}
_DIFFERENCE = {
    Plain: _difference_plain,
    Clipped: _difference_scaled,
    Grouped: _difference_scaled,
    Dense: _difference_dense,
}


def stored_score(indptr, indices, data, width, bias, r, m):
    """w · (stored row r)."""
    return _SCORE[type(m)](indptr, indices, data, width, bias, r, m)


def stored_move(indptr, indices, data, width, bias, r, c, m):
    """v += c · (stored row r), and w follows."""
    _MOVE[type(m)](indptr, indices, data, width, bias, r, c, m)


def stored_inner(indptr, indices, data, width, bias, a, b, m):
    """xₐᵀ S x_b with S the curvature of Ω* (an upper bound of it where the map is not linear)."""
    return _INNER[type(m)](indptr, indices, data, width, bias, a, b, m)


def stored_difference(indptr, indices, data, width, bias, a, b, m):
    """(xₐ − x_b)ᵀ S (xₐ − x_b)."""
    return _DIFFERENCE[type(m)](indptr, indices, data, width, bias, a, b, m)


def spread(indptr, indices, data, width, bias, r, c, m, out):
    """out += c · S (stored row r), with S the curvature of Ω* (an upper bound of it where the map is not linear)."""
    _SPREAD[type(m)](indptr, indices, data, width, bias, r, c, m, out)


_NUMPY = {"error_model": "numpy", "forceinline": True}


@overload(stored_score, jit_options=_NUMPY)
def _(indptr, indices, data, width, bias, r, m):
    return _SCORE[m.instance_class]


@overload(stored_move, jit_options=_NUMPY)
def _(indptr, indices, data, width, bias, r, c, m):
    return _MOVE[m.instance_class]


@overload(stored_inner, jit_options=_NUMPY)
def _(indptr, indices, data, width, bias, a, b, m):
    return _INNER[m.instance_class]


@overload(spread, jit_options=_NUMPY)
def _(indptr, indices, data, width, bias, r, c, m, out):
    return _SPREAD[m.instance_class]


@overload(stored_difference, jit_options=_NUMPY)
def _(indptr, indices, data, width, bias, a, b, m):
    return _DIFFERENCE[m.instance_class]


@inlined
def score(indptr, indices, data, width, bias, a, b, m):
    """w · (stored row a − stored row b), or w · (stored row a) if b is negative."""
    total = stored_score(indptr, indices, data, width, bias, a, m)
    if b >= 0:
        total -= stored_score(indptr, indices, data, width, bias, b, m)
    return total


@inlined
def move(indptr, indices, data, width, bias, a, b, c, m):
    """v += c · (stored row a − stored row b), and w follows."""
    stored_move(indptr, indices, data, width, bias, a, c, m)
    if b >= 0:
        stored_move(indptr, indices, data, width, bias, b, -c, m)


@inlined
def inner(indptr, indices, data, width, bias, a, b, c, d, m):
    """(row a − row b)ᵀ S (row c − row d) in the metric of the regularizer; negative b or d: no second row."""
    total = stored_inner(indptr, indices, data, width, bias, a, c, m)
    if b >= 0:
        total -= stored_inner(indptr, indices, data, width, bias, b, c, m)
    if d >= 0:
        total -= stored_inner(indptr, indices, data, width, bias, a, d, m)
        if b >= 0:
            total += stored_inner(indptr, indices, data, width, bias, b, d, m)
    return total


@inlined
def curvature(indptr, indices, data, width, bias, a, b, m):
    """‖row a − row b‖² in the metric of the regularizer, or ‖row a‖² if b is negative."""
    if b >= 0:
        return stored_difference(indptr, indices, data, width, bias, a, b, m)
    return stored_inner(indptr, indices, data, width, bias, a, a, m)
