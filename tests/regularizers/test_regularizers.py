"""Regularizers: value, conjugate and the map to the weights belong together."""

from itertools import permutations

import numpy as np
import pytest
from every_regularizer import GROUPS, REGULARIZERS, N

from maxmargin import LinearSVC
from maxmargin.checks import check_regularizer
from maxmargin.data.arrays import as_rows
from maxmargin.kernels.maps import boxed
from maxmargin.models import binary
from maxmargin.problem import Problem
from maxmargin.regularizers import L2, Blocks, Bounded, GaussianPrior, GroupNorm
from maxmargin.regularizers.shape import Shape
from maxmargin.solvers.interior_point import InteriorPoint


@pytest.mark.parametrize("name", REGULARIZERS)
def test_value_conjugate_and_map_belong_together(name):
    """Fenchel's inequality everywhere, equality at w = weights(v): so the map is the gradient of the conjugate."""
    check_regularizer(REGULARIZERS[name], N)
    assert repr(REGULARIZERS[name]).startswith(type(REGULARIZERS[name]).__name__)


class _Broken(L2):
    """L2 with one method replaced."""

    def __init__(self, **methods):
        for name, method in methods.items():
            setattr(self, name, method)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (_Broken(value=lambda w: float(w @ w)), r"must equal w·v"),
        (_Broken(conjugate=lambda v: 0.0), r"must equal w·v"),
        (_Broken(weights=lambda v: 2 * v), r"must equal w·v"),
        # Equality holds at every v, but Ω is too small elsewhere: only the inequality can see it.
        (_Broken(value=lambda w: -0.5 * float(w @ w), conjugate=lambda v: 1.5 * float(v @ v)), "is too small"),
        (
            _Broken(value=lambda w: -0.5 * float(w @ w), conjugate=lambda v: -0.5 * float(v @ v), weights=lambda v: -v),
            "too small|monotone",
        ),
        (_Broken(shape=lambda n: Shape(n, scale=np.full(n, 2.0))), "kernels would solve another problem"),
    ],
)
def test_check_regularizer_catches(broken, message):
    with pytest.raises(AssertionError, match=message):
        check_regularizer(broken, N)


@pytest.mark.parametrize("function", ["score", "move", "inner", "difference", "spread"])
def test_check_regularizer_tries_every_function_of_the_weight_map(function, monkeypatch):
    monkeypatch.setattr(boxed, function, lambda *arguments: 0.0)
    with pytest.raises(AssertionError, match="Boxed, the weight map of"):
        check_regularizer(REGULARIZERS["bounds-both"], N)


def test_newton_steps_leave_maps_that_they_do_not_know_to_coordinate_steps(monkeypatch, rng):
    monkeypatch.setattr("maxmargin.solvers.interior_point.READS", frozenset({"scale"}))
    X = rng.normal(size=(30, 3))
    problem = Problem(binary(as_rows(X), np.where(X[:, 0] > 0, 1, -1), np.ones(30)), Bounded(0.0))
    assert not InteriorPoint().handles(problem)


def test_bounded_value_is_infinite_beyond_the_bounds_and_only_there():
    regularizer = Bounded(0.5, [1], upper=0.75)
    assert regularizer.value(np.array([-3.0, 0.5])) == pytest.approx(0.5 * 9.25)
    assert regularizer.value(np.array([3.0, 0.75])) == pytest.approx(0.5 * 9.5625)
    assert regularizer.value(np.array([-3.0, 0.49])) == np.inf
    assert regularizer.value(np.array([-3.0, 0.76])) == np.inf


def test_group_norm_zeroes_a_group_exactly_at_its_threshold():
    regularizer = GroupNorm([[0, 1], [2]], weights=5.0, l2=1.0)
    assert not regularizer.weights(np.array([3.0, 4.0, 0.0])).any()
    assert regularizer.weights(np.array([3.3, 4.4, 0.0]))[0] == pytest.approx(0.3)


def test_pure_group_norm_conjugate_is_the_indicator_of_the_dual_ball():
    pure = GroupNorm([[0, 1], [2]], weights=[5.0, 1.0])
    assert pure.pure
    assert pure.conjugate(np.array([3.0, 4.0, 1.0])) == 0.0
    assert pure.conjugate(np.array([3.0, 4.0, 1.1])) == np.inf
    assert pure.dual_scale(np.array([6.0, 8.0, 1.0])) == pytest.approx(0.5)
    assert pure.dual_scale(np.array([6.0, 8.0, 4.0])) == pytest.approx(0.25)
    assert pure.dual_scale(np.array([0.6, 0.8, 0.1])) == 1.0
    assert pure.value(np.array([3.0, 4.0, -2.0])) == pytest.approx(27.0)


