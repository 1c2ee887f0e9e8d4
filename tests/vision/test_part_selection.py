"""Selection of parts: the solver against a cone solver, and what is selected against what is known to be there."""

import functools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from reference import group_norm_and_l2
from sklearn.exceptions import ConvergenceWarning

from maxmargin.checks import check_solver
from maxmargin.data.arrays import as_rows
from maxmargin.models import multiclass
from maxmargin.problem import Problem
from maxmargin.regularizers import L2, Blocks, GroupNorm
from maxmargin.solvers import solve
from maxmargin.vision.parts.primal_dual import PrimalDual, norms_of_parts, onto_simplex
from maxmargin.vision.parts.selection import select_parts


def some_responses(n=60, n_parts=8, n_regions=2, n_classes=3, informative=(), by=2.0, seed=0):
    """Noise, and a few parts that respond more strongly where a class is."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    responses = rng.normal(size=(n, n_parts, n_regions))
    for m, j in enumerate(informative):
        responses[:, j] += by * (y == m % n_classes)[:, None]
    return responses, y


def correlated(n=200, n_parts=60, n_regions=2, n_classes=5, seed=0):
    """Parts that see the same few things, each in its own mixture, or nothing."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    seen = rng.normal(size=(n_classes, 10))[y] + rng.normal(size=(n, 10))
    mixture = rng.normal(size=(10, n_parts)) * (rng.random(n_parts) < 0.5)
    return (seen @ mixture)[:, :, None] + rng.normal(size=(n, n_parts, n_regions)), y


def the_problem(responses, y, strength):
    n, n_parts, n_regions = responses.shape
    k = int(y.max()) + 1
    constraints = multiclass(as_rows(responses.reshape(n, -1), bias=1.0), y, 1.0 - np.eye(k), np.ones(1))
    n_weights = n_parts * n_regions * k
    groups = list(np.arange(n_weights).reshape(n_parts, -1))
    penalty = GroupNorm(groups, weights=strength)
    return Problem(constraints, Blocks([(np.arange(n_weights), penalty), (n_weights + np.arange(k), L2())]))


def cone_optimum(responses, y, strength):
    """The same by a cone solver, from inequalities that are written out here."""
    n, n_parts, n_regions = responses.shape
    k, wide = int(y.max()) + 1, n_parts * n_regions
    rows, example = [], []
    for i in range(n):
        x = np.append(responses[i].ravel(), 1.0)
        for rival in range(k):
            if rival != y[i]:
                row = np.zeros((wide + 1, k))
                row[:, y[i]], row[:, rival] = x, -x
                rows.append(row.ravel())
                example.append(i)
    groups = list(np.arange(wide * k).reshape(n_parts, -1))
    rows = np.array(rows)
    free = wide * k + np.arange(k)
    return group_norm_and_l2(
        rows, np.ones(len(rows)), np.array(example), np.ones(n), groups=groups, strength=strength, free=free
    )


def hinge(responses, y, U, b):
    """Σ_i of the hinge, one image after the other."""
    scores = np.einsum("ijr,jrk->ik", responses, U) + b
    total = 0.0
    for s, truth in zip(scores, y, strict=True):
        total += max([0.0, *(1.0 + s[k] - s[truth] for k in range(s.size) if k != truth)])
    return total


@settings(deadline=None)
@given(arrays(np.float64, (3, 4), elements=st.floats(-50, 50)))
def test_the_nearest_point_of_the_simplex(values):
    found = onto_simplex(values)
    assert (found >= 0.0).all()
    assert found.sum(axis=1) == pytest.approx(1.0)
    # Nearest: no way to a corner leads closer.
    for v, p in zip(values, found, strict=True):
        assert ((np.eye(4) - p) @ (v - p) <= 1e-9 * (1.0 + np.abs(v).max())).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("strength", [1.0, 4.0, 10.0])
def test_the_optimum_is_that_of_a_cone_solver(n_classes, strength):
    responses, y = some_responses(n=30, n_parts=5, n_classes=n_classes, informative=(1, 3), by=1.0)
    best = cone_optimum(responses, y, strength)
    solution = solve(the_problem(responses, y, strength), PrimalDual(2, strength), tol=1e-5, max_passes=5000)
    assert solution.converged
    assert solution.certificate.lower <= best.value * (1 + 1e-8)
    assert solution.certificate.upper >= best.value * (1 - 1e-8)
    assert solution.certificate.upper == pytest.approx(best.value, rel=1e-5)
    k = n_classes
    U, b = solution.weights[:-k].reshape(5, 2, k), solution.weights[-k:]
    objective = strength * sum(np.linalg.norm(u) for u in U) + 0.5 * b @ b + hinge(responses, y, U, b)
    assert objective == pytest.approx(solution.certificate.upper)
    norms = norms_of_parts(best.weights[:-k].reshape(-1, k), 2)
    assert norms_of_parts(solution.weights[:-k].reshape(-1, k), 2) == pytest.approx(norms, abs=0.02)


def test_the_solver_keeps_what_solvers_promise():
    responses, y = correlated(n=60, n_parts=20)
    check_solver(PrimalDual(2, 8.0), the_problem(responses, y, 8.0), tol=1e-5)


