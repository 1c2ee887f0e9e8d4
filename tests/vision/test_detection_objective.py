"""The objective of a detector and its convex bounds: values by exhaustion, bounds that touch and never fall below."""

from dataclasses import replace

import numpy as np
import pytest
from detection_by_hand import (
    AGAINST,
    PARTS,
    objective_value,
    overlap,
    positive_score,
    random_weights,
    tiny_objective,
    window_scores,
)

from maxmargin.latent.loop import value
from maxmargin.problem import Planes
from maxmargin.solvers.certificate import certify, lower_bound
from maxmargin.vision.detection.model import StarModel
from maxmargin.vision.detection.star import Star

MIRRORED = StarModel(AGAINST.components[:1], mirrored=True)
MODELS = {"parts": PARTS, "against": AGAINST, "mirrored": MIRRORED}


@pytest.fixture(params=MODELS, scope="module")
def objective(request):
    return tiny_objective(np.random.default_rng(5), MODELS[request.param])


def weights(rng, objective, scale=0.15):
    return random_weights(rng, objective.model, scale)


def bound_value(objective, latent, w):
    return objective.regularizer.value(w) + objective.problem(latent).constraints.evaluate(w).total


def test_the_objective_by_exhaustion(rng, objective):
    for _ in range(2):
        w = weights(rng, objective)
        assert value(objective, w) == pytest.approx(objective_value(objective, w), rel=1e-5)


def test_bounds_touch_where_they_are_made_and_are_never_below(rng, objective):
    w0 = weights(rng, objective)
    evaluation = objective.evaluate(w0)
    assert bound_value(objective, evaluation.best, w0) == pytest.approx(objective_value(objective, w0), rel=1e-5)
    above = []
    for step in (0.05, 0.3, 1.0):
        w = (1.0 - step) * w0 + step * weights(rng, objective)
        bound, exact = bound_value(objective, evaluation.best, w), objective_value(objective, w)
        assert bound == pytest.approx(objective_value(objective, w, evaluation.best), rel=1e-5)
        assert bound >= exact * (1.0 - 1e-6)
        above.append(bound - exact)
    assert max(above) > 1e-3, "a bound that is the objective everywhere would be convex"


def test_bounds_are_convex(rng, objective):
    latent = objective.evaluate(weights(rng, objective)).best
    one, other = weights(rng, objective), weights(rng, objective)
    ends = [bound_value(objective, latent, w) for w in (one, other)]
    for t in (0.2, 0.5, 0.9):
        assert bound_value(objective, latent, t * one + (1 - t) * other) <= t * ends[0] + (1 - t) * ends[1] + 1e-6


def test_regrets_are_what_the_bound_loses(rng, objective):
    w, other = weights(rng, objective), weights(rng, objective)
    evaluation, latent = objective.evaluate(w), objective.evaluate(other).best
    n, images, model = objective.n_positives, objective.images, objective.model
    everybody = np.arange(objective.n_examples)
    regret = evaluation.regrets(everybody, latent)
    expected = [
        objective.positive_C
        * (
            max(0.0, 1.0 - positive_score(images, model, w, p, latent[p]))
            - max(0.0, 1.0 - positive_score(images, model, w, p))
        )
        for p in range(n)
    ]
    if model.has_negative_parts:
        free, held = window_scores(images, model, w), window_scores(images, model, w, latent[n])
        hinge = [sum(max(0.0, 1.0 + score) for score in scores.values()) for scores in (held, free)]
        expected.append(objective.C * (hinge[0] - hinge[1]))
        assert expected[-1] > 1e-3
    assert max(expected[:n]) > 1e-3
    np.testing.assert_allclose(regret, expected, atol=1e-5)
    gap = bound_value(objective, latent, w) - value(objective, w)
    assert regret.sum() == pytest.approx(gap, abs=1e-5)
    np.testing.assert_allclose(evaluation.regrets(everybody, evaluation.best), 0.0, atol=1e-5)
    some = everybody[::2]
    np.testing.assert_allclose(evaluation.regrets(some, [latent[i] for i in some]), regret[::2], atol=1e-9)


