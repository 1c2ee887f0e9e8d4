"""Newton's method on a smoothed hinge, for all pairs of large groups and few weights.

    minimise  Ω(w) + C Σ_ab φ(1 − w·(x_a − x_b)),    φ(t) = 0 up to t = 0, then t²/(2κ) up to t = κ, then t − κ/2

The shares that belong to w, p_ab = φ'(1 − w·(x_a − x_b)), are dual variables of the hinge itself, feasible at every w.
With g = C Σ p_ab (x_a − x_b) their duality gap falls apart into what is left of the optimization and what is smoothed,
neither of them negative:

    P(w) − D(p) = [Ω(w) + Ω*(g) − w·g] + C Σ_ab [max(0, t_ab) − p_ab t_ab]

Once the first part is the smaller one, κ shrinks; the second part falls with κ². Here w = c + S v, the map that belongs
to Ω, and a Newton step solves (1 + C H S) dv = g − v, where H has the pairs that are on the parabola. Its length is
found by the slope alone, which rises along any direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..constraints.sorted_pairs import Scores, Shares, SortedPairs
from ..kernels import rows as row_kernels
from ..kernels.vectors import dot
from ..problem import Problem, is_pure
from ..protocols import Regularizer
from ..regularizers.shape import Shape
from .solve import SolverState

MOST_WEIGHTS = 300
_WIDE = 2.0  # κ at first: at weights of zero all pairs are on the parabola
_SMOOTHED = 0.4  # of the goal, which smoothing may take up at the end
_SHRINK = (2, 0.1), (5, 0.3), (math.inf, 0.6)  # after so many steps with one κ it shrinks by no more than that
_LEAST_SHRINK = 0.7
_SLOPE = 0.5  # of the slope at the beginning of a step may be left at its end
_MOST_TRIALS = 25
_PATIENCE = 30  # steps, which must
_LESS = 0.9  # bring the gap down to this share


@dataclass(frozen=True)
class SmoothedNewton:
    """Settings of the solver for ``SortedPairs``: there are none."""

    def start(self, problem: Problem, warm: np.ndarray | None = None) -> NewtonState:
        if not handles(problem.regularizer, problem.n_weights):
            raise ValueError(
                f"Newton steps over sorted pairs know l2 and Gaussian priors and at most {MOST_WEIGHTS} weights; here "
                f"are {problem.n_weights} and {problem.regularizer!r}. Use solver='dual_coordinate'."
            )
        shape = problem.regularizer.shape(problem.n_weights)
        state = NewtonState(shape=shape, v=np.zeros(problem.n_weights), alpha=np.zeros(problem.n_weights + 1))
        if warm is not None:
            state.alpha = problem.constraints.feasible(warm)
            state.width = float(state.alpha[-1]) or _WIDE
            state.v = problem.constraints.totals(state.alpha).v
        return state

    def step(self, problem: Problem, state: NewtonState) -> NewtonState:
        """Look at the bounds where the last step has led, then take one more."""
        pairs: SortedPairs = problem.constraints  # type: ignore[assignment]
        w = state.weights()
        score = _scores(pairs, w)
        scores = pairs.rounded(score, state.width)
        shares = pairs.shares(scores, state.width)
        g = _gradient(pairs, shares)
        conjugate, linear = problem.regularizer.conjugate(g), pairs.C * float(shares.plus.sum())
        if linear - conjugate > state.lower:
            state.lower, state.alpha = linear - conjugate, np.append(w, state.width)
        loss = pairs.evaluate(w)
        upper = problem.regularizer.value(w) + loss.total
        state.evaluated, state.visited = (w.copy(), loss), pairs.n_examples
        state.upper = min(state.upper, upper)
        gap, goal = upper - (linear - conjugate), state.goal * abs(upper)
        state.estimate = max(state.upper - state.lower, 0.0) / max(abs(state.upper), 1e-300)
        if state.estimate <= state.goal:
            return state
        state.watch()
        left = problem.regularizer.value(w) + conjugate - dot(w, g)
        smoothed = gap - left
        if left <= max(smoothed, 0.5 * goal) and smoothed > 0.0:
            state.shrink(math.sqrt(_SMOOTHED * goal / smoothed))
            scores = pairs.rounded(score, state.width)
            shares = pairs.shares(scores, state.width)
            g = _gradient(pairs, shares)
        self._move(pairs, state, score, scores, shares, g)
        return state

    def _move(
        self, pairs: SortedPairs, state: NewtonState, score: np.ndarray, scores: Scores, shares: Shares, g: np.ndarray
    ) -> None:
        H = pairs.C / state.width * pairs.curvature(scores, state.width, shares.degree)
        dv = _direction(H, state.shape, g - state.v)
        dw = _spread(state.shape, dv)
        along = _scores(pairs, dw)
        first = dot(state.v - g, dw)
        if not first < 0.0:  # this κ has no more to give
            return

        def slope(length: float) -> float:
            there = pairs.shares(pairs.rounded(score + length * along, state.width), state.width)
            return dot(state.v + length * dv, dw) - pairs.C * dot(there.net, along)

        state.v = state.v + _root(slope, first) * dv


def handles(regularizer: Regularizer, n_weights: int) -> bool:
    """Whether the weights are few, and an affine function of v."""
    return n_weights <= MOST_WEIGHTS and not is_pure(regularizer) and regularizer.shape(n_weights).affine


def _scores(pairs: SortedPairs, w: np.ndarray) -> np.ndarray:
    score = np.empty(pairs.n_examples)
    row_kernels.scores(pairs.rows.arrays, w, score)
    return score


def _gradient(pairs: SortedPairs, shares: Shares) -> np.ndarray:
    g = np.zeros(pairs.n_weights)
    row_kernels.combine(pairs.rows.arrays, pairs.C * shares.net, g)
    return g


def _spread(shape: Shape, v: np.ndarray) -> np.ndarray:
    """S v."""
    return shape.filled("scale") * v if shape.covariance is None else shape.covariance @ v


def _direction(H: np.ndarray, shape: Shape, right: np.ndarray) -> np.ndarray:
    spread = H * shape.filled("scale") if shape.covariance is None else H @ shape.covariance
    spread[np.diag_indices_from(spread)] += 1.0
    try:
        return np.linalg.solve(spread, right)
    except np.linalg.LinAlgError:
        return right


def _root(slope: Callable[[float], float], first: float) -> float:
    """A length at which not much is left of the slope, which rises from ``first`` < 0."""
    low, at_low, high, at_high = 0.0, first, math.inf, math.inf
    length = 1.0
    for _ in range(_MOST_TRIALS):
        found = slope(length)
        if abs(found) <= _SLOPE * abs(first):
            return length
        if found < 0.0:
            low, at_low = length, found
        else:
            high, at_high = length, found
        if high == math.inf:
            length *= 2.0
        else:
            secant = low - at_low * (high - low) / (at_high - at_low)
            length = min(max(secant, low + 0.1 * (high - low)), high - 0.1 * (high - low))
    return low


@dataclass(kw_only=True)
class NewtonState(SolverState):
    """Where the method stands: v, the width of the parabola, and the best dual variables (see ``SortedPairs``)."""

    shape: Shape
    v: np.ndarray
    alpha: np.ndarray
    width: float = _WIDE
    upper: float = field(default=np.inf)
    n_constraints: int = 0
    steps: int = 0
    idle: int = 0
    least: float = np.inf

    def shrink(self, wanted: float) -> None:
        """Make κ smaller, with care where the steps at the last one were many."""
        most = next(factor for steps, factor in _SHRINK if self.steps <= steps)
        self.width *= min(max(wanted, most), _LEAST_SHRINK)
        self.steps = 0

    def watch(self) -> None:
        """Where many steps have not brought the gap down, rounding is in the way."""
        self.idle, self.steps = self.idle + 1, self.steps + 1
        if self.estimate < _LESS * self.least:
            self.least, self.idle = self.estimate, 0
        self.stuck = self.idle >= _PATIENCE

    def weights(self) -> np.ndarray:
        return self.shape.filled("centre") + _spread(self.shape, self.v)

    @property
    def active(self) -> int:
        return self.visited

    @property
    def nbytes(self) -> int:
        return self.alpha.nbytes
