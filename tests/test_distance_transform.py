"""The distance transform: every place of a part tried for every anchor, and what moving, adding and mirroring do."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from maxmargin.kernels import distance_transform as kernel


def spread(scores, cost, top=0, left=0, step=1, shape=None, run=kernel.spread):
    shape = scores.shape if shape is None else shape
    best = np.full(shape, np.nan, np.float32)
    at_row, at_column = np.full(shape, -1, np.int16), np.full(shape, -1, np.int16)
    run(scores, np.array(cost, np.float64), top, left, step, best, at_row, at_column)
    return best, at_row, at_column


def less_the_way(scores, cost, top, left, step, shape):
    """The score of every place less the cost of the way from every anchor: an array (*shape, H, W)."""
    qy, ly, qx, lx = cost
    y, x = np.indices(scores.shape)
    dy = y - (top + step * np.arange(shape[0]))[:, None, None, None]
    dx = x - (left + step * np.arange(shape[1]))[None, :, None, None]
    return scores.astype(float) - (qy * dy**2 + ly * dy) - (qx * dx**2 + lx * dx)


def noise(seed, shape, scale=0.3):
    return np.random.default_rng(seed).normal(0.0, scale, shape).astype(np.float32)


sizes = st.integers(1, 9)
quadratic = st.sampled_from([1e-4, 0.01, 0.1, 1.0, 30.0])
linear = st.floats(-2.0, 2.0)


@given(
    st.integers(0, 10**6),
    st.tuples(sizes, st.one_of(sizes, st.integers(16, 35))),
    st.tuples(quadratic, linear, quadratic, linear),
    st.integers(-12, 12),
    st.integers(-12, 12),
    st.integers(1, 3),
    st.tuples(sizes, sizes),
    st.sampled_from([0.0, 0.3, 5.0]),
)
@settings(max_examples=300, deadline=None)
def test_every_place_tried(seed, size, cost, top, left, step, shape, scale):
    scores = noise(seed, size, scale)
    best, at_row, at_column = spread(scores, cost, top, left, step, shape)
    values = less_the_way(scores, cost, top, left, step, shape)
    tolerance = 1e-6 * (1.0 + np.abs(values).max())
    np.testing.assert_allclose(best, values.max(axis=(2, 3)), rtol=0, atol=tolerance)
    i, j = np.indices(shape)
    np.testing.assert_allclose(values[i, j, at_row, at_column], best, rtol=0, atol=tolerance)


@pytest.mark.parametrize("cost", [(0.1, 0.0, 0.1, 0.0), (0.02, 0.01, 0.02, -0.01), (0.001, -0.05, 0.3, 0.2)])
@pytest.mark.parametrize("step", [1, 2])
def test_maps_as_detectors_have_them(cost, step):
    scores = noise(3, (24, 37))
    scores[5, 7] = 4.0  # a peak that reaches far
    scores[20, 30] = -50.0  # a hole, for which nothing is out of reach
    shape = (24 // step, 37 // step)
    best, at_row, at_column = spread(scores, cost, -2, 3, step, shape)
    values = less_the_way(scores, cost, -2, 3, step, shape)
    np.testing.assert_allclose(best, values.max(axis=(2, 3)), rtol=0, atol=2e-5)
    places = values.reshape(*shape, -1).argmax(axis=2)
    np.testing.assert_array_equal(at_row * 37 + at_column, places)


@pytest.mark.parametrize("size", [(1, 1), (7, 5), (6, 40)])
def test_plain_python_is_the_same(size, monkeypatch):
    scores = noise(4, size)
    arguments = (scores, (0.05, 0.02, 0.01, -0.3), -3, 2, 2, (4, 6))
    expected = spread(*arguments)
    for name in ("_lowest", "_highest", "_offer", "_along_columns"):
        monkeypatch.setattr(kernel, name, getattr(kernel, name).py_func)
    for compiled, plain in zip(expected, spread(*arguments, run=kernel.spread.py_func), strict=True):
        np.testing.assert_array_equal(compiled, plain)


def test_anchors_that_are_moved_see_the_same():
    scores, cost = noise(5, (20, 18)), (0.03, 0.02, 0.05, -0.04)
    everywhere = spread(scores, cost, -6, -4, 1, (32, 26))
    some = spread(scores, cost, -1, -2, 3, (8, 7))
    for of_all, of_some in zip(everywhere, some, strict=True):
        np.testing.assert_array_equal(of_all[5:29:3, 2:23:3], of_some)


def test_a_linear_cost_moves_the_anchors():
    # q d² + l d is q (d + l/2q)² less a constant: with l = 2 q the anchor is one place further up.
    scores = noise(6, (15, 12))
    straight = spread(scores, (0.25, 0.0, 0.5, 0.0), -1, 1, 1, (15, 12))
    slanted = spread(scores, (0.25, 0.5, 0.5, -1.0))
    np.testing.assert_allclose(slanted[0], straight[0] + 0.25 + 0.5, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(slanted[1], straight[1])
    np.testing.assert_array_equal(slanted[2], straight[2])


def test_mirrors_and_transposes():
    scores = noise(7, (14, 19))
    best, at_row, at_column = spread(scores, (0.03, 0.02, 0.07, -0.05))
    turned = spread(np.ascontiguousarray(scores.T), (0.07, -0.05, 0.03, 0.02))
    np.testing.assert_allclose(turned[0].T, best, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(turned[1].T, at_column)
    mirrored = spread(np.ascontiguousarray(scores[:, ::-1]), (0.03, 0.02, 0.07, 0.05))
    np.testing.assert_array_equal(mirrored[0][:, ::-1], best)
    np.testing.assert_array_equal(mirrored[1][:, ::-1], at_row)
    np.testing.assert_array_equal(18 - mirrored[2][:, ::-1], at_column)


def test_nothing_gains_by_moving_over_flat_ground_or_at_great_cost():
    at = np.indices((6, 8))
    for scores, q in ((np.full((6, 8), 2.5, np.float32), 1e-6), (noise(8, (6, 8)), 100.0)):
        best, at_row, at_column = spread(scores, (q, 0.0, q, 0.0))
        np.testing.assert_array_equal(best, scores)
        np.testing.assert_array_equal(at_row, at[0])
        np.testing.assert_array_equal(at_column, at[1])


def test_maps_that_are_cut_out_of_others():
    scores = noise(9, (12, 30))
    whole = spread(np.ascontiguousarray(scores[::2, 3:20]), (0.1, 0.0, 0.1, 0.0))
    view = spread(scores[::2, 3:20], (0.1, 0.0, 0.1, 0.0))
    for a, b in zip(whole, view, strict=True):
        np.testing.assert_array_equal(a, b)
