"""What the three linear estimators have in common: every setting, storage, start and refusal, asked of each of them."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from generators import differences, graded, line, many_classes
from interruptions import interrupt_at
from regularized import PURE, REGULARIZED
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from thinned import rotating

from maxmargin import LinearSVC, LinearSVR, RankingSVM, path
from maxmargin.regularizers import Bounded, GaussianPrior, GroupNorm
from maxmargin.solvers import DualCoordinate

TIGHT = {"tol": 1e-8, "max_passes": 50_000, "random_state": 0}
NO_JOINT_PROBLEM = [GroupNorm([[0, 1], [2, 3, 4]]), GaussianPrior(0.0, 0.5 * np.eye(5) + 0.5)]
BY_COORDINATES = {"solver": "dual_coordinate", "random_state": 0}


def _classes():
    return many_classes(np.random.default_rng(20240))


def _line():
    return line(np.random.default_rng(20240))


def _graded():
    rng = np.random.default_rng(20240)
    return *graded(rng, cuts=[-1.0, 0.5]), rng.integers(0, 6, size=50)


TASKS = {
    "Crammer–Singer": (LinearSVC, {}, _classes),
    "one-vs-rest": (LinearSVC, {"multi_class": "ovr"}, _classes),
    "regression": (LinearSVR, {}, _line),
    "ranking": (RankingSVM, {}, _graded),
}


@pytest.fixture(params=TASKS)
def task(request):
    """(a function that makes the estimator, its data)."""
    kind, own, data = TASKS[request.param]
    return (lambda **settings: kind(**{**own, **settings})), data()


def test_warm_start_begins_near_the_same_optimum(task):
    make, data = task
    settings = {"tol": 1e-5, **BY_COORDINATES}
    cold = make(C=1.1, **settings).fit(*data)
    warm = make(C=1.0, warm_start=True, **settings).fit(*data).set_params(C=1.1).fit(*data)
    assert warm.history_[0].lower > cold.history_[0].lower
    assert warm.certificate_.upper == pytest.approx(cold.certificate_.upper, rel=2e-5)
    assert warm.certificate_.relative_gap <= 1e-5


def test_path_gives_every_optimum_with_its_certificate_and_hot_starts(task):
    make, (X, y, *groups) = task
    values = [0.1, 0.12, 0.14]
    estimator = make(tol=1e-5, **BY_COORDINATES)
    extra = {"groups": groups[0]} if groups else {"sample_weight": np.linspace(0.5, 2.0, y.size)}
    steps = path(estimator, X, y, C=values, **extra)
    alone = [clone(estimator).set_params(C=c).fit(X, y, **extra) for c in values]
    assert [s.C for s in steps] == values
    assert not any(s.warm_start for s in steps)
    assert not hasattr(estimator, "coef_")
    for step, expected in zip(steps, alone, strict=True):
        assert step.certificate_.relative_gap <= 1e-5
        assert step.certificate_.upper == pytest.approx(expected.certificate_.upper, rel=2e-5)
    assert all(s.history_[0].lower > a.history_[0].lower for s, a in zip(steps[1:], alone[1:], strict=True))


def test_threads_and_memory_limits_do_not_change_the_optimum(task):
    make, data = task
    expected = make(**TIGHT).fit(*data).certificate_.upper
    for settings in ({"n_jobs": 2}, {"memory": 90 * 64}, {"memory": "1.5 MiB"}):
        found = make(solver="dual_coordinate", **settings, **TIGHT).fit(*data)
        assert found.certificate_.upper == pytest.approx(expected, rel=1e-7)
        assert found.certify(*data).relative_gap <= 1e-8 * (1 + 1e-3)


def test_same_random_state_gives_the_same_bits(task):
    make, data = task
    a, b, c = (make(random_state=seed, solver="dual_coordinate").fit(*data) for seed in (5, 5, 6))
    assert np.array_equal(a.coef_, b.coef_)
    assert np.array_equal(a.dual_coef_, b.dual_coef_)
    assert not np.array_equal(a.dual_coef_, c.dual_coef_)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt_keeps_the_best_weights_warns_and_certifies(task, n_jobs, monkeypatch):
    make, data = task
    optimum = make(**TIGHT).fit(*data).certificate_
    interrupt_at(monkeypatch, DualCoordinate, "step", 4)
    found = make(tol=1e-9, n_jobs=n_jobs, **BY_COORDINATES)
    with pytest.warns(ConvergenceWarning, match=f"{type(found).__name__} was interrupted, at a relative gap of"):
        found.fit(*data)
    both, again = found.certificate_, found.certify(*data)
    assert both.lower <= optimum.upper
    assert both.upper >= optimum.lower
    assert both.relative_gap > 1e-9
    assert (again.lower, again.upper) == pytest.approx((both.lower, both.upper), rel=1e-9)
    assert found.predict(data[0]).shape == data[1].shape


def test_too_few_passes_warn_and_the_certificate_stays_true(task):
    make, data = task
    with pytest.warns(ConvergenceWarning, match="stopped after max_passes=2 passes, at a relative gap of") as caught:
        found = make(max_passes=2, tol=1e-9, **BY_COORDINATES).fit(*data)
    assert caught[0].filename == __file__
    optimum = make(**TIGHT).fit(*data).certificate_
    assert found.certificate_.lower <= optimum.upper
    assert found.certificate_.upper >= optimum.lower
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert make(random_state=0).fit(*data).certificate_.relative_gap <= 1e-3


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"tol": 1e-4},
        {"regularizer": GaussianPrior(0.2, 3.0)},
        {"regularizer": Bounded(0.0, [1])},
        {"regularizer": NO_JOINT_PROBLEM[0]},
        {"regularizer": NO_JOINT_PROBLEM[1]},
    ],
    ids=str,
)
def test_certify_recomputes_the_certificate(task, settings):
    make, (X, y, *groups) = task
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=y.size)
    weight[:3] = 0.0
    if settings.get("regularizer") in NO_JOINT_PROBLEM and isinstance(make(), LinearSVC):
        settings = {**settings, "multi_class": "ovr"}
    extra = {"groups": groups[0]} if groups else {"sample_weight": weight}
    found = make(random_state=0, **settings).fit(X, y, **extra)
    again = found.certify(X, y, **extra)
    assert (again.lower, again.upper) == pytest.approx((found.certificate_.lower, found.certificate_.upper), rel=1e-9)
    if not groups:
        with pytest.warns(UserWarning, match="not the rows of fit"):
            assert found.certify(X, y).upper != pytest.approx(again.upper, rel=1e-3)


def _tube(X, y):
    """Both sides of the tube as two rows of one example: they are never violated together."""
    rows, loss = np.stack([X, -X], axis=1), np.stack([y - 0.2, -y - 0.2], axis=1)
    return rows.reshape(2 * len(X), -1), loss.ravel(), np.repeat(np.arange(len(X)), 2), np.full(len(X), 0.2)


def _pairs(X, y, groups):
    rows, _ = differences(X, y, groups)
    return rows, np.ones(len(rows)), np.arange(len(rows)), np.full(len(rows), 0.2)


EXPLICIT = {
    "regression": (LinearSVR(0.2, 0.2, fit_intercept=False), _line, _tube),
    "ranking": (RankingSVM(0.2), _graded, _pairs),
}


@pytest.mark.parametrize(("kind", "name"), rotating(REGULARIZED | PURE, EXPLICIT, times=2))
def test_regularizers_agree_with_the_cone_solver(kind, name, rng):
    estimator, data, arrays = EXPLICIT[name]
    regularizer, reference, terms = (REGULARIZED | PURE)[kind](rng, 5)
    found = clone(estimator).set_params(regularizer=regularizer, **TIGHT).fit(*data())
    optimum = reference(*arrays(*data()), **terms)
    assert found.certificate_.upper == pytest.approx(optimum.value, rel=1e-6)
    assert kind in PURE or np.allclose(found.coef_, optimum.weights, atol=1e-3)  # of pure norms others may be as good


def test_weights_are_the_dual_combination_of_the_rows(task):
    make, data = task
    found = make(C=0.5, solver="dual_coordinate", **TIGHT).fit(*data)
    rows = np.atleast_2d(found.coef_).shape[0]
    assert found.dual_coef_.shape == (rows, data[1].size)
    assert np.allclose(found.dual_coef_ @ data[0], np.atleast_2d(found.coef_), atol=1e-3)
    if isinstance(found, RankingSVM):
        assert abs(found.dual_coef_.sum()) <= 1e-9
    else:
        assert np.allclose(found.dual_coef_.sum(axis=1), found.intercept_, atol=1e-3)


@pytest.mark.parametrize("squared", [False, True])
def test_sample_weight_equals_repetition(squared):
    for name in ("one-vs-rest", "regression", *([] if squared else ["Crammer–Singer"])):
        kind, own, data = TASKS[name]
        X, y = data()
        times = np.random.default_rng(2).integers(0, 4, size=y.size)
        loss = {"loss": "squared_epsilon_insensitive" if kind is LinearSVR else "squared_hinge"} if squared else {}
        weighted = kind(**own, **loss, **TIGHT).fit(X, y, sample_weight=times)
        repeated = kind(**own, **loss, **TIGHT).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
        assert weighted.certificate_.upper == pytest.approx(repeated.certificate_.upper, rel=1e-7)
        assert np.allclose(weighted.coef_, repeated.coef_, atol=1e-3)


def test_dense_sparse_and_float32_have_the_same_optimum(task):
    make, (X, *rest) = task
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    X[3] = 0.0
    dense = make(**TIGHT).fit(X, *rest)
    wide = sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    narrow = make(**TIGHT).fit(sp.csr_matrix(X), *rest)
    assert np.array_equal(make(**TIGHT).fit(wide, *rest).coef_, narrow.coef_)
    for other in (sp.csr_matrix(X), sp.coo_array(X), np.asfortranarray(X)):
        found = make(**TIGHT).fit(other, *rest)
        assert found.certificate_.upper == pytest.approx(dense.certificate_.upper, rel=1e-7)
        assert np.allclose(found.coef_, dense.coef_, atol=5e-3)
    for other in (X.astype(np.float32), sp.csr_matrix(X, dtype=np.float32)):
        found = make(**TIGHT).fit(other, *rest)
        assert found.certificate_.upper == pytest.approx(dense.certificate_.upper, rel=1e-5)


def test_frames_keep_their_names_and_progress_is_shown_on_request(task, capsys):
    pandas = pytest.importorskip("pandas")
    make, (X, *rest) = task
    table = pandas.DataFrame(X, columns=list("abcde"))
    found = clone(make(verbose=1, **BY_COORDINATES)).fit(table, *map(pandas.Series, rest))
    assert list(found.feature_names_in_) == list("abcde")
    printed = " ".join(capsys.readouterr().err.split())
    assert f"{type(found).__name__}: pass" in printed
    assert "goal 1e-03" in printed
    silent = make(**BY_COORDINATES).fit(X, *rest)
    assert np.array_equal(silent.coef_, found.coef_)
    assert "".join(capsys.readouterr()) == ""
