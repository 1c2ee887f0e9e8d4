"""Responses of filters: equal to the sums that define them, however they are computed."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

pytest.importorskip("PIL", reason="needs maxmargin[vision]")

from maxmargin.vision.detection.correlation import Correlator, tiling
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
    st.sampled_from(["products", "fft", "auto"]),
)
def test_responses_are_the_sums_that_define_them(shapes, grid, depth, method):
    filters, cells = some(len(shapes), shapes, grid, depth)
    for found, one in zip(Correlator(filters, method)(cells), filters, strict=True):
        expected = naive(cells, one.astype(np.float32))
        assert found.dtype == np.float32 and found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * max(1.0, np.abs(expected).max(initial=0)))


@pytest.mark.parametrize("grid", [(58, 74), (140, 33), (16, 150)])
def test_grids_of_several_tiles_and_blocks(grid):
    filters, cells = some(0, [(6, 6), (3, 7), (10, 6), (1, 1)], grid, 8)
    expected = Correlator(filters, "products")(cells)
    for found, other, one in zip(Correlator(filters, "fft")(cells), expected, filters, strict=True):
        np.testing.assert_allclose(found, other, rtol=0, atol=1e-4 * np.abs(other).max())
        tall, wide = other.shape
        for r, c in [(0, 0), (tall - 1, wide - 1), (tall // 2, wide // 2)]:
            window = cells[r : r + one.shape[0], c : c + one.shape[1]]
            np.testing.assert_allclose(other[r, c], (window * one).sum(), rtol=1e-4, atol=1e-4)


@given(st.integers(1, 400), st.lists(st.integers(1, 60), min_size=1, max_size=3))
def test_tiles_hold_every_filter_wherever_it_is_put(length, sizes):
    sizes = [s for s in sizes if s <= length] or [1]
    side, starts = tiling(length, sizes)
    for s in sizes:
        for place in range(length - s + 1):
            start = starts[place // starts.step]
            assert start <= place and place + s <= start + side


def test_auto_takes_what_is_cheaper_where_that_is_clear():
    few, _ = some(5, [(3, 3)], (1, 1))
    many, _ = some(5, [(16, 16)] * 50, (1, 1))
    for grid in [(20, 25), (32, 40), (62, 82)]:
        assert Correlator(few).chosen(*grid) == "products"
        assert Correlator(many).chosen(*grid) == "fft"
        assert Correlator(many, "products").chosen(*grid) == "products"
    assert Correlator(many).chosen(8, 8) == "products"  # none of them fits


def test_threads_may_share_one():
    filters, cells = some(7, [(3, 4), (5, 5)], (40, 40))
    grids = [cells[: 16 + k, : 40 - k] for k in range(12)] * 2
    alone = [Correlator(filters, "fft")(g) for g in grids]
    with ThreadPoolExecutor(4) as pool:
        for one, other in zip(pool.map(Correlator(filters, "fft"), grids), alone, strict=True):
            for a, b in zip(one, other, strict=True):
                np.testing.assert_array_equal(a, b)


def test_kernels_run_as_plain_python():
    filters, cells = some(8, [(2, 3), (4, 3)], (6, 7), 4)
    compiled, plain = (np.empty((6 * 5, 12), np.float32) for _ in range(2))
    kernel.runs(cells, 0, 6, 3, compiled)
    kernel.runs.py_func(cells, 0, 6, 3, plain)
    np.testing.assert_array_equal(compiled, plain)
    product = plain @ np.concatenate([f.reshape(len(f), -1) for f in filters]).astype(np.float32).T
    heights, column, height, begin = np.array([2, 4]), np.array([0, 2]), np.array([5, 3]), np.array([0, 25])
    one, other = np.zeros(40, np.float32), np.zeros(40, np.float32)
    kernel.add_rows(product, 0, 5, heights, column, begin, height, one)
    kernel.add_rows.py_func(product, 0, 5, heights, column, begin, height, other)
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(one[25:].reshape(3, 5), naive(cells, filters[1]), rtol=1e-4, atol=1e-4)
    compiled, plain = (np.full((4, 5, 4), np.nan, np.float32) for _ in range(2))
    kernel.tile(cells, 3, 4, compiled)
    kernel.tile.py_func(cells, 3, 4, plain)
    np.testing.assert_array_equal(compiled, plain)
    np.testing.assert_array_equal(plain[:, :3, :3], cells[3:, 4:].transpose(2, 0, 1))
    assert not plain[:, 3:].any() and not plain[:, :, 3:].any()
    rng = np.random.default_rng(9)
    a, b = (
        (rng.normal(size=s) + 1j * rng.normal(size=s)).astype(np.complex64) for s in [(2, 4, 600), (3, 4, 600)]
    )  # more frequencies than are taken at a time
    for run in (kernel.add_spectra, kernel.add_spectra.py_func):
        out = np.empty((2, 3, 600), np.complex64)
        run(a, b, out)
        np.testing.assert_allclose(out, np.einsum("tkj,fkj->tfj", a, b), rtol=1e-4, atol=1e-4)
