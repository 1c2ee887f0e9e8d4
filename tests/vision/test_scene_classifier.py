"""SceneClassifier as users meet it: folders, files, images and features in; classes, parts and certificates out."""

import pickle
import re
import signal
import warnings
from itertools import pairwise, product

import numpy as np
import pytest
from quietly import quiet
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import KFold, cross_val_score
from thinned import rotating

import maxmargin as mm
from maxmargin.checkpoint import CheckpointError
from maxmargin.vision import ImageError, SceneClassifier, WordHistograms

KINDS = ("bow", "sbow", "rbow", "rbow+", "rbow++")
LATENT = KINDS[2:]
DISCRIMINATIVE = [(kind, "discriminative") for kind in KINDS]
GENERATIVE = [(kind, "generative") for kind in KINDS[:3]]
NAMES = np.array(["checks", "slats", "waves"])


def texture(kind, seed, color=False, size=64):
    """A grey image of one of three textures with a band of noise somewhere: a thing that is not always in one place."""
    rng = np.random.default_rng([seed, kind])
    y, x = np.mgrid[:size, :size] + rng.integers(0, 8, 2)[:, None, None]
    waves = [np.sin(x / 2.0) * np.sin(y / 2.0), np.sin(x / 1.5), np.sin(y / 1.5)][kind]
    image = 128 + 90 * waves + 10 * rng.normal(size=(size, size))
    top = int(rng.integers(0, size - 16))
    image[top : top + 16] = 128 + 60 * rng.normal(size=(16, size))
    image = np.clip(image, 0, 255).astype(np.uint8)
    return np.stack([image, image, image], axis=2) if color else image


def textures(n=12, first=0, color=False):
    label = np.arange(n) % 3
    return np.array([texture(k, first + i, color) for i, k in enumerate(label)]), NAMES[label]


def counted(rng, n=18, grid=(2, 2), n_words=6, most=15):
    """Counts of words: each class has two kinds of regions, arranged anew in each image."""
    label = np.arange(n) % 3
    looks = rng.dirichlet(np.full(n_words, 0.5), (3, 2))
    z = rng.integers(0, 2, (n, *grid))
    return rng.multinomial(most, looks[label[:, None, None], z]).astype(np.float32), NAMES[label]


def measured(rng, n=18, grid=(2, 2), d=5, noise=0.5):
    """The same with features of any sign."""
    label = np.arange(n) % 3
    looks = rng.normal(size=(3, 2, d))
    z = rng.integers(0, 2, (n, *grid))
    return (looks[label[:, None, None], z] + noise * rng.normal(size=(n, *grid, d))).astype(np.float32), NAMES[label]


def small(kind="rbow", training="discriminative", **more):
    """A classifier that is quick on the data of these tests."""
    return SceneClassifier(
        kind, training, **{"n_parts": 2, "grid": 2, "n_words": 8, "C": 2.0, "random_state": 0, **more}
    )


@pytest.fixture
def counts(rng):
    return counted(rng)


@pytest.fixture
def measures(rng):
    return measured(rng)


@pytest.fixture(scope="module")
def pictures():
    return textures()


@pytest.fixture(scope="module")
def folder(pictures, tmp_path_factory):
    """The same pictures as files, one sub-folder for each class."""
    Image = pytest.importorskip("PIL.Image")
    root = tmp_path_factory.mktemp("scenes")
    for i, (image, name) in enumerate(zip(*pictures, strict=True)):
        (root / name).mkdir(exist_ok=True)
        Image.fromarray(image).save(root / name / f"{i:02}.png")
    return root


def files(folder, pictures):
    """The files in the order of the pictures."""
    return [str(folder / name / f"{i:02}.png") for i, name in enumerate(pictures[1])]


# Every kind, both ways of training.


