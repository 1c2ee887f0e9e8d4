import numpy as np
import pytest
import reference
import scipy.sparse as sp
from estimator_cases import BAD_INPUTS, BAD_SETTINGS, D, N, bad_regularizers, good
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from maxmargin import LinearSVC, RankingSVM, path
from maxmargin.regularizers import Bounded, GaussianPrior, GroupNorm
from maxmargin.solvers import DualCoordinate

TIGHT = {"tol": 1e-8, "max_passes": 50_000, "random_state": 0}


@pytest.fixture
def graded(rng):
    X = rng.normal(size=(50, 5))
    y = np.digitize(X @ rng.normal(size=5) + 0.5 * rng.normal(size=50), [-1.0, 0.5]).astype(float)
    return X, y, rng.integers(0, 6, size=50)


def _pairs(y, groups):
    return [(a, b) for a in range(y.size) for b in range(y.size) if groups[a] == groups[b] and y[a] > y[b]]


def _differences(X, y, groups):
    return np.array([X[a] - X[b] for a, b in _pairs(y, groups)])


@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
def test_equals_a_classifier_of_the_explicit_differences(graded, store, loss, C):
    X, y, groups = graded
    found = RankingSVM(C=C, loss=loss, **TIGHT).fit(store(X), y, groups=groups)
    differences = _differences(X, y, groups)
    # A classifier needs two classes: half of the differences are turned around, which changes no loss.
    sign = np.where(np.arange(len(differences)) % 2, 1, -1)
    expected = LinearSVC(C=C, loss=loss, fit_intercept=False, **TIGHT).fit(differences * sign[:, None], sign)
    assert found.certificate_.upper == pytest.approx(expected.certificate_.upper, rel=1e-7)
    assert np.allclose(found.coef_, expected.coef_[0], atol=1e-3)


def test_objective_is_the_sum_over_pairs(graded):
    X, y, groups = graded
    found = RankingSVM(C=0.3, **TIGHT).fit(X, y, groups=groups)
    losses = np.maximum(0.0, 1.0 - _differences(X, y, groups) @ found.coef_)
    assert found.certificate_.upper == pytest.approx(0.5 * found.coef_ @ found.coef_ + 0.3 * losses.sum(), rel=1e-10)


def test_regularizers_agree_with_cone_solver(graded, rng):
    X, y, groups = graded
    rows = _differences(X, y, groups)
    n = len(rows)
    arrays = rows, np.ones(n), np.arange(n), np.full(n, 0.2)
    settings = TIGHT | {"C": 0.2}
    mean, variance = rng.normal(size=5), rng.uniform(0.5, 2.0, size=5)
    found = RankingSVM(regularizer=GaussianPrior(mean, variance), **settings).fit(X, y, groups=groups)
    optimum = reference.quadratic(*arrays, mean=mean, covariance=variance)
    assert found.certificate_.upper == pytest.approx(optimum.value, rel=1e-6)
    full = np.diag(variance) + 0.2
    found = RankingSVM(regularizer=GaussianPrior(mean, full), **settings).fit(X, y, groups=groups)
    optimum = reference.quadratic(*arrays, mean=mean, covariance=full)
    assert found.certificate_.upper == pytest.approx(optimum.value, rel=1e-6)
    found = RankingSVM(regularizer=Bounded(0.0), **settings).fit(X, y, groups=groups)
    assert found.certificate_.upper == pytest.approx(reference.quadratic(*arrays, lower=np.zeros(5)).value, rel=1e-6)
    parts = [np.array([0, 1]), np.array([2, 3, 4])]
    found = RankingSVM(regularizer=GroupNorm(parts, 3.0), **settings).fit(X, y, groups=groups)
    optimum = reference.group_norm(*arrays, groups=parts, strength=3.0)
    assert found.certificate_.upper == pytest.approx(optimum.value, rel=1e-6)


def test_without_groups_all_rows_are_compared(graded):
    X, y, _ = graded
    a = RankingSVM(C=0.1, **TIGHT).fit(X, y)
    b = RankingSVM(C=0.1, **TIGHT).fit(X, y, groups=np.zeros(50))
    assert np.array_equal(a.coef_, b.coef_)


def test_names_and_order_of_groups_do_not_matter(graded, rng):
    X, y, groups = graded
    expected = RankingSVM(**TIGHT).fit(X, y, groups=groups).certificate_.upper
    named = np.array([f"query {g}" for g in groups])
    assert RankingSVM(**TIGHT).fit(X, y, groups=named).certificate_.upper == pytest.approx(expected, rel=1e-7)
    p = rng.permutation(50)
    assert RankingSVM(**TIGHT).fit(X[p], y[p], groups=groups[p]).certificate_.upper == pytest.approx(expected, rel=1e-7)


def test_float32_and_64_bit_structure_have_the_same_optimum(graded):
    X, y, groups = graded
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    expected = RankingSVM(**TIGHT).fit(X, y, groups=groups).certificate_.upper
    wide = sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert RankingSVM(**TIGHT).fit(wide, y, groups=groups).certificate_.upper == pytest.approx(expected, rel=1e-7)
    narrow = RankingSVM(**TIGHT).fit(X.astype(np.float32), y, groups=groups)
    assert narrow.certificate_.upper == pytest.approx(expected, rel=1e-5)


def test_equal_rows_of_different_grade_cost_one_each(graded):
    """Their difference is an empty row."""
    _, y, groups = graded
    found = RankingSVM(C=2.0, **TIGHT).fit(np.ones((50, 3)), y, groups=groups)
    assert found.certificate_.upper == pytest.approx(2.0 * len(_pairs(y, groups)))
    assert not found.coef_.any()


