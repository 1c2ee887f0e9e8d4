"""Shared-slack problems under every regularizer, against an independent cone solver."""

from dataclasses import replace

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from generators import SharedSlackData, covariance, partition, shared_slack

from maxmargin import Problem, certify, solve
from maxmargin.constraints import SharedSlack
from maxmargin.data.arrays import as_rows
from maxmargin.regularizers import L2, Blocks, Bounded, GaussianPrior, GroupNorm
from maxmargin.solvers import DualCoordinate, ProximalPoint

# What the cone solver itself leaves open, relative to the optimum.
REFERENCE_ERROR = 1e-8


def _l2(rng, d):
    return L2(), reference.quadratic, {}


def _diagonal(rng, d):
    mean, variance = rng.normal(size=d), 10.0 ** rng.uniform(-1, 1, size=d)
    return GaussianPrior(mean, variance), reference.quadratic, {"mean": mean, "covariance": variance}


def _full(rng, d):
    mean, full = rng.normal(size=d), covariance(rng, d)
    return GaussianPrior(mean, full), reference.quadratic, {"mean": mean, "covariance": full}


def _bounds(rng, d):
    index = np.flatnonzero(rng.random(d) < 0.6)
    lower = 0.3 * rng.normal(size=index.size)
    floor = np.full(d, -np.inf)
    floor[index] = lower
    return Bounded(lower, index), reference.quadratic, {"lower": floor}


def _bounds_and_prior(rng, d):
    prior, solver, prior_terms = _diagonal(rng, d)
    bounded, _, bound_terms = _bounds(rng, d)
    return Bounded(bounded.lower, bounded.indices, base=prior), solver, prior_terms | bound_terms


def _group(rng, d):
    groups = partition(rng, d)
    strength = 10.0 ** rng.uniform(-1, 0.5, size=len(groups))
    return GroupNorm(groups, strength), reference.group_norm, {"groups": groups, "strength": strength}


def _group_and_l2(rng, d):
    pure, solver, terms = _group(rng, d)
    return GroupNorm(pure.groups, pure.strength, l2=0.5), solver, terms | {"l2": 0.5}


REGULARIZERS = {
    "l2": _l2,
    "diagonal": _diagonal,
    "full": _full,
    "bounds": _bounds,
    "bounds+prior": _bounds_and_prior,
    "group+l2": _group_and_l2,
    "group": _group,
}
ROWS = {
    "plain": {},
    "budgets": {"budgets": True},
    "awkward": {"awkward": True},
    "budgets-awkward": {"budgets": True, "awkward": True},
}


def _solver(regularizer, **settings):
    inner = DualCoordinate(random_state=0, **settings)
    return ProximalPoint(inner) if getattr(regularizer, "pure", False) else inner


def _problem(name, rows, seed):
    rng = np.random.default_rng([seed, sorted(REGULARIZERS).index(name), sorted(ROWS).index(rows)])
    data = shared_slack(rng, **ROWS[rows])
    regularizer, solver, terms = REGULARIZERS[name](rng, data.X.shape[1])
    return data, regularizer, solver(*data.arrays(), **terms)


@pytest.mark.parametrize("seed", range(9))
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", REGULARIZERS)
def test_agrees_with_cone_solver_and_certificate_brackets_its_optimum(name, rows, seed):
    data, regularizer, optimum = _problem(name, rows, seed)
    problem = Problem(data.constraints, regularizer)
    solution = solve(problem, _solver(regularizer), tol=1e-8, max_passes=20_000)
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


def _weights(data, regularizer, tol):
    return solve(Problem(data.constraints, regularizer), _solver(regularizer), tol=tol, max_passes=50_000).weights


@pytest.mark.parametrize("name", [n for n in REGULARIZERS if n != "group"])
def test_weights_agree_with_cone_solver_where_the_optimum_is_unique(name):
    for seed in range(5):
        data, regularizer, optimum = _problem(name, "plain", seed)
        weights = _weights(data, regularizer, tol=1e-11)
        assert np.abs(weights - optimum.weights).max() <= 1e-4 * (1 + np.abs(optimum.weights).max())


@pytest.mark.parametrize("name", ["group", "group+l2"])
def test_group_norm_sets_exactly_the_groups_to_zero_that_vanish_in_the_reference(name):
    vanished = stayed = 0
    for seed in range(12):
        data, regularizer, optimum = _problem(name, "plain", seed)
        weights = _weights(data, regularizer, tol=1e-9)
        reference_norms = regularizer.norms(optimum.weights)
        expected = reference_norms <= 1e-6 * (1 + reference_norms.max())
        assert np.array_equal(regularizer.norms(weights) == 0.0, expected), f"seed {seed}"
        vanished += expected.sum()
        stayed += (~expected).sum()
    assert vanished >= 5
    assert stayed >= 5


