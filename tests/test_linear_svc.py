import warnings

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from estimator_cases import BAD_INPUTS, BAD_SETTINGS, D, N, bad_regularizers, good
from generators import many_classes, two_classes
from sklearn import svm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import LinearSVC, path
from maxmargin.regularizers import L2, Blocks, Bounded, GaussianPrior, GroupNorm
from maxmargin.solvers import DualCoordinate

TIGHT = {"tol": 1e-8, "max_passes": 50_000, "random_state": 0}
SOLVERS = ["auto", "dual_coordinate"]


@pytest.fixture
def two(rng):
    return two_classes(rng)


@pytest.fixture
def four(rng):
    return many_classes(rng)


def _binary_objective(coef, intercept, X, sign, C, *, squared=False, scaling=1.0, weight=1.0):
    loss = np.maximum(0.0, 1.0 - sign * (X @ coef + intercept))
    return 0.5 * (coef @ coef + (intercept / scaling) ** 2) + np.sum(C * weight * (loss**2 if squared else loss))


def _joint_objective(estimator, X, y, C, cost=None):
    classes = np.unique(y)
    label = np.searchsorted(classes, y)
    score = X @ estimator.coef_.T + estimator.intercept_
    cost = 1.0 - np.eye(classes.size) if cost is None else cost
    loss = (cost[label] + score).max(axis=1) - score[np.arange(y.size), label]
    return 0.5 * (np.sum(estimator.coef_**2) + np.sum(estimator.intercept_**2)) + C * loss.sum()


def _quiet_reference(**settings):
    return svm.LinearSVC(tol=1e-9, max_iter=2_000_000, random_state=0, **settings)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize(("intercept", "scaling"), [(False, 1.0), (True, 1.0), (True, 3.0)])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_two_classes_reach_the_optimum_of_scikit_learn(two, loss, intercept, scaling, C, solver):
    X, y = two
    shared = {"loss": loss, "C": C, "fit_intercept": intercept, "intercept_scaling": scaling}
    ours = LinearSVC(**shared, solver=solver, **TIGHT).fit(X, y)
    theirs = _quiet_reference(dual=True, **shared).fit(X, y)
    values = [
        _binary_objective(e.coef_[0], np.ravel(e.intercept_)[0], X, y, C, squared=loss != "hinge", scaling=scaling)
        for e in (ours, theirs)
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-5)
    assert ours.certificate_.upper == pytest.approx(values[0], rel=1e-10)
    assert ours.certificate_.lower <= values[1] * (1 + 1e-9)
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-2 * np.abs(theirs.coef_).max())


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_crammer_singer_reaches_the_optimum_of_scikit_learn(four, C, intercept):
    X, y = four
    ours = LinearSVC(C=C, fit_intercept=intercept, **TIGHT).fit(X, y)
    theirs = _quiet_reference(multi_class="crammer_singer", C=C, fit_intercept=intercept).fit(X, y)
    value = _joint_objective(ours, X, y, C)
    assert value == pytest.approx(_joint_objective(theirs, X, y, C), rel=1e-5)
    assert ours.certificate_.upper == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_one_vs_rest_reaches_the_optimum_of_scikit_learn(four, loss):
    X, y = four
    ours = LinearSVC(multi_class="ovr", loss=loss, **TIGHT).fit(X, y)
    theirs = _quiet_reference(multi_class="ovr", loss=loss, dual=True).fit(X, y)

    def value(e):
        return sum(
            _binary_objective(e.coef_[k], e.intercept_[k], X, np.where(y == k, 1, -1), 1.0, squared=loss != "hinge")
            for k in range(4)
        )

    assert value(ours) == pytest.approx(value(theirs), rel=1e-5)
    assert ours.certificate_.upper == pytest.approx(value(ours), rel=1e-10)
    assert np.array_equal(ours.predict(X), theirs.predict(X))


def test_one_vs_rest_of_two_classes_equals_the_binary_problem(two):
    X, y = two
    first, second = (LinearSVC(multi_class=m, **TIGHT).fit(X, y) for m in ("ovr", "crammer_singer"))
    assert np.array_equal(first.coef_, second.coef_)
    assert first.coef_.shape == (1, X.shape[1])


def test_sample_weight_equals_repetition(two, rng):
    X, y = two
    times = rng.integers(0, 4, size=y.size)
    weighted = LinearSVC(**TIGHT).fit(X, y, sample_weight=times)
    repeated = LinearSVC(**TIGHT).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.certificate_.upper == pytest.approx(repeated.certificate_.upper, rel=1e-7)
    assert np.allclose(weighted.coef_, repeated.coef_, atol=1e-3)


