"""The interior-point solver against dual coordinate ascent, and where data is awkward."""

import numpy as np
import pytest
import scipy.sparse as sp
from generators import SCALAR_LOSSES
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.exceptions import ConvergenceWarning

from maxmargin import LinearSVC
from maxmargin.data.arrays import as_rows
from maxmargin.losses import EpsilonInsensitive
from maxmargin.models import binary, ranking, regression
from maxmargin.problem import Problem
from maxmargin.regularizers import L2, Bounded, GaussianPrior, GroupNorm
from maxmargin.solvers import DualCoordinate, InteriorPoint, certify, interior_rows, solve


def constraints(X, loss, budget, rng, bias=1.0):
    rows = as_rows(X, bias=bias)
    n = X.shape[0]
    if "hinge" in loss:
        sign = np.where(rng.random(n) < 0.5, 1, -1).astype(np.int8)
        return binary(rows, sign, budget, loss=SCALAR_LOSSES[loss])
    return regression(rows, rng.normal(size=n), budget, loss=SCALAR_LOSSES[loss])


def regularizer(kind, d, rng):
    A = rng.normal(size=(d, d))
    return {
        "l2": L2(),
        "diagonal": GaussianPrior(rng.normal(size=d), rng.uniform(0.5, 2, size=d)),
        "full": GaussianPrior(0.3, A @ A.T + np.eye(d)),
    }[kind]


@pytest.fixture(autouse=True, params=["compiled", "arrays"])
def loops(request, monkeypatch):
    """Problems as small as these have array code, unless they are told otherwise."""
    monkeypatch.setattr(interior_rows, "COMPILED_FROM", 0 if request.param == "compiled" else 10**9)


@pytest.mark.parametrize(
    ("loss", "kind"), list(zip(SCALAR_LOSSES, ["l2", "diagonal", "full", "full", "diagonal"], strict=True))
)
def test_agrees_with_coordinate_ascent(loss, kind):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 6))
    c = constraints(X, loss, 0.3 * rng.random(80) + 0.01, rng)
    problem = Problem(c, regularizer(kind, 7, rng))
    newton = solve(problem, InteriorPoint(), tol=1e-8, max_passes=60)
    plain = solve(problem, DualCoordinate(0), tol=1e-8, max_passes=100_000)
    assert newton.converged
    assert newton.certificate.upper == pytest.approx(plain.certificate.upper, rel=1e-7)
    assert newton.certificate.lower <= plain.certificate.upper * (1 + 1e-12)
    assert np.array_equal(c.feasible(newton.alpha), newton.alpha)


SPOILT = [
    "different scales", "duplicate columns", "constant column", "zero rows", "fewer rows than columns", "one row",
]  # fmt: skip


@pytest.mark.parametrize(
    ("spoil", "loss", "C"),  # every pair of two of them
    [
        (spoil, loss, [1e-4, 1.0, 1e4][(i + k) % 3])
        for i, spoil in enumerate(SPOILT)
        for k, loss in enumerate(SCALAR_LOSSES)
    ],
)
def test_converges_on_awkward_data(spoil, loss, C):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    if spoil == "different scales":
        X *= 10.0 ** np.arange(-2, 3)
    elif spoil == "duplicate columns":
        X[:, 1] = X[:, 0]
    elif spoil == "constant column":
        X[:, 0] = 100.0
    elif spoil == "zero rows":
        X[::3] = 0.0
    elif spoil == "fewer rows than columns":
        X = rng.normal(size=(4, 9))
    else:
        X = X[:1]
    problem = Problem(constraints(X, loss, np.array([C]), rng), L2())
    solution = solve(problem, InteriorPoint(), tol=1e-6, max_passes=80)
    assert solution.converged, solution.certificate


def test_examples_without_budget_do_not_count():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 4))
    budget = np.where(np.arange(40) < 30, 1.0, 0.0)
    sign = np.where(rng.random(40) < 0.5, 1, -1).astype(np.int8)
    some = solve(Problem(binary(as_rows(X), sign, budget), L2()), InteriorPoint(), tol=1e-8)
    few = solve(Problem(binary(as_rows(X[:30]), sign[:30], np.ones(1)), L2()), InteriorPoint(), tol=1e-8)
    assert some.certificate.upper == pytest.approx(few.certificate.upper, rel=1e-7)
    assert not some.alpha[30:].any()


def test_ranking_pairs():
    rng = np.random.default_rng(4)
    X, grade, group = rng.normal(size=(30, 4)), rng.integers(0, 3, size=30).astype(float), np.arange(30) // 10
    problem = Problem(ranking(as_rows(X), grade, group, np.array([0.5])), L2())
    newton, plain = (solve(problem, s, tol=1e-7, max_passes=50_000) for s in (InteriorPoint(), DualCoordinate(0)))
    assert newton.certificate.upper == pytest.approx(plain.certificate.upper, rel=1e-6)


