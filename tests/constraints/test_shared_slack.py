"""Shared-slack problems under every regularizer, against an independent cone solver."""

from dataclasses import replace

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from generators import shared_slack
from regularized import PURE, REGULARIZED

from maxmargin import Problem, certify, solve
from maxmargin.constraints import SharedSlack
from maxmargin.data.arrays import as_rows
from maxmargin.regularizers import L2
from maxmargin.solvers import DualCoordinate, ProximalPoint

# What the cone solver itself leaves open, relative to the optimum.
REFERENCE_ERROR = 1e-8
EVERY = REGULARIZED | PURE


def _solved(constraints, regularizer):
    inner = DualCoordinate(random_state=0)
    solver = ProximalPoint(inner) if getattr(regularizer, "pure", False) else inner
    return solve(Problem(constraints, regularizer), solver, tol=1e-8, max_passes=20_000)


@pytest.mark.parametrize("budgets", [False, True], ids=["one C", "budgets"])
@pytest.mark.parametrize("name", EVERY)
def test_agrees_with_cone_solver_and_certificate_brackets_its_optimum(name, budgets):
    for seed in range(4):
        rng = np.random.default_rng([seed, list(EVERY).index(name), budgets])
        data = shared_slack(rng, budgets=budgets, awkward=seed % 2 == 1, n_weights=int(rng.integers(4, 13)))
        regularizer, solver, terms = EVERY[name](rng, data.X.shape[1])
        optimum = solver(*data.arrays(), **terms)
        problem, solution = Problem(data.constraints, regularizer), _solved(data.constraints, regularizer)
        found, alpha = solution.certificate, solution.alpha
        assert solution.converged
        assert found.upper == pytest.approx(optimum.value, rel=1e-6, abs=1e-9)
        slack = REFERENCE_ERROR * (1 + abs(optimum.value))
        assert found.lower <= optimum.value + slack
        assert found.upper >= optimum.value - slack

        assert alpha.min() >= 0
        used = np.bincount(data.example, alpha, minlength=data.budget.size)
        assert (used <= data.budget * (1 + 1e-12)).all()

        again = certify(problem, solution.weights, alpha)
        assert (again.lower, again.upper) == pytest.approx((found.lower, found.upper), rel=1e-12)
        by_hand = regularizer.value(solution.weights) + _hinge(data, solution.weights)
        assert found.upper == pytest.approx(by_hand, rel=1e-10)


def _hinge(data, w):
    slack = np.zeros(data.budget.size)
    np.maximum.at(slack, data.example, data.loss - data.X @ w)
    return data.budget @ slack


@pytest.mark.parametrize("name", ["group", "group+l2"])
def test_group_norm_sets_exactly_the_groups_to_zero_that_vanish_in_the_reference(name):
    vanished = stayed = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        data = shared_slack(rng)
        regularizer, solver, terms = EVERY[name](rng, data.X.shape[1])
        reference_norms = regularizer.norms(solver(*data.arrays(), **terms).weights)
        expected = reference_norms <= 1e-6 * (1 + reference_norms.max())
        norms = regularizer.norms(_solved(data.constraints, regularizer).weights)
        assert np.array_equal(norms == 0.0, expected), f"seed {seed}"
        vanished += expected.sum()
        stayed += (~expected).sum()
    assert vanished >= 5
    assert stayed >= 5


def test_nearly_equal_rows_of_one_example_still_reach_the_optimum(rng):
    """Pairs of them have almost no curvature, which must not be taken for none at all."""
    n, d, noise = 15, 6, 1e-3
    X = np.repeat(rng.normal(size=(n, d)), 3, axis=0) + noise * rng.normal(size=(3 * n, d))
    loss = np.repeat(rng.uniform(0.5, 1.5, size=n), 3) + noise * rng.normal(size=3 * n)
    example, budget = np.repeat(np.arange(n), 3), np.full(n, 10.0)
    optimum = reference.quadratic(X, loss, example, budget).value
    constraints = SharedSlack(as_rows(X), loss, 3 * np.arange(n + 1), budget)
    assert _solved(constraints, L2()).certificate.upper == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "sparse"), [("l2", True), ("diagonal", False), ("full", True), ("bounds", False), ("group+l2", True)]
)
def test_sides_and_rows_named_by_number_equal_rows_written_out(name, sparse, rng):
    """An example may own rows that others own too, and minus them."""
    X, first = rng.normal(size=(12, 5)), np.array([0, 3, 4, 9, 15, 20])
    picked, side, budget = rng.integers(0, 12, size=20), np.array([1, -1, -1, 1, -1]), rng.uniform(0.3, 2.0, size=5)
    example, loss = np.repeat(np.arange(5), np.diff(first)), rng.uniform(0.5, 1.5, size=20)
    regularizer, solver, terms = EVERY[name](rng, 6)
    stored = as_rows(sp.csr_matrix(X) if sparse else X, bias=0.5)
    rows = replace(stored, plus=picked, minus=np.full(20, -1, np.int8))  # types that kernels are compiled for anyway
    constraints = SharedSlack(rows, loss, first, budget, side)
    wide = side[example, None] * np.hstack([X[picked], np.full((20, 1), 0.5)])
    optimum = solver(wide, loss, example, budget, **terms).value
    solution = _solved(constraints, regularizer)
    assert solution.certificate.upper == pytest.approx(optimum, rel=1e-6)
    assert constraints.combine(solution.alpha) == pytest.approx(wide.T @ solution.alpha, abs=1e-10)


@pytest.mark.parametrize(
    ("first", "more", "message"),
    [
        ([0, 2, 4], {"loss": np.ones(3)}, "4 rows need 4 .* got 3 losses"),
        ([0, 2, 3], {}, "offsets from 0 to 4"),
        ([0, 2, 3, 4], {"budget": np.ones(2)}, "SharedSlack"),
        ([1, 2, 4], {}, "SharedSlack"),
        ([0, 3, 2, 4], {}, "SharedSlack"),
        ([0, 2, 4], {"budget": -np.ones(1)}, "SharedSlack"),
        ([0, 2, 4], {"side": np.array([1, 2])}, "sides must be 1 or −1"),
    ],
)
def test_what_does_not_fit_is_refused(first, more, message):
    """Kernels do not check: a budget that is missing would be read from beyond the end of the array."""
    given = {"rows": as_rows(np.eye(4)), "loss": np.ones(4), "first": np.array(first), "budget": np.ones(1)}
    with pytest.raises(ValueError, match=message):
        SharedSlack(**(given | more))
