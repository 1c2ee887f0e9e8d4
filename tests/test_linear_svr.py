import numpy as np
import pytest
import reference
import scipy.sparse as sp
from estimator_cases import BAD_INPUTS, BAD_SETTINGS, D, N, bad_regularizers, good
from sklearn import svm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import LinearSVR, path
from maxmargin.regularizers import Bounded, GaussianPrior, GroupNorm
from maxmargin.solvers import DualCoordinate

TIGHT = {"tol": 1e-8, "max_passes": 50_000, "random_state": 0}
LOSSES = ["epsilon_insensitive", "squared_epsilon_insensitive"]


@pytest.fixture
def line(rng):
    X = rng.normal(size=(80, 5))
    return X, X @ rng.normal(size=5) + 0.7 + 0.3 * rng.normal(size=80)


def _objective(e, X, y, C, epsilon, loss, scaling=1.0, weight=1.0):
    intercept = np.ravel(e.intercept_)[0]
    excess = np.maximum(0.0, np.abs(X @ e.coef_ + intercept - y) - epsilon)
    paid = excess if loss == LOSSES[0] else excess**2
    return 0.5 * (e.coef_ @ e.coef_ + (intercept / scaling) ** 2) + C * np.sum(weight * paid)


@pytest.mark.parametrize("solver", ["auto", "dual_coordinate"])
@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
@pytest.mark.parametrize(("intercept", "scaling"), [(False, 1.0), (True, 1.0), (True, 3.0)])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("loss", LOSSES)
def test_optimum_equals_that_of_scikit_learn(line, loss, epsilon, intercept, scaling, C, solver):
    X, y = line
    shared = {"loss": loss, "C": C, "epsilon": epsilon, "fit_intercept": intercept, "intercept_scaling": scaling}
    ours = LinearSVR(**shared, solver=solver, **TIGHT).fit(X, y)
    theirs = svm.LinearSVR(**shared, dual=True, tol=1e-9, max_iter=2_000_000, random_state=0).fit(X, y)
    values = [_objective(e, X, y, C, epsilon, loss, scaling) for e in (ours, theirs)]
    assert values[0] == pytest.approx(values[1], rel=1e-5)
    assert ours.certificate_.upper == pytest.approx(values[0], rel=1e-10)
    assert ours.certificate_.lower <= values[1] * (1 + 1e-9)
    assert ours.certificate_.relative_gap <= 1e-8


@pytest.mark.parametrize("loss", LOSSES)
def test_sample_weight_equals_repetition(line, loss, rng):
    X, y = line
    times = rng.integers(0, 4, size=y.size)
    weighted = LinearSVR(loss=loss, **TIGHT).fit(X, y, sample_weight=times)
    repeated = LinearSVR(loss=loss, **TIGHT).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.certificate_.upper == pytest.approx(repeated.certificate_.upper, rel=1e-7)
    assert np.allclose(weighted.coef_, repeated.coef_, atol=1e-3)


def test_dense_sparse_and_float32_have_the_same_optimum(line):
    X, y = line
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    X[3] = 0.0
    dense = LinearSVR(**TIGHT).fit(X, y)
    wide = sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for other in (sp.csr_matrix(X), sp.csc_array(X), wide):
        found = LinearSVR(**TIGHT).fit(other, y)
        assert found.certificate_.upper == pytest.approx(dense.certificate_.upper, rel=1e-7)
        assert np.allclose(found.predict(other), dense.predict(X), atol=1e-2)
    narrow = LinearSVR(**TIGHT).fit(X.astype(np.float32), y.astype(np.float32))
    assert narrow.certificate_.upper == pytest.approx(dense.certificate_.upper, rel=1e-5)


