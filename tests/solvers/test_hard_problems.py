"""Stiff and badly scaled problems: the interior point takes few passes, whatever labels, losses and regularizers."""

import itertools

import numpy as np
import pytest
import reference
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.constraints import Blocked
from maxmargin.data.arrays import as_rows
from maxmargin.models import binary, multiclass
from maxmargin.problem import Problem
from maxmargin.regularizers import L2, Bounded, GaussianPrior, GroupNorm
from maxmargin.solvers import InteriorPoint, choose, solve
from maxmargin.solvers.certificate import upper_bound
from maxmargin.solvers.solve import _Best, restored_state, saved_state

LOAD = {
    "wine": load_wine,
    "iris": load_iris,
    "cancer": load_breast_cancer,
    "diabetes": load_diabetes,
    "digits": load_digits,
}
REGULARIZERS = ["l2", "prior", "full", "bounded", "boxed", "group and l2", "group"]
BUDGETS = [1e-4, 1e-2, 1.0, 1e2, 1e4, 1e6]
CLASSIFIERS = {
    "crammer_singer": {},
    "hinge": {"multi_class": "ovr"},
    "squared": {"multi_class": "ovr", "loss": "squared_hinge"},
    "smoothed": {"multi_class": "ovr", "loss": "smoothed_hinge"},
}