def test_proposals_are_placements_of_the_example(rng, objective):
    w = weights(rng, objective)
    evaluation = objective.evaluate(w)
    for i in range(objective.n_positives):
        allowed = {tuple(root) for root in objective.images.positives[i].roots.tolist()}
        proposed = [evaluation.propose(i, evaluation.best[i], rng) for _ in range(10)]
        assert all(tuple(place[:4].tolist()) in allowed for place in proposed)
        assert evaluation.regrets(np.full(10, i), proposed).min() >= 0.0
    if objective.model.has_negative_parts:
        assert evaluation.propose(objective.n_positives, evaluation.best[-1], rng) is evaluation.best[-1]


def test_weak_duality_at_any_shares(rng, objective):
    """Placements and shares at random, more than the budget allows: the dual value is below every bound value."""
    latent = objective.evaluate(weights(rng, objective)).best
    problem = objective.problem(latent)
    bound = problem.constraints
    lowest = min(bound_value(objective, latent, weights(rng, objective, scale)) for scale in (0.15, 0.02, 0.0))
    best = -np.inf
    for scale in (1e-5, 0.003, 1.0):
        found = [
            bound.search(i, Star(bound.model, weights(rng, objective)), weights(rng, objective), 20) for i in range(3)
        ]
        example = np.concatenate([hard.example for hard in found] * 2)
        labels = np.concatenate([hard.placements for hard in found] * 2)
        alpha = Planes(example, labels, rng.exponential(scale, example.size))
        shares = bound.feasible(alpha)
        totals = np.bincount(shares.example, weights=shares.alpha)
        assert (shares.alpha >= 0.0).all()
        assert (totals <= bound.budget_of(np.arange(totals.size)) * (1.0 + 1e-9)).all()
        lower = lower_bound(problem, alpha)
        assert lower <= lowest
        best = max(best, lower)
        certificate = certify(problem, weights(rng, objective), alpha)
        assert certificate.lower <= lowest and certificate.upper >= best
    assert best > 0.0


def test_shares_of_one_bound_are_shares_of_the_next(rng, objective):
    """v is formed from the places that a bound holds, whatever the shares say of those."""
    first, second = (objective.evaluate(weights(rng, objective)).best for _ in range(2))
    old, new = objective.problem(first).constraints, objective.problem(second).constraints
    w = weights(rng, objective)
    hard = [old.search(i, Star(old.model, w), w, 10) for i in range(3)]
    alpha = Planes(
        np.concatenate([h.example for h in hard]),
        np.concatenate([h.placements for h in hard]),
        np.full(sum(h.example.size for h in hard), 0.01),
    )
    at_w = weights(rng, objective)
    linear, v, *_ = new.totals(alpha)
    below = linear - v @ at_w
    shares = new.feasible(alpha).alpha.sum()
    assert linear == pytest.approx(shares)
    # Σα(1 − y·score) is at most the loss of the new bound at any weights.
    assert below <= new.evaluate(at_w).total + 1e-5


def test_shares_follow_a_root_to_another_level(rng):
    """A negative part stays where it was only as long as its root does: the new level may have no such place."""
    objective = tiny_objective(rng, AGAINST)
    latent = objective.evaluate(weights(rng, objective)).best
    roots = np.array([[0, 1, 0, 0], [0, 0, 1, 1]], np.int32)
    objective.images.positives[0] = replace(objective.images.positives[0], roots=roots, overlap=np.ones(2))
    old = np.array(latent[:1], np.int32)
    old[0, :4], old[0, 6:] = (0, 0, 1, 1), (9, 10)
    kept = latent[0].copy()
    kept[:4], kept[4:] = (0, 1, 0, 0), (1, 1, 2, 2)
    positives = objective.images.positives
    positives[0] = replace(positives[0], roots=np.array([old[0, :4], kept[:4]]))
    bound = objective.problem([kept, *latent[1:]]).constraints
    ((_, placements, rows),) = bound.formed(Planes(np.array([0]), old, np.array([0.01])))
    np.testing.assert_array_equal(placements[0], kept)
    np.testing.assert_array_equal(rows, AGAINST.features(objective.images.pyramids[0], kept[None]))
    kept[:4] = 0, 0, 1, 1
    bound = objective.problem([kept, *latent[1:]]).constraints
    ((_, placements, _),) = bound.formed(Planes(np.array([0]), old, np.array([0.01])))
    assert placements[0].tolist() == [0, 0, 1, 1, 1, 1, 9, 10], "of the same root any place will do"


