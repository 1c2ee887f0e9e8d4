"""Real processes that are killed and stopped, and drivers that are killed and started again."""

import functools
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from generators import two_classes
from inline_transport import Inline, binary_bounds

import maxmargin as mm
from maxmargin.distributed import LocalProcesses, RayActors, worker_group
from maxmargin.distributed.ascent import ShardAscent

X, Y = two_classes(np.random.default_rng(0), n=120, d=5, noise=1.0)
PLAIN = ShardAscent(centre=0, random_state=0, sweeps=1)  # many rounds
with_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")


def _made(**settings):
    return mm.LinearSVC(**{"C": 1.0, "random_state": 0, "tol": 1e-6, "solver": PLAIN, **settings})


@functools.cache
def _optimum():
    return _made(solver="dual_coordinate", tol=1e-9).fit(X, Y).certificate_


def _is_certified(svm, lowers):
    lower, upper = binary_bounds(svm, X, Y)
    assert lower == pytest.approx(svm.certificate_.lower, rel=1e-9)
    assert upper == pytest.approx(svm.certificate_.upper, rel=1e-9)
    assert upper - lower <= svm.tol * upper
    assert lower <= _optimum().upper <= upper * (1 + 1e-9)
    assert max(lowers) <= _optimum().upper * (1 + 1e-9)


class _Killer:
    """A callback that kills one worker after the other, one every few rounds."""

    def __init__(self, transport, n_kills, every=3):
        self.transport, self.left, self.every = transport, n_kills, every
        self.killed, self.lowers = [], []

    def __call__(self, record):
        self.lowers.append(record.lower)
        if self.left and record.number % self.every == 0:
            worker = len(self.killed) % self.transport.n_workers
            self.killed.append(self.transport.pid(worker))
            os.kill(self.killed[-1], signal.SIGKILL)
            self.left -= 1


@pytest.mark.parametrize("kind", ["local", pytest.param("ray", marks=with_ray)])
def test_workers_are_killed_one_after_the_other(kind, request):
    n_kills = 3 if kind == "local" else 2  # Ray takes seconds over each
    if kind == "ray":
        request.getfixturevalue("ray_here")
    with LocalProcesses(2) if kind == "local" else RayActors(n_workers=2) as transport:
        killer = _Killer(transport, n_kills)
        svm = _made().fit(X, Y, cluster=transport, callbacks=[killer])
    assert len(set(killer.killed)) == n_kills
    _is_certified(svm, killer.lowers)


def test_a_stopped_worker_holds_up_nobody_for_ever(monkeypatch):
    monkeypatch.setattr(worker_group.WorkerGroup.__init__, "__defaults__", (2.0,))
    stopped, lowers = [], []

    def stop(record):
        lowers.append(record.lower)
        if record.number == 5:
            stopped.append(transport.pid(1))
            os.kill(stopped[0], signal.SIGSTOP)

    with LocalProcesses(2) as transport:
        svm = _made().fit(X, Y, cluster=transport, callbacks=[stop])
        assert transport.pid(1) != stopped[0]
    _is_certified(svm, lowers)


def test_a_worker_that_is_stopped_at_the_end_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(worker_group.WorkerGroup.shutdown, "__kwdefaults__", {"patience": 0.5})
    with LocalProcesses(2) as transport:
        team = worker_group.WorkerGroup(transport, [_Idle, _Idle])
        os.kill(transport.pid(1), signal.SIGSTOP)
        began = time.monotonic()
        team.shutdown("rest")
        assert 0.4 < time.monotonic() - began < 30.0
        assert team.deaths == 0


class _Idle:
    def rest(self):
        return None


DRIVER = """
    import sys, time
    sys.path[:0] = {path!r}
    from test_cluster_faults import X, Y, _made

    def tell(record):
        print(record.number, flush=True)
        time.sleep(0.05)

    if __name__ == "__main__":
        _made().fit(X, Y, cluster="local:2", checkpoint={folder!r}, checkpoint_every=0.0, callbacks=[tell])
"""


@pytest.fixture(scope="module")
def left_behind(tmp_path_factory):
    """The checkpoint of a driver that was killed after some rounds."""
    folder = tmp_path_factory.mktemp("killed")
    script = folder / "driver.py"
    script.write_text(textwrap.dedent(DRIVER).format(path=sys.path, folder=str(folder / "checkpoint")))
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as driver:
        for line in driver.stdout:
            if int(line) >= 25:
                driver.kill()
                break
        driver.wait()
    assert driver.returncode == -signal.SIGKILL
    return folder / "checkpoint"


def _patiently(fit):
    """Orphaned workers see within seconds that their driver is gone, and give up their folders."""
    for _ in range(40):
        try:
            return fit()
        except ValueError as error:
            if "Another process" not in str(error):
                raise
            time.sleep(0.5)
    raise AssertionError("workers without a driver go on for ever")


@pytest.mark.parametrize("n_workers", [2, 3])
def test_a_killed_driver_goes_on(n_workers, left_behind, tmp_path):
    """Whatever the number of workers is: dual variables that others have saved are dealt out anew."""
    shutil.copytree(left_behind, tmp_path / "checkpoint", ignore=shutil.ignore_patterns("lock"))
    from_nothing, rounds = [], []
    _made().fit(X, Y, cluster=Inline(n_workers), callbacks=[from_nothing.append])
    how = {"checkpoint": tmp_path / "checkpoint", "callbacks": [rounds.append]}
    svm = _made().fit(X, Y, cluster=Inline(n_workers), **how)
    assert rounds[0].number > 5  # savings may take a twentieth of the time: not every round is saved
    assert len(svm.history_) == rounds[-1].number
    assert rounds[0].lower > 2.0 * from_nothing[0].lower
    _is_certified(svm, [record.lower for record in rounds])


def test_workers_without_a_driver_leave_the_checkpoint(left_behind):
    svm = _patiently(lambda: _made().fit(X, Y, cluster=Inline(2), checkpoint=left_behind))
    _is_certified(svm, [svm.certificate_.lower])
