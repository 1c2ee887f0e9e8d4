"""The distance transform: every place of a part tried for every anchor, and what moving, adding and mirroring do."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from maxmargin.vision.kernels import distance_transform as kernel


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


def along_columns(scores, q, l, start, step, anchors):
    """Both ways along the columns: what was attained and where, by walking and on hulls."""
    results = []
    for way, limit in ((kernel._walked, (len(scores),)), (kernel._on_hulls, ())):
        best, at = np.full((2, anchors, scores.shape[1]), np.nan, np.float32)
        assert way(scores, q, l, start, step, *limit, best, at) in (True, None)
        results.append((best, at))
    return results


@given(
    st.integers(0, 10**6),
    st.tuples(st.integers(1, 40), st.integers(1, 6)),
    st.sampled_from([1e-9, 1e-6, 1e-4, 0.01, 0.1, 1.0, 30.0]),
    linear,
    st.integers(-50, 50),
    st.integers(1, 3),
    st.integers(1, 40),
    st.sampled_from([0.0, 0.3, 5.0]),
)
@settings(max_examples=300, deadline=None)
def test_both_ways_along_an_axis_try_every_place(seed, size, q, l, start, step, anchors, scale):
    scores = noise(seed, size, scale)
    d = np.arange(size[0]) - (start + step * np.arange(anchors))[:, None]
    values = scores.astype(float) - (q * d**2 + l * d)[:, :, None]
    tolerance = 1e-6 * (1.0 + np.abs(values).max())
    for best, at in along_columns(scores, q, l, start, step, anchors):
        np.testing.assert_allclose(best, values.max(axis=1), rtol=0, atol=tolerance)
        attained = np.take_along_axis(values, at.astype(int)[:, None], axis=1)[:, 0]
        np.testing.assert_allclose(attained, best, rtol=0, atol=tolerance)


def test_both_ways_give_the_same_bits():
    # Two places are never equally good here, and the values are computed alike once the places are known.
    for q in (1e-3, 0.02, 0.5):
        walked, on_hulls = along_columns(noise(10, (70, 33)), q, 0.01, -5, 2, 40)
        np.testing.assert_array_equal(walked[1], on_hulls[1])
        np.testing.assert_array_equal(walked[0], on_hulls[0])


def plain(monkeypatch, *names):
    """The transform without compilation, the named functions of those that it calls included."""
    for name in names:
        monkeypatch.setattr(kernel, name, getattr(kernel, name).py_func)
    return kernel.spread.py_func


def counted(monkeypatch, name):
    """A list that grows by one entry with every call of a function of the kernel."""
    calls, function = [], getattr(kernel, name)
    monkeypatch.setattr(kernel, name, lambda *arguments: (calls.append(name), function(*arguments))[1])
    return calls


@pytest.mark.parametrize(("q", "hulls"), [(1.0, 0), (0.02, 0), (1e-3, None), (2e-4, None), (1e-5, 2), (1e-9, 2)])
def test_no_cost_takes_more_than_linear_time(q, hulls, monkeypatch):
    run = plain(monkeypatch, "_walked", "_along_columns")
    offers, on_hulls = counted(monkeypatch, "_offer"), counted(monkeypatch, "_on_hulls")
    height, width = 90, 70
    spread(noise(12, (height, width)), (q, 0.0, q, 0.0), run=run)
    assert hulls is None or len(on_hulls) == hulls
    # Rows that are compared. Every place from every anchor would be 12840 of them, the bound is 8349.
    lines = height * width / (width + kernel._SHORT) + width * height / (height + kernel._SHORT)
    assert 0 < len(offers) <= 1.1 * kernel._PLACES * lines < height * (height - 1) + width * (width - 1)


@pytest.mark.parametrize("q", [0.03, 1e-5])
@pytest.mark.parametrize("size", [(1, 1), (7, 5), (6, 40), (30, 20)])
def test_plain_python_is_the_same(size, q, monkeypatch):
    scores = noise(4, size)
    arguments = (scores, (q, 0.02, 0.3 * q, -0.3), -3, 2, 2, (4, 6))
    expected = spread(*arguments)
    run = plain(monkeypatch, "_lowest", "_highest", "_offer", "_walked", "_on_hulls", "_along_columns")
    for compiled, uncompiled in zip(expected, spread(*arguments, run=run), strict=True):
        np.testing.assert_array_equal(compiled, uncompiled)
