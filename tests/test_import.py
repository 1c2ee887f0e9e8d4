"""What ``import maxmargin`` costs and offers. Each import runs in a fresh interpreter."""

import subprocess
import sys

import pytest

import maxmargin as mm

HEAVY = ("numba", "sklearn", "scipy", "matplotlib", "pyarrow", "torch", "joblib", "rich", "safetensors")


def _fresh(code):
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    return run.stdout.strip()


def test_import_pulls_in_nothing_heavy():
    loaded = _fresh(f"import sys, maxmargin; print([m for m in {HEAVY!r} if m in sys.modules])")
    assert loaded == "[]"


def test_names_appear_when_first_used():
    code = "import sys, maxmargin; maxmargin.LinearSVC; print('sklearn' in sys.modules, 'matplotlib' in sys.modules)"
    assert _fresh(code) == "True False"


def test_dir_lists_exactly_the_public_names():
    assert dir(mm) == sorted(mm.__all__)
    assert {"LinearSVC", "LinearSVR", "RankingSVM", "load", "path", "solve", "certify", "regularizers"} <= set(dir(mm))


@pytest.mark.parametrize("name", mm.__all__)
def test_public_name_resolves(name):
    assert getattr(mm, name) is not None


@pytest.mark.parametrize("module", ["regularizers", "models", "constraints", "solvers", "estimators"])
def test_every_name_in_all_of_the_module_resolves(module):
    from importlib import import_module

    loaded = import_module(f"maxmargin.{module}")
    for name in loaded.__all__:
        assert getattr(loaded, name) is not None


def test_star_import_brings_the_public_names():
    assert _fresh("from maxmargin import *; print(LinearSVC.__name__, callable(solve))") == "LinearSVC True"


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'LinearSVM'"):
        mm.LinearSVM  # noqa: B018


def test_version_is_a_release_number():
    assert all(part.isdigit() for part in mm.__version__.split(".")[:2])
