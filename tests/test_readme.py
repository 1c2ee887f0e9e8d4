"""The examples of the README and of the guide to clusters, run as they stand."""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent


def blocks_of(page):
    text = (ROOT / page).read_text(encoding="utf8")
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


PAGES = {page: blocks_of(page) for page in ("README.md", "docs/guide/clusters.md")}
EXAMPLES = [(page, number) for page, blocks in PAGES.items() for number in range(len(blocks))]


def test_pages_have_examples():
    assert all(PAGES.values())


@pytest.fixture(scope="module")
def reading(tmp_path_factory):
    """Per page: where files go, the names that blocks have set, and the blocks to come: each is run once, in order."""
    places = {
        page: (tmp_path_factory.mktemp("page"), {"__name__": "page"}, iter(enumerate(PAGES[page]))) for page in PAGES
    }
    photographs(places["README.md"][0])
    return places


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


@pytest.mark.parametrize(("page", "number"), EXAMPLES)
def test_example_runs(page, number, reading, monkeypatch):
    folder, names, rest = reading[page]
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    for i, block in rest:
        exec(compile(block, f"{page}, python block {i + 1}", "exec"), names)
        if i == number:
            break
