"""Every allowance for rounding, one by one, beside fractions: bounds that certificates add up must each cover their own
errors, whichever way the rounding went."""

from contextlib import nullcontext
from fractions import Fraction
from itertools import permutations, product

import exact
import numpy as np
import pytest

from maxmargin.constraints import Searched, SharedSlack, small
from maxmargin.constraints.sums import DualSums
from maxmargin.data.arrays import as_rows
from maxmargin.kernels import vectors
from maxmargin.models import Chain
from maxmargin.models.closed import binary
from maxmargin.problem import Problem, Rivals, RowErrors, TotalLoss, Totals
from maxmargin.regularizers import L2, Bounded, GaussianPrior, GroupNorm
from maxmargin.regularizers.shape import conjugate_error, value_error
from maxmargin.solvers.certificate import certificate_of, dual_bound, upper_bound

D = 4
GROUPS = [[0, 1], [2, 3]]
COVARIANCE = np.array([[2.0, 0.5, 0.0, 0.1], [0.5, 1.0, 0.2, 0.0], [0.0, 0.2, 3.0, 0.3], [0.1, 0.0, 0.3, 0.5]])
MEAN, SPREAD = np.array([0.1, -3.0, 1e-3, 7.0]), np.array([0.3, 1e3, 1e-3, 1.1])
REGULARIZERS = {
    "l2": (L2(), exact.Quadratic(D)),
    "diagonal": (GaussianPrior(MEAN, SPREAD), exact.Quadratic(D, MEAN, SPREAD)),
    "full": (GaussianPrior(MEAN, COVARIANCE), exact.Quadratic(D, MEAN, COVARIANCE)),
    "bounded": (Bounded(-0.3, upper=0.7), exact.Quadratic(D, floor=[-0.3] * D, ceiling=[0.7] * D)),
    "group": (GroupNorm(GROUPS, 0.3, l2=0.1), exact.Groups(GROUPS, 0.3, 0.1)),
}


@pytest.fixture(autouse=True, params=["arrays", "kernels"])
def sums(request):
    """Small problems are summed in array code, all others by kernels: both know their errors."""
    with small.none_is_small() if request.param == "kernels" else nullcontext():
        yield


def spread_out(rng, shape):
    """Numbers of very different sizes, so that every operation rounds."""
    return rng.normal(size=shape) * 10.0 ** rng.integers(-6, 7, shape)


def dot(a, b):
    return exact.dot(exact.fractions(a), exact.fractions(b))


@pytest.mark.parametrize("name", REGULARIZERS)
def test_the_conjugate_is_bounded_wherever_v_may_be(name, rng):
    ours, theirs = REGULARIZERS[name]
    for share in (0.0, 1e-15, 1e-3, 0.5):
        for _ in range(20):
            v = spread_out(rng, D)
            error = share * np.abs(v)
            most = Fraction(ours.conjugate(v)) + Fraction(conjugate_error(ours, v, error))
            for signs in product((-1, 0, 1), repeat=D):
                moved = [Fraction(x) + s * Fraction(e) for x, s, e in zip(v, signs, error, strict=True)]
                assert theirs.conjugate(moved)[0] <= most


@pytest.mark.parametrize("name", REGULARIZERS)
def test_a_dual_bound_holds_for_all_sums_within_their_errors(name, rng):
    ours, theirs = REGULARIZERS[name]
    for share in (0.0, 1e-3, 0.5):
        for _ in range(20):
            v, linear = rng.normal(size=D), float(rng.normal())
            error, linear_error = share * np.abs(v), share * abs(linear)
            found = Fraction(dual_bound(ours, Totals(linear, v, linear_error, error)).value)
            for signs in product((-1, 1), repeat=D):
                moved = [Fraction(x) + s * Fraction(e) for x, s, e in zip(v, signs, error, strict=True)]
                assert found <= Fraction(linear) - Fraction(linear_error) - theirs.conjugate(moved)[0]


