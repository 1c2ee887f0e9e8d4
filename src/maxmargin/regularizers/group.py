"""Group norms: sparse in groups of weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..kernels.maps.grouped import shrinkage
from ..kernels.vectors import dot
from ..validation import numbers, shown
from .shape import Shape, smooth_conjugate_error


class GroupNorm:
    """Ω(w) = Σ_p weights_p ‖w^p‖ + l2/2 ‖w − centre‖²: whole groups of weights become exactly zero.

    With ``l2=0`` (the default) the norm is pure and not strongly convex; the solver then takes proximal
    steps, each of them this regularizer with an l2 term around the last weights.

    Parameters
    ----------
    groups : list of int arrays
        A partition of the weights: every weight in exactly one group.
    weights : float or array (n_groups,)
        How strongly each group is drawn to zero.
    l2 : float
        The strength of the quadratic term.
    centre : array (n_weights,) or None
        Where the quadratic term is zero; the origin by default.

    Examples
    --------
    >>> GroupNorm([[0, 1], [2]], weights=1.0, l2=1.0).weights(np.array([3.0, 4.0, 0.5]))
    array([2.4, 3.2, 0. ])
    """

    def __init__(
        self, groups: Sequence[object], weights: Any = 1.0, l2: float = 0.0, centre: np.ndarray | None = None
    ) -> None:
        self.groups = groups
        self.strength = weights
        self.l2 = l2
        self.centre = centre
        self._group, self._threshold = self._check()

    def _check(self) -> tuple[np.ndarray, np.ndarray]:
        """Group number of every weight, and λ of every group."""
        listed = isinstance(self.groups, Sequence | np.ndarray)
        groups = [np.asarray(g) for g in self.groups] if listed else []
        if not groups or not all(g.ndim and g.size and g.dtype.kind in "iu" for g in groups):
            raise ValueError(
                "GroupNorm: groups must be a list of lists of whole numbers, none empty, such as [[0, 1], [2]]; got "
                f"{shown(self.groups)}."
            )
        flat = np.concatenate([g.ravel() for g in groups])
        n = flat.size
        times = np.bincount(flat[(flat >= 0) & (flat < n)], minlength=n)  # of a partition there are no others
        if (times != 1).any():
            j = int(np.argmax(times != 1))
            raise ValueError(
                f"GroupNorm: weight {j} is in {times[j]} groups. Groups must not overlap, and every weight of 0 … "
                f"{n - 1} needs one, with weight 0 if need be."
            )
        strength = numbers("GroupNorm: weights", self.strength)
        if strength.shape not in ((), (len(groups),)):
            raise ValueError(
                f"GroupNorm: weights must be one number or one per group ({len(groups)}), got shape {strength.shape}."
            )
        threshold = np.broadcast_to(strength, len(groups)).copy()
        if not (threshold >= 0).all() or not np.isfinite(threshold).all():
            raise ValueError("GroupNorm: weights must be finite and not negative.")
        if not isinstance(self.l2, int | float | np.number) or not (np.isfinite(self.l2) and self.l2 >= 0):
            raise ValueError(f"GroupNorm: l2 must be a number >= 0, got {self.l2!r}.")
        if self.l2 == 0 and (threshold == 0).any():
            raise ValueError("GroupNorm: a group with weight 0 needs l2 > 0, or nothing holds its weights.")
        if self.centre is not None and np.shape(self.centre) != (n,):
            raise ValueError(f"GroupNorm: centre has shape {np.shape(self.centre)}, the groups cover {n} weights.")
        group = np.empty(n, np.int64)
        for p, g in enumerate(groups):
            group[g] = p
        return group, threshold

    @property
    def pure(self) -> bool:
        return self.l2 == 0

    def around(self, centre: np.ndarray, l2: float) -> GroupNorm:
        """The proximal step: the same norm with an l2 term around ``centre``."""
        self._check_size(centre.size)
        return GroupNorm(self.groups, self.strength, l2=l2, centre=centre)

    def dual_radius(self) -> float:
        """The largest ‖v‖ for which Ω*(v) of the pure norm is finite."""
        return float(np.sqrt(dot(self._threshold, self._threshold)))

    def norms(self, w: np.ndarray) -> np.ndarray:
        """‖w^p‖ for every group."""
        self._check_size(w.size)
        return np.sqrt(np.bincount(self._group, weights=w * w, minlength=self._threshold.size))

    def value(self, w: np.ndarray) -> float:
        off = w if self.centre is None else w - self.centre
        return float(self._threshold @ self.norms(w)) + 0.5 * self.l2 * dot(off, off)

    def conjugate(self, v: np.ndarray) -> float:
        if self.pure:
            return 0.0 if (self.norms(v) <= self._threshold * (1 + 1e-9)).all() else np.inf
        w = self.weights(v)
        return dot(w, v) - self.value(w)

    def conjugate_error(self, v: np.ndarray, error: np.ndarray) -> float:
        """None for the pure norm: inside the ball, where lower bounds are taken, Ω* is zero."""
        return 0.0 if self.pure else smooth_conjugate_error(self, v, error)

    def weights(self, v: np.ndarray) -> np.ndarray:
        if self.pure:
            raise ValueError("GroupNorm: without an l2 term v does not determine the weights.")
        u = v / self.l2 if self.centre is None else self.centre + v / self.l2
        return u * shrinkage(self.norms(u), self._threshold / self.l2)[self._group]

    def _check_size(self, n_weights: int) -> None:
        if self._group.size != n_weights:
            raise ValueError(
                f"GroupNorm: the groups cover {self._group.size} weights, the problem has {n_weights}. Put every "
                "weight into a group."
            )

    def shape(self, n_weights: int) -> Shape:
        self._check_size(n_weights)
        if self.pure:
            raise ValueError(
                "GroupNorm: a pure group norm has no weight map: solve it by proximal steps, as fit does, or give it "
                "some l2: GroupNorm(groups, weights, l2=0.01)."
            )
        return Shape(
            n_weights,
            centre=self.centre,
            scale=np.full(n_weights, 1.0 / self.l2),
            group=self._group,
            threshold=self._threshold / self.l2,
        )

    def dual_scale(self, v: np.ndarray) -> float:
        norms = self.norms(v)
        over = norms > self._threshold
        return float((self._threshold[over] / norms[over]).min()) if over.any() else 1.0

    def __repr__(self) -> str:
        return f"GroupNorm({len(self.groups)} groups, weights={self.strength!r}, l2={self.l2!r})"
