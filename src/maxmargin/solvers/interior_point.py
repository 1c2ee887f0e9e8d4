"""Mehrotra's predictor–corrector method on the d×d normal equations (``kernels.normal_equations``).

Each step factors one matrix of the size of the weights and goes over the rows three or four times. The number of
steps hardly depends on the data or on C: some 15 to a relative gap of 1e-3, 25 to 1e-6. Coordinate ascent needs
more passes the larger C is and the more the rows resemble each other; this does not.

Every iterate lies inside the box of the dual variables, so its dual objective is a true lower bound. The highest that
was met is kept, with its dual variables, and so are the best weights: near the limit of double precision further steps
are noise, and may lead away from both.

All that a step needs of the rows are sums over them, which ``interior_rows`` gathers: from rows in memory, in blocks,
or on other machines. Only the point itself and the dual variables that are kept, 20 to 24 bytes per example, have to
be in memory, and they stay where the rows are.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import linalg

from ..constraints.description import Description
from ..problem import Problem
from ..regularizers.shape import Shape
from . import threads
from .certificate import lower_bound
from .interior_rows import InteriorRows
from .state import Progress

_MOST_WEIGHTS = 5000  # several matrices of this size squared are kept
_STEP = 0.995  # of the way to the nearest bound
_CENTRING = 6  # power of the share of the gap that the affine step leaves: how much to aim for the centre
_LONG_ENOUGH = 0.95  # a step for which a third direction is not worth another look at the rows
_SHIFTS = (0.0, 1e-14, 1e-12, 1e-10)  # of the diagonal, added until the matrix can be factored
_REFINEMENTS = 3  # what a shift has changed is corrected so many times
_NEARER = 0.9  # times the smallest gap of a point so far: what counts as nearer
_PATIENCE = 8  # steps that bring the point no nearer, after which none will,
_NEAR = 0.1  # if the relative gap is this small: far out, on features of different scales, short steps may be many,
_PATIENCE_FAR = 200  # but not so many


@dataclass(frozen=True)
class InteriorPoint:
    """Settings of the interior-point solver, for ``Scalar`` constraints with an l2 or Gaussian regularizer.

    Memory beyond the data: 20 to 24 bytes per example, and some matrices of the size of the weights squared.

    Parameters
    ----------
    n_threads : int
        Threads that share the rows. For a given number the result is the same to the bit.
    """

    n_threads: int = 1

    def handles(self, problem: Problem) -> bool:
        """Whether the problem has one dual variable per example, a quadratic regularizer and not too many weights."""
        if problem.pure or problem.n_weights > _MOST_WEIGHTS:
            return False
        if not described(problem).scalar:
            return False
        shape = problem.regularizer.shape(problem.n_weights)
        return shape.affine and _definite(shape.covariance)

    def start(self, problem: Problem, warm: np.ndarray | None = None) -> InteriorState:
        """Begin on the central path at the weights of α = 0.

        ``warm`` is of no use here: from a point near the bounds, where good dual variables lie, the steps are short,
        and a cold start takes no more than some ten of them.
        """
        state = self._begin(problem, np.zeros(problem.n_weights))
        w = state.here()
        if problem.constraints.evaluate(w).total == 0.0:
            # Nothing is lost at α = 0, a corner of the box that no interior point reaches.
            state.solved, state.estimate = True, 0.0
            return state
        state.rows.centre(w)
        with threads.one_blas_thread():
            self._stay(problem, state)
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
        (v, k0, k1), omega = state.vectors, state.omega
        rows, root, w = state.rows, state.root, state.here()
        mu = state.sums[2] / max(state.sums[3], 1.0)
        directions = np.zeros((3, omega.size))

        def solve(right: np.ndarray, last: np.ndarray) -> np.ndarray:
            return last + factor.solve(root.transposed(right) - omega - last)

        move = solve(v + k0, np.zeros_like(omega))
        directions[0] = root(move)
        corrected, (rate, slope, curvature) = rows.look(w, directions[:1], 0.0)
        length = min(1.0, 1.0 / max(rate, 1e-300))
        left = 1.0 + length * (slope + length * curvature) / state.sums[2]
        target = max(left, 0.0) ** _CENTRING * mu
        move = solve(v + corrected + target * k1, move)
        directions[1] = root(move)
        corrected, (rate, _, _) = rows.look(w, directions[:2], target)
        length, depth = min(1.0, _STEP / max(rate, 1e-300)), 2
        if length < _LONG_ENOUGH:
            third = solve(v + corrected, move)
            directions[2] = root(third)
            _, (rate, _, _) = rows.look(w, directions, target)
            longer = min(1.0, _STEP / max(rate, 1e-300))
            if longer > length + 0.01:
                move, length, depth = third, longer, 3
        if not np.isfinite(length * move).all():
            state.stuck = True
            return state
        self._advance(problem, state, directions[:depth], move, target, length)
        if state.idle >= (_PATIENCE if state.estimate <= _NEAR else _PATIENCE_FAR):
            # Products of rows in float32 may be to blame: then the next steps are better, with products in float64.
            state.stuck, state.precise, state.idle = state.precise, True, 0
        return state

    def _factor(self, problem: Problem, state: InteriorState) -> _Factor | None:
        """1 + LᵀXᵀDXL, factored. Near the end float32 products are too coarse for it: then in float64."""
        for shift in _SHIFTS:
            if shift and not state.precise:
                state.precise = True
                self._stay(problem, state)
                state.idle = 0  # a point that coarse steps have spoiled takes some to recover
            matrix = state.root.whiten(state.gram)
            matrix[np.diag_indices_from(matrix)] += 1.0
            with contextlib.suppress(linalg.LinAlgError):
                return _Factor(matrix, shift)
        return None

    def save(self, state: InteriorState, settled: bool) -> dict[str, Any] | None:
        if not settled:
            return None  # half a step, and no point to go on from
        if state.solved:
            return {"alpha": state.alpha}
        alpha, *point = state.rows.saved()
        kept = {} if state.at_best else {"kept": state.rows.kept}
        return {"alpha": alpha, "point": point, "omega": state.omega, **kept}

    def restore(self, problem: Problem, saved: dict[str, Any]) -> InteriorState:
        """The same point; what the next step needs of the rows is gathered anew."""
        if "omega" not in saved:
            return self.start(problem)
        state = self._begin(problem, np.array(saved["omega"]))
        state.rows.load((saved["alpha"], *saved["point"]), saved.get("kept"))
        if "kept" in saved:
            state.lower = lower_bound(problem, saved["kept"])
        with threads.one_blas_thread():
            self._stay(problem, state)
        return state

    def _begin(self, problem: Problem, omega: np.ndarray) -> InteriorState:
        """A state at these ω; of dual variables only α = 0 is known yet, and what it proves."""
        shape = problem.regularizer.shape(problem.n_weights)
        n = problem.constraints.n_examples
        return InteriorState(
            centre=np.zeros(problem.n_weights) if shape.centre is None else shape.centre,
            root=_Root(shape),
            rows=self._rows(problem),
            omega=omega,
            best=omega,
            lower=lower_bound(problem),
            n_constraints=n,
            visited=n,
        )

    def _rows(self, problem: Problem) -> InteriorRows:
        """Whoever answers for the rows: the constraints' own choice, if rows are not at hand here."""
        constraints: Any = problem.constraints
        if hasattr(constraints, "interior_rows"):
            return constraints.interior_rows(self.n_threads)
        return InteriorRows(constraints if hasattr(constraints, "blocks") else problem.closed, self.n_threads)

    def _stay(self, problem: Problem, state: InteriorState) -> None:
        """Gather the normal equations at the point where it is."""
        nowhere = np.zeros((1, state.omega.size))
        self._advance(problem, state, nowhere[:0], nowhere[0], 0.0, 0.0)

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
        keep, state.at_best = state.at_best, False  # whoever interrupts from here on is given what was kept
        state.gram, state.vectors, state.sums = state.rows.advance(
            state.here(), directions, target, length, state.precise, keep
        )
        state.omega = state.omega + length * move
        lower = float(state.sums[1] - problem.regularizer.conjugate(state.vectors[0]))
        state.met(lower, 0.5 * float(state.omega @ state.omega) + float(state.sums[0]))
        state.active = int(state.sums[4])


