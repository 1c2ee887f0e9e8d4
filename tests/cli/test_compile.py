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
assert any("NUMBA_CACHE_DIR" in str(warning.message) for warning in seen), seen
assert rows.dot.stats.cache_path is None
from maxmargin.cli import main
raise SystemExit(main(["compile", "clusters", "--jobs", "1"]))
"""


def test_what_was_compiled_is_not_compiled_again(capsys):
    command = ["compile", "clusters", "--jobs", "1", "--json"]
    assert main(command) == DONE
    assert json.loads(capsys.readouterr().out)["functions"] >= 0
    assert main(command) == DONE
    again = json.loads(capsys.readouterr().out)
    assert again["functions"] == 0
    assert again["families"] == ["clusters"]


def test_a_family_that_is_not_known_is_named(capsys):
    assert main(["compile", "liner"]) == UNUSABLE
    assert "Perhaps you meant 'linear'" in capsys.readouterr().err


def test_without_a_folder_the_package_is_imported_and_compile_says_what_to_do():
    done = subprocess.run([sys.executable, "-c", _NO_FOLDER], check=False, capture_output=True, text=True)
    assert done.returncode == UNUSABLE, done.stderr
    assert "Name one with the environment variable NUMBA_CACHE_DIR" in done.stderr
