"""Training on a cluster from the command line: the same bounds, messages and files as on one machine."""

import time

import numpy as np
import pytest
from commands import answer, complaint, interrupted, lives
from sklearn.datasets import dump_svmlight_file

import maxmargin as mm
from maxmargin.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two classes as text and as shards; groups as text."""
    place = tmp_path_factory.mktemp("clusters")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12)).astype(np.float32)
    scores = X @ rng.normal(size=12) + rng.normal(size=300)
    dump_svmlight_file(X, np.where(scores > 0, 1, -1), str(place / "train.svm"), zero_based=False)
    grades, groups = np.digitize(scores, [-1.0, 1.0]), np.repeat(np.arange(15), 20)
    dump_svmlight_file(X, grades, str(place / "groups.svm"), zero_based=False, query_id=groups)
    mm.data.convert(str(place / "train.svm"), place / "shards", batch_bytes=2**11, shuffle=False)
    return place


def overlap(a, b):
    """Whether two certificates can be of the same problem: both contain its optimum."""
    return max(a["lower"], b["lower"]) <= min(a["upper"], b["upper"]) * (1 + 1e-6)


@pytest.mark.parametrize(
    ("data", "task", "options"),
    [
        ("shards", "classify", ["--memory", "1MB"]),
        ("groups.svm", "rank", ["--C", "0.1"]),
    ],
)
def test_bounds_are_those_of_one_machine(folder, tmp_path, capsys, data, task, options):
    command = ["train", folder / data, "--task", task, *options]
    alone, _ = answer(capsys, *command, "-o", tmp_path / "a.mm")
    many, err = answer(capsys, *command, "-o", tmp_path / "b.mm", "--cluster", "local:2")
    assert err == ""
    assert alone["workers"] is None and many["workers"] == 2
    assert many["converged"] and many["rows"] == alone["rows"] == 300
    assert overlap(alone["certificate"], many["certificate"])
    proved, _ = answer(capsys, "certify", tmp_path / "b.mm", folder / data)
    assert proved["certificate"]["upper"] == pytest.approx(many["certificate"]["upper"], rel=1e-5)
    assert proved["certificate"]["lower"] == pytest.approx(many["certificate"]["lower"], rel=1e-5)


def test_people_are_told_how_many_workers_there_were_and_the_model_is_not(folder, tmp_path, capsys):
    command = ["train", f"{folder}/shards", "-o", f"{tmp_path}/m.mm", "--cluster", "local:2", "--progress"]
    assert main([*command, "--report", f"{tmp_path}/r.html"]) == 0
    err = capsys.readouterr().err
    passes = [line for line in err.splitlines() if line.startswith("pass ")]
    assert passes and all(line.endswith(", 2 workers") for line in passes)
    assert "2 (local:2)" in err and "and up to 512MB of rows in each worker" in err
    assert "goal 0.001 reached" in err
    page = (tmp_path / "r.html").read_text(encoding="utf8")
    content = (tmp_path / "m.mm").read_bytes()
    assert b"cluster" not in content and b"local:2" not in content
    assert "worker" not in page and f"{mm.load(tmp_path / 'm.mm').certificate_.upper:.6g}"[:5] in page


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("locl:4", """--cluster 'locl:4' is not understood. Possible are: "local" or "local:4" (processes of this m"""),
        ("local:0", "A cluster needs at least one worker"),
        ("ray://", "--cluster 'ray://' is not understood"),
    ],
)
def test_places_that_are_none_are_refused_before_data_is_read(tmp_path, capsys, where, said):
    line = complaint(capsys, "train", "no-such-file.svm", "-o", tmp_path / "m.mm", "--cluster", where)
    assert said in line and "no-such-file" not in line


def test_data_that_cannot_be_read_is_said_in_one_line(tmp_path, capsys):
    data = tmp_path / "bad.svm"
    data.write_text("1 1:0.5\n-1 1:1.0\n1 1:abc\n")
    line = complaint(capsys, "train", data, "-o", tmp_path / "m.mm", "--task", "classify", "--cluster", "local:2")
    assert str(data) in line and "3" in line


def test_workers_that_die_for_ever_are_an_error_in_plain_words(folder, tmp_path, capsys, monkeypatch):
    from maxmargin.distributed import LocalProcesses, WorkerDied

    def fail(self, makers):
        raise WorkerDied(1, "killed by signal 9, 3 times in a row")

    monkeypatch.setattr(LocalProcesses, "start", fail)
    line = complaint(capsys, "train", folder / "shards", "-o", tmp_path / "m.mm", "--cluster", "local:2")
    assert "worker 1 died: killed by signal 9" in line and "a smaller --memory may help" in line
    assert not (tmp_path / "m.mm").exists()


def test_the_same_command_goes_on_from_a_checkpoint(folder, tmp_path, capsys):
    command = ["train", folder / "train.svm", "-o", tmp_path / "m.mm", "--C", 10, "--cluster", "local:2"]
    command += ["--checkpoint", tmp_path / "run", "--tol", 1e-6]
    first, _ = answer(capsys, *command, "--max-passes", 6, status=1)
    second, _ = answer(capsys, *command)
    assert second["converged"] and second["passes"] > first["passes"] == 6
    assert second["certificate"]["lower"] >= first["certificate"]["lower"] * (1 - 1e-9)
    alone, _ = answer(capsys, "train", folder / "train.svm", "-o", tmp_path / "a.mm", "--C", 10, "--tol", 1e-6)
    assert overlap(alone["certificate"], second["certificate"])


def test_ctrl_c_keeps_the_best_model_and_leaves_no_worker_behind(folder, tmp_path):
    said, pids = interrupted("train", folder / "shards", "-o", tmp_path / "m.mm", "--cluster", "local:2")
    assert said["passes"] == 1 and said["workers"] == len(pids) == 2
    until = time.monotonic() + 10.0
    while any(map(lives, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(lives, pids))