@pytest.mark.rounding
@pytest.mark.parametrize(("what", "parts"), rotating(DISCRIMINATIVE + GENERATIVE, ["separate", "shared"]))
def test_every_kind_learns_classes_and_parts(what, parts, counts):
    (kind, training), (X, y) = what, counts
    model = quiet(small(kind, training, parts=parts), X, y)
    assert model.classes_.tolist() == NAMES.tolist()
    scores = model.decision_function(X)
    assert scores.shape == (len(X), 3)
    np.testing.assert_array_equal(model.predict(X), NAMES[scores.argmax(axis=1)])
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    assert model.score(X, y) > 0.6
    models = model.region_models_
    n_parts = {"bow": 1, "sbow": 4}.get(kind, 2)
    grid = (1, 1) if kind == "bow" else (2, 2)
    assert models.appearance.shape == (3, n_parts, 6)
    assert models.preference.shape == (3, *grid, n_parts)
    assert (models.horizontal is not None) == (kind in ("rbow+", "rbow++"))
    assert len(models.of("waves")) == 1
    with pytest.raises(ValueError, match="There is no class 'beach'"):
        models.of("beach")
    if kind == "bow":
        with pytest.raises(ValueError, match="no regions to label"):
            model.predict_regions(X)
        return
    z = model.predict_regions(X)
    assert z.shape == (len(X), 2, 2)
    assert z.min() >= 0
    assert z.max() < n_parts
    np.testing.assert_array_equal(model.predict_regions(X, model.predict(X)), z)
    if kind in LATENT and parts == "shared":
        np.testing.assert_array_equal(models.appearance[0], models.appearance[1])


@pytest.mark.parametrize(("kind", "center"), rotating(KINDS, [False, "auto", True], times=2))
def test_scores_are_those_of_the_region_models(kind, center, measures):
    """What is shown is what is used: scores and parts by trying every arrangement of the tables that users see."""
    X, y = measures
    model = quiet(small(kind, center=center), X, y)
    assert (model.mean_ is None) == (center is False)
    x = model.transform(X)
    if center is not False:
        np.testing.assert_allclose(x.mean(axis=(0, 1, 2)), 0.0, atol=1e-5)
    models = model.region_models_
    R = models.preference.shape[1] * models.preference.shape[2]
    M = models.appearance.shape[1]
    x, A = x.reshape(len(X), R, -1), models.preference.reshape(3, R, M)
    scores = model.decision_function(X)
    if kind in ("bow", "sbow"):
        expected = np.einsum("nrd,krd->nk", x, models.appearance) + model.learner_.intercept_
        np.testing.assert_allclose(scores, expected, atol=1e-4)
        return
    every = np.array(list(product(range(M), repeat=R)))
    table = np.einsum("nrd,kjd->nkrj", x, models.appearance) + A
    total = table[:, :, np.arange(R), every].sum(axis=-1)  # (n, classes, arrangements)
    if models.horizontal is not None:
        z = every.reshape(-1, 2, 2)
        beside, above = z[:, :, 0], z[:, 0]
        total += models.horizontal[:, beside, z[:, :, 1]].sum(axis=-1) + models.vertical[:, above, z[:, 1]].sum(axis=-1)
    np.testing.assert_allclose(scores, total.max(axis=2), atol=1e-4)
    label = np.searchsorted(NAMES, y)
    parts = model.predict_regions(X, y).reshape(len(X), -1)
    number = np.ravel_multi_index(tuple(parts.T), (M,) * R)  # ``product`` counts the last region fastest
    mine = total[np.arange(len(X)), label]
    np.testing.assert_allclose(mine[np.arange(len(X)), number], mine.max(axis=1), atol=1e-4)


@pytest.mark.parametrize("kind", ["bow", "sbow"])
def test_two_classes_have_region_models_too(kind, measures):
    X, y = measures[0], np.where(measures[1] == "waves", "waves", "others")
    model = quiet(small(kind), X, y)
    scores, appearance = model.decision_function(X), model.region_models_.appearance
    assert appearance.shape == (2, 1 if kind == "bow" else 4, 5)
    x = model.transform(X).reshape(len(X), -1, 5)
    weights = appearance - appearance.mean(axis=0)
    np.testing.assert_allclose(
        scores[:, 1] - scores[:, 0],
        2 * np.einsum("nrd,rd->n", x, weights[1]) + model.learner_.intercept_,
        atol=1e-5,
    )


