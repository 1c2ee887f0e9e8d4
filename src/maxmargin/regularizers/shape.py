"""A regularizer as the arrays that kernels read: u = centre + scale∘v, then clipped or shrunk by groups; and what
rounding may have changed in Ω and Ω*, by which certificates are moved apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels.maps import MAPS, WeightMap
from ..kernels.vectors import dot
from ..rounding import gamma

_TRIVIAL = {"centre": 0.0, "scale": 1.0, "floor": -np.inf, "ceiling": np.inf}
_AFFINE = {"centre", "scale", "covariance"}
_FORMULA = 16  # operations besides those of the sums


@dataclass(frozen=True)
class Shape:
    """Arrays of one map; ``None`` stands for the trivial choice (zeros, ones, no bounds, no groups, diagonal).

    u is ``centre + scale∘v``, or ``centre + covariance·v`` (symmetric, positive semidefinite). The weights are u,
    clipped to ``floor`` … ``ceiling`` or shrunk by groups: ``group[k]`` is the number of weight k's group,
    ``threshold[p]`` by how much the norm of u in group p is shortened. Bounds, groups and
    a full covariance exclude each other.
    """

    n_weights: int
    centre: np.ndarray | None = None
    scale: np.ndarray | None = None
    floor: np.ndarray | None = None
    group: np.ndarray | None = None
    threshold: np.ndarray | None = None
    covariance: np.ndarray | None = None
    ceiling: np.ndarray | None = None

    @property
    def given(self) -> dict[str, np.ndarray]:
        """The arrays that are not trivial, by name."""
        return {name: array for name, array in vars(self).items() if name != "n_weights" and array is not None}

    @property
    def kind(self) -> type:
        """The type of the kernel's map: the first that reads all arrays."""
        given = set(self.given)
        if self.even:
            given.discard("scale")
        kind = next((kind for kind, known in MAPS.items() if given <= known.READS), None)
        if kind is None:
            raise ValueError(
                f"No weight map has {', '.join(sorted(given))} at the same time. Bounds need a diagonal covariance and "
                "no groups; groups need a diagonal covariance."
            )
        return kind

    @property
    def even(self) -> bool:
        """Whether all weights have the same scale, and say so by being one number seen many times."""
        return self.scale is None or self.scale.strides == (0,)

    @property
    def affine(self) -> bool:
        """Whether the weights are an affine function of v: nothing is clipped or shrunk."""
        return self.given.keys() <= _AFFINE

    def same_metric(self, other: Shape) -> bool:
        """Whether both measure rows alike: then what is known of their inner products can be kept."""
        pairs = ((self.scale, other.scale), (self.covariance, other.covariance))
        return all(a is b or (a is not None and b is not None and np.array_equal(a, b)) for a, b in pairs)

    def filled(self, name: str) -> np.ndarray:
        """An array of one number per weight, written out where it is trivial."""
        array = self.given.get(name)
        return np.full(self.n_weights, _TRIVIAL[name]) if array is None else np.ascontiguousarray(array)

    def bind(self, v: np.ndarray) -> WeightMap:
        """The kernel's view of this map at v. It shares ``v``: kernels move it in place."""
        bound: WeightMap = self.kind.bind(v, self)  # type: ignore[attr-defined]
        bound.refresh()
        return bound


def join(parts: list[tuple[np.ndarray, Shape]], n_weights: int) -> Shape:
    """One map from maps of disjoint sets of coordinates."""
    arrays: dict[str, np.ndarray] = {}
    if any(s.covariance is not None for _, s in parts):
        arrays["covariance"] = np.zeros((n_weights, n_weights))
    if any(s.group is not None for _, s in parts):
        arrays["group"] = np.zeros(n_weights, np.int64)
        arrays["threshold"] = np.zeros(1)  # group 0 is never shrunk: it holds the coordinates without a group
    for index, s in parts:
        for name, array in s.given.items():
            if name in _TRIVIAL:
                arrays.setdefault(name, np.full(n_weights, _TRIVIAL[name]))[index] = array
        if s.group is not None and s.threshold is not None:
            arrays["group"][index] = s.group + arrays["threshold"].size
            arrays["threshold"] = np.concatenate([arrays["threshold"], s.threshold])
        if "covariance" in arrays:
            block = np.diag(s.filled("scale")) if s.covariance is None else s.covariance
            arrays["covariance"][np.ix_(index, index)] = block
    if ("group" in arrays or "covariance" in arrays) and ("floor" in arrays or "ceiling" in arrays):
        raise ValueError(
            "Bounds cannot be combined with group norms or full covariances. "
            "Use a diagonal covariance, or drop the bounds."
        )
    if "group" in arrays and "covariance" in arrays:
        raise ValueError("Group norms cannot be combined with a full covariance.")
    return Shape(n_weights, **arrays)


def value_error(regularizer: Any, w: np.ndarray) -> float:
    """By how much the exact Ω(w) may be above ``value(w)``.

    A regularizer may say so itself, by a method of this name; any other is taken for a sum of terms that are not
    negative, each formed in a few operations.
    """
    own = getattr(regularizer, "value_error", None)
    if own is not None:
        return own(w)
    return gamma(w.size + _FORMULA) * abs(regularizer.value(w))


def conjugate_error(regularizer: Any, v: np.ndarray, error: np.ndarray) -> float:
    """By how much Ω* may be above ``conjugate(v)`` anywhere within ``error`` of v.

    A regularizer may say so itself, by a method of this name.
    """
    own = getattr(regularizer, "conjugate_error", None)
    return smooth_conjugate_error(regularizer, v, error) if own is None else own(v, error)


def smooth_conjugate_error(regularizer: Any, v: np.ndarray, error: np.ndarray) -> float:
    """The same for a strongly convex Ω whose map from v to w is diagonal, as ``shape`` says, clipped or shrunk.

    The gradient of Ω* at v is w, and its curvature is at most the scale of the map. Ω*(v) = w·v − Ω(w) consists of
    terms no larger than these.
    """
    shape = regularizer.shape(v.size)
    scale = np.ones(v.size) if shape.scale is None else shape.scale
    centre = np.zeros(v.size) if shape.centre is None else np.abs(shape.centre)
    w = regularizer.weights(v)
    # The weights themselves are rounded by so much. w·v − Ω(w) is largest there: what it loses is of second order.
    slip = gamma(v.size + _FORMULA) * np.where(v == 0.0, 0.0, scale * np.abs(v) + centre)
    terms = dot(np.abs(w), np.abs(v)) + abs(regularizer.value(w))
    moved = dot(np.abs(w) + slip, error) + 0.5 * (dot(scale * error, error) + dot(slip, slip / scale))
    return 4.0 * gamma(v.size + _FORMULA) * terms + (1.0 + gamma(v.size + _FORMULA)) * moved
