"""Rankings: searches against trying all orders, optima against a cone solver, measures against scikit-learn."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from compiled import equals_its_source
from sklearn.metrics import average_precision_score, ndcg_score
from user_models import every_rival

import maxmargin as mm
from maxmargin.checks import check_model
from maxmargin.kernels import ranked as kernels
from maxmargin.models import NDCG, AveragePrecision

MODELS = {"map": AveragePrecision(), "ndcg": NDCG(), "ndcg at 2": NDCG(k=2)}


def orders(n):
    return [np.array(order) for order in permutations(range(n))]


def queries(rng, name, n=8, d=2, largest=5):
    X = [rng.normal(size=(rng.integers(1, largest + 1), d)) for _ in range(n)]
    X[0][1:] = X[0][:1]  # ties
    grades = 2 if name == "map" else 4
    return X, [rng.integers(0, grades, len(x)) for x in X]


def with_truth(X, Y):
    return list(zip(X, Y, strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_the_model_is_sound_and_its_optimum_that_of_a_cone_solver(rng, name):
    X, Y = queries(rng, name, largest=4)
    check_model(MODELS[name], with_truth(X, Y), Y)
    svm = mm.StructuralSVM(MODELS[name], C=2.0, tol=1e-6, random_state=0).fit(X, Y)
    rivals = every_rival(svm.model_, with_truth(X, Y), Y, lambda x: orders(len(x[0])), 2.0)
    optimum = reference.quadratic(*rivals).value
    assert svm.certificate_.lower <= optimum * (1 + 1e-9) and optimum <= svm.certificate_.upper * (1 + 1e-9)
    sparse = mm.StructuralSVM(MODELS[name], C=2.0, tol=1e-6, random_state=0).fit([sp.csr_matrix(x) for x in X], Y)
    assert sparse.certificate_.upper == pytest.approx(svm.certificate_.upper, rel=2e-6)


@pytest.mark.parametrize("name", MODELS)
def test_no_order_is_worse_than_the_one_that_is_found(rng, name):
    for size in (0.0, 0.1, 1.0, 10.0):
        X, Y = queries(rng, name)
        model = MODELS[name].sized(X, Y)
        oracle, w = model.oracle(X, Y), size * np.round(rng.normal(size=2), 1)
        ids = rng.permutation(len(X))
        found = oracle.rivals(ids, w)
        for p, i in enumerate(ids.tolist()):
            worth = lambda y: model.loss(Y[i], y) + w @ model.features((X[i], Y[i]), y)  # noqa: E731
            assert worth(found.labels[p]) == pytest.approx(max(map(worth, orders(len(X[i])))), abs=1e-12)
            assert found.losses[p] == model.loss(Y[i], found.labels[p])
            scores = [w @ model.features((X[i], Y[i]), y) for y in orders(len(X[i]))]
            best = model.predict(X[i], w)
            assert w @ model.features((X[i], Y[i]), best) == pytest.approx(max(scores), abs=1e-12)


def test_losses_are_those_of_scikit_learn(rng):
    for _ in range(20):
        y, score = rng.integers(0, 2, 8), rng.permutation(8)
        y[:2] = 0, 1
        assert AveragePrecision().loss(y, score) == pytest.approx(1.0 - average_precision_score(y, score))
        grade = rng.integers(0, 5, 8)
        grade[0] = 1
        for k in (None, 3):
            gain = 2.0**grade - 1.0  # scikit-learn's gain is the grade itself
            assert NDCG(k=k).loss(grade, score) == pytest.approx(1.0 - ndcg_score([gain], [score], k=k))


def test_rows_and_losses_are_as_exact_as_is_said(rng):
    X, Y = queries(rng, "map", n=3)
    X = [x * 10.0 ** rng.integers(-6, 6, x.shape) for x in X]
    oracle = AveragePrecision(2).oracle(X, Y)
    found = oracle.rivals(np.arange(3), rng.normal(size=2))
    rows = np.asarray(found.rows.data).reshape(3, 2)
    for i, (x, y, answer) in enumerate(zip(X, Y, found.labels, strict=True)):
        pairs = [(a, b) for a in np.flatnonzero(y) for b in np.flatnonzero(y == 0)]
        for k in range(2):
            terms = [0 if answer[a] > answer[b] else 2 * (Fraction(x[a, k]) - Fraction(x[b, k])) for a, b in pairs]
            exact = sum(terms) / max(len(pairs), 1)
            assert abs(exact - Fraction(rows[i, k])) <= Fraction(found.errors.factor[i] * found.errors.scale[k])


def test_kernels_equal_their_source(rng):
    score = rng.normal(size=9)
    offsets, ids = np.array([0, 4, 9]), np.array([1, 0])
    first, value = np.array([0, 5, 9]), np.zeros(9, np.int64)
    relevant = rng.integers(0, 2, 9).astype(float)
    equals_its_source(kernels.least_precise, offsets, ids, relevant, first, score, value)
    equals_its_source(kernels.sorted_by, first, score, value)


@pytest.mark.parametrize(
    ("model", "x", "y", "message"),
    [
        (AveragePrecision(), np.eye(3), [0, 1, 2], "which rows are relevant"),
        (NDCG(), np.eye(3), [0, 1, -1], "grades from 0 to 60"),
        (NDCG(), np.eye(3), [0, 1], "one number for each of 3 rows"),
        (NDCG(2), np.eye(3), [0, 1, 1], "Query 0 has 3 features per row, 2 are needed"),
        (NDCG(), np.full((2, 2), np.nan), [0, 1], "Query 0 has a value that is not finite"),
        (NDCG(), "abc", [0, 1], "Query 0 must be a matrix of numbers"),
    ],
)
def test_what_is_no_ranking_is_said(model, x, y, message):
    with pytest.raises(ValueError, match=message):
        mm.StructuralSVM(model).fit([x], [y])


@pytest.mark.parametrize("model", [AveragePrecision(), NDCG()])
def test_queries_may_be_sparse_or_not_and_grades_are_checked_when_they_are_scored(model):
    X, y = np.eye(3), [1, 0, 0]
    ranker = mm.StructuralSVM(model).fit([X, sp.csr_matrix(X)], [y, y])
    assert ranker.score([X], [y]) == 0.0
    for wrong in (["a", "b", "c"], [1, 0]):
        with pytest.raises(ValueError, match="y must have one number for each of 3 rows"):
            ranker.score([X], [wrong])


def test_features_of_one_answer_need_the_truth():
    with pytest.raises(ValueError, match="as a pair"):
        AveragePrecision(2).features(np.eye(2), np.array([0, 1]))
