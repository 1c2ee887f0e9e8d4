"""Games of max and min: policies bound their value, and the hinge of that value is learned through these bounds."""

from itertools import pairwise, product

import numpy as np
import pytest

import maxmargin as mm
from maxmargin import LatentStructuralSVM
from maxmargin.checks import check_constraints
from maxmargin.inference import max_min as games
from maxmargin.latent import CCCP, RandomSubset, RandomWalk
from maxmargin.models import MaxMin
from maxmargin.regularizers import L2
from maxmargin.solvers import DualCoordinate, solve

LEVELS = (1, 2, 3)
MAX, MIN = games.MAXIMISER, games.MINIMISER


def _sizes(rng, levels, low=1, high=4):
    return tuple(rng.integers(low, high, size=2 * levels).tolist())


def _tables(rng, levels, n=150, **sizes):
    """Scores of old weights and of new ones, in games of many sizes."""
    for _ in range(n):
        shape = _sizes(rng, levels, **sizes)
        yield rng.normal(size=shape), rng.normal(size=shape)


def _by_recursion(scores):
    """max min max min …, straight from the definition."""
    if scores.ndim == 0:
        return float(scores)
    return max(min(_by_recursion(reply) for reply in move) for move in scores)


@pytest.mark.parametrize("levels", LEVELS)
def test_value_and_moves_are_those_of_the_definition(levels, rng):
    for scores, _ in _tables(rng, levels, n=40):
        f = _by_recursion(scores)
        assert games.value(scores, levels) == f
        assert scores[games.moves(scores, levels)] == f


@pytest.mark.parametrize("levels", LEVELS)
def test_bounds_bracket_the_value_and_touch_it_at_the_old_weights(levels, rng):
    strict = 0
    for old, new in _tables(rng, levels):
        low, high = games.policy(old, levels, MAX), games.policy(old, levels, MIN)
        f = games.value(new, levels)
        below, above = games.under(new, low, levels, MAX).min(), games.under(new, high, levels, MIN).max()
        assert below <= f <= above
        strict += below < above
        assert games.under(old, low, levels, MAX).min() == games.value(old, levels)
        assert games.under(old, high, levels, MIN).max() == games.value(old, levels)
    assert strict > 50


@pytest.mark.parametrize("levels", LEVELS)
def test_policies_are_causal(levels, rng):
    """Along any two courses the fixed side moves alike until the free side has moved differently."""
    for scores, _ in _tables(rng, levels, n=15):
        sizes = scores.shape
        courses = np.arange(scores.size).reshape(sizes)
        low = games.under(courses, games.policy(scores, levels, MAX), levels, MAX)
        high = games.under(courses, games.policy(scores, levels, MIN), levels, MIN)
        for free, fixed, taken, known in ((1, 0, low, lambda k: k), (0, 1, high, lambda k: k + 1)):
            path = np.array(np.unravel_index(taken, sizes)).T
            every = list(product(*map(range, sizes[free::2])))
            assert [tuple(p[free::2]) for p in path.tolist()] == every  # answers keep their places
            for k in range(levels):
                seen = {}
                for p in path.tolist():
                    assert seen.setdefault(tuple(p[free::2][: known(k)]), p[fixed::2][k]) == p[fixed::2][k]


@pytest.mark.parametrize("levels", LEVELS)
def test_many_games_at_once_are_the_games_one_by_one(levels, rng):
    scores = rng.normal(size=(5, *_sizes(rng, levels, low=2)))
    for side in (MAX, MIN):
        together = games.policy(scores, levels, side)
        np.testing.assert_array_equal(together, [games.policy(one, levels, side) for one in scores])
        other = rng.normal(size=scores.shape)
        one_by_one = [games.under(s, p, levels, side) for s, p in zip(other, together, strict=True)]
        np.testing.assert_array_equal(games.under(other, together, levels, side), one_by_one)


def _data(rng, levels, n=24, high=4, d=3, gap=0.8):
    X, Y = [], []
    for i in range(n):
        x = rng.normal(size=(*_sizes(rng, levels, high=high), d))
        x[..., 0] += gap * (2 * (i % 2) - 1)
        X.append(x)
        Y.append(i % 2)
    return X, Y


def _objective(rng, levels, C=0.5, **data):
    X, Y = _data(rng, levels, **data)
    model = MaxMin(levels).sized(X, Y)
    return model, X, Y, model.latent_objective(X, Y, np.array([C]), L2())


def _by_hand(model, X, Y, w, C=0.5):
    scores = [_by_recursion(x @ w[:-1] + w[-1]) for x in X]
    return 0.5 * w @ w + C * sum(max(0.0, 1.0 - (2 * y - 1) * f) for y, f in zip(Y, scores, strict=True))


def _value(problem, w):
    return problem.regularizer.value(w) + problem.constraints.evaluate(w).total