@pytest.mark.parametrize("kind", ["bow", "sbow"])
def test_generative_scores_are_linear_in_the_words_and_settings_arrive(kind, counts):
    """(2.5)–(2.7), through the classifier: w_y·[x; 1] with the logarithms of the frequencies."""
    X, y = counts
    model = small(kind, "generative", feature_map="none", smoothing=0.3, temperature=2.5).fit(X, y)
    words = X.reshape(len(X), -1, 6).sum(axis=1) if kind == "bow" else X.reshape(len(X), -1)
    label = np.searchsorted(NAMES, y)
    frequency = np.array([words[label == k].sum(axis=0) for k in range(3)]).reshape(3, -1, 6) + 0.3
    theta = np.log(frequency / frequency.sum(axis=2, keepdims=True)).reshape(3, -1)
    prior = np.log(np.bincount(label) / len(label))
    np.testing.assert_allclose(model.decision_function(X), words @ theta.T / 2.5 + prior, rtol=1e-5)
    np.testing.assert_allclose(model.region_models_.appearance.reshape(3, -1), theta, rtol=1e-6)
    assert model.history_ == []
    for ask in (lambda: model.certificate_, lambda: model.certify(X, y)):
        with pytest.raises(AttributeError, match="no certificate"):
            ask()


@pytest.mark.parametrize("kind", KINDS)
def test_certificates_are_true_and_computed_anew(kind, measures):
    X, y = measures
    model = small(kind, tol=1e-4, bound_tol=1e-4, max_passes=5000).fit(X, y)
    certificate = model.certificate_
    assert certificate.exact
    assert certificate.lower <= certificate.upper
    assert certificate.relative_gap <= 1e-4
    assert model.learner_.C * (1 if kind == "bow" else 4) == pytest.approx(2.0)  # C is for each region
    again = model.certify(X, y)
    assert again.exact
    assert again.lower == pytest.approx(certificate.lower, rel=1e-5)
    assert again.upper <= certificate.upper * (1 + 1e-6)
    if kind in LATENT:
        assert all(b.bound <= a.bound * (1 + 1e-9) for a, b in pairwise(model.history_))
        assert model.learner_.objective_ <= certificate.upper * (1 + 1e-9)


@pytest.mark.parametrize(("kind", "bound"), rotating(LATENT, ["cccp", "gmm", "coherent"], times=2))
def test_bounds_of_every_kind(kind, bound, measures, tmp_path):
    X, y = measures
    model = quiet(small(kind, bound=bound, init="random", max_bounds=15), X, y)
    assert all(after.bound <= before.bound * (1 + 1e-9) for before, after in pairwise(model.history_))
    assert model.learner_.objective_ <= min(r.bound for r in model.history_) * (1 + 1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the setting has a name, and files keep it
        model.save(tmp_path / "model.safetensors")
    assert mm.load(tmp_path / "model.safetensors").bound == bound


@pytest.mark.rounding
@pytest.mark.parametrize(
    ("init", "parts"), rotating(["auto", "em", "kmeans", "fixed", "random"], ["separate", "shared"])
)
def test_every_start_leads_somewhere(init, parts, counts):
    X, y = counts
    model = quiet(small(init=init, parts=parts), X, y)
    assert model.certificate_.lower <= model.certificate_.upper
    assert model.score(X, y) > 0.6


def test_parts_that_are_given_come_first(measures, rng):
    X, y = measures
    Z = rng.integers(0, 2, (len(X), 2, 2))
    given, flat, other = (quiet(small(max_bounds=1, init=init), X, y, z) for init, z in
                          (("random", Z), ("kmeans", Z.reshape(len(X), -1)), ("random", 1 - Z[::-1])))  # fmt: skip
    np.testing.assert_array_equal(np.array(given.learner_.latent_), np.array(flat.learner_.latent_))
    np.testing.assert_array_equal(given.learner_.coef_, flat.learner_.coef_)
    assert not np.array_equal(given.learner_.coef_, other.learner_.coef_)


# What is given: folders, files, images, features.


@pytest.mark.rounding
@pytest.mark.parametrize(
    ("kind", "training"), [("sbow", "discriminative"), ("rbow", "discriminative"), *GENERATIVE[2:]]
)
def test_folders_files_and_images_are_the_same_pictures(kind, training, pictures, folder):
    images, y = pictures
    paths = files(folder, pictures)
    expected = quiet(small(kind, training), images, y)
    scores = expected.decision_function(images)
    assert expected.score(images, y) > 0.6
    color = np.stack([images] * 3, axis=3)
    for X, labels in ((paths, y), (list(color), list(y))):
        model = quiet(small(kind, training), X, labels)
        np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-6)
    for X in (np.array(paths), list(images), color):
        np.testing.assert_allclose(expected.decision_function(X), scores, rtol=1e-6)
    order = np.argsort(y, kind="stable")  # a folder lists its classes one after the other
    from_folder = quiet(small(kind, training), folder)
    assert from_folder.classes_.tolist() == NAMES.tolist()
    np.testing.assert_array_equal(from_folder.extractor_.vocabulary_.shape, expected.extractor_.vocabulary_.shape)
    assert from_folder.score(folder) == np.mean(from_folder.predict(np.array(paths)[order].tolist()) == y[order])
    np.testing.assert_array_equal(from_folder.predict(folder), from_folder.predict(images[order]))
    assert from_folder.predict(str(folder / "waves")).shape == (4,)