class _Factor:
    """A Cholesky factor of a matrix whose diagonal was raised by a share of itself, if that was needed.

    Where columns of the data depend on each other the matrix is singular but for the regularizer's share, which gets
    lost in rounding once C‖x‖² is large. The shift damps directions that nothing is known of; what it changes of all
    others is corrected by iterative refinement. (Modified factors in interior-point methods: S. Wright, 1999.)
    """

    def __init__(self, matrix: np.ndarray, shift: float) -> None:
        self._matrix = matrix if shift else None
        shifted = matrix
        if shift:
            shifted = matrix.copy()
            shifted[np.diag_indices_from(matrix)] *= 1.0 + shift
        self._factor = linalg.cho_factor(shifted, overwrite_a=True, check_finite=False)

    def solve(self, right: np.ndarray) -> np.ndarray:
        found = linalg.cho_solve(self._factor, right, check_finite=False)
        if self._matrix is not None:
            for _ in range(_REFINEMENTS):
                found += linalg.cho_solve(self._factor, right - self._matrix @ found, check_finite=False)
        return found


def _definite(covariance: np.ndarray | None) -> bool:
    """Whether a full covariance can be factored; one that ties weights to each other cannot."""
    with contextlib.suppress(linalg.LinAlgError):
        return covariance is None or bool(linalg.cholesky(covariance).size)
    return False


