"""A pure group norm on problems whose constraints are searched for: proximal steps over the ascent with a cache."""

import numpy as np
import pytest
import reference
from generators import chains, many_classes, partition
from sklearn.exceptions import ConvergenceWarning
from user_models import (
    CountingTags,
    every_rival,
    objective,
    small_chain,
    small_multiclass,
    small_tags,
    tagged,
)

import maxmargin as mm
from maxmargin import Problem, certify, solve
from maxmargin.checks import check_solver
from maxmargin.constraints import Searched
from maxmargin.constraints.oracle import oracle_for
from maxmargin.models import Chain, Multiclass
from maxmargin.problem import Planes
from maxmargin.regularizers import L2, Blocks, GroupNorm
from maxmargin.solvers import CuttingPlane, OracleAscent, ProximalAscent, choose

TIGHT = 1e-7


def _solver(**settings):
    return ProximalAscent(OracleAscent(random_state=0), **settings)


MODELS = {"chain": small_chain, "classes": small_multiclass, "tags": small_tags}


def _case(name, seed=0, budget=1.0, strength=0.3):
    """A problem with random groups, and all of its constraints written out."""
    rng = np.random.default_rng([seed, sorted(MODELS).index(name)])
    model, X, Y, answers = MODELS[name](rng)
    groups = partition(rng, model.n_weights)
    norm = GroupNorm(groups, np.mean(budget) * strength * rng.uniform(0.5, 1.5, len(groups)))
    constraints = Searched(oracle_for(model, X, Y), np.atleast_1d(budget))
    return Problem(constraints, norm), every_rival(model, X, Y, answers, budget)


def _larger(seed=0, n=300, C=0.01):
    """Enough examples for several epochs: classes whose weights form a group each, some of no use."""
    X, y = many_classes(np.random.default_rng(seed), n=n, d=6, k=5)
    groups = np.arange(30).reshape(5, 6).T  # each feature with its weights in all classes
    return Problem(Searched(Multiclass(5, 6).oracle(X, y), np.array([C])), GroupNorm(groups, 0.5))


@pytest.mark.parametrize("strength", [0.05, 0.3, 1.5])
@pytest.mark.parametrize("name", MODELS)
def test_agrees_with_cone_solver_on_the_optimum_and_on_zero_groups(name, strength):
    budget = 1.0
    if strength == 0.3:  # with budgets of their own, and an example that weighs nothing
        n = {"chain": 6, "classes": 12, "tags": 8}[name]
        budget = np.random.default_rng(7).uniform(0.2, 2.0, n) * (np.arange(n) != 1)
    problem, arrays = _case(name, budget=budget, strength=strength)
    norm = problem.regularizer
    optimum = reference.group_norm(*arrays, groups=norm.groups, strength=norm.strength)
    solution = solve(problem, _solver(), tol=TIGHT, max_passes=300)
    assert solution.converged
    assert solution.certificate.upper == pytest.approx(optimum.value, rel=1e-6)
    assert solution.certificate.lower == pytest.approx(optimum.value, rel=1e-6)
    for record in solution.history:
        assert record.lower <= optimum.value * (1 + 1e-6)
        assert record.upper >= optimum.value * (1 - 1e-6)
    size = np.abs(optimum.weights).max()
    assert np.array_equal(norm.norms(solution.weights) > 0.0, norm.norms(optimum.weights) > 1e-5 * size)
    by_hand = objective(arrays, norm.value, solution.weights)
    assert solution.certificate.upper == pytest.approx(by_hand, rel=1e-9)
    alpha = solution.alpha
    again = certify(problem, solution.weights, Planes(alpha.example, alpha.labels, alpha.alpha))
    assert again.lower == pytest.approx(solution.certificate.lower, rel=1e-9)


@pytest.mark.parametrize("scale", [2.0**-20, 2.0**13])
def test_the_first_strength_follows_the_units_of_the_problem(scale):
    """All prices and all strengths times a constant: the same run, but for what Newton steps round."""
    plain, _ = _case("classes", budget=1.0)
    scaled, _ = _case("classes", budget=scale)
    a, b = (solve(problem, _solver(), tol=1e-5) for problem in (plain, scaled))
    assert b.converged
    assert len(a.history) == len(b.history)
    assert b.certificate.upper == pytest.approx(scale * a.certificate.upper, rel=1e-7)
    assert np.allclose(a.weights, b.weights, rtol=1e-4, atol=1e-6)


