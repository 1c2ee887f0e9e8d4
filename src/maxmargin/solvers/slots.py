"""Constraints of all closed kinds as the slots of ``interior_closed``: flat arrays, and products with their rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..constraints.base import Closed
from ..constraints.classes import Classes
from ..constraints.scalar import Scalar
from ..constraints.shared import SharedSlack
from ..constraints.store import as_table
from ..kernels.losses import LossShape
from ..problem import Rows


def stored_values(rows: Rows) -> int:
    return len(rows) * rows.n_weights if rows.dense else int(rows.data.size)


def matrix_of(rows: Rows) -> Any:
    """Rows as a matrix in float64, differences and intercept written out: dense or sparse as they are stored."""
    if rows.dense:
        X = np.asarray(rows.data[: rows.n_rows * rows.width], np.float64).reshape(rows.n_rows, rows.width)
    else:
        X = as_table(rows).astype(np.float64)
    if rows.bias:
        column = np.full((rows.n_rows, 1), float(rows.bias))
        X = np.hstack([X, column]) if rows.dense else sp.hstack([X, column], format="csr")
    if not rows.second.size:
        return X
    apart = rows.second >= 0
    difference = X[rows.first]
    if apart.all():
        return difference - X[rows.second]
    keep = sp.diags_array(apart.astype(np.float64)) @ X[np.where(apart, rows.second, 0)]
    return difference - keep


def _gram(X: Any, weight: np.ndarray) -> np.ndarray:
    """Xᵀ diag(weight) X, from one product of a matrix with itself."""
    if sp.issparse(X):
        return (X.T @ sp.diags_array(weight) @ X).toarray()
    scaled = X * np.sqrt(weight)[:, None]
    return scaled.T @ scaled


class Slots:
    """The slots of all examples with a budget: slacks, multipliers and rows are flat arrays over them.

    ``width`` of them for each example, where all have equally many; ``zero`` are the slots 0. Linear systems are in
    coordinates u of the weights; here they are the weights themselves.
    """

    loss_shape = LossShape()
    loss: np.ndarray
    zero: np.ndarray

    def __init__(self, X: Any, budget: np.ndarray, n: int, width: int, n_weights: int) -> None:
        self.live = np.flatnonzero(np.broadcast_to(budget, n) > 0.0)
        self.X = X if self.live.size == n else X[self.live]
        self.budget = np.broadcast_to(budget, n)[self.live].astype(np.float64)
        self.n, self.width, self.n_weights = self.live.size, width, n_weights

    @cached_property
    def bend(self) -> np.ndarray:
        """q."""
        return self.loss_shape.curvature / self.budget

    @property
    def bounded(self) -> bool:
        return self.loss_shape.bounded

    def sums(self, a: np.ndarray) -> np.ndarray:
        return a.reshape(self.n, self.width).sum(axis=1)

    def maxima(self, a: np.ndarray) -> np.ndarray:
        return a.reshape(self.n, self.width).max(axis=1)

    def spread(self, x: np.ndarray) -> np.ndarray:
        return np.repeat(x, self.width)

    def total_loss(self, excess: np.ndarray) -> float:
        """Σ C φ(excess)."""
        kappa, excess = self.loss_shape.curvature, np.maximum(excess, 0.0)
        if kappa == 0.0:
            return float(self.budget @ excess)
        bent = np.minimum(excess, kappa) if self.bounded else excess
        return float(self.budget @ (bent * bent / (2.0 * kappa) + excess - bent))

    def scores(self, w: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def combine(self, a: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def gram(self, D: np.ndarray, T: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def shares(self, a: np.ndarray) -> np.ndarray:
        """Multipliers as dual variables of the constraints."""
        raise NotImplementedError

    def from_u(self, u: np.ndarray) -> np.ndarray:
        return u

    def to_u(self, g: np.ndarray) -> np.ndarray:
        """A gradient in w as one in u."""
        return g

    def combine_u(self, a: np.ndarray) -> np.ndarray:
        return self.combine(a)

    def congruent(self, M: np.ndarray) -> np.ndarray:
        return M


class _ScalarSlots(Slots):
    """One or two sides of one row: slots (0, side·x) or (0, x, −x)."""

    def __init__(self, c: Scalar) -> None:
        self.two = not c.side.any()
        super().__init__(matrix_of(c.rows), c.budget, c.n_examples, 3 if self.two else 2, c.n_weights)
        self.loss_shape = c.loss_shape
        self.total = c.n_examples
        target = np.broadcast_to(c.target, c.n_examples)[self.live].astype(np.float64)
        self.side = np.ones(self.n) if self.two else np.broadcast_to(c.side, c.n_examples)[self.live].astype(np.float64)
        signs = [np.zeros(self.n), self.side, -self.side][: self.width]
        self.sign = np.stack(signs, axis=1)
        loss = self.sign * target[:, None] - self.loss_shape.epsilon
        loss[:, 0] = 0.0
        self.loss = loss.ravel()
        self.zero = np.arange(self.n) * self.width

    def scores(self, w: np.ndarray) -> np.ndarray:
        return (self.sign * (self.X @ w)[:, None]).ravel()

    def _beta(self, a: np.ndarray) -> np.ndarray:
        return (self.sign * a.reshape(self.n, self.width)).sum(axis=1)

    def combine(self, a: np.ndarray) -> np.ndarray:
        return self.X.T @ self._beta(a)

    def gram(self, D: np.ndarray, T: np.ndarray) -> np.ndarray:
        h, p, *q = D.reshape(self.n, self.width).T
        weight = (h * (p + q[0]) + 4.0 * p * q[0] if q else h * p) / T
        return _gram(self.X, weight)

    def shares(self, a: np.ndarray) -> np.ndarray:
        beta = np.zeros(self.total)
        beta[self.live] = self._beta(a)
        return beta


class _ClassSlots(Slots):
    """Crammer–Singer: a slot for every class, that of the true one is slot 0.

    u_k = w_k − w_K for k < K and u_K = w_K: the loss does not see u_K, so that what holds it (regularizer, bounds) is
    never added to large numbers.
    """

    def __init__(self, c: Classes) -> None:
        super().__init__(matrix_of(c.rows), c.budget, c.n_examples, c.n_classes, c.n_weights)
        self.label = c.label[self.live].astype(np.int64)
        self.total = c.n_examples
        self.loss = c.cost[self.label].astype(np.float64).ravel()
        self.zero = np.arange(self.n) * self.width + self.label
        self.loss[self.zero] = 0.0

    def scores(self, w: np.ndarray) -> np.ndarray:
        Z = self.X @ w.reshape(-1, self.width)
        return (Z.ravel()[self.zero][:, None] - Z).ravel()

    def _signed(self, a: np.ndarray) -> np.ndarray:
        """Coefficients of the rows in each class: minus the rivals', their sum in the true one."""
        signed = -a
        signed[self.zero] = 0.0
        signed[self.zero] = -self.sums(signed)
        return signed.reshape(self.n, self.width)

    def combine(self, a: np.ndarray) -> np.ndarray:
        return np.asarray(self.X.T @ self._signed(a)).ravel()

    def combine_u(self, a: np.ndarray) -> np.ndarray:
        v = self.combine(a).reshape(-1, self.width)
        v[:, -1] = 0.0
        return v.ravel()

    def gram(self, D: np.ndarray, T: np.ndarray) -> np.ndarray:
        """A Laplacian over classes: k and l are joined by D_k D_l / T. Nothing cancels."""
        K, d = self.width, self.n_weights // self.width
        D = D.reshape(self.n, K)
        S = D / T[:, None]
        H = np.zeros((d, K, d, K))
        for k in range(K):
            for l in range(k):
                G = _gram(self.X, D[:, k] * S[:, l])
                H[:, k, :, k] += G
                if k < K - 1:
                    H[:, l, :, l] += G
                    H[:, k, :, l] -= G
                    H[:, l, :, k] -= G
                else:
                    H[:, l, :, l] += G
        H[:, -1] = 0.0
        H[..., -1] = 0.0
        return H.reshape(self.n_weights, self.n_weights)

    def shares(self, a: np.ndarray) -> np.ndarray:
        alpha = np.zeros((self.total, self.width))
        found = a.copy()
        found[self.zero] = 0.0
        alpha[self.live] = found.reshape(self.n, self.width)
        return alpha

    def from_u(self, u: np.ndarray) -> np.ndarray:
        u = u.reshape(-1, self.width)
        w = u + u[:, -1:]
        w[:, -1] = u[:, -1]
        return w.ravel()

    def to_u(self, g: np.ndarray) -> np.ndarray:
        g = g.reshape(-1, self.width).copy()
        g[:, -1] = g.sum(axis=1)
        return g.ravel()

    def congruent(self, M: np.ndarray) -> np.ndarray:
        K, d = self.width, self.n_weights // self.width
        M = M.reshape(d, K, d, K).copy()
        M[:, -1] = M.sum(axis=1)
        M[..., -1] = M.sum(axis=3)
        return M.reshape(self.n_weights, self.n_weights)


