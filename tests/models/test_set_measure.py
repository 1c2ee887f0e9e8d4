"""Measures of a whole set: searches against trying all labellings, optima against a cone solver."""

from itertools import product

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from sklearn.metrics import f1_score
from user_models import every_rival

import maxmargin as mm
from maxmargin.checks import check_model
from maxmargin.models import SetMeasure

MODELS = {
    "f1": SetMeasure("f1"),
    "precision": SetMeasure("precision_at_k", k=2),
    "break-even": SetMeasure("precision_at_k"),
    "recall": SetMeasure("recall_at_k", k=4),
    "error rate": SetMeasure("error_rate"),
}


def sets(rng, n=4, d=2):
    X = [np.round(rng.normal(size=(int(rng.integers(5, 8)), d)), 1) for _ in range(n)]
    Y = []
    for x in X:
        y = (x[:, 0] + rng.normal(size=len(x)) > 0).astype(int)
        y[rng.permutation(len(x))[:5]] = 0, 0, 1, 1, 0
        Y.append(y if y.sum() <= 4 else 1 - y)
        Y[-1][:3] = (1, 1, 0) if Y[-1].sum() < 2 else Y[-1][:3]
    return X, Y


def labellings(model, y):
    """All that the measure looks at."""
    every = [np.array(label) for label in product((0, 1), repeat=len(y))]
    if not model.measure.endswith("_at_k"):
        return every
    k = y.sum() if model.k is None else model.k
    return [label for label in every if label.sum() == k]


@pytest.mark.parametrize("name", MODELS)
def test_no_labelling_is_worse_than_the_one_that_is_found(rng, name):
    model = MODELS[name]
    for size in (0.0, 0.3, 1.0, 3.0, 30.0):
        X, Y = sets(rng)
        oracle, w = model.sized(X, Y).oracle(X, Y), size * np.round(rng.normal(size=2), 1)
        found = oracle.rivals(np.arange(len(X)), w)
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            worth = [model.loss(y, label) + w @ model.features(x, label) for label in labellings(model, y)]
            answer = found.labels[i]
            assert model.loss(y, answer) + w @ model.features(x, answer) == pytest.approx(max(worth), abs=1e-12)
            assert found.losses[i] == model.loss(y, answer)


@pytest.mark.parametrize("name", MODELS)
def test_the_optimum_is_that_of_a_cone_solver(rng, name):
    X, Y = sets(rng)
    model = MODELS[name].sized(X, Y)
    svm = mm.StructuralSVM(model, C=0.2, tol=1e-6, random_state=0).fit(X, Y)
    truths = {id(x): y for x, y in zip(X, Y, strict=True)}
    rivals = every_rival(model, X, Y, lambda x: labellings(model, truths[id(x)]), 0.2)
    optimum = reference.quadratic(*rivals).value
    assert svm.certificate_.lower <= optimum * (1 + 1e-9) and optimum <= svm.certificate_.upper * (1 + 1e-9)
    assert svm.certificate_.relative_gap <= 1e-6
    sparse = mm.StructuralSVM(model, C=0.2, tol=1e-6, random_state=0).fit([sp.csr_matrix(x) for x in X], Y)
    assert sparse.certificate_.upper == pytest.approx(svm.certificate_.upper, rel=2e-6)


@pytest.mark.parametrize("name", ["f1", "error rate"])
def test_the_model_is_sound(rng, name):
    check_model(MODELS[name], *sets(rng))


def test_large_sets_are_searched_as_all_tables_would_be(rng):
    y = (np.arange(300) < 40).astype(int)
    score = rng.normal(size=300) + y
    low, high = np.sort(score[y == 1]), np.sort(score[y == 0])[::-1]
    p, q = np.meshgrid(np.arange(41), np.arange(261), indexing="ij")
    tables = 300 * (p + q) / (80 - p + q)
    for scale in (0.0, 0.1, 1.0, 10.0):
        gains = [np.append(0.0, np.cumsum(scale * part)) for part in (-low, high)]
        worth = tables + gains[0][:, None] + gains[1]
        missed, false = SetMeasure("f1").worst(40, scale * low, scale * high)
        assert worth[missed, false] == pytest.approx(worth.max(), abs=1e-9)


