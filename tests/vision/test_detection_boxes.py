"""Boxes: areas counted pixel by pixel, and suppression written out as its definition."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from maxmargin.vision.detection.boxes import clipped, overlaps, suppress
from maxmargin.vision.kernels.suppression import kept_boxes


def some_boxes(seed, n, size=12):
    """Boxes at whole pixels, some of them without area, some twice."""
    rng = np.random.default_rng(seed)
    corners = np.sort(rng.integers(0, size, (n, 2, 2)), axis=1)
    return corners.reshape(n, 4).astype(float)


def pixels(box, size=12):
    out = np.zeros((size, size), bool)
    x_min, y_min, x_max, y_max = box.astype(int)
    out[y_min:y_max, x_min:x_max] = True
    return out


def naive_suppress(boxes, scores, overlap):
    kept = []
    for k in sorted(range(len(boxes)), key=lambda k: (-scores[k], k)):
        own = pixels(boxes[k])
        if all((own & pixels(boxes[j])).sum() <= overlap * own.sum() for j in kept):
            kept.append(k)
    return kept


@given(st.integers(0, 10**6), st.integers(0, 5), st.integers(0, 5))
@settings(deadline=None)
def test_overlaps_count_pixels(seed, n, m):
    a, b = some_boxes(seed, n), some_boxes(seed + 1, m)
    expected = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            one, other = pixels(a[i]), pixels(b[j])
            expected[i, j] = (one & other).sum() / max((one | other).sum(), 1)
    np.testing.assert_allclose(overlaps(a, b), expected, rtol=1e-15)


def test_boxes_without_area_overlap_with_nothing():
    line, point, whole = [2, 3, 9, 3], [4, 4, 4, 4], [0, 0, 12, 12]
    np.testing.assert_array_equal(overlaps([line, point], [line, point, whole]), np.zeros((2, 3)))
    assert overlaps([], [whole]).shape == (0, 1)
    assert overlaps(np.zeros((3, 4)), np.zeros((0, 4))).shape == (3, 0)
    assert overlaps([], []).shape == (0, 0)


@given(
    st.integers(0, 10**6),
    st.one_of(st.integers(0, 12), st.integers(60, 90)),
    st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]),
    st.integers(1, 8),
)
@settings(max_examples=60, deadline=None)
def test_suppression_is_greedy(seed, n, overlap, levels):
    boxes = some_boxes(seed, n)
    scores = np.random.default_rng(seed).integers(0, levels, n).astype(float)  # with equal ones
    kept = suppress(boxes, scores, overlap)
    assert kept.tolist() == naive_suppress(boxes, scores, overlap)


def test_more_kept_boxes_than_a_block_holds():
    places = 20.0 * np.arange(200)
    apart = np.stack([places, np.zeros(200), places + 10.0, np.full(200, 10.0)], axis=1)
    close = apart + np.array([1.0, 0.0, 1.0, 0.0])
    boxes, scores = np.concatenate([close, apart]), np.concatenate([np.arange(200), np.arange(200) + 0.5])
    np.testing.assert_array_equal(suppress(boxes, scores), np.arange(399, 199, -1))


def test_plain_python_is_the_same():
    boxes = some_boxes(5, 150, 40)
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    rows = np.ascontiguousarray(boxes.T)
    np.testing.assert_array_equal(kept_boxes(rows, areas, 0.3), kept_boxes.py_func(rows, areas, 0.3))


def test_clipped_boxes_are_what_the_image_has_of_them():
    boxes = np.array([[-5, -5, 4, 3], [2, 1, 30, 40], [-9, 2, -3, 5], [1, 2, 3, 4]], float)
    image = np.array([[0, 0, 8, 6]], float)
    inside = clipped(boxes, height=6, width=8)
    assert inside.tolist() == [[0, 0, 4, 3], [2, 1, 8, 6], [0, 2, 0, 5], [1, 2, 3, 4]]
    area = (inside[:, 2] - inside[:, 0]) * (inside[:, 3] - inside[:, 1])
    whole = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    shared = overlaps(boxes, image)[:, 0]
    np.testing.assert_allclose(area, shared * (whole + 48.0) / (1.0 + shared), rtol=1e-12)
    assert boxes[0, 0] == -5.0  # what was given is left as it was
    assert clipped([], 6, 8).shape == (0, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: overlaps([1, 2, 3, 4], []), r"boxes must have the shape \(n, 4\).*Got the shape \(4,\)"),
        (lambda: overlaps([[0, 0, 1, 1], [5, 0, 4, 1]], []), r"boxes\[1\] is \[5.0, 0.0, 4.0, 1.0\].*x_min <= x_max"),
        (lambda: clipped([[0, 0, np.nan, 1]], 5, 5), r"boxes\[0\] is .*nan.*finite"),
        (
            lambda: suppress([[0, 0, 1, 1]], [1, 2]),
            r"scores must have one number for each box: there are 1 boxes, got the shape \(2,\)",
        ),
        (lambda: suppress([[0, 0, 1, 1]], [np.nan]), r"scores\[0\] is NaN"),
        (lambda: suppress([[0, 0, 1, 1]], [1], overlap=50), r"overlap must be a share from 0 to 1, got 50"),
    ],
)
def test_errors_say_what_is_needed(call, message):
    with pytest.raises(ValueError, match=message):
        call()
