"""Mehrotra's predictor–corrector method on the d×d normal equations (``kernels.normal_equations``).

Each step factors one matrix of the size of the weights and goes over the rows three or four times. The number of
steps hardly depends on the data or on C: some 15 to a relative gap of 1e-3, 25 to 1e-6. Coordinate ascent needs
more passes the larger C is and the more the rows resemble each other; this does not.

Every iterate lies inside the box of the dual variables, so its dual objective is a true lower bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import linalg

from ..kernels import normal_equations as kernels
from ..kernels.normal_equations import Point
from ..kernels.rows import RowArrays
from ..problem import Problem
from ..regularizers.shape import Shape
from . import threads

_MOST_WEIGHTS = 5000  # several matrices of this size squared are kept
_BLOCK = 2048  # rows whose weighted copies are multiplied at once: they fit the second-level cache
_STEP = 0.995  # of the way to the nearest bound
_CENTRING = 6  # power of the share of the gap that the affine step leaves: how much to aim for the centre
_SPARSE = 0.15  # rows with more stored values than this share are multiplied by BLAS, written out
_LONG_ENOUGH = 0.95  # a step for which a third direction is not worth another look at the rows


@dataclass(frozen=True)
class InteriorPoint:
    """Settings of the interior-point solver, for ``Scalar`` constraints with an l2 or Gaussian regularizer.

    Memory beyond the data: 12 to 16 bytes per example, and some matrices of the size of the weights squared.

    Parameters
    ----------
    n_threads : int
        Threads that share the rows. For a given number the result is the same to the bit.
    """

    n_threads: int = 1

    def handles(self, problem: Problem) -> bool:
        """Whether the problem has one dual variable per example, a quadratic regularizer and not too many weights."""
        if not hasattr(problem.closed, "squared") or getattr(problem.regularizer, "pure", False):
            return False
        if problem.n_weights > _MOST_WEIGHTS:
            return False
        shape = problem.regularizer.shape(problem.n_weights)
        return shape.floor is None and shape.group is None

    def start(self, problem: Problem, warm: np.ndarray | None = None) -> InteriorState:
        """Begin on the central path at the weights of α = 0.

        ``warm`` is of no use here: from a point near the bounds, where good dual variables lie, the steps are short,
        and a cold start takes no more than some ten of them.
        """
        data = _Data.of(problem)
        point = Point(
            np.zeros(data.n),
            np.zeros(0 if data.squared else data.n, np.float32),
            np.zeros(data.n if data.two_sided else 0, np.float32),
        )
        state = InteriorState(data, point, np.zeros(problem.n_weights))
        w = data.weights(state.omega)
        if problem.closed.evaluate(w).total == 0.0:
            # Nothing is lost at α = 0, a corner of the box that no interior point reaches.
            state.solved, state.estimate, state.lower = True, 0.0, -problem.regularizer.conjugate(np.zeros(w.size))
            return state

        def centre(start: int, stop: int) -> None:
            kernels.centre(data.rows, *data.terms, w, 1.0, start, stop, point)

        self._share(data.n, centre)
        with threads.one_blas_thread():
            self._advance(problem, state, np.zeros((0, w.size)), np.zeros(w.size), 0.0, 0.0)
        return state

    def step(self, problem: Problem, state: InteriorState) -> InteriorState:
        """One predictor–corrector step, with a second correction where the first leaves it short."""
        if state.solved:
            return state
        with threads.one_blas_thread():
            return self._step(problem, state)

    def _step(self, problem: Problem, state: InteriorState) -> InteriorState:
        factor = self._factor(problem, state)
        if factor is None:
            state.stuck = True  # at the limit of precision: every further step would be noise
            return state
        data, (v, k0, k1), omega = state.data, state.vectors, state.omega
        root = data.root
        mu = state.sums[2] / max(state.sums[3], 1.0)
        directions = np.zeros((3, omega.size))

        def solve(right: np.ndarray, last: np.ndarray) -> np.ndarray:
            return last + linalg.cho_solve(factor, root.transposed(right) - omega - last, check_finite=False)

        move = solve(v + k0, np.zeros_like(omega))
        directions[0] = root(move)
        corrected, (rate, slope, curvature) = self._look(state, directions[:1], 0.0)
        length = min(1.0, 1.0 / max(rate, 1e-300))
        left = 1.0 + length * (slope + length * curvature) / state.sums[2]
        target = max(left, 0.0) ** _CENTRING * mu
        move = solve(v + corrected + target * k1, move)
        directions[1] = root(move)
        corrected, (rate, _, _) = self._look(state, directions[:2], target)
        length, depth = min(1.0, _STEP / max(rate, 1e-300)), 2
        if length < _LONG_ENOUGH:
            third = solve(v + corrected, move)
            directions[2] = root(third)
            _, (rate, _, _) = self._look(state, directions, target)
            longer = min(1.0, _STEP / max(rate, 1e-300))
            if longer > length + 0.01:
                move, length, depth = third, longer, 3
        if not np.isfinite(length * move).all():
            state.stuck = True
            return state
        self._advance(problem, state, directions[:depth], move, target, length)
        return state

    def _factor(self, problem: Problem, state: InteriorState) -> tuple[np.ndarray, bool] | None:
        """Cholesky factor of 1 + LᵀXᵀDXL. Near the end float32 products are too coarse for it: then in float64."""
        for _ in range(2):
            matrix = state.data.root.whiten(state.gram)
            matrix[np.diag_indices_from(matrix)] += 1.0
            try:
                return linalg.cho_factor(matrix, overwrite_a=True, check_finite=False)
            except linalg.LinAlgError:
                if state.precise:
                    return None
                state.precise = True
                self._advance(problem, state, np.zeros((0, state.omega.size)), np.zeros(state.omega.size), 0.0, 0.0)
        return None

    def _share(self, n: int, work: Callable[[int, int], object]) -> list:
        """work(start, stop) over all rows, a range for each thread."""
        bounds = np.linspace(0, n, self.n_threads + 1).astype(int).tolist()
        return threads.run(work, bounds[:-1], bounds[1:])

    def _look(self, state: InteriorState, directions: np.ndarray, target: float) -> tuple[np.ndarray, np.ndarray]:
        """What the next direction has to correct, and (rate, slope, curvature) along the last one."""
        data = state.data
        w = data.weights(state.omega)

        def look(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
            vector, sums = np.zeros(w.size), np.zeros(3)
            kernels.look(data.rows, *data.terms, w, directions, target, start, stop, state.point, vector, sums)
            return vector, sums

        parts = self._share(data.n, look)
        sums = np.sum([s for _, s in parts], axis=0)
        sums[0] = max(s[0] for _, s in parts)
        return np.sum([v for v, _ in parts], axis=0), sums

    def _advance(
        self,
        problem: Problem,
        state: InteriorState,
        directions: np.ndarray,
        move: np.ndarray,
        target: float,
        length: float,
    ) -> None:
        """Take the step, and gather the normal equations at the new point."""
        data = state.data
        w = data.weights(state.omega)

        def advance(start: int, stop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            return _advance_rows(state, directions, w, target, length, start, stop)

        parts = self._share(data.n, advance)
        state.gram = np.sum([g for g, _, _ in parts], axis=0)
        state.vectors = np.sum([v for _, v, _ in parts], axis=0)
        state.sums = np.sum([s for _, _, s in parts], axis=0)
        if data.sparse:
            state.gram = np.triu(state.gram) + np.triu(state.gram, 1).T
        state.omega = state.omega + length * move
        state.lower = state.sums[1] - problem.regularizer.conjugate(state.vectors[0])
        upper = 0.5 * float(state.omega @ state.omega) + state.sums[0]
        state.estimate = max(upper - state.lower, 0.0) / max(abs(upper), 1e-300)
        state.active = int(state.sums[4])


def _advance_rows(
    state: InteriorState,
    directions: np.ndarray,
    w: np.ndarray,
    target: float,
    length: float,
    start: int,
    stop: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The step for some of the rows: their part of XᵀDX, of the right-hand sides and of the sums."""
    data, d = state.data, w.size
    gram, vectors, sums = np.zeros((d, d)), np.zeros((3, d)), np.zeros(5)
    weight = np.empty(_BLOCK)
    kind = np.float64 if state.precise else data.rows.data.dtype
    written_out = np.empty((0 if data.sparse else _BLOCK, d), kind)
    product = np.empty((d, d), kind)
    for a in range(start, stop, _BLOCK):
        b = min(a + _BLOCK, stop)
        kernels.advance(data.rows, *data.terms, w, directions, target, length, a, b, state.point, weight, vectors, sums)
        if data.sparse:
            kernels.add_outer(data.rows, weight, a, b, gram)
        else:
            kernels.scale_rows(data.rows, weight, a, b, written_out)
            part = written_out[: b - a]
            gram += np.matmul(part.T, part, out=product)
    return gram, vectors, sums


