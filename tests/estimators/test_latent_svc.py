"""Bags of instances: the objective against brute force, its bounds, and the estimator."""

import functools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score

import maxmargin as mm
from maxmargin import checks
from maxmargin.data.bags import Bags, as_bags
from maxmargin.latent import value
from maxmargin.latent.bags import BagObjective
from maxmargin.regularizers import L2, GaussianPrior
from maxmargin.solvers import DualCoordinate, solve

TIGHT = {"tol": 1e-7, "bound_tol": 1e-7, "random_state": 0}


def bags_of(rng, n=40, d=4, largest=6, shift=2.5, n_classes=2):
    """Bags of which one instance is moved in a direction of the class; those of class 0 are noise."""
    y = np.arange(n) % n_classes
    centres = shift * rng.normal(size=(n_classes, d))
    X = [rng.normal(size=(int(rng.integers(1, largest + 1)), d)) for _ in range(n)]
    for x, label in zip(X, y, strict=True):
        if label:
            x[rng.integers(len(x))] += centres[label]
    return X, y


def brute_force(X, y, w, budget, negatives, intercept=0.0):
    """F(w) in plain Python, from the definition."""
    total = 0.5 * w @ w
    for x, label, C in zip(X, y, budget, strict=True):
        scores = x @ w[: x.shape[1]] + (intercept * w[-1] if intercept else 0.0)
        if label:
            total += C * max(0.0, 1.0 - scores.max())
        elif negatives == "bag":
            total += C * max(0.0, 1.0 + scores.max())
        else:
            total += C * np.maximum(0.0, 1.0 + scores).sum()
    return total


def objective_of(X, y, budget, negatives="bag", bias=0.0):
    return BagObjective(as_bags(X), np.asarray(y) == 1, budget, L2(), negatives=negatives, bias=bias)


@pytest.fixture
def data(rng):
    return bags_of(rng)


@pytest.fixture(params=["bag", "instances"])
def negatives(request):
    return request.param


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("bias", [0.0, 0.5])
def test_objective_is_what_its_definition_says(rng, data, negatives, bias, store):
    X, y = data
    budget = rng.uniform(0.1, 2.0, size=len(X))
    objective = objective_of([store(x) for x in X], y, budget, negatives, bias)
    for _ in range(10):
        w = rng.normal(size=objective.n_weights)
        assert value(objective, w) == pytest.approx(brute_force(X, y, w, budget, negatives, bias), rel=1e-12)


def test_bounds_lie_above_the_objective_by_the_sum_of_regrets(rng, data, negatives):
    X, y = data
    budget = rng.uniform(0.1, 2.0, size=len(X))
    objective = objective_of(X, y, budget, negatives)
    everybody = np.arange(len(X))
    for _ in range(20):
        w, latent = rng.normal(size=objective.n_weights), objective.initial(rng)
        evaluation = objective.evaluate(w)
        bound = objective.regularizer.value(w) + objective.problem(latent).constraints.evaluate(w).total
        regrets = evaluation.regrets(everybody, latent)
        assert regrets.min() >= 0.0
        assert bound - value(objective, w) == pytest.approx(regrets.sum(), abs=1e-9)
        assert not evaluation.regrets(everybody, evaluation.best).any()
        assert not regrets[y == 0].any()


def test_regrets_count_only_what_is_missing_of_the_margin():
    """Beyond the margin no instance is better than another."""
    objective = objective_of([np.array([[3.0], [2.0], [0.5]]), np.array([[0.0]])], [1, 0], np.array([2.0, 1.0]))
    regrets, first = objective.evaluate(np.array([1.0])).listed()
    assert first.tolist() == [0, 3, 4]
    assert regrets.tolist() == [0.0, 0.0, 1.0, 0.0]


def test_proposals_are_other_instances_and_all_of_them(rng, data):
    X, y = data
    objective = objective_of(X, y, np.ones(len(X)))
    evaluation = objective.evaluate(np.zeros(objective.n_weights))
    i = next(i for i in range(len(X)) if y[i] and len(X[i]) > 2)
    proposed = {evaluation.propose(i, 1, rng) for _ in range(200)}
    assert proposed == set(range(len(X[i]))) - {1}
    assert evaluation.propose(int(np.flatnonzero(y == 0)[0]), 0, rng) == 0


