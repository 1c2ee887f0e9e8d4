"""Both bounds from nothing, true in exact arithmetic: no number that a solver kept along the way is trusted here.

Every sum comes with a bound of its rounding error (``maxmargin.rounding``). The lower bound is moved down by the errors
of Σ l α, of v and of Ω*, the upper one up by those of Ω and of the loss.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..problem import Certificate, Problem, TotalLoss, Totals, is_pure
from ..protocols import Regularizer
from ..regularizers.shape import conjugate_error, value_error
from ..rounding import gamma, rounded_down, rounded_up
from ..validation import check_object, lacking, shown

# The upper bound costs a pass over the data: it is computed once a solver's estimate is within this factor of the goal.
WORTH_A_CHECK = 1.3


class LowerBound(NamedTuple):
    """A dual objective as computed, and by how much the exact one may be lower."""

    computed: float
    rounding: float

    @property
    def value(self) -> float:
        """Not above the optimum."""
        return rounded_down(self.computed, -self.rounding)


def lower_bound(problem: Problem, alpha: object = None) -> float:
    """A lower bound of the optimum: the dual objective at the feasible point nearest to ``alpha``, rounded down."""
    return dual_objective(problem, alpha).value


def dual_objective(problem: Problem, alpha: object = None) -> LowerBound:
    """The dual objective at the feasible point nearest to ``alpha``, or at α = 0, which is always feasible."""
    if alpha is None:
        nothing = np.zeros(problem.n_weights)
        return dual_bound(problem.regularizer, Totals(0.0, nothing, 0.0, nothing))
    return dual_bound(problem.regularizer, problem.constraints.totals(alpha))


def dual_scale(regularizer: Any, v: np.ndarray) -> float:
    """The largest s ≤ 1 for which Ω*(s·v) is finite: 1 for every strongly convex Ω."""
    return regularizer.dual_scale(v) if is_pure(regularizer) else 1.0


def scaled_dual(regularizer: Any, linear: float, v: np.ndarray) -> float:
    """The dual objective by these sums, scaled down until it is finite; what they were rounded by is not seen."""
    scale = dual_scale(regularizer, v)
    return float(scale * linear - regularizer.conjugate(scale * v))


def dual_bound(regularizer: Regularizer, totals: Totals) -> LowerBound:
    """What feasible dual variables prove that come to these sums.

    Where Ω* is finite only on a ball (a pure group norm), they are scaled down until v lies inside for certain.
    """
    linear, v, linear_error, v_error = totals
    scale = dual_scale(regularizer, np.abs(v) + v_error)
    if scale != 1.0:
        scale *= 1.0 - gamma(2 * v.size + 16)
        linear, linear_error = scale * linear, linear_error + gamma(1) * abs(linear)
        v, v_error = scale * v, v_error + gamma(1) * np.abs(v)
    bound = linear - regularizer.conjugate(v)
    rounding = linear_error + conjugate_error(regularizer, v, v_error) + gamma(2) * (abs(linear) + abs(bound))
    return LowerBound(bound, rounding) if np.isfinite(bound - rounding) else LowerBound(-np.inf, 0.0)


def check_problem(problem: Any) -> None:
    """Whether this is a problem with a regularizer in it."""
    if lacking(problem, "constraints", "regularizer"):
        raise ValueError(
            f"problem must be a maxmargin.Problem of constraints and a regularizer, got {shown(problem)}. Estimators "
            "have methods of their own: fit and certify."
        )
    check_object("regularizer", problem.regularizer)


def best_start(problem: Problem, candidates: list[Any]) -> Any:
    """Of several dual variables to start from, those with the highest lower bound."""
    return max(candidates, key=lambda alpha: lower_bound(problem, alpha))


def upper_bound(problem: Problem, w: np.ndarray, loss: TotalLoss | None = None) -> TotalLoss:
    """The primal objective at ``w``, every example's loss computed at this one w (or given, where it is known)."""
    loss = problem.constraints.evaluate(w) if loss is None else loss
    value = problem.regularizer.value(w)
    rounding = loss.rounding + value_error(problem.regularizer, w) if np.isfinite(value) else 0.0
    return TotalLoss(value + loss.total, loss.excess, rounding + gamma(1) * (value + loss.total))


def certificate_of(lower: float, upper: TotalLoss, problem: Problem | None = None) -> Certificate:
    """What two bounds prove of a problem. Where inference was approximate and has no bound, or numbers overflow,
    nothing is known above."""
    value, known = rounded_up(*upper), bool(np.isfinite(upper.excess))
    relaxed = getattr(getattr(problem, "constraints", None), "relaxed", False)
    return Certificate(lower, math.inf if math.isnan(value) else value, known, upper.excess if known else 0.0, relaxed)


def certify(problem: Problem, w: np.ndarray, alpha: Any = None, exact_seconds: float = 0.0) -> Certificate:
    """Bracket the optimum of ``problem``.

    Parameters
    ----------
    problem : Problem
    w : array (n_weights,)
        Weights whose objective is the upper bound.
    alpha : array, Planes or None
        Dual variables for the lower bound; without them the bound is the trivial one at α = 0.
    exact_seconds : float
        Time for exact searches where those of training have left a gap, which lowers the upper bound.
    """
    check_problem(problem)
    w = np.asarray(w)
    if w.dtype.kind not in "fiub" or w.shape != (problem.n_weights,):
        raise ValueError(f"w must be {problem.n_weights} weights of the problem, got {shown(w)}.")
    w = w.astype(np.float64, copy=False)
    lower = lower_bound(problem)
    if alpha is not None:
        lower = max(lower, lower_bound(problem, alpha))
    loss = problem.searched.evaluate(w, exact_seconds) if exact_seconds else None
    return certificate_of(lower, upper_bound(problem, w, loss), problem)
