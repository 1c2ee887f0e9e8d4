"""Compiling ahead of time, and what happens where nothing can be kept on disk."""

import json
import subprocess
import sys

from maxmargin.cli import DONE, UNUSABLE, main

_NO_FOLDER = """
import warnings
from numba.core import caching
caching.CacheImpl._locator_classes = []  # as where neither the package's nor the user's folder can be written to
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    from maxmargin.kernels import rows
    assert rows.dot.stats.cache_path is None
assert any("NUMBA_CACHE_DIR" in str(warning.message) for warning in seen), seen
from maxmargin.cli import main
raise SystemExit(main(["compile", "clusters", "--jobs", "1"]))
"""

_MANY_ROWS = """
import gc
import numpy as np
from numba.core.dispatcher import Dispatcher
from maxmargin import LinearSVC
from maxmargin.cli import main

def compiled():
    ours = (f for f in gc.get_objects() if isinstance(f, Dispatcher) and f.py_func.__module__.startswith("maxmargin"))
    return {(f.py_func.__module__, f.py_func.__name__, s) for f in ours for s in f.signatures}

assert main(["compile", "linear", "--jobs", "1", "--quiet"]) == 0
before = compiled()
rng = np.random.default_rng(0)
for dtype in ("float32", "float64"):
    X = rng.normal(size=(5000, 4)).astype(dtype)
    for solver in ("interior_point", "dual_coordinate"):
        LinearSVC(solver=solver).fit(X, X[:, 0] + rng.normal(size=5000) > 0)
assert compiled() == before, compiled() - before
"""


def test_what_was_compiled_is_not_compiled_again(capsys):
    command = ["compile", "clusters", "--jobs", "1", "--json"]
    assert main(command) == DONE
    assert json.loads(capsys.readouterr().out)["functions"] >= 0
    assert main(command) == DONE
    again = json.loads(capsys.readouterr().out)
    assert again["functions"] == 0
    assert again["families"] == ["clusters"]


def test_a_fit_of_many_rows_calls_nothing_that_was_not_compiled():
    done = subprocess.run([sys.executable, "-c", _MANY_ROWS], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_family_that_is_not_known_is_named(capsys):
    assert main(["compile", "liner"]) == UNUSABLE
    assert "Perhaps you meant 'linear'" in capsys.readouterr().err


def test_without_a_folder_the_package_is_imported_and_compile_says_what_to_do():
    done = subprocess.run([sys.executable, "-c", _NO_FOLDER], check=False, capture_output=True, text=True)
    assert done.returncode == UNUSABLE, done.stderr
    assert "Name one with the environment variable NUMBA_CACHE_DIR" in done.stderr