@pytest.mark.parametrize("settings", [{}, {"multi_class": "ovr", "loss": "squared_hinge"}])
def test_sample_weight_equals_repetition_with_many_classes(four, rng, settings):
    X, y = four
    times = rng.integers(0, 3, size=y.size)
    weighted = LinearSVC(**settings, **TIGHT).fit(X, y, sample_weight=times)
    repeated = LinearSVC(**settings, **TIGHT).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.certificate_.upper == pytest.approx(repeated.certificate_.upper, rel=1e-7)


@pytest.mark.parametrize("class_weight", [{-1: 3.0, 1: 0.5}, "balanced"])
def test_class_weight_reaches_the_optimum_of_scikit_learn(two, class_weight):
    X, y = two
    ours = LinearSVC(class_weight=class_weight, **TIGHT).fit(X, y)
    theirs = _quiet_reference(class_weight=class_weight, loss="hinge").fit(X, y)
    factor = {c: y.size / (2 * np.sum(y == c)) for c in (-1, 1)} if class_weight == "balanced" else class_weight
    weight = np.where(y == 1, factor[1], factor[-1])
    values = [_binary_objective(e.coef_[0], e.intercept_[0], X, y, 1.0, weight=weight) for e in (ours, theirs)]
    assert values[0] == pytest.approx(values[1], rel=1e-5)
    assert ours.certificate_.upper == pytest.approx(values[0], rel=1e-10)


def test_class_weight_and_sample_weight_multiply(two, rng):
    X, y = two
    sample = rng.uniform(0.5, 2.0, size=y.size)
    both = LinearSVC(class_weight={-1: 3.0, 1: 0.5}, **TIGHT).fit(X, y, sample_weight=sample)
    one = LinearSVC(**TIGHT).fit(X, y, sample_weight=sample * np.where(y == 1, 0.5, 3.0))
    assert both.certificate_.upper == pytest.approx(one.certificate_.upper, rel=1e-7)


def test_cost_matrix_sets_the_margins(four):
    X, y = four
    cost = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0))) ** 1.5
    cost[0, 3] = 9.0
    ours = LinearSVC(cost=cost, **TIGHT).fit(X, y)
    value = _joint_objective(ours, X, y, 1.0, cost)
    assert ours.certificate_.upper == pytest.approx(value, rel=1e-10)
    plain = LinearSVC(**TIGHT).fit(X, y)
    assert value < _joint_objective(plain, X, y, 1.0, cost) * 0.999
    same = LinearSVC(cost=1.0 - np.eye(4), **TIGHT).fit(X, y)
    assert np.array_equal(same.coef_, plain.coef_)


@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
def test_dense_sparse_and_float32_have_the_same_optimum(four, multi_class):
    X, y = four
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    settings = TIGHT | {"multi_class": multi_class}
    dense = LinearSVC(**settings).fit(X, y)
    for other in (sp.csr_matrix(X), sp.csc_matrix(X), sp.csr_array(X), sp.coo_matrix(X), np.asfortranarray(X)):
        found = LinearSVC(**settings).fit(other, y)
        assert found.certificate_.upper == pytest.approx(dense.certificate_.upper, rel=1e-7)
        assert np.allclose(found.decision_function(other), dense.decision_function(X), atol=5e-3)
    narrow = LinearSVC(**settings).fit(X.astype(np.float32), y)
    assert narrow.certificate_.upper == pytest.approx(dense.certificate_.upper, rel=1e-5)
    narrow_sparse = LinearSVC(**settings).fit(sp.csr_matrix(X, dtype=np.float32), y)
    assert narrow_sparse.certificate_.upper == pytest.approx(narrow.certificate_.upper, rel=1e-7)


def _disordered(X, rng):
    """The same matrix with every entry split in five and the entries of each row shuffled."""
    whole = sp.csr_matrix(X)
    data, indices, indptr = [], [], [0]
    for r in range(whole.shape[0]):
        row = whole[r]
        # Five equal parts have a fifth of the squared norm: steps that believed it would be five times too long.
        values, columns = np.tile(row.data / 5, 5), np.tile(row.indices, 5)
        shuffled = rng.permutation(columns.size)
        data.append(values[shuffled])
        indices.append(columns[shuffled])
        indptr.append(indptr[-1] + columns.size)
    return sp.csr_matrix((np.concatenate(data), np.concatenate(indices), indptr), shape=whole.shape)


