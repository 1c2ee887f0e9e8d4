"""Pictures of scenes: what they show, not how it looks."""

import numpy as np
import pytest

from maxmargin.plots import confusion, labelled_regions, region_models
from maxmargin.vision import SceneClassifier


def _images(n, rng):
    """Grey images of 40 × 60 pixels: class "flat" is dark above and bright below, class "tall" left and right."""
    images, y = [], np.array(["flat", "tall"] * n)
    for name in y:
        image = rng.integers(0, 30, (40, 60)).astype(np.uint8)
        if name == "flat":
            image[20:] += 200
        else:
            image[:, 30:] += 200
        images.append(image)
    return images, y


class _Brightness:
    """Two words, dark and bright, counted in the regions of a 2 × 3 grid."""

    color = False
    n_features = 2

    def __call__(self, image):
        cells = image.reshape(2, 20, 3, 20).swapaxes(1, 2).reshape(2, 3, -1)
        bright = (cells > 100).sum(axis=2)
        return np.stack([400 - bright, bright], axis=2).astype(np.float32)

    def settings(self):
        return "brightness"


@pytest.fixture(scope="module")
def trained():
    images, y = _images(10, np.random.default_rng(0))
    model = SceneClassifier("rbow", n_parts=2, features=_Brightness(), init="kmeans", max_bounds=1, random_state=0)
    return model.fit(images, y), images, y


def _maps(figure):
    return [ax.images[0].get_array() for ax in figure.axes if ax.get_ylabel().startswith("part")]


@pytest.fixture
def flat(trained):
    """Images classified as flat, and the parts of their regions."""
    model, images, _ = trained
    mine = [image for image, name in zip(images, model.predict(images), strict=True) if name == "flat"]
    return mine, model.predict_regions(mine, ["flat"] * len(mine))


def test_region_models_draws_preferences_of_the_most_used_parts_first(trained, flat):
    model, images, _ = trained
    figure = region_models(model, "flat", images, n=3)
    uses = np.bincount(flat[1].ravel(), minlength=2)
    order = [part for part in np.argsort(-uses, kind="stable") if uses[part]]
    preference = model.region_models_.of("flat").preference[0]
    for drawn, part in zip(_maps(figure), order, strict=True):
        assert np.allclose(drawn, preference[:, :, part])
    labels = [ax.get_ylabel() for ax in figure.axes if ax.get_ylabel().startswith("part")]
    assert [label.split("\n")[0] for label in labels] == [f"part {part}" for part in order]
    assert sum(int(label.split("\n")[1].split()[0]) for label in labels) == pytest.approx(100, abs=1)


def test_region_models_shows_regions_that_the_part_was_assigned_to(trained, flat):
    figure = region_models(trained[0], "flat", trained[1], n=4, parts=1)
    part = int(figure.axes[0].get_ylabel().split()[1])
    allowed = {
        image[20 * r : 20 * r + 20, 20 * c : 20 * c + 20].tobytes()
        for image, table in zip(*flat, strict=True)
        for r, c in zip(*np.nonzero(table == part), strict=True)
    }
    drawn = [ax.images[0].get_array() for ax in figure.axes[1:] if ax.images]
    shown = [np.asarray(picture)[..., 0].tobytes() for picture in drawn]
    assert len(shown) == len(set(shown)) == 4
    assert set(shown) <= allowed


@pytest.mark.parametrize(
    ("kind", "training"), [("sbow", "discriminative"), ("sbow", "generative"), ("rbow", "generative")]
)
def test_region_models_of_features_alone(kind, training):
    images, y = _images(6, np.random.default_rng(1))
    X = np.stack([_Brightness()(image) for image in images])
    model = SceneClassifier(kind, training, n_parts=2, random_state=0).fit(X, y)
    for figure in (region_models(model, "flat", features=X), region_models(model, "flat", images, features=X)):
        drawn = _maps(figure)
        assert drawn
        assert all(table.min() >= 0.0 and table.max() <= 1.0 for table in drawn)
    with pytest.raises(ValueError, match="give features= as well"):
        region_models(model, "flat", images)
    with pytest.raises(ValueError, match="must belong together"):
        region_models(model, "flat", images, features=X[:3])


def test_region_models_refuses_what_it_cannot_draw(trained):
    model, images, y = trained
    tall = [image for image, name in zip(images, y, strict=True) if name == "tall"]
    bow = SceneClassifier("bow", features=_Brightness(), random_state=0).fit(images, y)
    for given, options, message in (
        ((model, "round"), {}, "no class 'round'"),
        ((model, "flat"), {"n": 0}, "at least 1"),
        ((model, "flat", tall), {}, "None of the 10 images is classified as 'flat'"),
        ((bow, "flat", images), {}, "whole image"),
    ):
        with pytest.raises(ValueError, match=message):
            region_models(*given, **options)


def test_labelled_regions_over_an_image_keep_its_shape():
    table = np.array([[0, 0, 3], [0, 3, 3]])
    ax = labelled_regions(np.zeros((40, 90), np.uint8), table)
    assert [tuple(picture.get_extent()) for picture in ax.images] == [(0, 90, 40, 0)] * 2
    segments = {tuple(map(tuple, np.asarray(s))) for s in ax.collections[0].get_segments()}
    assert segments == {((60.0, 0.0), (60.0, 20.0)), ((30.0, 20.0), (30.0, 40.0)), ((30.0, 20.0), (60.0, 20.0))}
    assert [text.get_text() for text in ax.texts] == ["0", "0", "3", "0", "3", "3"]


def test_confusion_is_in_per_cent_of_the_true_class():
    true, answered = ["a"] * 4 + ["b"], ["a", "a", "a", "b", "c"]
    ax = confusion(true, answered)
    drawn = ax.images[0].get_array()
    assert np.allclose(drawn, [[75, 25, 0], [0, 0, 100], [0, 0, 0]])  # nothing was of class c
    assert [t.get_text() for t in ax.texts if t.get_visible()] == ["75", "25", "100"]
    assert ax.get_title() == "mean of the diagonal: 37.5 %"
    assert confusion(true, answered, name="SBoW").get_title() == "SBoW (37.5)"
    turned = confusion(true, answered, classes=["c", "b", "a"])
    assert [t.get_text() for t in turned.get_xticklabels()] == ["c", "b", "a"]
    assert np.allclose(turned.images[0].get_array()[::-1, ::-1], drawn)
    with pytest.raises(ValueError, match="c is missing"):
        confusion(true, answered, classes=["a", "b"])
