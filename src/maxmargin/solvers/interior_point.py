"""Mehrotra's predictor–corrector method on the d×d normal equations (``kernels.normal_equations``).

Each step factors one matrix of the size of the weights and goes over the rows three or four times. The number of
steps hardly depends on the data or on C: some 15 to a relative gap of 1e-3, 25 to 1e-6. Coordinate ascent needs
more passes the larger C is and the more the rows resemble each other; this does not.

Every iterate lies inside the box of the dual variables, so its dual objective is a true lower bound.

All that a step needs of the rows are sums over them. They may therefore come in blocks: only the point itself, 12 to 16
bytes per example, has to be in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy import linalg

from ..kernels import normal_equations as kernels
from ..kernels.normal_equations import Point
from ..kernels.rows import RowArrays
from ..problem import Problem
from ..regularizers.shape import Shape
from . import threads

T = TypeVar("T")

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
        if getattr(problem.regularizer, "pure", False) or problem.n_weights > _MOST_WEIGHTS:
            return False
        if not hasattr(a_part(problem), "squared"):
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
        if problem.constraints.evaluate(w).total == 0.0:
            # Nothing is lost at α = 0, a corner of the box that no interior point reaches.
            state.solved, state.estimate, state.lower = True, 0.0, -problem.regularizer.conjugate(np.zeros(w.size))
            return state

        def centre(part: _Part, start: int, stop: int) -> None:
            kernels.centre(part.rows, *part.terms, w, 1.0, start, stop, part.point)

        for _ in self._share(problem, state, centre):
            pass
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
        corrected, (rate, slope, curvature) = self._look(problem, state, directions[:1], 0.0)
        length = min(1.0, 1.0 / max(rate, 1e-300))
        left = 1.0 + length * (slope + length * curvature) / state.sums[2]
        target = max(left, 0.0) ** _CENTRING * mu
        move = solve(v + corrected + target * k1, move)
        directions[1] = root(move)
        corrected, (rate, _, _) = self._look(problem, state, directions[:2], target)
        length, depth = min(1.0, _STEP / max(rate, 1e-300)), 2
        if length < _LONG_ENOUGH:
            third = solve(v + corrected, move)
            directions[2] = root(third)
            _, (rate, _, _) = self._look(problem, state, directions, target)
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

    def save(self, state: InteriorState, settled: bool) -> dict[str, Any] | None:
        if not settled:
            return None  # half a step, and no point to go on from
        if state.solved:
            return {"alpha": state.alpha}
        return {"alpha": state.alpha, "point": state.point[1:], "omega": state.omega}

    def restore(self, problem: Problem, saved: dict[str, Any]) -> InteriorState:
        """The same point; what the next step needs of the rows is gathered anew."""
        if "omega" not in saved:
            return self.start(problem)
        point = Point(np.array(saved["alpha"]), *(np.array(part) for part in saved["point"]))
        state = InteriorState(_Data.of(problem), point, np.array(saved["omega"]))
        with threads.one_blas_thread():
            nowhere = np.zeros(state.omega.size)
            self._advance(problem, state, np.zeros((0, state.omega.size)), nowhere, 0.0, 0.0)
        return state

    def _share(self, problem: Problem, state: InteriorState, work: Callable[[_Part, int, int], T]) -> Iterator[T]:
        """work(part, start, stop) over all rows of all parts, a range for each thread."""
        for part in _parts(problem, state.point):
            bounds = np.linspace(0, part.n, self.n_threads + 1).astype(int).tolist()
            yield from threads.run(work, [part] * self.n_threads, bounds[:-1], bounds[1:])

    def _look(
        self, problem: Problem, state: InteriorState, directions: np.ndarray, target: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """What the next direction has to correct, and (rate, slope, curvature) along the last one."""
        w = state.data.weights(state.omega)

        def look(part: _Part, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
            vector, sums = np.zeros(w.size), np.zeros(3)
            kernels.look(part.rows, *part.terms, w, directions, target, start, stop, part.point, vector, sums)
            return vector, sums

        vector, sums = np.zeros(w.size), np.zeros(3)
        for more, (rate, slope, curvature) in self._share(problem, state, look):
            vector += more
            sums += (max(rate - sums[0], 0.0), slope, curvature)  # the largest rate, the sums of the others
        return vector, sums

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

        def advance(part: _Part, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            return _advance_rows(state, part, directions, w, target, length, start, stop)

        state.gram, state.vectors, state.sums = np.zeros((w.size, w.size)), np.zeros((3, w.size)), np.zeros(5)
        for gram, vectors, sums in self._share(problem, state, advance):
            state.gram += gram
            state.vectors += vectors
            state.sums += sums
        if data.sparse:
            state.gram = np.triu(state.gram) + np.triu(state.gram, 1).T
        state.omega = state.omega + length * move
        state.lower = state.sums[1] - problem.regularizer.conjugate(state.vectors[0])
        upper = 0.5 * float(state.omega @ state.omega) + state.sums[0]
        state.estimate = max(upper - state.lower, 0.0) / max(abs(upper), 1e-300)
        state.active = int(state.sums[4])


def _advance_rows(
    state: InteriorState,
    part: _Part,
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
    rows, terms = part.rows, part.terms
    kind = np.float64 if state.precise else rows.data.dtype
    written_out = np.empty((0 if data.sparse else _BLOCK, d), kind)
    product = np.empty((d, d), kind)
    for a in range(start, stop, _BLOCK):
        b = min(a + _BLOCK, stop)
        kernels.advance(rows, *terms, w, directions, target, length, a, b, part.point, weight, vectors, sums)
        if data.sparse:
            kernels.add_outer(rows, weight, a, b, gram)
        else:
            kernels.scale_rows(rows, weight, a, b, written_out)
            scaled = written_out[: b - a]
            gram += np.matmul(scaled.T, scaled, out=product)
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


class _Part(NamedTuple):
    """Some of the examples as the kernels read them: all, or those of a block."""

    rows: RowArrays
    terms: tuple
    point: Point
    n: int


def a_part(problem: Problem) -> Any:
    """The constraints; one block of them where they come in blocks."""
    if hasattr(problem.constraints, "blocks"):
        _, block = next(iter(problem.blocked.blocks(problem.blocked.a_block())))
        return block
    return problem.closed


def _parts(problem: Problem, point: Point) -> Iterator[_Part]:
    if not hasattr(problem.constraints, "blocks"):
        yield _part(problem.closed, point)
        return
    first = problem.blocked.first
    for b, block in problem.blocked.blocks():
        span = slice(first[b], first[b + 1])
        yield _part(block, Point(*(values[span] for values in point)))


def _part(constraints: Any, point: Point) -> _Part:
    return _Part(constraints._arrays, constraints._terms, point, constraints.n_examples)


@dataclass(frozen=True)
class _Data:
    """What is known of the problem as a whole."""

    n: int
    squared: bool
    two_sided: bool
    sparse: bool
    centre: np.ndarray
    root: _Root

    @staticmethod
    def of(problem: Problem) -> _Data:
        part = a_part(problem)
        rows, side = part.rows, part.side
        shape = problem.regularizer.shape(problem.n_weights)
        few = rows.n_stored <= _SPARSE * part.n_examples * rows.width
        return _Data(
            n=problem.constraints.n_examples,
            squared=part.squared,
            two_sided=bool((side == 0).any()),
            sparse=bool(rows.indices.size and not rows.second.size and few),
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
