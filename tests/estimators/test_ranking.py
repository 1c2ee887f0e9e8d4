import numpy as np
import pytest
import scipy.sparse as sp
from generators import differences, graded

from maxmargin import LinearSVC, RankingSVM, StructuralSVM, load
from maxmargin.data import open as open_source
from maxmargin.models import NDCG, AveragePrecision

TIGHT = {"tol": 1e-8, "max_passes": 50_000, "random_state": 0}


@pytest.fixture
def data(rng):
    return *graded(rng, cuts=[-1.0, 0.5]), rng.integers(0, 6, size=50)


@pytest.mark.parametrize(("C", "store"), [(0.01, sp.csr_matrix), (1.0, np.asarray)])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_equals_a_classifier_of_the_explicit_differences(data, store, loss, C):
    X, y, groups = data
    found = RankingSVM(C=C, loss=loss, **TIGHT).fit(store(X), y, groups=groups)
    rows, _ = differences(X, y, groups)
    # A classifier needs two classes: half of the differences are turned around, which changes no loss.
    sign = np.where(np.arange(len(rows)) % 2, 1, -1)
    expected = LinearSVC(C=C, loss=loss, fit_intercept=False, **TIGHT).fit(rows * sign[:, None], sign)
    assert found.certificate_.upper == pytest.approx(expected.certificate_.upper, rel=1e-7)
    assert np.allclose(found.coef_, expected.coef_[0], atol=1e-3)


def test_without_groups_all_rows_are_compared(data):
    X, y, _ = data
    a = RankingSVM(C=0.1, **TIGHT).fit(X, y)
    b = RankingSVM(C=0.1, **TIGHT).fit(X, y, groups=np.zeros(50))
    assert np.array_equal(a.coef_, b.coef_)


def test_names_and_order_of_groups_do_not_matter(data, rng):
    X, y, groups = data
    expected = RankingSVM(**TIGHT).fit(X, y, groups=groups).certificate_.upper
    named = np.array([f"query {g}" for g in groups])
    assert RankingSVM(**TIGHT).fit(X, y, groups=named).certificate_.upper == pytest.approx(expected, rel=1e-7)
    p = rng.permutation(50)
    assert RankingSVM(**TIGHT).fit(X[p], y[p], groups=groups[p]).certificate_.upper == pytest.approx(expected, rel=1e-7)


def test_equal_rows_of_different_grade_cost_one_each(data):
    """Their difference is an empty row."""
    X, y, groups = data
    found = RankingSVM(C=2.0, **TIGHT).fit(np.ones((50, 3)), y, groups=groups)
    assert found.certificate_.upper == pytest.approx(2.0 * len(differences(X, y, groups)[1]))
    assert not found.coef_.any()


def test_score_is_the_share_of_ordered_pairs(data):
    X, y, groups = data
    found = RankingSVM(C=0.1, **TIGHT).fit(X, y, groups=groups)
    score = found.predict(X)
    share = np.mean([score[a] > score[b] for a, b in differences(X, y, groups)[1]])
    assert found.score(X, y, groups=groups) == pytest.approx(share)
    assert share > 0.7
    assert found.score(np.zeros_like(X), y, groups=groups) == 0.5


@pytest.mark.parametrize("loss", ["map", "ndcg"])
def test_losses_of_whole_groups(data, loss, tmp_path):
    X, y, groups = data
    ranker = RankingSVM(C=5.0, loss=loss, tol=1e-6).fit(sp.csr_matrix(X), y, groups=groups)
    model = {"map": AveragePrecision(), "ndcg": NDCG()}[loss]
    names = np.unique(groups)
    worth = (y > 0).astype(int) if loss == "map" else y
    apart = [X[groups == g] for g in names], [worth[groups == g] for g in names]
    expected = StructuralSVM(model, C=5.0, tol=1e-6).fit(*apart)
    assert ranker.certificate_.upper == pytest.approx(expected.certificate_.upper, rel=2e-6)
    assert np.allclose(ranker.dual_coef_[0] @ X, ranker.coef_, atol=1e-3)
    ranker.save(tmp_path / "ranker")
    again = load(tmp_path / "ranker")
    assert again.certify(X, y, groups=groups).lower == pytest.approx(ranker.certificate_.lower)
    warm = again.set_params(warm_start=True).fit(X, y, groups=groups)
    assert warm.n_passes_ < ranker.n_passes_
    assert warm.set_params(loss="hinge").fit(X, y, groups=groups).certificate_.relative_gap <= 1e-6


def test_losses_of_whole_groups_say_what_they_need(data):
    X, y, groups = data
    ranker = RankingSVM(loss="map")
    for fit in (
        lambda: ranker.fit(open_source(X, labels=y, groups=np.sort(groups))),
        lambda: ranker.partial_fit(X, y, groups),
        lambda: ranker.fit(X, y, groups=groups, cluster="local:2"),
    ):
        with pytest.raises(ValueError, match="takes rows in the memory of this process"):
            fit()
    with pytest.raises(ValueError, match="nothing to rank"):
        ranker.fit(X, y + 1, groups=groups)
    with pytest.raises(ValueError, match="grades from 0"):
        RankingSVM(loss="ndcg").fit(X, y - 1, groups=groups)
    with pytest.raises(ValueError, match="'ndcg'"):
        RankingSVM(loss="precision").fit(X, y, groups=groups)