def test_loss_is_that_of_scikit_learn(rng):
    for _ in range(20):
        y, answer = rng.integers(0, 2, (2, 12))
        y[:2] = 0, 1
        assert SetMeasure("f1").loss(y, answer) == pytest.approx(12 * (1 - f1_score(y, answer)))
    assert SetMeasure("precision_at_k", k=2).loss([1, 1, 0, 0], [1, 0, 1, 0]) == 2.0
    assert SetMeasure("recall_at_k", k=3).loss([1, 1, 0, 0], [1, 0, 1, 1]) == 2.0


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (lambda: SetMeasure("f2"), None, "must be one of"),
        (lambda: SetMeasure("f1", k=3), None, "k is for precision_at_k"),
        (lambda: SetMeasure("f1"), [1, 1, 1], "positive and negative rows"),
        (lambda: SetMeasure("f1"), [2, 1, 0], "positive and negative rows"),
        (lambda: SetMeasure("precision_at_k", k=2), [1, 0, 0], "k must be at most 1"),
        (lambda: SetMeasure("recall_at_k", k=1), [1, 1, 0], "k must be from 2"),
        (lambda: SetMeasure("f1"), [1, 0], "1 or 0 for each of 3 rows"),
    ],
)
def test_what_is_no_set_is_said(model, y, message):
    with pytest.raises(ValueError, match=message):
        mm.StructuralSVM(model()).fit([np.eye(3)], [np.array(y)])


@pytest.mark.parametrize("name", ["precision_at_k", "recall_at_k"])
def test_shares_of_answers_with_another_k_prove_nothing(rng, name):
    X, y = rng.normal(size=(12, 2)), np.arange(12) < 6
    before, now = (6, 2) if name == "precision_at_k" else (12, 8)
    svm = mm.LinearSVC(C=1.0, loss=SetMeasure(name, k=before), fit_intercept=False, warm_start=True).fit(X, y)
    svm.set_params(loss=SetMeasure(name, k=now))
    assert svm.fit(X, y).certificate_.lower <= svm.certify(X, y).upper
    oracle, example = SetMeasure(name, k=now, n_features=2).oracle([X], [y]), np.zeros(1, np.int64)
    assert oracle.planes(example, [y.astype(int)]).losses == [0.0]  # the truth, whatever k
    for answer in (np.arange(12) < before - 1, np.zeros(11), np.full(12, 0.5)):
        with pytest.raises(ValueError, match=f"1 or 0 for each of 12 rows, {now} of them 1"):
            oracle.planes(example, [answer])


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ("abc", "Set 1 must be a matrix of numbers"),
        (np.eye(2), "Set 1 has 2 features per row, 3 are needed"),
        (np.zeros((0, 3)), "Set 1 is empty"),
        ([[0.0, 1.0, 2.0], [0.0, np.nan, 0.0]], r"Set 1 has a value that is not finite \(nan\), at row 1, feature 1"),
    ],
)
def test_sets_that_are_no_matrices_are_named(x, message):
    with pytest.raises(ValueError, match=message):
        mm.StructuralSVM(SetMeasure()).fit([np.eye(3), x], [[1, 0, 0], [1, 0]])


def test_sets_may_be_lists_or_sparse_and_may_have_no_positive_rows_when_they_are_scored():
    X, y = [[0.0, 1.0], [1.0, 0.0], [0.2, 0.3]], [1, 0, 0]
    dense, sparse = (mm.StructuralSVM(SetMeasure()).fit([x], [y]) for x in (X, sp.coo_array(X)))
    assert np.allclose(dense.coef_, sparse.coef_)
    assert dense.score([[[0.0, -1.0]]], [[0]]) == 0.0
    with pytest.raises(ValueError, match="Labels of 1 rows cannot be compared with labels of 3"):
        dense.score([X], [[1]])
