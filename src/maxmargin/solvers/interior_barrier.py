"""What holds the weights, as an interior-point method sees it: a quadratic, bounds, and group norms.

    Ω(w) = ½ (w − m)ᵀ P (w − m) + Σ_g λ_g ‖w_g‖,   lower ≤ w ≤ upper

Every bound has a slack x = ±(w − bound) and a multiplier z, every group norm is a second-order cone
(``interior_cones``). The barrier answers the questions that ``interior_rows`` answers for the examples.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from ..kernels.normal_equations import FAR
from ..problem import Problem
from .interior_cones import Cones

_NARROW = 1e-10  # of the larger of two bounds: if they are nearer to each other, their weight is fixed
READS = frozenset({"centre", "scale", "covariance", "floor", "ceiling", "group", "threshold"})  # the arrays known here
_ROOM = 0.25  # of the way between two bounds that a start keeps off each of them


class Penalty(NamedTuple):
    """A regularizer as such a sum; a group number below zero is none. P may be zero on groups."""

    precision: np.ndarray
    centre: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    group: np.ndarray
    strength: np.ndarray

    @staticmethod
    def of(problem: Problem) -> Penalty:
        n, regularizer = problem.n_weights, problem.regularizer
        near: Any = regularizer.around(np.zeros(n), 1.0) if problem.pure else regularizer  # type: ignore[attr-defined]
        shape = near.shape(n)
        if shape.covariance is not None:
            precision = linalg.inv(shape.covariance)
            precision = 0.5 * (precision + precision.T)
        else:
            precision = 1.0 / shape.filled("scale")
        group, strength = np.full(n, -1), np.zeros(0)
        if shape.group is not None and shape.threshold is not None:
            held = shape.threshold > 0.0
            group = np.where(held, np.cumsum(held) - 1, -1)[shape.group]
            inside = group >= 0
            scale = np.zeros(int(held.sum()))
            scale[group[inside]] = precision[inside]
            strength = shape.threshold[held] * scale
        if problem.pure:
            # What doubles with the proximal term is nothing but that term.
            twice = regularizer.around(np.zeros(n), 2.0).shape(n)  # type: ignore[attr-defined]
            precision = 2.0 * precision - 1.0 / twice.filled("scale")
        bounds = shape.filled("floor"), shape.filled("ceiling")
        return Penalty(precision, shape.filled("centre"), *bounds, group, strength)

    @property
    def fixed(self) -> np.ndarray:
        """Weights between whose bounds rounding leaves no room."""
        width, size = self.upper - self.lower, np.maximum(np.abs(self.lower), np.abs(self.upper))
        return np.isfinite(width) & (width <= _NARROW * size)

    def inside(self, w: np.ndarray) -> np.ndarray:
        return np.clip(w, self.lower, self.upper)


class BarrierPoint(NamedTuple):
    """Slacks and multipliers of bounds, then t and U of the cones."""

    x: np.ndarray
    z: np.ndarray
    t: np.ndarray
    U: np.ndarray


class Barrier:
    """The point of bounds and cones, and what a Newton step needs of them and of the quadratic."""

    def __init__(self, penalty: Penalty) -> None:
        self.penalty = penalty
        low, high = (np.flatnonzero(np.isfinite(b) & ~penalty.fixed) for b in (penalty.lower, penalty.upper))
        self.at = np.concatenate([low, high])
        self.sign = np.repeat([1.0, -1.0], [low.size, high.size])
        self.bound = np.concatenate([penalty.lower[low], penalty.upper[high]])
        self.cones = Cones(penalty.group, penalty.strength) if penalty.strength.size else None
        self.n_products = self.at.size + penalty.strength.size
        self.point = BarrierPoint(*np.zeros((4, 0)))

    def _times(self, dw: np.ndarray) -> np.ndarray:
        P = self.penalty.precision
        return P @ dw if P.ndim == 2 else P * dw

    def _gathered(self, values: np.ndarray) -> np.ndarray:
        """What bounds pull at every weight."""
        return np.bincount(self.at, self.sign * values, self.penalty.centre.size).astype(np.float64, copy=False)

    def off_bounds(self, w: np.ndarray, mu: float, curvature: np.ndarray) -> np.ndarray:
        """Weights moved off their bounds until these curve as much as all the rest, of the given curvature."""
        P, lower, upper = self.penalty.precision, self.penalty.lower, self.penalty.upper
        own = np.diagonal(P) if P.ndim == 2 else P
        room = np.sqrt(mu / np.maximum(curvature + own, 1e-300))
        room = np.minimum(room, _ROOM * (upper - lower))
        room = np.where(self.penalty.fixed, 0.0, room)
        return np.clip(w, lower + room, upper - room)

    def centre(self, w: np.ndarray, mu: float) -> None:
        """All products μ at these weights, which are inside."""
        x = self.sign * (w[self.at] - self.bound)
        t, U = (np.zeros(0), np.zeros(0)) if self.cones is None else self.cones.centred(w, mu)
        self.point = BarrierPoint(x, mu / x, t, U)

    def hessian(self, w: np.ndarray) -> np.ndarray:
        """Second derivatives at the point, once slacks, t, z and U are eliminated. Always a new array."""
        P, (x, z, t, U) = self.penalty.precision, self.point
        H = P.copy() if P.ndim == 2 else np.diag(P)
        H[np.diag_indices_from(H)] += self._gathered(self.sign * z / x)
        if self.cones is not None:
            self.cones.place(t, w, U)
            self.cones.add_hessian(H)
        return H

    def gradient(self, w: np.ndarray) -> np.ndarray:
        """That of the Lagrangian, but for the examples."""
        g = self._times(w - self.penalty.centre) - self._gathered(self.point.z)
        if self.cones is not None:
            g[self.cones.at] -= self.point.U
        return g

    def products(self, w: np.ndarray) -> float:
        x, z, t, U = self.point
        return float(x @ z) + (0.0 if self.cones is None else float(t @ self.cones.lam + w[self.cones.at] @ U))

    def unit(self) -> np.ndarray:
        """The right-hand side of one unit of μ."""
        right = self._gathered(1.0 / self.point.x)
        if self.cones is not None:
            right[self.cones.at] += self.cones.right(np.ones(self.cones.n), np.zeros(self.cones.at.size))
        return right

    def look(self, w: np.ndarray, directions: np.ndarray, mu: float) -> tuple[np.ndarray, np.ndarray]:
        """As ``InteriorRows.look``; without directions what the affine one has to correct."""
        x, z, _, U = self.point
        moves, (aims, cone_aims) = self._answers(w, directions, mu)
        right = self._gathered((aims + z * self._errors(w)) / x) - self.gradient(w)
        if self.cones is not None:
            right[self.cones.at] += self.cones.right(*cone_aims)
        if not moves:
            return right, np.zeros(3)
        dw, (dx, dz, dt, dU) = directions[-1], moves[-1]
        right -= self._times(dw) + self._gathered(self.sign * (z / x) * dw[self.at])
        rate = max((-dx / x).max(initial=0.0), (-dz / z).max(initial=0.0))
        slope, curvature = float(dx @ z + x @ dz), float(dx @ dz)
        if self.cones is not None:
            here = self.cones.at
            right[here] -= self.cones.times(dw[here])
            rate = max(rate, self.cones.rate(dt, dw, dU))
            slope += float(dt @ self.cones.lam + dw[here] @ U + w[here] @ dU)
            curvature += float(dw[here] @ dU)
        return right, np.array([rate, slope, curvature])

    def advance(self, w: np.ndarray, directions: np.ndarray, mu: float, length: float) -> None:
        """Take a step of this length from w along the last direction."""
        if len(directions):
            moves, _ = self._answers(w, directions, mu)
            self.point = BarrierPoint(*(here + length * move for here, move in zip(self.point, moves[-1], strict=True)))

    def _errors(self, w: np.ndarray) -> np.ndarray:
        """Slacks as they are stored minus those that follow from w, which may be too large to tell small ones."""
        return self.point.x - self.sign * (w[self.at] - self.bound)

    def _answers(
        self, w: np.ndarray, directions: np.ndarray, mu: float
    ) -> tuple[list[BarrierPoint], tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]]:
        """How the point moves along each of the directions, and the changes of products that the next one aims at."""
        x, z, t, U = self.point
        errors, cones, moves = self._errors(w), self.cones, []
        aims, cone_aims = -x * z, (np.zeros(0), np.zeros(0))
        if cones is not None:
            p0, p1 = cones.products()
            cone_aims = -p0, -p1
        aim = mu if len(directions) > 1 else 0.0
        for depth, dw in enumerate(directions):
            dx = self.sign * dw[self.at] - errors
            dz = (aims - z * dx) / x
            dt, dU = t, U
            if cones is not None:
                cones.right(*cone_aims)
                dt, dU = cones.back(dw)
            moves.append(BarrierPoint(dx, dz, dt, dU))
            if depth == 0:
                aims = aim - x * z - dx * dz
                if cones is not None:
                    s0, s1 = cones.second_order(dt, dw, dU)
                    cone_aims = aim - p0 - s0, -p1 - s1
            elif depth == 1:
                product = (x + dx) * (z + dz)
                aims = aims + np.maximum(np.clip(product, mu / FAR, mu * FAR) - product, -FAR * mu)
        return moves, (aims, cone_aims)

    def at_bounds(self, w: np.ndarray) -> np.ndarray:
        """The weights, with those at a bound, and groups at zero, that are on their way there.

        Interior points come near, but never arrive. Zeros are what users of group norms and bounds look for.
        """
        x, z, t, U = self.point
        w = self.penalty.inside(w)
        if self.at.size:
            near = x / x.max() < z / z.max()
            w[self.at[near]] = self.bound[near]
        if self.cones is not None:
            room = 1.0 - self.cones.norm(U) / self.cones.lam
            w[self.cones.at[(t / t.max() < room)[self.cones.g]]] = 0.0
        return w
