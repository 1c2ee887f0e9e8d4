import numpy as np
import pytest
import reference
import scipy.sparse as sp
from generators import class_differences, many_classes, two_classes
from interruptions import interrupt_at
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning

from maxmargin import LinearSVC, StructuralSVM, load
from maxmargin.data import open as open_source
from maxmargin.models import SetMeasure
from maxmargin.regularizers import L2, Blocks, Bounded, GaussianPrior, GroupNorm
from maxmargin.solvers import DualCoordinate

TIGHT = {"tol": 1e-8, "max_passes": 50_000, "random_state": 0}


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


@pytest.mark.parametrize("solver", ["auto", "dual_coordinate"])
@pytest.mark.parametrize(("C", "intercept", "scaling"), [(0.01, False, 1.0), (1.0, True, 3.0), (30.0, True, 1.0)])
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


@pytest.mark.parametrize(("C", "intercept"), [(0.01, True), (1.0, False)])
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


def test_warm_start_on_data_of_another_size_starts_anew(two):
    X, y = two
    found = LinearSVC(warm_start=True, **TIGHT).fit(X, y).fit(X[:50], y[:50])
    expected = LinearSVC(**TIGHT).fit(X[:50], y[:50])
    assert found.certificate_.upper == pytest.approx(expected.certificate_.upper, rel=1e-7)


def test_interrupt_ends_the_classes_not_yet_begun_after_one_pass(four, monkeypatch):
    X, y = four
    interrupt_at(monkeypatch, DualCoordinate, "step", 3)
    with pytest.warns(ConvergenceWarning, match="was interrupted"):
        found = LinearSVC(multi_class="ovr", tol=1e-9, solver="dual_coordinate").fit(X, y)
    assert len(found.history_) == 2 + 3


def test_examples_outside_the_support_could_be_dropped(two):
    X, y = two
    found = LinearSVC(solver="dual_coordinate", **TIGHT).fit(X, y)
    kept = found.support_
    assert 0 < kept.size < y.size
    again = LinearSVC(**TIGHT).fit(X[kept], y[kept])
    assert again.certificate_.upper == pytest.approx(found.certificate_.upper, rel=1e-6)


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


def test_crammer_singer_regularizer_is_repeated_for_every_class(rng):
    X, y = many_classes(rng, n=30, d=3, k=3)
    arrays = *class_differences(np.hstack([X, np.ones((y.size, 1))]), y, 1.0 - np.eye(3)), np.ones(y.size)
    mean, variance = rng.normal(size=3), rng.uniform(0.5, 2.0, size=3)
    found = LinearSVC(regularizer=GaussianPrior(mean, variance), **TIGHT).fit(X, y)
    means, variances = np.append(np.repeat(mean, 3), np.zeros(3)), np.append(np.repeat(variance, 3), np.ones(3))
    optimum = reference.quadratic(*arrays, mean=means, covariance=variances)
    assert found.certificate_.upper == pytest.approx(optimum.value, rel=1e-6)

    found = LinearSVC(regularizer=Bounded(-0.1, [1]), **TIGHT).fit(X, y)
    floor = np.full(12, -np.inf)
    floor[3:6] = -0.1
    assert found.certificate_.upper == pytest.approx(reference.quadratic(*arrays, lower=floor).value, rel=1e-6)


def test_decision_function_shapes_and_values(two, four):
    X, y = two
    found = LinearSVC(random_state=0).fit(X, y)
    assert np.allclose(found.decision_function(X), X @ found.coef_[0] + found.intercept_[0])
    X, y = four
    found = LinearSVC(random_state=0).fit(X, y)
    assert np.allclose(found.decision_function(sp.csr_matrix(X)), X @ found.coef_.T + found.intercept_)
    assert np.array_equal(found.predict(X), found.classes_[found.decision_function(X).argmax(axis=1)])


THREE = np.arange(20) % 3


@pytest.mark.parametrize(
    ("settings", "y", "message"),
    [
        ({"cost": np.ones((3, 3))}, THREE, "zeros on the diagonal"),
        ({"cost": 1 - np.eye(3), "multi_class": "ovr"}, THREE, "cost is for Crammer–Singer problems"),
        ({"cost": 1 - np.eye(2)}, np.arange(20) % 2, "cost is for Crammer–Singer problems of three or more classes"),
        ({"class_weight": {0: 0.0, 1: 0.0, 2: 0.0}}, THREE, "class_weight|weights are zero"),
    ],
)
def test_bad_labels_and_settings_for_classes_are_refused(settings, y, message, rng):
    with pytest.raises(ValueError, match=message):
        LinearSVC(**settings).fit(rng.normal(size=(20, 3)), y)


@pytest.mark.parametrize("loss", ["f1", "precision_at_k", "recall_at_k", SetMeasure("precision_at_k", k=3)])
def test_losses_of_all_rows_together(rng, loss, tmp_path):
    X = rng.normal(size=(60, 4))
    y = np.where(X[:, 0] + rng.normal(size=60) > 1.0, "yes", "no")
    svm = LinearSVC(C=0.3, loss=loss, tol=1e-5).fit(X, y)
    model = SetMeasure(loss) if isinstance(loss, str) else loss
    rows = np.column_stack([X, np.ones(60)])
    expected = StructuralSVM(model, C=0.3, tol=1e-5).fit([rows], [(y == "yes").astype(int)])
    assert svm.certificate_.upper == pytest.approx(expected.certificate_.upper, rel=2e-5)
    assert np.allclose(svm.dual_coef_ @ X, svm.coef_, atol=1e-2)
    svm.save(tmp_path / "svm")
    again = load(tmp_path / "svm")
    assert again.certify(X, y).lower == pytest.approx(svm.certificate_.lower)
    assert np.array_equal(again.predict(X), svm.predict(X))
    warm = again.set_params(warm_start=True).fit(sp.csr_matrix(X), y)
    assert warm.n_passes_ < svm.n_passes_
    assert warm.set_params(loss="hinge").fit(X, y).certificate_.relative_gap <= 1e-5


def test_the_error_rate_of_all_rows_is_the_hinge(rng):
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] + rng.normal(size=40) > 0).astype(int)
    together, apart = (LinearSVC(C=0.3, loss=loss, tol=1e-6).fit(X, y) for loss in (SetMeasure("error_rate"), "hinge"))
    assert together.certificate_.upper == pytest.approx(apart.certificate_.upper, rel=2e-6)
    assert np.allclose(together.coef_, apart.coef_, atol=1e-2)


def test_losses_of_all_rows_together_say_what_they_need(rng):
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    for fit in (
        lambda svm: svm.fit(open_source(X, labels=y)),
        lambda svm: svm.partial_fit(X, y),
        lambda svm: svm.fit(X, y, cluster="local:2"),
    ):
        with pytest.raises(ValueError, match="takes rows in the memory of this process"):
            fit(LinearSVC(loss="f1"))
    with pytest.raises(ValueError, match="is for two classes"):
        LinearSVC(loss="f1").fit(X, np.arange(30) % 3)
    with pytest.raises(ValueError, match="is for two classes, without class_weight"):
        LinearSVC(loss="f1", class_weight="balanced").fit(X, y)
    with pytest.raises(ValueError, match="knows no sample_weight"):
        LinearSVC(loss="f1").fit(X, y, sample_weight=np.ones(30))
    with pytest.raises(ValueError, match="'f1'"):
        LinearSVC(loss="f2").fit(X, y)