@pytest.mark.parametrize(("kind", "training"), [("bow", "discriminative"), ("rbow+", "discriminative"), *GENERATIVE])
def test_features_may_be_an_array_or_a_list(kind, training, counts):
    X, y = counts
    expected = quiet(small(kind, training), X, y)
    for given in (list(X), X.astype(np.uint16), X.astype(np.float64), [x.astype(int) for x in X]):
        model = quiet(small(kind, training), given, y.tolist())
        np.testing.assert_allclose(model.decision_function(given), expected.decision_function(X), rtol=1e-6)


class Means:
    """Features of the user's: mean and spread of each quarter of the image."""

    color = True

    def __call__(self, image):
        quarters = image.astype(float).reshape(2, 32, 2, 32, 3)
        return np.concatenate([quarters.mean(axis=(1, 3)), quarters.std(axis=(1, 3))], axis=2)

    def settings(self):
        return "means"


def test_features_of_ones_own(pictures):
    images, y = pictures
    features = Means()
    model = quiet(small("sbow", features=features), images, y)
    assert model.extractor_ is features
    assert model.transform(images).shape == (12, 2, 2, 6)
    assert model.grid_ == (2, 2)
    with pytest.raises(ValueError, match="must be 'words', 'cnn' or have settings"):
        small(features=lambda image: image).fit(images, y)
    with pytest.raises(ValueError, match="features must be one of"):
        small(features="hog").fit(images, y)


class Flat(Means):
    def __call__(self, image):
        return super().__call__(image).ravel()


class Blind(Means):
    """Gives no number for images that are bright in one corner."""

    def __call__(self, image):
        found = super().__call__(image)
        return found if image[0, 0, 0] != 255 else found * np.nan


def test_features_that_cannot_be_used_are_named(pictures):
    images, y = pictures[0].copy(), pictures[1]
    with pytest.raises(ValueError, match=r"rows, columns, features.*got.*\(12, 24\)"):
        small("sbow", features=Flat()).fit(images, y)
    images[:, 0, 0] = 0
    model = quiet(small("sbow", features=Blind()), images, y)
    images[4, 0, 0] = 255
    for ask in (lambda: small("rbow", features=Blind()).fit(images, y), lambda: model.predict(images)):
        with pytest.raises(ValueError, match="image 4 are not finite"):
            ask()


def test_a_cache_changes_nothing_and_is_used(pictures, tmp_path, monkeypatch):
    images, y = pictures
    for kind, training in (("rbow", "discriminative"), ("sbow", "discriminative"), ("rbow", "generative")):
        expected = quiet(small(kind, training), images, y)
        cached = quiet(small(kind, training, cache=tmp_path), images, y)
        np.testing.assert_allclose(cached.decision_function(images), expected.decision_function(images), rtol=1e-6)
        assert isinstance(cached.transform(images), np.memmap)
    with monkeypatch.context() as patched:
        patched.setattr(WordHistograms, "__call__", lambda self, image: 1 / 0)
        again = quiet(small("rbow", cache=tmp_path), images, y)  # nothing is computed twice
    np.testing.assert_array_equal(again.predict(images), quiet(small("rbow"), images, y).predict(images))
    pickle.loads(pickle.dumps(cached))


# Broken files.


@pytest.fixture
def broken(pictures, folder, tmp_path):
    """Files of which one in the middle is none, and the labels of all."""
    paths = files(folder, pictures)
    (tmp_path / "broken.png").write_bytes(b"no image")
    paths.insert(5, str(tmp_path / "broken.png"))
    return paths, np.insert(pictures[1], 5, "slats")


