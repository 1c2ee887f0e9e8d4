"""Bounds of objectives with latent variables: what every chooser must keep to, and what each one promises besides.

The guarantees are those of majorization and minimization: bounds lie above F, their values never rise, and the gaps
they leave add up to no more than the objective has fallen.
"""

import copy
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
from compiled import equals_its_source
from hypothesis import given, settings, strategies as st
from latent_models import Table, UnlistedTable, another, by_hand, losses_by_hand, objective_of, tables
from scipy.stats import chisquare

from maxmargin import solve
from maxmargin.kernels import vectors, walks
from maxmargin.latent import (
    CCCP,
    Biased,
    Coherence,
    MaximumEntropy,
    MultiFold,
    RandomSubset,
    RandomWalk,
    SearchState,
    Settings,
    minimise,
    value,
)
from maxmargin.latent.biased import within_budget
from maxmargin.latent.gmme import entropic_rate, expected_regret, largest
from maxmargin.protocols import OracleError
from maxmargin.solvers import OracleAscent

C = 0.7


def low_values(i, z, w):
    return -float(z)


LISTED = {
    "cccp": CCCP(),
    "walk": RandomWalk(5),
    "subset": RandomSubset(0.3),
    "biased": Biased(low_values),
    "folds": MultiFold(3),
    "leave-one-out": MultiFold(None),
    "gmme": MaximumEntropy(),
}
CASES = [(name, True) for name in LISTED] + [(name, False) for name in ("cccp", "walk", "subset", "biased")]


class Watched:
    """A chooser, and all that it was asked and has answered."""

    def __init__(self, chooser):
        self.chooser = chooser
        self.in_expectation = getattr(chooser, "in_expectation", False)
        self.seen = []

    def choose(self, search_state, rng):
        chosen = self.chooser.choose(search_state, rng)
        self.seen.append((search_state, chosen))
        return chosen


def ascent(problem, weights=None):
    return OracleAscent(random_state=0)


def search(chooser, listed, seed, *, eta=0.3, n=10, max_bounds=30, tol=1e-4):
    """A search from random weights; (model, X, Y, weights at the start, what was found)."""
    rng = np.random.default_rng(seed)
    X, Y = tables(rng, n)
    model = Table() if listed else UnlistedTable()
    w0 = 2.0 * rng.normal(size=model.n_weights)
    found = minimise(
        objective_of(model, X, Y, C),
        chooser,
        ascent,
        weights=w0,
        settings=Settings(eta=eta, tol=tol, bound_tol=1e-4, max_bounds=max_bounds),
        rng=np.random.default_rng(seed),
    )
    return model, X, Y, w0, found