@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
def test_unsorted_and_duplicate_entries_mean_their_sum(four, multi_class, rng):
    X, y = four
    messy = _disordered(X, rng)
    before = messy.data.copy(), messy.indices.copy()
    settings = TIGHT | {"multi_class": multi_class}
    found = LinearSVC(**settings).fit(messy, y)
    assert found.certificate_.upper == pytest.approx(LinearSVC(**settings).fit(X, y).certificate_.upper, rel=1e-7)
    assert np.array_equal(messy.data, before[0])
    assert np.array_equal(messy.indices, before[1])


def test_64_bit_sparse_structure_gives_the_same_bits(two):
    X, y = two
    narrow = sp.csr_matrix(X)
    wide = narrow.copy()
    wide.indices, wide.indptr = narrow.indices.astype(np.int64), narrow.indptr.astype(np.int64)
    assert np.array_equal(LinearSVC(**TIGHT).fit(wide, y).coef_, LinearSVC(**TIGHT).fit(narrow, y).coef_)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
def test_empty_rows_cost_what_the_intercept_leaves(two, store, intercept):
    X, y = two
    X[::3] = 0.0
    ours = LinearSVC(fit_intercept=intercept, **TIGHT).fit(store(X), y)
    theirs = _quiet_reference(loss="hinge", fit_intercept=intercept).fit(X, y)
    value = _binary_objective(theirs.coef_[0], np.ravel(theirs.intercept_)[0], X, y, 1.0)
    assert ours.certificate_.upper == pytest.approx(value, rel=1e-5)
    assert ours.certificate_.relative_gap <= 1e-8


def test_matrix_without_any_entry_is_fitted(four):
    _, y = four
    found = LinearSVC(fit_intercept=False, **TIGHT).fit(sp.csr_matrix((y.size, 3)), y)
    assert found.certificate_.upper == pytest.approx(y.size)
    assert not found.coef_.any()


def test_small_integers_are_taken_as_they_are(two):
    X, y = two
    whole = np.round(3 * X).astype(np.int8)
    a, b = LinearSVC(**TIGHT).fit(whole, y), LinearSVC(**TIGHT).fit(whole.astype(float), y)
    assert a.certificate_.upper == pytest.approx(b.certificate_.upper, rel=1e-7)


def test_input_is_never_changed(four):
    X, y = four
    kept, stored = X.copy(), sp.csr_matrix(X)
    LinearSVC().fit(X, y)
    LinearSVC().fit(stored, y)
    assert np.array_equal(X, kept)
    assert np.array_equal(stored.toarray(), kept)


@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
def test_warm_start_needs_fewer_passes_for_the_same_optimum(four, multi_class):
    X, y = four
    settings = {"tol": 1e-5, "multi_class": multi_class, "solver": "dual_coordinate", "random_state": 0}
    cold = LinearSVC(C=1.2, **settings).fit(X, y)
    warm = LinearSVC(C=1.0, warm_start=True, **settings).fit(X, y).set_params(C=1.2).fit(X, y)
    assert len(warm.history_) < len(cold.history_)
    assert warm.certificate_.upper == pytest.approx(cold.certificate_.upper, rel=2e-5)
    assert warm.certificate_.relative_gap <= 1e-5


def test_warm_start_on_data_of_another_size_starts_anew(two):
    X, y = two
    found = LinearSVC(warm_start=True, **TIGHT).fit(X, y).fit(X[:50], y[:50])
    expected = LinearSVC(**TIGHT).fit(X[:50], y[:50])
    assert found.certificate_.upper == pytest.approx(expected.certificate_.upper, rel=1e-7)


def test_warm_start_with_other_labels_reaches_their_optimum(two):
    X, y = two
    found = LinearSVC(warm_start=True, **TIGHT).fit(X, y).fit(X, -y)
    assert found.certificate_.upper == pytest.approx(LinearSVC(**TIGHT).fit(X, -y).certificate_.upper, rel=1e-7)


def test_path_gives_every_optimum_with_its_certificate_and_hot_starts(four):
    X, y = four
    values = [0.1, 0.12, 0.14]
    estimator = LinearSVC(tol=1e-5, solver="dual_coordinate", random_state=0)
    steps = path(estimator, X, y, C=values)
    alone = [clone(estimator).set_params(C=c).fit(X, y) for c in values]
    assert [s.C for s in steps] == values
    assert not any(s.warm_start for s in steps)
    assert not hasattr(estimator, "coef_")
    for step, expected in zip(steps, alone, strict=True):
        assert step.certificate_.relative_gap <= 1e-5
        assert step.certificate_.upper == pytest.approx(expected.certificate_.upper, rel=2e-5)
    assert sum(s.n_passes_ for s in steps[1:]) < sum(s.n_passes_ for s in alone[1:])


