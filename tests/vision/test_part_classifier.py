"""The classifier by parts: what it learns, what it says of images, what it keeps, and what it refuses."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from parts_by_hand import hinges, looked_up, ragged
from quietly import quiet
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import maxmargin as mm
from maxmargin.checkpoint import CheckpointError
from maxmargin.vision import HOGPatches, PartClassifier
from maxmargin.vision.parts.detections import best_detections
from maxmargin.vision.parts.joint import JointTraining
from maxmargin.vision.parts.patches import Patches, gather_patches

Image = pytest.importorskip("PIL.Image", reason="needs maxmargin[vision]")


def bags(seed=0, n=60, n_classes=3, d=8, n_patches=20, much=6.0):
    """One patch in twenty tells the class."""
    rng = np.random.default_rng(seed)
    label = np.arange(n) % n_classes
    found = [rng.normal(size=(n_patches, d)) for _ in label]
    for bag, k in zip(found, label, strict=True):
        bag[rng.integers(n_patches), k] += much
    return found, label


def placed_bags(seed=0, n=30, n_views=2, d=6):
    """The same in images with windows, seen from several sides."""
    rng = np.random.default_rng(seed)
    patches, label = ragged(seed, n=n, n_views=n_views, d=d, most=12), np.arange(n) % 3
    for view in range(n * n_views):
        patches.values[rng.integers(*patches.first[view : view + 2]), label[view // n_views]] += 6.0
    return patches, label


def quick(**changes):
    settings = {"n_parts": 6, "regions": (1,), "pool_size": 30, "random_state": 0, "bound_tol": 0.05, "C": 10.0}
    return PartClassifier(**{**settings, **changes})


def pictures(n=12, seed=0, size=(60, 72)):
    """Stripes one way or the other somewhere in noise."""
    rng = np.random.default_rng(seed)
    found = rng.integers(90, 165, (n, *size)).astype(np.uint8)
    stripes = np.where(np.arange(32) // 4 % 2, 230, 20).astype(np.uint8)
    for i, image in enumerate(found):
        top, left = rng.integers(0, size[0] - 32), rng.integers(0, size[1] - 32)
        image[top : top + 32, left : left + 32] = stripes[:, None] if i % 2 else stripes[None, :]
    return found, np.where(np.arange(n) % 2, "across", "upright")


SMALL = HOGPatches(size=3, cell=8, octave_scales=1, color=False)


# Learning.


@pytest.mark.rounding
def test_training_finds_what_random_parts_do_not_have():
    """Both begin with the very same few parts, nearly all of them patches of noise. Some starts end in poor valleys."""
    found = []
    for seed in (0, 1, 3, 4, 5):
        X, y = bags(seed, n=160, d=16, n_patches=30)
        settings = {"n_parts": 5, "pool_size": 5, "random_state": seed, "keep": 1.0, "C": 1.0}
        random = quick(training="random", **settings).fit(X[:80], y[:80])
        joint = quiet(quick(training="joint", **settings), X[:80], y[:80])
        assert joint.history_[0].objective == pytest.approx(random.objective_, rel=1e-9)
        assert joint.objective_ <= random.objective_ * (1 + 1e-9)
        scores = [model.score(X[80:], y[80:]) for model in (random, joint)]
        found.append([*scores, joint.objective_ / random.objective_])
    before, after, ratio = np.median(found, axis=0)
    assert before < 0.7
    assert after > 0.85
    assert ratio < 0.5
    assert random.selection_ is None


@pytest.mark.parametrize("training", ["joint", "selected", "random"])
def test_scores_are_those_of_loops_over_patches(training):
    patches, y = placed_bags()
    model = quiet(quick(training=training, regions=(1, 2)), patches, y)
    responses, _ = looked_up(patches, model.filters_, (1, 2))
    np.testing.assert_allclose(model.part_responses(patches), responses, atol=1e-10)
    scores = np.einsum("njr,kjr->nk", responses - model.centre_, model.part_weights_) + model.bias_
    np.testing.assert_allclose(model.decision_function(patches), scores, atol=1e-9)
    np.testing.assert_array_equal(model.predict(patches), scores.argmax(axis=1))
    assert model.score(patches, y) == pytest.approx((scores.argmax(axis=1) == y).mean())
    weight = np.arange(30.0)
    assert model.score(patches, y, weight) == pytest.approx(np.average(scores.argmax(axis=1) == y, weights=weight))
    loss = 10.0 * hinges(responses, y, model.part_weights_, model.bias_, model.centre_).sum()
    penalty = (
        (model.part_weights_**2).sum() + (model.bias_**2).sum() + model.filter_penalty_ * (model.filters_**2).sum()
    )
    assert model.objective_ == pytest.approx(loss + 0.5 * penalty, rel=1e-9)
    assert model.history_[-1].objective == pytest.approx(model.objective_, rel=1e-9)
    np.testing.assert_allclose(model.part_weights_.sum(axis=0), 0.0, atol=1e-9)
    assert all(after.objective <= before.objective * (1 + 1e-9) for before, after in pairwise(model.history_))
    assert model.n_passes_ == sum(record.passes for record in model.history_)
    assert len(model.history_) == 1 if training != "joint" else len(model.history_) >= 3


def test_all_forms_of_patches_are_the_same_to_it():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(20, 2, 3, 5)), np.arange(20) % 2
    X[np.arange(20), rng.integers(2, size=20), rng.integers(3, size=20), y] += 5.0
    cells = [[c / 3, r / 2, (c + 1) / 3, (r + 1) / 2] for r in range(2) for c in range(3)]
    stacked = Patches.stack(list(X.reshape(20, 6, 5)), [np.array(cells)] * 20)
    expected = quiet(quick(regions=(1, 2), n_parts=3), stacked, y).decision_function(stacked)
    for form in (X, list(X), np.array([*X, None], dtype=object)[:-1]):
        model = quiet(quick(regions=(1, 2), n_parts=3), form, y)
        np.testing.assert_array_equal(model.decision_function(form), expected)
    bare = quiet(quick(n_parts=3), list(X.reshape(20, 6, 5)), y)
    for form in (X.reshape(20, 6, 5), Patches(stacked.values, stacked.first)):
        again = quiet(quick(n_parts=3), form, y)
        np.testing.assert_array_equal(again.decision_function(form), bare.decision_function(list(X.reshape(20, 6, 5))))


@pytest.mark.rounding
def test_labels_may_be_words_and_two_classes_will_do():
    X, y = bags(4, n_classes=2)
    names = np.array(["yes", "no"])[y]
    model = quiet(quick(), X, names)
    assert model.classes_.tolist() == ["no", "yes"]
    assert set(model.predict(X)) == {"no", "yes"}
    assert model.score(X, names) > 0.9
    assert model.part_weights_.shape == (2, 6, 1)
    np.testing.assert_allclose(model.part_weights_[0], -model.part_weights_[1], atol=1e-12)


def test_weights_of_images_multiply_the_price():
    X, y = bags(5)
    one = quiet(quick(C=4.0), X, y, sample_weight=np.full(60, 2.5))
    other = quiet(quick(C=10.0), X, y)
    np.testing.assert_allclose(one.filters_, other.filters_, atol=1e-12)
    assert one.objective_ == pytest.approx(other.objective_)
    # An image of no weight may have any label.
    weight, wrong = np.ones(60), y.copy()
    weight[:6], wrong[:6] = 0.0, (y[:6] + 1) % 3
    settings = {"training": "random", "tol": 1e-6}
    left, right = (quick(**settings).fit(X, label, sample_weight=weight) for label in (y, wrong))
    np.testing.assert_allclose(left.part_weights_, right.part_weights_, atol=1e-2)
    assert left.objective_ == pytest.approx(right.objective_, rel=1e-4)


@pytest.mark.rounding
def test_the_same_seed_gives_the_same_parts():
    X, y = bags(6)
    one, same, other = (quiet(quick(random_state=s), X, y) for s in (0, 0, 1))
    np.testing.assert_array_equal(one.filters_, same.filters_)
    assert not np.allclose(one.filters_, other.filters_)
    for state in (np.random.default_rng(0), np.random.RandomState(0), None):
        assert quiet(quick(random_state=state), X, y).score(X, y) > 0.8


@pytest.mark.rounding
def test_memory_is_kept_to():
    X, y = bags(9, n=40, n_classes=4, much=2.0)
    free = quiet(quick(max_rounds=3), X, y)
    parts, responses, places = 40 * (6 * 8 * 8 + 24), 40 * 6 * 8, 40 * 6 * 4
    least = parts + 2 * responses + 3 * places
    model = quiet(quick(max_rounds=3, memory=least), X, y)
    assert max(r.rivals for r in free.history_) > 40 >= max(r.rivals for r in model.history_)
    assert 0 < max(r.bytes for r in model.history_) <= least
    assert model.objective_ < 0.9 * model.history_[0].objective
    roomy = quiet(quick(max_rounds=3, memory="1GB"), X, y)
    np.testing.assert_array_equal(roomy.filters_, free.filters_)
    with pytest.raises(ValueError, match=f"memory={least - 1} bytes is too little: 6 parts .* at least {least} bytes"):
        quick(memory=least - 1).fit(X, y)
    with pytest.raises(ValueError, match="memory=100 bytes is too little"):
        quick(memory=100, training="selected").fit(X, y)
    assert quick(memory=least - parts, training="random").fit(X, y).objective_ > 0.0


def test_goals_that_are_missed_are_said_to_be(monkeypatch):
    X, y = bags(11, n=30)
    with pytest.warns(ConvergenceWarning, match="stopped after max_rounds=1 rounds.*raise max_rounds, or bound_tol"):
        model = quick(max_rounds=1, bound_tol=1e-9).fit(X, y)
    assert [r.step for r in model.history_] == ["weights", "filters", "weights"]
    hard = bags(11, much=1.0)
    with pytest.warns(ConvergenceWarning, match="max_passes=1 passes over part weights, at a relative gap"):
        model = quick(training="random", tol=1e-6, max_passes=1, C=100.0).fit(*hard)
    assert model.certificate_.relative_gap > 1e-6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick(training="random", tol=1e-6).fit(*hard)
    monkeypatch.setattr(JointTraining, "stalled", property(lambda training: training.rounds == 1))
    with pytest.warns(ConvergenceWarning, match="after round 1, which changed nothing, .*raise bound_tol"):
        quick(bound_tol=1e-9).fit(X, y)


# Images.


@pytest.mark.rounding
def test_mirror_images_are_the_same_to_it():
    X, y = pictures()
    model = quiet(PartClassifier(4, features=SMALL, pool_size=20, random_state=0, max_rounds=2), X, y)
    assert model.score(X, y) == 1.0
    scores, mirrored = model.decision_function(X), model.decision_function(X[:, :, ::-1])
    np.testing.assert_allclose(mirrored, scores, atol=1e-3 * np.ptp(scores))
    np.testing.assert_array_equal(model.predict(X[:, :, ::-1]), model.predict(X))
    assert model.extractor_ is not None


def test_folders_files_and_arrays_are_the_same_to_it(tmp_path):
    X, y = pictures()
    for i, (image, name) in enumerate(zip(X, y, strict=True)):
        (tmp_path / "images" / name).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(tmp_path / "images" / name / f"{i:02}.png")
    settings = {"features": SMALL, "pool_size": 20, "random_state": 0, "bound_tol": 0.05}
    folder = quiet(PartClassifier(4, **settings), tmp_path / "images")
    order = np.argsort(y, kind="stable")
    arrays = quiet(PartClassifier(4, **settings), X[order], y[order])
    np.testing.assert_array_equal(folder.decision_function(X), arrays.decision_function(X))
    assert folder.score(tmp_path / "images") == arrays.score(X, y)
    cached = quiet(PartClassifier(4, cache=tmp_path / "cache", **settings), tmp_path / "images")
    np.testing.assert_allclose(cached.decision_function(X), folder.decision_function(X), atol=1e-4)
    assert cached.certify(tmp_path / "images").upper == pytest.approx(cached.objective_, rel=1e-5)
    (tmp_path / "images" / "across" / "bad.png").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"bad\.png"):
        PartClassifier(4, **settings).fit(tmp_path / "images")
    with pytest.warns(UserWarning, match=r"bad\.png"):
        skipped = quiet(PartClassifier(4, on_error="skip", **settings), tmp_path / "images")
    assert skipped.left_out_ == 1
    np.testing.assert_array_equal(skipped.decision_function(X), folder.decision_function(X))


def test_patches_far_from_zero_are_warned_of():
    X, y = bags(12, n=12, n_patches=8)
    with pytest.warns(UserWarning, match="The mean of the patches is .* times as long"):
        quiet(quick(max_rounds=1, bound_tol=1.0), [bag + 100.0 for bag in X], y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        quick(max_rounds=1, bound_tol=1.0).fit([bag + 1.0 for bag in X], y)


def test_a_run_that_goes_on_selects_no_parts_anew(tmp_path, monkeypatch):
    X, y = bags(13, n=30)
    begun = quiet(quick(max_rounds=1), X, y, checkpoint=tmp_path)
    assert begun.selection_ is not None
    monkeypatch.setattr("maxmargin.vision.part_classifier.select_parts", None)
    ended = quiet(quick(max_rounds=2), X, y, checkpoint=tmp_path)
    assert ended.selection_ is None
    assert ended.history_[: len(begun.history_)] == begun.history_
    assert ended.history_[-1].round == 2


# What was learned.


def test_what_is_saved_is_what_was_learned(tmp_path):
    patches, y = placed_bags(3)
    model = quiet(quick(regions=(1, 2)), patches, np.array(["a", "b", "c"])[y])
    model.save(tmp_path / "model.safetensors")
    again = mm.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.decision_function(patches), model.decision_function(patches))
    np.testing.assert_array_equal(again.predict(patches), model.predict(patches))
    assert again.get_params() == model.get_params()
    assert again.history_ == model.history_
    assert again.certificate_ == model.certificate_
    assert again.selection_ is None
    names = np.array(["a", "b", "c"])[y]
    assert again.certify(patches, names) == model.certify(patches, names)
    with pytest.raises(ValueError, match="trained on features of patches and cannot describe images"):
        again.predict(pictures(2)[0])
    with pytest.raises(ValueError, match="only where the model was trained on images"):
        again.filter_images()


def test_what_describes_images_is_saved_along(tmp_path):
    X, y = pictures()
    model = quiet(PartClassifier(4, n_components=8, pool_size=10, random_state=0), X, y)
    model.save(tmp_path / "model.safetensors")
    again = mm.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.top_detections(X, 1, 5) == model.top_detections(X, 1, 5)
    assert model.filters_.shape == (4, 8)
    assert again.filter_images().shape == (4, 6, 6, 32)


def test_the_certificate_can_be_computed_anew():
    X, y = bags(12)
    model = quiet(quick(tol=1e-4), X, y)
    again = model.certify(X, y)
    assert again.upper == pytest.approx(model.objective_)
    assert again.lower == pytest.approx(model.certificate_.lower)
    assert model.certificate_.lower <= model.objective_
    assert again.relative_gap <= 1e-4
    other = model.certify(X[:30], y[:30])  # dual variables of other images prove nothing
    extra = 0.5 * model.filter_penalty_ * (model.filters_**2).sum()
    assert other.lower == pytest.approx(extra)
    assert extra < other.upper <= again.upper  # the other images may all be right by their margin
    with pytest.raises(ValueError, match=r"classes that were not there in fit: \[7\]"):
        model.certify(X[:2], [0, 7])


def test_classes_are_compared_part_by_part():
    patches, y = placed_bags(4)
    model = quiet(quick(regions=(1, 2)), patches, np.array(["a", "b", "c"])[y])
    found, back = model.compare("a", "c"), model.compare("c", "a")
    u = model.part_weights_
    np.testing.assert_array_equal(found.difference, u[0] - u[2])
    np.testing.assert_array_equal(found.difference, -back.difference)
    total = (u[0] - u[2]).sum(axis=1)
    assert (total[found.positive] > 0).all()
    assert (total[found.negative] < 0).all()
    assert sorted([*found.positive, *found.negative]) == list(range(6))
    assert (np.diff(total[found.positive]) <= 0).all()
    assert (np.diff(total[found.negative]) >= 0).all()
    np.testing.assert_array_equal(found.positive, back.negative)
    assert not model.compare("b", "b").positive.size
    with pytest.raises(ValueError, match=r"'d' is none of the classes: \['a', 'b', 'c'\]"):
        model.compare("a", "d")


def test_the_best_places_of_a_part_are_those_of_all_images():
    """However many are looked at together."""
    X, y = pictures()
    model = quiet(PartClassifier(4, features=SMALL, pool_size=20, random_state=0, regions=(1,)), X, y)
    patches, _ = gather_patches(list(X), SMALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("maxmargin.vision.part_classifier._BLOCK", 5)
        for part, found in enumerate(model.detections(X, range(4), 7, per_image=2)):
            assert found == best_detections(patches, model.filters_[part], 7, 2)
            assert found == model.top_detections(X, part, 7, per_image=2)


# Interruptions, failures, checkpoints.


@pytest.mark.rounding
def test_a_callback_ends_the_fit_and_the_next_goes_on(tmp_path):
    X, y = bags(13)
    settings = {"n_parts": 5, "pool_size": 5, "keep": 1.0, "bound_tol": 0.1}
    whole = quiet(quick(**settings), X, y)
    steps = len(whole.history_)
    assert steps > 3
    with pytest.warns(ConvergenceWarning, match="was interrupted, with an objective of"):
        stopped = quick(**settings).fit(X, y, checkpoint=tmp_path, callbacks=[lambda r: r.step == "filters"])
    assert [r.step for r in stopped.history_] == ["weights", "filters"]
    assert stopped.objective_ == pytest.approx(stopped.history_[-1].objective)
    assert stopped.certify(X, y).upper == pytest.approx(stopped.objective_)
    seen = []
    resumed = quiet(quick(**settings), X, y, checkpoint=tmp_path, callbacks=[seen.append])
    assert resumed.history_[:2] == stopped.history_
    assert len(seen) == steps - 2
    assert resumed.objective_ == pytest.approx(whole.objective_, rel=1e-9)
    again = quiet(quick(**settings), X, y, checkpoint=tmp_path, callbacks=[seen.append])
    assert len(seen) == steps - 2
    assert again.objective_ == pytest.approx(resumed.objective_, rel=1e-12)
    more = quiet(quick(**{**settings, "bound_tol": 1e-9, "max_rounds": whole.history_[-1].round + 1}), X, y,
                  checkpoint=tmp_path)  # fmt: skip
    assert more.history_[:steps] == resumed.history_
    assert len(more.history_) == steps + 2
    for changed, message in (({"C": 2.0}, "C was"), ({"n_parts": 4}, "n_parts was")):
        with pytest.raises(CheckpointError, match=message):
            quick(**{**settings, **changed}).fit(X, y, checkpoint=tmp_path)
    for data, weight in ((X[1:], None), (X, np.arange(60.0))):
        with pytest.raises(CheckpointError, match="data was"):
            quick(**settings).fit(data, y[-len(data) :], weight, checkpoint=tmp_path)


def test_a_run_goes_on_by_other_means(tmp_path):
    pytest.importorskip("torch", reason="needs maxmargin[torch]")
    X, y = bags(14)
    settings = {"n_parts": 5, "pool_size": 5, "keep": 1.0}
    stopped = quiet(quick(max_rounds=1, bound_tol=1e-9, **settings), X, y, checkpoint=tmp_path)
    resumed = quiet(quick(device="cpu", n_jobs=2, max_rounds=2, **settings), X, y, checkpoint=tmp_path)
    assert resumed.history_[:3] == stopped.history_
    assert len(resumed.history_) == 5
    assert resumed.objective_ < stopped.objective_


def test_a_failed_fit_leaves_the_model_as_it_was():
    X, y = bags(16)
    model = quiet(quick(), X, y)
    before, scores = dict(vars(model)), model.decision_function(X)

    def fail(record):
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more") as caught:
        model.fit(X[:30], y[:30], callbacks=[fail])
    assert caught.value.solution.history
    assert vars(model) == before
    np.testing.assert_array_equal(model.decision_function(X), scores)


# What is refused.


class NoSettings:
    color = False

    def __call__(self, image):
        return SMALL(image)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_parts": 0}, "n_parts must be a whole number of at least 1, got 0"),
        ({"n_parts": 5000, "pool_size": None}, "patches"),
        ({"balance": -1.0}, "balance must be"),
        ({"n_components": 0}, "n_components must be a whole number"),
        ({"keep": 0.0}, "keep must be above 0 and at most 1, got 0.0"),
        ({"shrinkage": 2.0}, "shrinkage must be .auto. or a number from 0 to 1, got 2.0"),
        ({"regions": (0,)}, "regions must be whole numbers from 1 on"),
        ({"regions": (1, 2)}, r"regions=\(1, 2\) are to be pooled, but nobody knows where"),
        ({"features": "sift"}, "features"),
        ({"features": NoSettings()}, "features must be 'hog', 'cnn' or have settings; got"),
        ({"memory": 5}, "memory=5 bytes is too little"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    X, y = bags(17, n=12)
    model = quick(**settings)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "classes_")


def spoilt(X):
    X = [x.copy() for x in X]
    X[3][4, 5] = np.nan
    return X


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (spoilt(X), y), "A patch of image 3 is not finite"),
        (lambda X, y: ([*X[:-1], X[-1][:, :4]], y), "as many features in all images"),
        (lambda X, y: ([*X[:-1], X[-1][:0]], y), "Image 11 has no patches"),
        (lambda X, y: (X, np.zeros(12)), "needs images of at least 2 classes, got 0.0 alone"),
        (lambda X, y: (np.full((12, 2, 2, 3), np.inf), y), "The features of image 0 are not finite"),
        (lambda X, y: (np.ones((12, 50, 50, 3)), y), "Are these images, or features of 50 × 50 regions"),
    ],
)
def test_data_that_make_no_sense_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        quick().fit(*change(*bags(18, n=12)))


def test_questions_that_make_no_sense_are_refused():
    X, y = bags(19)
    with pytest.raises(NotFittedError):
        quick().predict(X)
    model = quick(training="random").fit(X, y)
    with pytest.raises(ValueError, match="trained on patches of 8 features, got 5"):
        model.predict([x[:, :5] for x in X])
    for part in (-1, 6, 1.5, True):
        with pytest.raises(ValueError, match=f"part must be a whole number from 0 to 5, got {part}"):
            model.top_detections(X, part)
    with pytest.raises(ValueError, match="At least one place is needed, got n=0"):
        model.top_detections(X, 0, 0)
    with pytest.raises(ValueError, match=r"non-zero|are zero"):
        model.score(X, y, np.zeros(len(X)))


def test_mistakes_are_told_before_images_are_looked_at():
    with pytest.raises(ValueError, match="must not be negative"):
        PartClassifier(2, regions=(1,)).fit(["missing.png"] * 4, [0, 1, 0, 1], -np.ones(4))
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match="device='nowhere' cannot be used"):
        PartClassifier(2, regions=(1,), device="nowhere").fit(["missing.png"] * 4, [0, 1, 0, 1])


def test_images_are_of_length_one_to_begin_with():
    patches, y = placed_bags(1)
    for n_parts in (3, 12):
        model = quick(training="random", regions=(1, 2), n_parts=n_parts).fit(patches, y)
        centred = model.part_responses(patches) - model.centre_
        assert (centred**2).sum(axis=(1, 2)).mean() == pytest.approx(1.0)
