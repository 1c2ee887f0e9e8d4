"""w = min(max(centre + scale∘v, floor), ceiling): bounds on both sides."""

from typing import Any, NamedTuple

import numpy as np
from numpy import uint32, uint64

from .. import inlined
from .diagonal import difference, inner, score_of_weights as score, spread

__all__ = ["READS", "Boxed", "difference", "inner", "move", "score", "spread"]


READS = frozenset({"centre", "scale", "floor", "ceiling"})


class Boxed(NamedTuple):
    v: np.ndarray
    w: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    floor: np.ndarray
    ceiling: np.ndarray

    @classmethod
    def bind(cls, v: np.ndarray, shape: Any) -> "Boxed":
        return cls(v, np.empty(v.size), *(shape.filled(name) for name in ("centre", "scale", "floor", "ceiling")))

    def refresh(self) -> None:
        np.clip(self.centre + self.scale * self.v, self.floor, self.ceiling, out=self.w)

    def weights(self) -> np.ndarray:
        return self.w


@inlined
def _entry(j, change, v, w, centre, scale, floor, ceiling):
    v[j] += change
    w[j] = min(max(centre[j] + scale[j] * v[j], floor[j]), ceiling[j])


def move(indptr, indices, data, width, bias, r, c, m):
    v, w, centre, scale, floor, ceiling = m
    if indices.size == 0:
        start = uint64(r * width)
        for j in range(uint64(width)):
            _entry(j, c * data[start + j], v, w, centre, scale, floor, ceiling)
    else:
        for k in range(uint64(indptr[r]), uint64(indptr[r + 1])):
            _entry(uint32(indices[k]), c * data[k], v, w, centre, scale, floor, ceiling)
    if bias != 0.0:
        _entry(uint64(width), c * bias, v, w, centre, scale, floor, ceiling)
