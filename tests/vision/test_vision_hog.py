"""Histograms of oriented gradients: the definition, written out slowly, and what mirrors do to it."""

import itertools

import numpy as np
import pytest
from compiled import equals_its_source
from hypothesis import given, settings, strategies as st

pytest.importorskip("PIL", reason="needs maxmargin[vision]")

from maxmargin.vision.features.hog import MIRRORED, checked_pixels, features_of_cells, hog, mirrored
from maxmargin.vision.features.hog_patches import pyramid, resized
from maxmargin.vision.kernels import hog as kernel


def noise(seed, shape):
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


def naive(image, cell):
    """Gradient by gradient and cell by cell, from the formulas and in double precision."""
    pixels = image.reshape(*image.shape[:2], -1).astype(float)
    h, w, _ = pixels.shape
    rows, columns = h // cell, w // cell
    framed = np.pad(pixels, ((1, 1), (1, 1), (0, 0)), "edge")
    gx = (framed[1:-1, 2:] - framed[1:-1, :-2]) / 2
    gy = (framed[2:, 1:-1] - framed[:-2, 1:-1]) / 2
    longest = (gx**2 + gy**2).argmax(axis=2)
    gx, gy = (np.take_along_axis(g, longest[:, :, None], 2)[:, :, 0] for g in (gx, gy))
    H = np.zeros((rows, columns, 18))
    for y in range(h):
        for x in range(w):
            angles = np.deg2rad(20 * np.arange(18))
            along = gx[y, x] * np.cos(angles) + gy[y, x] * np.sin(angles)
            best = np.flatnonzero(along > along.max() - 1e-9)
            if np.hypot(gx[y, x], gy[y, x]) == 0:
                continue
            for r, share_y in spread(y, h, cell, rows):
                for c, share_x in spread(x, w, cell, columns):
                    H[r, c, best] += share_y * share_x * np.hypot(gx[y, x], gy[y, x]) / best.size
    energy = np.pad(((H[..., :9] + H[..., 9:]) ** 2).sum(axis=2), 1, "edge")
    out = np.zeros((rows, columns, 32))
    for r in range(rows):
        for c in range(columns):
            corners = [(r + 1, c + 1), (r, c + 1), (r + 1, c), (r, c)]
            n = [1 / np.sqrt(energy[a : a + 2, b : b + 2].sum() + 1e-4) for a, b in corners]
            signed = np.array([np.minimum(k * H[r, c], 0.2) for k in n])
            unsigned = np.array([np.minimum(k * (H[r, c, :9] + H[r, c, 9:]), 0.2) for k in n])
            out[r, c] = [*signed.sum(axis=0) / 2, *unsigned.sum(axis=0) / 2, *0.2357 * signed.sum(axis=1), 0]
    return out


def spread(x, pixels, cell, count):
    """Cells that a pixel votes for, along one axis, with their shares."""
    start = (pixels - count * cell) / 2
    inside = min(x + 1, start + count * cell) - max(x, start)
    if inside <= 0:
        return
    u = np.clip((x + 0.5 - start) / cell - 0.5, 0, count - 1)
    for c in range(count):
        if abs(u - c) < 1:
            yield c, inside * (1 - abs(u - c))


