"""The one loop: bounds, callbacks, stopping, and what must not change the answer."""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from generators import class_differences, covariance, many_classes, shared_slack, two_classes

import maxmargin as mm
from maxmargin import Certificate, Problem, certify, solve
from maxmargin.checks import check_solver
from maxmargin.constraints import Blocked
from maxmargin.data.arrays import as_rows
from maxmargin.losses import EpsilonInsensitive, SmoothedHinge, SquaredHinge
from maxmargin.models import binary, multiclass, ranking, regression
from maxmargin.regularizers import L2, Bounded, GaussianPrior, GroupNorm
from maxmargin.solvers import DualCoordinate, InteriorPoint, ProximalPoint, choose
from maxmargin.solvers.certificate import lower_bound

D = 6


def _constraints():
    rng = np.random.default_rng(1)
    X, y = two_classes(rng, n=60, d=D)
    rows, one = as_rows(X, bias=1.0), np.ones(1)
    classes, label = many_classes(rng, n=60, d=D, k=4)
    return {
        "binary": binary(rows, y.astype(np.int8), one),
        "binary-squared": binary(rows, y.astype(np.int8), one, loss=SquaredHinge()),
        "binary-smoothed": binary(rows, y.astype(np.int8), one, loss=SmoothedHinge(0.5)),
        "regression": regression(rows, X @ np.arange(D) + rng.normal(size=60), one, loss=EpsilonInsensitive(0.2)),
        "ranking": ranking(as_rows(X[:20]), np.arange(20.0) % 3, np.arange(20) % 2, one),
        "multiclass": multiclass(as_rows(classes, bias=1.0), label, 1.0 - np.eye(4), 0.1 * one),
        "shared": shared_slack(rng, n_examples=30, n_weights=D).constraints,
    }


CONSTRAINTS = _constraints()


def _solver(**settings):
    return DualCoordinate(random_state=0, **settings)


@pytest.fixture(scope="module")
def optima():
    """Both bounds of every optimum, much closer than any test here looks."""
    found = {}
    for name, constraints in CONSTRAINTS.items():
        solution = solve(Problem(constraints, L2()), _solver(), tol=1e-10, max_passes=50_000)
        assert solution.converged, name
        found[name] = solution.certificate
    return found


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_every_record_brackets_the_optimum_and_upper_bounds_never_rise(name, optima):
    history = solve(Problem(CONSTRAINTS[name], L2()), _solver(), tol=1e-6, max_passes=5000).history
    best = optima[name]
    assert len(history) > 2
    for record in history:
        assert record.lower <= best.upper * (1 + 1e-9)
        assert record.upper >= best.lower * (1 - 1e-9)
    assert (np.diff([r.upper for r in history if np.isfinite(r.upper)]) <= 0).all()
    assert (np.diff([r.seconds for r in history]) >= 0).all()
    assert [r.number for r in history] == list(range(1, len(history) + 1))


MAPS = {
    "l2": L2(),
    "bounds": Bounded(0.0),
    "groups": GroupNorm([np.arange(3), np.arange(3, D + 1)], 0.5, l2=1.0),
    "full prior": GaussianPrior(0.3, covariance(np.random.default_rng(2), D + 1)),
}


