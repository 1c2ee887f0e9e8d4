"""Images and folders are read as they are meant, and what cannot be read is named; work over many images loses none."""

import errno
import glob
import io
import os
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest
from thinned import rotating

Image = pytest.importorskip("PIL.Image", reason="needs maxmargin[vision]")

from maxmargin.vision.features import cache  # noqa: E402
from maxmargin.vision.features.cache import FeatureCache  # noqa: E402
from maxmargin.vision.features.extraction import over_images  # noqa: E402
from maxmargin.vision.images import ImageError, ImageFolder, list_images, read_image  # noqa: E402


def pixels(seed=0, shape=(12, 17, 3)):
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


def saved(array, path, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path, **options)
    return str(path)


# Reading


def test_a_file_and_its_array_are_the_same_image(tmp_path):
    rgb = pixels()
    path = saved(rgb, tmp_path / "a.png")
    assert np.array_equal(read_image(path, color=True), rgb)
    assert np.array_equal(read_image(path), read_image(rgb))
    assert np.array_equal(read_image(Image.open(path)), read_image(rgb))
    grey = read_image(rgb)
    assert grey.dtype == np.uint8 and grey.shape == rgb.shape[:2]
    assert np.abs(grey - rgb @ [0.299, 0.587, 0.114]).max() <= 0.51


@pytest.mark.parametrize("color", [False, True])
def test_every_way_to_write_grey_gives_the_same(tmp_path, color):
    grey = pixels(1, (9, 8))
    sixteen = grey.astype(np.uint16) * 257
    sources = [grey, grey[:, :, None], grey / 255, (grey / 255).astype(np.float32), sixteen, sixteen.astype(">u2")]
    sources += [np.repeat(grey[:, :, None], 3, axis=2), saved(grey, tmp_path / "8.png")]
    sources += [saved(sixteen, tmp_path / "16.png"), saved(sixteen, tmp_path / "16.tif")]
    sources += [saved((grey / 255).astype(np.float32), tmp_path / "float.tif")]
    expected = np.repeat(grey[:, :, None], 3, axis=2) if color else grey
    for source in sources:
        found = read_image(source, color=color)
        assert found.dtype == np.uint8 and found.flags.writeable
        assert np.array_equal(found, expected)


def test_what_is_transparent_is_white(tmp_path):
    rgba = np.dstack([pixels(2), np.full((12, 17), 255, np.uint8)])
    assert np.array_equal(read_image(rgba, color=True), rgba[:, :, :3])
    rgba[:5, :, 3] = 0
    found = read_image(saved(rgba, tmp_path / "a.png"), color=True)
    assert (found[:5] == 255).all() and np.array_equal(found[5:], rgba[5:, :, :3])
    palette = Image.fromarray(np.array([[0, 1]], np.uint8), mode="P")
    palette.putpalette([10, 20, 30, 40, 50, 60])
    palette.save(tmp_path / "p.png", transparency=0)
    assert read_image(tmp_path / "p.png", color=True).tolist() == [[[255, 255, 255], [40, 50, 60]]]


@pytest.mark.parametrize(("orientation", "suffix"), rotating(range(1, 9), ["png", "tif"]))
def test_the_camera_was_turned(tmp_path, orientation, suffix):
    upright = pixels(3, (6, 10))
    # Where the first row and column of what is stored belong, by the EXIF standard.
    stored = {
        1: upright, 2: upright[:, ::-1], 3: upright[::-1, ::-1], 4: upright[::-1],
        5: upright.T, 6: np.rot90(upright), 7: upright[::-1, ::-1].T, 8: np.rot90(upright, -1),
    }[orientation]  # fmt: skip
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = saved(np.ascontiguousarray(stored), tmp_path / f"a.{suffix}", exif=exif)
    assert np.array_equal(read_image(path), upright)


def broken_file(kind, folder):
    path = folder / f"{kind}.png"
    whole = io.BytesIO()
    Image.fromarray(pixels(4, (60, 60, 3))).save(whole, "png")
    if kind == "folder":
        path.mkdir()
    elif kind != "missing":
        path.write_bytes({"empty": b"", "text": b"not an image", "cut": whole.getvalue()[:400]}[kind])
    return str(path)


