"""w = max(centre + scale∘v, floor): a diagonal prior, lower bounds, both."""

from typing import Any, NamedTuple

import numpy as np
from numpy import uint32, uint64

from .diagonal import difference, inner, score_of_weights as score, spread

__all__ = ["READS", "Clipped", "difference", "inner", "move", "score", "spread"]


READS = frozenset({"centre", "scale", "floor"})


class Clipped(NamedTuple):
    v: np.ndarray
    w: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    floor: np.ndarray

    @classmethod
    def bind(cls, v: np.ndarray, shape: Any) -> "Clipped":
        return cls(v, np.empty(v.size), shape.filled("centre"), shape.filled("scale"), shape.filled("floor"))

    def refresh(self) -> None:
        np.maximum(self.centre + self.scale * self.v, self.floor, out=self.w)

    def weights(self) -> np.ndarray:
        return self.w


def move(indptr, indices, data, width, bias, r, c, m):
    v, w, centre, scale, floor = m
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
