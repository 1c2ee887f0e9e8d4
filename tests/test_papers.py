"""The reproductions in examples/papers say what is missing before they do any work."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "examples" / "papers" / "latent_states.py"


def _run(tmp_path, *arguments, data=None):
    environment = {key: value for key, value in os.environ.items() if key != "MAXMARGIN_DATA"}
    if data is not None:
        environment["MAXMARGIN_DATA"] = str(data)
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("data", [None, "no-such-folder"])
def test_missing_data_is_named_with_the_way_to_bring_it(tmp_path, data):
    done = _run(tmp_path, data=data)
    assert done.returncode == 1
    assert "mnist.npz" in done.stderr and "MAXMARGIN_DATA" in done.stderr
    assert (data or "not set") in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_that_cannot_be_made_is_refused_before_any_work(tmp_path):
    (tmp_path / "taken").write_text("")
    done = _run(tmp_path, "--out", "taken")
    assert done.returncode == 2 and "taken" in done.stderr
    assert "Traceback" not in done.stderr