def test_group_norm_beside_l2():
    rng = np.random.default_rng(3)
    model, X, y, answers = small_multiclass(rng)
    groups, free = [[0, 1, 2], [3, 4, 5]], np.arange(6, 12)
    parts = Blocks([(np.arange(6), GroupNorm(groups, 0.4)), (free, L2())])
    arrays = every_rival(model, X, y, answers, 1.0)
    optimum = reference.group_norm_and_l2(*arrays, groups=groups, strength=0.4, free=free)
    problem = Problem(Searched(model.oracle(X, y), np.ones(1)), parts)
    solution = solve(problem, _solver(), tol=TIGHT)
    assert solution.certificate.upper == pytest.approx(optimum.value, rel=1e-6)
    assert solution.certificate.lower == pytest.approx(optimum.value, rel=1e-6)


def test_conforms():
    check_solver(_solver(), _case("chain")[0])
    check_solver(_solver(l2=1e-3), _case("tags")[0])
    check_solver(_solver(l2=1e3), _case("tags")[0])


def test_agrees_with_the_closed_proximal_point(rng):
    X, y = many_classes(rng, n=60, d=4, k=3)
    groups = [[0, 2], [1], [3]]
    closed = mm.LinearSVC(
        C=0.1, regularizer=GroupNorm(groups, 0.6), fit_intercept=False, tol=TIGHT, max_passes=20_000, random_state=0
    ).fit(X, y)
    flat = [4 * k + np.array(g) for k in range(3) for g in groups]
    searched = mm.StructuralSVM(Multiclass(), C=0.1, regularizer=GroupNorm(flat, 0.6), tol=TIGHT, random_state=0).fit(
        X, y
    )
    assert searched.certificate_.upper == pytest.approx(closed.certificate_.upper, rel=1e-6)
    assert np.array_equal(searched.coef_.reshape(3, 4) == 0.0, closed.coef_ == 0.0)
    assert (closed.coef_ == 0.0).any()
    assert searched.certify(X, y).relative_gap <= TIGHT * (1 + 1e-3)


def test_memory_limits_change_nothing_but_the_path():
    problem = _larger()
    plain = solve(problem, _solver(), tol=1e-3)
    memory = plain.history[-1].bytes // 2
    small = solve(problem, ProximalAscent(OracleAscent(random_state=0, memory=memory)), tol=1e-3)
    assert plain.converged
    assert small.converged
    assert max(r.bytes for r in small.history) <= memory
    assert small.certificate.upper == pytest.approx(plain.certificate.upper, rel=2e-3)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_source_in_chunks_is_the_same_problem(n_jobs):
    X, y = many_classes(np.random.default_rng(1), n=100, d=4, k=3)
    groups = np.arange(12).reshape(3, 4)
    settings = {"C": 0.05, "regularizer": GroupNorm(groups, 0.5), "tol": 1e-5, "random_state": 0, "n_jobs": n_jobs}
    whole = mm.StructuralSVM(Multiclass(), **settings).fit(X, y)
    source = mm.data.open(X, labels=y, chunk_rows=17)
    parts = mm.StructuralSVM(Multiclass(), **settings).fit(source)
    assert parts.certificate_.relative_gap <= 1e-5
    assert parts.certificate_.upper == pytest.approx(whole.certificate_.upper, rel=2e-5)
    assert parts.certify(source).relative_gap <= 1e-5 * (1 + 1e-3)


# Hot starts.


def test_from_the_solution_of_the_same_problem_one_epoch_is_enough():
    problem = _larger()
    cold = solve(problem, _solver(), tol=1e-3)
    hot = solve(problem, _solver(centre=cold.weights), tol=1e-3, warm=cold.alpha)
    assert len(cold.history) > 1
    assert len(hot.history) == 1
    assert hot.converged
    assert np.array_equal(hot.weights, cold.weights)  # exact zeros included


@pytest.mark.parametrize(("centre", "with_shares"), [("zero", True), ("neighbour", False), ("far", True)])
def test_any_start_ends_at_the_optimum(centre, with_shares):
    problem, neighbour = _larger(C=0.01), _larger(C=0.012)
    before = solve(neighbour, _solver(), tol=1e-4)
    first = {"zero": None, "neighbour": before.weights, "far": np.full(problem.n_weights, 30.0)}[centre]
    cold = solve(problem, _solver(), tol=1e-5)
    hot = solve(problem, _solver(centre=first), tol=1e-5, warm=before.alpha if with_shares else None)
    assert hot.converged
    assert hot.certificate.upper == pytest.approx(cold.certificate.upper, rel=2e-5)
    assert centre != "far" or (first == 30.0).all(), "the centre that was given has changed"


@pytest.mark.parametrize("centre", [np.zeros(3), np.zeros((30, 1)), np.full(30, np.nan)])
def test_centre_that_does_not_fit_is_refused(centre):
    with pytest.raises(ValueError, match="centre must be 30 finite numbers"):
        solve(_larger(), _solver(centre=centre))


@pytest.mark.parametrize("l2", [0.0, -1.0, np.nan, np.inf])
def test_strength_of_nothing_is_refused(l2):
    with pytest.raises(ValueError, match="l2 must be a number above 0"):
        ProximalAscent(l2=l2)