class _Root:
    """L with LLᵀ the covariance of the regularizer: ω = L⁻¹(w − m) makes it ½‖ω‖²."""

    def __init__(self, shape: Shape) -> None:
        self.full: np.ndarray | None = (
            None if shape.covariance is None else linalg.cholesky(shape.covariance, lower=True)
        )
        self.scale: float | np.ndarray = 1.0 if shape.scale is None else np.sqrt(shape.scale)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.scale * x if self.full is None else self.full @ x

    def transposed(self, x: np.ndarray) -> np.ndarray:
        return self.scale * x if self.full is None else self.full.T @ x

    def whiten(self, gram: np.ndarray) -> np.ndarray:
        """LᵀGL, always a new array."""
        if self.full is not None:
            return self.full.T @ gram @ self.full
        return gram * np.multiply.outer(self.scale, self.scale) if np.ndim(self.scale) else gram.copy()


def described(problem: Problem) -> Description:
    """What the constraints say of themselves; of others only their name is known."""
    constraints: Any = problem.constraints
    if hasattr(constraints, "describe"):
        return constraints.describe()
    return Description(type(constraints).__name__, constraints.n_examples)


@dataclass(kw_only=True)
class InteriorState(Progress):
    """A point inside all bounds, what the next step needs of the rows, and the best of the points so far."""

    centre: np.ndarray
    root: _Root
    rows: InteriorRows
    """Whoever answers for the rows; where they are spread over workers, what stands for several of these."""
    omega: np.ndarray
    n_constraints: int
    best: np.ndarray
    """ω of the lowest objective so far, and that objective."""
    upper: float = np.inf
    gram: np.ndarray = field(default_factory=lambda: np.zeros(0))
    vectors: np.ndarray = field(default_factory=lambda: np.zeros(0))
    sums: np.ndarray = field(default_factory=lambda: np.zeros(0))
    at_best: bool = False
    """Whether ``lower``, the highest dual objective so far, is that of the point; if not, the rows have kept α."""
    gap: float = np.inf
    """The smallest gap of any point by itself, and the steps since it was last met."""
    idle: int = 0
    active: int = 0
    precise: bool = False
    solved: bool = False

    @property
    def nbytes(self) -> int:
        return 8 * self.n_constraints  # not asked of the rows, which may be far away

    @property
    def alpha(self) -> Any:
        return self.rows.alpha if self.at_best else self.rows.kept

    def here(self) -> np.ndarray:
        """The weights of the point."""
        return self.centre + self.root(self.omega)

    def weights(self) -> np.ndarray:
        """The best weights so far."""
        return self.centre + self.root(self.best)

    def met(self, lower: float, upper: float) -> None:
        """The point has moved, and these are its bounds."""
        if lower >= self.lower:
            self.lower, self.at_best = lower, True
        if upper < self.upper:
            self.upper, self.best = upper, self.omega
        self.idle = 0 if upper - lower <= _NEARER * self.gap else self.idle + 1
        self.gap = min(self.gap, upper - lower)
        self.estimate = max(self.upper - self.lower, 0.0) / max(abs(self.upper), 1e-300)
