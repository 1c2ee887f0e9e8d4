"""w = scale·v, one number for all weights: l2."""

from typing import Any, NamedTuple

import numpy as np

from ..rows import add, dot, squares, weighted_difference, weighted_inner

READS = frozenset[str]()  # nothing: one scale for all weights is a number


class Plain(NamedTuple):
    v: np.ndarray
    scale: float = 1.0

    @classmethod
    def bind(cls, v: np.ndarray, shape: Any) -> "Plain":
        return cls(v, 1.0 if shape.scale is None else float(shape.scale[0]))

    def refresh(self) -> None:
        """Nothing follows from v: the weights are formed when they are asked for."""

    def weights(self) -> np.ndarray:
        return self.v if self.scale == 1.0 else self.scale * self.v


_ONES = np.empty(0)


def score(indptr, indices, data, width, bias, r, m):
    return m.scale * dot(indptr, indices, data, width, bias, r, m.v)


def move(indptr, indices, data, width, bias, r, c, m):
    add(indptr, indices, data, width, bias, r, c, m.v)


def inner(indptr, indices, data, width, bias, a, b, m):
    if a == b:
        return m.scale * squares(indptr, indices, data, width, bias, a)
    return m.scale * weighted_inner(indptr, indices, data, width, bias, a, b, _ONES)


def difference(indptr, indices, data, width, bias, a, b, m):
    return m.scale * weighted_difference(indptr, indices, data, width, a, b, _ONES)


def spread(indptr, indices, data, width, bias, r, c, m, out):
    add(indptr, indices, data, width, bias, r, c * m.scale, out)
