"""Where training of detectors begins: groups of boxes, sizes of roots, orientations, and parts from energy."""

import numpy as np
import pytest
from detection_by_hand import photo
from hypothesis import given, settings, strategies as st
from scipy import ndimage

from maxmargin.vision.detection.initial import (
    OtherPart,
    finest_scale,
    first_placements,
    root_size,
    split_by_aspect,
    with_parts,
)
from maxmargin.vision.detection.model import Component, Prior, StarModel
from maxmargin.vision.detection.photos import Photo
from maxmargin.vision.detection.star import Star
from maxmargin.vision.detection.training_images import PyramidStore, TrainingImages
from maxmargin.vision.features.cell_pyramid import Frame, Grid, Level
from maxmargin.vision.kernels.hog import OUTSIDE

sides = st.floats(5.0, 200.0)


@given(st.lists(st.tuples(sides, sides), min_size=3, max_size=20), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_groups_are_equally_large_and_of_ordered_shapes(shapes, n_components):
    boxes = np.array([[3.0, 4.0, 3.0 + w, 4.0 + h] for w, h in shapes])
    group = split_by_aspect(boxes, n_components)
    counts = np.bincount(group, minlength=n_components)
    assert counts.sum() == len(boxes) and counts.max() - counts.min() <= 1
    aspect = (boxes[:, 2] - boxes[:, 0]) / (boxes[:, 3] - boxes[:, 1])
    for low, high in zip(range(n_components - 1), range(1, n_components), strict=True):
        assert aspect[group == low].max() <= aspect[group == high].min() * (1 + 1e-12)


@given(st.floats(0.25, 4.0), st.floats(20.0, 300.0), st.sampled_from([4, 8]))
@settings(max_examples=60, deadline=None)
def test_roots_have_the_shape_of_boxes_and_no_more_cells_than_they(aspect, side, cell):
    boxes = np.array([[0.0, 0.0, side / np.sqrt(aspect), side * np.sqrt(aspect)]] * 3)
    rows, columns = root_size(boxes, cell)
    assert rows >= 3 and columns >= 3
    if min(rows, columns) > 3:
        assert (rows - 0.5) / (columns + 0.5) <= aspect <= (rows + 0.5) / (columns - 0.5)
        assert (rows - 0.5) * (columns - 0.5) * cell**2 <= 5000.0
    assert root_size(5.0 * boxes, cell, 20.0) == root_size(boxes, cell, 20.0), "the area alone says how large"


def test_images_are_enlarged_for_small_boxes_but_not_beyond_twice():
    boxes = np.array([[0, 0, s, s] for s in [30.0, *[90.0] * 30]])
    assert finest_scale(boxes, 45, 45) == 1.0, "one box in twenty may be too small"
    assert finest_scale(boxes[:1], 45, 45) == pytest.approx(1.5)
    assert finest_scale(boxes[:1], 400, 400) == 2.0


# First placements.


def training(photos, model, **settings):
    pyramids = PyramidStore(photos, Grid(8, 2, 1.0, (3, 3), (1, 1)), model.has_parts, 10**9)
    return TrainingImages(model, pyramids, **settings)


def test_first_placements_overlap_best_within_the_group(rng):
    model = StarModel((Component(3, 3), Component(3, 4)))
    images = training([photo(rng, (8, 8, 32, 32)), photo(rng, (6, 16, 38, 40))], model, flips=False, overlap=0.5)
    group = [0, 1]
    for positive, c, place in zip(images.positives, group, first_placements(images, group), strict=True):
        own = positive.roots[:, 0] // 2 == c
        assert place[0] // 2 == c
        at = np.flatnonzero((positive.roots == place[:4]).all(axis=1))
        assert positive.overlap[at[0]] == positive.overlap[own].max()
    for positive, place in zip(images.positives, first_placements(images, [5, 5]), strict=True):
        at = np.flatnonzero((positive.roots == place[:4]).all(axis=1))
        assert positive.overlap[at[0]] == positive.overlap.max(), "no root of that group fits: any"


def facing(rng, right):
    """A wedge that points to the right or to the left, as a drawing with noise."""
    image = rng.integers(100, 120, (48, 48)).astype(np.uint8)
    y, x = np.indices((24, 24))
    inside = np.abs(y - 12) < (24 - x) / 2
    image[12:36, 12:36][inside if right else inside[:, ::-1]] = 220
    return Photo(image, 48, 48, np.array([[12.0, 12.0, 36.0, 36.0]]), np.zeros(1, bool))


@pytest.mark.parametrize("seed", range(4))
def test_mirrored_components_tell_left_from_right(seed):
    rng = np.random.default_rng(seed)
    right = rng.permutation([True] * 5 + [False] * 7)
    images = training([facing(rng, one) for one in right], StarModel((Component(3, 3),), mirrored=True))
    form = np.array([place[0] for place in first_placements(images, [0] * 12)])
    assert set(form.tolist()) == {0, 1}
    assert len(set(form[right].tolist())) == 1 and len(set(form[~right].tolist())) == 1


# Parts.


def grown(model, w, n_parts, n_negative, size, others=None):
    return with_parts(model, w, n_parts, n_negative, size, Prior(0.1, 0.3), others)


def energy_of(model, w, c, sign):
    fine = ndimage.zoom(model.root(w, c), (2, 2, 1), order=1, grid_mode=True, mode="nearest") / 4.0
    fine[..., OUTSIDE] = 0.0
    return np.maximum(sign * fine, 0.0)


def all_sums(energy, size):
    rows, columns = energy.shape[0] - size + 1, energy.shape[1] - size + 1
    return np.array([[energy[y : y + size, x : x + size].sum() for x in range(columns)] for y in range(rows)])


@pytest.mark.parametrize("sign", [1, -1])
def test_parts_cover_the_strongest_windows_one_after_the_other(rng, sign):
    model = StarModel((Component(4, 5), Component(3, 3)))
    w = rng.normal(size=model.n_weights)
    counts = (3, 0) if sign > 0 else (0, 3)
    found, weights = grown(model, w, *counts, 3)
    for c, component in enumerate(found.components):
        assert weights[found.bias_at(c)] == w[model.bias_at(c)]
        values = energy_of(model, w, c, sign)
        energy = (values**2).sum(axis=2)
        assert len(component.parts) == 3
        for p, part in enumerate(component.parts):
            sums = all_sums(energy, 3)
            assert (part.rows, part.columns, part.sign) == (3, 3, sign)
            assert sums[part.top, part.left] == pytest.approx(sums.max())
            inside = (slice(part.top, part.top + 3), slice(part.left, part.left + 3))
            np.testing.assert_allclose(found.filter(weights, c, p), values[inside])
            energy[inside] = 0.0
            np.testing.assert_allclose(weights[found.cost_at(c, p)], Prior(0.1, 0.3).cost(part))


def test_parts_are_no_larger_than_the_root():
    model = StarModel((Component(3, 3),))
    part = grown(model, np.ones(model.n_weights), 1, 0, 9)[0].components[0].parts[0]
    assert (part.rows, part.columns) == (6, 6)


def test_parts_score_what_the_root_does_where_they_stand_at_rest(rng):
    """Parts that cover a root of positive weights once, on fine cells that all equal their coarse one."""
    model = StarModel((Component(2, 2),))
    w = np.zeros(model.n_weights)
    value = rng.uniform(0.5, 1.0, 31)
    model.root(w, 0)[..., :31] = value
    found, weights = grown(model, w, 4, 0, 2)
    coarse = np.full((4, 4, 32), 0.2, np.float32)
    level = Level(coarse, np.full((8, 8, 32), 0.2, np.float32), Frame(4, 4, 0.0, 0.0, 8.0, 8.0))
    alone = Star(model, w).scores(level).scores[0, 1, 1]
    assert Star(found, weights).scores(level).scores[0, 1, 1] == pytest.approx(2.0 * alone, rel=1e-5)


def test_negative_parts_of_others_stand_where_those_have_them(rng):
    model = StarModel((Component(4, 4),))
    other = rng.uniform(0.5, 1.0, (4, 4, 32))
    given = [OtherPart(other, 0.5, 0.0), OtherPart(2.0 * other, 0.9, 0.25), OtherPart(other, 0.0, 0.0)]
    found, weights = grown(model, np.zeros(model.n_weights), 1, 2, 4, given)
    places = [(part.top, part.left, part.sign, part.rows) for part in found.components[0].parts[1:]]
    assert places == [(4, 0, -1, 4), (4, 2, -1, 4)], "within the root, wherever they were"
    np.testing.assert_array_equal(found.filter(weights, 0, 1), other)
    np.testing.assert_array_equal(found.filter(weights, 0, 2), 2.0 * other)
