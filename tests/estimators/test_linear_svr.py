import numpy as np
import pytest
from generators import line
from sklearn import svm

from maxmargin import LinearSVR

TIGHT = {"tol": 1e-8, "max_passes": 50_000, "random_state": 0}
LOSSES = ["epsilon_insensitive", "squared_epsilon_insensitive"]


@pytest.fixture
def data(rng):
    return line(rng)


def _objective(e, X, y, C, epsilon, loss, scaling=1.0, weight=1.0):
    intercept = np.ravel(e.intercept_)[0]
    excess = np.maximum(0.0, np.abs(X @ e.coef_ + intercept - y) - epsilon)
    paid = excess if loss == LOSSES[0] else excess**2
    return 0.5 * (e.coef_ @ e.coef_ + (intercept / scaling) ** 2) + C * np.sum(weight * paid)


@pytest.mark.parametrize("solver", ["auto", "dual_coordinate"])
@pytest.mark.parametrize(
    ("C", "epsilon", "intercept", "scaling"), [(0.01, 0.3, False, 1.0), (1.0, 0.0, True, 3.0), (10.0, 0.3, True, 1.0)]
)
@pytest.mark.parametrize("loss", LOSSES)
def test_optimum_equals_that_of_scikit_learn(data, loss, epsilon, intercept, scaling, C, solver):
    X, y = data
    shared = {"loss": loss, "C": C, "epsilon": epsilon, "fit_intercept": intercept, "intercept_scaling": scaling}
    ours = LinearSVR(**shared, solver=solver, **TIGHT).fit(X, y)
    theirs = svm.LinearSVR(**shared, dual=True, tol=1e-9, max_iter=2_000_000, random_state=0).fit(X, y)
    values = [_objective(e, X, y, C, epsilon, loss, scaling) for e in (ours, theirs)]
    assert values[0] == pytest.approx(values[1], rel=1e-5)
    assert ours.certificate_.upper == pytest.approx(values[0], rel=1e-10)
    assert ours.certificate_.lower <= values[1] * (1 + 1e-9)
    assert ours.certificate_.relative_gap <= 1e-8


def test_target_inside_the_tube_costs_nothing(data):
    X, _ = data
    found = LinearSVR(epsilon=1.0, **TIGHT).fit(X, np.full(80, 0.5))
    assert found.certificate_.upper == found.certificate_.lower == 0.0
    assert not found.coef_.any()
    assert not found.support_.size


def test_predictions_and_their_shapes(data):
    X, y = data
    found = LinearSVR(random_state=0).fit(X, y)
    assert found.coef_.shape == (5,)
    assert isinstance(found.intercept_, float)
    assert np.allclose(found.predict(X), X @ found.coef_ + found.intercept_)


def test_integer_targets_are_taken_as_numbers(data):
    X, y = data
    whole = np.round(3 * y).astype(int)
    a, b = LinearSVR(**TIGHT).fit(X, whole), LinearSVR(**TIGHT).fit(X, whole.astype(float))
    assert a.certificate_.upper == pytest.approx(b.certificate_.upper, rel=1e-7)
