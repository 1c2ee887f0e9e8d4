"""Both bounds from nothing: no number that a solver kept along the way is trusted here."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import Certificate, Loss, Problem
from ..wording import check_object, shown

# The upper bound costs a pass over the data: it is computed once a solver's estimate is within this factor of the goal.
WORTH_A_CHECK = 1.3


def lower_bound(problem: Problem, alpha: Any) -> float:
    """The dual objective at the feasible point nearest to ``alpha``: a true lower bound of the optimum.

    Where Ω* is finite only on a ball (a pure group norm), α is scaled down until v lies inside.
    """
    constraints, regularizer = problem.constraints, problem.regularizer
    linear, v = constraints.totals(alpha)
    scale = regularizer.dual_scale(v)
    bound = scale * linear - regularizer.conjugate(v if scale == 1.0 else scale * v)
    return bound if np.isfinite(bound) else -np.inf


def bound_at_zero(problem: Problem) -> float:
    """The dual objective at α = 0, which is always feasible: the least value of Ω, since no loss is below zero."""
    return 0.0 - problem.regularizer.conjugate(np.zeros(problem.n_weights))


def check_problem(problem: Any) -> None:
    """Whether this is a problem with a regularizer in it."""
    if not hasattr(problem, "constraints") or not hasattr(problem, "regularizer"):
        raise ValueError(
            f"problem must be a maxmargin.Problem of constraints and a regularizer, got {shown(problem)}. Estimators "
            "have methods of their own: fit and certify."
        )
    check_object("regularizer", problem.regularizer)


def best_start(problem: Problem, candidates: list[Any]) -> Any:
    """Of several dual variables to start from, those with the highest lower bound."""
    return max(candidates, key=lambda alpha: lower_bound(problem, alpha))


def upper_bound(problem: Problem, w: np.ndarray, loss: Loss | None = None) -> Loss:
    """The primal objective at ``w``, every example's loss computed at this one w (or given, where it is known).

    ``excess`` is what approximate inference may have missed of it.
    """
    loss = problem.constraints.evaluate(w) if loss is None else loss
    return Loss(problem.regularizer.value(w) + loss.total, loss.excess)


def bracket(lower: float, upper: Loss) -> Certificate:
    """What two bounds prove. Where inference was approximate nothing is known above."""
    return Certificate(lower, upper.total + upper.excess, exact=bool(np.isfinite(upper.excess)))


def certify(problem: Problem, w: np.ndarray, alpha: Any = None) -> Certificate:
    """Bracket the optimum of ``problem``.

    Parameters
    ----------
    problem : Problem
    w : array (n_weights,)
        Weights whose objective is the upper bound.
    alpha : array, Planes or None
        Dual variables for the lower bound; without them the bound is the trivial one at α = 0.
    """
    check_problem(problem)
    w = np.asarray(w)
    if w.dtype.kind not in "fiub" or w.shape != (problem.n_weights,):
        raise ValueError(f"w must be {problem.n_weights} weights of the problem, got {shown(w)}.")
    lower = bound_at_zero(problem)
    if alpha is not None:
        lower = max(lower, lower_bound(problem, alpha))
    return bracket(lower, upper_bound(problem, w))
