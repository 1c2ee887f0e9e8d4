"""Regularizers for disjoint sets of weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..problem import is_pure
from ..protocols import Regularizer
from ..rounding import gamma
from ..validation import check_object, shown
from .shape import Shape, conjugate_error, join, value_error


class Blocks:
    """Different regularizers for disjoint sets of weights; their values add up.

    This is how an intercept keeps its plain l2 term beside any regularizer of the features, and how one
    regularizer is repeated for every class.

    Parameters
    ----------
    parts : list of (indices, regularizer)
        Together the indices must name every weight once.
    """

    def __init__(self, parts: Sequence[tuple[np.ndarray, Regularizer]]) -> None:
        if not all(isinstance(part, list | tuple) and len(part) == 2 for part in parts) or not len(parts):
            raise ValueError(
                f"Blocks: parts must be pairs (indices, regularizer), at least one; got {shown(parts)}. One is "
                "([0, 1], L2())."
            )
        for _, regularizer in parts:
            check_object("regularizer of a part", regularizer)
        self.parts = [(np.asarray(index, dtype=np.int64), r) for index, r in parts]
        every = np.sort(np.concatenate([index for index, _ in self.parts]))
        if not np.array_equal(every, np.arange(every.size)):
            raise ValueError("Blocks: the parts must cover every weight exactly once.")
        self.n_weights = every.size

    @property
    def pure(self) -> bool:
        return any(is_pure(r) for _, r in self.parts)

    def around(self, centre: np.ndarray, l2: float) -> Blocks:
        """A proximal step for the parts that need one; the others are strongly convex as they are."""
        return Blocks(
            [(i, r.around(centre[i], l2) if is_pure(r) else r) for i, r in self.parts]  # type: ignore[attr-defined]
        )

    def dual_radius(self) -> float:
        """The largest ‖v‖ for which Ω*(v) is finite, over the parts that need proximal steps."""
        pure = [r.dual_radius() for _, r in self.parts if is_pure(r)]  # type: ignore[attr-defined]
        return float(np.sqrt(np.square(pure).sum()))

    def value(self, w: np.ndarray) -> float:
        return sum(r.value(w[i]) for i, r in self.parts)

    def conjugate(self, v: np.ndarray) -> float:
        return sum(r.conjugate(v[i]) for i, r in self.parts)

    def value_error(self, w: np.ndarray) -> float:
        values = (abs(r.value(w[i])) for i, r in self.parts)
        return sum(value_error(r, w[i]) for i, r in self.parts) + gamma(len(self.parts)) * sum(values)

    def conjugate_error(self, v: np.ndarray, error: np.ndarray) -> float:
        values = (abs(r.conjugate(v[i])) for i, r in self.parts)
        errors = (conjugate_error(r, v[i], error[i]) for i, r in self.parts)
        return sum(errors) + gamma(len(self.parts)) * sum(values)

    def weights(self, v: np.ndarray) -> np.ndarray:
        w = np.empty(self.n_weights)
        for i, r in self.parts:
            w[i] = r.weights(v[i])
        return w

    def shape(self, n_weights: int) -> Shape:
        if n_weights != self.n_weights:
            raise ValueError(f"Blocks: the parts cover {self.n_weights} weights, the problem has {n_weights}.")
        return join([(i, r.shape(i.size)) for i, r in self.parts], n_weights)

    def dual_scale(self, v: np.ndarray) -> float:
        return min(r.dual_scale(v[i]) for i, r in self.parts if is_pure(r))  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"Blocks({[(i.size, r) for i, r in self.parts]!r})"
