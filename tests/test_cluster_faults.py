"""Real processes that are killed and stopped, and drivers that are killed and started again."""

import functools
import importlib.util
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import pytest
from generators import two_classes

import maxmargin as mm
from maxmargin.distributed import LocalProcesses, RayActors, crew
from maxmargin.distributed.ascent import ShardAscent

X, Y = two_classes(np.random.default_rng(0), n=120, d=5, noise=1.0)
PLAIN = ShardAscent(centre=0, momentum_after=10**9, random_state=0)  # many rounds
with_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")


def _made(**settings):
    return mm.LinearSVC(**{"C": 1.0, "random_state": 0, "tol": 1e-6, "solver": PLAIN, **settings})


@functools.cache
def _optimum():
    return _made(solver="dual_coordinate", tol=1e-9).fit(X, Y).certificate_


def _bounds(svm):
    """Both bounds, by NumPy alone."""
    rows, w = np.hstack([X, np.ones((X.shape[0], 1))]), np.append(svm.coef_, svm.intercept_)
    share = svm.dual_coef_.ravel() * Y
    assert (share >= -1e-9).all()
    assert (share <= svm.C * (1 + 1e-9)).all()
    v = svm.dual_coef_.ravel() @ rows
    return share.sum() - 0.5 * v @ v, 0.5 * w @ w + svm.C * np.maximum(0.0, 1.0 - Y * (rows @ w)).sum()


def _is_certified(svm, lowers):
    lower, upper = _bounds(svm)
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
def test_ten_workers_are_killed(kind):
    transport = LocalProcesses(2) if kind == "local" else RayActors("local", 2)
    with transport:
        killer = _Killer(transport, 10)
        svm = _made().fit(X, Y, cluster=transport, callbacks=[killer])
    assert len(set(killer.killed)) == 10
    _is_certified(svm, killer.lowers)
