"""The detector as users meet it: it finds what was drawn, proves what it learned, keeps it, and says what is wrong."""

import copy

import numpy as np
import pytest
from PIL import Image
from quietly import quiet
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import maxmargin
from maxmargin import persistence
from maxmargin.vision import DeformablePartDetector
from maxmargin.vision.detection.box_regression import BoxRegression
from maxmargin.vision.detection.model import Component, Part, StarModel
from maxmargin.vision.detection.training import DetectorTraining, Stage
from maxmargin.vision.images import ImageError

SMALL = {
    "C": 0.3, "n_parts": 2, "part_size": 3, "root_area": 12.0, "octave_scales": 4, "finest": 1.0, "padding": 1,
    "random_state": 0, "max_bounds": 4,
}  # fmt: skip
SIZE = 80


def noise(rng):
    return rng.integers(90, 130, (SIZE, SIZE)).astype(np.uint8)


def ring(image, x, y, side):
    """A dark square with a bright one inside."""
    image[y : y + side, x : x + side] = 30
    quarter = side // 4
    image[y + quarter : y + side - quarter, x + quarter : x + side - quarter] = 230


def bar(image, x, y, width, height):
    image[y : y + height, x : x + width] = 230
    image[y + height // 3 : y + height - height // 3, x + 4 : x + width - 4] = 40


def wedge(image, x, y, side, right):
    row, column = np.indices((side, side))
    inside = np.abs(row - side / 2) < (side - column) / 2
    image[y : y + side, x : x + side][inside if right else inside[:, ::-1]] = 230


def clutter(image, rng):
    """Things that are not the object: bright squares, and stripes."""
    x, y = rng.integers(0, SIZE - 26, 2)
    image[y : y + 24, x : x + 24] = rng.choice([30, 230])


def rings(rng, n, n_background=3):
    images, boxes = [], []
    for _ in range(n):
        image = noise(rng)
        side = int(rng.choice([28, 36]))
        x, y = rng.integers(2, SIZE - side - 2, 2).tolist()
        ring(image, x, y, side)
        images.append(image)
        boxes.append([[x, y, x + side, y + side]])
    for _ in range(n_background):
        image = noise(rng)
        clutter(image, rng)
        images.append(image)
        boxes.append([])
    return images, boxes


def fitted(settings, images, boxes, **fit):
    """Trained without a word about bounds that were not enough: these tests need few."""
    return quiet(DeformablePartDetector(**{**SMALL, **settings}), images, boxes, **fit)


@pytest.fixture(scope="module")
def data():
    return rings(np.random.default_rng(0), 10, 5)


@pytest.fixture(scope="module")
def unseen():
    return rings(np.random.default_rng(1), 8)


@pytest.fixture(scope="module")
def detector(data):
    return fitted({}, *data)


def same_detections(one, other):
    for name in ("boxes", "scores", "components", "part_boxes", "mirrored", "root_boxes", "placements"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


# Finding things.


@pytest.mark.rounding
@pytest.mark.parametrize(
    "settings", [{"n_parts": 0}, {"n_negative_parts": 1}, {"bound": "gmm"}], ids=["root", "negative", "gmm"]
)
def test_what_was_drawn_is_found(data, unseen, settings):
    detector = fitted(settings, *data)
    assert detector.score(*unseen) > 0.9
    found = detector.detect(unseen[0][0])
    assert len(found) and np.abs(found.boxes[0] - unseen[1][0][0]).max() < 10


def test_detections_are_consistent(detector, unseen):
    model, some = detector.star_, 0
    for image, found in zip(unseen[0], detector.predict(unseen[0], threshold=-0.9), strict=True):
        assert (np.diff(found.scores) <= 0.0).all() and (found.scores > -0.9).all()
        assert found.part_boxes.shape == (len(found), 2, 4)
        color = np.repeat(image[:, :, None], 3, axis=2)
        levels = detector.grid_.pyramid(color, True)
        scores = model.features(levels, found.placements) @ detector.coef_
        np.testing.assert_allclose(scores, found.scores, atol=1e-4)
        assert (found.boxes >= 0).all() and (found.boxes <= SIZE).all()
        same_detections(found, detector.detect(image, threshold=-0.9))
        few = detector.detect(image, threshold=-0.9, most=1)
        assert len(few) == min(1, len(found))
        some += len(found)
    assert some > len(unseen[0])


def test_two_components_of_different_shape(rng):
    images, boxes = [], []
    for k in range(16):
        image = noise(rng)
        width, height = (48, 24) if k % 2 else (24, 48)
        x, y = int(rng.integers(2, SIZE - width - 2)), int(rng.integers(2, SIZE - height - 2))
        bar(image, x, y, width, height)
        images.append(image)
        boxes.append([[x, y, x + width, y + height]])
    detector = fitted({"n_components": 2, "n_parts": 1, "root_area": 18.0, "flips": False}, images[:10], boxes[:10])
    sizes = [(component.rows, component.columns) for component in detector.star_.components]
    assert sizes[0][0] > sizes[0][1] and sizes[1][0] < sizes[1][1]
    assert detector.score(images[10:], boxes[10:]) > 0.9
    for k, image in enumerate(images[10:]):
        assert detector.detect(image, threshold=-1.0).components[0] == k % 2


@pytest.mark.rounding
def test_left_and_right_are_told_apart(rng):
    images, boxes, right = [], [], []
    for k in range(16):
        image = noise(rng)
        x, y = rng.integers(2, SIZE - 34, 2).tolist()
        wedge(image, x, y, 32, bool(k % 2))
        images.append(image)
        boxes.append([[x, y, x + 32, y + 32]])
        right.append(bool(k % 2))
    detector = fitted({"mirrored": True, "n_parts": 1, "root_area": 16.0}, images[:10], boxes[:10])
    assert detector.score(images[10:], boxes[10:]) > 0.9
    form = np.array([detector.detect(image, threshold=-1.0).mirrored[0] for image in images[10:]])
    assert np.array_equal(form, right[10:]) or np.array_equal(~form, right[10:])
    # The mirror image has the same scores, and its places mirrored.
    here = detector.detect(images[10], threshold=-1.0, most=1)
    there = detector.detect(np.ascontiguousarray(images[10][:, ::-1]), threshold=-1.0, most=1)
    assert here.scores[0] == pytest.approx(there.scores[0], abs=5e-3)
    assert here.mirrored[0] != there.mirrored[0]
    turned = SIZE - there.boxes[0][[2, 1, 0, 3]]
    np.testing.assert_allclose(turned[[0, 2]], here.boxes[0][[0, 2]], atol=1e-6)


def test_negative_parts_from_another_detector(data, detector):
    found = fitted({"n_negative_parts": 1, "negative_parts_from": detector}, *data)
    signs = [part.sign for part in found.star_.components[0].parts]
    assert signs == [1, 1, -1]
    with pytest.raises(ValueError, match=r"negative_parts_from has 2 positive parts, n_negative_parts=3"):
        fitted({"n_negative_parts": 3, "negative_parts_from": detector}, *data)
    again = clone(DeformablePartDetector(**SMALL, n_negative_parts=1, negative_parts_from=[detector]))
    assert again.negative_parts_from == [detector], "clones can be trained"
    for other in (DeformablePartDetector(), again):
        with pytest.raises(ValueError, match="negative_parts_from must be fitted detectors, other ones than this"):
            again.set_params(negative_parts_from=other).fit(*data)


# What is proved.


def test_the_certificate_is_that_of_the_images_and_files_keep_it(data, unseen, detector, tmp_path):
    assert 0.0 < detector.certificate_.lower <= detector.certificate_.upper
    assert detector.certificate_.relative_gap <= detector.tol
    records = detector.history_[detector.n_root_bounds_ :]
    assert 0 < detector.n_root_bounds_ <= 3 and len(records) >= 1
    assert detector.objective_ == pytest.approx(min(record.objective for record in records))
    again = detector.certify(*data)
    assert (again.lower, again.upper) == pytest.approx(
        (detector.certificate_.lower, detector.certificate_.upper), rel=1e-4
    )
    detector.save(tmp_path / "rings.mm")
    loaded = maxmargin.load(tmp_path / "rings.mm")
    assert loaded.get_params() == detector.get_params()
    np.testing.assert_array_equal(loaded.coef_, detector.coef_)
    for image in unseen[0][:3]:
        same_detections(loaded.detect(image, threshold=-1.0), detector.detect(image, threshold=-1.0))
    once_more = loaded.certify(*data)
    assert (once_more.lower, once_more.upper) == pytest.approx((again.lower, again.upper), rel=1e-9)


@pytest.mark.parametrize(("setting", "value"), [("padding", np.arange(3)), ("part_size", 0), ("overlap", 2.0)])
def test_files_with_settings_that_cannot_be_are_refused(detector, tmp_path, monkeypatch, setting, value):
    other = copy.copy(detector).set_params(**{setting: value})
    with monkeypatch.context() as patched:
        patched.setattr(persistence, "_check", lambda estimator: None)
        other.save(tmp_path / "rings.mm")
    with pytest.raises(ValueError, match=f"rings.mm is damaged.*{setting} must"):
        maxmargin.load(tmp_path / "rings.mm")


def test_the_same_seed_gives_the_same_bits(data, detector):
    again = fitted({"n_jobs": 1}, *data)
    np.testing.assert_array_equal(again.coef_, detector.coef_)


@pytest.mark.rounding
def test_two_threads_prove_as_much(data, unseen):
    detector = fitted({"n_jobs": 2}, *data)
    assert detector.certificate_.relative_gap <= detector.tol
    assert detector.score(*unseen) > 0.9


# Keeping it.


def test_training_goes_on_from_a_checkpoint(data, detector, tmp_path):
    def stop(record):
        if len(seen) == 1:
            raise RuntimeError("the power fails")
        seen.append(record)

    seen: list = []
    with pytest.raises(RuntimeError, match="the power fails"):
        fitted({}, *data, checkpoint=tmp_path / "run", checkpoint_every=0, callbacks=[stop])
    assert any((tmp_path / "run").iterdir())
    numbers: list = []
    rest = fitted({}, *data, checkpoint=tmp_path / "run", checkpoint_every=0, callbacks=[numbers.append])
    assert len(numbers) < rest.n_bounds_ + 1
    assert rest.objective_ == pytest.approx(detector.objective_, rel=0.03)
    assert rest.certificate_.relative_gap <= rest.tol


def test_ctrl_c_while_parts_are_trained_keeps_the_parts(data, unseen, detector):
    def press(record):
        seen.append(record)
        if len(seen) == at:
            raise KeyboardInterrupt

    seen: list = []
    at = detector.n_root_bounds_ + 1
    with pytest.warns(ConvergenceWarning, match="was interrupted"):
        stopped = DeformablePartDetector(**SMALL).fit(*data, callbacks=[press])
    assert stopped.star_.has_parts and stopped.n_bounds_ == at
    assert stopped.score(*unseen) > 0.8


def test_a_callback_ends_the_stage(data):
    with pytest.warns(ConvergenceWarning, match="was told to stop"):
        detector = DeformablePartDetector(**SMALL).fit(*data, callbacks=[lambda record: True])
    assert detector.star_.has_parts and detector.n_bounds_ == 2


# Settings.


@pytest.mark.parametrize("ask", ["detect", "predict", "score", "certify"])
def test_nothing_is_found_before_training(ask, data):
    detector, arguments = DeformablePartDetector(), data if ask in ("score", "certify") else (data[0][:1],)
    if ask == "detect":
        arguments = (data[0][0],)
    with pytest.raises(NotFittedError):
        getattr(detector, ask)(*arguments)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"n_components": 0}, "n_components"),
        ({"cell": 0}, "cell must be a whole number of pixels, at least 4"),
        ({"n_negative_parts": 1, "negative_parts_from": []}, "negative_parts_from has 0 positive parts"),
        ({"n_parts": -1}, "n_parts"),
        ({"firmness": np.nan}, "firmness"),
        ({"root_area": 0.0}, "root_area"),
        ({"finest": -1.0}, "finest"),
        ({"overlap": 0.0}, "overlap must be above 0 and at most 1, got 0.0"),
        ({"overlap": 0.2}, "background_overlap=0.3 is more than overlap=0.2"),
        ({"memory": "50 KB"}, "memory is too little"),
        ({"n_components": 11}, "n_components=11 is more than there are boxes: 10"),
    ],
)
def test_wrong_settings_are_named(data, settings, message):
    with pytest.raises(ValueError, match=message):
        DeformablePartDetector(**{**SMALL, **settings}).fit(*data)