def test_a_hot_start_is_made_of_another_solution():
    responses, y = correlated()
    near = solve(the_problem(responses, y, 150.0), PrimalDual(2, 150.0), tol=1e-3, max_passes=2000)
    problem = the_problem(responses, y, 140.0)
    cold = solve(problem, PrimalDual(2, 140.0), tol=1e-3, max_passes=2000)
    hot = solve(problem, PrimalDual(2, 140.0), tol=1e-3, max_passes=2000, warm=(near.weights, near.alpha))
    assert hot.converged and cold.converged
    assert hot.certificate.upper == pytest.approx(cold.certificate.upper, rel=2e-3)
    assert hot.history[0].estimate < 0.3 * cold.history[0].estimate
    assert len(hot.history) < len(cold.history)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_price_above_which_no_part_is_worth_having(n_classes):
    responses, y = some_responses(n_classes=n_classes, informative=(1,))
    responses -= responses.mean(axis=0)
    blame = np.where(np.arange(n_classes) == y[:, None], -1.0, 1.0 / (n_classes - 1))
    highest = np.linalg.norm(np.einsum("ijr,ik->jrk", responses, blame), axis=(1, 2)).max()
    above, below = (
        solve(the_problem(responses, y, s), PrimalDual(2, s), tol=1e-6, max_passes=2000)
        for s in (1.0001 * highest, 0.9 * highest)
    )
    assert above.certificate.lower == pytest.approx(60.0)
    assert below.certificate.upper < 60.0 if n_classes == 2 else below.certificate.upper <= 60.0 * (1 + 1e-6)
    assert select_parts(responses, y, 1).path[0].strength == pytest.approx(0.7 * highest)


def test_parts_that_tell_classes_apart_are_found():
    responses, y = some_responses(n=150, n_parts=40, n_classes=5, informative=(3, 11, 17, 28, 39))
    selected = select_parts(responses, y, 5)
    assert sorted(selected.parts.tolist()) == [3, 11, 17, 28, 39]
    assert selected.path[-1].n_parts == 5  # by exact zeros, and not by taking the largest
    assert np.count_nonzero(selected.norms) == 5
    assert (np.diff(selected.norms[selected.parts]) <= 0.0).all()


@functools.cache
def a_path():
    responses, y = correlated()
    return select_parts(responses, y, 24, tol=1e-4)


def test_every_step_of_a_path_is_certified():
    selected = a_path()
    path = selected.path
    assert len(path) > 3
    assert all(0.0 <= step.relative_gap <= 1e-4 for step in path)
    assert path[0].n_parts == 0
    assert path[0].objective == pytest.approx(200.0, rel=1e-3)  # a loss of one for every image
    count = np.count_nonzero(selected.norms)  # zeros are exact
    assert 24 <= count < 60
    rest = np.setdiff1d(np.arange(60), selected.parts)
    assert 0.0 < selected.norms[selected.parts].min() >= selected.norms[rest].max()
    assert sum(step.n_parts == count and step.strength == selected.strength for step in path) == 1


def test_units_and_zeros_of_responses_do_not_matter():
    responses, y = correlated()
    moved = 8.0 * responses + np.random.default_rng(1).normal(size=(60, 2))
    selected, other = a_path(), select_parts(moved, y, 24, tol=1e-4)
    assert set(other.parts.tolist()) == set(selected.parts.tolist())
    assert other.strength == pytest.approx(8.0 * selected.strength)
    assert 8.0 * other.norms == pytest.approx(selected.norms, rel=1e-3, abs=1e-6)


def test_copies_are_not_selected_and_change_nothing():
    responses, y = correlated()
    again = np.concatenate([responses, responses[:, :30]], axis=1)
    selected, other = a_path(), select_parts(again, y, 24, tol=1e-4)
    assert np.array_equal(other.parts, selected.parts)
    assert (other.norms[60:] == 0.0).all()
    with pytest.raises(ValueError, match="61 parts were asked for, but only 60 of the 90 in the pool differ"):
        select_parts(again, y, 61)


@settings(max_examples=10, deadline=None)
@given(n_parts=st.integers(1, 12), seed=st.integers(0, 3))
def test_the_number_asked_for_is_the_number_got(n_parts, seed):
    responses, y = some_responses(n=24, n_parts=12, n_regions=1, informative=(0, 5), by=4.0, seed=seed)
    parts = select_parts(responses, y, n_parts, tol=1e-2).parts
    assert parts.size == n_parts == len(set(parts.tolist()))
    assert parts.min() >= 0 and parts.max() < 12


def test_a_selection_that_is_given_no_time_says_so():
    responses, y = correlated()
    with pytest.warns(ConvergenceWarning, match=r"relative gap of .* for some λ \(goal 1.0e-06\) after 3 passes"):
        selected = select_parts(responses, y, 10, tol=1e-6, max_passes=3)
    assert selected.parts.size == 10
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        select_parts(responses, y, 10, tol=1e-2)


def test_responses_that_tell_nothing_are_refused():
    with pytest.raises(ValueError, match="nothing to select by"):
        select_parts(np.ones((60, 8, 1)) * np.arange(8)[:, None], some_responses()[1], 2)
    with pytest.raises(ValueError, match="Responses must be finite"):
        select_parts(np.full((60, 8, 2), np.nan), some_responses()[1], 2)
