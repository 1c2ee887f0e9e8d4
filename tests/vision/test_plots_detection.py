"""Pictures of detectors: what they show, not how it looks."""

from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from matplotlib import pyplot
from sklearn.svm import LinearSVC

from maxmargin.plots import bounds, detected, detection_mosaic, detector_filters, precision_recall_curves
from maxmargin.problem import BoundRecord
from maxmargin.vision import DeformablePartDetector
from maxmargin.vision.detection.evaluation import precision_recall
from maxmargin.vision.detection.finding import Detections
from maxmargin.vision.detection.model import Component, Part, StarModel
from maxmargin.vision.features.cell_pyramid import Grid
from maxmargin.vision.plots.detection import envelope, judged
from maxmargin.vision.plots.hog import edge_strengths, glyph_image


def _detector(*components, mirrored=False, seed=0):
    """A detector with random weights; its parts prefer to stay where they are expected."""
    star, detector = StarModel(components, mirrored), DeformablePartDetector()
    w = np.random.default_rng(seed).normal(size=star.n_weights)
    for c, component in enumerate(components):
        for p in range(len(component.parts)):
            w[star.cost_at(c, p)] = [0.1, 0.0, 0.2, 0.0]
    detector.star_, detector.coef_, detector.threshold_ = star, w, 0.0
    return detector


def _panels(figure):
    """Axes by row and column of the grid, without the scale."""
    return {
        (ax.get_subplotspec().rowspan.start, ax.get_subplotspec().colspan.start): ax
        for ax in figure.axes
        if ax.get_label() != "<colorbar>"
    }


_ONE = Component(4, 5, (Part(3, 4, 1, 2), Part(2, 2, 5, 0), Part(3, 3, 0, 6, sign=-1)))


def test_a_detector_is_drawn_as_root_parts_and_costs():
    detector = _detector(_ONE, Component(3, 3, (Part(2, 2, 0, 0),)), Component(6, 3), mirrored=True)
    star, w = detector.star_, detector.coef_
    panels = _panels(detector_filters(detector))
    titles = [panels[0, column].get_title() for column in range(6)]
    assert titles == ["root, for", "root, against", "parts", "cost of moving", "negative parts", "cost of moving"]
    for c in range(3):
        for column, side in enumerate(edge_strengths(star.root(w, c))):
            assert np.array_equal(panels[c, column].images[0].get_array(), glyph_image(side))
        assert panels[c, 0].images[0].get_clim() == panels[c, 1].images[0].get_clim()
        rows, columns = star.components[c].rows, star.components[c].columns
        bias = f"{w[star.bias_at(c)]:.2f}".replace("-", "−")
        assert panels[c, 0].get_ylabel() == f"component {c}\n{rows} × {columns} cells\nbias {bias}\nand mirrored"
    signs = [[part.sign for part in component.parts] for component in star.components]
    for c in range(3):
        for column, sign in ((2, 1), (3, 1), (4, -1), (5, -1)):
            ax = panels[c, column]
            mine = [str(p) for p, one in enumerate(signs[c]) if one == sign]
            assert [text.get_text() for text in ax.texts] == mine
            assert len(ax.images) == len(mine)
            frames = [box.get_bbox().bounds for box in ax.patches]
            parts = [star.components[c].parts[int(p)] for p in mine]
            assert frames == [(part.left, part.top, part.columns, part.rows) for part in parts]


def test_maps_of_costs_are_the_quadratic_above_its_cheapest_place():
    detector = _detector(Component(4, 4, (Part(4, 6, 2, 1),)))
    detector.coef_[detector.star_.cost_at(0, 0)] = [0.1, 0.05, 0.3, -0.4]
    (drawn,) = _panels(detector_filters(detector))[0, 3].images
    side = drawn.get_array().shape[0] // 4
    dy, dx = (np.arange(4 * side) + 0.5) / side - 2.0, (np.arange(6 * side) + 0.5) / side - 3.0
    cost = (0.1 * dy**2 + 0.05 * dy)[:, None] + 0.3 * dx**2 - 0.4 * dx
    np.testing.assert_allclose(drawn.get_array(), cost - cost.min(), atol=1e-12)
    assert drawn.get_extent() == [1, 7, 6, 2]


def test_components_are_chosen_and_roots_alone_need_two_panels():
    detector = _detector(Component(3, 4), _ONE)
    figure = detector_filters(detector, [0])
    assert [ax.get_title() for ax in figure.axes] == ["root, for", "root, against"]
    assert detector_filters(detector, 1).axes[0].get_ylabel().startswith("component 1\n4 × 5 cells")
    for wrong in ([2], [-1], []):
        with pytest.raises(ValueError, match=r"components must be some of 0 to 1, got"):
            detector_filters(detector, wrong)
    mine = pyplot.figure(layout="constrained")
    half, other = mine.subfigures(2, 1)
    assert detector_filters(detector, fig=half) is half
    assert detection_mosaic([np.zeros((9, 9), np.uint8)], [([[0, 0, 5, 5]], [1.0])], fig=other) is other
    mine.savefig(BytesIO(), format="png")


