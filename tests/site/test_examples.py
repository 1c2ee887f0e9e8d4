"""Examples are scripts that run as they are, and pages of the gallery.

Running all of them would take minutes, so only the fastest run here, to their end, each in an empty folder.
``make docs`` runs every one of them while it builds the gallery, and fails if one fails.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
FAST = ("demo", "path", "regularizers")  # those whose kernels other tests compile, too


def _pictures(code):
    """The files that a script gives to savefig."""
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    return [call.args[0].value for call in calls if ast.unparse(call.func) == "plt.savefig"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_a_page_with_a_title_an_introduction_and_a_picture(path):
    code = path.read_text(encoding="utf-8")
    tree = ast.parse(code)
    compile(tree, path.name, "exec")
    title, line, blank, *introduction = (ast.get_docstring(tree) or "").splitlines()
    assert title and line == "=" * len(title) and not blank
    assert 2 <= len(introduction) <= 6
    assert "# %%\n" in code
    assert "certificate_" in code or path.stem == "clustering"  # k-means is not convex, and has none
    pictures = _pictures(code)
    assert pictures
    assert all(name == f"{path.stem}.png" or name.startswith(f"{path.stem}_") for name in pictures)


@pytest.mark.parametrize("name", FAST)
def test_a_fast_example_runs_and_leaves_its_pictures_behind(name, tmp_path):
    (path,) = (path for path in EXAMPLES if path.stem == name)
    environment = os.environ | {"MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, path], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Certificate(" in done.stdout
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(_pictures(path.read_text(encoding="utf-8")))
