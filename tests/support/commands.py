"""The command line as tests call it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import maxmargin as mm
from maxmargin.cli import main


def answer(capsys, *arguments, status=0):
    """The JSON object on stdout, of which there is exactly one."""
    assert main([*map(str, arguments), "--json"]) == status
    said = capsys.readouterr()
    assert said.out.count("\n") == 1
    return json.loads(said.out), said.err


def complaint(capsys, *arguments, status=2):
    """The one line of an error."""
    assert main([*map(str, arguments)]) == status
    said = capsys.readouterr()
    assert said.out == ""
    line = said.err.splitlines()[-1]
    assert line.startswith("maxmargin: error: ")
    assert "Traceback" not in said.err
    return line


def image_folders(place, image, rng, n=6):
    """A folder of n pictures for each of two classes, as ``image(name, rng)`` draws them."""
    from PIL import Image

    for name in ("flat", "tall"):
        (place / name).mkdir(parents=True)
        for i in range(n):
            Image.fromarray(image(name, rng)).save(place / name / f"{i}.png")
    return place


_SLOW = """
import sys, time
import maxmargin as mm
from maxmargin.cli import main

fit = mm.LinearSVC.fit


def slow(self, source, cluster=None, **options):
    def tell(record):
        pids = [cluster.pid(k) for k in range(cluster.n_workers)] if cluster else []
        print("pass", record.number, *pids, file=sys.stderr, flush=True)
        time.sleep(20.0)

    return fit(self, source, cluster=cluster, callbacks=(tell,), **options)


mm.LinearSVC.fit = slow
sys.exit(main(sys.argv[1:]))
"""


def interrupted(*arguments):
    """The program, stopped with Ctrl-C after its first pass: what it says then, and the ids of its workers.

    The file after ``-o`` must hold the model.
    """
    command = [sys.executable, "-c", _SLOW, *map(str, arguments), "--tol", "1e-12", "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # A terminal sends the signal to all processes of its group: a session of its own stands for that.
    with subprocess.Popen(command, text=True, start_new_session=True, **pipes) as process:
        words = process.stderr.readline().split()
        assert words[:2] == ["pass", "1"]
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130 and err == ""
    said = json.loads(out)
    assert said["interrupted"]
    assert mm.load(said["model"]).certificate_.upper == pytest.approx(said["certificate"]["upper"])
    return said, [int(pid) for pid in words[2:]]


def lives(pid):
    """Whether a process is there, and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter if it goes between opening and reading
        return False
