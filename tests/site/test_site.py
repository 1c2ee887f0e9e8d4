"""The site: it builds without a warning, its links resolve, it fetches nothing, and the reference names everything.

Examples are not run here, ``make docs`` runs them; nor is the code on the pages, which has tests of its own.
"""

import importlib
import inspect
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import maxmargin

ROOT = Path(__file__).parents[2]
READ_BY_SITE = [
    "docs",
    "examples",
    "benchmarks/results",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENCES.md",
    "SECURITY.md",
]
PUBLIC_BY_NAME = ["distributed", "protocols", "problem", "data.synthetic", "vision.scenes"]  # the others are attributes
check_links = runpy.run_path(str(ROOT / "docs" / "check_links.py"))["problems"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Built from a copy, since the gallery is written among the sources."""
    pytest.importorskip("sphinx", reason="the site needs Sphinx: pip install 'maxmargin[docs]'")
    root = tmp_path_factory.mktemp("site")
    for name in READ_BY_SITE:
        source, goal = ROOT / name, root / name
        goal.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, goal, ignore=shutil.ignore_patterns("_build", "gallery", "*.json", "__pycache__"))
        else:
            shutil.copy(source, goal)
    quick = ["-D", "plot_gallery=0", "-D", "toc_object_entries=0"]  # no examples, shorter lists of contents
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", *quick, "docs", "html"],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(Path(maxmargin.__file__).parent.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return root / "html"


def test_every_link_resolves_and_nothing_is_fetched(site):
    assert check_links(site) == []


def test_public_names_are_in_the_reference(site):
    from sphinx.util.inventory import InventoryFile

    with (site / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, path: path)
    listed = {name for kind, names in inventory.items() if kind.startswith("py:") for name in names}
    objects = {id(found(name)) for name in listed if found(name) is not None}
    missing = [name for name in public_names() if name not in listed and id(found(name)) not in objects]
    assert missing == []


def public_names():
    """What users may call: the names of the package, of its modules, and of those that are imported by name."""
    modules = [name for name in maxmargin.__all__ if inspect.ismodule(getattr(maxmargin, name))]
    yield from (f"maxmargin.{name}" for name in maxmargin.__all__ if name != "__version__")
    for name in [*modules, *PUBLIC_BY_NAME]:
        module = importlib.import_module(f"maxmargin.{name}")
        names = getattr(module, "__all__", None) or [
            key
            for key, thing in vars(module).items()
            if not key.startswith("_") and getattr(thing, "__module__", "") == module.__name__ and callable(thing)
        ]
        yield from (f"{module.__name__}.{key}" for key in names)


def found(name):
    """What a dotted name stands for, or None where only instances have it."""
    thing = maxmargin
    for part in name.split(".")[1:]:
        if not hasattr(thing, part) and inspect.ismodule(thing):
            importlib.import_module(f"{thing.__name__}.{part}")
        thing = getattr(thing, part, None)
    return thing


def test_link_check_finds_what_is_wrong(tmp_path):
    (tmp_path / "other.html").write_text('<h1 id="here">Other</h1>')
    (tmp_path / "index.html").write_text(
        '<a href="other.html#here">good</a> <a href="https://example.org/page">good</a>'
        '<a href="other.html#gone">no place</a> <a href="gone.html">no page</a> <a href="../up.html">out</a>'
        '<a href="http://nowhere">no site</a> <a href="//example.org">no scheme</a>'
        '<script src="https://example.org/a.js"></script> <link rel="stylesheet" href="https://example.org/a.css">'
        '<img src="gone.png">'
    )
    (tmp_path / "a.css").write_text('@font-face { src: url("https://example.org/font.woff") }')
    wrong = "\n".join(check_links(tmp_path))
    for part in (
        "#gone",
        "gone.html",
        "../up.html",
        "//nowhere",
        "//example.org",
        "a.js",
        "index.html: loads",
        "gone.png",
    ):
        assert part in wrong
    assert "a.css: loads" in wrong
    assert "#here" not in wrong
    assert "example.org/page" not in wrong
    assert len(wrong.splitlines()) == 9


def test_picture_of_the_choice_is_what_the_script_draws():
    drawn = runpy.run_path(str(ROOT / "docs" / "choosing.py"))["drawn"]
    assert (ROOT / "docs" / "choosing.svg").read_text(encoding="utf-8") == drawn()


def test_summary_of_performance_agrees_with_the_results():
    """Every figure in its tables stands in the result file of that section."""
    sections = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8").replace("\u00a0", " ").split("\n## ")
    checked = 0
    for section in sections:
        page = re.search(r"\(performance/(\w+)\.md\)", section)
        if not page or "\n|" not in section:
            continue
        results = (ROOT / "benchmarks" / "results" / f"{page[1]}.md").read_text(encoding="utf-8")
        rows = [line for line in section.splitlines() if line.startswith("|")]
        for row in rows:
            for figure in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:×| s\b| images/s| MB| GB)", row):
                assert figure in results, (
                    f"{page[1]}: {figure} of the summary is not in benchmarks/results/{page[1]}.md"
                )
                checked += 1
    assert checked > 50