class _Root:
    """L with LLᵀ the covariance of the regularizer: ω = L⁻¹(w − m) makes it ½‖ω‖²."""

    def __init__(self, shape: Shape) -> None:
        self.full = None if shape.covariance is None else linalg.cholesky(shape.covariance, lower=True)
        self.scale = 1.0 if shape.scale is None else np.sqrt(shape.scale)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.scale * x if self.full is None else self.full @ x

    def transposed(self, x: np.ndarray) -> np.ndarray:
        return self.scale * x if self.full is None else self.full.T @ x

    def whiten(self, gram: np.ndarray) -> np.ndarray:
        """LᵀGL, always a new array."""
        if self.full is not None:
            return self.full.T @ gram @ self.full
        return gram * np.multiply.outer(self.scale, self.scale) if np.ndim(self.scale) else gram.copy()


@dataclass(frozen=True)
class _Data:
    """The problem as the kernels read it."""

    rows: RowArrays
    terms: tuple
    n: int
    squared: bool
    two_sided: bool
    sparse: bool
    centre: np.ndarray
    root: _Root

    @staticmethod
    def of(problem: Problem) -> _Data:
        c = problem.closed
        rows: RowArrays = c._arrays  # type: ignore[attr-defined]
        target, side, budget, epsilon, squared = c._terms  # type: ignore[attr-defined]
        shape = problem.regularizer.shape(problem.n_weights)
        stored = c.rows.n_stored
        return _Data(
            rows=rows,
            terms=(target, side, budget, epsilon, squared),
            n=c.n_examples,
            squared=squared,
            two_sided=bool((side == 0).any()),
            sparse=bool(rows.indices.size and not rows.second.size and stored <= _SPARSE * c.n_examples * rows.width),
            centre=np.zeros(problem.n_weights) if shape.centre is None else shape.centre,
            root=_Root(shape),
        )

    def weights(self, omega: np.ndarray) -> np.ndarray:
        return self.centre + self.root(omega)


@dataclass
class InteriorState:
    """A point inside all bounds, and what the next step needs of the rows."""

    data: _Data
    point: Point
    omega: np.ndarray
    gram: np.ndarray = field(default_factory=lambda: np.zeros(0))
    vectors: np.ndarray = field(default_factory=lambda: np.zeros(0))
    sums: np.ndarray = field(default_factory=lambda: np.zeros(0))
    lower: float = -np.inf
    estimate: float = np.inf
    active: int = 0
    goal: float = 0.0
    precise: bool = False
    solved: bool = False
    stuck: bool = False
    evaluated: None = None
    beat: Any = None

    @property
    def visited(self) -> int:
        return self.data.n

    @property
    def n_constraints(self) -> int:
        return self.data.n

    @property
    def nbytes(self) -> int:
        return self.alpha.nbytes

    @property
    def alpha(self) -> np.ndarray:
        return self.point.beta

    def weights(self) -> np.ndarray:
        return self.data.weights(self.omega)
