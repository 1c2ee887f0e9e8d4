"""A regularizer divided by a number, as workers use it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..kernels.vectors import dot
from ..protocols import Regularizer
from .shape import Shape


class Divided:
    """Ω(w)/σ: what each of several workers minimises under so that their changes of v may be added up.

    Ω* is convex, so with changes Δ₁ … Δ_K of v

        Ω*(v + Σ_k Δ_k)  ≤  (1/K) Σ_k Ω*(v + K·Δ_k),

    and (Ω/σ)*(u) = Ω*(σ·u)/σ is one term of the right-hand side at u = v/σ + Δ_k with σ = K. Workers that each raise
    their own dual objective under Ω/K raise that of the whole problem together.

    Parameters
    ----------
    base : Regularizer
        Strongly convex.
    sigma : float
        σ, above zero.
    rest : array (n_weights,) or None
        What others have added to the v that a solver holds. Its own problem is then Ω(w)/σ − rest·w, whose conjugate at
        its own part of v is (Ω/σ)* at the whole.

    >>> from maxmargin.regularizers import L2
    >>> Divided(L2(), 2.0).weights(np.array([1.0, 2.0]))
    array([2., 4.])
    """

    def __init__(self, base: Regularizer, sigma: float, rest: np.ndarray | None = None) -> None:
        self.base = base
        self.sigma = float(sigma)
        self.rest = rest

    def value(self, w: np.ndarray) -> float:
        return self.base.value(w) / self.sigma - (0.0 if self.rest is None else dot(self.rest, w))

    def conjugate(self, v: np.ndarray) -> float:
        return self.base.conjugate(self.sigma * v) / self.sigma

    def weights(self, v: np.ndarray) -> np.ndarray:
        return self.base.weights(self.sigma * v)

    def shape(self, n_weights: int) -> Shape:
        shape = self.base.shape(n_weights)
        if shape.covariance is not None:
            return replace(shape, covariance=self.sigma * shape.covariance)
        if shape.scale is None or shape.even:
            once = 1.0 if shape.scale is None else float(shape.scale[0])
            return replace(shape, scale=np.broadcast_to(np.float64(self.sigma * once), n_weights))
        return replace(shape, scale=self.sigma * shape.scale)

    def __repr__(self) -> str:
        return f"Divided({self.base!r}, {self.sigma:g})"