@pytest.mark.parametrize(
    ("kind", "training"), [("sbow", "discriminative"), ("rbow", "discriminative"), *GENERATIVE[2:]]
)
def test_broken_files_are_left_out_with_their_labels(kind, training, broken, pictures, rng):
    paths, y = broken
    keep = np.arange(13) != 5
    more, kept = {}, {}
    if training == "discriminative":
        weight = rng.uniform(0.5, 2.0, 13)
        Z = rng.integers(0, 2, (13, 2, 2))
        more, kept = {"sample_weight": weight}, {"sample_weight": weight[keep]}
        if kind in LATENT:
            more["Z"], kept["Z"] = Z, Z[keep]
    settings = {"kind": kind, "training": training, "features": WordHistograms(2, 8, n_sampled=100_000)}
    with pytest.warns(UserWarning, match=r"1 of 13 images cannot be used:\n.*broken\.png"):
        model = quiet(small(**settings, on_error="skip"), paths, y, **more)
    expected = quiet(small(**settings), pictures[0], pictures[1], **kept)
    np.testing.assert_allclose(model.decision_function(pictures[0]), expected.decision_function(pictures[0]), rtol=1e-5)
    if training == "discriminative":
        with pytest.warns(UserWarning, match="1 of 13 images"):
            again = model.certify(paths, y, more["sample_weight"])
        assert again.lower == pytest.approx(model.certificate_.lower, rel=1e-4)


def test_broken_files_are_an_error_unless_they_may_be_skipped(broken, pictures):
    paths, y = broken
    with pytest.raises(ImageError, match=r"1 of 13 images cannot be used:\n.*broken\.png"):
        small().fit(paths, y)
    with pytest.raises(ImageError, match=r"broken\.png"):  # predictions are one for each image
        quiet(small("sbow", on_error="skip"), *pictures).predict(paths)


# scikit-learn, weights, files.


def test_parameters_are_those_of_scikit_learn(counts):
    X, y = counts
    model = small("rbow+", bound="gmm", eta=0.3, temperature=3.0)
    params = model.get_params()
    assert SceneClassifier(**params).get_params() == params
    assert quiet(model, X, y) is model
    unfitted = clone(model)
    assert unfitted.get_params() == model.get_params() == params
    for ask in (lambda: unfitted.predict(X), lambda: unfitted.save("nowhere")):
        with pytest.raises(NotFittedError):
            ask()
    found = cross_val_score(small("sbow"), X, y, cv=KFold(2))
    expected = [small("sbow").fit(X[a], y[a]).score(X[b], y[b]) for a, b in KFold(2).split(X)]
    assert found.tolist() == expected


@pytest.mark.parametrize("kind", ["sbow", "rbow"])
def test_weights_count_images(kind, measures, rng):
    """An image of weight 2 is as good as two of them, one of weight 0 as good as none."""
    X, y = measures
    weight = rng.integers(0, 3, len(X))
    weight[:3] = 1
    often = np.repeat(np.arange(len(X)), weight)
    Z = rng.integers(0, 2, (len(X), 2, 2))
    common = {"center": False, "tol": 1e-6, "bound_tol": 1e-6, "max_passes": 20_000}
    weighed = quiet(small(kind, **common), X, y, Z if kind in LATENT else None, weight)
    if kind == "sbow":
        repeated = quiet(small(kind, **common), X[often], y[often])
        assert weighed.certificate_.upper == pytest.approx(repeated.certificate_.upper, rel=1e-4)
    else:  # not convex: a small difference on the way may lead elsewhere
        value = weighed.learner_.objective(weighed.transform(X[often]), np.searchsorted(NAMES, y[often]))
        assert weighed.learner_.objective_ == pytest.approx(value, rel=1e-6)
    assert weighed.certify(X, y, weight).lower == pytest.approx(weighed.certificate_.lower, rel=1e-4)


@pytest.mark.parametrize("kind", ["rbow", "rbow++"])
def test_fits_go_on_from_a_checkpoint(kind, counts, tmp_path):
    X, y = counts
    settings = {"init": "random", "bound": "gmm", "eta": 0.05, "tol": 1e-3, "bound_tol": 1e-3, "C": 5.0}
    with pytest.warns(ConvergenceWarning, match="was told to stop"):
        stopped = small(kind, **settings).fit(X, y, checkpoint=tmp_path, callbacks=[lambda record: record.number >= 2])
    assert len(stopped.history_) == 2
    resumed = quiet(small(kind, **settings), X, y, checkpoint=tmp_path)
    assert resumed.history_[:2] == stopped.history_
    assert len(resumed.history_) > 2
    assert resumed.learner_.objective_ <= stopped.learner_.objective_ * (1 + 1e-9)
    with pytest.raises(CheckpointError):
        small(kind, **settings | {"C": 1.0}).fit(X, y, checkpoint=tmp_path)


