"""Problems whose constraints are searched for, small enough to write all of them out for an independent cone solver."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from generators import chains
from regularized import REGULARIZED
from user_models import (
    CountingTags,
    ForgetfulTags,
    HalfBlindTags,
    Tags,
    every_rival,
    objective,
    small_chain,
    small_multiclass,
    small_tags,
    tagged,
)

from maxmargin import Problem, certify, solve
from maxmargin.constraints import Cache, Searched
from maxmargin.constraints.oracle import oracle_for
from maxmargin.data.arrays import as_rows
from maxmargin.models import Chain, binary
from maxmargin.problem import Planes
from maxmargin.protocols import OracleError
from maxmargin.regularizers import L2, GroupNorm
from maxmargin.solvers import (
    CuttingPlane,
    DualCoordinate,
    FrankWolfe,
    InteriorPoint,
    OracleAscent,
    ProximalAscent,
    searchers,
)
from maxmargin.solvers.certificate import lower_bound

REFERENCE_ERROR = 1e-7  # what the cone solver and float32 planes leave open, relative to the optimum

SOLVERS = {
    "ascent": OracleAscent(random_state=0),
    "cutting": CuttingPlane(),
    "frank_wolfe": FrankWolfe(random_state=0),
}


COST = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 1.0], [3.0, 1.0, 0.0]])
COST4 = np.array([[0.0, 1.0, 2.0, 1.0], [0.5, 0.0, 1.0, 4.0], [3.0, 1.0, 0.0, 1.0], [1.0, 1.0, 2.0, 0.0]])
CASES = {
    "chain": (small_chain, {}),
    "chain-normalized": (small_chain, {"loss": "normalized_hamming", "bias": True}),
    "chain-table": (small_chain, {"loss": COST, "start": True, "end": True}),
    "chain-forbidden": (small_chain, {"forbidden": True}),
    "chain-forbidden-ends": (small_chain, {"ends": True, "start": True}),
    "chain-slack": (small_chain, {"rescaling": "slack"}),
    "chain-slack-forbidden-ends": (small_chain, {"rescaling": "slack", "forbidden": True, "ends": True}),
    "chain-slack-normalized-forbidden": (
        small_chain,
        {"rescaling": "slack", "loss": "normalized_hamming", "forbidden": True, "end": True},
    ),
    "chain-no-transitions": (small_chain, {"transitions": False, "bias": True}),
    "chain-second-order": (small_chain, {"order": 2}),
    "chain-second-order-forbidden": (small_chain, {"order": 2, "forbidden": True, "bias": True, "start": True}),
    "classes": (small_multiclass, {}),
    "classes-cost": (small_multiclass, {"cost": COST4}),
    "classes-slack": (small_multiclass, {"cost": COST4, "rescaling": "slack"}),
    "tags": (small_tags, {}),
    "tags-slack": (small_tags, {"rescaling": "slack"}),
}


def _case(name, budget=1.0, seed=0):
    build, settings = CASES[name]
    model, X, Y, answers = build(np.random.default_rng([seed, sorted(CASES).index(name)]), **settings)
    constraints = Searched(oracle_for(model, X, Y), np.atleast_1d(budget))
    return constraints, every_rival(model, X, Y, answers, budget)


def _check(solution, problem, arrays, optimum):
    """Converged to the optimum, with bounds that hold all along and shares that are feasible."""
    slack = REFERENCE_ERROR * (1.0 + abs(optimum))
    assert solution.converged
    assert solution.certificate.exact
    assert solution.certificate.upper == pytest.approx(optimum, rel=1e-6, abs=1e-9)
    assert solution.certificate.lower == pytest.approx(optimum, rel=1e-6, abs=1e-9)
    for record in solution.history:
        assert record.lower <= optimum + slack
        assert record.upper >= optimum - slack
    alpha, budget = solution.alpha, arrays[3]
    assert alpha.alpha.min(initial=0.0) >= 0
    used = np.bincount(alpha.example, alpha.alpha, minlength=budget.size)
    assert (used <= budget * (1 + 1e-9)).all()
    by_hand = objective(arrays, problem.regularizer.value, solution.weights)
    assert solution.certificate.upper == pytest.approx(by_hand, rel=1e-6)
    again = certify(problem, solution.weights, Planes(alpha.example, alpha.labels, alpha.alpha))
    assert again.lower == pytest.approx(solution.certificate.lower, rel=1e-9)
    assert again.upper == pytest.approx(solution.certificate.upper, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "solver"),
    [
        *product(CASES, ["ascent", "cutting"]),
        *((name, "frank_wolfe") for name in ("chain", "chain-slack-forbidden-ends", "classes-cost", "tags-slack")),
    ],
)
def test_agrees_with_cone_solver_over_all_rivals(name, solver):
    constraints, arrays = _case(name, budget=0.5)
    problem = Problem(constraints, L2())
    solution = solve(problem, SOLVERS[solver], tol=3e-7, max_passes=3000)
    _check(solution, problem, arrays, reference.quadratic(*arrays).value)


@pytest.mark.parametrize(
    ("name", "regularizer"),
    [("chain", "diagonal"), ("tags", "full"), ("classes-slack", "bounds"), ("chain", "group+l2"), ("tags", "bounds")],
)
def test_agrees_with_cone_solver_under_every_regularizer(name, regularizer, rng):
    constraints, arrays = _case(name, budget=0.5)
    omega, solver, terms = REGULARIZED[regularizer](rng, constraints.n_weights)
    problem = Problem(constraints, omega)
    solution = solve(problem, OracleAscent(random_state=0), tol=3e-7, max_passes=3000)
    _check(solution, problem, arrays, solver(*arrays, **terms).value)


@pytest.mark.parametrize(("name", "solver"), list(zip(["chain", "tags", "chain"], SOLVERS, strict=True)))
def test_budgets_of_examples_some_of_them_zero(name, solver, rng):
    n = _case(name)[0].n_examples
    budget = rng.uniform(0.1, 2.0, size=n)
    budget[[1, 4]] = 0.0
    constraints, arrays = _case(name, budget=budget)
    problem = Problem(constraints, L2())
    solution = solve(problem, SOLVERS[solver], tol=3e-7, max_passes=3000)
    _check(solution, problem, arrays, reference.quadratic(*arrays).value)
    assert not np.isin(solution.alpha.example[solution.alpha.alpha > 0], [1, 4]).any()


@pytest.mark.parametrize("name", ["chain", "chain-slack", "classes-cost", "tags"])
def test_weak_duality_at_random_shares_of_random_answers(name, rng):
    constraints, arrays = _case(name, budget=0.7)
    budget = arrays[3]
    optimum = reference.quadratic(*arrays).value
    model = constraints.oracle.model
    rivals = constraints.oracle.rivals(np.arange(constraints.n_examples), np.zeros(constraints.n_weights))
    for _ in range(20):
        owner = rng.integers(constraints.n_examples, size=5)
        labels = [rivals.labels[i] for i in owner]
        given = Planes(owner, labels, 10.0 ** rng.uniform(-2, 1, size=5))
        shares = constraints.feasible(given)
        used = np.bincount(shares.example, shares.alpha, minlength=budget.size)
        assert (used <= budget * (1 + 1e-12)).all()
        w = rng.normal(size=constraints.n_weights)
        both = certify(Problem(constraints, L2()), w, given)
        assert both.lower <= optimum * (1 + 1e-6) <= both.upper * (1 + 2e-6)
        assert both.upper == pytest.approx(objective(arrays, L2().value, w), rel=1e-6)
        # The same bound, from the rows as they stand in the problem written out.
        v, linear = np.zeros(constraints.n_weights), 0.0
        for i, label, a in zip(shares.example, shares.labels, shares.alpha, strict=True):
            one = every_rival(model, [_input(constraints, i)], [_truth(constraints, i)], lambda x: [label], 1.0)
            v += a * one[0][0]
            linear += a * one[1][0]
        bound = linear - 0.5 * v @ v
        assert lower_bound(Problem(constraints, L2()), given) == pytest.approx(bound, rel=1e-6, abs=1e-6)
        assert both.lower == pytest.approx(max(bound, 0.0), rel=1e-6, abs=1e-6)  # that at α = 0 is always at hand


def _input(constraints, i):
    x = constraints.oracle.X[i]
    return x.toarray() if sp.issparse(x) else x


def _truth(constraints, i):
    oracle = constraints.oracle
    if hasattr(oracle, "Y"):
        return oracle.Y[i]
    if hasattr(oracle, "first_token"):
        return oracle.y[slice(*oracle.first_token[i : i + 2])]
    return oracle.y[i]


def test_dual_variables_of_other_data_are_refused():
    constraints, _ = _case("chain")
    with pytest.raises(ValueError, match="examples up to 9, the data has 6"):
        constraints.feasible(Planes(np.array([9]), [np.array([0])], np.ones(1)))


def test_memory_bound_holds_and_the_optimum_is_still_reached(monkeypatch):
    spilled = []
    spill = Cache.spill
    monkeypatch.setattr(Cache, "spill", lambda *arguments, **more: spilled.append(1) or spill(*arguments, **more))
    X, Y = chains(np.random.default_rng(0), n=30, longest=6, noise=1.5)
    problem = Problem(Searched(Chain(3, 2, bias=True).oracle(X, Y), np.array([5.0])), L2())
    patient = OracleAscent(idle_epochs=5, chunk=8, random_state=0)
    free = solve(problem, patient, tol=1e-4)
    memory = int(0.45 * max(record.bytes for record in free.history))
    bounded = solve(problem, replace(patient, memory=memory), tol=1e-4)
    assert spilled  # dropping idle planes alone would not have been enough
    assert bounded.converged
    assert max(record.bytes for record in bounded.history) <= memory
    # Both certificates are true, so they overlap; both are tight, so they agree.
    assert bounded.certificate.lower <= free.certificate.upper
    assert free.certificate.lower <= bounded.certificate.upper
    again = certify(problem, bounded.weights, bounded.alpha)
    assert again.lower == pytest.approx(bounded.certificate.lower, rel=1e-9)


def test_memory_for_less_than_a_plane_per_example_is_refused():
    constraints, _ = _case("chain")
    with pytest.raises(MemoryError, match="memory=300 bytes is too little"):
        solve(Problem(constraints, L2()), OracleAscent(random_state=0, memory=300))


@pytest.mark.parametrize(
    ("name", "solver"), [("chain", CuttingPlane(n_jobs=2)), ("tags", OracleAscent(random_state=0, n_jobs=2))]
)
def test_two_searchers_reach_the_same_optimum(name, solver):
    """Threads for the chain, whose search is compiled; processes for the plain model."""
    constraints, arrays = _case(name, budget=0.5)
    assert constraints.oracle.releases_gil == (name == "chain")
    problem = Problem(constraints, L2())
    solution = solve(problem, solver, tol=3e-7, max_passes=3000)
    _check(solution, problem, arrays, reference.quadratic(*arrays).value)
    assert not searchers._workers  # processes and their data are gone


def test_error_of_a_worker_process_names_the_example():
    X, Y = tagged(np.random.default_rng(3))
    X[5] = np.full(3, np.nan)  # of the wrong length: every method fails on it
    problem = Problem(Searched(oracle_for(Tags(), X, Y), np.ones(1)), L2())
    with pytest.raises(OracleError, match="failed on example 5") as caught:
        solve(problem, OracleAscent(random_state=0, n_jobs=2))
    assert caught.value.example == 5


NORM = GroupNorm([np.arange(6), np.arange(6, 9)], 0.3)  # of the weights of tags
PROXIMAL = ProximalAscent(OracleAscent(random_state=0))


def _optimum(regularizer, arrays):
    if regularizer is NORM:
        return reference.group_norm(*arrays, groups=NORM.groups, strength=0.3).value
    return reference.quadratic(*arrays).value


@pytest.mark.parametrize(
    ("solver", "regularizer"), [(OracleAscent(random_state=0), L2()), (CuttingPlane(), L2()), (PROXIMAL, NORM)]
)
def test_approximate_search_claims_no_upper_bound_and_its_lower_bound_is_true(solver, regularizer):
    X, Y = tagged(np.random.default_rng(0))
    model = HalfBlindTags()
    arrays = every_rival(model, X, Y, model.answers, 0.5)
    optimum = _optimum(regularizer, arrays)
    problem = Problem(Searched(oracle_for(model, X, Y), np.array([0.5])), regularizer)
    solution = solve(problem, solver, tol=1e-5, max_passes=3000)
    assert solution.converged
    assert not solution.certificate.exact
    assert solution.certificate.upper == np.inf
    assert solution.certificate.relative_gap == np.inf
    assert 0 < solution.certificate.lower <= optimum * (1 + 1e-6)
    # Some rivals were never seen, so the bound falls short: this case does test something.
    assert solution.certificate.lower < 0.999 * optimum
    assert all(record.lower <= optimum * (1 + 1e-6) for record in solution.history)


@pytest.mark.parametrize("at", [1, 20])
def test_failing_search_hands_over_what_was_reached(at):
    X, Y = tagged(np.random.default_rng(1))
    model = CountingTags(at, ZeroDivisionError("no such answer"))
    problem = Problem(Searched(oracle_for(model, X, Y), np.ones(1)), L2())
    with pytest.raises(OracleError, match=r"most_violated failed on example \d: ZeroDivisionError: no such") as caught:
        solve(problem, OracleAscent(random_state=0, chunk=1), tol=1e-8)
    error = caught.value
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert f"example {error.example}:" in str(error)
    solution = error.solution
    assert not solution.converged
    assert solution.weights.shape == (model.n_weights,)
    assert len(solution.history) == (at - 1) // 8
    arrays = every_rival(model, X, Y, model.answers, 1.0)
    optimum = reference.quadratic(*arrays).value
    assert solution.certificate.lower <= optimum * (1 + 1e-6)
    assert solution.certificate.upper >= optimum * (1 - 1e-6)
    if at > 8:
        assert solution.weights.any()
        assert solution.certificate.lower > 0
    lower = certify(problem, solution.weights, solution.alpha).lower
    assert solution.certificate.lower - 1e-6 <= lower <= optimum * (1 + 1e-6)


@pytest.mark.parametrize(
    ("method", "value", "message"),
    [
        ("loss", np.nan, "loss on example 0 is nan"),
        ("loss", -1.0, "must be finite and not negative"),
        ("features", np.zeros(4), "a vector of 4 entries, the model has 9 weights"),
        ("features", np.full(9, np.inf), "not finite"),
    ],
)
def test_values_that_no_model_may_give_are_refused(method, value, message):
    X, Y = tagged(np.random.default_rng(1))
    model = Tags()
    oracle = oracle_for(model, X, Y)
    setattr(model, method, lambda *a: value)
    with pytest.raises(OracleError, match=message) as caught:
        oracle.planes(np.array([0]), [Y[1]])
    assert caught.value.example == 0


def test_search_that_forgets_the_loss_is_caught():
    X, Y = tagged(np.random.default_rng(2))
    problem = Problem(Searched(oracle_for(ForgetfulTags(), X, Y), np.ones(1)), L2())
    with pytest.raises(OracleError, match="contradicts itself") as caught:
        solve(problem, OracleAscent(random_state=0), tol=1e-6)
    assert "check_model" in str(caught.value)
    assert f"example {caught.value.example}" in str(caught.value)


@pytest.mark.parametrize(
    ("at", "solver", "regularizer"),
    [(1, OracleAscent(), L2()), (12, CuttingPlane(), L2()), (40, OracleAscent(), L2()), (28, PROXIMAL, NORM)],
)
def test_interrupted_search_returns_the_best_so_far(at, solver, regularizer):
    X, Y = tagged(np.random.default_rng(1))
    model = CountingTags(at, KeyboardInterrupt())
    problem = Problem(Searched(oracle_for(model, X, Y), np.ones(1)), regularizer)
    solution = solve(problem, solver, tol=1e-8)
    assert solution.interrupted
    assert not solution.converged
    # The proximal term is first measured by a search for each example, which is no part of a pass.
    assert len(solution.history) == (at - 1) // 8 - (solver is PROXIMAL)
    arrays = every_rival(model, X, Y, model.answers, 1.0)
    assert solution.certificate.lower <= _optimum(regularizer, arrays) * (1 + 1e-6)
    by_hand = objective(arrays, regularizer.value, solution.weights)
    assert solution.certificate.upper == pytest.approx(by_hand, rel=1e-6)


@pytest.mark.parametrize(("name", "solver"), list(zip(["chain", "tags", "chain"], SOLVERS, strict=True)))
def test_same_seed_gives_the_same_bits(name, solver):
    runs = [solve(Problem(_case(name)[0], L2()), SOLVERS[solver], tol=1e-5) for _ in range(2)]
    assert np.array_equal(runs[0].weights, runs[1].weights)
    assert np.array_equal(runs[0].alpha.alpha, runs[1].alpha.alpha)
    assert runs[0].certificate == runs[1].certificate
    assert [r.lower for r in runs[0].history] == [r.lower for r in runs[1].history]


def test_dense_and_sparse_inputs_are_the_same_problem():
    model, X, y, _ = small_multiclass(np.random.default_rng(0))
    found = [
        solve(Problem(Searched(oracle_for(model, x, y), np.ones(1)), L2()), OracleAscent(random_state=0), tol=1e-6)
        for x in (X, sp.csr_matrix(X))
    ]
    np.testing.assert_allclose(found[0].weights, found[1].weights, rtol=1e-6, atol=1e-9)


def test_history_counts_searches_planes_and_bytes():
    X, Y = tagged(np.random.default_rng(1))
    model = CountingTags()
    problem = Problem(Searched(oracle_for(model, X, Y), np.ones(1)), L2())
    calls = []
    solution = solve(problem, OracleAscent(random_state=0), tol=1e-4, callbacks=[lambda r: calls.append(model.calls)])
    assert [record.oracle_calls for record in solution.history] == calls
    assert [record.number for record in solution.history] == list(range(1, len(calls) + 1))
    for record in solution.history:
        assert record.cache_size > 0
        assert record.bytes > 8 * record.cache_size


def test_constant_loss_zero_ends_at_zero_weights():
    """Where no answer costs anything there is nothing to learn, and that is proved."""
    X, Y = [np.eye(2)[:1]] * 3, [[0], [1], [0]]
    model = Chain(2, 2, loss=np.zeros((2, 2)))
    solution = solve(Problem(Searched(model.oracle(X, Y), np.ones(1)), L2()), OracleAscent(random_state=0))
    assert solution.converged
    assert not solution.weights.any()
    assert solution.certificate.upper == 0.0


def test_solvers_of_the_other_kind_say_which_to_use(rng):
    open_problem = Problem(_case("chain")[0], L2())
    closed = Problem(binary(as_rows(rng.normal(size=(4, 2))), np.array([1, -1, 1, -1], np.int8), np.ones(1)), L2())
    for solver in (DualCoordinate(), InteriorPoint()):
        with pytest.raises(ValueError, match=r"held in 'memory', here .* 'oracle'"):
            solve(open_problem, solver)
    for solver in (OracleAscent(), CuttingPlane()):
        with pytest.raises(ValueError, match=r"held in 'oracle', here .* 'memory'"):
            solve(closed, solver)


@pytest.mark.parametrize("budget", [np.ones(4), np.ones((6, 1)), -np.ones(1), np.array([np.nan])])
def test_budgets_that_do_not_fit_are_refused(budget):
    oracle = _case("chain")[0].oracle
    with pytest.raises(ValueError, match="Searched: budget"):
        Searched(oracle, budget)


def test_rows_of_real_numbers_keep_their_precision():
    """Rounded to float32 the planes of a search and of the cache would be others, and large C shows the difference."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(3, 40)) for _ in range(20)]
    Y = [rng.integers(0, 3, size=3) for _ in range(20)]
    problem = Problem(Searched(Chain(3, 40).oracle(X, Y), np.array([1e4])), L2())
    solution = solve(problem, OracleAscent(random_state=0), tol=1e-4, max_passes=100)
    assert solution.converged
    slack = sum(max(0.0, _worst(Chain(3, 40), x, y, solution.weights)) for x, y in zip(X, Y, strict=True))
    objective = 0.5 * solution.weights @ solution.weights + 1e4 * slack
    assert objective <= solution.certificate.upper <= objective * (1 + 1e-6)


def _worst(model, x, y, w):
    rival = model.most_violated(x, y, w)
    return model.loss(y, rival) - float(((model.features(x, y) - model.features(x, rival)) @ w)[0])


def test_shares_of_examples_without_weight_count_for_nothing():
    """Dual variables of one problem, asked what they prove of another in which most examples weigh nothing."""
    X, Y = chains(np.random.default_rng(0), n=8)
    oracle = Chain(3, 2).oracle(X, Y)
    solution = solve(Problem(Searched(oracle, np.ones(1)), L2()), OracleAscent(random_state=0), tol=1e-5)
    budget = np.zeros(8)
    budget[0] = 1.0
    alone = Problem(Searched(oracle, budget), L2())
    optimum = solve(alone, OracleAscent(random_state=0), tol=1e-6).certificate
    assert certify(alone, solution.weights, solution.alpha).lower <= optimum.upper
    warm = solve(alone, OracleAscent(random_state=0), tol=1e-6, warm=solution.alpha).certificate
    assert warm.lower <= optimum.upper * (1 + 1e-9)
    assert warm.upper >= optimum.lower * (1 - 1e-9)
