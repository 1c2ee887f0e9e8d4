"""Threads that share a sweep over a pool: v and the linear part of the dual objective belong to more than the pool."""

import numpy as np
import pytest

from maxmargin import LinearSVC, Problem, data
from maxmargin.constraints import Blocked
from maxmargin.data.arrays import as_rows
from maxmargin.models import binary
from maxmargin.regularizers import L2
from maxmargin.solvers import BlockAscent, parallel
from maxmargin.solvers.certificate import lower_bound


@pytest.fixture
def many_threads(monkeypatch):
    monkeypatch.setattr(parallel, "_WORTH_A_THREAD", 0)
    monkeypatch.setattr(
        parallel, "rounds", lambda problem, state, threads: 2 if threads > 1 and state.active > 8 else 0
    )


def test_the_bound_is_that_of_the_whole_problem(rng, many_threads):
    X = rng.normal(size=(600, 5))
    y = np.where(X[:, 0] + rng.normal(size=600) > 0, 1, -1).astype(np.int8)
    C = np.array([3.0])
    source = data.open(X, labels=y, chunk_rows=50)
    blocks = Blocked(source, lambda chunk: binary(as_rows(chunk.x), chunk.y.astype(np.int8), C), 5)
    whole = Problem(binary(as_rows(X), y, C), L2())
    solver = BlockAscent(pool=8000, random_state=0, n_threads=2)
    state = solver.start(Problem(blocks, L2()))
    for _ in range(8):
        state = solver.step(Problem(blocks, L2()), state)
        assert state.lower == pytest.approx(lower_bound(whole, state.alpha), rel=1e-9)


def test_streams_state_no_bound_that_is_not_true(rng, many_threads):
    X = rng.normal(size=(1500, 400))
    y = X[:, 0] + rng.normal(size=1500) > 0
    svm = LinearSVC(C=0.1, n_jobs=2, memory="1MB", random_state=0)
    for start in range(0, 1500, 100):
        svm.partial_fit(X[start : start + 100], y[start : start + 100], classes=[False, True])
        seen = svm.certify(X[: start + 100], y[: start + 100])
        assert svm.certificate_.lower == pytest.approx(seen.lower, rel=1e-9)
        assert seen.lower <= seen.upper
