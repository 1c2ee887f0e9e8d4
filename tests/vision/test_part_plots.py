"""Pictures of parts: what they show, not how it looks."""

import numpy as np
import pytest

from maxmargin.plots import filter_glyphs, hog_glyphs, part_curve, part_weights, top_detections
from maxmargin.vision import HOGPatches, PartClassifier
from maxmargin.vision.features.hog import hog
from maxmargin.vision.plots.hog import edge_strengths, glyph_image


def _images(n, seed=0):
    """Grey images of 48 × 60 pixels with a square of stripes that lie or stand; no two pieces of noise are the same."""
    rng, images, y = np.random.default_rng(seed), [], np.array(["flat", "tall"] * n)
    for name in y:
        image = rng.integers(90, 110, (48, 60)).astype(np.uint8)
        top, left = rng.integers(0, 20), rng.integers(0, 30)
        along = np.mgrid[:28, :28][0 if name == "flat" else 1]
        image[top : top + 28, left : left + 28] += (50 + 50 * np.sin(along / 2.0)).astype(np.uint8)
        images.append(image)
    return images, y


def _trained(training="random", flips=True, **more):
    images, y = _images(6)
    features = HOGPatches(size=3, cell=6, octave_scales=1, flips=flips, color=False)
    options = {"features": features, "regions": (1, 2), "random_state": 0, "pool_size": 20} | more
    return PartClassifier(4, training, **options).fit(images, y)


@pytest.fixture(scope="module")
def model():
    return _trained()


def _rows(figure):
    """The pictures of every row, by its label."""
    rows = {}
    for ax in figure.axes:
        row = ax.get_subplotspec().rowspan.start
        rows.setdefault(row, []).append(ax)
    return {
        axes[0].get_ylabel(): [np.asarray(ax.images[0].get_array()) for ax in axes if ax.images]
        for axes in rows.values()
    }


def test_part_weights_are_those_of_the_region_about_zero(model):
    for region in range(5):
        ax = part_weights(model, region)
        assert np.array_equal(ax.images[0].get_array(), model.part_weights_[:, :, region].T)
        low, high = ax.images[0].get_clim()
        assert low == -high == -np.abs(model.part_weights_).max()
    assert [text.get_text() for text in ax.get_xticklabels()] == ["flat", "tall"]
    assert ax.get_title() == "weights, region 4"
    with pytest.raises(ValueError, match="region must be from 0 to 4, got 5"):
        part_weights(model, 5)


@pytest.mark.parametrize("flips", [True, False])
def test_top_detections_are_cut_out_of_the_images_as_they_were_seen(flips):
    model, (images, y) = _trained(flips=flips), _images(6, seed=1)
    figure = top_detections(model, images, parts=[2, 0], n=3, labels=y)
    drawn = _rows(figure)
    assert list(drawn) == ["part 2", "part 0"]
    mirrored = 0
    for part in (2, 0):
        found = model.top_detections(images, part, 3)
        assert len(drawn[f"part {part}"]) == 3
        for picture, detection in zip(drawn[f"part {part}"], found, strict=True):
            left, top, right, bottom = detection.window
            image = images[detection.image]
            rows, columns = slice(round(48 * top), round(48 * bottom)), slice(round(60 * left), round(60 * right))
            expected = image[rows, columns][:, :: -1 if detection.mirrored else 1]
            assert np.array_equal(picture[..., 0], expected)
            mirrored += detection.mirrored
    titles = [ax.get_title() for ax in figure.axes]
    assert titles == [y[d.image] for part in (2, 0) for d in model.top_detections(images, part, 3)]
    assert flips == (mirrored > 0)


def test_pictures_of_parts_refuse_what_they_cannot_draw(model):
    images, _ = _images(3, seed=1)
    with pytest.raises(ValueError, match="parts must be some of 0 to 3"):
        top_detections(model, images, parts=[4])
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        top_detections(model, images, n=0)
    with pytest.raises(ValueError, match="6 images, and labels of 2"):
        top_detections(model, images, labels=["a", "b"])
    with pytest.raises(ValueError, match="no model"):
        top_detections({}, images)
    with pytest.raises(ValueError, match=r"got shape \(2, 2, 31\)"):
        hog_glyphs(np.zeros((2, 2, 31)))


def test_filter_glyphs_are_those_of_the_filters(model):
    figure = filter_glyphs(model, [3, 1])
    drawn = [ax.images[0].get_array() for ax in figure.axes]
    for picture, part in zip(drawn, (3, 1), strict=True):
        assert np.array_equal(picture, glyph_image(edge_strengths(model.filter_images()[part])[0]))


@pytest.mark.parametrize("angle", [0, 60, 140])
def test_bars_lie_along_the_edges_of_an_image(angle):
    """A step of brightness across a direction: the brightest pixels of its glyphs are on a line along the edge."""
    y, x = np.mgrid[:64, :64] - 31.5
    across = x * np.cos(np.deg2rad(angle)) + y * np.sin(np.deg2rad(angle))
    image = (128 + 100 * np.tanh(across)).astype(np.uint8)
    picture = glyph_image(edge_strengths(hog(image, 8))[0])
    cell = picture.shape[0] // 8
    middle = picture[4 * cell : 5 * cell, 4 * cell : 5 * cell]
    ys, xs = np.nonzero(middle > 0.9 * middle.max())
    spread = np.cov(np.stack([xs, ys]))
    direction = np.linalg.eigh(spread)[1][:, -1]
    gradient = np.array([np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))])
    assert abs(direction @ gradient) < np.sin(np.deg2rad(6))


def test_part_curve_draws_means_and_the_range_of_trials():
    ax = part_curve({"random": {32: [0.2, 0.4], 8: 0.1}, "joint": {8: 0.5}})
    assert ax.lines[0].get_xydata().tolist() == [[8.0, 10.0], [32.0, pytest.approx(30.0)]]
    assert ax.get_xscale() == "log" and ax.xaxis.get_transform().base == 2
    assert len(ax.collections) == 1
    ys = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (ys.min(), ys.max()) == pytest.approx((10.0, 40.0))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["random", "joint"]
    with pytest.raises(ValueError, match="at least one number of parts"):
        part_curve({"random": {}})
    with pytest.raises(ValueError, match="at least 1"):
        part_curve({"random": {0: 0.5}})