@pytest.mark.parametrize(
    "kind, reason",
    [("missing", "not exist"), ("empty", "0 bytes"), ("text", "not an image"), ("cut", "cut"), ("folder", "a folder")],
)
def test_broken_files_are_named_with_the_reason(tmp_path, kind, reason):
    path = broken_file(kind, tmp_path)
    with pytest.raises(ImageError, match=reason) as caught:
        read_image(path)
    assert path in str(caught.value)


def test_bombs_are_refused(tmp_path, monkeypatch):
    path = saved(pixels(5, (50, 50)), tmp_path / "a.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(ImageError, match=r"a\.png is not .*2500 pixels\) exceeds limit of 2000 pixels"):
        read_image(path)


@pytest.mark.parametrize(
    "array, reason",
    [
        (np.zeros((3, 20, 30), np.uint8), "moveaxis"),
        (np.zeros((2, 2, 2), np.uint8), r"shape \(2, 2, 2\)"),
        (np.zeros((0, 5), np.uint8), r"shape \(0, 5\)"),
        (np.zeros((4, 4), np.int64), r"int64.*astype\(np.uint8\)"),
        (np.full((4, 4), 200.0), "from 200 to 200"),
        (np.full((4, 4), np.nan), "nan"),
        (b"bytes", "got bytes"),
    ],
)
def test_arrays_that_are_no_images_are_refused(array, reason):
    with pytest.raises(ImageError, match=reason):
        read_image(array)


def test_the_packages_of_images_are_imported_late():
    code = (
        "import sys, maxmargin, maxmargin.vision.images, maxmargin.vision.features.extraction;"
        "print([m for m in ('cv2', 'PIL', 'torch', 'sklearn') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_without_pillow_the_error_says_what_to_install(tmp_path, monkeypatch):
    path = saved(pixels(), tmp_path / "a.png")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r'pip install "maxmargin\[vision\]"'):
        read_image(path)
    with pytest.raises(ImportError, match="maxmargin"):  # not as though the image were broken
        over_images([path], Brightness(), on_error="skip")


# Folders