def test_what_is_no_detector_is_refused():
    for wrong in (DeformablePartDetector(), LinearSVC().fit(np.eye(2), [0, 1])):
        with pytest.raises(ValueError, match=f"a fitted DeformablePartDetector, got {type(wrong).__name__}"):
            detector_filters(wrong)


def _found(boxes, scores, parts=None, signs=None):
    boxes = np.asarray(boxes, float).reshape(-1, 4)
    n = len(boxes)
    parts = np.zeros((n, 0, 4)) if parts is None else np.asarray(parts, float)
    signs = np.zeros(parts.shape[:2], int) if signs is None else np.asarray(signs)
    return Detections(
        boxes, np.asarray(scores, float), np.zeros(n, int), parts, signs, np.zeros(n, bool), boxes + 1.0,
        np.zeros((n, 4 + 2 * parts.shape[1]), np.int32),
    )  # fmt: skip


def _rectangles(ax):
    return [tuple(box.get_bbox().extents) for box in ax.patches]


def test_detections_are_drawn_with_scores_parts_and_roots():
    gone = [np.nan] * 4
    found = _found(
        [[10, 10, 30, 25], [5, 1, 20, 9]],
        [1.25, -0.5],
        [[[10, 10, 15, 15], [20, 10, 25, 15]], [[6, 1, 9, 3], gone]],
        [[1, -1], [1, 0]],
    )
    image = np.zeros((40, 60), np.uint8)
    ax = detected(image, found, roots=True)
    assert [text.get_text() for text in ax.texts] == ["−0.50", "1.25"]  # the best are drawn last
    assert [text.get_va() for text in ax.texts] == ["top", "bottom"]  # there is no room above the second
    expected = [(6, 1, 9, 3), (6, 2, 21, 10), (5, 1, 20, 9)]
    expected += [(10, 10, 15, 15), (20, 10, 25, 15), (11, 11, 31, 26), (10, 10, 30, 25)]
    assert _rectangles(ax) == expected
    styles = [box.get_linestyle() for box in ax.patches]
    assert styles == ["-", ":", "-", "-", "--", ":", "-"]
    assert len({box.get_edgecolor()[:3] for box in ax.patches}) == 4
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["object", "part", "negative part", "root"]
    bare = detected(image, found, parts=False, most=1)
    assert _rectangles(bare) == [(10, 10, 30, 25)]
    assert bare.get_legend() is None
    assert len(detected(image, found, most=0).patches) == 0


@pytest.mark.parametrize("winner", [0, 1])
def test_a_detector_says_which_parts_are_negative(winner):
    detector = _detector(
        Component(3, 3, (Part(2, 2, 0, 0), Part(2, 2, 2, 2, sign=-1))), Component(3, 4, (Part(2, 2, 1, 1),))
    )
    detector.coef_[detector.star_.bias_at(winner)] = 1e4
    detector.grid_, detector.box_regression_ = Grid(octave_scales=1, pad=(1, 1)), None
    image = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    found = detector.detect(image)
    assert len(found) > 1
    assert np.all(found.components == winner)
    assert np.all(found.part_signs == ([1, -1], [1, 0])[winner])
    assert np.array_equal(found.part_signs == 0, np.isnan(found.part_boxes[:, :, 0]))
    ax = detected(image, found, most=2)
    assert sorted(box.get_linestyle() for box in ax.patches) == sorted(["-", "-", *(["-", "--"], ["-"])[winner] * 2])


@st.composite
def _searches(draw):
    """Detections and objects in a few images, on a small grid so that they meet."""
    corner, side = st.integers(0, 6), st.integers(1, 4)
    box = st.tuples(corner, corner, side, side).map(lambda t: [t[0], t[1], t[0] + t[2], t[1] + t[3]])
    found, truths = [], []
    for _ in range(draw(st.integers(1, 3))):
        boxes = draw(st.lists(box, max_size=5))
        scores = draw(st.lists(st.integers(0, 5), min_size=len(boxes), max_size=len(boxes)))
        found.append((np.array(boxes, float).reshape(-1, 4), np.array(scores, float)))
        truths.append(np.array(draw(st.lists(box, max_size=3)), float).reshape(-1, 4))
    truths[0] = np.vstack([truths[0], [[0, 0, 3, 3]]])
    return found, truths


@settings(max_examples=60, deadline=None)
@given(_searches())
def test_right_and_wrong_are_as_precision_counts_them_and_the_area_is_the_average(search):
    found, truths = search
    curve = precision_recall(found, truths)
    x, y = envelope(curve.precision, curve.recall)
    assert np.trapezoid(y, x) == pytest.approx(curve.average_precision)
    assert np.all(np.diff(y) <= 0.0)
    verdicts = judged(found, truths, 0.5)
    right = np.cumsum(verdicts == "right")
    assert np.allclose(right / np.arange(1, len(verdicts) + 1), curve.precision)