# Boxes.


def test_box_regression_recovers_a_linear_rule(rng):
    model = StarModel(
        (Component(3, 4, (Part(2, 2, 1, 1), Part(2, 3, 2, 4))), Component(3, 3, (Part(2, 2, 0, 0),))), True
    )
    n = 4000
    placements = np.zeros((n, model.placement_length), np.int32)
    placements[:, 0] = rng.integers(0, 4, n)
    placements[:, 2:4] = rng.integers(0, 5, (n, 2))
    for at in placements:
        for p, part in enumerate(model.parts_of(int(at[0]))):
            at[4 + 2 * p] = 2 * at[2] + part.top + rng.integers(-3, 4)
            at[5 + 2 * p] = 2 * at[3] + part.left + rng.integers(-3, 4)
    size = np.array([model.size_of(int(view)) for view in placements[:, 0]])
    corner = 8.0 * placements[:, 3:1:-1]
    roots = np.hstack([corner, corner + 8.0 * size[:, ::-1]])
    rule = BoxRegression(rng.normal(0.0, 0.2, (2, 5, 4)))
    rule.coefficients[1, 3:] = 0.0  # of a part that the second component has not
    boxes = rule.boxes(model, placements, roots)
    learned = BoxRegression.learned(model, placements, roots, boxes)
    np.testing.assert_allclose(learned.coefficients, rule.coefficients, atol=0.02)
    np.testing.assert_allclose(learned.boxes(model, placements, roots), boxes, atol=0.5)
    few = BoxRegression.learned(model, placements[:0], roots[:0], boxes[:0])
    np.testing.assert_array_equal(few.boxes(model, placements, roots), roots)


