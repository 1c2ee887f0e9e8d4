"""Closed constraints as the slots of an interior-point method: flat arrays, and products with their rows in array code.

    w·r_k + η_i − l_k = s_k ≥ 0   for every slot k of example i

Every example has a slot 0 with r = 0 and l = 0, which stands for ξ ≥ 0. Its multipliers α_k add up to C. Only examples
that have a budget have slots.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..kernels.losses import LossShape
from .matrices import written_out

_FEW = 6  # slots

if TYPE_CHECKING:
    from .classes import Classes
    from .scalar import Scalar
    from .shared import SharedSlack


def gram(X: Any, weight: np.ndarray) -> np.ndarray:
    """Xᵀ diag(weight) X, from one product of a matrix with itself."""
    if sp.issparse(X):
        return (X.T @ sp.diags_array(weight) @ X).toarray()
    scaled = X * np.sqrt(weight)[:, None]
    return scaled.T @ scaled


class InteriorSlots(ABC):
    """The slots of some examples. ``there`` says which are in use: examples may have fewer than ``width`` of them.

    Arrays over slots are flat; vectors of weights come as the rows of a matrix, several at a time.
    """

    loss_shape = LossShape()
    n: int
    width: int
    budget: np.ndarray
    """C of every example."""
    loss: np.ndarray
    """l of every slot."""
    zero: np.ndarray
    """The slots 0."""
    there: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        """Of arrays over slots, examples first where that can be."""
        return self.n, self.width

    def _fill(self, n: int, width: int, budget: np.ndarray, loss: np.ndarray, zero: np.ndarray) -> None:
        """Equally many slots for every example; those without a budget have none in use."""
        self.n, self.width, self.zero = n, width, zero
        self.budget = np.broadcast_to(budget, n).astype(np.float64)
        self.loss = np.ascontiguousarray(loss, np.float64).ravel()
        self.loss[zero] = 0.0
        self.there = np.repeat(self.budget > 0.0, width)
        if not self.loss_shape.bounded:
            self.there[zero] = False

    def sums(self, a: np.ndarray) -> np.ndarray:
        """Over the slots of each example."""
        return self._folded(np.add, a)

    def maxima(self, a: np.ndarray) -> np.ndarray:
        return self._folded(np.maximum, a)

    def _folded(self, operation: np.ufunc, a: np.ndarray) -> np.ndarray:
        a = a.reshape(self.n, self.width)
        if self.width > _FEW:
            return operation.reduce(a, axis=1)
        return functools.reduce(operation, a.T)  # a reduction would begin anew for each example

    def spread(self, x: np.ndarray) -> np.ndarray:
        """Numbers of examples as numbers of their slots."""
        return np.repeat(x, self.width)

    @abstractmethod
    def scores(self, W: np.ndarray) -> np.ndarray:
        """w·r for every slot: one row for each row of W."""

    @abstractmethod
    def combine(self, A: np.ndarray) -> np.ndarray:
        """Σ a_k r_k: one row for each row of A."""

    @abstractmethod
    def gram(self, D: np.ndarray, T: np.ndarray) -> np.ndarray:
        """Σ D_k (r_k − r̄)(r_k − r̄)ᵀ with r̄ = Σ D r / T and T = Σ D in each example."""

    @abstractmethod
    def shares(self, z: np.ndarray) -> np.ndarray:
        """Multipliers as dual variables of the constraints."""


class ScalarSlots(InteriorSlots):
    """One or two sides of one row: slots (0, side·x) or, if some examples have two sides, (0, x, −x)."""

    def __init__(self, c: Scalar, two_sided: bool) -> None:
        self.loss_shape = c.loss_shape
        self.X, n = written_out(c.rows), c.n_examples
        side = np.broadcast_to(c.side, n).astype(np.float64)
        both = side == 0.0
        signs = [np.zeros(n), np.where(both, 1.0, side), np.where(both, -1.0, 0.0)][: 2 + two_sided]
        self.sign = np.stack(signs, axis=1)
        target = np.broadcast_to(c.target, n).astype(np.float64)
        loss, width = self.sign * target[:, None] - self.loss_shape.epsilon, self.sign.shape[1]
        self._fill(n, width, c.budget, loss, np.arange(n) * width)
        if two_sided:
            self.there[2::3] &= both

    def scores(self, W: np.ndarray) -> np.ndarray:
        return (self.sign * (self.X @ W.T).T[:, :, None]).reshape(len(W), -1)

    def combine(self, A: np.ndarray) -> np.ndarray:
        return (self.X.T @ self._signed(A.reshape(-1, self.n, self.width)).T).T

    def _signed(self, A: np.ndarray) -> np.ndarray:
        """Sums over the slots of each example but slot 0, of which no row knows."""
        return functools.reduce(np.add, [self.sign[:, k] * A[..., k] for k in range(1, self.width)])

    def gram(self, D: np.ndarray, T: np.ndarray) -> np.ndarray:
        zero, one, *other = D.reshape(self.n, self.width).T
        weight = zero * (one + other[0]) + 4.0 * one * other[0] if other else zero * one
        return gram(self.X, weight / T)

    def shares(self, z: np.ndarray) -> np.ndarray:
        return self._signed(z.reshape(self.n, self.width))


class ClassSlots(InteriorSlots):
    """Crammer–Singer: a slot for every class, that of the true one is slot 0.

    Sums for linear systems (``gram``) are in the coordinates of ``solvers.interior_system.Coordinates``.
    """

    def __init__(self, c: Classes) -> None:
        self.X = written_out(c.rows)
        zero = np.arange(c.n_examples) * c.n_classes + c.label
        self._fill(c.n_examples, c.n_classes, c.budget, c.cost[c.label], zero)

    def scores(self, W: np.ndarray) -> np.ndarray:
        m, K = len(W), self.width
        Z = np.asarray(self.X @ W.reshape(m, -1, K).transpose(1, 0, 2).reshape(-1, m * K))
        Z = np.ascontiguousarray(Z.reshape(self.n, m, K).transpose(1, 0, 2)).reshape(m, -1)
        return np.repeat(Z[:, self.zero], K, axis=1) - Z

    def combine(self, A: np.ndarray) -> np.ndarray:
        m, K = len(A), self.width
        signed = -A
        signed[:, self.zero] = 0.0
        signed[:, self.zero] = -signed.reshape(m, self.n, K).sum(axis=2)
        B = signed.reshape(m, self.n, K).transpose(1, 0, 2).reshape(self.n, m * K)
        return np.asarray(self.X.T @ B).reshape(-1, m, K).transpose(1, 0, 2).reshape(m, -1)

    def gram(self, D: np.ndarray, T: np.ndarray) -> np.ndarray:
        """A Laplacian over classes: k and l are joined by D_k D_l / T. Nothing cancels."""
        K, d = self.width, self.X.shape[1]
        D = D.reshape(self.n, K)
        S = D / T[:, None]
        H = np.zeros((d, K, d, K))
        for k in range(K):
            for l in range(k):
                G = gram(self.X, D[:, k] * S[:, l])
                H[:, l, :, l] += G
                if k < K - 1:
                    H[:, k, :, k] += G
                    H[:, k, :, l] -= G
                    H[:, l, :, k] -= G
        return H.reshape(d * K, d * K)

    def shares(self, z: np.ndarray) -> np.ndarray:
        alpha = z.copy()
        alpha[self.zero] = 0.0
        return alpha.reshape(self.n, self.width)


class RivalSlots(ClassSlots):
    """The same where dual variables are those of the rivals, one after another."""

    def __init__(self, c: Classes) -> None:
        super().__init__(c)
        self._rivals = c.rivals()

    def shares(self, z: np.ndarray) -> np.ndarray:
        return super().shares(z)[self._rivals]


class SharedSlots(InteriorSlots):
    """Rows written out, any number per example; slot 0 stands in front of them."""

    def __init__(self, c: SharedSlack) -> None:
        sizes = np.diff(c.first)
        example = np.repeat(np.arange(c.n_examples), sizes)
        self.n, self.n_rows = c.n_examples, c.n_constraints
        self.budget = np.where(sizes > 0, np.broadcast_to(c.budget, c.n_examples), 0.0)
        self.zero = c.first[:-1] + np.arange(c.n_examples)
        self.example = np.repeat(np.arange(c.n_examples), sizes + 1)
        self.real = np.ones(self.example.size, bool)
        self.real[self.zero] = False
        X = written_out(c.rows)
        self.R = np.zeros((self.example.size, c.n_weights))
        self.R[self.real] = X.toarray() if sp.issparse(X) else X
        self.R[self.real] *= np.broadcast_to(c.side, c.n_examples)[example, None]
        self.loss = np.zeros(self.example.size)
        self.loss[self.real] = c.loss
        self.there = (self.budget > 0.0)[self.example]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.loss.shape

    def sums(self, a: np.ndarray) -> np.ndarray:
        return np.add.reduceat(a, self.zero)

    def maxima(self, a: np.ndarray) -> np.ndarray:
        return np.maximum.reduceat(a, self.zero)

    def spread(self, x: np.ndarray) -> np.ndarray:
        return x[self.example]

    def scores(self, W: np.ndarray) -> np.ndarray:
        return W @ self.R.T

    def combine(self, A: np.ndarray) -> np.ndarray:
        return A @ self.R

    def gram(self, D: np.ndarray, T: np.ndarray) -> np.ndarray:
        mean = np.add.reduceat(D[:, None] * self.R, self.zero, axis=0) / T[:, None]
        return gram(self.R - mean[self.example], D)

    def shares(self, z: np.ndarray) -> np.ndarray:
        return z[self.real]