@pytest.mark.parametrize(("name", "listed"), CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_bounds_majorize_and_make_progress(name, listed, seed):
    chooser = Watched(LISTED[name])
    eta = 0.3
    model, X, Y, w0, found = search(chooser, listed, seed, eta=eta)
    start = by_hand(model, X, Y, w0, C)
    objective = objective_of(model, X, Y, C)
    rng = np.random.default_rng(seed)
    assert chooser.seen  # at least one bound was chosen by it
    for search_state, chosen in chooser.seen:
        record = found.history[search_state.number - 1]
        w = search_state.weights
        # What is recorded is what brute force finds.
        assert record.objective == pytest.approx(by_hand(model, X, Y, w, C), rel=1e-9)
        assert record.bound == pytest.approx(by_hand(model, X, Y, w, C, search_state.latent), rel=1e-9)
        assert record.gap == search_state.gap == pytest.approx(record.bound - record.objective, abs=1e-9)
        assert search_state.budget == pytest.approx((1.0 - eta) * record.gap)
        # The chosen bound is a bound everywhere, and lies within the budget where it was chosen.
        problem = objective.problem(chosen)
        for v in [w, *rng.normal(size=(5, w.size)) * rng.choice([0.3, 1.0, 10.0], (5, 1))]:
            bound = 0.5 * v @ v + problem.constraints.evaluate(v).total
            assert bound == pytest.approx(by_hand(model, X, Y, v, C, chosen), rel=1e-9)
            assert bound >= by_hand(model, X, Y, v, C) - 1e-9 * bound
        distance = by_hand(model, X, Y, w, C, chosen) - record.objective
        if name == "gmme":
            continue
        assert distance <= search_state.budget + 1e-9 * (1.0 + record.objective)
    bounds, gaps = np.array([(r.bound, r.gap) for r in found.history]).T
    slack = 1e-9 * (1.0 + start)
    if name != "gmme":  # whose bounds make progress in expectation
        assert bounds[0] <= start + slack
        assert (np.diff(bounds) <= slack).all()
        assert all(record.objective <= start + slack for record in found.history)
        for T in range(bounds.size):
            assert eta * gaps[:T].sum() <= start - bounds[T] + slack
    assert (gaps >= 0.0).all()
    assert found.objective == pytest.approx(by_hand(model, X, Y, found.weights, C), rel=1e-9)
    assert found.objective == pytest.approx(min(r.objective for r in found.history), rel=1e-12)
    for record in found.history:  # the minimum of a bound lies above its own lower bound
        assert record.lower <= record.bound + slack


@pytest.mark.parametrize("name", [name for name in LISTED if name != "gmme"])
def test_bounds_that_are_hardly_solved_never_rise_either(name):
    class Slow(OracleAscent):
        """It learns little in a pass, and forgets all of it when a new bound comes."""

        def relabel(self, problem, state, ids, rows):
            return self.start(problem, None)

    rng = np.random.default_rng(1)
    X, Y = tables(rng, 12)
    w0 = 2.0 * rng.normal(size=3)
    found = minimise(
        objective_of(Table(), X, Y, C),
        LISTED[name],
        lambda problem, weights: Slow(random_state=0, max_inner=1),
        weights=w0,
        settings=Settings(eta=0.3, tol=1e-6, bound_tol=1e-4, max_bounds=12, max_passes=1),
        rng=rng,
    )
    start = by_hand(Table(), X, Y, w0, C)
    bounds, gaps = np.array([(r.bound, r.gap) for r in found.history]).T
    slack = 1e-9 * start
    assert bounds[0] <= start + slack
    assert (np.diff(bounds) <= slack).all()
    for T in range(bounds.size):
        assert 0.3 * gaps[:T].sum() <= start - bounds[T] + slack
    assert found.objective == pytest.approx(by_hand(Table(), X, Y, found.weights, C), rel=1e-9)
    assert not found.converged or found.certificate.relative_gap <= 1e-3


@pytest.mark.parametrize(("name", "listed"), CASES)
def test_searches_come_to_rest_at_a_bound_that_touches(name, listed):
    model, X, Y, _, found = search(LISTED[name], listed, 3, max_bounds=300)
    assert found.converged
    assert found.history[-1].gap <= 1e-4 * found.objective
    assert found.certificate.relative_gap <= 1e-4 + 1e-9
    # No weights are better with these latent values: F itself is a minimum of the bound, up to both tolerances.
    assert found.objective >= found.certificate.lower - 1e-4 * found.objective
    assert found.certificate.upper == pytest.approx(by_hand(model, X, Y, found.weights, C, found.latent), rel=1e-3)


@pytest.mark.parametrize(("name", "listed"), CASES)
def test_eta_of_one_is_cccp_bit_for_bit(name, listed):
    *_, found = search(LISTED[name], listed, 5, eta=1.0)
    *_, expected = search(CCCP(), listed, 5, eta=1.0)
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert [r.bound for r in found.history] == [r.bound for r in expected.history]
    assert list(found.latent) == list(expected.latent)


def test_budgets_of_examples_weigh_their_regrets():
    rng = np.random.default_rng(9)
    X, Y = tables(rng)
    budget = rng.uniform(0.0, 2.0, len(X))
    w = rng.normal(size=3)
    objective = objective_of(Table(), X, Y, budget)
    evaluation, latent = objective.evaluate(w), objective.evaluate(-w).best  # the best at −w are the worst at w
    distance = losses_by_hand(Table(), X, Y, w, latent) - losses_by_hand(Table(), X, Y, w)
    assert np.count_nonzero(distance) > 1, "nothing is tested here"
    np.testing.assert_allclose(evaluation.regrets(np.arange(len(X)), latent), budget * distance, rtol=1e-12, atol=1e-12)
    listed, first = evaluation.listed()
    np.testing.assert_allclose(listed[first[:-1] + latent], budget * distance, rtol=1e-12, atol=1e-12)
    assert value(objective, w) == pytest.approx(by_hand(Table(), X, Y, w, budget), rel=1e-12)


# The random walk.


class Regrets:
    """A evaluation made of a table of regrets; nothing is known of weights or data."""

    def __init__(self, regrets, *, listed=True, propose=another):
        self.table = [np.asarray(r, dtype=float) for r in regrets]
        self.best = np.array([int(np.argmin(r)) for r in self.table])
        self._listed, self._propose = listed, propose

    def regrets(self, ids, latent):
        return np.array([self.table[i][int(z)] for i, z in zip(ids.tolist(), latent, strict=True)])

    def listed(self):
        if not self._listed:
            return None
        return np.concatenate(self.table), np.cumsum([0] + [r.size for r in self.table])

    def propose(self, i, z, rng):
        return self._propose(self.table[i].size, int(z), rng)

    def search_state(self, budget, *, latent=None, carries=None, train=None):
        n = len(self.table)
        latent = np.array([r.size - 1 for r in self.table]) if latent is None else latent
        return SearchState(
            objective=SimpleNamespace(n_examples=n, evaluate=lambda w: w),
            latent=latent,
            weights=np.zeros(1),
            evaluation=self,
            regret=self.regrets(np.arange(n), latent),
            gap=2.0 * budget,
            budget=budget,
            number=1,
            carries=np.ones(n, bool) if carries is None else carries,
            train=train,
        )

    def valid(self, budget):
        return [z for z in product(*(range(r.size) for r in self.table)) if self.total(z) <= budget]

    def total(self, z):
        return sum(r[k] for r, k in zip(self.table, z, strict=True))


UNEVEN = [[0.0, 0.5], [0.2, 0.0, 0.9], [0.0, 0.3, 0.1, 1.2], [0.0]]


def uniformity(draw, valid, n):
    """The p-value of the hypothesis that all valid bounds are equally likely."""
    place = {z: p for p, z in enumerate(valid)}
    counts = np.zeros(len(valid))
    for _ in range(n):
        counts[place[tuple(int(z) for z in draw())]] += 1  # a bound that is not valid has no place
    return chisquare(counts).pvalue


def reluctant(size, z, rng):
    """Not symmetric: value 0 is hard to leave."""
    return z if z == 0 and rng.random() < 0.5 else another(size, z, rng)


@pytest.mark.parametrize("budget", [0.55, 1.1])
def test_the_walk_over_listed_values_is_uniform(budget):
    evaluation = Regrets(UNEVEN)
    valid = evaluation.valid(budget)
    assert 3 < len(valid) < 24
    search_state, rng = evaluation.search_state(budget), np.random.default_rng(0)
    assert uniformity(lambda: RandomWalk(25).choose(search_state, rng), valid, 200 * len(valid)) > 1e-3


@pytest.mark.parametrize(("propose", "uniform"), [(another, True), (reluctant, False)])
def test_the_walk_by_proposals_is_uniform_where_proposals_are_symmetric(propose, uniform):
    evaluation = Regrets(UNEVEN, listed=False, propose=propose)
    valid = evaluation.valid(0.8)
    search_state, rng = evaluation.search_state(0.8), np.random.default_rng(1)
    p = uniformity(lambda: RandomWalk(12).choose(search_state, rng), valid, 100 * len(valid))
    assert (p > 1e-3) == uniform
    if not uniform:
        assert p < 1e-9


@pytest.mark.parametrize("seed", [1, 2**62 + 5])
def test_the_compiled_walk_is_the_plain_one(seed):
    regrets, first = Regrets(UNEVEN).listed()
    total, arguments = equals_its_source(walks.walk, regrets, first, np.array([0, 1, 0, 0]), 1.1, 200, seed)
    assert total == pytest.approx(Regrets(UNEVEN).total(arguments[2]), abs=1e-12)


# Biased bounds.


@st.composite
def knapsacks(draw):
    """Gains and regrets that are whole numbers, so that ties abound; each example has a value without regret."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    numbers = st.integers(0, 6)
    gains = [draw(st.lists(numbers, min_size=k, max_size=k)) for k in sizes]
    regrets = []
    for k in sizes:
        r = draw(st.lists(numbers, min_size=k, max_size=k))
        r[draw(st.integers(0, k - 1))] = 0
        regrets.append(r)
    return gains, regrets, draw(st.integers(0, 15))


def check_knapsack(gains, regrets, budget):
    """Within the budget, and at most one example's gain away from the best there is."""
    first = np.cumsum([0] + [len(g) for g in gains])
    chosen = within_budget(
        np.concatenate(gains).astype(float), np.concatenate(regrets).astype(float), first, float(budget)
    )

    def worth(z):
        return sum(g[k] for g, k in zip(gains, z, strict=True))

    def cost(z):
        return sum(r[k] for r, k in zip(regrets, z, strict=True))

    assert cost(chosen) <= budget
    best = max(worth(z) for z in product(*(range(len(g)) for g in gains)) if cost(z) <= budget)
    assert worth(chosen) >= best - max(max(g) - min(g) for g in gains)


@settings(max_examples=150, deadline=None)
@given(knapsacks())
def test_biased_bounds_lose_at_most_one_gain(knapsack):
    check_knapsack(*knapsack)


def test_equal_prices_do_not_add_up_to_a_loss():
    # Every example can go one step or ten along the same line: steps that fit must not bar the way to those that pay.
    check_knapsack([[0, 1, 10]] * 4, [[0, 1, 10]] * 4, 30)
    check_knapsack([[10, 0, 1]] * 4, [[10, 0, 1]] * 4, 25)


def test_a_bias_that_the_budget_allows_is_followed_to_the_end():
    evaluation = Regrets(UNEVEN)
    search_state = evaluation.search_state(10.0)
    assert Biased(low_values).choose(search_state, None).tolist() == [0, 0, 0, 0]
    assert Biased(lambda i, z, w: z).choose(search_state, None).tolist() == [1, 2, 3, 0]


def test_a_bias_by_proposals_climbs_within_the_budget():
    rng = np.random.default_rng(3)
    evaluation = Regrets(UNEVEN, listed=False)
    for budget in (0.25, 0.6, 3.0):
        chosen = Biased(lambda i, z, w: float(z), sweeps=40).choose(evaluation.search_state(budget), rng)
        assert evaluation.total(chosen) <= budget
        assert sum(chosen) >= sum(evaluation.best)
    assert list(chosen) == [1, 2, 3, 0]


@pytest.mark.parametrize(("nonsense", "listed"), [(np.nan, True), (np.inf, False), (-np.inf, True)])
def test_a_bias_that_is_no_number_is_refused(nonsense, listed):
    search_state = Regrets(UNEVEN, listed=listed).search_state(1.0)
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"example 1.*must give"):
        Biased(lambda i, z, w: nonsense if i == 1 else 0.0).choose(search_state, rng)


