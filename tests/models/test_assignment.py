"""Matchings: searches against trying all of them, optima against a cone solver, bounds in exact arithmetic."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import reference
from hypothesis import given, settings, strategies as st
from user_models import every_rival

import maxmargin as mm
from maxmargin.checks import check_model
from maxmargin.models import Assignment
from maxmargin.models.assignment import _best

few = settings(max_examples=100, deadline=None)


def matchings(n_left, n_right, unmatched=False):
    for y in product(range(-unmatched, n_right), repeat=n_left):
        matched = [j for j in y if j >= 0]
        if len(set(matched)) == len(matched):
            yield np.array(y, dtype=int)


def data(rng, unmatched, n=6, d=2):
    X, Y = [], []
    for _ in range(n):
        n_left = int(rng.integers(1, 4))
        n_right = int(rng.integers(1 if unmatched else n_left, 5))
        X.append(rng.normal(size=(n_left, n_right, d)))
        every = list(matchings(n_left, n_right, unmatched))
        Y.append(every[rng.integers(len(every))])
    return X, Y


@pytest.mark.parametrize("loss", ["hamming", "normalized_hamming"])
@pytest.mark.parametrize("unmatched", [False, True])
def test_the_model_is_sound_and_its_optimum_that_of_a_cone_solver(rng, unmatched, loss):
    X, Y = data(rng, unmatched)
    model = Assignment(unmatched=unmatched, loss=loss)
    check_model(model.sized(X, Y), X, Y)
    svm = mm.StructuralSVM(model, C=0.5, tol=1e-6, random_state=0).fit(X, Y)
    sized = svm.model_
    rivals = every_rival(sized, X, Y, lambda x: list(matchings(*x.shape[:2], unmatched)), 0.5)
    optimum = reference.quadratic(*rivals).value
    assert svm.certificate_.exact and svm.certificate_.relaxation == 0.0
    assert svm.certificate_.lower <= optimum * (1 + 1e-9) and optimum <= svm.certificate_.upper * (1 + 1e-9)
    for x, y in zip(X, svm.predict(X), strict=True):
        highest = max(sized.features(x, z) @ svm.coef_ for z in matchings(*x.shape[:2], unmatched))
        assert sized.features(x, y) @ svm.coef_ == pytest.approx(highest)


@few
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(0, 2))
def test_no_matching_exceeds_the_best_by_more_than_is_said(seed, n, more):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, n + more)) * 10.0 ** rng.choice([-9, 0, 0, 9], (n, n + more))
    scores[rng.random(scores.shape) < 0.2] = 0.0
    found, hidden = _best(scores, n + more)
    total = lambda y: sum(Fraction(scores[i, j]) for i, j in enumerate(y))  # noqa: E731
    highest = max(total(y) for y in matchings(n, n + more))
    assert highest <= total(found) + Fraction(hidden)
    assert hidden <= 1e-12 * np.abs(scores).sum()


def test_a_fit_of_matchings_is_saved_and_loaded(rng, tmp_path):
    X, Y = data(rng, True)
    svm = mm.StructuralSVM(Assignment(unmatched=True), random_state=0).fit(X, Y)
    svm.save(tmp_path / "m.mm")
    again = mm.load(tmp_path / "m.mm")
    assert again.certify(X, Y).lower == pytest.approx(svm.certificate_.lower)
    assert all(np.array_equal(a, b) for a, b in zip(again.predict(X), svm.predict(X), strict=True))


@pytest.mark.parametrize(
    ("x", "y", "unmatched", "message"),
    [
        (np.zeros((2, 3)), [0, 1], False, "features of all pairs"),
        (np.full((2, 3, 1), np.nan), [0, 1], False, "not finite"),
        (np.zeros((2, 3, 1)), [0, 0], False, "the same partner"),
        (np.zeros((2, 3, 1)), [0, 3], False, "partners 0 … 2"),
        (np.zeros((2, 3, 1)), [0, -1], False, "unmatched=True"),
        (np.zeros((2, 3, 1)), [0], False, "one whole number for each of 2 items"),
        (np.zeros((2, 1, 1)), [0, 0], False, "the same partner"),
    ],
)
def test_what_is_no_matching_is_said(x, y, unmatched, message):
    with pytest.raises(ValueError, match=message):
        mm.StructuralSVM(Assignment(1, unmatched=unmatched)).fit([x], [y])
