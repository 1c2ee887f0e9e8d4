"""Newton's method on cached constraints, against the cone solver and in the place where it is used."""

import numpy as np
import pytest
import reference
from generators import covariance, shared_slack

from maxmargin import StructuralSVM
from maxmargin.models import Graph, grid
from maxmargin.regularizers import L2, Bounded, GaussianPrior
from maxmargin.solvers import few_weights


def _dual(data, alpha, regularizer):
    return float(data.loss @ alpha) - regularizer.conjugate(data.X.T @ alpha)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["l2", "diagonal", "full"])
def test_reaches_the_optimum_of_the_cone_solver(seed, kind):
    rng = np.random.default_rng(seed)
    data = shared_slack(rng, n_examples=12, n_weights=4, sparse=False)
    if kind == "l2":
        regularizer, optimum = L2(), reference.quadratic(*data.arrays())
    else:
        mean = rng.normal(size=4)
        spread = rng.uniform(0.5, 2.0, size=4) if kind == "diagonal" else covariance(rng, 4)
        regularizer = GaussianPrior(mean, spread)
        optimum = reference.quadratic(*data.arrays(), mean=mean, covariance=spread)
    gap = 1e-7 * abs(optimum.value)
    alpha = few_weights.solve(data.X, data.loss, data.example, data.budget, regularizer, gap)
    assert (alpha >= 0.0).all()
    used = np.bincount(data.example, alpha, minlength=data.budget.size)
    assert (used <= data.budget * (1 + 1e-6)).all()
    assert _dual(data, alpha, regularizer) == pytest.approx(optimum.value, rel=1e-5)


def test_planes_without_use_get_no_share():
    X = np.array([[1.0, 0.0], [5.0, 0.0], [0.0, 1.0]])
    alpha = few_weights.solve(X, np.ones(3), np.array([0, 0, 1]), np.full(2, 10.0), L2(), 1e-9)
    assert alpha == pytest.approx([1.0, 0.0, 1.0], abs=1e-5)
    assert alpha[1] == 0.0


def test_constraints_may_come_in_any_order_and_examples_have_none():
    rng = np.random.default_rng(0)
    data = shared_slack(rng, n_examples=9, n_weights=3, sparse=False)
    shuffled = rng.permutation(data.loss.size)
    budget = np.append(data.budget, 1.0)
    regularizer = Bounded(0.0)
    here = few_weights.solve(data.X, data.loss, data.example, data.budget, regularizer, 1e-9)
    there = few_weights.solve(data.X[shuffled], data.loss[shuffled], data.example[shuffled], budget, regularizer, 1e-9)
    assert there == pytest.approx(here[shuffled], abs=1e-4)


def test_applies_to_few_weights_only():
    assert few_weights.applies(L2().shape(10))
    assert few_weights.applies(Bounded(0.0).shape(10))
    assert not few_weights.applies(L2().shape(100_000))


def test_large_grids_with_few_weights_converge_in_few_epochs():
    """Rows of norm 100 and ten weights: coordinate steps alone leave a gap of a tenth after 150 epochs."""
    rng = np.random.default_rng(0)
    truths = []
    for _ in range(15):
        inside = np.zeros((16, 16), int)
        a, b = np.sort(rng.choice(17, 2, replace=False))
        inside[a:b, 4:12] = 1
        truths.append(inside)
    X = [grid(np.stack([t + 0.9 * rng.normal(size=t.shape), np.ones(t.shape)], axis=2)) for t in truths]
    model = Graph(symmetric=True, loss="normalized_hamming")
    svm = StructuralSVM(model, C=10.0, tol=1e-3, max_passes=60, random_state=0).fit(X, [t.ravel() for t in truths])
    assert svm.certificate_.relative_gap <= 1e-3
    assert svm.certificate_.exact