@pytest.mark.parametrize(
    ("shape", "cell"), [((24, 32), 8), ((27, 37), 5), ((16, 41, 3), 8), ((8, 8), 8), ((9, 30, 3), 5), ((40, 15), 8)]
)
def test_features_are_those_of_the_definition(shape, cell):
    smooth = np.repeat(np.arange(shape[0], dtype=np.uint8)[:, None] * 5, shape[1], axis=1)  # gradients are vertical
    for image in (noise(sum(shape), shape), smooth, np.full(shape, 77, np.uint8)):
        found = hog(image, cell)
        assert found.dtype == np.float32 and found.shape == (shape[0] // cell, shape[1] // cell, 32)
        np.testing.assert_allclose(found, naive(image, cell), atol=2e-5)


@pytest.mark.parametrize("shape", [(18, 1, 17), (16, 3, 19)])
def test_kernels_run_as_plain_python(shape):
    votes, _ = equals_its_source(kernel.votes, noise(1, shape), 8, 2, 2, rtol=1e-5, atol=1e-4)
    equals_its_source(kernel.features, votes, 2, 1, np.full((6, 4, 32), np.nan, np.float32), rtol=0.0, atol=1e-6)


@settings(deadline=None)  # the first one compiles
@given(st.integers(8, 60), st.integers(8, 60), st.sampled_from([2, 3, 4, 8]), st.booleans(), st.integers(0, 9))
def test_a_mirrored_image_has_mirrored_features(height, width, cell, color, seed):
    image = noise(seed, (height, width, 3) if color else (height, width))
    image[: height // 2] //= 64  # many equal gradients, and vertical ones
    turned = hog(np.ascontiguousarray(image[:, ::-1]), cell)
    np.testing.assert_allclose(turned, mirrored(hog(image, cell)), atol=2e-5)
    np.testing.assert_allclose(turned[:, ::-1][..., MIRRORED], hog(image, cell), atol=2e-5)


def test_grey_is_colour_of_three_equal_channels_and_the_strongest_colour_counts():
    grey = noise(3, (24, 24))
    np.testing.assert_array_equal(hog(np.repeat(grey[:, :, None], 3, 2)), hog(grey))
    for channel in range(3):
        image = np.full((24, 24, 3), 90, np.uint8)
        image[:, :, channel] = grey
        np.testing.assert_array_equal(hog(image), hog(grey))


def test_padding_is_marked():
    image = noise(4, (24, 32))
    cells, found = hog(image), features_of_cells(checked_pixels(image), 8, 3, 4, 2, 1)
    np.testing.assert_array_equal(found[2:-2, 1:-1], cells)
    assert found[..., 31].sum() == 7 * 6 - 3 * 4
    found[2:-2, 1:-1] = 0
    assert not found[..., :31].any()
    assert hog(noise(0, (7, 30))).shape == (0, 3, 32)


@pytest.mark.parametrize("image", [np.zeros((9, 9)), np.zeros((9, 9, 4), np.uint8), np.zeros(9, np.uint8), "a.jpg"])
def test_what_is_no_image_is_refused(image):
    with pytest.raises(ValueError, match=r"Gradients are taken of images .*read_image"):
        hog(image)


@pytest.mark.parametrize("cell", [0, 1, 8.0, True, "8"])
def test_cells_are_checked(cell):
    with pytest.raises(ValueError, match="cell must be a whole number of pixels"):
        hog(noise(0, (20, 20)), cell)


@given(
    st.integers(1, 300), st.integers(1, 300), st.integers(1, 5), st.integers(8, 48), st.sampled_from([None, 64, 200])
)
def test_pyramids_end_where_they_should(height, width, octave_scales, least, max_side):
    image = np.zeros((height, width), np.uint8)
    shapes = [level.shape for level in pyramid(image, octave_scales, least, max_side)]
    short, long = min(height, width), max(height, width)
    assert min(map(min, shapes)) >= least
    if short >= least and (max_side is None or long <= max_side):
        assert shapes[0] == (height, width)
    if short <= least:
        assert len(shapes) == 1 and min(shapes[0]) == least
    if max_side is not None and least * long <= max_side * short:
        assert max(shapes[0]) <= max_side
    for (h, w), (smaller_h, smaller_w) in itertools.pairwise(shapes):
        assert abs(smaller_h - h * 2 ** (-1 / octave_scales)) <= 1
        assert abs(smaller_w - w * 2 ** (-1 / octave_scales)) <= 1
    assert min(shapes[-1]) * 2 ** (-1 / octave_scales) < least + 1


def test_reducing_averages():
    stripes = np.tile(np.array([0, 200], np.uint8), (16, 16))
    assert np.abs(resized(stripes, 4, 8)[:, 1:-1].astype(int) - 100).max() <= 1
    assert resized(stripes, 16, 32) is stripes
    assert resized(np.repeat(stripes[:, :, None], 3, 2), 5, 7).shape == (5, 7, 3)
