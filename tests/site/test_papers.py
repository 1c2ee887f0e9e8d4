"""The reproductions in examples/papers say what is missing before they do any work, and lose none that was done."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "papers"


def _run(tmp_path, script, *arguments, data=None):
    environment = {key: value for key, value in os.environ.items() if key != "MAXMARGIN_DATA"}
    if data is not None:
        environment["MAXMARGIN_DATA"] = str(data)
    return subprocess.run(
        [sys.executable, str(FOLDER / script), *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("data", [None, "no-such-folder"])
@pytest.mark.parametrize(("script", "file"), [("latent_states.py", "mnist.npz"), ("scenes.py", "scene15.tar")])
def test_missing_data_is_named_with_the_way_to_bring_it(tmp_path, script, file, data):
    done = _run(tmp_path, script, data=data)
    assert done.returncode == 1
    assert file in done.stderr and "MAXMARGIN_DATA" in done.stderr
    assert (data or "not set") in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_that_cannot_be_made_is_refused_before_any_work(tmp_path):
    (tmp_path / "taken").write_text("")
    done = _run(tmp_path, "latent_states.py", "--out", "taken")
    assert done.returncode == 2 and "taken" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("scenes.py", ["--rows", "sbow,xbow"]),
        ("scenes.py", ["--C", "sbow=-1"]),
        ("scenes.py", ["--C", "ybow=1"]),
        ("synthetic_scenes.py", ["--kinds", "xbow"]),
        ("synthetic_scenes.py", ["--n", "0"]),
    ],
)
def test_wrong_options_are_refused_by_name(tmp_path, script, arguments):
    done = _run(tmp_path, script, *arguments)
    assert done.returncode == 1
    assert arguments[0] in done.stderr and "Traceback" not in done.stderr


def test_synthetic_scenes_are_not_learned_twice(tmp_path):
    kept = []
    for _ in range(2):
        done = _run(tmp_path, "synthetic_scenes.py", "--n", "2", "--kinds", "bow,sbow")
        assert done.returncode == 0, done.stderr
        kept.append((tmp_path / "synthetic_scenes.json").read_text())  # with seconds, which differ from fit to fit
    assert kept[0] == kept[1] and len(json.loads(kept[0])) == 2
    assert (tmp_path / "synthetic_scenes.png").stat().st_size > 0
    assert "{beach, shore}" in (tmp_path / "synthetic_scenes.md").read_text()


def test_results_that_cannot_be_read_are_not_written_over(tmp_path):
    (tmp_path / "synthetic_scenes.json").write_text("{")
    done = _run(tmp_path, "synthetic_scenes.py", "--n", "2", "--kinds", "sbow")
    assert done.returncode == 1 and "synthetic_scenes.json" in done.stderr and "Traceback" not in done.stderr
    assert (tmp_path / "synthetic_scenes.json").read_text() == "{"


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_ctrl_c_keeps_what_is_done_and_takes_no_half_learned_model_for_a_result(tmp_path):
    command = [sys.executable, str(FOLDER / "synthetic_scenes.py"), "--n", "20", "--kinds", "sbow,rbow", "--jobs", "1"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as script:
        assert "SBoW" in script.stdout.readline()
        script.send_signal(signal.SIGINT)
        _, said = script.communicate(timeout=60)
    assert script.returncode == 1 and "goes on from there" in said and "Traceback" not in said
    (name,) = json.loads((tmp_path / "synthetic_scenes.json").read_text())
    assert name.startswith("sbow ")
    assert not (tmp_path / "synthetic_scenes.md").exists()
