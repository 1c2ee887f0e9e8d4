"""Dense SIFT, visual words and histograms of regions."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from compiled import equals_its_source

from maxmargin.vision.features.maps import square_root
from maxmargin.vision.features.sift import DenseSIFT
from maxmargin.vision.features.words import WordHistograms, learn_words, nearest_words
from maxmargin.vision.kernels import sift as kernels


def noise(seed=0, shape=(40, 52)):
    """Smooth noise: all directions occur, and neighbouring pixels are alike as in photographs."""
    coarse = np.random.default_rng(seed).normal(size=shape)
    smooth = sum(np.roll(coarse, (i, j), (0, 1)) for i in range(3) for j in range(3))
    return np.clip(128 + 25 * smooth, 0, 255).astype(np.uint8)


def by_definition(image, cell, left, top):
    """The 128 mean gradients of one patch, straight from the formula, in float64."""
    padded = np.pad(image.astype(float), 1, mode="edge")
    gx = 0.5 * (padded[1:-1, 2:] - padded[1:-1, :-2])
    gy = 0.5 * (padded[2:, 1:-1] - padded[:-2, 1:-1])
    angle = np.arctan2(gy, gx) % (2 * np.pi) * 4 / np.pi
    yy, xx = np.mgrid[: image.shape[0], : image.shape[1]] + 0.5
    out = np.zeros((4, 4, 8))
    for i in range(4):
        for j in range(4):
            u, v = left + (j + 0.5) * cell, top + (i + 0.5) * cell
            window = np.maximum(0, 1 - abs(xx - u) / cell) * np.maximum(0, 1 - abs(yy - v) / cell) / cell**2
            for o in range(8):
                away = abs((angle - o + 4) % 8 - 4)
                out[i, j, o] = (np.hypot(gx, gy) * window * np.maximum(0, 1 - away)).sum()
    return out.ravel()


def finished(c, contrast, clip, root):
    n = np.linalg.norm(c)
    d = np.minimum(c / n, clip)
    d = np.sqrt(d / d.sum()) if root else d / np.linalg.norm(d)
    return min(1, n / contrast) * d if contrast else d


@pytest.mark.parametrize(
    ("step", "scale", "contrast", "root"),
    [(8, 1.0, 0.0, False), (8, 1.0, 50.0, True), (5, 1.5, 3.0, False), (6, 0.75, 1e4, True)],
)
def test_descriptors_are_what_the_formula_says(step, scale, contrast, root):
    image = noise(1, (37, 43))
    sift = DenseSIFT(patch=16, step=step, scales=(scale,), contrast=contrast, root=root)
    found = sift.describe(image)
    side = round(16 * scale)
    assert len(found) == ((43 - side) // step + 1) * ((37 - side) // step + 1)
    for k in range(len(found)):
        c = by_definition(image, side // 4, found.x[k] - side / 2, found.y[k] - side / 2)
        np.testing.assert_allclose(found.values[k], finished(c, contrast, sift.clip, root), atol=2e-4)


def test_patches_lie_within_the_image_and_centres_are_theirs():
    found = DenseSIFT(step=5, scales=(1, 1.5, 2)).describe(noise(2, (33, 47)))
    half = np.repeat([8, 12, 16], [(31 // 5 + 1) * (17 // 5 + 1), (23 // 5 + 1) * (9 // 5 + 1), (15 // 5 + 1) * 1])
    assert len(found) == half.size
    assert (found.x - half >= 0).all() and (found.x + half <= 47).all()
    assert (found.y - half >= 0).all() and (found.y + half <= 33).all()
    assert found.shape == (33, 47)


def test_contrast_of_the_whole_image_does_not_matter_until_it_is_flat():
    image = noise(5)
    faint = 100 + image // 64
    grey = np.full_like(image, 90)
    for root in (False, True):
        sift = DenseSIFT(root=root, contrast=20.0)
        lengths = [np.linalg.norm(sift.describe(i).values, axis=1) for i in (image, faint, grey)]
        np.testing.assert_allclose(lengths[0], 1, atol=1e-5)
        assert (lengths[1] < 0.5).all() and (lengths[1] > 0).all()
        assert (lengths[2] == 0).all()
        np.testing.assert_allclose(
            np.linalg.norm(replace(sift, contrast=0.0).describe(faint).values, axis=1), 1, atol=1e-5
        )


def test_kernels_equal_their_source():
    image = noise(6, (24, 26))
    directions, _ = equals_its_source(kernels.directions, image, rtol=1e-4)
    cells, _ = equals_its_source(kernels.cells, *directions, 4, 2, 1, 2, 10, 9, rtol=1e-4, atol=1e-5)
    equals_its_source(kernels.descriptors, cells, 2, 2, 1.5, 0.2, True, 2, np.empty((4, 128), np.float32), rtol=1e-3)


@pytest.mark.parametrize(
    ("image", "said"),
    [
        (np.zeros((30, 30, 3), np.uint8), "shape .30, 30, 3. of uint8"),
        (np.zeros((30, 30)), "float64"),
        ("photo.jpg", "got str"),
        (np.zeros((15, 90), np.uint8), "90 × 15 pixels, and a patch needs 16 × 16"),
        (np.zeros((0, 0), np.uint8), "0 × 0 pixels"),
    ],
)
def test_images_that_cannot_be_described(image, said):
    with pytest.raises(ValueError, match=said):
        DenseSIFT().describe(image)


def test_a_size_that_does_not_fit_is_left_out():
    image = noise(8, (20, 40))
    both, small = DenseSIFT(scales=(1, 2)).describe(image), DenseSIFT(scales=(1,)).describe(image)
    np.testing.assert_array_equal(both.values, small.values)


@pytest.mark.parametrize(
    "wrong",
    [
        {"patch": 0}, {"patch": 18}, {"patch": 16.0}, {"step": 0}, {"step": True}, {"scales": ()}, {"scales": (1, -1)},
        {"scales": (np.nan,)}, {"contrast": -1}, {"contrast": np.inf}, {"clip": 0}, {"clip": 1.5},
    ],
)  # fmt: skip
def test_wrong_settings_are_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        DenseSIFT(**wrong)


def test_words_are_the_nearest():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(3000, 16)).astype(np.float32)
    vocabulary = learn_words(values, 20)
    words = nearest_words(values, vocabulary)
    assert words.dtype == np.int32
    far = ((values[:, None].astype(float) - vocabulary) ** 2).sum(axis=2)
    assert (far[np.arange(len(values)), words] <= far.min(axis=1) + 1e-4).all()
    # k-means is at rest: words are the means of what they stand for
    means = np.stack([values[words == k].mean(axis=0) for k in range(20)])
    np.testing.assert_allclose(means, vocabulary, atol=0.05)


def test_the_same_seed_gives_the_same_words():
    values = np.random.default_rng(1).normal(size=(500, 8)).astype(np.float32)
    first, second = (learn_words(values, 10, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, learn_words(values, 10, random_state=4))


def test_vocabularies_refuse_what_they_cannot_use():
    values = np.random.default_rng(2).normal(size=(50, 8)).astype(np.float32)
    with pytest.raises(ValueError, match="60 words need as many different descriptors; 50 were given"):
        learn_words(values, 60)
    with pytest.raises(ValueError, match="1 of them different"):
        learn_words(np.zeros((30, 8)), 2)
    with pytest.raises(ValueError, match="5 numbers, and words 8"):
        nearest_words(values[:, :5], values)
    with pytest.raises(ValueError, match="n_words"):
        WordHistograms(n_words=0)
    with pytest.raises(ValueError, match="matrix"):
        WordHistograms().vocabulary_ = np.zeros(5)


@pytest.fixture(scope="module")
def words():
    return WordHistograms(grid=(2, 3), n_words=12, sift=DenseSIFT(step=4)).fit([noise(s) for s in range(6)])


def test_counts_are_those_of_the_regions(words):
    image = noise(9, (41, 55))
    counts = words.histogram(image)
    assert counts.shape == (2, 3, 12) and counts.dtype == np.float32
    found = words.sift.describe(image)
    number = nearest_words(found.values, words.vocabulary_)
    for row in range(2):
        for column in range(3):
            inside = (found.y >= row * 41 / 2) & (found.y < (row + 1) * 41 / 2)
            inside &= (found.x >= column * 55 / 3) & (found.x < (column + 1) * 55 / 3)
            np.testing.assert_array_equal(counts[row, column], np.bincount(number[inside], minlength=12))
    assert counts.sum() == len(found)


def test_regions_without_a_patch_are_zero():
    fine = WordHistograms(grid=9, n_words=4, sift=DenseSIFT(step=4, scales=(1.0,))).fit([noise(s) for s in range(3)])
    counts = fine.histogram(noise(0, (20, 20)))
    assert counts.sum() == 4 and np.isfinite(square_root(counts)).all()


def test_histograms_travel_and_are_told_apart_by_their_settings(words):
    image = noise(10)
    twin = pickle.loads(pickle.dumps(words))
    np.testing.assert_array_equal(twin(image), words(image))
    assert twin.settings() == words.settings()
    json.loads(words.settings())
    rebuilt = WordHistograms(grid=words.grid, n_words=12, sift=words.sift)
    rebuilt.vocabulary_ = words.vocabulary_
    np.testing.assert_array_equal(rebuilt(image), words(image))
    assert rebuilt.settings() == words.settings()
    others = {words.settings()}
    for change in ({"grid": 2}, {"sift": DenseSIFT(step=4, root=True)}, {"sift": DenseSIFT(step=4, contrast=2.0)}):
        other = WordHistograms(**{"grid": words.grid, "sift": words.sift, **change}, n_words=12)
        other.vocabulary_ = words.vocabulary_
        others.add(other.settings())
    rebuilt.vocabulary_ = words.vocabulary_ + np.float32(1e-6)
    others.add(rebuilt.settings())
    assert len(others) == 5


def test_wrong_histograms_are_refused(words):
    with pytest.raises(AttributeError, match="call fit"):
        WordHistograms().histogram(noise(0))
    with pytest.raises(ValueError, match="n_words is 5, and the vocabulary has 12"):
        WordHistograms(n_words=5).vocabulary_ = words.vocabulary_
    for ask, message in (
        (lambda: WordHistograms().fit([]), "none were given"),
        (lambda: WordHistograms(n_words=500).fit([noise(0)]), "need as many different descriptors"),
        *((lambda grid=grid: WordHistograms(grid=grid), "grid") for grid in (0, (2, 0), (1, 2, 3), 2.0, True)),
        (lambda: WordHistograms(n_sampled=0), "n_sampled"),
        (lambda: WordHistograms(random_state=-1), "random_state"),
    ):
        with pytest.raises(ValueError, match=message):
            ask()
