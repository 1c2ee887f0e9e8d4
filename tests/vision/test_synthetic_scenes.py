"""Synthetic scenes: every layout keeps its rules, and the simple models confuse exactly the classes they should."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from maxmargin.vision import synthetic
from maxmargin.vision.synthetic import HORSE, MOON, PERSON, ROCK, SAND, SEA, SKY, STAR, VEGETATION, scenes

GROUPS = (("noise", "beach", "shore"), ("desert1", "desert2"), ("field", "riding"))


@pytest.fixture(scope="module")
def train():
    return scenes(60, random_state=0)


@pytest.fixture(scope="module")
def test():
    return scenes(60, random_state=1)


def layouts(name, n, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([synthetic.LAYOUTS[name](rng) for _ in range(n)])


def test_shapes_kinds_and_that_the_seed_alone_decides(train):
    n = len(train)
    assert train.X.shape == (n, 32, 32, synthetic.N_WORDS) and train.X.dtype == np.uint16
    assert train.regions.shape == (n, 32, 32) and train.regions.dtype == np.int8
    assert n == 420 and train.words.shape == (len(train.parts), synthetic.N_WORDS)
    assert (train.X.sum(axis=3) == 1000).all()
    names, counts = np.unique(train.y, return_counts=True)
    assert set(names) == set(synthetic.LAYOUTS) and (counts == 60).all()
    first, again, other = (scenes(3, random_state=seed) for seed in (0, np.random.default_rng(0), 1))
    assert np.array_equal(again.X, first.X) and np.array_equal(again.y, first.y)
    assert not np.array_equal(other.regions, first.regions) and not np.array_equal(other.y, first.y)


def test_words_have_one_peak_each_and_sand_is_between_rock_and_vegetation(train):
    words = train.words
    assert np.allclose(words.sum(axis=1), 1.0)
    others = [part for part in range(8) if part != SAND]
    assert len(set(words[others].argmax(axis=1))) == len(others)
    assert np.ptp(np.sort(words[others], axis=1)[:, :-1], axis=1) == pytest.approx(0, abs=1e-15)
    assert np.allclose(words[SAND], (words[ROCK] + words[VEGETATION]) / 2)


def test_words_are_drawn_from_the_part_of_the_region(train):
    for part in range(8):
        counts = train.X[train.regions == part].sum(axis=0, dtype=np.int64)
        expected = counts.sum() * train.words[part]
        assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


@pytest.mark.parametrize("name", ["beach", "shore"])
def test_beach_and_shore_have_sky_sea_and_land_from_top_to_bottom(name):
    images = layouts(name, 200)
    rank = np.select([images == SKY, images == SEA], [0, 1], 2)
    assert (np.diff(rank, axis=1) >= 0).all()
    for kind in range(3):
        assert (rank == kind).any(axis=1).all()  # in every column
    horizon = (rank == 0).sum(axis=1) - 1
    assert (horizon == horizon[:, :1]).all()
    assert set(horizon[:, 0]) == set(range(8, 19))
    shoreline = (rank <= 1).sum(axis=1)
    assert (np.ptp(shoreline, axis=1) > 0).mean() > 0.9  # curved


def test_land_is_sand_on_a_beach_and_rock_or_vegetation_on_a_shore():
    assert set(np.unique(layouts("beach", 50))) == {SKY, SEA, SAND}
    kinds = [tuple(sorted(set(np.unique(image)) - {SKY, SEA})) for image in layouts("shore", 50)]
    assert set(kinds) == {(ROCK,), (VEGETATION,)}


def test_noise_has_the_part_frequencies_of_beaches_and_no_layout():
    noise, beach = layouts("noise", 1500), layouts("beach", 1500, seed=1)
    for part in (SKY, SEA, SAND):
        a, b = ((images == part).mean(axis=(1, 2)) for images in (noise, beach))
        assert abs(a.mean() - b.mean()) < 5 * np.sqrt((a.var() + b.var()) / 1500)
        assert a.std() == pytest.approx(b.std(), rel=0.1)
        assert np.ptp((noise == part).mean(axis=(0, 2))) < 0.05  # by row


def test_deserts_have_equally_many_star_regions_in_a_rectangle_or_scattered():
    for name in ("desert1", "desert2"):
        images = layouts(name, 200)
        assert set(np.unique(images)) == {SKY, SAND, STAR}
        assert ((images == STAR).sum(axis=(1, 2)) == MOON[0] * MOON[1]).all()
        assert (np.diff((images == SAND).astype(int), axis=1) >= 0).all()  # nothing but sand below sand
        for image in images:
            rows, columns = (np.ptp(side) + 1 for side in np.nonzero(image == STAR))
            assert (rows, columns) == MOON if name == "desert1" else columns > 2 * MOON[1] + 1


def test_persons_ride_in_riding_and_stand_apart_in_field():
    def on_a_horse(image):
        lowest = (image[:-1] == PERSON) & (image[1:] != PERSON)
        return (image[1:] == HORSE)[lowest]

    assert all(on_a_horse(image).all() for image in layouts("riding", 200))
    assert not any(on_a_horse(image).any() for image in layouts("field", 200))


def test_field_and_riding_differ_in_nothing_but_who_is_where():
    field, riding = layouts("field", 3000), layouts("riding", 3000, seed=1)
    for part in (SKY, VEGETATION, PERSON, HORSE):
        a, b = ((images == part).sum(axis=(1, 2)) for images in (field, riding))
        assert abs(a.mean() - b.mean()) < 4 * np.sqrt((a.var() + b.var()) / 3000)
        assert a.std() == pytest.approx(b.std(), rel=0.1)
        for axis in (1, 2):
            where = [(images == part).mean(axis=(0, axis)) for images in (field, riding)]
            assert where[0] == pytest.approx(where[1], abs=0.02)
    assert {SKY, VEGETATION, PERSON, HORSE} == set(np.unique(field)) == set(np.unique(riding))
    horizon = (field == SKY).sum(axis=(1, 2)) // 32 - 1
    assert set(horizon) == set(range(6, 15))


def share_right(y, predicted, pair):
    """Among images of the classes that were given one of them: the share that got the right one."""
    inside = np.isin(y, pair) & np.isin(predicted, pair)
    return (y == predicted)[inside].mean()


def test_bags_of_words_see_the_groups_and_nothing_else(train, test):
    def bag(data):
        words = data.X.sum(axis=(1, 2), dtype=np.float64)
        return np.sqrt(words / words.sum(axis=1, keepdims=True))

    predicted = LinearSVC(C=10.0, random_state=0).fit(bag(train), train.y).predict(bag(test))
    for group in GROUPS:
        assert np.isin(predicted[np.isin(test.y, group)], group).mean() > 0.93
    for pair in (("noise", "beach"), ("desert1", "desert2"), ("field", "riding")):
        assert 0.33 < share_right(test.y, predicted, pair) < 0.67


def test_bags_by_region_tell_noise_and_confuse_the_pairs(train, test):
    def bags(data):
        return np.sqrt(data.X.reshape(len(data), -1) / np.float32(1000))

    predicted = LinearSVC(C=1e-4, random_state=0).fit(bags(train), train.y).predict(bags(test))
    assert np.array_equal(predicted == "noise", test.y == "noise")
    for pair in (("beach", "shore"), ("desert1", "desert2"), ("field", "riding")):
        assert np.isin(predicted[np.isin(test.y, pair)], pair).mean() > 0.93
        assert 0.33 < share_right(test.y, predicted, pair) < 0.67