def test_dual_radius_is_the_length_of_the_longest_v_with_a_finite_conjugate():
    pure = GroupNorm([[0, 1], [2]], weights=[5.0, 1.0])
    longest = np.array([3.0, 4.0, 1.0])
    assert pure.conjugate(longest) == 0.0
    assert pure.conjugate(1.001 * longest) == np.inf
    assert pure.dual_radius() == pytest.approx(np.linalg.norm(longest))
    beside = Blocks([(np.arange(3), pure), (np.arange(3, 5), L2())])
    assert beside.dual_radius() == pure.dual_radius()
    twice = Blocks([(np.arange(3), pure), (np.arange(3, 6), pure)])
    assert twice.conjugate(np.tile(longest, 2)) == 0.0
    assert twice.dual_radius() == pytest.approx(np.linalg.norm(np.tile(longest, 2)))


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_dual_scale_of_blocks_makes_the_conjugate_of_every_part_finite(order):
    parts = [([0], L2()), ([1, 2], GroupNorm([[0, 1]], 5.0)), ([3], GroupNorm([[0]], 1.0))]
    blocks = Blocks([parts[p] for p in order])
    assert blocks.pure
    v = np.array([100.0, 6.0, 8.0, 4.0])
    scale = blocks.dual_scale(v)
    assert scale == pytest.approx(0.25), "the last group is four times too long, the other one twice"
    assert blocks.conjugate(scale * v) == pytest.approx(0.5 * 25.0**2)
    assert blocks.dual_scale(0.25 * v) == 1.0


def test_pure_group_norm_says_that_it_needs_proximal_steps():
    pure = GroupNorm(GROUPS)
    with pytest.raises(ValueError, match="without an l2 term v does not determine the weights"):
        pure.weights(np.zeros(N))
    with pytest.raises(ValueError, match="solve it by proximal steps"):
        pure.shape(N)