def test_regularizers_agree_with_cone_solver(line, rng):
    """Both sides of the tube as two rows of one example: they are never violated together."""
    X, y = line
    epsilon, n = 0.2, y.size
    wide = np.hstack([X, np.ones((n, 1))])
    rows = np.stack([wide, -wide], axis=1).reshape(2 * n, -1)
    loss = np.stack([y - epsilon, -y - epsilon], axis=1).ravel()
    arrays = rows, loss, np.repeat(np.arange(n), 2), np.ones(n)
    settings = TIGHT | {"epsilon": epsilon}

    mean, variance = rng.normal(size=5), rng.uniform(0.5, 2.0, size=5)
    found = LinearSVR(regularizer=GaussianPrior(mean, variance), **settings).fit(X, y)
    optimum = reference.quadratic(*arrays, mean=np.append(mean, 0.0), covariance=np.append(variance, 1.0))
    assert found.certificate_.upper == pytest.approx(optimum.value, rel=1e-6)
    assert np.allclose(found.coef_, optimum.weights[:5], atol=1e-3)

    found = LinearSVR(regularizer=Bounded(0.0), **settings).fit(X, y)
    optimum = reference.quadratic(*arrays, lower=np.append(np.zeros(5), -np.inf))
    assert found.certificate_.upper == pytest.approx(optimum.value, rel=1e-6)
    assert found.coef_.min() == 0.0

    groups = [np.array([0, 4]), np.array([1, 2]), np.array([3])]
    found = LinearSVR(regularizer=GroupNorm(groups, 20.0), **settings).fit(X, y)
    optimum = reference.group_norm_and_l2(*arrays, groups=groups, strength=20.0, free=[5])
    assert found.certificate_.upper == pytest.approx(optimum.value, rel=1e-6)


def test_target_inside_the_tube_costs_nothing(line):
    X, _ = line
    found = LinearSVR(epsilon=1.0, **TIGHT).fit(X, np.full(80, 0.5))
    assert found.certificate_.upper == found.certificate_.lower == 0.0
    assert not found.coef_.any()
    assert not found.support_.size


def test_warm_start_needs_fewer_passes_for_the_same_optimum(line):
    X, y = line
    settings = {"tol": 1e-6, "solver": "dual_coordinate", "random_state": 0}
    cold = LinearSVR(C=1.1, **settings).fit(X, y)
    warm = LinearSVR(C=1.0, warm_start=True, **settings).fit(X, y).set_params(C=1.1).fit(X, y)
    assert warm.n_passes_ < cold.n_passes_
    assert warm.certificate_.upper == pytest.approx(cold.certificate_.upper, rel=2e-6)


def test_path_gives_every_optimum(line):
    X, y = line
    for step in path(LinearSVR(**TIGHT), X, y, C=[0.1, 1.0]):
        expected = LinearSVR(C=step.C, **TIGHT).fit(X, y)
        assert step.certificate_.upper == pytest.approx(expected.certificate_.upper, rel=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_certify_recomputes_the_certificate(line, loss, rng):
    X, y = line
    weight = rng.uniform(0.0, 2.0, size=y.size)
    weight[:5] = 0.0
    found = LinearSVR(loss=loss, intercept_scaling=2.0, random_state=0).fit(X, y, sample_weight=weight)
    again = found.certify(X, y, sample_weight=weight)
    assert (again.lower, again.upper) == pytest.approx((found.certificate_.lower, found.certificate_.upper), rel=1e-9)


def test_weights_are_the_dual_combination_of_the_rows(line):
    X, y = line
    found = LinearSVR(C=0.5, **TIGHT).fit(X, y)
    assert np.abs(found.dual_coef_).max() <= 0.5 * (1 + 1e-9)
    assert np.allclose(found.dual_coef_[0] @ X, found.coef_, atol=1e-3)


def test_interrupt_keeps_the_best_weights_warns_and_certifies(line, monkeypatch):
    X, y = line
    optimum = LinearSVR(**TIGHT).fit(X, y).certificate_
    step, calls = DualCoordinate.step, []

    def stepping(self, problem, state):
        calls.append(None)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return step(self, problem, state)

    monkeypatch.setattr(DualCoordinate, "step", stepping)
    with pytest.warns(ConvergenceWarning, match="LinearSVR was interrupted"):
        found = LinearSVR(tol=1e-9, solver="dual_coordinate").fit(X, y)
    assert found.certificate_.lower <= optimum.upper
    assert found.certificate_.upper >= optimum.lower
    again = found.certify(X, y)
    assert (again.lower, again.upper) == pytest.approx((found.certificate_.lower, found.certificate_.upper), rel=1e-9)


def test_too_few_passes_warn(line):
    with pytest.warns(ConvergenceWarning, match="stopped after max_passes=1 passes"):
        LinearSVR(max_passes=1, tol=1e-9, solver="dual_coordinate").fit(*line)


def test_same_random_state_gives_the_same_bits(line):
    a, b, c = (LinearSVR(random_state=s, solver="dual_coordinate").fit(*line) for s in (1, 1, 2))
    assert np.array_equal(a.dual_coef_, b.dual_coef_)
    assert not np.array_equal(a.dual_coef_, c.dual_coef_)


def test_threads_and_memory_limits_do_not_change_the_optimum(line):
    expected = LinearSVR(**TIGHT).fit(*line).certificate_.upper
    for settings in ({"n_jobs": 2}, {"memory": 80 * 16}, {"memory": "1MB"}):
        found = LinearSVR(solver="dual_coordinate", **settings, **TIGHT).fit(*line)
        assert found.certificate_.upper == pytest.approx(expected, rel=1e-7)
        assert found.certificate_.relative_gap <= 1e-8


def test_predictions_shapes_and_pipeline(line):
    X, y = line
    found = LinearSVR(random_state=0).fit(X, y)
    assert found.coef_.shape == (5,)
    assert isinstance(found.intercept_, float)
    assert np.allclose(found.predict(X), X @ found.coef_ + found.intercept_)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), clone(found)), {"linearsvr__C": [1e-3, 1.0]}, cv=3, error_score="raise"
    ).fit(X, y)
    assert search.best_params_ == {"linearsvr__C": 1.0}
    assert search.best_score_ > 0.8


