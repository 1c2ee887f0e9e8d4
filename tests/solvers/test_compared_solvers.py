"""Solvers that are there to compare with: Frank-Wolfe, subgradient descent, the perceptron."""

import warnings

import numpy as np
import pytest
import reference
from compiled import equals_its_source
from generators import chains
from regularized import REGULARIZED
from sklearn.exceptions import ConvergenceWarning
from user_models import InChunks, Tags, every_rival, labellings, small_chain, small_tags, tagged

from maxmargin import LatentStructuralSVM, Problem, StructuralSVM, certify, load, solve
from maxmargin.checkpoint import CheckpointFolder
from maxmargin.checks import check_solver
from maxmargin.constraints import Searched
from maxmargin.constraints.oracle import oracle_for
from maxmargin.kernels import frank_wolfe as kernels
from maxmargin.models import Bags, Chain
from maxmargin.regularizers import L2, GroupNorm
from maxmargin.solvers import FrankWolfe, Perceptron, Subgradient, choose
from maxmargin.solvers.certificate import lower_bound
from maxmargin.solvers.frank_wolfe import STEPS
from maxmargin.solvers.solve import restored_state, saved_state


def _problem(build=small_chain, budget=0.5, omega=None):
    model, X, Y, answers = build(np.random.default_rng(0))
    problem = Problem(Searched(oracle_for(model, X, Y), np.atleast_1d(budget)), omega or L2())
    return problem, every_rival(model, X, Y, answers, budget)


# Frank-Wolfe


@pytest.mark.parametrize("sampling", ["gap", "uniform"])
@pytest.mark.parametrize("steps", STEPS)
def test_every_kind_of_step_certifies_its_gap(steps, sampling):
    check_solver(FrankWolfe(steps, sampling, random_state=0), _problem()[0], tol=1e-3)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("regularizer", ["bounds", "group+l2", "full", "diagonal"])
def test_no_step_lowers_the_dual_under_any_regularizer(regularizer, steps, rng):
    plain, arrays = _problem(small_tags)
    omega, solver, terms = REGULARIZED[regularizer](rng, plain.n_weights)
    problem = Problem(plain.constraints, omega)
    solution = solve(problem, FrankWolfe(steps, random_state=0), tol=1e-3, max_passes=1000)
    lower = np.array([record.lower for record in solution.history])
    assert (np.diff(lower) >= -1e-6 * np.abs(lower[1:])).all()
    assert solution.converged
    optimum = solver(*arrays, **terms).value
    assert solution.certificate.lower <= optimum * (1 + 1e-6)
    assert solution.certificate.upper >= optimum * (1 - 1e-6)