def test_every_search_of_an_epoch_counts():
    """One search per example and epoch, apart from the few that show the scale of the problem."""
    X, Y = tagged(np.random.default_rng(1))
    model = CountingTags()
    norm = GroupNorm([np.arange(6), np.arange(6, 9)], 0.3)
    problem = Problem(Searched(oracle_for(model, X, Y), np.ones(1)), norm)
    solution = solve(problem, _solver(), tol=1e-5)
    assert solution.converged
    assert model.calls == solution.history[-1].oracle_calls + len(X)
    given = CountingTags()
    problem = Problem(Searched(oracle_for(given, X, Y), np.ones(1)), norm)
    solution = solve(problem, _solver(l2=0.5), tol=1e-5)
    assert given.calls == solution.history[-1].oracle_calls


# Interrupts and checkpoints.


def _svm(**settings):
    X, Y = chains(np.random.default_rng(5), n=40, longest=5)
    groups = [np.arange(3), np.arange(3, 6), np.arange(6, 15)]
    common = {"C": 0.1, "regularizer": GroupNorm(groups, 0.4), "tol": 1e-6, "random_state": 0}
    return mm.StructuralSVM(Chain(), **common | settings), X, Y


@pytest.mark.parametrize("how", ["interrupt", "passes"])
def test_checkpoint_resumes(how, tmp_path):
    whole, X, Y = _svm()
    whole.fit(X, Y)
    assert whole.n_passes_ > 4

    def stop(record):
        if how == "interrupt" and record.number == 3:
            raise KeyboardInterrupt

    half, _, _ = _svm(max_passes=100 if how == "interrupt" else 3)
    with pytest.warns(ConvergenceWarning):
        half.fit(X, Y, checkpoint=tmp_path, checkpoint_every=0.0, callbacks=[stop])
    rest, _, _ = _svm()
    rest.fit(X, Y, checkpoint=tmp_path)
    assert [r.number for r in rest.history_] == list(range(1, rest.n_passes_ + 1))
    assert [r.upper for r in rest.history_[:3]] == [r.upper for r in half.history_[:3]]
    assert rest.certificate_.relative_gap <= 1e-6
    assert rest.certificate_.upper == pytest.approx(whole.certificate_.upper, rel=2e-6)
    assert rest.n_passes_ <= 2 * whole.n_passes_


def test_restored_state_has_the_bound_the_centre_and_the_weights_of_the_saved_one():
    problem, solver = _larger(), _solver()
    state = solver.start(problem)
    state.goal = 1e-6
    for _ in range(5):
        state = solver.step(problem, state)
    again = solver.restore(problem, solver.save(state))
    assert again.lower == pytest.approx(state.lower, rel=1e-9)
    assert again.l2 == state.l2
    assert np.array_equal(again.centre, state.centre)
    assert np.allclose(again.weights(), state.weights(), rtol=1e-6, atol=1e-9)


# Estimators.


def test_structural_svm_trains_certifies_and_starts_from_where_it_was():
    svm, X, Y = _svm(tol=1e-3, warm_start=True)
    svm.fit(X, Y)
    first = svm.n_passes_
    assert svm.certificate_.relative_gap <= 1e-3
    assert svm.certify(X, Y).relative_gap <= 1e-3 * (1 + 1e-3)
    assert len(svm.predict(X)) == len(X)
    svm.fit(X, Y)
    assert svm.n_passes_ == 1 < first
    svm.set_params(C=0.11).fit(X, Y)
    assert svm.certificate_.relative_gap <= 1e-3


def test_choose_takes_proximal_steps_for_a_pure_norm_only():
    pure = _case("chain")[0]
    centre = np.ones(pure.n_weights)
    chosen = choose(pure, "auto", seed=3, threads=2, memory=10**6, centre=centre)
    assert isinstance(chosen, ProximalAscent)
    assert chosen.inner == OracleAscent(random_state=3, n_jobs=2, memory=10**6)
    assert chosen.centre is centre
    mixed = Problem(pure.constraints, GroupNorm(pure.regularizer.groups, l2=0.1))
    assert isinstance(choose(mixed, "auto", centre=centre), OracleAscent)
    given = _solver()
    assert choose(mixed, given) is given


def test_what_cannot_take_proximal_steps_says_what_can():
    problem = _case("chain")[0]
    with pytest.raises(ValueError, match=r"ProximalAscent.*l2=0\.01"):
        solve(problem, OracleAscent())
    with pytest.raises(ValueError, match=r"l2=0\.01"):
        solve(problem, CuttingPlane())
    with pytest.raises(ValueError, match=r"'cutting_plane' relies on. Use 'auto'"):
        choose(problem, "cutting_plane")
    svm, X, Y = _svm()
    with pytest.raises(ValueError, match=r"l2=0\.01"):
        svm.partial_fit(X, Y)