def test_score_is_the_share_of_ordered_pairs(graded):
    X, y, groups = graded
    found = RankingSVM(C=0.1, **TIGHT).fit(X, y, groups=groups)
    score = found.predict(X)
    share = np.mean([score[a] > score[b] for a, b in _pairs(y, groups)])
    assert found.score(X, y, groups=groups) == pytest.approx(share)
    assert share > 0.7
    assert found.score(np.zeros_like(X), y, groups=groups) == 0.5


def test_weights_are_the_dual_combination_of_the_rows(graded):
    X, y, groups = graded
    found = RankingSVM(C=0.5, solver="dual_coordinate", **TIGHT).fit(X, y, groups=groups)
    assert found.dual_coef_.shape == (1, 50)
    assert np.allclose(found.dual_coef_[0] @ X, found.coef_, atol=1e-3)
    assert abs(found.dual_coef_.sum()) <= 1e-9


def test_certify_recomputes_the_certificate(graded):
    X, y, groups = graded
    found = RankingSVM(random_state=0).fit(X, y, groups=groups)
    again = found.certify(X, y, groups=groups)
    assert (again.lower, again.upper) == pytest.approx((found.certificate_.lower, found.certificate_.upper), rel=1e-9)


def test_warm_start_and_path(graded):
    X, y, groups = graded
    settings = {"tol": 1e-6, "solver": "dual_coordinate", "random_state": 0}
    cold = RankingSVM(C=1.1, **settings).fit(X, y, groups=groups)
    warm = RankingSVM(C=1.0, warm_start=True, **settings).fit(X, y, groups=groups).set_params(C=1.1)
    warm.fit(X, y, groups=groups)
    assert warm.n_passes_ < cold.n_passes_
    assert warm.certificate_.upper == pytest.approx(cold.certificate_.upper, rel=2e-6)
    steps = path(RankingSVM(**settings), X, y, C=[1.0, 1.1], groups=groups)
    assert steps[1].certificate_.upper == pytest.approx(cold.certificate_.upper, rel=2e-6)


def test_interrupt_keeps_the_best_weights_warns_and_certifies(graded, monkeypatch):
    X, y, groups = graded
    optimum = RankingSVM(**TIGHT).fit(X, y, groups=groups).certificate_
    step, calls = DualCoordinate.step, []

    def stepping(self, problem, state):
        calls.append(None)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return step(self, problem, state)

    monkeypatch.setattr(DualCoordinate, "step", stepping)
    with pytest.warns(ConvergenceWarning, match="RankingSVM was interrupted"):
        found = RankingSVM(tol=1e-9, solver="dual_coordinate").fit(X, y, groups=groups)
    assert found.certificate_.lower <= optimum.upper
    assert found.certificate_.upper >= optimum.lower


def test_same_random_state_gives_the_same_bits(graded):
    X, y, groups = graded
    a, b, c = (RankingSVM(random_state=s, solver="dual_coordinate").fit(X, y, groups=groups) for s in (1, 1, 2))
    assert np.array_equal(a.coef_, b.coef_)
    assert not np.array_equal(a.coef_, c.coef_)


def test_too_few_passes_warn(graded):
    X, y, groups = graded
    with pytest.warns(ConvergenceWarning, match="stopped after max_passes=1 passes"):
        RankingSVM(max_passes=1, tol=1e-9, solver="dual_coordinate").fit(X, y, groups=groups)


def test_clone_pandas_and_verbose(graded, capsys):
    pandas = pytest.importorskip("pandas")
    X, y, groups = graded
    table = pandas.DataFrame(X, columns=list("abcde"))
    ranker = clone(RankingSVM(verbose=1, solver="dual_coordinate"))
    found = ranker.fit(table, pandas.Series(y), groups=pandas.Series(groups))
    assert list(found.feature_names_in_) == list("abcde")
    assert "RankingSVM: pass" in capsys.readouterr().err


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_bad_inputs_are_refused(case):
    X, y, message = BAD_INPUTS[case]
    with pytest.raises(ValueError, match=message):
        RankingSVM().fit(X, y)


@pytest.mark.parametrize("case", BAD_SETTINGS)
def test_bad_settings_are_refused(case):
    settings, message = BAD_SETTINGS[case]
    with pytest.raises(ValueError, match=message):
        RankingSVM(**settings).fit(*good())


@pytest.mark.parametrize("case", bad_regularizers())
def test_regularizers_that_do_not_fit_are_refused(case):
    regularizer, message = bad_regularizers()[case]
    with pytest.raises(ValueError, match=message):
        RankingSVM(regularizer=regularizer).fit(*good())


@pytest.mark.parametrize(
    ("y", "groups", "message"),
    [
        (np.ones(N), None, r"nothing to rank \(n_samples = 20, n_groups = 1\)"),
        (np.arange(N), np.arange(N), r"nothing to rank \(n_samples = 20, n_groups = 20\)"),
        (np.arange(N), np.zeros(3), r"groups must have one entry for each of \d+ rows"),
        (np.arange(N), np.zeros((N, 2)), r"groups must have one entry for each .* got shape"),
        (["a", "b"] * (N // 2), None, "y must hold (grades|targets), one number per row"),
    ],
)
def test_bad_grades_and_groups_are_refused(y, groups, message):
    with pytest.raises(ValueError, match=message):
        RankingSVM().fit(good()[0], y, groups=groups)


def test_wrong_width_is_refused_and_unfitted_says_so():
    X, y = good()
    with pytest.raises(ValueError, match="X has 2 features, but RankingSVM is expecting 3"):
        RankingSVM().fit(X, y).predict(X[:, :2])
    with pytest.raises(NotFittedError):
        RankingSVM().predict(np.zeros((1, D)))
