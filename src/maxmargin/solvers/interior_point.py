"""Mehrotra's predictor–corrector method on the d×d normal equations (``kernels.normal_equations``).

Each step solves one linear system of the size of the weights and goes over the rows three times. The number of
steps hardly depends on the data or on C: some 12 to a relative gap of 1e-3, 20 to 1e-6. Coordinate
ascent needs more passes the larger C is and the more the rows resemble each other; this does not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import linalg

from ..kernels import normal_equations as kernels
from ..kernels.normal_equations import Point
from ..kernels.rows import RowArrays
from ..problem import Problem

BLOCK = 2048  # rows whose weighted copies are multiplied at once: they fit the second-level cache
POWER=6
MCC=1
STEP = 0.995  # of the way to the nearest bound
"""Denser sparse rows are written out and multiplied by BLAS."""
SPARSE = 0.15


@dataclass(frozen=True)
class InteriorPoint:
    n_threads: int = 1

    def handles(self, problem: Problem) -> bool:
        constraints = problem.constraints
        if not all(hasattr(constraints, name) for name in ("target", "side", "budget", "epsilon", "squared")):
            return False
        if getattr(problem.regularizer, "pure", False):
            return False
        shape = problem.regularizer.shape(problem.n_weights)
        return shape.floor is None and shape.group is None

    def pays(self, problem: Problem) -> bool:
        return False

    def start(self, problem: Problem, warm: np.ndarray | None = None) -> InteriorState:
        data = _Data.of(problem)
        n = data.n
        point = Point(
            np.zeros(n),
            np.zeros(0 if data.squared else n, np.float32),
            np.zeros(n if data.two_sided else 0, np.float32),
        )
        omega = np.zeros(problem.n_weights)
        state = InteriorState(data, point, omega)
        w = data.weights(omega)
        mu = 1.0
        self._each(data, lambda a, b: kernels.centre(data.rows, *data.terms, w, mu, a, b, point))
        zero = np.zeros_like(w)
        self._advance(problem, state, np.zeros((0, w.size)), zero, 0.0, 0.0)
        return state

    def step(self, problem: Problem, state: InteriorState) -> InteriorState:
        data, point, sums = state.data, state.point, state.sums
        if state.finished:
            return state
        L = data.lower
        K = L.whiten(state.gram)
        K[np.diag_indices_from(K)] += 1.0
        factor = linalg.cho_factor(K, overwrite_a=True, check_finite=False)
        v, k0, k1 = state.vectors
        w = data.weights(state.omega)
        base = L.T(v + k0) - state.omega
        affine = linalg.cho_solve(factor, base)
        D = np.zeros((3, w.size))
        D[0] = L(affine)
        mu = sums[2] / max(sums[3], 1)

        def look(depth, target):
            vec = np.zeros(w.size); out = np.zeros(3)
            kernels.look(data.rows, *data.terms, w, D[:depth], target, 0, data.n, point, vec, out)
            return vec, out

        vec, out = look(1, 0.0)
        step = min(1.0, 1.0 / max(out[0], 1e-300))
        left = 1.0 + step * (out[1] + step * out[2]) / sums[2]
        target = max(left, 0.0) ** POWER * mu
        dom = affine + linalg.cho_solve(factor, L.T(v + vec + target * k1) - state.omega - affine)
        D[1] = L(dom)
        vec, out = look(2, target)
        step = min(1.0, STEP / max(out[0], 1e-300))
        depth = 2
        if MCC and step < 0.95:
            more = dom + linalg.cho_solve(factor, L.T(v + vec) - state.omega - dom)
            D[2] = L(more)
            vec, out2 = look(3, target)
            longer = min(1.0, STEP / max(out2[0], 1e-300))
            if longer > step + 0.01:
                depth, dom, out, step = 3, more, out2, longer
        state.trace = dict(left=left, step=step, mu=mu, depth=depth)
        self._advance(problem, state, D[:depth], dom, target, step)
        return state

    def _each(self, data, work):
        for a in range(0, data.n, BLOCK):
            work(a, min(a + BLOCK, data.n))

    def _sum(self, data, work, vectors, sums):
        work(0, data.n, vectors, sums)

    def _advance(self, problem, state, D, dom, target, step):
        data, point = state.data, state.point
        d = dom.size
        w = data.weights(state.omega)
        gram = np.zeros((d, d))
        vectors = np.zeros((3, d))
        sums = np.zeros(5)
        weight = np.empty(BLOCK)
        buffer = np.empty((BLOCK, d), data.rows.data.dtype) if not data.sparse else None
        product = np.empty((d, d), data.rows.data.dtype)
        for a in range(0, data.n, BLOCK):
            b = min(a + BLOCK, data.n)
            kernels.advance(data.rows, *data.terms, w, D, target, step, a, b, point, weight, vectors, sums)
            if data.sparse:
                kernels.add_outer(data.rows, weight, a, b, gram)
            else:
                kernels.scale_rows(data.rows, weight, a, b, buffer)
                np.matmul(buffer[: b - a].T, buffer[: b - a], out=product)
                gram += product
        if data.sparse:
            gram = np.triu(gram) + np.triu(gram, 1).T
        state.omega = state.omega + step * dom
        state.gram, state.vectors, state.sums = gram, vectors, sums
        state.lower = sums[1] - problem.regularizer.conjugate(vectors[0])
        state.upper = 0.5 * state.omega @ state.omega + sums[0]
        state.estimate = max(state.upper - state.lower, 0.0) / max(abs(state.upper), 1e-300)
        state.active = int(sums[4])


class _Data:
    @staticmethod
    def of(problem):
        self = _Data()
        c = problem.constraints
        r = c.rows
        self.rows = RowArrays(r.indptr, r.indices, r.data, r.width, float(r.bias), r.first, r.second)
        self.terms = (c.target, c.side, c.budget, c.epsilon, c.squared)
        self.n = c.n_examples
        self.squared = c.squared
        self.two_sided = bool((c.side == 0).any())
        self.sparse = r.indices.size > 0 and r.second.size == 0 and r.n_stored <= SPARSE * len(r) * r.width
        shape = problem.regularizer.shape(problem.n_weights)
        self.centre = np.zeros(problem.n_weights) if shape.centre is None else shape.centre
        self.lower = Root(shape)
        return self

    def weights(self, omega):
        return self.centre + self.lower(omega)


class Root:
    def __init__(self, shape):
        self.full = None if shape.covariance is None else linalg.cholesky(shape.covariance, lower=True)
        self.scale = None if shape.scale is None else np.sqrt(shape.scale)

    def __call__(self, x):
        if self.full is not None:
            return self.full @ x
        return x if self.scale is None else self.scale * x

    def T(self, x):
        if self.full is not None:
            return self.full.T @ x
        return x if self.scale is None else self.scale * x

    def whiten(self, gram):
        if self.full is not None:
            return self.full.T @ gram @ self.full
        return gram.copy() if self.scale is None else self.scale[:, None] * gram * self.scale


@dataclass
class InteriorState:
    data: Any
    point: Point
    omega: np.ndarray
    gram: Any = None
    vectors: Any = None
    sums: Any = None
    lower: float = -np.inf
    upper: float = np.inf
    estimate: float = np.inf
    active: int = 0
    goal: float = 0.0
    finished: bool = False

    @property
    def alpha(self):
        return self.point.beta

    def weights(self):
        return self.data.weights(self.omega)
