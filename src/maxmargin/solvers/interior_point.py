"""A primal–dual interior-point method for every closed problem with few weights.

    minimise   Ω(w) + Σ_i C_i·φ(max_k (l_k − w·r_k)),      Ω = ½ (w − m)ᵀ P (w − m) + Σ_g λ_g ‖w_g‖,   lower ≤ w ≤ upper

Mehrotra's predictor and corrector (1992), and a third direction of Gondzio's (1996) where the second leaves the step
short. Slacks, and what examples share, are eliminated one by one; what is left is one system of the size of w,

    H dw = right,      H = P + barriers + Σ_i Σ_k D_k (r_k − r̄)(r_k − r̄)ᵀ,      D = α/s,   r̄ = Σ D r / Σ D

The number of steps hardly depends on the data, on C or on the scales of features: some 15 to a relative gap of 1e-3, 25
to 1e-6. Coordinate ascent needs more passes the larger C is and the more the rows resemble each other; this does not.

All that a step needs of the examples are sums over them, which ``interior_rows`` gathers: from rows in memory, in
blocks, or on other machines. ``interior_barrier`` answers the same questions for Ω.

Every iterate lies inside the box of the dual variables, so its dual objective is a true lower bound. The highest that
was met is kept, with its dual variables, and so are the best weights: near the limit of double precision further steps
are noise, and may lead away from both.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy import linalg

from ..constraints.description import description_of
from ..problem import Problem
from . import threads
from .certificate import WORTH_A_CHECK, lower_bound, scaled_dual
from .interior_barrier import READS, Barrier, BarrierPoint, Penalty
from .interior_rows import InteriorRows
from .interior_system import Coordinates, Factor
from .solve import SolverState

MOST_WEIGHTS = 5000  # several matrices of this size squared are kept
_STEP = 0.995  # of the way to the nearest bound
_CENTRING = 6  # power of the share of the gap that the affine step leaves: how much to aim for the centre
_BLOCKED = 0.1  # a step as short as this got nowhere: after two of them the next one aims for the centre
_CAREFUL = 0.5  # by so much at least
_LONG_ENOUGH = 0.95  # a step for which a third direction is not worth another look at the rows
_OFF_CENTRE = 3.0  # how long Newton's step may be at the start, squared, in units of the number of products times μ
_STARTS = 12  # at most
_PATIENCE = 12  # steps that lower neither the products by half nor the gap by a tenth, after which none will
_PATIENCE_FAR = 60  # the same far from the solution, where short steps may be many
_NOISE = 1e-17  # of the objective: products that are smaller than this have no say in the gap
_NEAR = 0.1  # a relative gap that is not far
_SNAP = 0.05  # of the gap that is asked for: what weights may cost that are moved onto their bounds
_COARSE = 1e-14  # a shift of the diagonal that products of rows in float32 may be to blame for


@dataclass(frozen=True)
class InteriorPoint:
    """Settings of the interior-point solver, for closed constraints and any regularizer that comes with the package.

    Memory beyond the data: 20 to 24 bytes per example with one dual variable, else some numbers for each constraint and
    a copy of the rows in float64; and some matrices of the size of the weights squared.

    Parameters
    ----------
    n_threads : int
        Threads that share the rows. For a given number the result is the same to the bit.
    """

    n_threads: int = 1

    def handles(self, problem: Problem) -> bool:
        """Whether constraints and regularizer are of known kinds and the weights not too many."""
        if problem.n_weights > MOST_WEIGHTS or not description_of(problem.constraints).slots_per_example:
            return False
        if problem.pure:
            return True
        shape = problem.regularizer.shape(problem.n_weights)
        return shape.given.keys() <= READS and _definite(shape.covariance)

    def start(self, problem: Problem, warm: np.ndarray | None = None) -> InteriorState:
        """Begin near the central path, at the better of the regularizer's centre and the origin.

        ``warm`` counts only as what is proved already: from a point near the bounds, where good dual variables lie, the
        steps are short, and a cold start takes no more than some ten of them.
        """
        state = self._begin(problem)
        if warm is not None:
            state.warm = problem.constraints.feasible(warm)
            state.lower = max(state.lower, lower_bound(problem, state.warm))
        penalty = state.barrier.penalty
        candidates = [penalty.inside(penalty.centre)]
        if candidates[0].any():
            candidates.append(penalty.inside(np.zeros(problem.n_weights)))
        losses = [problem.constraints.evaluate(w).total for w in candidates]
        values = [problem.regularizer.value(w) + loss for w, loss in zip(candidates, losses, strict=True)]
        state.upper, state.w = min(zip(values, candidates, strict=True), key=lambda found: found[0])
        state.best = state.w
        if losses[0] == 0.0 or not state.upper - state.lower > 1e-15 * abs(state.upper):
            # Nothing is lost at α = 0, a corner of the box that no interior point reaches.
            state.solved, state.estimate = True, 0.0
            return state
        with threads.one_blas_thread(), np.errstate(all="ignore"):
            self._centre(problem, state)
        return state

    def step(self, problem: Problem, state: InteriorState) -> InteriorState:
        """One predictor–corrector step, with a second correction where the first leaves it short."""
        if state.solved:
            return state
        with threads.one_blas_thread(), np.errstate(all="ignore"):
            return self._step(problem, state)

    def _step(self, problem: Problem, state: InteriorState) -> InteriorState:
        factor = self._factor(problem, state)
        if factor is None:
            state.stuck = True  # at the limit of precision: every further step would be noise
            return state
        (v, k0, k1), (_, _, products, n_products, _) = state.vectors, state.sums
        rows, barrier, w, at = state.rows, state.barrier, state.w, state.coordinates
        products, n_products = products + barrier.products(w), n_products + barrier.n_products
        here = products / max(n_products, 1.0)
        directions = np.zeros((3, w.size))

        def solve(loss: np.ndarray, own: np.ndarray) -> np.ndarray:
            return at.weights(factor.solve(at.right(own, loss)))

        def look(depth: int, mu: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            loss, sums = rows.look(w, directions[:depth], mu)
            own, more = barrier.look(w, directions[:depth], mu)
            return v + loss, own, np.array([max(sums[0], more[0]), *(sums + more)[1:]])

        directions[0] = solve(v + k0, barrier.look(w, directions[:0], 0.0)[0])
        loss, own, (rate, slope, curvature) = look(1, 0.0)
        length = min(1.0, 1.0 / max(rate, 1e-300))
        left = 1.0 + length * (slope + length * curvature) / products
        enough = 0.1 * state.goal * abs(state.upper) / max(n_products, 1.0)
        share = max(min(max(left, 0.0), 1.0) ** _CENTRING, _CAREFUL if state.blocked > 1 else 0.0)
        mu = min(max(share * here, enough), here)
        directions[1] = directions[0] + solve(loss + mu * k1, own + mu * barrier.unit())
        loss, own, (rate, _, _) = look(2, mu)
        length, depth = min(1.0, _STEP / max(rate, 1e-300)), 2
        if length < _LONG_ENOUGH:
            directions[2] = directions[1] + solve(loss, own)
            rate = look(3, mu)[2][0]
            longer = min(1.0, _STEP / max(rate, 1e-300))
            if longer > length + 0.01:
                length, depth = longer, 3
        if not np.isfinite(length * directions[depth - 1]).all():
            state.stuck = True
            return state
        if not state.moved:
            # Under a small C the start, zero, may be within the goal already; weights that say something are wanted.
            state.moved, state.upper = True, np.inf
        self._advance(problem, state, directions[:depth], mu, length)
        state.blocked = state.blocked + 1 if length < _BLOCKED else 0
        if state.idle >= (_PATIENCE if state.estimate <= _NEAR else _PATIENCE_FAR):
            # Products of rows in float32 may be to blame: then the next steps are better, with products in float64.
            state.stuck, state.precise, state.idle = state.precise, True, 0
        return state

    def _factor(self, problem: Problem, state: InteriorState) -> Factor | None:
        """The system, factored. Near the end float32 products are too coarse for it: then in float64."""
        for precise in (state.precise, True):
            if precise and not state.precise:
                state.precise = True
                self._stay(problem, state)
                state.idle = 0  # a point that coarse steps have spoiled takes some to recover
            factor = Factor(state.coordinates.matrix(state.barrier.hessian(state.w), state.gram))
            if factor.shift < _COARSE:
                break
        return factor if np.isfinite(factor.shift) else None

    def _centre(self, problem: Problem, state: InteriorState) -> None:
        """A point near the central path: products as equal as budgets are, at weights for which Newton's step is short.

        Raising μ until it is costs some more looks at the rows; steps from far off the path would be short, and many.
        """
        barrier, start = state.barrier, state.w
        slots = description_of(problem.constraints).slots_per_example * problem.constraints.n_examples
        n_products = slots + barrier.n_products
        mu = 2.0 * max(state.upper - max(state.lower, 0.0), 1e-3 * state.upper) / n_products
        for _ in range(_STARTS):
            state.w = start
            if barrier.at.size:
                state.rows.centre(start, mu)
                curvature = np.diagonal(state.rows.advance(start, np.zeros((0, start.size)), 0.0, 0.0, False)[0])
                state.w = barrier.off_bounds(start, mu, np.abs(state.coordinates.curvature(curvature)))
            state.rows.centre(state.w, mu)
            barrier.centre(state.w, mu)
            self._stay(problem, state)
            state.least, state.gap, state.idle = np.inf, np.inf, 0
            factor = self._factor(problem, state)
            if factor is None:
                return
            residual = state.coordinates.right(-barrier.gradient(state.w), state.vectors[0])
            off = factor.squared_length(residual) / (state.sums[2] + barrier.products(state.w))
            if not off > _OFF_CENTRE:
                return
            mu *= max(3.0, off / _OFF_CENTRE)

    def save(self, state: InteriorState, settled: bool) -> dict[str, Any] | None:
        if not settled:
            return None  # half a step, and no point to go on from
        if state.solved:
            return {"alpha": state.alpha}
        kept = {} if state.at_best else {"kept": state.alpha}
        point = {"point": list(state.rows.saved()), "w": state.w, "barrier": list(state.barrier.point)}
        return {"alpha": state.rows.alpha, "blocked": state.blocked} | point | kept

    def restore(self, problem: Problem, saved: dict[str, Any]) -> InteriorState:
        """The same point; what the next step needs of the rows is gathered anew."""
        if "w" not in saved:
            return self.start(problem, saved["alpha"])
        state = self._begin(problem)
        state.w = state.best = np.array(saved["w"])
        state.blocked, state.moved = int(saved["blocked"]), True
        state.barrier.point = BarrierPoint(*(np.array(values) for values in saved["barrier"]))
        state.rows.load(saved["point"], saved.get("kept"))
        with threads.one_blas_thread(), np.errstate(all="ignore"):
            self._stay(problem, state)
        if "kept" in saved:  # they were better than the point, by however little
            state.lower, state.at_best = lower_bound(problem, saved["kept"]), False
        return state

    def _begin(self, problem: Problem) -> InteriorState:
        """A state without a point; of dual variables only α = 0 is known yet, and what it proves."""
        n, penalty = problem.constraints.n_examples, Penalty.of(problem)
        nothing = np.zeros(problem.n_weights)
        return InteriorState(
            rows=self._rows(problem),
            barrier=Barrier(penalty),
            coordinates=Coordinates(
                description_of(problem.constraints).columns, penalty.fixed if penalty.fixed.any() else None
            ),
            w=nothing,
            best=nothing,
            lower=lower_bound(problem),
            n_constraints=getattr(problem.constraints, "n_constraints", n),
            visited=n,
        )

    def _rows(self, problem: Problem) -> InteriorRows:
        """Whoever answers for the rows: the constraints' own choice, if rows are not at hand here."""
        constraints: Any = problem.constraints
        if hasattr(constraints, "interior_rows"):
            return constraints.interior_rows(self.n_threads)
        return InteriorRows(constraints if constraints.held_in == "blocks" else problem.in_memory, self.n_threads)

    def _stay(self, problem: Problem, state: InteriorState) -> None:
        """Gather the normal equations at the point where it is."""
        self._advance(problem, state, np.zeros((0, state.w.size)), 0.0, 0.0)

    def _advance(
        self, problem: Problem, state: InteriorState, directions: np.ndarray, mu: float, length: float
    ) -> None:
        """Take the step, and gather the normal equations at the new point."""
        keep, state.at_best = state.at_best, False  # whoever interrupts from here on is given what was kept
        state.gram, state.vectors, state.sums = state.rows.advance(state.w, directions, mu, length, state.precise, keep)
        state.barrier.advance(state.w, directions, mu, length)
        if len(directions):
            state.w = state.w + length * directions[-1]
        state.met(problem)