@pytest.mark.parametrize("levels", LEVELS)
def test_bounds_majorize_the_objective_and_regrets_are_their_distance(levels, rng):
    model, X, Y, objective = _objective(rng, levels)
    everybody = np.arange(len(X))
    for _ in range(5):
        w = rng.normal(size=4)
        evaluation, latent, F = objective.evaluate(w), objective.initial(rng), _by_hand(model, X, Y, w)
        assert _value(objective.problem(evaluation.best), w) == pytest.approx(F, rel=1e-12)
        assert not evaluation.regrets(everybody, evaluation.best).any()
        regrets = evaluation.regrets(everybody, latent)
        assert (regrets >= 0.0).all() and regrets.any()
        assert _value(objective.problem(latent), w) == pytest.approx(F + regrets.sum(), rel=1e-12)


@pytest.mark.parametrize("levels", LEVELS)
def test_constraints_of_a_bound_pass_the_check(levels, rng):
    *_, objective = _objective(rng, levels, n=8)
    check_constraints(objective.problem(objective.initial(rng)).constraints)


def test_dual_variables_of_one_bound_are_feasible_in_the_next(rng):
    *_, objective = _objective(rng, 2)
    first = solve(objective.problem(objective.initial(rng)), DualCoordinate(random_state=0), tol=1e-4)
    other = objective.problem(objective.initial(rng)).constraints
    np.testing.assert_allclose(other.feasible(first.alpha), first.alpha, atol=1e-12)


def test_small_games_have_numbered_policies_that_are_all_listed(rng):
    model, X, Y, objective = _objective(rng, 1)
    w = rng.normal(size=4)
    evaluation = objective.evaluate(w)
    regrets, first = evaluation.listed()
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        A, B = x.shape[:2]
        count = A if y else B**A
        assert first[i + 1] - first[i] == count
        one_by_one = [evaluation.regrets(np.array([i]), [z])[0] for z in range(count)]
        np.testing.assert_array_equal(regrets[first[i] : first[i + 1]], one_by_one)
        assert regrets[first[i] + evaluation.best[i]] == 0.0
    latent = objective.initial(rng)
    assert latent.dtype == np.int64 and (latent < np.diff(first)).all()
    assert _value(objective.problem(latent), w) == pytest.approx(
        _by_hand(model, X, Y, w) + sum(regrets[first[:-1] + latent]), rel=1e-12
    )


def test_large_games_are_not_listed(rng):
    *_, objective = _objective(rng, 2, n=6, high=5)
    assert objective.evaluate(np.ones(4)).listed() is None
    assert all(isinstance(policy, np.ndarray) for policy in objective.initial(rng))


@pytest.mark.parametrize("levels", [1, 2])
def test_proposals_change_one_decision_and_all_changes_are_equally_likely(levels, rng):
    *_, objective = _objective(rng, levels, n=4, high=4 if levels == 1 else 5)
    evaluation = objective.evaluate(rng.normal(size=4))
    for i, z in enumerate(objective.initial(rng)):
        group = objective.groups[objective.group_of[i]]
        here = objective.policies(group, [z])[0]
        n_changes = int((group.choices - 1).sum())
        if n_changes == 0:
            assert np.array_equal(evaluation.propose(i, z, rng), z)
            continue
        n_open = int((group.choices > 1).sum())
        seen = {}
        for _ in range(200 * n_changes):
            there = objective.policies(group, [evaluation.propose(i, z, rng)])[0]
            (k,) = np.flatnonzero(there != here)
            seen[k, int(there[k])] = seen.get((k, int(there[k])), 0) + 1
        assert len(seen) == n_changes
        for (k, _), times in seen.items():
            expected = 200 * n_changes / n_open / (group.choices[k] - 1)
            assert abs(times - expected) <= 6 * np.sqrt(expected)
        assert np.array_equal(objective.policies(group, [z])[0], here)  # what was given is left alone


def test_prediction_names_the_label_and_the_moves(rng):
    X, Y = _data(rng, 2)
    model = MaxMin(2).sized(X, Y)
    w = rng.normal(size=4)
    for x, y in zip(X, Y, strict=True):
        label, moves = model.predict(x, w)
        assert label == (model.score(x, w) > 0)
        assert w @ model.features(x, (label, moves)) == pytest.approx(model.score(x, w))
        assert model.loss(y, (label, moves)) == (label != y)


BOUNDS = {"cccp": "cccp", "walk": RandomWalk(5), "subset": RandomSubset(), "entropy": "gmme", "touching": CCCP()}


@pytest.mark.parametrize("bound", BOUNDS.values(), ids=BOUNDS)
def test_the_estimator_trains_games_of_one_level(bound, rng):
    X, Y = _data(rng, 1, n=40)
    svm = LatentStructuralSVM(MaxMin(), C=0.5, bound=bound, n_init=2, random_state=0).fit(X, Y)
    assert svm.objective_ == pytest.approx(_by_hand(svm.model_, X, Y, svm.coef_), rel=1e-9)
    assert svm.objective(X, Y) == pytest.approx(svm.objective_, rel=1e-9)
    assert svm.objective_ <= _by_hand(svm.model_, X, Y, np.zeros(4))
    assert svm.predict(X) == [int(svm.model_.score(x, svm.coef_) > 0) for x in X]
    assert svm.predict_latent(X) == [games.moves(x @ svm.coef_[:-1], 1) for x in X]
    assert svm.score(X, Y) == -np.mean(np.array(svm.predict(X)) != Y)


