"""Pyramids of cells: which levels there are, where their cells lie, and what mirrors do to them."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

pytest.importorskip("PIL", reason="needs maxmargin[vision]")

from maxmargin.vision.features.cell_pyramid import Grid
from maxmargin.vision.features.hog import checked_pixels, hog, mirrored
from maxmargin.vision.features.hog_patches import resized
from maxmargin.vision.kernels import resize as kernel


def picture(seed, height, width, color=True):
    """Shapes of several sizes with some noise, as photographs have them: noise alone vanishes when it is reduced."""
    rng = np.random.default_rng(seed)
    shape = (height, width, 3) if color else (height, width)
    image = np.full(shape, 120.0)
    for _ in range(20):
        top, left = rng.integers(0, height), rng.integers(0, width)
        image[top : top + rng.integers(4, 40), left : left + rng.integers(4, 40)] = rng.integers(0, 256, shape[2:])
    return np.clip(image + rng.normal(0, 12, shape), 0, 255).astype(np.uint8)


def test_the_first_levels_are_the_features_of_the_resized_image():
    image = picture(0, 64, 96)
    levels = Grid(octave_scales=3, pad=(2, 1)).pyramid(image)
    np.testing.assert_allclose(levels[0].coarse[2:-2, 1:-1], hog(image, 8), atol=1e-6)
    np.testing.assert_allclose(levels[0].fine[4:-4, 2:-2], hog(image, 4), atol=1e-6)
    reduced = shrunk(image, round(64 * 2 ** (-1 / 3)), round(96 * 2 ** (-1 / 3)))
    np.testing.assert_allclose(levels[1].coarse[2:-2, 1:-1], hog(reduced, 8), atol=1e-6)


def shrunk(image, height, width):
    """The kernel's image with colours last, as they come."""
    return np.ascontiguousarray(kernel.resize(checked_pixels(image), height, width).transpose(0, 2, 1))


def means(image, height, width):
    """Each new pixel as a mean of all old ones, weighted by triangles, in double precision."""

    def along(old, new):
        places = (np.arange(new) + 0.5) * old / new
        w = np.maximum(0, 1 - np.abs(np.arange(old) + 0.5 - places[:, None]) / max(old / new, 1))
        return w / w.sum(axis=1, keepdims=True)

    return np.einsum("yh,hwk,xw->yxk", along(image.shape[0], height), image, along(image.shape[1], width))


@settings(deadline=None, max_examples=60)
@given(*[st.integers(1, 40)] * 4, st.integers(0, 9))
def test_resized_pixels_are_weighted_means(h, w, height, width, seed):
    image = np.random.default_rng(seed).integers(0, 256, (h, w, 3)).astype(np.uint8)
    found = shrunk(image, height, width)
    assert np.abs(found - means(image.astype(float), height, width)).max() <= 0.5 + 2e-3
    assert np.abs(found.astype(int) - resized(image, height, width)).max() <= 2  # which rounds after each axis
    turned = shrunk(image[:, ::-1], height, width)[:, ::-1]
    assert np.abs(found.astype(int) - turned).max() <= 1 and (found != turned).mean() <= 0.2
    white = np.full_like(image, 255)
    assert (shrunk(white, height, width) == 255).all()


def test_resizing_runs_as_plain_python():
    image = checked_pixels(picture(6, 9, 11))
    plain = kernel.resize.py_func(image, 5, 14)
    assert np.abs(plain.astype(int) - kernel.resize(image, 5, 14)).max() <= 1
    first, share = kernel.weights.py_func(11, 4)
    np.testing.assert_array_equal(first, kernel.weights(11, 4)[0])
    np.testing.assert_allclose(share.sum(axis=0), 1, rtol=1e-6)
    np.testing.assert_array_equal(share, kernel.weights(11, 4)[1])


def test_fine_cells_are_those_of_the_part_of_the_image_that_coarse_cells_cover():
    image = picture(5, 70, 100)
    level = Grid().pyramid(image)[0]
    cropped = image[3:67, 2:98]
    inner = slice(2, -2)  # gradients at the border differ, and so do the energies of the cells next to it
    np.testing.assert_allclose(level.fine[inner, inner], hog(cropped, 4)[inner, inner], atol=1e-6)
    np.testing.assert_allclose(level.coarse[inner, inner], hog(cropped, 8)[inner, inner], atol=1e-6)
    np.testing.assert_allclose(level.frame.box(0, 0, 8, 12), (2, 3, 98, 67))


def test_reducing_from_an_octave_above_is_reducing():
    image = picture(1, 160, 200)
    levels = Grid(octave_scales=2).pyramid(image)
    for k in (2, 3, 4):
        plain = hog(resized(image, round(160 * 2 ** (-k / 2)), round(200 * 2 ** (-k / 2))), 8)
        assert np.abs(levels[k].coarse - plain).mean() < 0.03 < np.abs(plain).mean()


