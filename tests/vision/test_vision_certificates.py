"""Certificates of image models against a referee with many digits: they hold in exact arithmetic."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from detection_by_hand import AGAINST, PARTS, objective_value, random_weights, tiny_objective
from parts_by_hand import ragged, region_of

from maxmargin.problem import Certificate, Planes, Problem
from maxmargin.solvers import certify, solve
from maxmargin.vision.detection.mining import Mining
from maxmargin.vision.detection.model import StarModel
from maxmargin.vision.detection.star import Star
from maxmargin.vision.parts.ascent import PartAscent
from maxmargin.vision.parts.filters import FilterBound, FilterShares, ImageShare, tied_to
from maxmargin.vision.parts.primal_dual import PrimalDual
from maxmargin.vision.parts.responses import Pooling, Responder, respond_all
from maxmargin.vision.parts.selection import _Task
from maxmargin.vision.parts.weights import PartWeights

GRIDS, TIE = (1, 2), 0.5


@pytest.fixture(autouse=True)
def many_digits():
    with localcontext() as context:
        context.prec = 60
        yield


def exact(values):
    """As decimals, not rounded."""
    return [exact(v) for v in values] if np.ndim(values) else Decimal(float(values))


def product(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), Decimal(0))


def filter_problem(seed, dtype=np.float32, n_views=2):
    rng = np.random.default_rng(seed)
    responder = Responder(ragged(seed, n=6, n_views=n_views, d=12, dtype=dtype), Pooling(GRIDS))
    table = rng.normal(size=(3, 2, responder.pooling.n_regions))
    weights = PartWeights(table, rng.normal(size=3), rng.normal(size=table.shape[1:]))
    last = rng.normal(size=(2, 12))
    bound = FilterBound(
        responder, weights, np.arange(6) % 3, rng.uniform(0.5, 2.0, 6), respond_all(responder, last).places
    )
    return Problem(bound, tied_to(last.ravel(), TIE)), rng


def exact_filter_objective(problem, w):
    bound, penalty = problem.constraints, problem.regularizer
    patches, n_regions = bound.responder.patches, bound.responder.pooling.n_regions
    table, offset, filters = exact(bound.table), exact(bound.offset), exact(bound.filters(w))
    away = [a - b for a, b in zip(exact(w), exact(penalty.mean), strict=True)]
    total = product(away, away) / exact(penalty.covariance) / 2
    for i, y in enumerate(bound.label.tolist()):
        free, held = np.full((2, bound.n_parts, n_regions), Decimal(0))
        for v in range(patches.n_views):
            view = i * patches.n_views + v
            some = range(patches.first[view], patches.first[view + 1])
            for j in range(bound.n_parts):
                score = {q: product(exact(patches.values[q]), filters[j]) / patches.n_views for q in some}
                for r in range(n_regions):
                    inside = [s for q, s in score.items() if r in region_of(patches.windows[q], GRIDS)]
                    if inside:
                        free[j, r] += max(inside)
                        held[j, r] += score[some[0] + bound.held[i, v, j, r]]
        missing = [Decimal(0)]
        for k in set(range(len(table))) - {y}:
            apart = np.array(table[k]) - np.array(table[y])
            missing.append(1 + offset[k] - offset[y] + (apart * np.where(apart < 0, held, free)).sum())
        total += exact(bound.budget[i]) * max(missing)
    return total


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_filters_of_parts(dtype):
    """Scores of float32 patches are rounded, up or down as it happens: the bounds know by how much."""
    for seed in range(4):
        problem, rng = filter_problem(seed, dtype)
        found = solve(problem, PartAscent(0), tol=1e-2, max_passes=1000)
        assert found.converged
        for w in (found.weights, 0.7 * rng.normal(size=problem.n_weights)):
            value = exact_filter_objective(problem, w)
            proved = certify(problem, w, found.alpha)
            assert found.certificate.lower <= value and proved.lower <= value <= proved.upper
            assert proved.upper <= value * (1 + Decimal("1e-9"))
        assert exact_filter_objective(problem, found.weights) <= found.certificate.upper


def test_shares_of_filters_prove_nothing_about_another_bound():
    """Features belong to the places that their own bound holds: for another one they are formed anew."""
    problem, _ = filter_problem(0)
    alpha = solve(problem, PartAscent(0), tol=1e-3, max_passes=300).alpha
    bound = problem.constraints
    other = FilterBound(
        bound.responder, PartWeights(-bound.table, bound.offset, np.zeros(bound.table.shape[1:])), bound.label,
        bound.budget, bound.held,
    )  # fmt: skip
    np.testing.assert_array_equal(other.totals(alpha).v, other.totals(other.begun_from(alpha)).v)
    assert not np.allclose(other.totals(alpha).v, bound.totals(alpha).v)


def test_selection_of_parts():
    """The steps are in float32; the certificate is not made of what they computed."""
    rng = np.random.default_rng(0)
    label = (np.arange(24) % 3).astype(np.int32)
    X = (rng.normal(size=(24, 20)) + (label[:, None] == np.arange(20) % 3)).astype(np.float32)
    task = _Task(X, label, 3, 2, 1e-3, 2000)
    for share in (0.6, 0.3, 0.1):
        strength = share * task.no_parts_above()
        found = solve(task.problem(strength), PrimalDual(2, strength), tol=1e-3, max_passes=2000)
        assert found.converged
        W = np.array(exact(found.weights)).reshape(21, 3)
        norms = [sum(u * u for u in part.ravel()).sqrt() for part in W[:-1].reshape(10, 2, 3)]
        value = exact(strength) * sum(norms) + product(W[-1], W[-1]) / 2
        for x, y in zip(exact(X), label.tolist(), strict=True):
            scores = [product([*x, 1], W[:, k]) for k in range(3)]
            value += max((k != y) + scores[k] - scores[y] for k in range(3))
        assert found.certificate.lower <= value <= found.certificate.upper


@pytest.mark.parametrize(
    "model", [PARTS, AGAINST, StarModel(AGAINST.components[:1], mirrored=True)], ids=["parts", "against", "mirrored"]
)
def test_windows(model):
    """Scores of windows are float32, and the referee's float64."""
    objective = tiny_objective(np.random.default_rng(5), model)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        latent = objective.evaluate(random_weights(rng, model, 0.15)).best
        problem, w = objective.problem(latent), random_weights(rng, model, 0.15)
        value = objective_value(objective, w, latent)
        proved = certify(problem, w).upper
        assert value * (1.0 - 1e-12) <= proved <= value * (1.0 + 1e-3)
    found = solve(problem, Mining(10**8, random_state=0), tol=1e-3, max_passes=300)
    value = objective_value(objective, found.weights, latent)
    assert found.converged and found.certificate.lower <= value * (1.0 + 1e-12) <= found.certificate.upper


