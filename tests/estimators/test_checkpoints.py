"""Runs that are saved: they go on where they ended, however they ended, and only where they belong."""

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from generators import graded, many_classes, two_classes
from sklearn.exceptions import ConvergenceWarning
from thinned import rotating

import maxmargin as mm
from maxmargin import LinearSVC, LinearSVR, Problem, RankingSVM, checkpoint
from maxmargin.checkpoint import CheckpointError, CheckpointFolder
from maxmargin.constraints import Blocked, Searched
from maxmargin.constraints.oracle import oracle_for
from maxmargin.data.arrays import as_rows
from maxmargin.files import Scratch
from maxmargin.latent.warm_started import WarmStarted
from maxmargin.models import Multiclass, binary
from maxmargin.problem import Planes
from maxmargin.regularizers import L2, GaussianPrior, GroupNorm
from maxmargin.solvers import (
    BlockAscent,
    CuttingPlane,
    DualCoordinate,
    InteriorPoint,
    OracleAscent,
    ProximalPoint,
    solve,
)
from maxmargin.solvers.certificate import lower_bound
from maxmargin.solvers.solve import restored_state, saved_state

# The folder


def _content():
    return {
        "numbers": (1, 2.5, True, None, np.inf),
        "text": "α",
        "array": np.arange(6.0).reshape(2, 3),
        "empty": np.zeros((0, 4), np.float32),
        "inside": [{"a": np.arange(3, dtype=np.int32)}, "b"],
        "planes": Planes(np.array([0, 0, 2]), [np.array([1, 2]), np.array([3]), np.array([1])], np.ones(3)),
    }


def _same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, Planes):
        return _same([a.example, list(a.labels), a.alpha], [b.example, list(b.labels), b.alpha])
    return a == b


def test_what_is_saved_is_loaded(tmp_path):
    with CheckpointFolder(tmp_path / "a" / "b", {"C": "1"}) as folder:
        assert folder.load() is None
        folder.save(_content())
        assert _same(folder.load(), _content())
        folder.save({"later": 1})
    with CheckpointFolder(tmp_path / "a" / "b", {"C": "1"}) as folder:
        assert folder.load() == {"later": 1}
        folder.save({"later": 2})
        assert folder.load() == {"later": 2}
    assert sorted(p.name for p in (tmp_path / "a" / "b").iterdir()) == ["00000003", "CURRENT", "lock"]


def test_leftovers_of_a_killed_process_are_no_obstacle(tmp_path):
    with CheckpointFolder(tmp_path, {}) as folder:
        folder.save({"a": 1})
    shutil.copytree(tmp_path / "00000001", tmp_path / "00000002")  # killed before CURRENT named it
    Scratch(tmp_path, "00000002")._lock.close()  # killed while writing
    with CheckpointFolder(tmp_path, {}) as folder:
        assert folder.load() == {"a": 1}
        folder.save({"a": 2})
        assert folder.load() == {"a": 2}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["00000002", "CURRENT", "lock"]


def test_folders_of_the_user_stay(tmp_path):
    names = ["1", "2026", "19991231", "20261118_photos", "00000001"]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "photo").write_text("")
    X = np.eye(4)
    with pytest.warns(RuntimeWarning, match=r"00000001 is in the way"):
        LinearSVC(random_state=0).fit(X, [0, 1, 0, 1], checkpoint=tmp_path)
    (tmp_path / "00000001" / "photo").rename(tmp_path / "photo")
    (tmp_path / "00000001").rmdir()
    for _ in range(2):
        LinearSVC(random_state=0).fit(X, [0, 1, 0, 1], checkpoint=tmp_path)
    assert all((tmp_path / name / "photo").exists() for name in names[:-1])
    with pytest.raises(ValueError, match="checkpoint must be the path"):
        LinearSVC().fit(X, [0, 1, 0, 1], checkpoint="")


def test_saving_takes_its_share_of_the_time_and_no_more(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])
    with CheckpointFolder(tmp_path, {}, every=30.0) as folder:
        assert not folder.due()
        now[0] += 29.0
        assert not folder.due()
        now[0] += 2.0
        assert folder.due()

        def write(content):
            now[0] += 10.0

        monkeypatch.setattr(folder, "_write", write)
        folder.save({})
        now[0] += 190.0  # ten seconds of saving, two hundred of work
        assert not folder.due()
        now[0] += 11.0
        assert folder.due()