def _clip_in_place(data, floor, passes, rng):
    """Coordinate ascent that forgets the unclipped v: after each step w itself is raised to its bounds."""
    alpha, w = np.zeros(data.loss.size), np.maximum(np.zeros(floor.size), floor)
    for _ in range(passes):
        for j in rng.permutation(alpha.size):
            x = data.X[j]
            step = np.clip((data.loss[j] - w @ x) / (x @ x), -alpha[j], data.budget[data.example[j]] - alpha[j])
            alpha[j] += step
            w = np.maximum(w + step * x, floor)
    return 0.5 * w @ w + _hinge(data, w)


def test_clipping_weights_in_place_misses_the_optimum_and_the_solver_does_not():
    excess = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, loss, n = rng.normal(size=(30, 6)), np.ones(30), 30
        data = _single_rows(X, loss, np.ones(n))
        floor = np.zeros(6)
        optimum = reference.quadratic(*data.arrays(), lower=floor).value
        solution = solve(Problem(data.constraints, Bounded(0.0)), DualCoordinate(random_state=0), tol=1e-8)
        assert solution.certificate.upper == pytest.approx(optimum, rel=1e-6)
        excess.append(_clip_in_place(data, floor, 300, rng) / optimum - 1)
    assert min(excess) > -1e-6
    assert np.median(excess) > 0.01


def _single_rows(X, loss, budget):
    n = loss.size
    constraints = SharedSlack(as_rows(X), loss, np.arange(n + 1), budget)
    return SharedSlackData(X, loss, np.arange(n), budget, constraints)


def test_nearly_equal_rows_of_one_example_still_reach_the_optimum(rng):
    """Pairs of them have almost no curvature, which must not be taken for none at all."""
    n, d, noise = 15, 6, 1e-3
    X = np.repeat(rng.normal(size=(n, d)), 3, axis=0) + noise * rng.normal(size=(3 * n, d))
    loss = np.repeat(rng.uniform(0.5, 1.5, size=n), 3) + noise * rng.normal(size=3 * n)
    example, budget = np.repeat(np.arange(n), 3), np.full(n, 10.0)
    optimum = reference.quadratic(X, loss, example, budget).value
    constraints = SharedSlack(as_rows(X), loss, 3 * np.arange(n + 1), budget)
    solution = solve(Problem(constraints, L2()), DualCoordinate(random_state=0), tol=1e-8, max_passes=20_000)
    assert solution.certificate.upper == pytest.approx(optimum, rel=1e-6)


def test_block_regularizers_agree_with_the_one_they_add_up_to():
    data, _, _ = _problem("l2", "plain", 3)
    d = data.X.shape[1]
    rng = np.random.default_rng(3)
    mean, variance = rng.normal(size=d), rng.uniform(0.5, 2.0, size=d)
    odd, even = np.arange(1, d, 2), np.arange(0, d, 2)
    blocks = Blocks([(odd, GaussianPrior(mean[odd], variance[odd])), (even, GaussianPrior(mean[even], variance[even]))])
    optimum = reference.quadratic(*data.arrays(), mean=mean, covariance=variance).value
    found = solve(Problem(data.constraints, blocks), DualCoordinate(random_state=0), tol=1e-8).certificate
    assert found.upper == pytest.approx(optimum, rel=1e-6)


def test_full_covariance_block_beside_l2_agrees_with_cone_solver(rng):
    data = shared_slack(rng, n_weights=7)
    full = covariance(rng, 4)
    whole = np.eye(7)
    whole[:4, :4] = full
    blocks = Blocks([(np.arange(4), GaussianPrior(0.0, full)), (np.arange(4, 7), L2())])
    optimum = reference.quadratic(*data.arrays(), covariance=whole).value
    found = solve(Problem(data.constraints, blocks), DualCoordinate(random_state=0), tol=1e-8).certificate
    assert found.upper == pytest.approx(optimum, rel=1e-6)


