"""Disks that are full: training goes on where it can, says what is missing where it cannot, and leaves nothing behind.

A small file system of its own is used where one can be mounted; errors are made up besides, so that every machine
runs through the same code.
"""

import contextlib
import errno
import os
import shutil
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import pytest
from generators import many_classes, two_classes

import maxmargin as mm
from maxmargin import LinearSVC, checkpoint, files
from maxmargin.checkpoint import CheckpointFolder
from maxmargin.constraints import duals_on_disk
from maxmargin.constraints.duals_on_disk import zeros_on_disk
from maxmargin.data import DataError


def _full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def small_disk(tmp_path):
    """A function that mounts a file system of so many bytes, for the length of a test."""
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small file system")
    with contextlib.ExitStack() as mounted:

        def mount(size):
            place = tmp_path / "disk"
            place.mkdir()
            command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "maxmargin-test", str(place)]
            if subprocess.run(command, capture_output=True, check=False).returncode:
                pytest.skip("no file system can be mounted here")
            mounted.callback(subprocess.run, ["umount", "-l", str(place)], check=False)
            return place

        yield mount


def _fill(place, leave):
    """Take all room but so many bytes."""
    room = shutil.disk_usage(place).free - leave
    with open(place / "filler", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, room)


def _data(n=400):
    return two_classes(np.random.default_rng(0), n=n, d=10, noise=2.0)


SETTINGS = {"C": 10.0, "tol": 1e-6, "solver": "dual_coordinate", "random_state": 0}


def _one_warning(caught, folder):
    told = [str(w.message) for w in caught]
    assert len(told) == 1, told
    assert f"could not be saved in {folder}: No space left on device" in told[0]
    assert "what was saved before is still there" in told[0]


# Checkpoints


@pytest.mark.parametrize("where", [".npy", "state.json", "CURRENT", "folder"])
def test_state_before_stays_wherever_writing_fails(where, tmp_path, monkeypatch):
    with CheckpointFolder(tmp_path, {}) as folder:
        folder.save({"a": np.arange(5)})
        with monkeypatch.context() as full:
            if where == "folder":
                full.setattr(checkpoint.Path, "mkdir", _full)
            else:
                flush = files._flush_all
                full.setattr(files, "_flush_all", lambda path: _full() if path.name.endswith(where) else flush(path))
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                folder.save({"a": np.arange(6)})
                folder.save({"a": np.arange(7)})
            _one_warning(caught, tmp_path)
        assert folder.load()["a"].tolist() == list(range(5))
        folder.save({"a": np.arange(8)})  # there is room again
        assert folder.load()["a"].tolist() == list(range(8))
    assert sorted(p.name for p in tmp_path.iterdir() if p.name[0] == "0") == ["00000002"]


@pytest.mark.parametrize("rows", [None, 50])
def test_training_ends_as_usual_where_nothing_can_be_saved(rows, tmp_path, monkeypatch):
    X, y = _data()
    what = (X, y) if rows is None else (mm.data.open(X, labels=y, chunk_rows=rows),)
    monkeypatch.setattr(checkpoint, "_SHARE", 0)
    monkeypatch.setattr(CheckpointFolder, "_write", _full)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        svm = LinearSVC(**SETTINGS).fit(*what, checkpoint=tmp_path, checkpoint_every=0)
    _one_warning(caught, tmp_path)
    assert svm.certificate_.relative_gap <= 1e-6
    monkeypatch.undo()
    np.testing.assert_array_equal(LinearSVC(**SETTINGS).fit(*what).coef_, svm.coef_)


def test_run_on_a_disk_that_becomes_full_keeps_the_state_before(small_disk, monkeypatch):
    monkeypatch.setattr(checkpoint, "_SHARE", 0)
    place = small_disk(400_000)
    X, y = _data(2000)
    source = mm.data.open(X, labels=y, chunk_rows=300)
    numbers = []

    def fill(record):
        if record.number == 3:
            _fill(place, 10_000)
        elif record.number == 6:
            numbers.append((place / "run" / "CURRENT").read_text())

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        svm = LinearSVC(**SETTINGS).fit(source, checkpoint=place / "run", checkpoint_every=0, callbacks=[fill])
    _one_warning(caught, place / "run")
    assert svm.certificate_.relative_gap <= 1e-6
    assert (place / "run" / "CURRENT").read_text() == numbers[0]
    assert sorted(p.name for p in (place / "run").iterdir()) == [numbers[0], "CURRENT", "lock"]
    (place / "filler").unlink()
    seen = []
    again = LinearSVC(**SETTINGS).fit(source, checkpoint=place / "run", callbacks=[seen.append])
    assert seen[0].number in (3, 4)
    assert again.certificate_.relative_gap <= 1e-6


