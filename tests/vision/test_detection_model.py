"""Deformable part models: where weights stand, what features are, and what mirroring does to them."""

import numpy as np
import pytest
from detection_by_hand import AGAINST, PARTS, all_values, random_level, random_weights

from maxmargin.vision.detection.model import Component, Prior, StarModel
from maxmargin.vision.features.cell_pyramid import Grid

MODELS = [
    PARTS,
    AGAINST,
    StarModel((Component(3, 4),)),
    StarModel((Component(2, 2), Component(3, 3, PARTS.components[0].parts))),
]


@pytest.mark.parametrize("model", MODELS, ids=range(len(MODELS)))
def test_every_weight_is_of_one_thing(model):
    count = np.zeros(model.n_weights, int)
    for c, component in enumerate(model.components):
        count[model.root_at(c)] += 1
        count[model.bias_at(c)] += 1
        for p in range(len(component.parts)):
            count[model.filter_at(c, p)] += 1
            count[model.cost_at(c, p)] += 1
    assert (count == 1).all()
    assert sum(component.n_weights for component in model.components) == model.n_weights


def any_placements(rng, model, levels, n=40):
    """Placements with parts anywhere, not only where they are best."""
    out = np.zeros((n, model.placement_length), np.int32)
    for at in out:
        view, k = rng.choice(model.views), rng.integers(len(levels))
        (rows, columns), (height, width) = model.size_of(view), levels[k].coarse.shape[:2]
        at[:4] = view, k, rng.integers(height - rows + 1), rng.integers(width - columns + 1)
        for p, part in enumerate(model.parts_of(view)):
            at[4 + 2 * p] = rng.integers(2 * height - part.rows + 1)
            at[5 + 2 * p] = rng.integers(2 * width - part.columns + 1)
    return out


@pytest.mark.parametrize("model", MODELS, ids=range(len(MODELS)))
@pytest.mark.parametrize("mirrored", [False, True])
def test_features_give_the_score_of_any_placement(rng, model, mirrored):
    model = StarModel(model.components, mirrored)
    w, levels = random_weights(rng, model), [random_level(rng), random_level(rng, 4, 5)]
    placements = any_placements(rng, model, levels)
    found = model.features(levels, placements) @ w
    for score, at in zip(found, placements, strict=True):
        view, k, row, column = at[:4]
        root, parts = all_values(model, w, levels[k], view)
        expected = root[row, column]
        for p, (part, values) in enumerate(zip(model.components[view // 2].parts, parts, strict=True)):
            expected += part.sign * values[row, column, at[4 + 2 * p], at[5 + 2 * p]]
        assert score == pytest.approx(expected, abs=1e-5)


def in_the_mirror(model, levels, placements):
    """The same places in the mirrored image, of the other form of the component."""
    out = placements.copy()
    for at in out:
        view, k, _, column = at[:4].copy()
        width = levels[k].coarse.shape[1]
        at[0], at[3] = view ^ 1, width - model.size_of(view)[1] - column
        for p, part in enumerate(model.parts_of(view)):
            at[5 + 2 * p] = 2 * width - part.columns - at[5 + 2 * p]
    return out


@pytest.mark.parametrize("model", [PARTS, AGAINST], ids=["parts", "against"])
def test_a_mirrored_view_is_the_view_of_the_mirrored_image(rng, model):
    model = StarModel(model.components, mirrored=True)
    image = rng.integers(0, 256, (56, 64)).astype(np.uint8)
    grid = Grid(octave_scales=2, least=(3, 3), pad=(1, 2))
    levels, mirrored = grid.pyramid(image), grid.pyramid(np.ascontiguousarray(image[:, ::-1]))
    placements = any_placements(rng, model, levels)
    here = model.features(levels, placements)
    there = model.features(mirrored, in_the_mirror(model, levels, placements))
    assert np.abs(here).max() > 0.1
    # Colours are rounded to whole numbers when a level is resized, which may turn a gradient of next to nothing.
    np.testing.assert_allclose(here, there, atol=1e-3)


def test_parts_of_less_rich_components_leave_entries_at_zero():
    assert PARTS.placement_length == 8
    levels = [random_level(np.random.default_rng(0))]
    placements = np.array([[2, 0, 0, 0, 1, 1, 0, 0], [2, 0, 0, 0, 1, 1, 5, 5]], np.int32)
    one, other = PARTS.features(levels, placements)
    np.testing.assert_array_equal(one, other)
    assert (one[PARTS.root_at(0)] == 0.0).all() and one[PARTS.bias_at(0)] == 0.0 and one[PARTS.bias_at(1)] == 1.0


def test_the_prior_draws_costs_to_stiffness_and_keeps_them_above_a_least(rng):
    prior = Prior(stiffness=0.2, negative_stiffness=0.5, firmness=5.0, bias_variance=50.0)
    omega = PARTS.regularizer(prior)
    w = random_weights(rng, PARTS)
    expected = 0.0
    for c, component in enumerate(PARTS.components):
        expected += 0.5 * (w[PARTS.root_at(c)] ** 2).sum() + 0.5 * w[PARTS.bias_at(c)] ** 2 / 50.0
        for p in range(len(component.parts)):
            at = PARTS.cost_at(c, p)
            w[at.start], w[at.start + 2] = 0.3, 0.06
            expected += 0.5 * (w[PARTS.filter_at(c, p)] ** 2).sum()
            drawn_to = 0.2 if component.parts[p].sign > 0 else 0.5
            expected += 2.5 * ((w[at] - [drawn_to, 0.0, drawn_to, 0.0]) ** 2).sum()
    assert omega.value(w) == pytest.approx(expected)
    w[PARTS.cost_at(0, 1).start + 2] = 0.01
    assert omega.value(w) == np.inf
    w[PARTS.cost_at(0, 1).start + 2] = 0.06
    w[PARTS.cost_at(0, 1).start + 3] = -7.0
    assert np.isfinite(omega.value(w)), "linear costs may be anything"