def test_boxes_of_mirror_images_are_mirror_images(rng):
    model = StarModel((Component(3, 4, (Part(2, 2, 1, 1),)),), True)
    rule = BoxRegression(rng.normal(0.0, 0.2, (1, 3, 4)))
    placement = np.array([[0, 0, 1, 2, 5, 3]], np.int32)
    width = 10  # coarse cells
    turned = np.array([[1, 0, 1, width - 4 - 2, 5, 2 * width - 2 - 3]], np.int32)
    root, other = np.array([[16.0, 8.0, 48.0, 32.0]]), np.array([[32.0, 8.0, 64.0, 32.0]])
    here, there = rule.boxes(model, placement, root)[0], rule.boxes(model, turned, other)[0]
    np.testing.assert_allclose(there, [80 - here[2], here[1], 80 - here[0], here[3]])


def test_boxes_are_never_turned_inside_out():
    """A part that is very far off would move one edge beyond the other."""
    model = StarModel((Component(3, 4, (Part(2, 2, 1, 1),)),))
    rule = BoxRegression(np.zeros((1, 3, 4)))
    rule.coefficients[0, 2, 0] = 0.5
    near, far = [0, 0, 1, 2, 3, 7], [0, 0, 1, 2, 3, 60]
    root = np.array([16.0, 8.0, 48.0, 32.0])
    boxes = rule.boxes(model, np.array([near, far], np.int32), np.array([root, root]))
    assert boxes.tolist() == [[20.0, 8.0, 48.0, 32.0], root.tolist()]