def test_coherence_counts_neighbours_that_differ():
    bias = Coherence([[0, 1], [1, 2]])
    assert bias(0, (1, 1, 1), None) == 0.0
    assert bias(5, (1, 0, 1), None) == -2.0
    grid = Coherence.grid(2, 3)
    assert grid(0, [0, 0, 0, 1, 1, 1], None) == -3.0
    assert grid(0, [0, 1, 0, 1, 0, 1], None) == -7.0  # all seven neighbours differ
    assert grid(0, np.zeros((2, 3)), None) == 0.0
    each = Coherence([np.array([[0, 1]]), np.empty((0, 2), int)])
    assert each(0, [0, 1], None) == -1.0
    assert each(1, [0, 1], None) == 0.0
    assert Coherence([])(0, [0, 1], None) == 0.0
    with pytest.raises(ValueError, match="counted from 0"):
        Coherence([[-1, 0]])


# Bounds in expectation.


def test_the_uniform_distribution_is_tried_first():
    regrets, first = Regrets(UNEVEN).listed()
    uniform = sum(np.mean(r) for r in UNEVEN)
    assert expected_regret(regrets, first, 0.0) == pytest.approx(uniform)
    assert entropic_rate(regrets, first, uniform * 1.0001) == 0.0
    assert entropic_rate(regrets, first, uniform * 0.9999) > 0.0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.floats(1e-6, 0.999))