def test_path_passes_fit_parameters_on(two):
    X, y = two
    weight = np.where(y > 0, 5.0, 1.0)
    (step,) = path(LinearSVC(**TIGHT), X, y, C=[0.5], sample_weight=weight)
    expected = LinearSVC(C=0.5, **TIGHT).fit(X, y, sample_weight=weight)
    assert step.certificate_.upper == pytest.approx(expected.certificate_.upper, rel=1e-7)


@pytest.mark.parametrize("memory", [80 * 16, "2KB", "1 MiB", 10**9, "1.5kb"])
def test_memory_limits_do_not_change_the_optimum(two, memory):
    X, y = two
    found = LinearSVC(memory=memory, solver="dual_coordinate", **TIGHT).fit(X, y)
    assert found.certificate_.upper == pytest.approx(LinearSVC(**TIGHT).fit(X, y).certificate_.upper, rel=1e-7)


@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
def test_threads_certify_the_same_gap(four, multi_class):
    X, y = four
    settings = {"tol": 1e-6, "multi_class": multi_class, "random_state": 0}
    one, two = (LinearSVC(n_jobs=n, **settings).fit(X, y) for n in (1, 2))
    for found in (one, two):
        assert found.certificate_.relative_gap <= 1e-6
        assert found.certify(X, y).relative_gap <= 1e-6
    assert two.certificate_.upper == pytest.approx(one.certificate_.upper, rel=2e-6)


@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
def test_same_random_state_gives_the_same_bits(four, multi_class):
    X, y = four
    settings = {"multi_class": multi_class, "solver": "dual_coordinate"}
    a, b, c = (LinearSVC(random_state=seed, **settings).fit(X, y) for seed in (5, 5, 6))
    assert np.array_equal(a.coef_, b.coef_)
    assert np.array_equal(a.dual_coef_, b.dual_coef_)
    assert not np.array_equal(a.dual_coef_, c.dual_coef_)


def _interrupt_at(monkeypatch, call):
    """Ctrl-C during the given pass, counted over all classes."""
    step, calls = DualCoordinate.step, []

    def stepping(self, problem, state):
        calls.append(None)
        if len(calls) == call:
            raise KeyboardInterrupt
        return step(self, problem, state)

    monkeypatch.setattr(DualCoordinate, "step", stepping)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
def test_interrupt_keeps_the_best_weights_warns_and_certifies(four, multi_class, n_jobs, monkeypatch):
    X, y = four
    settings = {"multi_class": multi_class, "solver": "dual_coordinate", "random_state": 0, "n_jobs": n_jobs}
    optimum = LinearSVC(tol=1e-8, max_passes=50_000, **settings).fit(X, y).certificate_
    _interrupt_at(monkeypatch, 6)
    with pytest.warns(ConvergenceWarning, match="LinearSVC was interrupted, at a relative gap of"):
        found = LinearSVC(tol=1e-8, **settings).fit(X, y)
    both = found.certificate_
    assert both.lower <= optimum.upper
    assert both.upper >= optimum.lower
    assert both.relative_gap > 1e-8
    again = found.certify(X, y)
    assert (again.lower, again.upper) == pytest.approx((both.lower, both.upper), rel=1e-9)
    assert found.predict(X).shape == y.shape


def test_interrupt_ends_the_classes_not_yet_begun_after_one_pass(four, monkeypatch):
    X, y = four
    _interrupt_at(monkeypatch, 3)
    with pytest.warns(ConvergenceWarning, match="was interrupted"):
        found = LinearSVC(multi_class="ovr", tol=1e-9, solver="dual_coordinate").fit(X, y)
    assert len(found.history_) == 2 + 3


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"multi_class": "ovr"},
        {"multi_class": "ovr", "loss": "squared_hinge"},
        {"fit_intercept": False},
        {"intercept_scaling": 4.0},
        {"class_weight": "balanced"},
        {"regularizer": GaussianPrior(0.2, 3.0)},
        {"regularizer": Bounded(0.0, [1])},
        {"regularizer": GroupNorm([[0, 1], [2, 3, 4]])},
        {"regularizer": GaussianPrior(0.0, 0.5 * np.eye(5) + 0.5)},
    ],
    ids=str,
)
def test_certify_recomputes_the_certificate(four, settings, rng):
    X, y = four
    weight = rng.uniform(0.5, 2.0, size=y.size)
    found = LinearSVC(tol=1e-4, random_state=0, **settings).fit(X, y, sample_weight=weight)
    again = found.certify(X, y, sample_weight=weight)
    assert again.relative_gap <= 1e-4 * (1 + 1e-6)
    assert (again.lower, again.upper) == pytest.approx((found.certificate_.lower, found.certificate_.upper), rel=1e-9)