def test_precision_and_recall_have_the_average_in_the_legend():
    truths = [[[0, 0, 10, 10]], [[5, 5, 20, 20]]]
    good = precision_recall([([[0, 0, 10, 9]], [0.9]), ([[5, 5, 20, 19]], [0.1])], truths)
    none = precision_recall([([], []), ([], [])], truths)
    ax = precision_recall_curves({"good": good, "blind": none})
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["good, AP 100.0 %", "blind, AP 0.0 %"]
    strong, faint = ax.lines[:2]
    assert strong.get_xydata().tolist() == [[0, 1], [0.5, 1], [0.5, 1], [1, 1], [1, 0]]
    assert np.array_equal(faint.get_xydata(), np.stack([good.recall, good.precision], axis=1))
    assert precision_recall_curves(good, ax) is ax
    for wrong in ({}, {"a": [1.0]}, 0.5):
        with pytest.raises(ValueError, match="curves must be what precision_recall returns"):
            precision_recall_curves(wrong)


def test_a_mosaic_has_the_best_of_all_images_with_what_is_around(rng):
    images = [rng.integers(0, 255, (40, 50, 3), dtype=np.uint8) for _ in range(3)]
    found = [
        _found([[10, 10, 20, 30], [11, 10, 20, 30]], [3.0, 1.0]),
        _found(np.zeros((0, 4)), []),
        ([[40, 30, 50, 40], [0, 0, 4, 4]], [2.0, -4.0]),
    ]
    truths = [[[10, 10, 20, 30]], [], [[0, 0, 8, 8]]]
    figure = detection_mosaic(images, found, truths, n=3, columns=2)
    assert [ax.get_title() for ax in figure.axes] == ["3.00 right", "2.00 wrong", "1.00 second"]
    assert _panels(figure).keys() == {(0, 0), (0, 1), (1, 0)}
    first, second, _ = figure.axes
    assert np.array_equal(first.images[0].get_array(), images[0])
    (left, right), (bottom, top) = first.get_xlim(), first.get_ylim()
    assert left < 10 and right > 20 and top < 10 and bottom > 30
    assert _rectangles(first) == [(10, 10, 20, 30), (10, 10, 20, 30)]  # the object, and what was found
    assert [box.get_linestyle() for box in first.patches] == ["--", "-"]
    assert second.get_xlim()[1] > 50  # the image ends, and the picture does not: the box is in its middle
    assert first.patches[-1].get_edgecolor() != second.patches[-1].get_edgecolor()
    assert [ax.get_title() for ax in detection_mosaic(images, found).axes] == ["3.00", "2.00", "1.00", "−4.00"]
    strict = detection_mosaic(images, found, truths, overlap=0.2)
    assert strict.axes[-1].get_title() == "−4.00 right"


def test_mosaics_refuse_what_does_not_belong_together():
    image, found = np.zeros((20, 20), np.uint8), ([[0, 0, 5, 5]], [1.0])
    for wrong, message in (
        (([image, image], [found]), "There are 2 images, found of 1 and truths of 2; each image needs one"),
        (([image], [found], [[], []]), "There are 1 images, found of 1 and truths of 2; each image needs one"),
        (([image], [([], [])]), r"Nothing was found in the 1 images\. Detect with a lower threshold"),
        (([image], [found], None, 0), "n and columns must be at least 1, got 0 and 6"),
        (([image], [[[0, 0, 5, 5]]]), "found must have Detections, or boxes and scores, for each image"),
        (([image], [found], [[[1, 2, 3]]]), r"truths\[0\] must have the shape \(n, 4\)"),
    ):
        with pytest.raises(ValueError, match=message):
            detection_mosaic(*wrong)


def _record(number, bound, objective):
    return BoundRecord(number, 0.0, objective, bound, bound - objective, 0.1 * number, 0.0, 0.1, 1, 1, 1, 1)


def test_the_searches_of_roots_and_of_parts_stand_beside_each_other():
    history = [_record(1, 5.0, 4.0), _record(2, 3.5, 3.0)]
    history += [_record(1, 2.0, 1.5), _record(2, 1.4, 1.2), _record(3, 1.2, 1.1)]
    values, gap = bounds(history)
    curves = [line.get_xydata().tolist() for line in values.lines[:4]]
    assert curves[0] == [[1, 5.0], [2, 3.5]]
    assert curves[1] == [[1, 4.0], [2, 3.0]]
    assert curves[2] == [[3, 2.0], [4, 1.4], [5, 1.2]]
    assert values.lines[4].get_xdata() == [2.5, 2.5]  # the border
    labels = [text.get_text() for text in values.get_legend().get_texts()]
    assert labels == ["bound at its minimiser", "objective there"]
    share = next(ax for ax in gap.figure.axes if ax not in (values, gap))
    centres = [bar.get_x() + 0.5 * bar.get_width() for bar in share.patches]
    assert np.allclose(centres, [2, 4, 5])  # nothing came before the first of each search
