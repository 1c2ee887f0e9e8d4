"""Files and folders that are there whole or not at all, whatever happens to the process that writes them."""

import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

import maxmargin as mm
from maxmargin.files import Scratch, replacing

WRITER = """
import os, signal, sys
from maxmargin.files import replacing
with replacing(sys.argv[1]) as new:
    new.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("before")
    with pytest.raises(RuntimeError), replacing(path) as new:
        new.write_text("half")
        raise RuntimeError
    assert path.read_text() == "before" and os.listdir(tmp_path) == ["a.txt"]
    with replacing(path) as new:
        new.write_text("after")
        assert path.read_text() == "before" and new.suffix == ".txt"
    assert path.read_text() == "after" and os.listdir(tmp_path) == ["a.txt"]


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "data"
    for content in ("before", "after"):
        with replacing(path) as new:
            new.mkdir()
            (new / content).touch()
        assert os.listdir(path) == [content]
    with pytest.raises(RuntimeError), replacing(path) as new:
        new.mkdir()
        raise RuntimeError
    assert os.listdir(path) == ["after"] and os.listdir(tmp_path) == ["data"]


@pytest.mark.parametrize("name", ["", "folder"])
def test_a_file_never_takes_the_place_of_a_folder(name, tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "photo").write_text("of the user's")
    monkeypatch.chdir(folder if not name else tmp_path)
    with pytest.raises((ValueError, IsADirectoryError), match="Name a file"), replacing(name) as new:
        new.write_text("a model")
    assert (folder / "photo").read_text() == "of the user's" and list(tmp_path.iterdir()) == [folder]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_is_no_plain_file_gets_the_bytes_and_stays(tmp_path):
    """safetensors renames what it has written: as root it would put a file in the place of /dev/null."""
    pipe, model = tmp_path / "pipe", tmp_path / "model"
    os.mkfifo(pipe)
    svm = mm.LinearSVC(random_state=0).fit([[0.0], [1.0]], [0, 1])
    reader = threading.Thread(target=lambda: model.write_bytes(pipe.read_bytes()))
    reader.start()
    svm.save(pipe)
    reader.join()
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)
    assert mm.load(model).coef_ == svm.coef_


def test_permissions_and_links_stay(tmp_path):
    path, link = tmp_path / "private", tmp_path / "link"
    path.touch(0o600)
    link.symlink_to("private")
    with replacing(link) as new:
        new.write_text("after")
        new.chmod(0o644)
    assert link.is_symlink() and path.read_text() == "after"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = os.umask(0o027)
    try:
        with replacing(tmp_path / "new") as new:
            new.touch(0o600)  # as some writers make them
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_leftovers_of_a_killed_process_are_removed_by_the_next_and_those_of_a_living_one_are_not(tmp_path):
    path = tmp_path / "a.txt"
    ended = subprocess.run([sys.executable, "-c", WRITER, str(path)], check=False)
    assert ended.returncode == -signal.SIGKILL and len(os.listdir(tmp_path)) == 1 and not path.exists()
    alive = Scratch(tmp_path, "alive")
    with replacing(path) as new:
        new.write_text("after")
    assert sorted(os.listdir(tmp_path)) == sorted([alive.folder.name, "a.txt"])
    alive.remove()
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_folder_that_a_killed_process_had_set_aside_comes_back(tmp_path):
    dead = Scratch(tmp_path, "data")
    (dead.folder / "before" / "data").mkdir(parents=True)
    dead._lock.close()
    Scratch(tmp_path, "other").remove()
    assert os.listdir(tmp_path) == ["data"]