def _definite(covariance: np.ndarray | None) -> bool:
    """Whether a full covariance can be factored; one that ties weights to each other cannot."""
    with contextlib.suppress(linalg.LinAlgError):
        return covariance is None or bool(linalg.cholesky(covariance).size)
    return False


@dataclass(kw_only=True)
class InteriorState(SolverState):
    """A point inside all bounds, what the next step needs of the rows, and the best of the points so far."""

    second_order: ClassVar[bool] = True
    rows: InteriorRows
    """Whoever answers for the rows; where they are spread over workers, what stands for several of these."""
    barrier: Barrier
    coordinates: Coordinates
    w: np.ndarray
    n_constraints: int
    best: np.ndarray
    """The weights of the lowest objective so far, and that objective."""
    upper: float = np.inf
    warm: Any = None
    """Dual variables that the run began with, as long as none are better."""
    gram: np.ndarray = field(default_factory=lambda: np.zeros(0))
    vectors: np.ndarray = field(default_factory=lambda: np.zeros(0))
    sums: np.ndarray = field(default_factory=lambda: np.zeros(0))
    at_best: bool = False
    """Whether ``lower``, the highest dual objective so far, is that of the point; if not, the rows have kept α."""
    least: float = np.inf
    """The least sum of products so far, the smallest gap, and the steps that brought little of either."""
    gap: float = np.inf
    idle: int = 0
    blocked: int = 0
    """How many of the last steps in a row were short."""
    active: int = 0
    precise: bool = False
    moved: bool = False
    """Whether the weights are others than those of the start."""
    solved: bool = False

    @property
    def nbytes(self) -> int:
        return 8 * self.n_constraints  # not asked of the rows, which may be far away

    @property
    def alpha(self) -> Any:
        if self.warm is not None:
            return self.warm
        return self.rows.alpha if self.at_best else self.rows.kept

    def weights(self) -> np.ndarray:
        """The best weights so far."""
        return self.best

    def met(self, problem: Problem) -> None:
        """The point has moved: its bounds, of which the best are kept."""
        loss, linear, products, _, active = self.sums
        regularizer, self.active = problem.regularizer, int(active)
        v = self.vectors[0]
        lower = scaled_dual(regularizer, linear, v)  # what a parabola takes away even shrinks with the scale's square
        if lower >= self.lower:
            self.lower, self.at_best, self.warm = lower, True, None
        inside = self.barrier.penalty.inside(self.w)
        upper = float(regularizer.value(inside) + loss)
        if upper < self.upper:
            self.upper, self.best = upper, inside
        self.estimate = max(self.upper - self.lower, 0.0) / max(abs(self.upper), 1e-300)
        if self.barrier.n_products and self.estimate <= WORTH_A_CHECK * self.goal:
            self._snap(problem)
        left = float(products) + self.barrier.products(self.w)
        gap = max(self.upper - self.lower, 0.0)
        better = gap < 0.9 * self.gap or _NOISE * abs(self.upper) < left <= 0.5 * self.least
        self.idle = 0 if better else self.idle + 1
        self.least, self.gap = min(self.least, left), min(self.gap, gap)

    def _snap(self, problem: Problem) -> None:
        """Weights at their bounds where that costs next to nothing."""
        w = self.barrier.at_bounds(self.w)
        upper = float(problem.regularizer.value(w) + problem.constraints.evaluate(w).total)
        if upper <= self.upper + _SNAP * self.goal * abs(self.upper):
            self.upper, self.best = upper, w
