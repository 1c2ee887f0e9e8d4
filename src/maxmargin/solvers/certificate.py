"""Both bounds from nothing: no number that a solver kept along the way is trusted here."""

from __future__ import annotations

import numpy as np

from ..problem import Certificate, Problem


def lower_bound(problem: Problem, alpha: np.ndarray) -> float:
    """The dual objective at the feasible point nearest to ``alpha``: a true lower bound of the optimum.

    Where Ω* is finite only on a ball (a pure group norm), α is scaled down until v lies inside.
    """
    constraints, regularizer = problem.constraints, problem.regularizer
    alpha = constraints.feasible(alpha)
    v = constraints.combine(alpha)
    scale = regularizer.dual_scale(v)
    if scale < 1.0:
        alpha, v = scale * alpha, scale * v
    bound = constraints.linear(alpha) - regularizer.conjugate(v)
    return bound if np.isfinite(bound) else -np.inf


def best_start(problem: Problem, candidates: list[np.ndarray]) -> np.ndarray:
    """Of several dual variables to start from, those with the highest lower bound."""
    return max(candidates, key=lambda alpha: lower_bound(problem, alpha))


def upper_bound(problem: Problem, w: np.ndarray) -> float:
    """The primal objective at ``w``, every example's loss computed at this one w."""
    return problem.regularizer.value(w) + problem.constraints.total_loss(w)


def certify(problem: Problem, w: np.ndarray, alpha: np.ndarray | None = None) -> Certificate:
    """Bracket the optimum of ``problem``.

    Parameters
    ----------
    problem : Problem
    w : array (n_weights,)
        Weights whose objective is the upper bound.
    alpha : array or None
        Dual variables for the lower bound; without them the bound is the trivial one at α = 0.
    """
    if alpha is None:
        alpha = np.zeros(problem.constraints.dual_shape)
    return Certificate(lower=lower_bound(problem, alpha), upper=upper_bound(problem, w))
