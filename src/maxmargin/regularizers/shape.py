"""A regularizer as the arrays that kernels read: u = centre + scale∘v, then clipped or shrunk by groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels.maps import MAPS, WeightMap

_TRIVIAL = {"centre": 0.0, "scale": 1.0, "floor": -np.inf, "ceiling": np.inf}
_AFFINE = {"centre", "scale", "covariance"}


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