@settings(deadline=None, max_examples=30)
@given(
    st.integers(1, 90),
    st.integers(1, 90),
    st.sampled_from([4, 6, 8]),
    st.integers(1, 4),
    st.sampled_from([0.7, 1.0, 1.9]),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
    st.booleans(),
)
def test_sizes_are_known_beforehand(height, width, cell, octave_scales, finest, least, pad, fine):
    said = {
        "cell": cell, "octave_scales": octave_scales, "finest": finest, "least": least, "pad": pad,
    }  # fmt: skip
    levels = Grid(**said).pyramid(picture(2, height, width, color=False), fine)
    assert [level.coarse.shape[:2] for level in levels] == [
        (f.rows, f.columns) for f in Grid(**said).frames(height, width)
    ]
    assert [level.frame for level in levels] == Grid(**said).frames(height, width)
    first = round(height * finest) // cell, round(width * finest) // cell
    assert bool(levels) == (min(first) >= 1)
    for k, level in enumerate(levels):
        rows, columns = level.coarse.shape[:2]
        inner = rows - 2 * pad[0], columns - 2 * pad[1]
        assert inner == first if k == 0 else inner[0] >= least[0] and inner[1] >= least[1]
        assert (level.fine is not None) == fine
        assert level.nbytes == rows * columns * 128 * (5 if fine else 1)
        if fine:
            assert level.fine.shape == (2 * rows, 2 * columns, 32)
            # The same cells lie beyond the image on both grids.
            np.testing.assert_array_equal(level.fine[::2, ::2, 31], level.coarse[..., 31])
            np.testing.assert_array_equal(level.fine[1::2, 1::2, 31], level.coarse[..., 31])
        assert (level.coarse[..., 31] == 0).sum() == inner[0] * inner[1]
        # The grid lies in the middle of the image, and its cells do not leave it.
        x0, y0, x1, y1 = level.frame.box(pad[0], pad[1], *inner)
        np.testing.assert_allclose([x0 + x1, y0 + y1], [width, height])
        assert min(x0, y0) >= -1e-9
        np.testing.assert_allclose(level.frame.box(0, 0, 1, 1)[:2], (level.frame.left, level.frame.top))
    if levels:
        after = 2.0 ** (-len(levels) / octave_scales) * finest
        assert round(height * after) // cell < least[0] or round(width * after) // cell < least[1]


@settings(deadline=None, max_examples=15)
@given(st.integers(20, 100), st.integers(20, 100), st.integers(1, 3), st.sampled_from([1.0, 1.5]), st.booleans())
def test_levels_of_the_mirrored_image_are_mirrored_levels(height, width, octave_scales, finest, color):
    image, grid = picture(height, height, width, color), Grid(octave_scales=octave_scales, finest=finest, pad=(1, 2))
    levels, turned = grid.pyramid(image), grid.pyramid(np.ascontiguousarray(image[:, ::-1]))
    for level, other in zip(levels, turned, strict=True):
        # Resized pixels are rounded to bytes, once in a long while to another one, which few cells can notice.
        for one, two in ((level.coarse, other.coarse), (level.fine, other.fine)):
            assert np.abs(mirrored(one) - two).mean() < 5e-3
            if finest == 1.0 and level is levels[0]:
                np.testing.assert_allclose(mirrored(one), two, atol=2e-5)
        np.testing.assert_allclose(level.frame.left + other.frame.left + level.frame.columns * level.frame.width, width)


@pytest.mark.parametrize("finest", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("at", [(40, 60), (13, 121), (101, 9)])
def test_a_bright_square_is_found_where_it_is(finest, at):
    image = np.zeros((160, 192), np.uint8)
    image[at[0] : at[0] + 40, at[1] : at[1] + 40] = 220
    for level in Grid(octave_scales=2, finest=finest, least=(4, 4), pad=(1, 1)).pyramid(image):
        for cells, share in ((level.coarse, 1.0), (level.fine, 0.5)):
            rows, columns = np.nonzero(cells[..., :18].max(axis=2) > 0.05)
            x0, y0, x1, y1 = (np.asarray(side) for side in level.frame.box(rows * share, columns * share, share, share))
            # An edge votes for cells whose centres are less than a cell away, so their far sides are within one and a
            # half; resizing and differences of neighbours widen it by some pixels of the level.
            near = 1.5 * share * level.frame.height + level.frame.height / 2
            assert abs(x0.min() + x1.max() - 2 * (at[1] + 20)) <= 2 * near
            assert x0.min() >= at[1] - near and x1.max() <= at[1] + 40 + near
            assert y0.min() >= at[0] - near and y1.max() <= at[0] + 40 + near
            assert x0.min() <= at[1] + 1 and x1.max() >= at[1] + 39
            assert y0.min() <= at[0] + 1 and y1.max() >= at[0] + 39


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"cell": 7}, "cell must be even, because fine cells are half as large, got 7"),
        ({"cell": 2}, "cell must be a whole number of pixels, at least 4"),
        ({"octave_scales": 0}, "octave_scales must be a whole number, at least 1 and at most 64, got 0"),
        ({"finest": float("nan")}, "finest must be a number above 0"),
        ({"finest": "1"}, "finest must be a number above 0.*'1'"),
        ({"least": 3}, "least must be two whole numbers, of rows and of columns, got 3"),
        ({"pad": (1, -1)}, r"pad\[1\] must be a whole number of cells, at least 0"),
    ],
)
def test_wrong_settings_are_told(setting, message):
    with pytest.raises(ValueError, match=message):
        Grid(**setting).pyramid(np.zeros((40, 40), np.uint8))
    with pytest.raises(ValueError, match=message):
        Grid(**setting).frames(40, 40)


def test_what_is_no_image_is_refused():
    with pytest.raises(ValueError, match=r"Gradients are taken of images .*read_image"):
        Grid().pyramid(np.zeros((40, 40)))
    with pytest.raises(ValueError, match="height must be a whole number of pixels"):
        Grid().frames(0, 40)