def test_certify_on_other_data_keeps_a_true_bracket(two):
    X, y = two
    found = LinearSVC(**TIGHT).fit(X, y)
    part = found.certify(X[:30], y[:30])
    optimum = LinearSVC(**TIGHT).fit(X[:30], y[:30]).certificate_
    assert part.lower <= optimum.upper
    assert part.upper >= optimum.lower
    flipped = found.certify(X, -y)
    assert flipped.lower <= LinearSVC(**TIGHT).fit(X, -y).certificate_.upper


def test_certify_refuses_classes_it_has_not_seen(two):
    X, y = two
    found = LinearSVC().fit(X, y)
    with pytest.raises(ValueError, match=r"y\[0\] is .*7.*, a class that was not in the training data"):
        found.certify(X, np.full(y.size, 7))


def test_too_few_passes_warn_and_the_certificate_stays_true(two):
    X, y = two
    with pytest.warns(ConvergenceWarning, match="stopped after max_passes=2 passes, at a relative gap of"):
        found = LinearSVC(max_passes=2, tol=1e-9, solver="dual_coordinate").fit(X, y)
    optimum = LinearSVC(**TIGHT).fit(X, y).certificate_
    assert found.n_passes_ == 2
    assert found.certificate_.lower <= optimum.upper
    assert found.certificate_.upper >= optimum.lower


def test_goal_that_is_reached_does_not_warn(four):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert LinearSVC(random_state=0).fit(*four).certificate_.relative_gap <= 1e-3


@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
def test_weights_are_the_dual_combination_of_the_rows(four, multi_class):
    X, y = four
    found = LinearSVC(multi_class=multi_class, solver="dual_coordinate", **TIGHT).fit(X, y)
    assert found.dual_coef_.shape == (4, y.size)
    assert np.allclose(found.dual_coef_ @ X, found.coef_, atol=1e-3)
    assert np.allclose(found.dual_coef_.sum(axis=1), found.intercept_, atol=1e-3)


def test_examples_outside_the_support_could_be_dropped(two):
    X, y = two
    found = LinearSVC(solver="dual_coordinate", **TIGHT).fit(X, y)
    kept = found.support_
    assert 0 < kept.size < y.size
    again = LinearSVC(**TIGHT).fit(X[kept], y[kept])
    assert again.certificate_.upper == pytest.approx(found.certificate_.upper, rel=1e-6)


def test_history_has_one_record_per_pass_and_ends_at_the_certificate(two):
    found = LinearSVC(tol=1e-6, solver="dual_coordinate", random_state=0).fit(*two)
    assert len(found.history_) == found.n_passes_
    assert found.history_[-1].upper == found.certificate_.upper


def test_regularizer_is_for_features_and_the_intercept_keeps_l2(rng):
    X, y = two_classes(rng, d=5)
    mean, variance = rng.normal(size=5), rng.uniform(0.5, 2.0, size=5)
    rows = np.hstack([X, np.full((y.size, 1), 2.0)]) * y[:, None]
    arrays = rows, np.ones(y.size), np.arange(y.size), np.ones(y.size)
    settings = TIGHT | {"intercept_scaling": 2.0}

    found = LinearSVC(regularizer=GaussianPrior(mean, variance), **settings).fit(X, y)
    optimum = reference.quadratic(*arrays, mean=np.append(mean, 0.0), covariance=np.append(variance, 1.0))
    assert found.certificate_.upper == pytest.approx(optimum.value, rel=1e-6)
    assert np.allclose(found.coef_[0], optimum.weights[:5], atol=1e-3)
    assert found.intercept_[0] == pytest.approx(2.0 * optimum.weights[5], abs=1e-3)

    found = LinearSVC(regularizer=Bounded([0.0, 0.1], [0, 3]), **settings).fit(X, y)
    floor = np.array([0.0, -np.inf, -np.inf, 0.1, -np.inf, -np.inf])
    optimum = reference.quadratic(*arrays, lower=floor)
    assert found.certificate_.upper == pytest.approx(optimum.value, rel=1e-6)
    assert (found.coef_[0] >= floor[:5]).all()

    groups = [np.array([0, 1]), np.array([2, 3, 4])]
    found = LinearSVC(regularizer=GroupNorm(groups, 2.0), **settings).fit(X, y)
    optimum = reference.group_norm_and_l2(*arrays, groups=groups, strength=2.0, free=[5])
    assert found.certificate_.upper == pytest.approx(optimum.value, rel=1e-6)
    assert found.certificate_.relative_gap <= TIGHT["tol"]