def test_pandas_input_keeps_feature_names(line):
    pandas = pytest.importorskip("pandas")
    X, y = line
    found = LinearSVR().fit(pandas.DataFrame(X, columns=list("abcde")), pandas.Series(y))
    assert list(found.feature_names_in_) == list("abcde")


def test_integer_targets_are_taken_as_numbers(line):
    X, y = line
    whole = np.round(3 * y).astype(int)
    a, b = LinearSVR(**TIGHT).fit(X, whole), LinearSVR(**TIGHT).fit(X, whole.astype(float))
    assert a.certificate_.upper == pytest.approx(b.certificate_.upper, rel=1e-7)


def test_verbose_prints_one_line_with_the_gap(line, capsys):
    LinearSVR(verbose=1, solver="dual_coordinate").fit(*line)
    assert "LinearSVR: pass" in capsys.readouterr().err


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_bad_inputs_are_refused(case):
    X, y, message = BAD_INPUTS[case]
    with pytest.raises(ValueError, match=message):
        LinearSVR().fit(X, y)


@pytest.mark.parametrize("case", BAD_SETTINGS)
def test_bad_settings_are_refused(case):
    settings, message = BAD_SETTINGS[case]
    with pytest.raises(ValueError, match=message):
        LinearSVR(**settings).fit(*good())


@pytest.mark.parametrize("case", bad_regularizers())
def test_regularizers_that_do_not_fit_are_refused(case):
    regularizer, message = bad_regularizers()[case]
    with pytest.raises(ValueError, match=message):
        LinearSVR(regularizer=regularizer).fit(*good())


@pytest.mark.parametrize(
    ("settings", "y", "message"),
    [
        ({"epsilon": -0.1}, np.arange(N), r"epsilon must be at least 0, got -0\.1"),
        ({"epsilon": np.nan}, np.arange(N), "epsilon must be a finite number"),
        ({"intercept_scaling": -1.0}, np.arange(N), "intercept_scaling must be greater than 0"),
        ({}, np.full(N, np.inf), "y contains infinity"),
        ({}, ["a"] * N, "y must hold (grades|targets), one number per row"),
        ({}, np.ones((N, 2)), "1d array|bad input shape"),
    ],
)
def test_bad_targets_and_settings_for_regression_are_refused(settings, y, message):
    with pytest.raises(ValueError, match=message):
        LinearSVR(**settings).fit(good()[0], y)


def test_negative_sample_weights_are_refused():
    with pytest.raises(ValueError, match=r"sample_weight\[2\] is -3"):
        LinearSVR().fit(*good(), sample_weight=np.where(np.arange(N) == 2, -3.0, 1.0))


def test_wrong_width_is_refused_and_unfitted_says_so():
    X, y = good()
    with pytest.raises(ValueError, match="X has 2 features, but LinearSVR is expecting 3"):
        LinearSVR().fit(X, y).predict(X[:, :2])
    with pytest.raises(NotFittedError):
        LinearSVR().predict(np.zeros((1, D)))