def touched(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def test_a_folder_of_classes(tmp_path):
    touched(tmp_path, "b/2.jpg", "b/10.JPG", "b/deep/er/3.png", "a/x.png", "a/notes.txt", "README.md")
    touched(tmp_path, "a/.hidden.png", ".git/1.png", "b/.thumbs/1.png")
    folder = ImageFolder(tmp_path)
    assert [os.path.relpath(p, tmp_path) for p in folder.paths] == ["a/x.png", "b/10.JPG", "b/2.jpg", "b/deep/er/3.png"]
    assert folder.labels.tolist() == ["a", "b", "b", "b"]
    assert len(folder) == 4


@pytest.mark.parametrize(
    "names, reason",
    [
        (["1.png", "2.png"], "it has no sub-folders. Move the images of each class"),
        (["a/1.png", "b/notes.txt", "c/.1.png"], "2 of 3 have none: b, c"),
    ],
)
def test_folders_without_classes_say_what_is_missing(tmp_path, names, reason):
    touched(tmp_path, *names)
    with pytest.raises(ImageError, match=reason):
        ImageFolder(tmp_path)


def test_images_to_predict_are_listed(tmp_path):
    touched(tmp_path, "b.jpg", "a.png", "deep/c.gif", "notes.txt", ".d.png", "odd[1].jpg", "photo")

    def names(what):
        return [os.path.relpath(p, tmp_path) for p in list_images(what)]

    assert names(tmp_path) == ["a.png", "b.jpg", "deep/c.gif", "odd[1].jpg"]
    assert names(tmp_path / "photo") == ["photo"]
    assert names(str(tmp_path / "odd[1].jpg")) == ["odd[1].jpg"]
    assert names(str(tmp_path / "*.p*")) == ["a.png"]
    assert names(str(tmp_path / "**" / "*.gif")) == ["deep/c.gif"]
    assert names([tmp_path / "b.jpg", tmp_path / "deep"]) == ["b.jpg", "deep/c.gif"]
    for nothing, reason in [
        (tmp_path / "gone.png", "not exist"), (tmp_path / "*.txt", "no images"), ([], "empty list"), (3, "got int"),
    ]:  # fmt: skip
        with pytest.raises(ImageError, match=reason):
            list_images(nothing)


# Work over many images


class Brightness:
    """Mean of each row of a 2 × 3 grid; counts the calls that it sees in this process."""

    color = False
    calls = 0

    def __call__(self, image):
        type(self).calls += 1
        if image.shape[0] < 4:
            raise RuntimeError("too small")
        return np.array([[half.mean(), half.std(), half.max()] for half in np.array_split(image, 2)], np.float32)


class Sharing(Brightness):
    releases_gil = True


@pytest.fixture
def paths(tmp_path):
    return [saved(pixels(i, (8 + i % 5, 9, 3)), tmp_path / "images" / f"{i:02}.png") for i in range(40)]


@pytest.fixture
def plain(paths):
    return over_images(paths, Brightness())[0]


@pytest.mark.parametrize(
    ("work", "n_jobs", "cached"), [(Brightness(), None, True), (Brightness(), 2, False), (Sharing(), 2, True)]
)
def test_however_it_is_done_the_values_are_the_same(tmp_path, paths, work, n_jobs, cached):
    expected = np.stack([work(read_image(path)) for path in paths])
    cache = {"cache": tmp_path / "cache", "settings": "brightness"} if cached else {}
    for _ in range(2):
        values, kept = over_images(paths, work, n_jobs=n_jobs, **cache)
        assert np.array_equal(values, expected) and values.dtype == np.float32
        assert np.array_equal(kept, np.arange(len(paths)))
        assert hasattr(values, "filename") == cached
    if cached:
        assert not [name for _, folders, _ in os.walk(tmp_path / "cache") for name in folders if name.startswith(".")]


def test_the_cache_knows_images_by_their_content_and_the_settings(tmp_path, paths, plain):
    cache = tmp_path / "cache"
    first, _ = over_images(paths, Brightness(), cache=cache, settings="a")
    Brightness.calls = 0
    os.rename(paths[0], tmp_path / "other.png")
    over_images([tmp_path / "other.png", *paths[1:]], Brightness(), cache=cache, settings="a")
    assert Brightness.calls == 0
    saved(pixels(99), tmp_path / "images" / "00.png")
    changed, _ = over_images(paths, Brightness(), cache=cache, settings="a")
    assert Brightness.calls == 1
    assert np.array_equal(changed[0], Brightness()(read_image(paths[0])))
    assert np.array_equal(first, plain)  # a result outlives the next runs
    Brightness.calls = 0
    over_images(paths, Brightness(), cache=cache, settings="b")
    assert Brightness.calls == len(paths)
    shape, other = np.zeros((4, 6), np.uint8), np.zeros((6, 4), np.uint8)
    assert FeatureCache(cache, "a").key(shape) != FeatureCache(cache, "a").key(other)


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied", "replaced"])
def test_damaged_entries_are_computed_again(tmp_path, paths, plain, damage):
    cache = tmp_path / "cache"
    over_images(paths, Brightness(), cache=cache, settings="a")
    entries = sorted(glob.glob(str(cache / "*" / "*.feature")))
    assert len(entries) == len(paths)
    for entry in entries[:7]:
        with open(entry, "rb") as file:
            content = bytearray(file.read())
        content[-25] ^= 1
        with open(entry, "wb") as file:
            file.write({"cut": content[:50], "flipped": content, "emptied": b"", "replaced": b"x" * 200}[damage])
    Brightness.calls = 0
    assert np.array_equal(over_images(paths, Brightness(), cache=cache, settings="a")[0], plain)
    assert Brightness.calls == 7
    over_images(paths, Brightness(), cache=cache, settings="a")
    assert Brightness.calls == 7


def test_broken_images_are_all_named_at_once(tmp_path, paths, plain):
    bad = [broken_file(kind, tmp_path) for kind in ("missing", "empty", "text", "cut")]
    mixed = [bad[0], *paths[:20], *bad[1:], np.zeros((3, 3), np.uint8), *paths[20:]]
    for jobs in (None, 2):
        with pytest.raises(ImageError, match="5 of 45 images") as caught:
            over_images(mixed, Brightness(), n_jobs=jobs)
        for name in (*bad, "image 24", "too small"):
            assert name in str(caught.value)
        with pytest.warns(UserWarning, match="5 of 45 images"):
            values, kept = over_images(
                mixed, Brightness(), on_error="skip", n_jobs=jobs, cache=tmp_path / "c", settings="a"
            )
        assert np.array_equal(values, plain)
        assert kept.tolist() == [*range(1, 21), *range(25, 45)]


def test_results_of_other_shapes_are_named(paths):
    class Ragged(Brightness):
        def __call__(self, image):
            return np.zeros(image.shape[0] if image.shape[0] < 12 else 3)

    with pytest.raises(ImageError, match=r"32 of 40 .*\n.*01\.png: the work gave float64 of shape \(9,\)"):
        over_images(paths, Ragged())


def refusing(monkeypatch, module, name, after):
    """Writing fails as on a full disk, from the given call on."""
    whole, calls = getattr(module, name), [0]

    def write(*arguments, **options):
        calls[0] += 1
        if calls[0] > after:
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(*arguments, **options)

    monkeypatch.setattr(module, name, write)


@pytest.mark.parametrize(("part", "name", "after"), [(cache, "replacing", 5), (tempfile, "TemporaryFile", 0)])
def test_a_full_disk_is_said_and_what_was_computed_is_kept(tmp_path, paths, plain, monkeypatch, part, name, after):
    refusing(monkeypatch, part, name, after)
    with pytest.raises(OSError, match=r"cache=.* cannot be written: No space left .* leave the cache out"):
        over_images(paths, Brightness(), cache=tmp_path / "cache", settings="a", on_error="skip")
    monkeypatch.undo()
    Brightness.calls = 0
    assert np.array_equal(over_images(paths, Brightness(), cache=tmp_path / "cache", settings="a")[0], plain)
    assert 0 < Brightness.calls < len(paths)
    assert not glob.glob(str(tmp_path / "cache" / ".*"))


def test_two_processes_may_share_a_cache(tmp_path, paths, plain):
    code = (
        "import sys; from test_vision_images import Brightness, over_images; import glob;"
        "over_images(sorted(glob.glob(sys.argv[1] + '/*.png')), Brightness(), cache=sys.argv[2], settings='a')"
    )
    images, cache = os.path.dirname(paths[0]), str(tmp_path / "cache")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    both = [subprocess.Popen([sys.executable, "-c", code, images, cache], env=environment) for _ in range(2)]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    Brightness.calls = 0
    assert np.array_equal(over_images(paths, Brightness(), cache=cache, settings="a")[0], plain)
    assert Brightness.calls == 0


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("jobs, kind", [(1, "False"), (2, "True")])
def test_an_interrupt_keeps_what_was_computed(tmp_path, jobs, kind):
    code = f"""
import sys, time, numpy as np
from maxmargin.vision.features.extraction import over_images
class Slow:
    color = False
    releases_gil = {kind}
    def __call__(self, image):
        time.sleep(0.2)
        return np.zeros(2)
images = [np.full((4, 4), i, np.uint8) for i in range(200)]
try:
    over_images(images, Slow(), cache=sys.argv[1], settings="slow", n_jobs={jobs})
except KeyboardInterrupt:
    print("interrupted")
"""
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    pattern = str(tmp_path / "*" / "*.feature")
    deadline = time.monotonic() + 60
    while len(glob.glob(pattern)) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=120)[0].strip() == "interrupted"
    assert 3 <= len(glob.glob(pattern)) < 100
    assert not glob.glob(str(tmp_path / "stacked*"))


def test_what_is_given_is_checked(tmp_path, paths):
    for given, options, error, message in (
        (paths[0], {}, TypeError, "list_images"),
        ([], {}, ImageError, "empty"),
        (paths, {"on_error": "ignore"}, ValueError, "on_error"),
        (paths, {"cache": tmp_path}, ValueError, "settings"),
        (paths, {"cache": paths[0], "settings": "a"}, ValueError, "cannot be used as a folder"),
        (paths, {"n_jobs": 0}, ValueError, "n_jobs"),
    ):
        with pytest.raises(error, match=message):
            over_images(given, Brightness(), **options)
