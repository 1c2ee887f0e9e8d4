"""The README's examples, run as they stand."""

import re
from pathlib import Path

import numpy as np
import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf8"), flags=re.DOTALL | re.MULTILINE)


def test_readme_has_examples():
    assert BLOCKS


@pytest.fixture(scope="module")
def reading(tmp_path_factory):
    """Where files go, the names that blocks have set, and the blocks to come: each is run once, after those before."""
    folder = tmp_path_factory.mktemp("readme")
    photographs(folder)
    return folder, {"__name__": "readme"}, iter(enumerate(BLOCKS))


def photographs(folder):
    """What the block with photographs asks for: two classes, waves and noise."""
    Image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    waves = 100 + 60 * np.sin(np.arange(96) / 3.0)
    for place in ("train/Coast", "train/Forest", "test/Coast", "test/Forest"):
        (folder / place).mkdir(parents=True)
        for i in range(6):
            noise = rng.normal(size=(80, 96))
            image = (waves + 10 * noise if place.endswith("Coast") else 128 + 50 * noise).clip(0, 255)
            Image.fromarray(image.astype(np.uint8)).save(folder / place / f"{i}.png")
    for name, place in (("a", "test/Coast"), ("b", "test/Forest")):
        Image.open(folder / place / "0.png").save(folder / f"{name}.jpg")


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_readme_example_runs(number, reading, monkeypatch):
    folder, names, rest = reading
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    for i, block in rest:
        exec(compile(block, f"README.md, python block {i + 1}", "exec"), names)
        if i == number:
            break
