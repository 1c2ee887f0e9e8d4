"""w^p = max(0, 1 − threshold_p/‖u^p‖)·u^p with u = centre + scale∘v: group norms.

``u`` is kept, and ``factor`` holds the shrinkage of every group: one row changes whole groups of weights at once, and
they are scaled when they are read.
"""

from typing import Any, NamedTuple

import numpy as np

from .. import inlined
from ..rows import bounds, column
from .diagonal import difference, inner, spread

__all__ = ["READS", "Grouped", "difference", "inner", "move", "score", "shrinkage", "spread"]


READS = frozenset({"centre", "scale", "group", "threshold"})


class Grouped(NamedTuple):
    v: np.ndarray
    u: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    group: np.ndarray
    threshold: np.ndarray
    squared_norm: np.ndarray
    factor: np.ndarray

    @classmethod
    def bind(cls, v: np.ndarray, shape: Any) -> "Grouped":
        norms, factors = np.zeros((2, shape.threshold.size))
        centre, scale = shape.filled("centre"), shape.filled("scale")
        return cls(v, np.empty(v.size), centre, scale, shape.group, shape.threshold, norms, factors)

    def refresh(self) -> None:
        self.u[:] = self.centre + self.scale * self.v
        self.squared_norm[:] = np.bincount(self.group, weights=self.u**2, minlength=self.threshold.size)
        self.factor[:] = shrinkage(np.sqrt(self.squared_norm), self.threshold)

    def weights(self) -> np.ndarray:
        return self.u * self.factor[self.group]


def shrinkage(norm: np.ndarray, threshold: np.ndarray) -> np.ndarray:
    """max(0, 1 − threshold/norm), with 1 where nothing is to be shrunk."""
    safe = np.where(norm > threshold, norm, 1.0)
    factor = np.where(norm > threshold, 1.0 - threshold / safe, 0.0)
    return np.where(threshold == 0.0, 1.0, factor)


@inlined
def _shrink_factor(squared_norm, threshold):
    if threshold == 0.0:
        return 1.0
    if squared_norm <= threshold * threshold:
        return 0.0
    return 1.0 - threshold / np.sqrt(squared_norm)


def score(indptr, indices, data, width, bias, r, m):
    w, group, factor = m.u, m.group, m.factor
    start, stop = bounds(indptr, indices, width, r)
    total = 0.0
    for k in range(start, stop):
        j = column(indices, k, start)
        total += data[k] * w[j] * factor[group[j]]
    if bias != 0.0:
        total += bias * w[width] * factor[group[width]]
    return total


@inlined
def _grouped_entry(j, change, v, w, centre, scale, group, threshold, squared_norm, factor):
    v[j] += change
    before = w[j]
    after = centre[j] + scale[j] * v[j]
    w[j] = after
    p = group[j]
    squared_norm[p] += after * after - before * before
    factor[p] = _shrink_factor(squared_norm[p], threshold[p])


def move(indptr, indices, data, width, bias, r, c, m):
    v, w, centre, scale, group, threshold, squared_norm, factor = m
    start, stop = bounds(indptr, indices, width, r)
    for k in range(start, stop):
        if data[k] != 0.0:
            j = column(indices, k, start)
            _grouped_entry(j, c * data[k], v, w, centre, scale, group, threshold, squared_norm, factor)
    if bias != 0.0:
        _grouped_entry(width, c * bias, v, w, centre, scale, group, threshold, squared_norm, factor)
