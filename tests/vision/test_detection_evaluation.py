"""Precision and recall of boxes, held against the rules of the challenge taken one box at a time."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from maxmargin.vision.detection.boxes import overlaps
from maxmargin.vision.detection.evaluation import best_threshold, precision_recall

BOX = [0, 0, 10, 10]
FAR = [50, 50, 60, 60]


def naive(found, truths, ignored, overlap):
    """Box by box, with a list of the objects that are taken; the area as a sum over points of recall."""
    queue = [
        (score, k, box) for k, (boxes, scores) in enumerate(found) for box, score in zip(boxes, scores, strict=True)
    ]
    queue.sort(key=lambda entry: -entry[0])
    n = sum((~marks).sum() for marks in ignored)
    taken, right, wrong, points, thresholds = set(), 0, 0, [], []
    for score, k, box in queue:
        best, most = None, 0.0
        for t, truth in enumerate(truths[k]):
            shared = overlaps([box], [truth])[0, 0]
            if shared > most:
                best, most = t, shared
        if best is not None and most >= overlap:
            if ignored[k][best]:
                continue
            if (k, best) in taken:
                wrong += 1
            else:
                taken.add((k, best))
                right += 1
        else:
            wrong += 1
        points.append((right / n, right / (right + wrong)))
        thresholds.append(score)
    area = sum(max((p for r, p in points if r >= level / n), default=0.0) for level in range(1, n + 1)) / n
    return np.array(points).reshape(-1, 2), thresholds, area


def scene(seed, images):
    """Objects, and boxes around some of them and elsewhere, with scores that are equal at times."""
    rng = np.random.default_rng(seed)
    found, truths, ignored = [], [], []
    for _ in range(images):
        corner = rng.integers(0, 30, (rng.integers(0, 5), 2)).astype(float)
        objects = np.hstack([corner, corner + rng.integers(5, 15, corner.shape)])
        near = np.repeat(objects, rng.integers(0, 4), axis=0)
        near = near + np.tile(rng.integers(-3, 4, (len(near), 2)), 2)
        corner = rng.integers(0, 30, (rng.integers(0, 4), 2)).astype(float)
        boxes = np.concatenate([near, np.hstack([corner, corner + 8.0])])
        found.append((boxes, rng.integers(0, 20, len(boxes)) / 4))
        truths.append(objects)
        ignored.append(rng.random(len(objects)) < 0.3)
    found.append(([], []))
    truths.append(np.array([FAR], float))
    ignored.append(np.array([False]))
    return found, truths, ignored


@given(st.integers(0, 10**6), st.integers(0, 6), st.sampled_from([0.1, 0.5, 0.8]), st.booleans())
@settings(max_examples=150, deadline=None)
def test_box_by_box(seed, images, overlap, spare):
    found, truths, ignored = scene(seed, images)
    if not spare:
        ignored = [np.zeros(len(boxes), bool) for boxes in truths]
    curve = precision_recall(found, truths, overlap, ignored=ignored if spare else None)
    points, thresholds, area = naive(found, truths, ignored, overlap)
    np.testing.assert_allclose(curve.recall, points[:, 0], rtol=1e-12)
    np.testing.assert_allclose(curve.precision, points[:, 1], rtol=1e-12)
    np.testing.assert_array_equal(curve.scores, thresholds)
    assert curve.average_precision == pytest.approx(area, rel=1e-12, abs=1e-15)
    assert curve.n_truths == sum((~marks).sum() for marks in ignored)


def test_nothing_found():
    curve = precision_recall([([], []), (np.zeros((0, 4)), np.zeros(0))], [[BOX], []])
    assert curve.average_precision == 0.0
    assert len(curve.precision) == len(curve.recall) == len(curve.scores) == 0
    assert curve.n_truths == 1


def test_overlap_of_exactly_the_limit_is_enough():
    found = [([[0, 0, 10, 5]], [1.0])]
    assert precision_recall(found, [[BOX]], 0.5).average_precision == 1.0
    assert precision_recall(found, [[BOX]], 0.51).average_precision == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: precision_recall([([BOX], [1.0])], [[]]), r"no object to be found in the 1 images \(0 are ignored\)"),
        (lambda: precision_recall([([], [])], [[BOX]], ignored=[[True]]), r"\(1 are ignored\).*at least one box"),
        (lambda: precision_recall([([], [])], []), r"one entry for each image: they have 1, 0"),
        (lambda: precision_recall([([], [])], [[BOX]], ignored=[]), "ignored must have one True or False"),
        (lambda: precision_recall([([], [])], [[BOX]], ignored=[[True, False]]), "ignored must have one True or False"),
        (lambda: precision_recall([([], [])], [[BOX]], 0.0), r"overlap must be above 0"),
        (lambda: precision_recall([([], [])], [[[3, 0, 2, 1]]]), r"truths\[0\]\[0\] is \[3.0"),
        (lambda: precision_recall([([BOX], [])], [[BOX]]), r"found\[0\]\[1\] must have one number for each box"),
    ],
)
def test_errors_say_what_is_needed(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@given(st.lists(st.integers(-8, 8), max_size=8), st.lists(st.integers(-8, 8), max_size=8), st.integers(0, 3))
@settings(deadline=None)
def test_no_threshold_is_better_than_the_best(right, wrong, missed):
    right, wrong = np.array(right) / 4.0, np.array(wrong) / 4.0
    objects = np.concatenate([right, np.full(missed, -np.inf)])

    def f1(threshold):
        hits, mistakes = (right >= threshold).sum(), (wrong >= threshold).sum()
        return 2.0 * hits / max(hits + mistakes + objects.size, 1)

    found = best_threshold(objects, wrong)
    assert f1(found) == max([f1(t) for t in [*right, *wrong]], default=f1(found))


def test_the_threshold_lies_in_the_middle():
    assert best_threshold(np.array([2.0, 1.0]), np.array([0.0, -1.0])) == 0.5
    assert best_threshold(np.array([2.0, 1.0]), np.empty(0)) == 0.0
    assert best_threshold(np.array([2.0, -3.0, -4.0]), np.array([1.0] * 9)) == 1.5
    assert best_threshold(np.array([-np.inf]), np.array([1.0])) == 0.0