def _flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[-3] ^= 0x55
    path.write_bytes(content)


def _of_a_later_release(path):
    content = json.loads(json.loads(path.read_text())["content"]) | {"version": 99}
    text = json.dumps(content)
    path.write_text(json.dumps({"checksum": checkpoint.zlib.crc32(text.encode()), "content": text}))


def _cut(path):
    path.write_bytes(path.read_bytes()[:50])


# What happens to which file.
DAMAGE = {
    "array cut short": ("0.npy", _cut),
    "bit of an array": ("0.npy", _flip_a_bit),
    "array gone": ("0.npy", Path.unlink),
    "state changed": ("state.json", lambda path: path.write_text(path.read_text().replace("text", "tent", 1))),
    "state cut short": ("state.json", _cut),
    "state gone": ("state.json", Path.unlink),
    "state of a list": ("state.json", lambda path: path.write_text("[]")),
    "name of nothing": ("CURRENT", lambda path: path.write_text("00000009")),
    "empty name": ("CURRENT", lambda path: path.write_text("")),
    "no text": ("CURRENT", lambda path: path.write_bytes(b"\xff\xfe\x00")),
    "later release": ("state.json", _of_a_later_release),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_damage_is_found_and_told(how, tmp_path):
    with CheckpointFolder(tmp_path, {}) as folder:
        folder.save(_content())
        name, damage = DAMAGE[how]
        damage(tmp_path / name if name == "CURRENT" else tmp_path / (tmp_path / "CURRENT").read_text() / name)
        with pytest.raises(CheckpointError, match=r"cannot be read.*Delete the folder .* to start anew"):
            folder.load()


def test_folder_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").write_text("in the way")
    X, y = _hinge()
    with pytest.raises(CheckpointError, match="Cannot save to the checkpoint folder"):
        LinearSVC().fit(X, y, checkpoint=tmp_path / "file" / "folder")
    with pytest.raises(ValueError, match="checkpoint_every"):
        LinearSVC().fit(X, y, checkpoint=tmp_path / "folder", checkpoint_every=-1.0)


# States that are saved


def _whole(n=400, d=8):
    X, y = two_classes(np.random.default_rng(4), n=n, d=d, noise=2.0)
    return binary(as_rows(X, 1.0), y.astype(np.int8), np.array([2.0]))


def _in_blocks(rows):
    X, y = two_classes(np.random.default_rng(4), n=400, d=8, noise=2.0)
    source = mm.data.open(X, labels=y, chunk_rows=rows)
    return Blocked(source, lambda c: binary(as_rows(c.x, 1.0), c.y.astype(np.int8), np.array([2.0])), 9)


def _searched():
    X, y = _classes()
    return Searched(oracle_for(Multiclass(4, 8), X, y), np.array([0.1]))


PURE = GroupNorm([[0, 1, 2], [3, 4, 5], [6, 7, 8]], np.ones(3))
STATES = {
    "coordinates": (DualCoordinate(random_state=0), lambda: Problem(_whole(), L2()), 25),
    "proximal point": (ProximalPoint(DualCoordinate(random_state=0)), lambda: Problem(_whole(), PURE), 60),
    "interior point": (InteriorPoint(), lambda: Problem(_whole(), L2()), 6),
    "blocks": (BlockAscent(random_state=0), lambda: Problem(_in_blocks(50), L2()), 3),
    "searched": (OracleAscent(random_state=0), lambda: Problem(_searched(), L2()), 4),
    "cutting planes": (CuttingPlane(), lambda: Problem(_searched(), L2()), 8),
}


@pytest.mark.parametrize("name", STATES)
def test_a_state_that_is_restored_proves_what_it_did_and_goes_on(name, tmp_path):
    solver, problem, steps = STATES[name]
    problem = problem()
    state = solver.start(problem)
    state.goal = 1e-9
    for _ in range(steps):
        state = solver.step(problem, state)
    with CheckpointFolder(tmp_path, {}) as folder:
        folder.save(saved_state(solver, state, True))
        again = restored_state(problem, solver, folder.load())
    again.goal = state.goal
    assert again.lower == pytest.approx(state.lower, rel=1e-9)
    assert lower_bound(problem, again.alpha) == pytest.approx(state.lower, rel=1e-9)
    for _ in range(5):
        again = solver.step(problem, again)
        assert again.lower >= 0.99 * state.lower


class _Torn(DualCoordinate):
    """Interrupted in the midst of its tenth pass, when dual variables are worth nothing."""

    def step(self, problem, state):
        if state.passes == 9:
            state.alpha[:] = 0.0
            raise KeyboardInterrupt
        return super().step(problem, state)


def test_an_interrupt_does_not_replace_what_was_saved_by_what_proves_less(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_SHARE", 0)
    problem = Problem(_whole(), L2())
    with CheckpointFolder(tmp_path, {}, every=0.0) as folder:
        solution = solve(problem, _Torn(random_state=0), tol=1e-9, checkpoint=folder)
        assert solution.interrupted
        saved = folder.load()
    assert len(saved["history"]) == 9
    assert lower_bound(problem, saved["state"]["alpha"]) >= solution.history[-1].lower * (1 - 1e-9)


def test_a_search_over_bounds_goes_on_in_the_midst_of_one(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_SHARE", 0)
    rng = np.random.default_rng(5)
    X = [rng.normal(size=(rng.integers(2, 6), 6)) for _ in range(120)]
    y = np.array([1 if x[:, 0].max() + rng.normal() > 1.0 else -1 for x in X])
    settings = {"tol": 1e-6, "random_state": 0}
    write, resume, restored = CheckpointFolder._write, WarmStarted.restore, []

    def failing(folder, content):
        write(folder, content)
        if len((content.get("under_way") or {"history": ()})["history"]) == 3:
            raise RuntimeError("the power fails")

    def restore(kept, problem, saved):
        restored.append(resume(kept, problem, saved))
        return restored[-1]

    with monkeypatch.context() as patched:
        patched.setattr(CheckpointFolder, "_write", failing)
        with pytest.raises(RuntimeError, match="the power fails"):
            mm.LatentSVC(**settings).fit(X, y, checkpoint=tmp_path, checkpoint_every=0)
    _, content = _saved(tmp_path)
    monkeypatch.setattr(WarmStarted, "restore", restore)
    svm = mm.LatentSVC(**settings).fit(X, y, checkpoint=tmp_path)
    assert len(restored) == 1
    assert svm.history_[len(content["history"])].passes >= 3
    assert svm.certificate_.relative_gap <= 1e-6
    bounds = [record.bound for record in svm.history_]
    assert all(b <= a * (1 + 1e-9) for a, b in itertools.pairwise(bounds))


# Runs that go on


def _hinge(n=500):
    return two_classes(np.random.default_rng(1), n=n, d=12, noise=2.0)


def _classes():
    return many_classes(np.random.default_rng(2), n=300, d=8, k=4)


def _graded():
    return graded(np.random.default_rng(3), n=240, d=8, noise=1.0)


GROUPS = np.repeat(np.arange(40), 6)

RUNS = {
    "coordinates": (LinearSVC, {"C": 10.0, "solver": "dual_coordinate"}, _hinge, None),
    "interior point": (LinearSVC, {"C": 10.0, "solver": "interior_point"}, _hinge, None),
    "classes": (LinearSVC, {"C": 1.0, "solver": "dual_coordinate"}, _classes, None),
    "written out": (
        LinearSVC,
        {"C": 1.0, "solver": "dual_coordinate", "regularizer": GaussianPrior(0.0, np.eye(8))},
        _classes,
        None,
    ),
    "regression": (LinearSVR, {"C": 1.0, "solver": "dual_coordinate"}, _graded, None),
    "ranking": (RankingSVM, {"C": 1.0, "solver": "dual_coordinate"}, _graded, None),
    "blocks": (LinearSVC, {"C": 10.0, "solver": "dual_coordinate"}, _hinge, 60),
    "blocks, interior point": (LinearSVC, {"C": 10.0, "solver": "interior_point"}, _hinge, 60),
    "blocks of classes": (LinearSVC, {"C": 1.0}, _classes, 60),
    "blocks of numbers": (LinearSVR, {"C": 1.0, "solver": "dual_coordinate"}, _graded, 60),
    "blocks of pairs": (RankingSVM, {"C": 1.0, "solver": "dual_coordinate"}, _graded, 60),
}


def _run(name, folder=None, **others):
    """(estimator, function that fits it): in memory, or from a source of so many rows a chunk."""
    kind, own, data, rows = RUNS[name]
    X, y = data()
    svm = kind(**{"tol": 1e-7, "random_state": 0, **own, **others})
    groups = GROUPS if kind is RankingSVM else None
    if rows is not None:
        arguments = (mm.data.open(X, labels=y, groups=groups, chunk_rows=rows),)
    else:
        arguments = (X, y) if groups is None else (X, y, groups)
    saving = {} if folder is None else {"checkpoint": folder, "checkpoint_every": 0}
    return svm, lambda **more: svm.fit(*arguments, **saving, **more)


def _stops_after(passes, how):
    def stop(record):
        if record.number >= passes:
            if how == "interrupt":
                raise KeyboardInterrupt
            return True
        return None

    return stop


@pytest.mark.parametrize(("name", "how"), rotating(RUNS, ["callback", "interrupt", "passes"]))
def test_the_same_call_goes_on(name, how, tmp_path):
    scratch, fit = _run(name)
    fit()
    half = scratch.n_passes_ // 2 + 1
    svm, fit = _run(name, tmp_path / "run", **({"max_passes": half} if how == "passes" else {}))
    with pytest.warns(ConvergenceWarning, match="interrupted" if how == "interrupt" else "gap"):
        fit(callbacks=[] if how == "passes" else [_stops_after(half, how)])
    reached = svm.certificate_
    assert svm.n_passes_ in (half, half - 1)  # an interrupt comes in the midst of a pass
    assert reached.relative_gap > 1e-7
    seen = []
    again, fit = _run(name, tmp_path / "run")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        fit(callbacks=[seen.append])
    assert again.certificate_.relative_gap <= 1e-7
    assert again.certificate_.lower >= reached.lower
    assert again.history_[: len(svm.history_)] == svm.history_
    assert [r.number for r in again.history_] == list(range(1, again.n_passes_ + 1))
    assert all(a.seconds <= b.seconds for a, b in zip(again.history_, again.history_[1:], strict=False))
    assert 0 < len(seen) < scratch.n_passes_
    assert again.certificate_.lower <= scratch.certificate_.upper
    assert scratch.certificate_.lower <= again.certificate_.upper
    np.testing.assert_allclose(again.coef_, scratch.coef_, atol=0.03)


@pytest.mark.parametrize("name", ["coordinates", "interior point", "classes", "blocks", "blocks of pairs"])
def test_run_that_has_ended_is_done_at_once(name, tmp_path):
    svm, fit = _run(name, tmp_path / "run")
    fit()
    again, fit = _run(name, tmp_path / "run", verbose=0, n_jobs=1)
    seen = []
    fit(callbacks=[seen.append])
    assert not seen
    assert again.history_ == svm.history_
    assert again.certificate_.upper == pytest.approx(svm.certificate_.upper, rel=1e-12)  # evaluated anew
    np.testing.assert_array_equal(again.coef_, svm.coef_)
    closer, fit = _run(name, tmp_path / "run", tol=1e-8)  # but a nearer goal means more work
    fit(callbacks=[seen.append])
    assert closer.certificate_.relative_gap <= 1e-8


@pytest.mark.parametrize("source", [False, True])
def test_one_vs_rest_saves_class_by_class(source, tmp_path):
    X, y = _classes()
    arguments = (mm.data.open(X, labels=y, chunk_rows=60),) if source else (X, y)
    settings = {"multi_class": "ovr", "solver": "dual_coordinate", "tol": 1e-7, "random_state": 0}
    scratch = LinearSVC(**settings).fit(*arguments)
    calls = []

    def stop(record):
        calls.append(record)
        if len(calls) == len(scratch.history_) // 2:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        LinearSVC(**settings).fit(*arguments, checkpoint=tmp_path, checkpoint_every=0, callbacks=[stop])
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"class-{k}" for k in range(4)]
    again = LinearSVC(**settings).fit(*arguments, checkpoint=tmp_path)
    assert again.certificate_.relative_gap <= 1e-7
    np.testing.assert_allclose(again.coef_, scratch.coef_, atol=0.01)


@pytest.mark.parametrize(("name", "number"), [("blocks", 2), ("blocks of classes", 5), ("blocks of pairs", 2)])
def test_reading_goes_on_in_its_midst(name, number, tmp_path, monkeypatch):
    """What a process that is killed in the midst of a reading leaves behind."""
    monkeypatch.setattr(checkpoint, "_SHARE", 0)  # save at every beat

    class Killed:
        def __call__(self, record):
            return (tmp_path / "killed").exists()

        def during(self, passes, done, seconds):
            if passes == number and done >= 0.5 and not (tmp_path / "killed").exists():
                shutil.copytree(tmp_path / "run", tmp_path / "killed")

    _, fit = _run(name, tmp_path / "run")
    with pytest.warns(ConvergenceWarning):
        fit(callbacks=[Killed()])
    _, content = _saved(tmp_path / "killed")
    assert len(content["history"]) == number - 1
    again, fit = _run(name, tmp_path / "killed")
    fit()
    assert again.certificate_.relative_gap <= 1e-7
    scratch, fit = _run(name)
    fit()
    assert again.certificate_.lower <= scratch.certificate_.upper
    assert scratch.certificate_.lower <= again.certificate_.upper
    assert again.n_passes_ <= 1.6 * scratch.n_passes_ + 5


@pytest.mark.parametrize("rows", [None, 60])
def test_interior_point_that_is_interrupted_in_the_midst_of_a_step_goes_on_from_the_one_before(
    rows, tmp_path, monkeypatch
):
    monkeypatch.setattr(checkpoint, "_SHARE", 0)
    name = "interior point" if rows is None else "blocks, interior point"
    scratch, fit = _run(name)
    fit()
    advance, steps = InteriorPoint._advance, []

    def interrupted(self, *arguments):
        steps.append(1)
        if len(steps) == 7:
            raise KeyboardInterrupt
        advance(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(InteriorPoint, "_advance", interrupted)
        svm, fit = _run(name, tmp_path)
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            fit()
    assert svm.n_passes_ == 5  # the first call is not a step
    seen = []
    again, fit = _run(name, tmp_path)
    fit(callbacks=[seen.append])
    assert again.certificate_.relative_gap <= 1e-7
    assert len(seen) <= scratch.n_passes_ - 4


def _saved(folder):
    """(number, content) of the state that CURRENT names, checked in full."""
    number = (folder / "CURRENT").read_text()
    outer = json.loads((folder / number / "state.json").read_text())
    saved = CheckpointFolder(folder, json.loads(outer["content"])["identity"])
    return int(number), saved.load()


# Runs that do not belong


@pytest.mark.parametrize(
    ("others", "named", "rows"),
    [
        ({"C": 2.0}, r"C was 1\.0, now it is 2\.0", 60),
        ({"loss": "squared_hinge"}, "loss was 'hinge', now it is 'squared_hinge'", None),
        ({"class_weight": "balanced"}, "class_weight was None", 60),
        ({"regularizer": GaussianPrior(np.zeros(12), np.ones(12))}, "regularizer was None", None),
        *((what, "data was", rows) for what in ("labels", "rows", "inputs", "weights") for rows in (None, 60)),
    ],
)
def test_other_settings_or_data_are_refused_by_name(others, named, rows, tmp_path):
    X, y = _hinge(2000)

    def fit(X, y, weights=None, **settings):
        svm = LinearSVC(random_state=0, **settings)
        if rows is None:
            return svm.fit(X, y, weights, checkpoint=tmp_path)
        return svm.fit(mm.data.open(X, labels=y, weights=weights, chunk_rows=rows), checkpoint=tmp_path)

    weights = np.ones(2000)
    before = fit(X, y, weights)
    if others == "labels":
        y = np.where(np.arange(2000) == 1000, -y, y)
    elif others == "rows":
        X, y, weights = X[:-1], y[:-1], weights[:-1]
    elif others == "inputs":
        X = X + 1.0
    elif others == "weights":
        weights = np.where(np.arange(2000) == 1000, 2.0, 1.0)  # in the middle, where text leaves numbers out
    settings = others if isinstance(others, dict) else {}
    with pytest.raises(CheckpointError, match=f"belongs to another run: {named}"):
        fit(X, y, weights, **settings)
    X, y = _hinge(2000)
    np.testing.assert_array_equal(fit(X, y, np.ones(2000)).coef_, before.coef_)  # and what was saved is still there


def test_regularizers_and_costs_are_told_apart_by_their_numbers(tmp_path):
    X, y = _hinge()
    zeros, ones = np.zeros(12), np.ones(12)
    LinearSVC(regularizer=GaussianPrior(zeros, ones), random_state=0).fit(X, y, checkpoint=tmp_path / "a")
    LinearSVC(regularizer=GaussianPrior(zeros, ones), random_state=0).fit(X, y, checkpoint=tmp_path / "a")
    for other in (GaussianPrior(ones, ones), GaussianPrior(zeros, 2 * ones)):
        with pytest.raises(CheckpointError, match="regularizer was GaussianPrior"):
            LinearSVC(regularizer=other, random_state=0).fit(X, y, checkpoint=tmp_path / "a")
    X, y = many_classes(np.random.default_rng(0), n=200, d=3, k=40)
    cost = 1.0 - np.eye(40)
    LinearSVC(cost=cost, random_state=0).fit(X, y, checkpoint=tmp_path / "b")
    cost[20, 21] = 2.0
    with pytest.raises(CheckpointError, match="cost was"):
        LinearSVC(cost=cost, random_state=0).fit(X, y, checkpoint=tmp_path / "b")


@pytest.mark.parametrize("kind", ["parquet", "text"])
def test_copy_of_data_that_has_changed_is_made_anew(kind, tmp_path):
    """Text and Parquet are copied into the checkpoint folder, once."""
    X, y = _hinge()

    def write(y):
        if kind == "parquet":
            columns = {f"x{j}": column for j, column in enumerate(X.T)}
            pq.write_table(pa.table({**columns, "label": y}), tmp_path / "set.parquet")
            return mm.data.open(tmp_path / "set.parquet")
        lines = [f"{a} " + " ".join(f"{j + 1}:{x:.6g}" for j, x in enumerate(row)) for a, row in zip(y, X, strict=True)]
        (tmp_path / "set.svm").write_text("\n".join(lines) + "\n")
        return mm.data.open(tmp_path / "set.svm")

    first = LinearSVC(random_state=0).fit(write(y), checkpoint=tmp_path / "run")
    made = (tmp_path / "run" / "copy" / "data").stat().st_mtime_ns
    assert LinearSVC(random_state=0).fit(mm.data.open(next(tmp_path.glob("set.*"))), checkpoint=tmp_path / "run")
    assert (tmp_path / "run" / "copy" / "data").stat().st_mtime_ns == made
    other = write(-y)
    os.utime(next(tmp_path.glob("set.*")), ns=(1, 1))  # whatever the clock of the file system can tell apart
    other = mm.data.open(next(tmp_path.glob("set.*")))
    with pytest.raises(CheckpointError, match="data was"):
        LinearSVC(random_state=0).fit(other, checkpoint=tmp_path / "run")
    assert np.isfinite(first.certificate_.upper)


HOLDING = """
import sys, numpy as np, maxmargin as mm
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
y = np.where(X[:, 0] + rng.normal(size=200) > 0, 1, -1)
def wait(record):
    print("going", flush=True)
    sys.stdin.readline()
    return True
svm = mm.LinearSVC(C=10.0, tol=1e-9, random_state=0, solver="dual_coordinate")
svm.fit(X, y, checkpoint=sys.argv[1], callbacks=[wait])
"""


def test_second_process_is_kept_out_as_long_as_the_first_one_lives(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.where(X[:, 0] + rng.normal(size=200) > 0, 1, -1)
    svm = LinearSVC(C=10.0, tol=1e-9, random_state=0, solver="dual_coordinate")
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", HOLDING, str(tmp_path / "run")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as first:
        try:
            assert first.stdout.readline() == "going\n"
            with pytest.raises(CheckpointError, match="Another process"):
                svm.fit(X, y, checkpoint=tmp_path / "run")
        finally:
            first.kill()
    svm.fit(X, y, checkpoint=tmp_path / "run")  # a killed process holds nothing
    assert svm.certificate_.relative_gap <= 1e-9


# Runs that are killed

NURSERY = '''
"""Trains in a process of its own whenever asked to: all is imported, so that a life costs no more than training."""
import os, sys, warnings
import numpy as np
import maxmargin as mm
from maxmargin.solvers import BlockAscent

place, shards = sys.argv[1:]
solver = BlockAscent(pool=2**20, random_state=0)

def train(where, data, tol=1e-6):
    svm = mm.LinearSVC(C=1.0, tol=tol, solver=solver, random_state=0)
    return svm.fit(data, checkpoint=where, checkpoint_every=0)

warm = np.random.default_rng(0).normal(size=(60, 40)).astype(np.float32)
train(place + "/warm", mm.data.open(warm, labels=np.arange(60) % 2, chunk_rows=20), 1e-2)
for _ in sys.stdin:
    child = os.fork()
    if child == 0:
        certificate = train(place + "/run", mm.data.open(shards)).certificate_
        with open(place + "/done.new", "w") as file:
            print(certificate.lower, certificate.upper, file=file)
        os.rename(place + "/done.new", place + "/done")
        os._exit(0)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
'''


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are made and killed by other means there")
def test_run_that_is_killed_again_and_again_loses_nothing(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 40)).astype(np.float32)
    y = np.where(X[:, 0] + rng.normal(size=12_000) > 0, 1, -1)
    shards = mm.data.convert(X, tmp_path / "set", labels=y, batch_bytes=50_000)
    C = np.array([1.0])

    def block(chunk):
        return binary(as_rows(chunk.x, bias=1.0), chunk.y.astype(np.int8), C)

    problem = Problem(Blocked(shards, block, 41), L2())
    numbers, bounds, passes = [0], [0.0], [0]
    with subprocess.Popen(
        [sys.executable, "-c", NURSERY, str(tmp_path), str(tmp_path / "set")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as nursery:
        try:
            kills = 0
            while not (tmp_path / "done").exists():
                assert kills < 200
                child = _born(nursery)
                if kills < 24:
                    if kills % 2:  # every second life is long enough to leave something behind
                        _wait_for_news(tmp_path, numbers[-1])
                    time.sleep(rng.uniform(0.0, 0.1))
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(child, signal.SIGKILL)
                status = int(nursery.stdout.readline())
                assert status in (0, signal.SIGKILL)
                kills += status != 0
                if not (tmp_path / "run" / "CURRENT").exists():
                    continue
                number, content = _saved(tmp_path / "run")
                numbers.append(number)
                passes.append(len(content["history"]))
                bounds.append(lower_bound(problem, content["state"]["alpha"]))
        finally:
            nursery.kill()
    assert kills >= 20
    assert numbers == sorted(numbers)
    assert passes == sorted(passes)
    assert len(set(numbers)) > 3  # several of those that were killed had come further
    for before, after in itertools.pairwise(bounds):
        assert after >= before * (1 - 1e-9)
    lower, upper = map(float, Path(tmp_path / "done").read_text().split())
    assert (upper - lower) / upper <= 1e-6
    assert bounds[-1] == pytest.approx(lower, rel=1e-7)
    fresh = LinearSVC(C=1.0, tol=1e-4, solver="dual_coordinate", random_state=0).fit(X, y)
    assert lower <= fresh.certificate_.upper
    assert fresh.certificate_.lower <= upper


def _wait_for_news(place, number):
    """Until another state is saved than the one of this number, or all is done."""
    patience = time.monotonic() + 60
    current = place / "run" / "CURRENT"
    while not (place / "done").exists() and (not current.exists() or current.read_text() == f"{number:08d}"):
        assert time.monotonic() < patience
        time.sleep(0.005)


def _born(nursery):
    """The number of a new process."""
    nursery.stdin.write("\n")
    nursery.stdin.flush()
    return int(nursery.stdout.readline())


def test_changed_data_cannot_lend_its_upper_bound(tmp_path):
    """Even where a fingerprint is deceived, weights from a file are evaluated on the data at hand."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 100))
    y = np.where(X[:, 0] > 0, 1, -1)
    LinearSVC(random_state=0, C=0.01).fit(X, y, checkpoint=tmp_path)
    other = X.copy()
    other.reshape(-1)[600:40_000] *= 50.0
    state = CheckpointFolder(tmp_path, {})
    state._check_identity = lambda saved: None
    saved = state.load()
    problem = Problem(binary(as_rows(other, 1.0), y.astype(np.int8), np.array([0.01])), L2())

    class Deceived:
        def load(self):
            return saved

        def due(self):
            return False

        def save(self, content):
            pass

    solution = solve(problem, DualCoordinate(random_state=0), tol=1e-3, checkpoint=Deceived(), max_passes=500)
    assert solution.certificate.lower <= solution.certificate.upper
    assert solution.certificate.upper >= problem.constraints.evaluate(solution.weights).total