@pytest.mark.parametrize(("levels", "bound"), [(2, RandomWalk(2)), (3, "cccp")], ids=["walk", "cccp"])
def test_the_estimator_trains_games_of_more_levels(bound, levels, rng):
    X, Y = _data(rng, levels, n=16)
    svm = LatentStructuralSVM(MaxMin(levels), C=0.5, bound=bound, random_state=0).fit(X, Y)
    assert svm.objective_ == pytest.approx(_by_hand(svm.model_, X, Y, svm.coef_), rel=1e-9)
    bounds = [record.bound for record in svm.history_]
    assert all(b <= a * (1 + 1e-9) for a, b in pairwise(bounds))
    certificate = svm.certify(X, Y)
    assert certificate.lower <= svm.certificate_.upper and certificate.upper >= svm.objective_ * (1 - 1e-9)


@pytest.mark.rounding
def test_the_course_that_decides_is_found(rng):
    """A game that one row decides: the mean of all courses says little, the best one everything."""
    X = rng.normal(size=(60, 4, 2, 3))
    Y = np.arange(60) % 2
    X[np.arange(60), rng.integers(0, 4, 60), :, 0] += np.where(Y == 1, 5.0, 0.0)[:, None]
    svm = LatentStructuralSVM(MaxMin(), C=1.0, random_state=0).fit(X, Y)
    assert svm.score(X, Y) > -0.1
    picked = [X[i][moves][0] for i, moves in enumerate(svm.predict_latent(X))]
    assert np.mean(np.array(picked)[Y == 1] > 2.0) > 0.9


def test_sample_weights_are_budgets(rng):
    X, Y = _data(rng, 1, n=20)
    weight = np.ones(20)
    weight[:6] = 2.0
    weighted = LatentStructuralSVM(MaxMin(), C=0.5, tol=1e-7, random_state=0).fit(X, Y, sample_weight=weight)
    again = [*X, *X[:6]], [*Y, *Y[:6]]
    assert weighted.objective_ == pytest.approx(
        mm.LatentStructuralSVM(MaxMin(), C=0.5, init=weighted.coef_, random_state=0).fit(*again).objective_, rel=1e-3
    )
    assert weighted.objective(*again) == pytest.approx(weighted.objective_, rel=1e-9)


@pytest.mark.parametrize("levels", [1, 2])
def test_a_file_holds_all_that_certifies(levels, rng, tmp_path):
    X, Y = _data(rng, levels, n=12)
    svm = LatentStructuralSVM(MaxMin(levels, bias=2.0), C=0.5, random_state=0).fit(X, Y)
    svm.save(tmp_path / "game.safetensors")
    loaded = mm.load(tmp_path / "game.safetensors")
    assert loaded.predict(X) == svm.predict(X)
    assert loaded.predict_latent(X) == svm.predict_latent(X)
    assert repr(loaded.model_) == repr(svm.model_)
    assert loaded.certify(X, Y).lower == pytest.approx(svm.certificate_.lower, rel=1e-9)


def test_unknown_solvers_and_solvers_that_search_are_refused(rng):
    with pytest.raises(ValueError, match=r"solver must be one of .*dual_coordinate"):
        LatentStructuralSVM(MaxMin(), solver="oracle_ascent").fit(*_data(rng, 1, n=4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MaxMin(0), "levels must be a whole number of at least 1, got 0"),
        (lambda: MaxMin(bias=np.inf), "bias must be a finite number"),
        (lambda: MaxMin().n_weights, "does not know its sizes"),
        (lambda: MaxMin(2).sized([np.ones((2, 2, 3))], [1]), r"shape \(A1, B1, A2, B2, n_features\).*it has 5 axes"),
        (lambda: MaxMin().sized([np.ones((2, 0, 3))], [1]), "every side must have a move"),
        (lambda: MaxMin(n_features=2).predict(np.ones((1, 1, 3)), np.ones(3)), "x has 3 features, 2 are needed"),
        (lambda: MaxMin(n_features=1).predict(np.full((1, 1, 1), np.nan), np.ones(2)), "not finite"),
        (lambda: MaxMin(n_features=1).predict(np.ones((1, 1, 1)), np.ones(1)), "has 2 weights"),
        (lambda: _bound([1, 2]), "Y has labels from 1 to 2, allowed are 0 to 1"),
        (lambda: _bound([-1, 1]), "Y has labels from -1 to 1, allowed are 0 to 1"),
        (lambda: _bound([1]), "X has 2 examples, Y has 1"),
        (lambda: _bound([0, 1]).problem([0, 7]), r"A game of \(2, 2\) moves needs a whole number"),
        (lambda: _bound([0, 1]).problem(["a", "b"]), "needs a whole number"),
        (lambda: _bound([0, 1]).problem([[0, 1], [0]]), "needs a whole number"),
    ],
)
def test_what_is_wrong_is_said(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def _bound(Y):
    return MaxMin(n_features=1).latent_objective([np.ones((2, 2, 1))] * 2, Y, np.ones(1), L2())