def test_windows_that_rounding_may_have_kept_from_costing_count():
    """No window has a loss as computed, but one might have."""
    objective = tiny_objective(np.random.default_rng(5), PARTS)
    w = random_weights(np.random.default_rng(0), PARTS, 0.15)
    bound = objective.problem(objective.evaluate(w).best).constraints
    bound.positive_budget = np.zeros(bound.n_positives)
    levels = objective.images.pyramids[2]
    star = Star(PARTS, w)
    top = max(objective.background(2, k, star.scores(level)).max() for k, level in enumerate(levels))
    for c in range(len(PARTS.components)):
        w[PARTS.bias_at(c)] -= top + 1.0
    loss = bound.search(2, Star(PARTS, w), w, 0).loss
    assert loss.total < 1e-5 and loss.rounding > 0.0


def test_shares_keep_within_budgets_exactly():
    problem, rng = filter_problem(0)
    bound = problem.constraints
    shares = [rng.exponential(1.0, 5) for _ in range(6)]
    alpha = bound.feasible(FilterShares([ImageShare(np.zeros(5, np.int64), share) for share in shares], bound.held))
    for image, budget in zip(alpha.images, bound.budget.tolist(), strict=True):
        assert sum(map(Fraction, image.share.tolist())) <= Fraction(budget)
    objective = tiny_objective(rng, PARTS, C=0.1)
    w = random_weights(rng, PARTS, 0.15)
    windows = objective.problem(objective.evaluate(w).best).constraints
    hard = windows.search(0, Star(PARTS, w), w, 5)
    again = np.repeat(np.arange(hard.example.size), 5)
    found = windows.feasible(Planes(hard.example[again], hard.placements[again], rng.exponential(0.1, again.size)))
    for i in np.unique(found.example).tolist():
        used = sum(map(Fraction, found.alpha[found.example == i].tolist()))
        assert used <= Fraction(windows.budget_of(np.array([i]))[0])


def test_a_constant_moves_both_bounds_outwards():
    moved = Certificate(1.0, 2.0).shifted(1e-30, 1e-31)
    assert moved.lower == 1.0 and moved.upper == np.nextafter(2.0, 3.0)
    moved = Certificate(1.0, 2.0, exact=False).shifted(0.5, 0.25)
    assert (moved.lower, moved.upper, moved.exact) == (1.25, 2.75, False)
