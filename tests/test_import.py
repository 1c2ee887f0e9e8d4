"""What ``import maxmargin`` costs and offers. Each import runs in a fresh interpreter."""

import subprocess
import sys

import numpy as np
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


def test_a_small_table_is_fitted_and_predicted_without_the_compiler():
    code = """
import sys, numpy as np, maxmargin as mm
X = np.random.default_rng(0).normal(size=(40, 3))
for svm in (mm.LinearSVC(), mm.LinearSVC(multi_class="ovr"), mm.LinearSVC(loss="squared_hinge"), mm.LinearSVR()):
    svm.fit(X, (X[:, 0] > 0) + (X[:, 1] > 0)).certify(X, (X[:, 0] > 0) + (X[:, 1] > 0))
    svm.predict(X)
print("numba" in sys.modules)
"""
    assert _fresh(code) == "False"


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


def test_version_is_a_release_number():
    assert all(part.isdigit() for part in mm.__version__.split(".")[:2])


def test_the_core_imports_no_extension():
    """Neither to fit, report, plot and save, nor to list names: what images and clusters need stays on disk."""
    code = """
import sys, tempfile, maxmargin as mm
from maxmargin import callbacks, checks, data, distributed, latent, models, plots, regularizers, report, solvers
svm = mm.LinearSVC(random_state=0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
with tempfile.TemporaryDirectory() as folder:
    svm.save(f"{folder}/model.mm")
    mm.load(f"{folder}/model.mm").report(f"{folder}/page.html")
dir(mm), dir(mm.models), dir(mm.plots)
print(sorted(m for m in sys.modules if m.startswith(("maxmargin.vision", "maxmargin.clustering"))))
"""
    assert _fresh(code) == "[]"


def test_star_imports_and_names_of_extensions_are_found_where_users_look():
    names = ["GMMKMeans", "models.Reconfigurable", "plots.part_weights", "data.synthetic.scenes"]
    shown = ", ".join(f"mm.{name}.__name__" for name in names)
    code = f"from maxmargin import *; import maxmargin as mm; print(LinearSVC.__name__, callable(solve), {shown})"
    assert _fresh(code).split() == ["LinearSVC", "True", *(name.rpartition(".")[2] for name in names)]


def test_a_file_brings_the_extension_that_it_needs(tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 2, 2, 3))
    model = mm.models.Reconfigurable(n_parts=2)
    latent = mm.LatentStructuralSVM(model, C=0.1, random_state=0).fit(X, [0, 1] * 6)
    latent.save(tmp_path / "latent.mm")
    mm.GMMKMeans(2, random_state=0).fit(X.reshape(12, -1)).save(tmp_path / "clusters.mm")
    for name in ("latent", "clusters"):
        loaded = f"import maxmargin as mm; print(type(mm.load({str(tmp_path / name)!r} + '.mm')).__name__)"
        assert _fresh(loaded) in ("LatentStructuralSVM", "GMMKMeans")
