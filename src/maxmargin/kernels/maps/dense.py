"""w = centre + covariance·v: the full Gaussian prior."""

from typing import Any, NamedTuple

import numpy as np

from .. import inlined
from ..rows import bounds, column
from .diagonal import score_of_weights as score

__all__ = ["READS", "Dense", "difference", "inner", "move", "score", "spread"]


READS = frozenset({"centre", "scale", "covariance"})  # a scale is a part of the covariance too


class Dense(NamedTuple):
    v: np.ndarray
    w: np.ndarray
    centre: np.ndarray
    covariance: np.ndarray

    @classmethod
    def bind(cls, v: np.ndarray, shape: Any) -> "Dense":
        return cls(v, np.empty(v.size), shape.filled("centre"), shape.covariance)

    def refresh(self) -> None:
        self.w[:] = self.centre + self.covariance @ self.v

    def weights(self) -> np.ndarray:
        return self.w


@inlined
def _dense_entry(j, change, v, w, covariance):
    v[j] += change
    for i in range(w.size):
        w[i] += change * covariance[j, i]


def move(indptr, indices, data, width, bias, r, c, m):
    v, w, _, covariance = m
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


def inner(indptr, indices, data, width, bias, a, b, m):
    return _dense_inner(indptr, indices, data, width, bias, a, b, m.covariance)


def difference(indptr, indices, data, width, bias, a, b, m):
    total = _dense_inner(indptr, indices, data, width, bias, a, a, m.covariance)
    total += _dense_inner(indptr, indices, data, width, bias, b, b, m.covariance)
    return max(total - 2.0 * _dense_inner(indptr, indices, data, width, bias, a, b, m.covariance), 0.0)


def spread(indptr, indices, data, width, bias, r, c, m, out):
    start, stop = bounds(indptr, indices, width, r)
    for k in range(start, stop):
        j = column(indices, k, start)
        for i in range(out.size):
            out[i] += c * data[k] * m.covariance[j, i]
    if bias != 0.0:
        for i in range(out.size):
            out[i] += c * bias * m.covariance[width, i]