def test_shares_stay_in_the_budget_and_gaps_are_true():
    """Gaps of all examples at the same weights sum up to primal minus dual."""
    problem, _ = _problem()
    for steps in STEPS:
        solver = FrankWolfe(steps, random_state=0)
        state = solver.start(problem)
        state.goal = 1e-9
        for _ in range(30):
            state = solver.step(problem, state)
        used = np.bincount(state.alpha.example, state.alpha.alpha)
        assert (used <= 0.5 * (1 + 1e-12)).all()
        assert state.lower == pytest.approx(lower_bound(problem, state.alpha), rel=1e-9)
        solver._look(problem, state)
        found = certify(problem, state.weights(), state.alpha)
        assert state.gaps.sum() == pytest.approx(found.gap, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("steps", STEPS)
def test_compiled_steps_equal_their_source(steps):
    problem, _ = _problem()
    solver = FrankWolfe(steps, random_state=0)
    state = solver.start(problem)
    for _ in range(4):
        state = solver.step(problem, state)
    ids = np.array([3, 0, 5])
    arguments = (*state.cache.kernel_arguments(), state.inner.alpha, state.inner.map, ids, STEPS[steps], state.gaps)
    equals_its_source(kernels.visit, *arguments)


def test_examples_with_large_gaps_are_drawn_more_often():
    problem, _ = _problem()
    solver = FrankWolfe(random_state=0)
    state = solver.start(problem)
    assert sorted(int(ids[0]) for ids in solver._draws(problem, state)) == list(range(6))  # no gap is known yet
    state.gaps = np.array([0.0, 1.0, 0.0, 3.0, 0.0, 0.0])
    drawn = [int(ids[0]) for _ in range(200) for ids in solver._draws(problem, state)]
    assert set(drawn) == {1, 3}
    assert drawn.count(3) / len(drawn) == pytest.approx(0.75, abs=0.06)


def test_wrong_kinds_of_steps_are_named():
    with pytest.raises(ValueError, match=r"steps must be one of .*'pairwise'.* got 'pair-wise'"):
        FrankWolfe("pair-wise")
    with pytest.raises(ValueError, match=r"sampling must be one of"):
        FrankWolfe(sampling="gaps")
    with pytest.raises(ValueError, match=r"look_every must be a whole number of at least 1, got 0"):
        FrankWolfe(look_every=0)
    with pytest.raises(ValueError, match=r"batch must be a whole number of at least 1, got 0.5"):
        Subgradient(batch=0.5)


# Subgradient descent


@pytest.mark.parametrize(("build", "batch", "n_jobs"), [(small_chain, 1, 1), (small_tags, 3, 1), (small_chain, 2, 2)])
def test_subgradient_bounds_are_true_and_close_in(build, batch, n_jobs):
    problem, arrays = _problem(build)
    optimum = reference.quadratic(*arrays).value
    solution = solve(problem, Subgradient(batch, random_state=0, n_jobs=n_jobs), tol=2e-2, max_passes=2000)
    assert solution.converged
    for record in solution.history:
        assert record.lower <= optimum * (1 + 1e-6)
        assert record.upper >= optimum * (1 - 1e-6)
    assert solution.certificate.upper <= 1.03 * optimum


def test_subgradient_epochs_leave_feasible_shares_that_give_the_weights(rng):
    budget = rng.uniform(0.1, 2.0, size=6)
    budget[2] = 0.0
    problem, _ = _problem(budget=budget)
    solver = Subgradient(random_state=0)
    state = solver.start(problem)
    for _ in range(7):
        state = solver.step(problem, state)
        shares = state.alpha
        assert (np.bincount(shares.example, shares.alpha, minlength=6) <= budget * (1 + 1e-12)).all()
        totals = problem.searched.totals(shares)
        np.testing.assert_allclose(totals.v, state.map.v, atol=1e-6)  # rows of chains are float32
        assert lower_bound(problem, shares) == pytest.approx(state.lower, rel=1e-6, abs=1e-9)
    assert state.n_constraints < 7 * 5  # answers that were found again are counted once


@pytest.mark.parametrize(
    "solver", [Subgradient(random_state=0), Perceptron(random_state=0), FrankWolfe(random_state=0)]
)
def test_a_saved_run_goes_on_where_it_was(solver, tmp_path):
    problem, _ = _problem()
    state = solver.start(problem)
    for _ in range(5):
        state = solver.step(problem, state)
    with CheckpointFolder(tmp_path, {}) as folder:
        folder.save(saved_state(solver, state, True))
        again = restored_state(problem, solver, folder.load())
    np.testing.assert_allclose(again.weights(), state.weights(), rtol=1e-6, atol=1e-7)
    assert lower_bound(problem, again.alpha) == pytest.approx(lower_bound(problem, state.alpha), rel=1e-9)
    before = state.epochs if hasattr(state, "epochs") else None
    again = solver.step(problem, again)
    assert before is None or again.epochs == before + 1


def test_a_warm_start_of_subgradient_descent_keeps_what_was_proved():
    problem, _ = _problem()
    first = solve(problem, Subgradient(random_state=0), tol=5e-2, max_passes=500)
    state = Subgradient(random_state=0).start(problem, first.alpha)
    assert state.lower == pytest.approx(first.certificate.lower, rel=1e-6)


# Perceptron


def _by_hand(X, Y, model, order):
    """The averaged perceptron; of equal scores the answer with the largest loss wins."""
    w = np.zeros(model.n_weights)
    mean, t = np.zeros(model.n_weights), 0
    for ids in order:
        for i in ids:
            answers = list(labellings(model, X[i]))
            best = max(answers, key=lambda y: (round(w @ _phi(model, X[i], y), 9), model.loss(Y[i], y)))
            w = w + _phi(model, X[i], Y[i]) - _phi(model, X[i], best)
            t += 1
            mean += (w - mean) / t
    return mean


def _phi(model, x, y):
    return np.asarray(model.features(x, y).toarray()).ravel()


def test_perceptron_is_the_textbooks():
    X, Y = chains(np.random.default_rng(3), n=8)
    model = Chain(3, 2)
    problem = Problem(Searched(model.oracle(X, Y), np.ones(1)), L2())
    solution = solve(problem, Perceptron(random_state=5), max_passes=3)
    rng = np.random.default_rng(5)
    order = [rng.permutation(8) for _ in solution.history]
    np.testing.assert_allclose(solution.weights, _by_hand(X, Y, model, order), atol=1e-5)


def test_perceptron_claims_nothing():
    problem, arrays = _problem(budget=5.0)
    solution = solve(problem, Perceptron(random_state=0), max_passes=3)
    assert not solution.converged
    assert solution.certificate.upper == np.inf
    assert solution.certificate.relative_gap == np.inf
    assert all(record.upper == np.inf and record.lower == 0.0 for record in solution.history)
    judged = certify(problem, solution.weights, solution.alpha)  # whoever wants to know can ask
    assert judged.lower == 0.0
    assert judged.upper >= reference.quadratic(*arrays).value * (1 - 1e-6)


def test_perceptron_ends_with_an_epoch_without_mistakes():
    X, Y = tagged(np.random.default_rng(0), noise=0.0)
    svm = StructuralSVM(Tags(), solver="perceptron", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        svm.fit(X, Y)
    assert svm.n_passes_ < 1000
    assert svm.history_[-1].active == 0
    assert svm.certificate_.relative_gap == np.inf


def test_perceptron_scale_of_the_loss_and_of_C_change_nothing():
    X, Y = chains(np.random.default_rng(1), n=8, noise=1.5)
    fits = [
        solve(Problem(Searched(Chain(3, 2, loss=loss).oracle(X, Y), np.array([C])), L2()), Perceptron(0), max_passes=4)
        for loss, C in (("hamming", 1.0), (100.0 * (1.0 - np.eye(3)), 1.0), ("hamming", 1e-3))
    ]
    np.testing.assert_allclose(fits[1].weights, fits[0].weights, atol=1e-9)
    np.testing.assert_allclose(fits[2].weights, 1e-3 * fits[0].weights, atol=1e-9)


# All of them, as users ask for them


@pytest.mark.parametrize("name", ["frank_wolfe", "subgradient", "perceptron"])
def test_estimators_take_them_by_name(name, tmp_path):
    X, Y = chains(np.random.default_rng(0), n=20, longest=5, noise=1.2)
    svm = StructuralSVM(Chain(), C=0.1, solver=name, tol=0.05, max_passes=60, random_state=0)
    if name == "perceptron":
        with pytest.warns(ConvergenceWarning, match=r"max_passes=60 passes, at no certified gap"):
            svm.fit(X, Y)
        assert svm.certificate_.upper == np.inf
    else:
        svm.fit(X, Y)
        assert svm.certificate_.relative_gap <= 0.05
    exact = StructuralSVM(Chain(), C=0.1, random_state=0).fit(X, Y)
    assert svm.certify(X, Y).upper >= exact.certificate_.lower
    assert svm.score(X, Y) >= 2.0 * exact.score(X, Y) - 0.5
    svm.save(tmp_path / "model.maxmargin")
    assert np.array_equal(load(tmp_path / "model.maxmargin").coef_, svm.coef_)
    svm.report(tmp_path / "page.html", X, Y)


@pytest.mark.parametrize("name", ["frank_wolfe", "subgradient", "perceptron"])
def test_what_they_cannot_take_is_said(name):
    problem, _ = _problem()
    with pytest.raises(ValueError, match=f"solver='{name}' cannot keep to a limit of memory; use 'auto'"):
        choose(problem, name, memory=10**9)
    pure = Problem(problem.constraints, GroupNorm([np.arange(problem.n_weights)], 0.3))
    with pytest.raises(ValueError, match=f"which solver='{name}' relies on"):
        choose(pure, name)
    source = InChunks(*chains(np.random.default_rng(0)), n_features=2)
    with pytest.raises(ValueError, match=f"solver='{name}' visits examples one by one, in any order"):
        StructuralSVM(Chain(3, 2), solver=name).fit(source)


def test_a_search_over_bounds_needs_a_solver_that_minimises():
    X, y = [np.array([[1.0], [-1.0]]), np.array([[-2.0]])], [1, 0]
    with pytest.raises(ValueError, match=r"Perceptron\(.*\) does not minimise the bounds of a latent model"):
        LatentStructuralSVM(Bags(), solver="perceptron", random_state=0).fit(X, y)
