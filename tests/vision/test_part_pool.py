"""Whitening of patches and pools of random parts."""

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf

from maxmargin.vision.parts import pool
from maxmargin.vision.parts.patches import Patches
from maxmargin.vision.parts.pool import Whitening, largest_pool, random_parts


def some_values(n=200, d=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)


def estimated(values, seed=0, **settings):
    return Whitening.estimate(values, rng=np.random.default_rng(seed), **settings)


def some_patches(sizes, n_views=1, d=4, seed=0):
    """Patches of images with so many patches in each view."""
    first = np.concatenate([[0], np.cumsum(np.repeat(sizes, n_views))])
    return Patches(some_values(int(first[-1]), d, seed), first, n_views=n_views)


def stronger_half(patches, i, whitening, keep=0.5):
    """Patches of the first view of an image, one by one, the stronger ones as a set."""
    view = range(int(patches.first[i * patches.n_views]), int(patches.first[i * patches.n_views + 1]))
    strength = {p: np.linalg.norm(whitening.precision @ (patches.values[p] - whitening.mean)) for p in view}
    return set(sorted(view, key=lambda p: -strength[p])[: int(np.ceil(keep * len(view)))])


def test_the_whitening_is_that_of_ledoit_and_wolf(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "_BLOCK", 16)  # of 50
    values = some_values(n=50).astype(np.float16)
    np.save(tmp_path / "values.npy", values)
    found = estimated(np.load(tmp_path / "values.npy", mmap_mode="r"))
    values = values.astype(np.float64)
    covariance, share = ledoit_wolf(values)
    assert found.mean == pytest.approx(values.mean(axis=0))
    assert found.shrinkage == pytest.approx(share)
    assert np.linalg.inv(found.precision) == pytest.approx(covariance)


def test_the_shrinkage_may_be_given():
    values = some_values()
    covariance = np.cov(values.T, bias=True)
    assert np.linalg.inv(estimated(values, shrinkage=0.0).precision) == pytest.approx(covariance)
    level = np.trace(covariance) / 6
    half = 0.5 * covariance + 0.5 * level * np.eye(6)
    assert np.linalg.inv(estimated(values, shrinkage=0.5).precision) == pytest.approx(half)
    assert estimated(values, shrinkage=1.0).precision == pytest.approx(np.eye(6) / level)


def test_no_more_patches_are_looked_at_than_asked_for():
    values = some_values()
    chosen = np.sort(np.random.default_rng(3).choice(200, 80, replace=False))
    few, naive = estimated(values, seed=3, n_sampled=80), estimated(values[chosen])
    assert few.mean == pytest.approx(naive.mean)
    assert few.precision == pytest.approx(naive.precision)
    assert np.array_equal(few.precision, estimated(values, seed=3, n_sampled=80).precision)
    assert not np.allclose(few.mean, estimated(values, seed=4, n_sampled=80).mean)


def test_filters_strengths_and_spreads_are_what_their_formulas_say():
    values = some_values()
    whitening = estimated(values, shrinkage=0.0)
    precision = np.linalg.inv(np.cov(values.T, bias=True))
    filters = np.array([precision @ (f - values.mean(axis=0)) for f in values])
    assert whitening.filters(values) == pytest.approx(filters)
    assert whitening.strength(values) == pytest.approx(np.linalg.norm(filters, axis=1))
    assert whitening.spread(values) == pytest.approx((values @ filters.T).std(axis=0))


@pytest.mark.parametrize(
    ("values", "settings", "message"),
    [
        (np.array([[1.0, np.nan], [2.0, 3.0]]), {}, "must be finite"),
        (some_values(n=4), {"shrinkage": 0.0}, "no inverse with shrinkage=0.0. Give more patches"),
        (np.ones((9, 3)), {}, "All of the 9 patches are the same"),
    ],
)
def test_what_cannot_be_whitened_is_named(values, settings, message):
    with pytest.raises(ValueError, match=message):
        estimated(values, **settings)


@pytest.mark.parametrize("n_views", [1, 2])
@pytest.mark.parametrize("keep", [0.3, 0.5, 1.0])
def test_parts_are_made_of_stronger_patches_of_the_first_view(n_views, keep):
    patches = some_patches([4, 7, 1, 0, 12], n_views)
    whitening = estimated(patches.values)
    allowed = set().union(*(stronger_half(patches, i, whitening, keep) for i in range(5)))
    _, source = random_parts(patches, 8, whitening, keep=keep, rng=np.random.default_rng(0))
    assert len(set(source.tolist())) == 8
    assert set(source.tolist()) <= allowed
    _, everything = random_parts(patches, len(allowed), whitening, keep=keep, rng=np.random.default_rng(0))
    assert set(everything.tolist()) == allowed


def test_filters_respond_with_a_standard_deviation_of_one():
    patches = some_patches([30, 30])
    whitening = estimated(patches.values, shrinkage=0.0)
    filters, source = random_parts(patches, 20, whitening, rng=np.random.default_rng(0))
    assert (patches.values @ filters.T).std(axis=0) == pytest.approx(1.0)
    own = patches.values[source] - whitening.mean
    directions = np.linalg.solve(np.cov(patches.values.T, bias=True), own.T).T
    cosine = np.einsum("ij,ij->i", directions, filters)
    cosine /= np.linalg.norm(directions, axis=1) * np.linalg.norm(filters, axis=1)
    assert cosine == pytest.approx(1.0)


def test_images_are_equally_likely_whatever_their_number_of_patches():
    patches = some_patches([100, 1000])
    _, source = random_parts(patches, 40, estimated(patches.values), rng=np.random.default_rng(0))
    small = int((source < 100).sum())
    assert 10 <= small <= 30  # 20 in the mean, with a standard deviation of 3.2; of patches alike it would be 3.6
    assert 0 < (source[:20] < 100).sum() < small  # in no order


def test_largest_pool_is_the_most_that_can_be_made(rng):
    patches = Patches(rng.normal(size=(33, 3)), first=np.array([0, 5, 10, 17, 24, 28, 33]), n_views=2)
    whitening = Whitening.estimate(patches.values, rng=rng)
    for keep in (0.3, 0.5, 1.0):
        most = largest_pool(patches, keep)
        assert most == sum(int(np.ceil(keep * n - 1e-9)) for n in (5, 7, 4))
        assert len(random_parts(patches, most, whitening, rng=rng, keep=keep)[0]) == most
        with pytest.raises(ValueError, match=f"{most + 1} parts were asked for, but 3 images have only {most} patches"):
            random_parts(patches, most + 1, whitening, rng=rng, keep=keep)
