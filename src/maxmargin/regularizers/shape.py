"""A regularizer as the arrays that kernels read: u = centre + scale∘v, then clipped or shrunk by groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels.maps import Clipped, Dense, Grouped, Plain, WeightMap


@dataclass(frozen=True)
class Shape:
    """Arrays of one map; ``None`` stands for the trivial choice (zeros, ones, −∞, no groups, diagonal)."""

    n_weights: int
    centre: np.ndarray | None = None
    scale: np.ndarray | None = None
    floor: np.ndarray | None = None
    group: np.ndarray | None = None
    threshold: np.ndarray | None = None
    covariance: np.ndarray | None = None

    @property
    def kind(self) -> type:
        """The type of the kernel's map."""
        if self.covariance is not None:
            return Dense
        if self.group is not None:
            return Grouped
        if self.centre is not None or self.floor is not None or not self.even:
            return Clipped
        return Plain

    @property
    def even(self) -> bool:
        """Whether all weights have the same scale, and say so by being one number seen many times."""
        return self.scale is None or self.scale.strides == (0,)

    def same_metric(self, other: Shape) -> bool:
        """Whether both measure rows alike: then what is known of their inner products can be kept."""
        pairs = ((self.scale, other.scale), (self.covariance, other.covariance))
        return all(a is b or (a is not None and b is not None and np.array_equal(a, b)) for a, b in pairs)

    def bind(self, v: np.ndarray) -> WeightMap:
        """The kernel's view of this map at v. It shares ``v``: kernels move it in place."""
        n = self.n_weights
        centre = np.zeros(n) if self.centre is None else self.centre
        scale = np.ones(n) if self.scale is None else np.ascontiguousarray(self.scale)
        bound: WeightMap
        if self.covariance is not None:
            bound = Dense(v, np.empty(n), centre, self.covariance)
        elif self.group is not None and self.threshold is not None:
            groups = np.zeros(self.threshold.size)
            bound = Grouped(v, np.empty(n), centre, scale, self.group, self.threshold, groups, groups.copy())
        elif self.kind is Clipped:
            floor = np.full(n, -np.inf) if self.floor is None else self.floor
            bound = Clipped(v, np.empty(n), centre, scale, floor)
        else:
            return Plain(v, 1.0 if self.scale is None else float(self.scale[0]))
        refresh(bound)
        return bound


def refresh(m: WeightMap) -> None:
    """Recompute all that follows from v, after v was changed from outside or rounding may have crept in."""
    match m:
        case Dense(v, w, centre, covariance):
            w[:] = centre + covariance @ v
        case Clipped(v, w, centre, scale, floor):
            np.maximum(centre + scale * v, floor, out=w)
        case Grouped(v, u, centre, scale, group, threshold, squared_norm, factor):
            u[:] = centre + scale * v
            squared_norm[:] = np.bincount(group, weights=u**2, minlength=threshold.size)
            factor[:] = shrinkage(np.sqrt(squared_norm), threshold)


def weights_of(m: WeightMap) -> np.ndarray:
    """The weights that a map stands for at its v."""
    match m:
        case Plain(v, scale):
            return v if scale == 1.0 else scale * v
        case Grouped(u=u, group=group, factor=factor):
            return u * factor[group]
    return m.w


def shrinkage(norm: np.ndarray, threshold: np.ndarray) -> np.ndarray:
    """max(0, 1 − threshold/norm), with 1 where nothing is to be shrunk."""
    safe = np.where(norm > threshold, norm, 1.0)
    factor = np.where(norm > threshold, 1.0 - threshold / safe, 0.0)
    return np.where(threshold == 0.0, 1.0, factor)


def join(parts: list[tuple[np.ndarray, Shape]], n_weights: int) -> Shape:
    """One map from maps of disjoint sets of coordinates."""
    centre = scale = floor = group = threshold = covariance = None
    if any(s.covariance is not None for _, s in parts):
        covariance = np.zeros((n_weights, n_weights))
    if any(s.group is not None for _, s in parts):
        group = np.zeros(n_weights, np.int64)
        threshold = np.zeros(1)  # group 0 is never shrunk: it holds the coordinates without a group
    for index, s in parts:
        if s.centre is not None:
            centre = np.zeros(n_weights) if centre is None else centre
            centre[index] = s.centre
        if s.scale is not None:
            scale = np.ones(n_weights) if scale is None else scale
            scale[index] = s.scale
        if s.floor is not None:
            floor = np.full(n_weights, -np.inf) if floor is None else floor
            floor[index] = s.floor
        if s.group is not None and group is not None and threshold is not None:
            group[index] = s.group + threshold.size
            threshold = np.concatenate([threshold, s.threshold])
        if covariance is not None:
            block = s.covariance
            if block is None:
                block = np.diag(np.ones(s.n_weights) if s.scale is None else s.scale)
            covariance[np.ix_(index, index)] = block
    if (group is not None or covariance is not None) and floor is not None:
        raise ValueError(
            "Lower bounds cannot be combined with group norms or full covariances on other weights. "
            "Use a diagonal covariance, or drop the bounds."
        )
    if group is not None and covariance is not None:
        raise ValueError("Group norms cannot be combined with a full covariance on other weights.")
    return Shape(n_weights, centre, scale, floor, group, threshold, covariance)