def test_the_rate_is_the_feasible_end(seed, share):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, 6)
    table = [r - r.min() for r in (rng.exponential(size=k) * 10.0 ** rng.uniform(-3, 3) for k in sizes)]
    regrets, first = np.concatenate(table), np.cumsum([0, *sizes])
    budget = share * expected_regret(regrets, first, 0.0)
    if budget == 0.0:
        return
    t = entropic_rate(regrets, first, budget)
    assert 0.999 * budget * (1.0 - 1e-9) <= expected_regret(regrets, first, t) <= budget


def test_the_expected_regret_of_draws_is_what_the_budget_allows():
    evaluation = Regrets(UNEVEN)
    rng = np.random.default_rng(4)
    for budget in (0.2, 0.6):
        search_state = evaluation.search_state(budget)
        drawn = np.array([evaluation.total(MaximumEntropy().choose(search_state, rng)) for _ in range(1500)])
        error = drawn.std() / np.sqrt(drawn.size)
        assert abs(drawn.mean() - budget) < 4.5 * error + 0.001 * budget
        assert (drawn > budget).any()  # it may leave the budget, once in a while
    # Each value as often as exp(−t·regret) says.
    t = entropic_rate(*evaluation.listed(), 0.6)
    draws = np.array([MaximumEntropy().choose(evaluation.search_state(0.6), rng) for _ in range(2000)])
    for i, r in enumerate(evaluation.table):
        p = np.exp(-t * r)
        counts = np.bincount(draws[:, i], minlength=r.size)
        assert chisquare(counts, 2000 * p / p.sum()).pvalue > 1e-3 if r.size > 1 else counts[0] == 2000