def test_what_lies_beyond_the_image_is_not_found(data):
    detector = fitted({"n_parts": 0, "padding": 4, "box_regression": False}, *data)
    found = detector.detect(data[0][0], threshold=-1e9, overlap=1.0, most=1000)
    assert len(found) > 100
    assert (found.boxes[:, :2] < found.boxes[:, 2:]).all()
    np.testing.assert_allclose(found.boxes, np.clip(found.root_boxes, 0, SIZE))


# What may be wrong with images and boxes.


def test_images_smaller_than_the_filter(data):
    tiny = [np.full((14, 14), 90, np.uint8)] * 3
    with pytest.raises(ImageError, match="None of the 3 boxes can be learned from"):
        fitted({"root_area": 30.0, "n_parts": 0, "padding": 0}, tiny, [[[2, 2, 12, 12]]] * 3)
    detector = fitted({"n_parts": 0}, [*data[0], tiny[0]], [*data[1], []])
    assert len(detector.detect(np.full((4, 4), 90, np.uint8))) == 0, "an image without a cell"


def test_predict_takes_a_folder(detector, unseen, tmp_path):
    for k, image in enumerate(unseen[0][:2]):
        Image.fromarray(image).save(tmp_path / f"{k}.png")
    for one, other in zip(detector.predict(tmp_path), detector.predict(unseen[0][:2]), strict=True):
        same_detections(one, other)
    with pytest.raises(ImageError, match="Use detect for one"):
        detector.predict(unseen[0][0])