def test_a_pure_norm_is_scaled_until_the_farthest_v_is_inside(rng):
    ours, theirs = GroupNorm(GROUPS, 0.3), exact.Groups(GROUPS, 0.3)
    for share in (0.0, 1e-3, 0.5):
        for _ in range(50):
            v = rng.normal(size=D)
            error = share * np.abs(v)
            found = dual_bound(ours, Totals(1.0, v, 0.0, error)).value
            farthest = [Fraction(abs(x)) + Fraction(e) for x, e in zip(v, error, strict=True)]
            assert Fraction(found) <= theirs.scale(farthest)
    v = np.full(4001, 2.0**-27)
    v[0] = 1.0  # squares of the others are lost one by one beside its own
    found = dual_bound(GroupNorm([np.arange(v.size)], 0.5), Totals(1.0, v, 0.0, np.zeros(v.size))).value
    assert Fraction(found) <= exact.Groups([range(v.size)], 0.5).scale(exact.fractions(v))


@pytest.mark.parametrize("name", REGULARIZERS)
def test_values_are_bounded(name, rng):
    ours, theirs = REGULARIZERS[name]
    for _ in range(50):
        w = ours.weights(spread_out(rng, D))
        most = Fraction(ours.value(w)) + Fraction(value_error(ours, w))
        assert theirs.value(exact.fractions(w))[0] <= most


def test_an_upper_bound_counts_what_small_weights_add():
    w = np.full(4001, 2.0**-27)
    w[0] = 1.0  # squares of the others are lost one by one beside its own
    rows = as_rows(np.zeros((1, w.size)))
    problem = Problem(SharedSlack(rows, np.ones(1), np.array([0, 1]), np.ones(1)), L2())
    assert Fraction(certificate_of(0.0, upper_bound(problem, w)).upper) >= 1 + dot(w, w) / 2


def test_what_a_loss_may_be_underrated_by_is_part_of_the_upper_bound():
    problem = Problem(SharedSlack(as_rows(np.ones((1, 2))), np.ones(1), np.array([0, 1]), np.ones(1)), L2())
    found = upper_bound(problem, np.zeros(2), TotalLoss(1.0, 0.25, 0.5))
    assert certificate_of(0.0, found).upper >= 1.75


def test_compensated_sums_know_their_errors(rng):
    for n in (1, 2, 30, 400):
        a, b = spread_out(rng, n), spread_out(rng, n)
        for x, y in ((a, b), (np.concatenate([a, -a, [1.0]]), np.concatenate([b, b, [1e-9]]))):  # all but one cancel
            total, error = vectors.bounded_dot(x, y)
            assert abs(dot(x, y) - Fraction(total)) <= Fraction(error)
            assert error <= 1e-13 * np.abs(x * y).sum()
    tenths, ones = np.full(10_000, 0.1), np.ones(10_000)  # a plain sum of these is off by a thousand times as much
    total, error = vectors.bounded_dot(tenths, ones)
    assert abs(dot(tenths, ones) - Fraction(total)) <= Fraction(error)


def test_sums_of_rows_know_their_errors(rng):
    X, alpha = spread_out(rng, (60, 3)), np.abs(spread_out(rng, 60))
    found = DualSums(3)
    found.add_rows(as_rows(X), alpha)
    totals = found.totals()
    assert (totals.v_error <= 1e-13 * (alpha @ np.abs(X))).all()
    for j in range(3):
        assert abs(dot(X[:, j], alpha) - Fraction(totals.v[j])) <= Fraction(totals.v_error[j])


def test_sums_hand_on_what_others_say_of_their_errors():
    rows, shares = as_rows(np.array([[1.0, 2.0]])), np.array([3.0])
    rivals = Rivals([0], rows, np.array([4.0]), errors=RowErrors(np.array([0.5]), np.array([1.0, 0.1]), 0.25))
    found = DualSums(2)
    found.add_planes(rivals, shares)
    totals = found.totals()
    assert (totals.v_error >= [1.5, 0.15]).all() and totals.linear_error >= 3.0
    whole = DualSums(2)
    whole.add(totals)
    whole.add(totals)
    assert (whole.totals().v_error >= [3.0, 0.3]).all() and whole.totals().linear_error >= 6.0