def test_lists_off_by_rounding_do_not_confuse_the_rate():
    # The best listed value may be a little worse than the best one found otherwise: no rate is feasible then.
    evaluation = Regrets([[0.5, 1e-9], [0.7, 0.9, 2e-9]])
    with np.errstate(all="raise", under="ignore"):
        for seed in range(20):
            chosen = MaximumEntropy().choose(evaluation.search_state(1e-10), np.random.default_rng(seed))
            assert chosen.tolist() == [1, 2]


def test_draws_need_a_list():
    with pytest.raises(ValueError, match="list of all latent values"):
        MaximumEntropy().choose(Regrets(UNEVEN, listed=False).search_state(1.0), np.random.default_rng(0))


# Folds.


def test_folds_without_shares_are_not_trained_again():
    carries = np.array([True, False, False, False, False, True])
    calls = []

    def train(mask):
        calls.append(np.flatnonzero(mask == 0.0).tolist())
        return evaluation  # ``objective.evaluation`` of this search_state hands it on

    evaluation = Regrets([[0.0, 0.5]] * 6)
    MultiFold(None).choose(evaluation.search_state(1.0, carries=carries, train=train), np.random.default_rng(0))
    assert sorted(calls) == [[0], [5]]
    calls.clear()
    MultiFold(3).choose(evaluation.search_state(1.0, carries=carries, train=train), np.random.default_rng(0))
    assert all(carries[fold].any() for fold in calls)
    left_out = np.concatenate(calls)
    assert np.unique(left_out).size == left_out.size
    assert {0, 5} <= set(left_out)


def test_leaving_one_out_is_training_without_it():
    rng = np.random.default_rng(12)
    X, Y = tables(rng, 12, most=2)
    for x, y in zip(X, Y, strict=True):
        x[y][:, 0] += 4.0  # margins are wide: not everybody has a share
    objective = objective_of(Table(), X, Y, 0.2)
    latent = objective.initial(np.random.default_rng(1))
    solution = solve(objective.problem(latent), OracleAscent(random_state=0), tol=1e-9)
    evaluation = objective.evaluate(solution.weights)
    gap = float(evaluation.regrets(np.arange(12), latent).sum())
    carries = np.zeros(12, bool)
    carries[solution.alpha.example[solution.alpha.alpha > 0.0]] = True
    assert 0 < carries.sum() < 12

    def train(mask):
        return solve(objective.problem(latent, mask), OracleAscent(random_state=0), tol=1e-9).weights

    def choose(who):
        regret = evaluation.regrets(np.arange(12), latent)
        search_state = SearchState(
            objective, latent, solution.weights, evaluation, regret, gap, 0.9 * gap, 1, who, train
        )
        return list(MultiFold(None).choose(search_state, np.random.default_rng(0)))

    assert choose(carries) == choose(np.ones(12, bool))
    # An example that weighs nothing is not there.
    mask = np.ones(12)
    mask[3] = 0.0
    others = [i for i in range(12) if i != 3]
    less = objective_of(Table(), [X[i] for i in others], [Y[i] for i in others], 0.2)
    scratch = solve(less.problem([latent[i] for i in others]), OracleAscent(random_state=0), tol=1e-9)
    np.testing.assert_allclose(train(mask), scratch.weights, atol=1e-3)