def regularizer(kind, d):
    groups = [list(range(d // 2)), list(range(d // 2, d))]
    ramp = np.linspace(0.5, 2.0, d)
    return {
        "l2": None,
        "prior": GaussianPrior(0.1, ramp),
        "full": GaussianPrior(0.1, np.diag(ramp) + 0.1),
        "bounded": Bounded(0.0),
        "boxed": Bounded(-0.1, upper=0.2 * ramp),
        "group and l2": GroupNorm(groups, 1.0, l2=0.5),
        "group": GroupNorm(groups),
    }[kind]


def estimator(kind, C, tol, regularizer):
    settings = {"C": C, "tol": tol, "regularizer": regularizer, "max_passes": 60, "random_state": 0}
    if kind == "ranking":
        return mm.RankingSVM(**settings)
    if kind in ("svr", "squared svr"):
        loss = "squared_epsilon_insensitive" if kind == "squared svr" else "epsilon_insensitive"
        return mm.LinearSVR(loss=loss, **settings)
    return mm.LinearSVC(**CLASSIFIERS[kind], **settings)


def pairs():
    """Every estimator with every regularizer and every C, not all three together."""
    kinds = [*CLASSIFIERS, "svr", "squared svr", "ranking"]
    for (i, kind), (j, name) in itertools.product(enumerate(kinds), enumerate(REGULARIZERS)):
        data = "diabetes" if kind in ("svr", "squared svr", "ranking") else ["wine", "iris", "cancer"][(i + j) % 3]
        C = BUDGETS[(i + j) % len(BUDGETS)]
        # Unscaled rows whose multipliers must cancel to 1e-8 of the largest: no method could prove more.
        yield data, kind, name, C, 1e-3 if name == "group" and C > 1.0 else [1e-3, 1e-8][j % 2]


@pytest.mark.parametrize(("data", "kind", "name", "C", "tol"), list(pairs()))
def test_unscaled_data_take_few_passes(data, kind, name, C, tol):
    X, y = LOAD[data](return_X_y=True)
    if kind == "ranking":
        X, y = X[:60], np.round(y[:60] / 50)
    model = estimator(kind, C, tol, regularizer(name, X.shape[1])).fit(X, y)
    assert model.certificate_.relative_gap <= tol, model.certificate_
    assert max(record.number for record in model.history_) <= 60


@pytest.mark.parametrize("C", [1.0, 1e4, 1e6])
def test_classes_that_can_be_told_apart_take_few_visits_however_large_C_is(C):
    X, y = load_digits(return_X_y=True)
    model = mm.LinearSVC(C=C, random_state=0).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-3
    assert model.certify(X, y).relative_gap <= 1e-3
    assert model.history_[-1].oracle_calls <= 120 * len(y)
    newton = mm.LinearSVC(C=C, solver="interior_point", max_passes=60).fit(X, y)
    assert newton.certificate_.relative_gap <= 1e-3


@pytest.mark.parametrize("short", [1e-3, 0.02, 0.2])
def test_weights_that_are_a_little_short_are_stretched_as_far_as_it_pays(short):
    X, _, _ = noisy(1.0)
    y = np.where(X[:, 0] > 0.0, 1, -1)
    problem = Problem(binary(as_rows(X), y.astype(np.int8), np.array([1e6])), L2())
    w = (1.0 - short) * solve(problem, choose(problem), tol=1e-6).weights
    best, start = _Best(), upper_bound(problem, w).total
    best.offer(problem, w)
    best.stretch(problem, w, 1e-3)
    multiples = [upper_bound(problem, s * w).total for s in 1.0 + np.geomspace(1e-4, 0.5, 400)]
    assert best.upper.total <= (1.0 + 1.5 * short) * min(multiples) < start
    assert upper_bound(problem, best.weights) == best.upper


def noisy(scale):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    two = np.sign(X[:, 0] + 0.5 * rng.standard_normal(60))
    return X * scale, two, np.argmax(X + 0.7 * rng.standard_normal(X.shape), axis=1)


@pytest.mark.parametrize("scale", [1e-12, 1e3, 1e4, 1e6, 1e12])
@pytest.mark.parametrize("kind", ["classes", "bounded", "group"])
def test_data_of_any_scale(scale, kind):
    X, two, three = noisy(scale)
    given = {"bounded": Bounded(0.0), "group": GroupNorm([[0, 1], [2]]), "classes": None}[kind]
    model = mm.LinearSVC(regularizer=given, max_passes=60).fit(X, three if kind == "classes" else two)
    assert model.certificate_.relative_gap <= 1e-3


@pytest.mark.parametrize("C", [1e3, 1e4, 1e9])
@pytest.mark.parametrize("groups", [[[0], [1], [2]], [[0, 1], [2]], [[0, 1, 2]]])
def test_pure_group_norms_at_large_C(groups, C):
    X, two, _ = noisy(1.0)
    model = mm.LinearSVC(C=C, regularizer=GroupNorm(groups), tol=1e-6, max_passes=60).fit(X, two)
    assert model.certificate_.relative_gap <= 1e-6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_coordinate_steps_on_rows_whose_squared_norms_float32_cannot_hold(dtype):
    X, _, _ = noisy(1e20)
    y = np.where(X[:, 0] > 0.0, 1, -1)
    model = mm.LinearSVC(solver="dual_coordinate", random_state=0).fit(X.astype(dtype), y)
    assert model.certificate_.relative_gap <= 1e-3


def test_what_double_precision_cannot_decide_is_said_soon():
    X, two, _ = noisy(1e20)
    with pytest.warns(ConvergenceWarning, match="limit of double precision"):
        model = mm.LinearSVC().fit(X, two)
    assert len(model.history_) < 500
    with pytest.warns(ConvergenceWarning, match="limit of double precision"):
        model = mm.LinearSVC(solver="interior_point").fit(X, two)
    assert len(model.history_) < 200


# Against the cone solver


@pytest.mark.parametrize("name", ["l2", "prior", "full", "bounded", "boxed", "group and l2", "group"])
def test_classes_reach_the_optimum_of_the_cone_solver(name):
    rng = np.random.default_rng(4)
    n, d, K = 24, 3, 3
    X = rng.normal(size=(n, d)) * [1.0, 30.0, 0.1]
    y = rng.integers(0, K, n)
    cost, budget = rng.uniform(0.5, 2.0, size=(K, K)), rng.uniform(0.1, 5.0, size=n)
    np.fill_diagonal(cost, 0.0)
    problem = Problem(multiclass(as_rows(X), y, cost, budget), regularizer(name, d * K))
    problem = Problem(problem.constraints, L2() if problem.regularizer is None else problem.regularizer)
    written_out = problem.in_memory.explicit()
    rows, loss = written_out.as_slots(written_out.describe()), written_out.loss
    R = np.stack([rows.scores(e[None])[0] for e in np.eye(d * K)], axis=1).reshape(n, K, -1)
    R = R[np.arange(K) != y[:, None]]
    example, ramp = np.repeat(np.arange(n), K - 1), np.linspace(0.5, 2.0, d * K)
    groups = [list(range(d * K // 2)), list(range(d * K // 2, d * K))]
    expected = {
        "l2": reference.quadratic,
        "prior": lambda *p: reference.quadratic(*p, mean=0.1, covariance=ramp),
        "full": lambda *p: reference.quadratic(*p, mean=0.1, covariance=np.diag(ramp) + 0.1),
        "bounded": lambda *p: reference.quadratic(*p, lower=np.zeros(d * K)),
        "boxed": lambda *p: reference.quadratic(*p, lower=np.full(d * K, -0.1), upper=0.2 * ramp),
        "group and l2": lambda *p: reference.group_norm(*p, groups=groups, strength=1.0, l2=0.5),
        "group": lambda *p: reference.group_norm(*p, groups=groups, strength=1.0),
    }[name](R, loss, example, budget)
    for constraints in (problem.constraints, written_out):
        found = solve(Problem(constraints, problem.regularizer), InteriorPoint(), tol=1e-7, max_passes=60)
        assert found.converged
        assert found.certificate.upper == pytest.approx(expected.value, rel=2e-7)


# Passes first, and the rest of what solvers do


def test_passes_that_crawl_give_way_to_newton_steps():
    X, y = load_wine(return_X_y=True)
    problem = Problem(multiclass(as_rows(X, bias=1.0), y, 1.0 - np.eye(3), np.ones(1)), L2())
    solver = choose(problem, "auto", seed=0, warm=True)
    first, second = (solve(problem, solver, tol=1e-6, max_passes=1000, warm=np.zeros((178, 3))) for _ in range(2))
    assert first.converged and len(first.history) > solver.after
    assert np.array_equal(first.weights, second.weights) and first.certificate == second.certificate


@pytest.mark.parametrize("passes", [3, 40])
def test_a_run_goes_on_from_what_was_saved(passes):
    X, y = load_wine(return_X_y=True)
    problem = Problem(multiclass(as_rows(X, bias=1.0), y, 1.0 - np.eye(3), np.ones(1)), Bounded(-0.5))
    solver = choose(problem, "auto", seed=0, warm=passes > 10)
    state = solver.start(problem)
    for _ in range(passes):
        state.goal = 1e-12
        state = solver.step(problem, state)
    again = restored_state(problem, solver, saved_state(solver, state, True))
    assert again.second_order == state.second_order and np.array_equal(again.alpha, state.alpha)
    again.goal, saved = state.goal, state.lower
    state, again = solver.step(problem, state), solver.step(problem, again)
    assert again.lower >= saved - 1e-12 * abs(saved)
    if again.second_order:  # coordinate passes visit examples in another order
        assert again.lower == pytest.approx(state.lower, rel=1e-9)


def test_classes_and_bounds_in_blocks():
    X, y = load_iris(return_X_y=True)
    cost = 1.0 - np.eye(3)
    source = mm.data.open(X, labels=y, chunk_rows=40)

    def block(chunk):
        return multiclass(as_rows(chunk.x, bias=1.0), y[chunk.ids], cost, np.full(1, 100.0))

    blocked = Problem(Blocked(source, block, 15, columns=(3,)), Bounded(-2.0))
    whole = Problem(multiclass(as_rows(X, bias=1.0), y, cost, np.full(1, 100.0)), Bounded(-2.0))
    parts, together = (solve(p, choose(p, "interior_point"), tol=1e-7, max_passes=60) for p in (blocked, whole))
    assert parts.converged and together.converged
    assert parts.certificate.upper == pytest.approx(together.certificate.upper, rel=1e-7)


def test_weights_come_to_lie_on_their_bounds():
    X, two, _ = noisy(1.0)
    y, budget = two.astype(np.int8), np.ones(1)
    fixed = Bounded([0.0, 0.3, -np.inf], upper=[1e-3, 0.3, np.inf])
    found = solve(Problem(binary(as_rows(X), y, budget), fixed), InteriorPoint(), tol=1e-6)
    assert found.converged and found.weights[:2].tolist() == [1e-3, 0.3]
    sparse = solve(Problem(binary(as_rows(X), y, budget), GroupNorm([[0], [1, 2]], 20.0)), InteriorPoint(), tol=1e-3)
    assert sparse.converged and not sparse.weights[1:].any()
