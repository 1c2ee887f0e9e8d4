"""Sums over all pairs of large groups, from sorted scores, beside the pairs written down one by one."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from compiled import equals_its_source

from maxmargin import Problem, RankingSVM, certify, load
from maxmargin.data.arrays import as_rows
from maxmargin.kernels import sorted_pairs as kernels
from maxmargin.models import ranking
from maxmargin.models.ranking import sorted_ranking
from maxmargin.regularizers import L2, Bounded, GaussianPrior
from maxmargin.solvers import SmoothedNewton, choose, solve

BY_SORTING = {"solver": "newton", "tol": 1e-7}
BY_PAIRS = {"solver": "dual_coordinate", "tol": 1e-7, "max_passes": 50_000, "random_state": 0}


def problem(rng, *, grades=4, n=60):
    """Ties of scores and of grades, groups of one row and of one grade among others."""
    X = np.round(rng.normal(size=(n, 3)), 1)
    y = rng.integers(0, grades, n).astype(float) if grades else X @ [1.0, -1.0, 0.5] + rng.normal(size=n)
    group = rng.integers(0, 5, n)
    group[:1], y[group == 1] = 99, 1.0
    return X, y, group


def with_pairs(X, y, group, C):
    pairs = [(a, b) for a in range(len(y)) for b in range(len(y)) if group[a] == group[b] and y[a] > y[b]]
    return np.array(pairs), sorted_ranking(as_rows(X), y, group, C)


@pytest.mark.parametrize("grades", [2, 4, 0], ids=["two grades", "four", "all different"])
def test_loss_and_dual_sums_are_those_of_the_listed_pairs(rng, grades):
    X, y, group = problem(rng, grades=grades)
    pairs, constraints = with_pairs(X, y, group, 0.7)
    difference = X[pairs[:, 0]] - X[pairs[:, 1]]
    for scale in (0.0, 0.1, 1.0, 100.0):
        w = scale * np.round(rng.normal(size=3), 1)
        total, _, rounding = constraints.evaluate(w)
        assert total == pytest.approx(0.7 * np.maximum(0.0, 1.0 - difference @ w).sum(), rel=1e-10, abs=1e-9)
        assert rounding < 1e-10 * (1.0 + total)
        for width in (1e-3, 0.3, 2.0, 50.0):
            share = 0.7 * np.clip((1.0 - difference @ w) / width, 0.0, 1.0)
            found = constraints.totals(np.append(w, width))
            assert found.linear == pytest.approx(share.sum(), rel=1e-7)
            assert np.allclose(found.v, share @ difference, atol=1e-7 * share.sum())
            rows = np.bincount(pairs[:, 0], share, len(y)) - np.bincount(pairs[:, 1], share, len(y))
            assert np.allclose(constraints.coefficients(np.append(w, width)), rows, atol=1e-7)


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
def test_curvature_is_that_of_the_pairs_on_the_parabola(rng, store):
    X, y, group = problem(rng)
    pairs, constraints = with_pairs(store(X), y, group, 1.0)
    w = rng.normal(size=3)
    difference = X[pairs[:, 0]] - X[pairs[:, 1]]
    missing = 1.0 - difference @ w
    scores = constraints.scores(w, 0.8)
    inside = difference[(missing > 0.0) & (missing < 0.8)]
    assert len(inside) > 10
    assert np.allclose(constraints.curvature(scores, 0.8, constraints.shares(scores, 0.8).degree), inside.T @ inside)


def test_bounds_are_true_at_random_points(rng):
    X, y, group = problem(rng)
    constraints = sorted_ranking(as_rows(X), y, group, 0.1)
    optimum = RankingSVM(C=0.1, **BY_PAIRS).fit(X, y, groups=group).certificate_
    for _ in range(100):
        u, w = rng.normal(size=(2, 3)) * 10.0 ** rng.uniform(-3, 2)
        found = certify(Problem(constraints, L2()), w, np.append(u, 10.0 ** rng.uniform(-4, 2)))
        assert found.lower <= optimum.upper
        assert found.upper >= optimum.lower
    assert certify(Problem(constraints, L2()), w, np.zeros(4)).lower == 0.0
    with pytest.raises(ValueError, match="finite"):
        constraints.feasible(np.full(4, np.nan))


def test_upper_bound_allows_for_the_grid_of_scores(rng):
    """Scores of 1e12 leave few digits for margins of one; a feature of 1e25 that all rows share leaves none."""
    X, y, group = problem(rng)
    _check_upper_bound(X, y, group, 1e12 * rng.normal(size=3))
    _check_upper_bound(np.c_[X, np.full(len(X), 1e25)], y, group, rng.normal(size=4))


def _check_upper_bound(X, y, group, w):
    pairs, constraints = with_pairs(X, y, group, 1.0)
    exact = [sum(Fraction(a) * Fraction(b) for a, b in zip(x.tolist(), w.tolist(), strict=True)) for x in X]
    assert sum(constraints.evaluate(w)) >= sum(max(Fraction(0), 1 - (exact[a] - exact[b])) for a, b in pairs)


def test_dual_sums_are_as_exact_as_is_said(rng):
    """The shares that scores on the grid define, in exact arithmetic."""
    X, y, group = problem(rng, n=25)
    X *= 10.0 ** rng.integers(-5, 6, X.shape)
    pairs, constraints = with_pairs(X, y, group, 0.3)
    C = Fraction(0.3)
    for _ in range(10):
        u, width = rng.normal(size=3) * 10.0 ** rng.uniform(-6, 1), 10.0 ** rng.uniform(-4, 1)
        scores = constraints.scores(u, width)
        one, steps = scores.whole(1.0), scores.whole(width)
        q = [int(value) for value in scores.q]
        share = [C * Fraction(min(max(one - q[a] + q[b], 0), steps), steps) for a, b in pairs]
        linear, v, linear_error, v_error = constraints.totals(np.append(u, width))
        assert abs(Fraction(linear) - sum(share)) <= Fraction(linear_error)
        assert linear_error <= 1e-13 * linear
        for k in range(3):
            exact = sum(s * (Fraction(X[a, k]) - Fraction(X[b, k])) for s, (a, b) in zip(share, pairs, strict=True))
            assert abs(Fraction(v[k]) - exact) <= Fraction(v_error[k])


def test_dual_sums_of_a_row_that_wins_as_much_as_it_loses(rng):
    """Nearly nothing is left of its shares; that is no rounding error of what they were."""
    X = np.zeros((41, 2))
    X[20, 1] = 1.0
    for _ in range(20):
        X[:20, 0] = rng.normal(size=20)
        X[:20:-1, 0], X[20, 0] = -X[:20, 0], 1e-9 * rng.normal()
        constraints = sorted_ranking(as_rows(X), np.arange(41.0), np.zeros(41), 1.0)
        width = 7.0 + rng.random()
        scores = constraints.scores(np.array([1.0, 0.0]), width)
        one, steps = scores.whole(1.0), scores.whole(width)
        q = [int(value) for value in scores.q]

        def share(a, b, q=q, one=one, steps=steps):
            return Fraction(min(max(one - q[a] + q[b], 0), steps), steps)

        exact = sum(share(20, b) for b in range(20)) - sum(share(a, 20) for a in range(21, 41))
        found = constraints.totals(np.array([1.0, 0.0, width]))
        assert abs(Fraction(found.v[1]) - exact) <= Fraction(found.v_error[1]) < 1e-12


REGULARIZERS = {
    "l2": None,
    "diagonal": GaussianPrior(np.array([1.0, 0.0, -1.0]), np.array([0.1, 1.0, 10.0])),
    "full": GaussianPrior(0.5, np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 1.0]])),
}


@pytest.mark.parametrize("name", REGULARIZERS)
@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0])
def test_same_optimum_as_with_pairs_written_down(rng, name, C):
    X, y, group = problem(rng)
    a = RankingSVM(C=C, regularizer=REGULARIZERS[name], **BY_SORTING).fit(X, y, groups=group)
    b = RankingSVM(C=C, regularizer=REGULARIZERS[name], **BY_PAIRS).fit(X, y, groups=group)
    assert a.certificate_.relative_gap <= 1e-7
    assert a.certificate_.upper == pytest.approx(b.certificate_.upper, rel=3e-7)
    assert np.allclose(a.coef_, b.coef_, atol=1e-2)
    if name == "l2":
        assert np.allclose(a.dual_coef_[0] @ X, a.coef_, atol=1e-2)
    again = a.certify(X, y, groups=group)
    assert (again.lower, again.upper) == (a.certificate_.lower, a.certificate_.upper)


def test_separable_and_equal_rows(rng):
    X = rng.normal(size=(80, 3))
    y = (X @ [1.0, 2.0, 0.0] > 0.0).astype(int)
    a, b = (RankingSVM(C=10.0, **how).fit(X, y) for how in (BY_SORTING, BY_PAIRS))
    assert a.certificate_.upper == pytest.approx(b.certificate_.upper, rel=1e-6)
    equal = RankingSVM(C=2.0, **BY_SORTING).fit(np.ones((80, 3)), y)
    assert equal.certificate_.lower == pytest.approx(2.0 * (y == 0).sum() * (y == 1).sum())


def test_large_groups_are_sorted_by_themselves(rng, tmp_path):
    X = rng.normal(size=(1000, 4))
    y = np.digitize(X @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=1000), [-1.0, 0.0, 1.0])
    ranker = RankingSVM(C=1e-3).fit(X, y)
    assert ranker._alpha.shape == (5,)  # no dual variable for every pair
    assert ranker.certificate_.relative_gap <= 1e-3
    ranker.save(tmp_path / "ranker")
    again = load(tmp_path / "ranker")
    assert again.certify(X, y).upper == ranker.certificate_.upper
    warm = again.set_params(warm_start=True, C=2e-3).fit(X, y)
    assert warm.certificate_.relative_gap <= 1e-3
    pairs = RankingSVM(C=1e-3, memory=100_000_000, loss="smoothed_hinge").fit(X, y)
    assert pairs._alpha.size > 100_000


def test_what_newton_steps_cannot_do_is_said(rng):
    X, y, group = problem(rng)
    for settings in ({"loss": "squared_hinge"}, {"regularizer": Bounded(lower=0.0)}):
        with pytest.raises(ValueError, match="solver='newton' takes loss='hinge'"):
            RankingSVM(solver="newton", **settings).fit(X, y, groups=group)
    with pytest.raises(ValueError, match="l2 and Gaussian priors"):
        solve(Problem(sorted_ranking(as_rows(X), y, group, 1.0), Bounded(lower=0.0)), SmoothedNewton())
    with pytest.raises(ValueError, match="'dual_coordinate'"):
        choose(Problem(ranking(as_rows(X), y, group, np.ones(1)), L2()), "newton")


def test_kernels_equal_their_source(rng):
    X, y, group = problem(rng, n=30)
    constraints = sorted_ranking(as_rows(X), y, group, 1.0)
    scores = constraints.scores(np.ones(3))
    order, start, rank, q = constraints._by_score(scores)
    plus, minus, degree = np.zeros((3, 30), np.int64)
    one = scores.whole(1.0)
    _, found = equals_its_source(kernels.hinge_sums, order, start, rank, q, one, plus, minus, degree)
    equals_its_source(
        kernels.curvature, as_rows(X).arrays, order, start, rank, q, one, one, found[-1], np.zeros((3, 3))
    )