@pytest.mark.parametrize("first", ["l2", "group norm"])
def test_pure_group_norm_beside_l2_is_exact_wherever_it_stands(first, rng):
    X, y = two_classes(rng, d=5)
    groups = [np.array([0, 4]), np.array([2, 3])]
    parts = [([1], L2()), ([0, 4, 2, 3], GroupNorm([[0, 1], [2, 3]], 3.0))]
    regularizer = Blocks(parts if first == "l2" else parts[::-1])
    found = LinearSVC(regularizer=regularizer, fit_intercept=False, **TIGHT).fit(X, y)
    one = np.ones(y.size)
    optimum = reference.group_norm_and_l2(
        X * y[:, None], one, np.arange(y.size), one, groups=groups, strength=3.0, free=[1]
    )
    assert found.certificate_.upper == pytest.approx(optimum.value, rel=1e-6)
    assert found.certificate_.relative_gap <= TIGHT["tol"]
    assert np.allclose(found.coef_[0], optimum.weights, atol=1e-3)
    again = found.certify(X, y)
    assert again.lower <= optimum.value * (1 + 1e-9)
    assert again.relative_gap <= TIGHT["tol"] * (1 + 1e-3)


def _crammer_singer_rows(X, y, n_classes):
    """Every difference of joint features, weights feature by feature, the intercept as the last feature."""
    wide = np.hstack([X, np.ones((y.size, 1))])
    rows, example = [], []
    for i in range(y.size):
        for k in range(n_classes):
            if k != y[i]:
                table = np.zeros((wide.shape[1], n_classes))
                table[:, y[i]], table[:, k] = wide[i], -wide[i]
                rows.append(table.ravel())
                example.append(i)
    return np.array(rows), np.ones(len(rows)), np.array(example), np.ones(y.size)


def test_crammer_singer_regularizer_is_repeated_for_every_class(rng):
    X, y = many_classes(rng, n=30, d=3, k=3)
    arrays = _crammer_singer_rows(X, y, 3)
    mean, variance = rng.normal(size=3), rng.uniform(0.5, 2.0, size=3)
    found = LinearSVC(regularizer=GaussianPrior(mean, variance), **TIGHT).fit(X, y)
    means, variances = np.append(np.repeat(mean, 3), np.zeros(3)), np.append(np.repeat(variance, 3), np.ones(3))
    optimum = reference.quadratic(*arrays, mean=means, covariance=variances)
    assert found.certificate_.upper == pytest.approx(optimum.value, rel=1e-6)

    found = LinearSVC(regularizer=Bounded(-0.1, [1]), **TIGHT).fit(X, y)
    floor = np.full(12, -np.inf)
    floor[3:6] = -0.1
    assert found.certificate_.upper == pytest.approx(reference.quadratic(*arrays, lower=floor).value, rel=1e-6)


def test_crammer_singer_with_a_full_prior_is_written_out_and_exact(rng):
    X, y = many_classes(rng, n=30, d=3, k=3)
    full = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 0.7]])
    found = LinearSVC(regularizer=GaussianPrior(0.0, full), **TIGHT).fit(X, y)
    whole = np.eye(12)
    whole[:9, :9] = np.kron(full, np.eye(3))
    optimum = reference.quadratic(*_crammer_singer_rows(X, y, 3), covariance=whole)
    assert found.certificate_.upper == pytest.approx(optimum.value, rel=1e-6)
    assert found.certify(X, y).relative_gap <= 1e-8 * (1 + 1e-3)
    assert found.dual_coef_.shape == (3, 30)


def test_crammer_singer_with_a_pure_group_norm_is_exact(rng):
    X, y = many_classes(rng, n=30, d=3, k=3)
    groups = [[0, 2], [1]]
    found = LinearSVC(regularizer=GroupNorm(groups, 1.5), **TIGHT).fit(X, y)
    flat = [np.concatenate([[3 * j + k] for j in g]) for k in range(3) for g in groups]
    optimum = reference.group_norm_and_l2(*_crammer_singer_rows(X, y, 3), groups=flat, strength=1.5, free=[9, 10, 11])
    assert found.certificate_.upper == pytest.approx(optimum.value, rel=1e-6)
    assert found.certificate_.relative_gap <= TIGHT["tol"]