def test_shares_never_exceed_their_budget_in_exact_arithmetic(rng):
    for n in (2, 3, 10, 100):
        for _ in range(30):
            values = np.abs(spread_out(rng, n))
            budget = float(values.sum() * rng.uniform(0.1, 1.0))
            vectors.within(values, budget)
            assert sum(exact.fractions(values)) <= Fraction(budget)


def test_losses_of_long_rows_are_never_underrated(rng):
    for _ in range(20):
        X, w, C = spread_out(rng, (5, 12)), spread_out(rng, 12), np.abs(rng.normal(size=5))
        y = np.where(rng.random(5) < 0.5, -1.0, 1.0)
        margins = [Fraction(t) * dot(x, w) for x, t in zip(X, y, strict=True)]
        truth = dot(C, [max(Fraction(0), 1 - m) for m in margins])
        slack = SharedSlack(as_rows(X * y[:, None]), np.ones(5), np.arange(6), C)
        for constraints in (slack, binary(as_rows(X), y.astype(np.int8), C)):
            found = constraints.evaluate(w)
            assert truth <= Fraction(found.total) + Fraction(found.rounding)


def test_a_margin_that_is_nearly_met_is_not_rounded_to_met():
    """1 − score loses the last digits of the score."""
    for score in np.random.default_rng(0).uniform(-1e-3, 1e-3, 50):
        row, w = np.array([[1.0]]), np.array([score])
        slack = SharedSlack(as_rows(row), np.ones(1), np.array([0, 1]), np.ones(1))
        for constraints in (slack, binary(as_rows(row), np.ones(1, np.int8), np.ones(1))):
            found = constraints.evaluate(w)
            assert 1 - Fraction(score) <= Fraction(found.total) + Fraction(found.rounding)


@pytest.mark.parametrize("order", [1, 2])
def test_a_search_that_rounding_misleads_allows_for_it(order):
    """Label 1 is better than label 2 by a half, but its score is a sum in which the one is lost."""
    x, y = [np.ones((1, 3))], [np.zeros(1, int)]
    chain = Chain(n_labels=3, n_features=3, order=order).sized(x, y)
    constraints = Searched(chain.oracle(x, y), np.ones(1))
    for order in permutations([1e16, 1.0, -1e16]):
        table = np.zeros((3, 3))
        table[:, 1], table[0, 2] = order, 0.5
        w = np.concatenate([table.ravel(), np.zeros(chain.n_weights - 9)])
        found = constraints.evaluate(w)
        assert Fraction(found.total) + Fraction(found.rounding) >= 2


def test_rows_that_are_sums_know_their_errors(rng):
    x = rng.normal(size=(40, 2)) * 10.0 ** rng.integers(-3, 4, (40, 1))
    truth, answer = np.zeros(40, int), np.ones(40, int)
    chain = Chain(n_labels=2, n_features=2).sized([x], [truth])
    rivals = chain.oracle([x], [truth]).planes(np.array([0]), [answer])
    row = np.zeros(chain.n_weights)
    row[rivals.rows.indices] = rivals.rows.data
    off = rivals.errors.total(np.ones(1))
    for j, label in product(range(2), range(2)):
        entry = sum(exact.fractions(x[:, j])) * (1 if label == 0 else -1)
        assert abs(entry - Fraction(float(row[2 * j + label]))) <= Fraction(off[2 * j + label])


def test_what_overflows_proves_nothing():
    nan, inf = float("nan"), float("inf")
    for upper in (TotalLoss(nan), TotalLoss(3.0, rounding=nan), TotalLoss(inf)):
        assert certificate_of(0.0, upper).upper == inf
    huge = np.full(D, 1e200)
    for totals in (Totals(1.0, huge, 0.0, huge), Totals(1.0, np.zeros(D), nan, np.zeros(D))):
        with np.errstate(over="ignore", invalid="ignore"):
            assert dual_bound(L2(), totals).value == -inf