def test_constraints_of_a_bound_keep_their_promises(data, negatives):
    X, y = data
    checks.check_constraints(
        objective_of(X, y, np.ones(len(X)), negatives, 1.0).problem(np.zeros(len(X), int)).in_memory
    )


def test_dual_variables_of_one_bound_are_feasible_for_the_next(rng, data, negatives):
    X, y = data
    objective = objective_of(X, y, np.ones(len(X)), negatives)
    one = solve(objective.problem(objective.initial(rng)), DualCoordinate(random_state=0))
    other = objective.problem(objective.initial(rng))
    assert np.allclose(other.constraints.feasible(one.alpha), one.alpha, rtol=0.0, atol=1e-12)
    warm = solve(other, DualCoordinate(random_state=0), tol=1e-8, warm=one.alpha)
    cold = solve(other, DualCoordinate(random_state=0), tol=1e-8)
    assert warm.certificate.upper == pytest.approx(cold.certificate.upper, rel=1e-7)


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
def test_bags_begin_with_the_instance_most_unlike_negative_bags(data, store):
    X, y = data
    means = np.array([x.mean(axis=0) for x in X])
    w = means[y == 1].mean(axis=0) - means[y == 0].mean(axis=0)
    for i, z in enumerate(objective_of([store(x) for x in X], y, np.ones(len(X))).initial(None)):
        assert z == (np.argmax(X[i] @ w) if y[i] else 0)


def test_single_instances_are_a_linear_classifier(rng):
    """Bags of one instance have nothing latent: both problems, both proofs, one optimum."""
    X, y = rng.normal(size=(60, 5)), np.arange(60) % 2
    X[y == 1] += 0.5
    plain = mm.LinearSVC(C=0.7, **{k: v for k, v in TIGHT.items() if k != "bound_tol"}).fit(X, y)
    for form in ("bag", "instances"):
        svm = mm.LatentSVC(C=0.7, negatives=form, **TIGHT).fit(X[:, None, :], y)
        assert svm.objective_ == pytest.approx(plain.certificate_.upper, rel=1e-6)
        assert svm.certificate_.lower <= plain.certificate_.upper
        assert plain.certificate_.lower <= svm.certificate_.upper
        assert svm.coef_ == pytest.approx(plain.coef_, abs=1e-3)
        assert np.array_equal(svm.predict(X[:, None, :]), plain.predict(X))


def test_attributes_belong_together(data, negatives):
    X, y = data
    svm = mm.LatentSVC(C=0.5, negatives=negatives, intercept_scaling=2.0, **TIGHT).fit(X, y)
    w = np.append(svm.coef_[0], svm.intercept_ / 2.0)
    assert svm.objective_ == pytest.approx(brute_force(X, y, w, np.full(len(X), 0.5), negatives, 2.0), rel=1e-10)
    assert svm.objective(X, y) == pytest.approx(svm.objective_, rel=1e-10)
    again = svm.certify(X, y)
    assert (again.lower, again.upper) == pytest.approx((svm.certificate_.lower, svm.certificate_.upper), rel=1e-10)
    assert svm.certificate_.lower <= svm.objective_ * (1 + 1e-9)
    assert svm.coef_.shape == (1, 4)
    assert svm.intercept_.shape == (1,)
    assert svm.n_features_in_ == 4
    assert svm.n_bounds_ == len(svm.history_)
    scores = [max(x @ svm.coef_[0] + svm.intercept_[0]) for x in X]
    assert svm.decision_function(X) == pytest.approx(scores)
    assert np.array_equal(svm.predict(X), (np.array(scores) > 0).astype(int))
    assert svm.predict_latent(X).tolist() == [int(np.argmax(x @ svm.coef_[0])) for x in X]
    assert not svm.latent_[y == 0].any()


