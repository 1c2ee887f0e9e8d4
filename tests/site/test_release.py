"""The files around the package agree with it: version, licences of dependencies, what is not finished."""

import re
import tomllib
from pathlib import Path

import maxmargin

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def name_of(requirement):
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


def test_every_dependency_is_in_the_list_of_licences():
    listed = set(re.findall(r"^\| ([\w-]+) \|", (ROOT / "LICENCES.md").read_text(encoding="utf-8"), flags=re.MULTILINE))
    asked = {name_of(r) for group in PROJECT["optional-dependencies"].values() for r in group}
    asked |= {name_of(r) for r in PROJECT["dependencies"]}
    assert asked - {"maxmargin"} <= listed


def test_every_dependency_has_a_lower_bound():
    for group in [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]:
        assert all(">=" in requirement for requirement in group if not requirement.startswith("maxmargin["))


def test_one_version_everywhere():
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
    assert cited == newest == maxmargin.__version__