def test_the_search_trains_folds_to_a_certified_optimum():
    seen = []

    class Curious:
        def choose(self, search_state, rng):
            mask = np.ones(search_state.objective.n_examples)
            mask[:4] = 0.0
            seen.append((search_state.latent, mask, search_state.train(mask)))
            return search_state.touching()

    model, X, Y, _, _ = search(Curious(), True, 4)
    objective = objective_of(model, X, Y, C)
    assert seen
    for latent, mask, w in seen:
        problem = objective.problem(latent, mask)
        best = solve(problem, OracleAscent(random_state=0), tol=1e-7).certificate
        # Folds are solved as well as the bound at hand, of which the first is solved to a gap of 0.03.
        assert 0.5 * w @ w + problem.constraints.evaluate(w).total <= best.upper * 1.032


# What is refused.


def test_a_chooser_that_breaks_the_budget_is_refused():
    class Careless:
        def choose(self, search_state, rng):
            regrets, first = search_state.evaluation.listed()
            return largest(regrets, first)

    with pytest.raises(ValueError, match=r"Careless chose a bound .* budget"):
        search(Careless(), True, 0)


def test_a_model_that_does_not_complete_is_found_out():
    class Lazy(Table):
        def complete(self, x, y, w):
            return int(np.argmin(x[y] @ w))

    rng = np.random.default_rng(0)
    X, Y = tables(rng)
    with pytest.raises(OracleError, match="not the maximiser"):
        minimise(objective_of(Lazy(), X, Y), RandomWalk(), ascent, settings=Settings(eta=0.1), rng=rng)


@pytest.mark.parametrize("eta", [0.0, -0.1, 1.1, np.nan, "much", None])
def test_eta_is_a_share(eta):
    with pytest.raises(ValueError, match="eta must be above 0 and at most 1"):
        Settings(eta=eta)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Settings(tol=0.0), "tol"),
        (lambda: Settings(bound_tol=np.inf), "bound_tol"),
        (lambda: Settings(max_bounds=0), "max_bounds"),
        (lambda: Settings(max_passes=1.5), "max_passes"),
        (lambda: RandomSubset(0.0), "growth"),
        (lambda: MultiFold(1), "folds"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_largest_of_each_segment_is_the_first_of_equal_ones(rng):
    first = np.array([0, 1, 4, 9])
    values = rng.integers(0, 3, 9).astype(float)
    _, (*_, out) = equals_its_source(vectors.largest, values, first, np.empty(3, np.int64))
    assert out.tolist() == [int(np.argmax(values[a:b])) for a, b in pairwise(first)]


class _Saved(list):
    """A checkpoint in memory; ``begun`` is what a search goes on from."""

    def __init__(self, begun=None):
        super().__init__()
        self.begun = begun

    def load(self):
        return self.begun

    def due(self):
        return True

    def save(self, content):
        self.append(copy.deepcopy(content))


class _Draws:
    """Chooses what CCCP does, and writes down the numbers that it drew."""

    def __init__(self):
        self.drawn = []

    def choose(self, search_state, rng):
        self.drawn.append(float(rng.random()))
        return search_state.touching()


def _saved_search(saved, seed):
    rng = np.random.default_rng(3)
    X, Y = tables(rng)
    chooser = _Draws()
    minimise(
        objective_of(Table(), X, Y, C),
        chooser,
        ascent,
        weights=2.0 * rng.normal(size=3),
        settings=Settings(eta=0.3, tol=1e-4, bound_tol=1e-4, max_bounds=6),
        rng=np.random.default_rng(seed),
        checkpoint=saved,
    )
    return chooser.drawn


def test_a_restored_search_draws_what_it_would_have_drawn():
    saved = _Saved()
    drawn = _saved_search(saved, seed=0)
    assert len(drawn) > 1
    between = [content for content in saved if len(content["history"]) == 1 and "under_way" not in content]
    assert _saved_search(_Saved(between[-1]), seed=1)[0] == drawn[1]


def test_a_restored_search_that_was_finishing_asks_its_chooser_no_more():
    saved = _Saved()
    _saved_search(saved, seed=0)
    between = next(content for content in saved if len(content["history"]) == 1)
    assert _saved_search(_Saved(between), seed=0)
    assert not _saved_search(_Saved({**between, "finishing": True}), seed=0)