@pytest.mark.rounding
def test_finds_the_instances_that_tell(rng):
    X, y = [rng.normal(size=(8, 6)) for _ in range(80)], np.array(["no", "yes"] * 40)
    planted = rng.integers(8, size=80)
    for i in range(1, 80, 2):
        X[i][planted[i]] += 3.0
    svm = mm.LatentSVC(positive="yes", random_state=0).fit(X, y)
    assert svm.score(X, y) == 1.0
    assert np.array_equal(svm.predict_latent(X)[1::2], planted[1::2])
    assert np.array_equal(svm.classes_, ["no", "yes"])


def _small_bags():
    X, y = np.random.default_rng(20240).normal(size=(30, 4, 3)), np.arange(30) % 2
    X[y == 1, 0] += 2.0
    return X.astype(np.float32).astype(np.float64), y


@functools.cache
def _of_a_list():
    X, y = _small_bags()
    return mm.LatentSVC(**TIGHT).fit(list(X), y)


@pytest.mark.parametrize("form", ["array", "csr", "Bags", "sparse Bags", "float32", "object array"])
def test_all_forms_of_bags_are_one(form):
    X, y = _small_bags()
    flat = X.reshape(-1, 3)
    boxed = np.empty(30, object)
    boxed[:] = list(X)
    given = {
        "array": X,
        "csr": [sp.csr_matrix(x) for x in X],
        "Bags": Bags(flat, np.arange(31) * 4),
        "sparse Bags": Bags(sp.csr_matrix(flat), np.arange(31) * 4),
        "float32": X.astype(np.float32),
        "object array": boxed,
    }[form]
    found, expected = mm.LatentSVC(**TIGHT).fit(given, y), _of_a_list()
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-6)
    assert found.coef_ == pytest.approx(expected.coef_, abs=1e-3)
    assert np.array_equal(found.predict(given), expected.predict(X))


def test_order_of_instances_changes_nothing(rng, data, negatives):
    X, y = data
    orders = [rng.permutation(len(x)) for x in X]
    moved = [x[order] for x, order in zip(X, orders, strict=True)]
    one = mm.LatentSVC(negatives=negatives, **TIGHT).fit(X, y)
    other = mm.LatentSVC(negatives=negatives, **TIGHT).fit(moved, y)
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-6)
    for i in np.flatnonzero(y):
        assert orders[i][other.latent_[i]] == one.latent_[i]


def test_weights_of_bags_are_repetitions(rng, data):
    X, y = data
    times = rng.integers(1, 4, size=len(X))
    repeated = [x for x, k in zip(X, times, strict=True) for _ in range(k)]
    one = mm.LatentSVC(**TIGHT).fit(X, y, sample_weight=times)
    other = mm.LatentSVC(**TIGHT).fit(repeated, np.repeat(y, times))
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-6)
    assert one.coef_ == pytest.approx(other.coef_, abs=1e-3)


@pytest.mark.rounding
def test_three_classes(rng):
    X, y = bags_of(rng, n=60, n_classes=3, shift=4.0)
    svm = mm.LatentSVC(random_state=0).fit(X, np.array(["a", "b", "c"])[y])
    assert svm.coef_.shape == (3, 4)
    assert svm.intercept_.shape == (3,)
    assert svm.score(X, np.array(["a", "b", "c"])[y]) > 0.8
    W, b = svm.coef_, svm.intercept_
    tables = [x @ W.T + b for x in X]
    assert svm.decision_function(X) == pytest.approx(np.array([t.max(axis=0) for t in tables]))
    found = svm.predict_latent(X)
    for table, z in zip(tables, found, strict=True):
        assert table[z].max() == pytest.approx(table.max())
    slack = [np.max(t.max(axis=0) + (np.arange(3) != k)) - t[:, k].max() for t, k in zip(tables, y, strict=True)]
    by_hand = 0.5 * ((W**2).sum() + (b**2).sum()) + np.sum(slack)
    assert svm.objective_ == pytest.approx(by_hand, rel=1e-9)
    assert svm.certify(X, np.array(["a", "b", "c"])[y]).relative_gap <= 1e-3 + 1e-9