@pytest.mark.parametrize(
    ("regularizer", "name"), list(zip(MAPS, ["binary", "binary-squared", "regression", "binary-smoothed"], strict=True))
)
def test_weights_and_lower_bound_are_those_of_the_dual_variables_after_every_pass(regularizer, name):
    problem = Problem(CONSTRAINTS[name], MAPS[regularizer])
    solver = _solver(momentum_after=2)
    state = solver.start(problem)
    for _ in range(30):
        state = solver.step(problem, state)
        v = problem.constraints.combine(state.alpha)
        assert np.allclose(state.weights(), problem.regularizer.weights(v), rtol=1e-8, atol=1e-8)
        expected = problem.constraints.linear(state.alpha) - problem.regularizer.conjugate(v)
        assert state.lower == pytest.approx(expected, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("even", [True, False], ids=["l2", "uneven variances"])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_plain_passes_never_lower_the_dual(name, even, rng):
    variances = 10.0 ** rng.uniform(-1.0, 1.0, size=CONSTRAINTS[name].n_weights)
    problem = Problem(CONSTRAINTS[name], L2() if even else GaussianPrior(0.0, variances))
    history = solve(problem, _solver(momentum=False), tol=1e-5, max_passes=2000).history
    lower = np.array([r.lower for r in history])
    assert (np.diff(lower) >= -1e-10 * np.abs(lower[1:])).all()


@pytest.mark.parametrize("regularizer", [L2(), GaussianPrior(1.0, 2.0)], ids=repr)
def test_no_lower_bound_is_reported_below_that_of_no_dual_variables(regularizer, rng):
    X, sign = 100.0 * rng.normal(size=(60, D)), rng.choice(np.array([-1, 1], np.int8), size=60)
    problem = Problem(binary(as_rows(X), sign, np.ones(1)), regularizer)
    trivial = certify(problem, np.ones(D)).lower
    solution = solve(problem, DualCoordinate(0), tol=1e-9, max_passes=1, warm=sign.astype(float))
    assert lower_bound(problem, solution.alpha) < trivial, "nothing is tested here"
    assert solution.history[0].lower == solution.certificate.lower == trivial
    assert certify(problem, solution.weights, solution.alpha) == solution.certificate


@pytest.mark.parametrize(("name", "tol"), list(zip(CONSTRAINTS, [1e-2, 1e-4, 1e-7] * 3, strict=False)))
def test_gap_is_at_most_tol_on_exit_and_certified_from_nothing(name, tol):
    problem = Problem(CONSTRAINTS[name], L2())
    solution = solve(problem, _solver(), tol=tol, max_passes=20_000)
    assert solution.converged
    assert not solution.interrupted
    assert solution.certificate.relative_gap <= tol
    assert certify(problem, solution.weights, solution.alpha) == solution.certificate


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_weak_duality_at_random_points(name, rng):
    constraints = CONSTRAINTS[name]
    n = constraints.n_weights
    regularizers = [L2(), GaussianPrior(rng.normal(size=n), 2.0), Bounded(0.0), GroupNorm([np.arange(n)], 2.0)]
    for regularizer in regularizers:
        for _ in range(25):
            # Weights below their bounds would make the upper bound infinite, and the test empty.
            w = np.abs(rng.normal(size=n)) if isinstance(regularizer, Bounded) else rng.normal(size=n)
            alpha = rng.normal(size=constraints.dual_shape) * 10.0 ** rng.uniform(-2, 1)
            both = certify(Problem(constraints, regularizer), w, alpha)
            assert np.isfinite(both.lower)
            assert np.isfinite(both.upper)
            assert both.lower <= both.upper * (1 + 1e-12)


@pytest.mark.parametrize(
    ("name", "pure"),
    [(name, False) for name in CONSTRAINTS] + [(name, True) for name in CONSTRAINTS if name != "multiclass"],
)
def test_multiples_of_the_best_dual_variables_prove_no_more_than_the_optimum(name, pure):
    """Random points are far from the optimum; here a bound that skips the projection or the scaling exceeds it."""
    constraints = CONSTRAINTS[name]
    regularizer = GroupNorm([np.arange(constraints.n_weights)], 2.0) if pure else L2()
    problem = Problem(constraints, regularizer)
    solver = ProximalPoint(_solver()) if pure else _solver()
    solution = solve(problem, solver, tol=1e-5, max_passes=20_000)
    assert solution.converged
    for factor in (1.0, 1.05, 1.5, 10.0, -1.0):
        both = certify(problem, solution.weights, factor * solution.alpha)
        assert both.lower <= solution.certificate.upper * (1 + 1e-9)


def test_certificate_without_dual_variables_has_the_trivial_lower_bound():
    both = certify(Problem(CONSTRAINTS["binary"], L2()), np.zeros(D + 1))
    assert both.lower == 0.0 and both.upper == pytest.approx(60.0, rel=1e-14)
    assert both.relative_gap == 1.0


def test_certificate_arithmetic():
    assert Certificate(9.0, 10.0).gap == pytest.approx(1.0)
    assert Certificate(9.0, 10.0).relative_gap == pytest.approx(0.1)
    assert Certificate(10.0 + 1e-14, 10.0).relative_gap < 0.0  # bounds that contradict each other are not hidden
    assert Certificate(0.0, 0.0).relative_gap == 0.0
    assert Certificate(1.0, np.inf).relative_gap == np.inf
    assert "inference approximate" in repr(Certificate(1.0, np.inf, exact=False))


def test_examples_inside_the_tube_go_to_sleep_at_once(rng):
    X = rng.normal(size=(30, D))
    target = np.concatenate([rng.uniform(-0.9, 0.9, size=29), [50.0]])
    problem = Problem(regression(as_rows(X), target, np.full(30, 1e-3), loss=EpsilonInsensitive(1.0)), L2())
    solution = solve(problem, _solver(momentum=False), tol=1e-12, max_passes=3)
    assert solution.alpha[-1] == 1e-3
    assert solution.history[-1].active == 0


def test_callback_that_returns_true_ends_the_run_with_a_true_certificate(optima):
    problem, seen = Problem(CONSTRAINTS["binary"], L2()), []
    solution = solve(problem, _solver(), tol=1e-9, callbacks=[seen.append, lambda r: r.number == 3])
    assert seen == solution.history and len(seen) == 3
    assert not solution.converged
    assert solution.certificate == certify(problem, solution.weights, solution.alpha)
    assert solution.certificate.lower <= optima["binary"].upper
    assert solution.certificate.upper >= optima["binary"].lower


def test_callback_that_returns_something_true_but_not_true_does_not_end_the_run():
    solution = solve(Problem(CONSTRAINTS["binary"], L2()), _solver(), tol=1e-6, callbacks=[lambda r: "yes"])
    assert solution.converged


@pytest.mark.parametrize(("name", "at"), list(zip(CONSTRAINTS, [1, 3, 12] * 3, strict=False)))
def test_interrupt_returns_the_best_weights_with_a_true_certificate(name, at, optima):
    def interrupt(record):
        if record.number == at:
            raise KeyboardInterrupt

    problem = Problem(CONSTRAINTS[name], L2())
    solution = solve(problem, _solver(), tol=1e-12, callbacks=[interrupt])
    assert solution.interrupted
    assert not solution.converged
    assert len(solution.history) == at
    assert solution.certificate == certify(problem, solution.weights, solution.alpha)
    assert solution.certificate.lower <= optima[name].upper * (1 + 1e-9)
    assert solution.certificate.upper >= optima[name].lower * (1 - 1e-9)
    assert np.allclose(problem.constraints.feasible(solution.alpha), solution.alpha, rtol=1e-12, atol=1e-15)
    assert solution.certificate.upper <= min(r.upper for r in solution.history)


def test_interrupt_inside_a_pass_leaves_a_true_certificate(monkeypatch, optima):
    problem, calls = Problem(CONSTRAINTS["binary"], L2()), []
    step = DualCoordinate.step

    def interrupted_step(self, problem, state):
        calls.append(None)
        state = step(self, problem, state)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return state

    monkeypatch.setattr(DualCoordinate, "step", interrupted_step)
    solution = solve(problem, _solver(), tol=1e-12)
    assert solution.interrupted
    assert len(solution.history) == 5
    assert solution.certificate == certify(problem, solution.weights, solution.alpha)
    assert solution.certificate.lower <= optima["binary"].upper


@pytest.mark.parametrize(
    "settings",
    [
        {"momentum": False},
        {"momentum_after": 0},
        {"block": 1},
        {"block": 7},
        {"block": 1000},
        {"inner_fraction": 0.05},
        {"max_inner": 0},
        {"max_inner": 3},
    ],
    ids=str,
)
def test_settings_change_the_way_and_not_the_optimum(settings, optima):
    for name, constraints in CONSTRAINTS.items():
        solution = solve(Problem(constraints, L2()), _solver(**settings), tol=1e-7, max_passes=50_000)
        assert solution.converged, name
        assert solution.certificate.upper == pytest.approx(optima[name].upper, rel=2e-7)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_warm_start_from_the_solution_is_done_at_once(name):
    problem = Problem(CONSTRAINTS[name], L2())
    cold = solve(problem, _solver(), tol=1e-6, max_passes=5000)
    warm = solve(problem, _solver(), tol=1e-6, max_passes=5000, warm=cold.alpha)
    assert warm.converged
    assert len(warm.history) < len(cold.history)
    assert len(warm.history) <= 10


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_infeasible_warm_start_is_made_feasible(name, optima, rng):
    constraints = CONSTRAINTS[name]
    warm = 3.0 * rng.normal(size=constraints.dual_shape)
    kept = warm.copy()
    solution = solve(Problem(constraints, L2()), _solver(), tol=1e-7, max_passes=20_000, warm=warm)
    assert solution.converged
    assert solution.certificate.upper == pytest.approx(optima[name].upper, rel=2e-7)
    assert np.array_equal(warm, kept)


def test_check_solver_accepts_the_solvers():
    check_solver(_solver(), Problem(CONSTRAINTS["binary"], L2()))
    pure = Problem(CONSTRAINTS["shared"], GroupNorm([np.arange(D)], 0.5))
    check_solver(ProximalPoint(_solver()), pure)


@pytest.mark.parametrize("scale", [2.0**-20, 2.0**13])
def test_proximal_point_takes_as_many_passes_in_any_units(scale, rng):
    """All prices and strengths times a constant (a power of two: nothing is rounded): the same run."""
    X, y = rng.normal(size=(40, 4)), np.where(rng.random(40) < 0.5, 1, -1).astype(np.int8)
    X[:, 0] += y
    runs = []
    for factor in (1.0, scale):
        problem = Problem(binary(as_rows(X), y, np.array([factor])), GroupNorm([[0, 1], [2, 3]], 4.0 * factor))
        runs.append(solve(problem, ProximalPoint(_solver()), tol=1e-5, max_passes=5000))
    a, b = runs
    assert a.converged
    assert len(a.history) == len(b.history)
    assert b.certificate.upper == pytest.approx(scale * a.certificate.upper, rel=1e-12)
    assert np.allclose(a.weights, b.weights, rtol=1e-9)


class _Boaster(DualCoordinate):
    """Claims more than it has: lower bounds above the optimum and no gap at all."""

    def step(self, problem, state):
        state = super().step(problem, state)
        state.lower += 1e3
        state.estimate = 0.0
        return state


def test_check_solver_catches_false_lower_bounds():
    with pytest.raises(AssertionError, match="lower bound"):
        check_solver(_Boaster(random_state=0), Problem(CONSTRAINTS["binary"], L2()))


def test_false_bounds_of_a_solver_never_end_a_run_as_converged():
    solution = solve(Problem(CONSTRAINTS["binary"], L2()), _Boaster(random_state=0), tol=1e-9, max_passes=5)
    assert not solution.converged
    assert solution.certificate.lower < solution.certificate.upper


def test_choose_takes_proximal_steps_for_a_pure_group_norm():
    pure = Problem(CONSTRAINTS["shared"], GroupNorm([np.arange(D)], 0.5))
    assert isinstance(choose(pure, "dual_coordinate"), ProximalPoint)
    assert isinstance(choose(Problem(CONSTRAINTS["shared"], L2()), "dual_coordinate"), DualCoordinate)
    given = _solver()
    assert choose(pure, given) is given


def test_choose_gives_up_momentum_before_memory_runs_out():
    problem = Problem(CONSTRAINTS["binary"], L2())
    assert choose(problem, "dual_coordinate", memory=60 * 24).momentum
    assert not choose(problem, "dual_coordinate", memory=60 * 24 - 1).momentum
    with pytest.raises(ValueError, match="memory=100 bytes is too little: this problem needs at least 960 bytes"):
        choose(problem, "dual_coordinate", memory=100)
    with pytest.raises(ValueError, match="solver must be one of"):
        choose(problem, "newton")


def test_interior_point_by_name_keeps_to_memory():
    problem = Problem(CONSTRAINTS["binary"], L2())
    with pytest.raises(
        ValueError, match=r"memory=1000 bytes is too little: solver='interior_point' needs [0-9]+ bytes"
    ):
        choose(problem, "interior_point", memory=1000)
    assert isinstance(choose(problem, "interior_point", memory=10**6), InteriorPoint)


def test_constraints_are_described_once():
    X = np.random.default_rng(0).normal(size=(30, 3))
    read = []

    def block(chunk):
        read.append(len(chunk))
        return binary(as_rows(chunk.x), np.where(chunk.ids % 2, 1, -1).astype(np.int8), np.ones(1))

    problem = Problem(Blocked(mm.data.open(X, labels=np.zeros(30), chunk_rows=10), block, 3), L2())
    for name in ("interior_point", "auto"):
        choose(problem, name)
    assert len(read) == 1


def test_constraints_without_steps_for_a_regularizer_say_what_to_do():
    classes = CONSTRAINTS["multiclass"]
    regularizer = GroupNorm([np.arange(classes.n_weights)], 1.0, l2=1.0)
    with pytest.raises(ValueError, match=r"Classes has no compiled steps .* `.explicit\(\)`"):
        solve(Problem(classes, regularizer), _solver())


def test_written_out_classes_have_the_same_optimum(optima):
    classes = CONSTRAINTS["multiclass"]
    written_out = classes.explicit()
    solution = solve(Problem(written_out, L2()), _solver(), tol=1e-8, max_passes=20_000)
    assert solution.certificate.upper == pytest.approx(optima["multiclass"].upper, rel=1e-7)
    alpha = written_out.by_class(solution.alpha)
    assert np.array_equal(written_out.by_rival(alpha), solution.alpha)
    assert certify(Problem(classes, L2()), solution.weights, alpha).relative_gap <= 1e-8


@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_multiclass_with_uneven_costs_agrees_with_cone_solver(bias, rng):
    """An empty row without a bias costs its dearest rival, whatever the weights."""
    X, label = many_classes(rng, n=24, d=3, k=3)
    X[:6] = 0.0
    cost = np.array([[0.0, 1.0, 3.0], [0.5, 0.0, 2.0], [1.0, 0.0, 0.0]])
    budget = rng.uniform(0.1, 2.0, size=24)
    stored = as_rows(sp.csr_matrix(X), bias=bias)
    solution = solve(Problem(multiclass(stored, label, cost, budget), L2()), _solver(), tol=1e-8, max_passes=20_000)
    rows = class_differences(np.hstack([X, np.full((24, 1), bias)]), label, cost)
    optimum = reference.quadratic(*rows, budget)
    assert solution.converged
    assert solution.certificate.upper == pytest.approx(optimum.value, rel=1e-6)


def test_dual_variables_and_weights_of_another_shape_are_refused():
    from maxmargin.solvers import certify

    constraints = binary(as_rows(np.eye(4)), np.array([1, -1, 1, -1], np.int8), np.ones(1))
    with pytest.raises(ValueError, match=r"shape \(4,\), got \(3,\)"):
        solve(Problem(constraints, L2()), DualCoordinate(0), warm=np.zeros(3))
    with pytest.raises(ValueError, match="4 weights"):
        certify(Problem(constraints, L2()), np.zeros(5))


def test_an_empty_row_finds_its_way_back():
    constraints = regression(
        as_rows(np.array([[0.0], [1.0]])), np.array([0.5, 1.0]), np.ones(1), loss=EpsilonInsensitive(1.0)
    )
    solution = solve(Problem(constraints, L2()), DualCoordinate(0), warm=np.ones(2), tol=1e-6, max_passes=50)
    assert solution.converged and not solution.alpha[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("regularizer", [L2(), Bounded(0.0)], ids=["l2", "bounded"])
def test_dense_rows_with_many_zeros_are_swept_as_sparse_ones_with_the_same_result(dtype, regularizer):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(120, 30)) * (rng.random((120, 30)) < 0.2)).astype(dtype)
    y = rng.integers(0, 4, size=120).astype(np.int32)
    dense, sparse = (multiclass(as_rows(x, bias=1.0), y, 1.0 - np.eye(4), np.ones(1)) for x in (X, sp.csr_matrix(X)))
    found = [solve(Problem(c, regularizer), DualCoordinate(random_state=0, block=1), tol=1e-6) for c in (dense, sparse)]
    assert dense.rows.dense and dense._arrays.indices.size == np.count_nonzero(X)
    assert (found[0].weights == found[1].weights).all()
    assert found[0].certificate.upper == found[1].certificate.upper