def test_pure_group_block_beside_l2_agrees_with_cone_solver(rng):
    """What an estimator with an intercept solves: the last weight has its own l2 term."""
    data = shared_slack(rng, n_examples=30, n_weights=6)
    groups = [np.array([0, 1]), np.array([2, 3, 4])]
    blocks = Blocks([(np.arange(5), GroupNorm(groups, 0.7)), (np.array([5]), L2())])
    solution = solve(Problem(data.constraints, blocks), _solver(blocks), tol=1e-8, max_passes=20_000)
    optimum = reference.group_norm_and_l2(*data.arrays(), groups=groups, strength=0.7, free=[5])
    assert solution.certificate.upper == pytest.approx(optimum.value, rel=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_dense_and_sparse_rows_have_the_same_optimum(sparse):
    data = shared_slack(np.random.default_rng(5), n_examples=20, n_weights=6, awkward=True, sparse=sparse)
    optimum = reference.quadratic(*data.arrays()).value
    found = solve(Problem(data.constraints, L2()), DualCoordinate(random_state=0), tol=1e-8).certificate
    assert found.upper == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("name", REGULARIZERS)
def test_implied_bias_equals_a_stored_column_of_constants(name, rng):
    data = shared_slack(rng, n_examples=20, n_weights=5)
    wide = np.hstack([data.X, np.full((data.X.shape[0], 1), 0.5)])
    regularizer, solver, terms = REGULARIZERS[name](rng, 6)
    constraints = SharedSlack(as_rows(data.X, bias=0.5), data.loss, data.constraints.first, data.budget)
    optimum = solver(wide, data.loss, data.example, data.budget, **terms).value
    found = solve(Problem(constraints, regularizer), _solver(regularizer), tol=1e-8, max_passes=20_000).certificate
    assert found.upper == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("name", ["l2", "diagonal", "full", "bounds", "group+l2"])
@pytest.mark.parametrize("sparse", [False, True])
def test_sides_and_rows_named_by_number_equal_rows_written_out(name, sparse, rng):
    """An example may own rows that others own too, and minus them."""
    X, first = rng.normal(size=(12, 5)), np.array([0, 3, 4, 9, 15, 20])
    picked, side, budget = rng.integers(0, 12, size=20), np.array([1, -1, -1, 1, -1]), rng.uniform(0.3, 2.0, size=5)
    example, loss = np.repeat(np.arange(5), np.diff(first)), rng.uniform(0.5, 1.5, size=20)
    regularizer, solver, terms = REGULARIZERS[name](rng, 6)
    stored = as_rows(sp.csr_matrix(X) if sparse else X, bias=0.5)
    rows = replace(stored, first=picked, second=np.full(20, -1))
    constraints = SharedSlack(rows, loss, first, budget, side)
    wide = side[example, None] * np.hstack([X[picked], np.full((20, 1), 0.5)])
    optimum = solver(wide, loss, example, budget, **terms).value
    problem = Problem(constraints, regularizer)
    solution = solve(problem, DualCoordinate(random_state=0), tol=1e-8, max_passes=20_000)
    assert solution.certificate.upper == pytest.approx(optimum, rel=1e-6)
    assert constraints.combine(solution.alpha) == pytest.approx(wide.T @ solution.alpha, abs=1e-10)


def test_sides_other_than_one_are_refused():
    with pytest.raises(ValueError, match="sides must be 1 or −1"):
        SharedSlack(as_rows(np.eye(2)), np.ones(2), np.array([0, 1, 2]), np.ones(1), np.array([1, 2]))


def test_all_rows_empty_gives_the_loss_of_zero_weights():
    loss = np.array([1.0, 2.0, 0.5, 3.0])
    constraints = SharedSlack(as_rows(np.zeros((4, 3))), loss, np.array([0, 2, 4]), np.ones(1))
    solution = solve(Problem(constraints, L2()), DualCoordinate(random_state=0), tol=1e-12)
    assert solution.certificate.upper == pytest.approx(5.0)
    assert solution.certificate.lower == pytest.approx(5.0)
    assert not solution.weights.any()


def test_counts_that_disagree_are_refused():
    with pytest.raises(ValueError, match="4 rows, 3 losses"):
        SharedSlack(as_rows(np.eye(4)), np.ones(3), np.array([0, 2, 4]), np.ones(1))
    with pytest.raises(ValueError, match="last offset of 3"):
        SharedSlack(as_rows(np.eye(4)), np.ones(4), np.array([0, 2, 3]), np.ones(1))


@pytest.mark.parametrize(
    ("first", "budget"),
    [([0, 2, 4, 6], np.ones(2)), ([1, 2, 4, 6], np.ones(1)), ([0, 4, 2, 6], np.ones(1)), ([0, 2, 4, 6], -np.ones(1))],
    ids=["two budgets for three examples", "first row left out", "offsets descend", "negative budget"],
)
def test_offsets_and_budgets_that_do_not_fit_are_refused(first, budget):
    """Kernels do not check: a budget that is missing would be read from beyond the end of the array."""
    with pytest.raises(ValueError, match="SharedSlack"):
        SharedSlack(as_rows(np.ones((6, 3))), np.ones(6), np.array(first), budget)