@pytest.mark.parametrize("n_classes", [2, 3])
def test_regularizer_of_features_is_not_that_of_the_intercept(rng, n_classes):
    X, y = bags_of(rng, n_classes=n_classes)
    prior = GaussianPrior(np.zeros(4), np.full(4, 1e-8))
    svm = mm.LatentSVC(regularizer=prior, class_weight={0: 1.0, 1: 5.0} | ({2: 1.0} if n_classes > 2 else {}))
    svm.fit(X, y)
    assert np.abs(svm.coef_).max() < 1e-3
    assert np.abs(svm.intercept_).max() > 0.1


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("init", ["contrast", "random", lambda x, y: len(x) - 1])
def test_other_starts(rng, init, n_classes):
    X, y = bags_of(rng, n_classes=n_classes)
    svm = mm.LatentSVC(init=init, random_state=0).fit(X, y)
    assert svm.history_[-1].gap <= 1e-3 * svm.objective_


def test_given_instances_are_the_first_bound(rng, data):
    X, y = data
    Z = np.array([rng.integers(len(x)) for x in X])
    with pytest.warns(ConvergenceWarning, match="max_bounds=1"):
        svm = mm.LatentSVC(max_bounds=1, random_state=0).fit(X, y, Z=Z)
    objective = objective_of(X, y, np.ones(len(X)), bias=1.0)
    alone = solve(objective.problem(Z), DualCoordinate(random_state=0), tol=1e-6).certificate
    assert svm.history_[0].bound == pytest.approx(alone.upper, rel=0.04)  # first bounds are solved loosely
    assert svm.history_[0].lower <= alone.upper


def test_warm_start_goes_on(data):
    X, y = data
    svm = mm.LatentSVC(warm_start=True, random_state=0).fit(X, y)
    before = svm.objective_
    svm.set_params(tol=1e-6, bound_tol=1e-6).fit(X, y)
    assert svm.objective_ <= before
    svm.fit(X[:-2], y[:-2])  # other dual variables, the same weights
    assert svm.objective_ == pytest.approx(svm.objective(X[:-2], y[:-2]), rel=1e-9)


@pytest.fixture
def faults(data):
    """Bags of days, of which one instance makes a fault; "ok" comes after "fault" in sorted order."""
    X, y = data
    return X, y, np.array(["ok", "fault"])[y]


@pytest.mark.parametrize("form", ["bag", "instances"])
def test_positive_names_the_class_that_one_instance_is_enough_for(faults, tmp_path, form):
    X, y, names = faults
    settings = {"negatives": form, "class_weight": "balanced", "random_state": 0}
    plain = mm.LatentSVC(**settings).fit(X, y)
    svm = mm.LatentSVC(positive="fault", **settings).fit(X, names)
    assert svm.classes_.tolist() == ["fault", "ok"]
    assert svm.positive_ == "fault"
    assert np.array_equal(svm.coef_, plain.coef_)
    assert svm.certificate_ == plain.certificate_
    svm.save(tmp_path / "model")
    for one in (svm, mm.load(tmp_path / "model")):
        assert np.array_equal(one.predict(X) == "fault", plain.predict(X) == 1)
        assert np.array_equal(one.decision_function(X), -plain.decision_function(X))  # above zero is classes_[1]
        assert np.array_equal(one.predict_latent(X), plain.predict_latent(X))
        assert np.array_equal(one.complete(X, names), plain.complete(X, y))
        assert one.objective(X, names) == plain.objective(X, y)
        assert one.certify(X, names) == plain.certify(X, y)
    assert not svm.complete(X, names)[names == "ok"].any()


@pytest.mark.rounding
def test_measures_of_scikit_learn_know_which_class_a_score_is_for(faults):
    X, _, names = faults
    svm = mm.LatentSVC(positive="fault", random_state=0)
    assert cross_val_score(svm, X, names, cv=2, scoring="roc_auc").min() > 0.7
    precision = make_scorer(average_precision_score, response_method="decision_function", pos_label="fault")
    search = GridSearchCV(svm, {"positive": ["fault", "ok"]}, cv=2, scoring=precision).fit(X, names)
    assert search.best_params_ == {"positive": "fault"}
    assert search.best_score_ > 0.7
    assert mm.path(svm, X, names, C=[0.1, 1.0])[1].positive_ == "fault"