def test_proximal_group_norm_shrinks_around_its_centre(rng):
    centre, v = rng.normal(size=(2, N))
    around = GroupNorm(GROUPS, 0.3).around(centre, 2.0)
    w = around.weights(v)
    for g in GROUPS:
        u = centre[g] + v[g] / 2.0
        assert w[g] == pytest.approx(u * max(0.0, 1 - 0.15 / np.linalg.norm(u)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GaussianPrior(0.0, [[1.0, 2.0], [2.0, 1.0]]), r"not positive definite \(smallest eigenvalue -1\)"),
        (lambda: GaussianPrior(0.0, [[1.0, 1.0], [1.0, 1.0]]), "not positive definite"),
        (lambda: GaussianPrior(0.0, [[1.0, 0.5], [0.0, 1.0]]), "not symmetric"),
        (lambda: GaussianPrior(0.0, 0.0), "a variance must be positive"),
        (lambda: GaussianPrior(np.nan), "must be finite"),
        (lambda: GaussianPrior(0.0, [1.0, np.inf]), "must be finite"),
        (lambda: GaussianPrior(np.zeros((2, 2))), r"mean must be a number or a vector.* got shapes \(2, 2\)"),
        (lambda: GaussianPrior(0.0, np.ones((2, 3))), r"square matrix.* \(2, 3\)"),
        (lambda: GaussianPrior(0.0, np.ones((2, 2, 2))), r"and \(2, 2, 2\)"),
        (lambda: GaussianPrior(np.zeros(3)).shape(N), "mean is for 3 weights, the problem has 6"),
        (lambda: GaussianPrior(0.0, np.ones(3)).shape(N), "covariance is for 3 weights, the problem has 6"),
        (lambda: GaussianPrior(0.0, np.eye(3)).shape(N), "covariance is for 3 weights, the problem has 6"),
        (lambda: Bounded([0.0, 1.0], [1]).shape(N), r"1 weights are bounded, but lower has shape \(2,\)"),
        (lambda: Bounded(np.zeros(3)).shape(N), r"6 weights are bounded, but lower has shape \(3,\)"),
        (lambda: Bounded(0.0, [6]).shape(N), "indices run from 6 to 6, the weights from 0 to 5"),
        (lambda: Bounded(0.0, [-1, 2]).shape(N), "indices run from -1 to 2"),
        (lambda: Bounded(0.0, [0.5]).shape(N), "indices must be a list of whole numbers"),
        (lambda: Bounded(np.nan).shape(N), "lower must be numbers, or -inf"),
        (lambda: Bounded(np.inf).shape(N), "lower must be numbers, or -inf"),
        (lambda: Bounded(upper=-np.inf).shape(N), "upper must be numbers, or inf"),
        (lambda: Bounded(upper=[0.0]).shape(N), r"6 weights are bounded, but upper has shape \(1,\)"),
        (lambda: Bounded(0.0, [2], upper=-1.0).shape(N), "the lower bound 0 of weight 2 is above its upper bound -1"),
        (lambda: Bounded(0.0, base=GaussianPrior(0.0, np.eye(N))).shape(N), "diagonal covariance"),
        (lambda: Bounded(0.0, base=GroupNorm(GROUPS, l2=1.0)).shape(N), "the base must be L2"),
        (lambda: Bounded(0.0, base=Bounded(1.0)).shape(N), "the base must be L2"),
        (lambda: GroupNorm([[0, 1], [3]]), "weight 2 is in 0 groups"),
        (lambda: GroupNorm([]), "none empty"),
        (lambda: GroupNorm([[0], []]), "none empty"),
        (lambda: GroupNorm([[-1, 0]]), "weight 1 is in 0 groups"),
        (lambda: GroupNorm(GROUPS, weights=[1.0, 2.0]), "weights must be one number or one per group"),
        (lambda: GroupNorm(GROUPS, l2=1.0, centre=np.zeros(3)).shape(N), r"GroupNorm: .*centre"),
        (lambda: GroupNorm([[0]], weights=-1.0), "weights must be finite and not negative"),
        (lambda: GroupNorm([[0]], weights=np.nan), "weights must be finite and not negative"),
        (lambda: GroupNorm([[0]], l2=-1.0), "l2 must be a number >= 0, got -1"),
        (lambda: GroupNorm([[0], [1]], weights=[0.0, 1.0]), "a group with weight 0 needs l2 > 0"),
        (lambda: GroupNorm(GROUPS, l2=1.0).shape(7), "the groups cover 6 weights, the problem has 7"),
        (lambda: Blocks([([0], L2()), ([2], L2())]), "cover every weight exactly once"),
        (lambda: Blocks([([0], L2()), ([1], L2())]).shape(3), "cover 2 weights, the problem has 3"),
        (
            lambda: Blocks([([0], Bounded(0.0)), ([1], GroupNorm([[0]], l2=1.0))]).shape(2),
            "Bounds cannot be combined",
        ),
        (
            lambda: Blocks([([0], GaussianPrior(0.0, [[1.0]])), ([1], GroupNorm([[0]], l2=1.0))]).shape(2),
            "Group norms cannot be combined with a full covariance",
        ),
    ],
)
def test_bad_arguments_are_refused_in_plain_words(make, message):
    with pytest.raises(ValueError, match=message):
        make()


class _Tied:
    """½(w₀² + w₂²) where w₀ = w₁: a covariance that cannot be inverted."""

    covariance = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])

    def value(self, w):
        return 0.5 * float(w[0] ** 2 + w[2] ** 2) if w[0] == w[1] else np.inf

    def conjugate(self, v):
        return 0.5 * float((v[0] + v[1]) ** 2 + v[2] ** 2)

    def weights(self, v):
        return np.array([v[0] + v[1], v[0] + v[1], v[2]])

    def shape(self, n_weights):
        return Shape(n_weights, covariance=self.covariance)


def test_a_covariance_that_ties_weights_is_left_to_coordinate_ascent(rng):
    X = rng.normal(size=(60, 3))
    y = np.where(X.sum(axis=1) + 0.3 * rng.normal(size=60) > 0, 1, -1)
    check_regularizer(_Tied(), n_weights=3)
    found = LinearSVC(C=0.5, regularizer=_Tied(), fit_intercept=False, random_state=0).fit(X, y)
    merged = LinearSVC(C=0.5, fit_intercept=False, random_state=0, tol=1e-6)
    merged.fit(np.column_stack([X[:, 0] + X[:, 1], X[:, 2]]), y)
    assert found.certificate_.relative_gap <= 1e-3
    assert found.certificate_.lower <= merged.certificate_.upper
    assert found.certificate_.upper >= merged.certificate_.lower
    assert found.coef_[0, 0] == found.coef_[0, 1]