def test_a_problem_that_zero_weights_solve():
    X = np.random.default_rng(5).normal(size=(50, 3))
    problem = Problem(regression(as_rows(X), np.full(50, 0.5), np.ones(1), loss=EpsilonInsensitive(1.0)), L2())
    solution = solve(problem, InteriorPoint(), tol=1e-6)
    assert solution.converged and solution.certificate.upper == 0.0 and not solution.weights.any()


def test_knows_what_it_can_handle():
    rng = np.random.default_rng(6)
    c = constraints(rng.normal(size=(20, 3)), "hinge", np.array([1.0]), rng, bias=0.0)
    handles = InteriorPoint().handles
    assert handles(Problem(c, L2())) and handles(Problem(c, GaussianPrior(0.0, np.eye(3))))
    assert handles(Problem(c, Bounded(0.0)))
    wide = constraints(sp.csr_matrix((20, 100_000)), "hinge", np.array([1.0]), rng)
    assert not handles(Problem(wide, L2()))
    assert handles(Problem(c, GroupNorm([[0, 1], [2]])))
    assert handles(Problem(c, GroupNorm([[0, 1], [2]], l2=1.0)))


def test_scores_that_meet_the_start_exactly():
    X = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    problem = Problem(binary(as_rows(X), np.array([1, -1, 1, -1], np.int8), np.ones(1)), GaussianPrior(1.0, 1.0))
    solution = solve(problem, InteriorPoint(), tol=1e-7, max_passes=50)
    assert solution.converged, solution.certificate


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return Problem(binary(as_rows(X, bias=1.0), np.where(y, 1, -1).astype(np.int8), np.ones(1)), L2())


def test_bounds_that_were_proved_are_kept_where_further_steps_are_noise():
    problem = cancer()
    solution = solve(problem, InteriorPoint(), tol=1e-16, max_passes=1000)
    assert solution.stuck and not solution.converged and len(solution.history) < 60
    lower = [record.lower for record in solution.history]
    assert np.all(np.diff(lower) >= 0.0)
    assert solution.certificate.relative_gap < 1e-10
    assert solution.certificate.lower == pytest.approx(max(lower), rel=1e-14)
    assert certify(problem, solution.weights, solution.alpha) == solution.certificate


def test_goes_on_where_dependent_columns_make_the_matrix_singular():
    """Rounding hides the regularizer in the matrix: one column is 1e6 times the others, C is 1e5, columns depend."""
    X, y = make_classification(600, 20, random_state=0)
    X[:, 0] *= 1e4
    rows = as_rows(100.0 * X, bias=1.0)
    problem = Problem(binary(rows, np.where(y, 1, -1).astype(np.int8), np.array([1e5])), L2())
    solution = solve(problem, InteriorPoint(), tol=1e-6, max_passes=100)
    assert solution.converged, solution.certificate


@pytest.mark.parametrize("loss", ["hinge", "squared hinge", "smoothed hinge"])
def test_an_optimum_that_is_small_against_the_budget(loss):
    """Rows that can be told apart: nearly all of the gap is what dual variables near zero leave open."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(20, 40)) * 10.0 ** rng.uniform(-3, 3, size=40)
    problem = Problem(constraints(X, loss, np.array([1e6]), rng), L2())
    solution = solve(problem, InteriorPoint(), tol=1e-7, max_passes=80)
    assert solution.converged and solution.certificate.upper < 0.1, solution.certificate


def test_a_saved_point_brings_the_bound_that_was_kept():
    problem, solver = cancer(), InteriorPoint()
    state = solver.start(problem)
    while not state.stuck:
        state = solver.step(problem, state)
    assert not state.at_best, "the last step was no noise: nothing is tested here"
    again = solver.restore(problem, solver.save(state, True))
    assert np.array_equal(again.alpha, state.alpha) and np.array_equal(again.w, state.w)
    assert again.lower == pytest.approx(state.lower, rel=1e-14)
    assert again.rows.alpha is not again.alpha and np.array_equal(again.rows.alpha, state.rows.alpha)


def test_the_warning_at_the_limit_of_precision_does_not_ask_for_more_passes():
    X, y = load_breast_cancer(return_X_y=True)
    model = LinearSVC(tol=1e-16, solver="interior_point", random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"limit of double precision, .*more passes would not help") as caught:
        model.fit(X, y)
    assert "max_passes" not in str(caught[0].message)
    assert model.certify(X, y).lower == pytest.approx(max(r.lower for r in model.history_), rel=1e-12)
    with pytest.warns(ConvergenceWarning, match="LinearSVC was told to stop"):
        model.fit(X, y, callbacks=[lambda record: record.number == 3])