def test_a_warm_start_does_not_turn_the_classes_round(faults):
    X, _, names = faults
    svm = mm.LatentSVC(positive="fault", warm_start=True, random_state=0).fit(X, names)
    svm.set_params(positive="ok")
    assert svm.positive_ == "fault"  # until the next fit
    assert np.array_equal(svm.fit(X, names).coef_, mm.LatentSVC(positive="ok", random_state=0).fit(X, names).coef_)


def test_text_that_leaves_the_positive_class_open_is_warned_of(faults):
    X, y, names = faults
    with pytest.warns(UserWarning, match=r"takes 'ok' as the class.*give positive='fault'") as caught:
        assert mm.LatentSVC(random_state=0).fit(X, names).positive_ == "ok"
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for labels, positive in ((y, 1), (2 * y - 1, 1), (y == 1, True), (names, "fault")):
            given = positive if labels is names else None
            assert mm.LatentSVC(positive=given, random_state=0).fit(X, labels).positive_ == positive
        three = np.array(["a", "b", "c"])[np.arange(len(X)) % 3]
        assert mm.LatentSVC(random_state=0, max_bounds=20).fit(X, three).positive_ is None


GOOD = bags_of(np.random.default_rng(0), n=10)
RAGGED = [[[1.0], [1.0, 2.0]] if k == 1 else x for k, x in enumerate(GOOD[0])]
REFUSED = {
    "ragged": ({}, (RAGGED, GOOD[1]), "Bag 1 has rows of different lengths"),
    "offsets": ({}, (Bags(np.ones((6, 2)), np.array([0, 2, 5])), [0, 1]), "from 0 to the number of instances, 6"),
    "empty by offset": ({}, (Bags(np.ones((6, 2)), np.array([0, 6, 6])), [0, 1]), "Bag 1 is empty"),
    "no labels": ({}, (GOOD[0], None), "requires y to be passed"),
    "continuous": ({}, (GOOD[0], np.linspace(0, 1, 10)), "no class label"),
    "NaN in labels": ({}, (GOOD[0], np.where(GOOD[1], np.nan, 0.0)), "y contains NaN"),
    "negatives": ({"negatives": "all"}, GOOD, r"negatives must be one of \['bag', 'instances'\], got 'all'"),
    "solver": ({"solver": "newton"}, GOOD, "solver must be one of"),
    "too few Z": ({}, (*GOOD, np.zeros(9, int)), "Z has 9 latent values, X has 10 examples"),
    "Z too large": ({}, (*GOOD, np.full(10, 99)), "Instance 99 of bag 1 does not exist"),
    "Z negative": ({}, (*GOOD, np.full(10, -1)), "Instance -1 of bag 1 does not exist"),
    "Z of floats": ({}, (*GOOD, np.zeros(10)), "a whole number; got float64"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_in_plain_words(case):
    settings, data, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        mm.LatentSVC(**settings).fit(*data)


def test_prediction_refuses_bags_of_another_width(data):
    X, y = data
    svm = mm.LatentSVC(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="Bag 0 has 3 features per instance, 4 are needed"):
        svm.predict([x[:, :3] for x in X])
    with pytest.raises(ValueError, match=r"y\[0\] is 7, a class that was not in the training data"):
        svm.objective(X, np.full(len(X), 7))


def test_class_weights_are_factors_of_C(data):
    X, y = data
    by_class = mm.LatentSVC(class_weight={0: 1.0, 1: 3.0}, **TIGHT).fit(X, y)
    by_bag = mm.LatentSVC(**TIGHT).fit(X, y, sample_weight=np.where(y == 1, 3.0, 1.0))
    assert by_class.objective_ == pytest.approx(by_bag.objective_, rel=1e-9)