class _SharedSlots(Slots):
    """Rows written out, any number per example; slot 0 stands in front of them."""

    def __init__(self, c: SharedSlack) -> None:
        sizes = np.diff(c.first)
        budget = np.broadcast_to(c.budget, c.n_examples)
        example = np.repeat(np.arange(c.n_examples), sizes)
        self.kept = np.flatnonzero((budget > 0.0)[example])
        X = matrix_of(c.rows)
        X = X.toarray() if sp.issparse(X) else X
        super().__init__(X[:0], np.where(sizes > 0, budget, 0.0), c.n_examples, 0, c.n_weights)
        sizes = sizes[self.live]
        self.total = c.n_constraints
        self.first = np.concatenate([[0], np.cumsum(sizes + 1)])
        self.example = np.repeat(np.arange(self.n), sizes + 1)
        self.zero = self.first[:-1]
        self.real = np.ones(self.first[-1], bool)
        self.real[self.zero] = False
        side = np.broadcast_to(c.side, c.n_examples)[example[self.kept]].astype(np.float64)
        self.R = np.zeros((self.first[-1], c.n_weights))
        self.R[self.real] = X[self.kept] * side[:, None]
        self.loss = np.zeros(self.first[-1])
        self.loss[self.real] = c.loss[self.kept]

    def sums(self, a: np.ndarray) -> np.ndarray:
        return np.add.reduceat(a, self.zero)

    def maxima(self, a: np.ndarray) -> np.ndarray:
        return np.maximum.reduceat(a, self.zero)

    def spread(self, x: np.ndarray) -> np.ndarray:
        return x[self.example]

    def scores(self, w: np.ndarray) -> np.ndarray:
        return self.R @ w

    def combine(self, a: np.ndarray) -> np.ndarray:
        return self.R.T @ a

    def gram(self, D: np.ndarray, T: np.ndarray) -> np.ndarray:
        mean = np.add.reduceat(D[:, None] * self.R, self.zero, axis=0) / T[:, None]
        return _gram(self.R - mean[self.example], D)

    def shares(self, a: np.ndarray) -> np.ndarray:
        alpha = np.zeros(self.total)
        alpha[self.kept] = a[self.real]
        return alpha


def slots_of(constraints: Closed) -> Slots:
    """The slots of these constraints."""
    if isinstance(constraints, Scalar):
        return _ScalarSlots(constraints)
    if isinstance(constraints, Classes):
        return _ClassSlots(constraints)
    if isinstance(constraints, SharedSlack):
        return _SharedSlots(constraints)
    raise ValueError(f"The interior point cannot take {type(constraints).__name__} constraints.")