def test_a_fit_that_fails_or_is_interrupted_early_leaves_everything_as_it_was(counts, pictures, monkeypatch):
    X, y = counts
    model = quiet(small(features=Means()), X, y)
    before, scores = dict(vars(model)), model.decision_function(X)

    def fail(record):
        raise RuntimeError("the disk is on fire")

    with pytest.raises(RuntimeError, match="on fire"):
        model.fit(X[:9], y[:9], callbacks=[fail])
    with pytest.raises(ValueError, match="at least 2 classes"):
        model.fit(pictures[0], ["a"] * 12)
    monkeypatch.setattr(Means, "__call__", lambda self, image: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):  # while images are described
        model.fit(*pictures)
    assert vars(model) == before
    np.testing.assert_array_equal(model.decision_function(X), scores)
    unfitted = small()
    with pytest.raises(RuntimeError, match="on fire"):
        unfitted.fit(X, y, callbacks=[fail])
    with pytest.raises(NotFittedError):
        unfitted.predict(X)


# What cannot be.


def of(**changes):
    """Labels, weights or parts for 18 images, one of them as given."""
    return {"y": NAMES[np.arange(18) % 3], **changes}


GIVEN = {"training": "generative"}


@pytest.mark.parametrize(
    ("settings", "given", "message"),
    [
        ({"kind": "rbow+", **GIVEN}, of(), "kind='rbow\\+' has no generative training"),
        ({"parts": "own"}, of(), "parts must be one of"),
        ({"feature_map": "log"}, of(), "feature_map must be one of"),
        ({"feature_map": "l2", **GIVEN}, of(), "feature_map of generative models must be one of"),
        ({"center": "yes"}, of(), "center must be 'auto', True or False, got 'yes'"),
        ({"n_parts": 0}, of(), "n_parts"),
        ({"smoothing": 0.0, **GIVEN}, of(), "smoothing must be greater than 0"),
        ({}, of(y=np.stack([NAMES[np.arange(18) % 3]] * 2)), r"y has shape \(2, 18\)"),
        ({}, of(y=np.arange(18) + 0.5), "which is no class label"),
        ({}, of(y=[*"ab" * 8, "a", 3]), "y mixes text and other labels"),
        ({}, of(y=[*"ab" * 8, "a", None]), r"y\[17\] is None"),
        ({}, of(Z=np.zeros((18, 2, 3), int)), r"shape \(18, 2, 2\); got int64 of shape \(18, 2, 3\)"),
        (GIVEN, of(Z=np.zeros((17, 2, 2), int)), r"shape \(18, 2, 2\); got int64 of shape \(17, 2, 2\)"),
        ({}, of(Z=np.zeros((18, 2, 2))), "Z must be whole numbers"),
        (GIVEN, of(Z=np.full((18, 2, 2), 2)), "Z has parts from 2 to 2, n_parts=2 counts from 0"),
        ({}, of(Z=[[0, 1], [1]]), "Z must be whole numbers"),
        ({"kind": "sbow"}, of(sample_weight=np.ones(17)), "sample_weight"),
        ({"kind": "rbow"}, of(sample_weight=np.full(18, -1.0)), "must not be negative"),
        ({"kind": "sbow"}, of(sample_weight=np.zeros(18)), "sample_weight are zero"),
        ({"kind": "sbow", **GIVEN}, of(sample_weight=np.ones(18)), "sample_weight is for discriminative training"),
    ],
)
def test_settings_labels_parts_and_weights_that_cannot_be(settings, given, message, counts):
    with pytest.raises(ValueError, match=message):
        small(**settings).fit(counts[0], **given)


def test_weights_of_other_images_are_refused_later_too(counts):
    model = quiet(small("sbow"), *counts)
    for ask in (model.certify, model.score):
        with pytest.raises(ValueError, match="sample_weight"):
            ask(*counts, np.ones(17))