def test_boxes_that_are_left_out_are_named_by_their_own_image(data, tmp_path):
    images, boxes = data
    files = [tmp_path / f"{k}.png" for k in range(6)]
    for file, image in zip(files, images, strict=False):
        Image.fromarray(image).save(file)
    files[1].write_bytes(b"no image at all")
    given = [*boxes[:4], [boxes[4][0], [0, 70, 80, 74]], boxes[5]]
    with pytest.warns(UserWarning) as said:
        detector = fitted({"n_parts": 0}, files, given)
    (told,) = [str(one.message) for one in said if "by half are left out" in str(one.message)]
    assert f"(in {files[4]})" in told
    detector.save(tmp_path / "rings.mm")
    assert maxmargin.load(tmp_path / "rings.mm").left_out_ == 1


# Odd things.


@pytest.mark.parametrize(
    "asked, message",
    [
        ({"most": -1}, "most must be a whole number"),
        ({"threshold": np.nan}, "threshold must be None or a number"),
        ({"overlap": 2.0}, "overlap must be a share"),
    ],
)
def test_what_is_asked_of_detections_is_checked(detector, unseen, asked, message):
    with pytest.raises(ValueError, match=message):
        detector.detect(unseen[0][0], **asked)
    with pytest.raises(ValueError, match=message):
        detector.predict(unseen[0][:1], **asked)


def test_memory_for_parts_is_asked_for_before_roots_are_trained(data):
    seen: list = []
    with pytest.raises(ValueError, match="memory is too little"):
        DeformablePartDetector(**{**SMALL, "n_parts": 20, "memory": "3 MB"}).fit(*data, callbacks=[seen.append])
    assert not seen


def test_no_certificate_is_false_on_other_images(detector, unseen):
    images, boxes = unseen
    for some in ((images, boxes), (images[:1], boxes[:1]), ([np.zeros((3, 3), np.uint8)], [[[0, 0, 3, 3]]])):
        found = detector.certify(*some)
        assert found.lower <= found.upper


def test_a_checkpoint_of_other_pixels_is_refused(data, tmp_path):
    images, boxes = data
    fitted({"n_parts": 0, "max_bounds": 1}, images, boxes, checkpoint=tmp_path / "run")
    with pytest.raises(ValueError, match="belongs to another run"):
        fitted({"n_parts": 0, "max_bounds": 1}, [255 - i for i in images], boxes, checkpoint=tmp_path / "run")


@pytest.mark.parametrize("when", ["parts", "threshold"])
def test_ctrl_c_between_stages_keeps_what_was_learned(data, unseen, monkeypatch, when):
    def press(*_, **__):
        raise KeyboardInterrupt

    owner, name = (DetectorTraining, "parts") if when == "parts" else (Stage, "threshold")
    monkeypatch.setattr(owner, name, press)
    with pytest.warns(ConvergenceWarning, match="was interrupted"):
        detector = DeformablePartDetector(**SMALL).fit(*data)
    assert detector.star_.has_parts == (when == "threshold")
    assert detector.n_bounds_ == len(detector.history_)
    assert detector.score(*unseen) > 0.5


def _shorter(values):
    return values[:-1]


def _without_numbers(values):
    return np.full_like(values, np.nan)


@pytest.mark.parametrize("damage", [_shorter, _without_numbers])
@pytest.mark.parametrize("name", ["coef_", "box_regression_"])
def test_detectors_of_which_the_pieces_do_not_fit_are_not_saved(detector, tmp_path, name, damage):
    other = clone(detector)
    other.__dict__.update(detector.__dict__)
    if name == "coef_":
        other.coef_ = damage(detector.coef_)
    else:
        other.box_regression_ = BoxRegression(damage(detector.box_regression_.coefficients))
    with pytest.raises(ValueError, match=r"weights|regression|finite"):
        other.save(tmp_path / "damaged.mm")
    assert not list(tmp_path.iterdir())