def test_copy_of_text_that_does_not_fit_is_told_and_removed(small_disk, tmp_path):
    place = small_disk(100_000)
    X, y = _data(4000)
    lines = [f"{a} " + " ".join(f"{j + 1}:{x:.6g}" for j, x in enumerate(row)) for a, row in zip(y, X, strict=True)]
    (tmp_path / "set.svm").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match="No space left on device"):
        LinearSVC(**SETTINGS).fit(mm.data.open(tmp_path / "set.svm"), checkpoint=place / "run")
    left = [p.name for p in place.rglob("*") if p.is_file()]
    assert set(left) <= {"lock"}


# Dual variables on disk


def test_dual_variables_are_zeros_in_a_file_without_a_name(tmp_path):
    alpha = zeros_on_disk((1000, 3), str(tmp_path))
    assert isinstance(alpha, np.memmap)
    assert alpha.shape == (1000, 3)
    assert not alpha.any()
    place = np.array([5, 999, 0])
    duals_on_disk.scatter(alpha, place, np.arange(9.0).reshape(3, 3))
    duals_on_disk.forget(alpha)
    np.testing.assert_array_equal(duals_on_disk.gather(alpha, place), np.arange(9.0).reshape(3, 3))
    other = np.ones((1000, 3))
    duals_on_disk.copy(alpha, other)
    np.testing.assert_array_equal(other, alpha)
    assert os.listdir(tmp_path) == []


def _many():
    X, y = many_classes(np.random.default_rng(1), n=3000, d=6, k=25)
    return mm.data.open(X.astype(np.float32), labels=y, chunk_rows=300)


# More than a quarter of the memory, so that they go to disk: 600 KB of dual variables.
ON_DISK = {"C": 1.0, "tol": 1e-4, "random_state": 0, "memory": "1500KB"}


def test_no_room_for_dual_variables_is_told_before_training(tmp_path, monkeypatch):
    monkeypatch.setattr(duals_on_disk.os, "posix_fallocate", _full, raising=False)
    seen = []
    with pytest.raises(OSError, match=f"No room in {tmp_path} for 600000 bytes of dual variables") as error:
        LinearSVC(**ON_DISK).fit(_many(), checkpoint=tmp_path, callbacks=[seen.append])
    assert error.value.errno == errno.ENOSPC
    assert "checkpoint= or the environment variable TMPDIR" in str(error.value)
    assert not seen
    assert os.listdir(tmp_path) == ["lock"]


def test_no_room_for_dual_variables_on_a_real_disk(small_disk, monkeypatch):
    place = small_disk(500_000)
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    seen = []
    with pytest.raises(OSError, match=f"No room in {place} for 600000 bytes"):
        LinearSVC(**ON_DISK).fit(_many(), callbacks=[seen.append])
    assert not seen
    assert os.listdir(place) == []
    assert shutil.disk_usage(place).free == shutil.disk_usage(place).total


# Conversion


@pytest.mark.parametrize(("shuffle", "memory"), [(False, "512MB"), (True, "512MB"), (True, 200_000)])
def test_conversion_that_does_not_fit_leaves_nothing_behind(shuffle, memory, small_disk):
    place = small_disk(300_000)
    X, y = _data(20_000)
    free = shutil.disk_usage(place).free
    with pytest.raises(DataError, match="cannot be written: No space left on device") as error:
        mm.data.convert(X, place / "set", labels=y, shuffle=shuffle, memory=memory, batch_bytes=20_000)
    assert "set" in str(error.value)
    assert os.listdir(place) == []
    assert shutil.disk_usage(place).free == free


def test_data_set_stays_where_the_one_to_replace_it_does_not_fit(small_disk):
    place = small_disk(400_000)
    X, y = _data(500)
    before = mm.data.convert(X, place / "set", labels=y)
    with pytest.raises(DataError, match="No space left on device"):
        mm.data.convert(*_data(20_000)[:1], place / "set", overwrite=True)
    assert os.listdir(place) == ["set"]
    after = mm.data.open(place / "set")
    assert after.fingerprint == before.fingerprint
    assert sum(len(chunk) for chunk in after.chunks()) == 500
