"""Responses of filters: equal to the sums that define them."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

pytest.importorskip("PIL", reason="needs maxmargin[vision]")

from maxmargin.vision.detection.correlation import Correlator
from maxmargin.vision.kernels import correlation as kernel


def naive(cells, one):
    """Place by place, in double precision."""
    h, w, _ = one.shape
    rows, columns = max(cells.shape[0] - h + 1, 0), max(cells.shape[1] - w + 1, 0)
    out = np.zeros((rows, columns))
    for r in range(rows):
        for c in range(columns):
            out[r, c] = (cells[r : r + h, c : c + w].astype(float) * one).sum()
    return out


def some(seed, shapes, grid, depth=32):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(*s, depth)) for s in shapes], rng.random((*grid, depth)).astype(np.float32)


sides = st.tuples(st.integers(1, 9), st.integers(1, 9))


@settings(deadline=None, max_examples=40)
@given(
    st.lists(sides, min_size=1, max_size=4),
    st.tuples(st.integers(0, 30), st.integers(0, 30)),
    st.sampled_from([1, 5, 32]),
)
def test_responses_are_the_sums_that_define_them(shapes, grid, depth):
    filters, cells = some(len(shapes), shapes, grid, depth)
    for found, one in zip(Correlator(filters)(cells), filters, strict=True):
        expected = naive(cells, one.astype(np.float32))
        assert found.dtype == np.float32 and found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * max(1.0, np.abs(expected).max(initial=0)))


@pytest.mark.parametrize("grid", [(58, 74), (140, 33), (16, 150)])
def test_grids_of_several_blocks(grid):
    filters, cells = some(0, [(6, 6), (3, 7), (10, 6), (1, 1)], grid, 8)
    for found, one in zip(Correlator(filters)(cells), filters, strict=True):
        tall, wide = found.shape
        for r, c in [(0, 0), (tall - 1, wide - 1), (tall // 2, wide // 2)]:
            window = cells[r : r + one.shape[0], c : c + one.shape[1]]
            np.testing.assert_allclose(found[r, c], (window * one).sum(), rtol=1e-4, atol=1e-4)


def test_the_kernels_run_as_plain_python():
    filters, cells = some(8, [(2, 3), (4, 3)], (6, 7), 4)
    runs = np.lib.stride_tricks.sliding_window_view(cells.reshape(6, -1), 12, axis=1)[:, ::4].reshape(-1, 12)
    for function in (kernel.runs, kernel.runs.py_func):
        found = np.empty_like(runs)
        function(cells, 0, 6, 3, found)
        assert np.array_equal(found, runs)
    product = runs @ np.concatenate([f.reshape(len(f), -1) for f in filters]).astype(np.float32).T
    heights, column, height, begin = np.array([2, 4]), np.array([0, 2]), np.array([5, 3]), np.array([0, 25])
    one, other = np.zeros(40, np.float32), np.zeros(40, np.float32)
    kernel.add_rows(product, 0, 5, heights, column, begin, height, one)
    kernel.add_rows.py_func(product, 0, 5, heights, column, begin, height, other)
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(one[25:].reshape(3, 5), naive(cells, filters[1]), rtol=1e-4, atol=1e-4)