def test_explicit_l2_equals_the_default(two):
    X, y = two
    a, b = LinearSVC(**TIGHT).fit(X, y), LinearSVC(regularizer=L2(), **TIGHT).fit(X, y)
    assert a.certificate_.upper == pytest.approx(b.certificate_.upper, rel=1e-7)


@pytest.mark.parametrize("labels", [["no", "yes"], [True, False], [3, -8], [0.0, 2.0]])
def test_labels_of_any_one_type_are_predicted_as_given(two, labels):
    X, sign = two
    y = np.array(labels)[(sign > 0).astype(int)]
    found = LinearSVC(random_state=0).fit(X, y)
    assert np.array_equal(found.classes_, np.unique(y))
    assert set(found.predict(X)) <= set(y)
    assert found.score(X, y) > 0.85
    second = found.classes_[1]
    assert np.array_equal(found.decision_function(X) > 0, found.predict(X) == second)


def test_list_of_string_labels_is_accepted(two):
    X, sign = two
    y = ["yes" if s > 0 else "no" for s in sign]
    assert LinearSVC().fit(X, y).score(X, y) > 0.85


def test_pandas_input_keeps_feature_names(two):
    pandas = pytest.importorskip("pandas")
    X, y = two
    table = pandas.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    found = LinearSVC(random_state=0).fit(table, pandas.Series(y))
    assert list(found.feature_names_in_) == list(table.columns)
    assert np.array_equal(found.coef_, LinearSVC(random_state=0).fit(X, y).coef_)
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(table[table.columns[::-1]])


def test_pandas_string_and_category_labels(two):
    pandas = pytest.importorskip("pandas")
    X, sign = two
    y = pandas.Series(np.where(sign > 0, "yes", "no"))
    for labels in (y, y.astype("category"), y.astype(object)):
        assert LinearSVC().fit(X, labels).score(X, labels) > 0.85


def test_clone_and_parameters_survive(two):
    estimator = LinearSVC(C=2.0, regularizer=GaussianPrior(0.0, 2.0), cost=None, tol=1e-4)
    copied = clone(estimator)
    assert copied.get_params()["C"] == 2.0
    assert copied.get_params()["tol"] == 1e-4
    assert copied.regularizer.covariance == 2.0
    assert not hasattr(clone(LinearSVC().fit(*two)), "coef_")