def test_placements_of_other_images_are_refused_and_their_shares_left_out(rng, objective):
    """They would be read from places that are not there, and be taken for constraints that there are not."""
    latent = objective.evaluate(weights(rng, objective)).best
    bound = objective.problem(latent).constraints
    for column, entry in ((0, 9), (1, 99), (2, -1), (3, 60), (4, 90), (5, -1)):
        moved = latent[0].copy()
        moved[column] = entry
        with pytest.raises(ValueError, match="of other images"):
            objective.problem([moved, *latent[1:]])
    w = weights(rng, objective)
    hard = bound.search(0, Star(bound.model, w), w, 5)
    n = bound.n_positives
    window, label = hard.example[hard.example >= n][:1], hard.placements[hard.example >= n][:1]
    share = np.array([0.01])
    assert bound.feasible(Planes(window, label, share)).alpha.tolist() == [0.01]
    for column, entry in ((0, 9), (1, 99), (2, -1), (3, 60), (4, 90), (5, -1)):
        moved = label.copy()
        moved[0, column] = entry
        assert len(bound.feasible(Planes(window, moved, share))) == 0
    assert len(bound.feasible(Planes(window + bound.n_examples, label, share))) == 0
    assert len(bound.feasible(Planes(np.empty(0, np.int64), [], np.empty(0)))) == 0, "as a file has them"
    mirrored = label.copy()
    mirrored[0, 0] ^= 1
    kept = len(bound.feasible(Planes(window, mirrored, share)))
    assert kept == objective.model.mirrored, "a view that is not searched proves nothing"
    root = objective.images.positives[0].roots[0]
    label[0, :4] = root
    at = n + objective.images.window(0, int(root[1]), root[2:3], root[3:4])
    assert len(bound.feasible(Planes(at, label, share))) == 0, "it is an object, no background"


def test_windows_and_positives_by_their_overlaps(objective):
    images = objective.images
    for i, photo in enumerate(images.pyramids.photos):
        for k, frame in enumerate(images.pyramids.frames(i)):
            free = images.background(i, k)
            for c, component in enumerate(objective.model.components):
                for row, column in np.ndindex(frame.rows, frame.columns):
                    fits = row + component.rows <= frame.rows and column + component.columns <= frame.columns
                    box = frame.box(row, column, component.rows, component.columns)
                    alone = all(overlap(box, other) < 0.3 for other in photo.boxes)
                    assert free[c, row, column] == (fits and alone)
    for positive in images.positives:
        box = images.pyramids.photos[positive.image].boxes[0]
        frames = images.pyramids.frames(positive.image)
        shares = [
            overlap(frames[k].box(row, column, *objective.model.size_of(view)), box)
            for view, k, row, column in positive.roots
        ]
        np.testing.assert_allclose(shares, positive.overlap, rtol=1e-5)
        assert min(shares) >= images.overlap - 1e-6 or np.ptp(shares) < 1e-6, (
            "good ones, or the best ones where none is good"
        )


def test_images_are_worked_on_in_order_whatever_the_threads(rng):
    one, two = (tiny_objective(np.random.default_rng(5), AGAINST, n_background=4) for _ in range(2))
    two.n_jobs = 2
    w = weights(rng, one)
    assert list(two.over_images(lambda i: i, range(6))) == list(range(6))
    assert value(one, w) == value(two, w)
    np.testing.assert_array_equal(np.array(one.evaluate(w).best[:-1]), np.array(two.evaluate(w).best[:-1]))