def test_a_folder_brings_its_labels(folder, tmp_path):
    with pytest.raises(ValueError, match="A folder of images brings its labels"):
        small().fit(folder, ["a"])
    with pytest.raises(ImageError, match="one sub-folder per class"):
        small().fit(tmp_path)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([], "must be a folder, a list of files or of images, or an array; got []"),
        (7, "must be a folder, a list of files or of images, or an array; got 7"),
        (np.zeros((6, 8, 8)), "Images are arrays of unsigned bytes"),
        (np.zeros((0, 2, 2, 3)), "must be a folder, a list of files or of images, or an array"),
        (np.zeros((6, 2, 0, 3)), "(6, 2, 0, 3)"),
        (np.full((6, 2, 2, 3), "a"), "must be numbers"),
        ([np.zeros((2, 2, 3))] * 5 + [np.zeros((2, 3, 3))], "must have the same shape in all images"),
    ],
)
def test_inputs_that_cannot_be(X, message):
    y = list("ababab")[: len(X) if hasattr(X, "__len__") else 6]
    with pytest.raises(ValueError, match=re.escape(message)):
        small("sbow").fit(X, y)


@pytest.mark.parametrize(("training", "value"), [("discriminative", np.inf), ("generative", np.nan)])
def test_numbers_that_are_not_finite_are_named(training, value, counts):
    X, y = counts[0].copy(), counts[1]
    X[7, 1, 0, 2] = value
    with pytest.raises(ValueError, match="image 7 are not finite"):
        small("rbow", training).fit(X, y)


def test_negative_numbers_are_no_counts(measures):
    for settings, message in (
        ({"kind": "bow", "training": "generative"}, "counts"),
        ({"kind": "rbow", "training": "generative", "feature_map": "none"}, "Use training='discriminative'"),
        ({"init": "em"}, r"init='em' is for counts of words.* Use init='kmeans'"),
    ):
        with pytest.raises(ValueError, match=message):
            small(**settings).fit(*measures)


@pytest.mark.parametrize(
    ("kind", "training", "center"),
    [("bow", "discriminative", True), ("rbow++", "discriminative", False), ("sbow", "generative", False)],
)
def test_regions_of_another_shape_are_refused(kind, training, center, counts):
    X, y = counts
    model = quiet(small(kind, training, center=center), X, y)
    for other in (X[..., :4], X[:, :1], X[:, :, [0, 1, 1]]):
        for ask in (model.predict, model.transform, lambda other: model.score(other, y)):
            with pytest.raises(ValueError, match=r"trained on regions of shape \(2, 2, 6\), got "):
                ask(other)


def test_images_need_a_model_that_has_seen_images(counts, pictures):
    model = quiet(small("sbow"), *counts)
    for ask in (lambda: model.predict(pictures[0]), lambda: model.certify(*pictures)):
        with pytest.raises(ValueError, match="trained on features of regions"):
            ask()


def test_classes_that_were_not_learned_are_named(counts):
    X, y = counts
    model = quiet(small(), X, y)
    other = np.where(np.arange(18) == 3, "beach", y.astype(object))
    for ask in (lambda: model.certify(X, other), lambda: model.predict_regions(X, other)):
        with pytest.raises(ValueError, match=r"classes that were not there in fit: \['beach'\]"):
            ask()
    with pytest.raises(ValueError, match="one entry for each image is needed"):
        model.predict_regions(X, y[:3])


@pytest.mark.parametrize("labels", [np.arange(18) % 3 - 1, np.arange(18) % 2 == 0, np.array([2.0, 7.0] * 9)])
def test_labels_of_any_kind_come_back(labels, counts):
    model = quiet(small("sbow"), counts[0], labels)
    assert model.classes_.dtype == labels.dtype
    assert model.decision_function(counts[0]).shape == (18, np.unique(labels).size)
    assert set(model.predict(counts[0]).tolist()) <= set(labels.tolist())


# What once went wrong.


def test_a_class_of_which_nothing_can_be_read_is_named(pictures):
    with pytest.raises(ValueError, match="class lost"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        SceneClassifier("sbow", grid=2, n_words=8, on_error="skip").fit(
            [*pictures[0], "nowhere.png"], [*pictures[1], "lost"]
        )


def test_settings_are_not_learned_in(pictures):
    """What users hand over stays as it was, so that a clone knows nothing of the fit."""
    words = WordHistograms(2, 8)
    model = quiet(small(features=words), *pictures)
    assert not hasattr(words, "vocabulary_") and not hasattr(clone(model).features, "vocabulary_")
    assert hasattr(model.extractor_, "vocabulary_")


def test_words_that_were_learned_are_used_as_they_are(pictures):
    words = WordHistograms(2, 8, n_sampled=2000).fit(pictures[0])
    model = quiet(SceneClassifier("sbow", features=words), *pictures)
    np.testing.assert_array_equal(model.extractor_.vocabulary_, words.vocabulary_)
