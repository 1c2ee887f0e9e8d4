import numpy as np
import pytest
import reference
import scipy.sparse as sp

from maxmargin import LinearSVC, RankingSVM
from maxmargin.regularizers import Bounded, GaussianPrior, GroupNorm

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


@pytest.mark.parametrize(("C", "store"), [(0.01, sp.csr_matrix), (1.0, np.asarray)])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_equals_a_classifier_of_the_explicit_differences(graded, store, loss, C):
    X, y, groups = graded
    found = RankingSVM(C=C, loss=loss, **TIGHT).fit(store(X), y, groups=groups)
    differences = _differences(X, y, groups)
    # A classifier needs two classes: half of the differences are turned around, which changes no loss.
    sign = np.where(np.arange(len(differences)) % 2, 1, -1)
    expected = LinearSVC(C=C, loss=loss, fit_intercept=False, **TIGHT).fit(differences * sign[:, None], sign)
    assert found.certificate_.upper == pytest.approx(expected.certificate_.upper, rel=1e-7)
    assert np.allclose(found.coef_, expected.coef_[0], atol=1e-3)


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
