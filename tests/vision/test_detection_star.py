"""Searching for a star of parts: every place tried by hand, and scores that are those of the placements returned."""

import numpy as np
import pytest
from detection_by_hand import AGAINST, PARTS, random_level, random_weights, view_scores
from thinned import rotating

from maxmargin.vision.detection.model import Component, Part, StarModel
from maxmargin.vision.detection.star import Star

TWO_AGAINST = StarModel((Component(2, 2, (Part(2, 2, 0, 0, -1), Part(1, 2, 2, 1), Part(2, 1, 1, 2, -1))),))
ROOTS = StarModel((Component(2, 3), Component(4, 2)))
MODELS = [PARTS, AGAINST, TWO_AGAINST, ROOTS]


def everything(star, level, k=0, held=None):
    """All places of all views: scores, and placements."""
    found = star.scores(level, held)
    which, row, column = np.nonzero(np.isfinite(found.scores))
    return found.scores[which, row, column], found.placements(k, which, row, column)


@pytest.mark.parametrize(("model", "mirrored", "seed"), rotating(MODELS, [False, True], range(3), times=2))
def test_scores_are_the_best_of_all_places_of_parts(model, mirrored, seed):
    rng = np.random.default_rng(seed)
    model = StarModel(model.components, mirrored)
    w, level = random_weights(rng, model), random_level(rng)
    found = Star(model, w).scores(level)
    assert list(found.views) == model.views
    for v, view in enumerate(model.views):
        expected = view_scores(model, w, level, view)
        rows, columns = expected.shape
        np.testing.assert_allclose(found.scores[v, :rows, :columns], expected, atol=2e-5)
        assert (found.scores[v, rows:] == -np.inf).all() and (found.scores[v, :, columns:] == -np.inf).all()


@pytest.mark.parametrize("model", [AGAINST, TWO_AGAINST], ids=["against", "two"])
@pytest.mark.parametrize("mirrored", [False, True])
def test_held_negative_parts_stay_where_other_weights_place_them(rng, model, mirrored):
    model = StarModel(model.components, mirrored)
    w, held, level = random_weights(rng, model), random_weights(rng, model), random_level(rng)
    found = Star(model, w).scores(level, Star(model, held).negative_places(level))
    free = Star(model, w).scores(level)
    for v, view in enumerate(model.views):
        expected = view_scores(model, w, level, view, held)
        rows, columns = expected.shape
        np.testing.assert_allclose(found.scores[v, :rows, :columns], expected, atol=2e-5)
    inside = np.isfinite(free.scores)
    assert (found.scores[inside] >= free.scores[inside] - 1e-5).all()
    assert (found.scores[inside] > free.scores[inside] + 1e-3).any(), "other weights hold parts elsewhere"
    again = Star(model, w).scores(level, Star(model, w).negative_places(level))
    np.testing.assert_allclose(again.scores[inside], free.scores[inside], atol=1e-5)


@pytest.mark.parametrize(("model", "hold"), rotating(MODELS, [False, True]))
def test_scores_are_those_of_the_placements(rng, model, hold):
    model = StarModel(model.components, mirrored=True)
    w = random_weights(rng, model)
    levels = [random_level(rng), random_level(rng, 5, 4)]
    star, other = Star(model, w), Star(model, random_weights(rng, model))
    for k, level in enumerate(levels):
        scores, placements = everything(star, level, k, other.negative_places(level) if hold else None)
        assert (placements[:, 1] == k).all()
        np.testing.assert_allclose(model.features(levels, placements) @ w, scores, atol=2e-5)


def test_grids_smaller_than_a_root_have_no_place(rng):
    w, level = random_weights(rng, PARTS), random_level(rng, 2, 3)
    found = Star(PARTS, w).scores(level)
    assert (found.scores[0] == -np.inf).all()
    assert np.isfinite(found.scores[1]).sum() == 1
    expected = view_scores(PARTS, w, level, 2)
    np.testing.assert_allclose(found.scores[1, 0, 0], expected[0, 0], atol=2e-5)
