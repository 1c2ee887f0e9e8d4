"""Conformance checks for parts that users write: what the solver relies on, tested on the part itself.

Each check raises an ``AssertionError`` that says in plain words what is wrong, and returns nothing otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .problem import Problem
from .protocols import Constraints, Regularizer, Solver
from .regularizers import L2
from .regularizers.shape import weights_of
from .solvers import certify, solve


def check_regularizer(regularizer: Regularizer, n_weights: int, *, random_state: Any = 0) -> None:
    """Ω, Ω* and the map v → w belong together, and the kernels' map is the same one.

    >>> from maxmargin.regularizers import GaussianPrior
    >>> check_regularizer(GaussianPrior(1.0, 2.0), n_weights=3)
    """
    rng = np.random.default_rng(random_state)
    for _ in range(20):
        v = rng.normal(size=n_weights) * 10.0 ** rng.uniform(-1, 1)
        w = regularizer.weights(v)
        value, conjugate = regularizer.value(w), regularizer.conjugate(v)
        scale = 1e-9 * (abs(value) + abs(conjugate) + abs(w @ v) + 1.0)
        assert abs(value + conjugate - w @ v) <= scale, (
            f"value(w) + conjugate(v) must equal w·v at w = weights(v): {value} + {conjugate} is not {w @ v}."
        )
        other = regularizer.weights(rng.normal(size=n_weights) * 10.0 ** rng.uniform(-1, 1))
        assert regularizer.value(other) + conjugate >= other @ v - scale, (
            "value(w) + conjugate(v) must be at least w·v for every w: the conjugate is too small."
        )
        shift = rng.normal(size=n_weights)
        assert (regularizer.weights(v + shift) - w) @ shift >= -scale, (
            "weights(v) must be monotone: it is the gradient of a convex function."
        )
        bound = regularizer.shape(n_weights).bind(v.copy())
        difference = np.abs(weights_of(bound) - w).max()
        assert difference <= 1e-9 * (1 + np.abs(w).max()), (
            f"shape().bind(v) and weights(v) differ by {difference}: kernels would solve another problem."
        )


def check_constraints(constraints: Constraints, *, random_state: Any = 0) -> None:
    """Feasibility, linearity of ``combine``, weak duality, and sweeps that raise the dual objective.

    >>> from maxmargin.data.arrays import as_rows
    >>> from maxmargin.models import regression
    >>> check_constraints(regression(as_rows(np.eye(3)), np.arange(3.0), np.ones(1)))
    """
    rng = np.random.default_rng(random_state)
    problem = Problem(constraints, L2())
    shape = constraints.dual_shape
    for _ in range(10):
        alpha = constraints.feasible(rng.normal(size=shape) * 10.0 ** rng.uniform(-2, 1))
        again = constraints.feasible(alpha)
        assert np.allclose(again, alpha, rtol=1e-9, atol=1e-12), "feasible(feasible(alpha)) must change nothing."
        v = constraints.combine(alpha)
        assert np.allclose(constraints.combine(0.5 * alpha), 0.5 * v, rtol=1e-9, atol=1e-12), (
            "combine must be linear in alpha."
        )
        w = rng.normal(size=constraints.n_weights) * 10.0 ** rng.uniform(-2, 1)
        both = certify(problem, w, alpha)
        assert both.lower <= both.upper + 1e-9 * (1 + abs(both.upper)), (
            f"Weak duality fails: the dual objective {both.lower} lies above the primal {both.upper}."
        )
        weights = L2().shape(constraints.n_weights).bind(v.copy())
        norms = np.full(len(constraints.rows), -1.0, np.float32)
        order = np.arange(constraints.n_examples, dtype=np.int32)
        before, linear = certify(problem, w, alpha).lower, constraints.linear(alpha)
        _, _, change = constraints.sweep(alpha, weights, norms, order, order.size, 1, int(rng.integers(1, 2**62)))
        after = certify(problem, w, alpha).lower
        assert after >= before - 1e-9 * (1 + abs(before)), f"A sweep lowered the dual objective: {before} to {after}."
        assert np.allclose(constraints.combine(alpha), weights.v, rtol=1e-7, atol=1e-9), (
            "After a sweep v no longer equals combine(alpha)."
        )
        assert np.isclose(constraints.linear(alpha), linear + change, rtol=1e-7, atol=1e-9), (
            "The change of linear(alpha) that the sweep reports is wrong."
        )


def check_solver(solver: Solver, problem: Problem, *, tol: float = 1e-6, max_passes: int = 5000) -> None:
    """The solver reaches the gap, its α is feasible, and the bounds it reports while running are true."""
    solution = solve(problem, solver, tol=tol, max_passes=max_passes)
    assert solution.converged, f"No relative gap of {tol} within {max_passes} passes: {solution.certificate}."
    alpha = problem.constraints.feasible(solution.alpha)
    assert np.allclose(alpha, solution.alpha, rtol=1e-9, atol=1e-12), "The dual variables are not feasible."
    optimum = solution.certificate.upper
    for record in solution.history:
        assert record.lower <= optimum * (1 + 1e-9) + 1e-12, (
            f"Pass {record.number} claims a lower bound of {record.lower}, above the optimum {optimum}."
        )
        assert record.upper >= solution.certificate.lower * (1 - 1e-9) - 1e-12, (
            f"Pass {record.number} claims an upper bound of {record.upper}, below the optimum."
        )