def test_grid_search_and_pipeline(four):
    X, y = four
    pipeline = make_pipeline(StandardScaler(), LinearSVC(random_state=0))
    search = GridSearchCV(pipeline, {"linearsvc__C": [0.01, 1.0]}, cv=3, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.5
    assert search.best_estimator_[-1].certificate_.relative_gap <= 1e-3


def test_verbose_prints_one_line_with_the_gap(two, capsys):
    LinearSVC(verbose=1, solver="dual_coordinate", random_state=0).fit(*two)
    printed = " ".join(capsys.readouterr().err.split())
    assert "LinearSVC: pass" in printed
    assert "goal 1e-03" in printed
    LinearSVC(random_state=0).fit(*two)
    silent = capsys.readouterr()
    assert silent.out == silent.err == ""


def test_decision_function_shapes_and_values(two, four):
    X, y = two
    found = LinearSVC(random_state=0).fit(X, y)
    assert np.allclose(found.decision_function(X), X @ found.coef_[0] + found.intercept_[0])
    X, y = four
    found = LinearSVC(random_state=0).fit(X, y)
    assert np.allclose(found.decision_function(sp.csr_matrix(X)), X @ found.coef_.T + found.intercept_)
    assert np.array_equal(found.predict(X), found.classes_[found.decision_function(X).argmax(axis=1)])


def test_solver_object_is_used(two):
    X, y = two
    seen = []

    class Counting(DualCoordinate):
        def step(self, problem, state):
            seen.append(1)
            return super().step(problem, state)

    found = LinearSVC(solver=Counting(random_state=0)).fit(X, y)
    assert len(seen) == found.n_passes_


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_bad_inputs_are_refused(case):
    X, y, message = BAD_INPUTS[case]
    with pytest.raises(ValueError, match=message):
        LinearSVC().fit(X, y)


@pytest.mark.parametrize("case", BAD_SETTINGS)
def test_bad_settings_are_refused(case):
    settings, message = BAD_SETTINGS[case]
    with pytest.raises(ValueError, match=message):
        LinearSVC(**settings).fit(*good())


@pytest.mark.parametrize("case", bad_regularizers())
def test_regularizers_that_do_not_fit_are_refused(case):
    regularizer, message = bad_regularizers()[case]
    with pytest.raises(ValueError, match=message):
        LinearSVC(regularizer=regularizer).fit(*good())


THREE = np.arange(N) % 3


@pytest.mark.parametrize(
    ("settings", "y", "message"),
    [
        ({"multi_class": "ovo"}, THREE, r"multi_class must be one of \['crammer_singer', 'ovr'\], got 'ovo'"),
        ({"loss": "squared_hinge"}, THREE, "loss='squared_hinge' has no Crammer–Singer form"),
        ({"cost": np.ones((3, 3))}, THREE, "zeros on the diagonal"),
        ({"cost": np.eye(3) - 1}, THREE, "not negative"),
        ({"cost": np.full((3, 3), np.nan)}, THREE, "must be finite|zeros on the diagonal"),
        ({"cost": 1 - np.eye(2)}, THREE, r"cost must have shape \(3, 3\), one row per class, got \(2, 2\)"),
        ({"cost": 1 - np.eye(3), "multi_class": "ovr"}, THREE, "cost is for Crammer–Singer problems"),
        ({"cost": 1 - np.eye(2)}, good()[1], "cost is for Crammer–Singer problems of three or more classes"),
        ({"intercept_scaling": 0.0}, THREE, "intercept_scaling must be greater than 0"),
        ({"class_weight": {0: -1.0}}, THREE, "class_weight must be finite, not negative"),
        ({"class_weight": {9: 1.0}}, THREE, "factor for 9, which is not among the classes"),
        ({"class_weight": "heavy"}, THREE, "class_weight"),
        ({"class_weight": {0: np.nan}}, THREE, "class_weight"),
        ({"class_weight": {0: np.inf}}, THREE, "class_weight"),
        ({"class_weight": {0: 0.0, 1: 0.0, 2: 0.0}}, THREE, "class_weight|weights are zero"),
        ({}, np.zeros(N), "at least 2 classes, y has one class only: .*0"),
        ({}, ["a"] * N, "one class only: .*'a'"),
        ({}, np.arange(N) + 0.5, "Unknown label type"),
        ({}, ["a", 1] * (N // 2), r"y mixes text and other labels: y\[0\] is 'a', y\[1\] is 1"),
        ({}, np.array([1, "a"] * (N // 2), dtype=object), r"y mixes text and other labels"),
        ({}, [None, 1] * (N // 2), "label|y contains"),
        ({}, np.eye(N)[:, :4], "label|1d array|bad input shape"),
        ({"solver": "interior_point"}, THREE, "solver='interior_point' takes binary"),
    ],
)
def test_bad_labels_and_settings_for_classes_are_refused(settings, y, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC(**settings).fit(good()[0], y)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-np.ones(N), r"sample_weight must not be negative; sample_weight\[0\] is -1"),
        (np.zeros(N), "sample_weight are zero"),
        (np.full(N, np.nan), "sample_weight contains NaN"),
        (np.ones(3), r"sample_weight must have shape .* got shape \(3,\)"),
    ],
)
def test_bad_sample_weights_are_refused(weight, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC().fit(*good(), sample_weight=weight)


def test_wrong_width_and_bad_values_are_refused_when_predicting():
    X, y = good()
    found = LinearSVC().fit(X, y)
    with pytest.raises(ValueError, match="X has 2 features, but LinearSVC is expecting 3 features"):
        found.predict(X[:, :2])
    with pytest.raises(ValueError, match="X contains NaN at row 4, column 2"):
        found.decision_function(BAD_INPUTS["NaN"][0])
    with pytest.raises(ValueError, match="X has 2 features"):
        found.certify(X[:, :2], y)


@pytest.mark.parametrize("use", ["predict", "decision_function"])
def test_unfitted_estimator_says_so(use):
    with pytest.raises(NotFittedError, match="This LinearSVC instance is not fitted yet"):
        getattr(LinearSVC(), use)(np.zeros((1, D)))


@pytest.mark.parametrize("attribute", ["dual_coef_", "support_"])
def test_attributes_of_an_unfitted_estimator_are_absent(attribute):
    with pytest.raises(NotFittedError):
        getattr(LinearSVC(), attribute)
