"""Sweeps on several threads: no update is lost, bounds are those of more than a pool, the setting of BLAS survives."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from maxmargin import LinearSVC, data
from maxmargin.constraints import Blocked
from maxmargin.data.arrays import as_rows
from maxmargin.models import binary, multiclass
from maxmargin.problem import Problem
from maxmargin.regularizers import L2, Bounded
from maxmargin.solvers import BlockAscent, DualCoordinate, parallel, solve, threads
from maxmargin.solvers.certificate import lower_bound
from maxmargin.solvers.searchers import search


def problem(kind, regularizer):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    if kind == "binary":
        c = binary(
            as_rows(X, bias=1.0), np.where(X[:, 0] + rng.normal(size=400) > 0, 1, -1).astype(np.int8), np.ones(1)
        )
    else:
        c = multiclass(as_rows(X), rng.integers(0, 3, size=400).astype(np.int32), 1.0 - np.eye(3), np.ones(1))
    return Problem(c, regularizer)


@pytest.fixture
def eager(monkeypatch):
    """Threads from the first row on."""
    monkeypatch.setattr(parallel, "_WORTH_A_THREAD", 1)


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
@pytest.mark.parametrize("regularizer", [L2(), Bounded(0.0)], ids=["l2", "bounded"])
def test_a_threaded_sweep_keeps_v_and_the_linear_part(eager, kind, regularizer):
    p = problem(kind, regularizer)
    solver = DualCoordinate(0, n_threads=2)
    state = solver.start(p)
    assert parallel.rounds(p, state, 2) > 0
    for _ in range(15):
        before = state.lower
        state = solver.step(p, state)
        assert np.allclose(p.constraints.combine(state.alpha), state.map.v, rtol=1e-9, atol=1e-9)
        assert p.constraints.linear(state.alpha) == pytest.approx(state.linear, rel=1e-9)
        if state.passes <= solver.momentum_after:
            assert state.lower >= before - 1e-9 * abs(before)


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_two_threads_reach_the_same_optimum(eager, kind):
    p = problem(kind, L2())
    two = solve(p, DualCoordinate(0, n_threads=2), tol=1e-6, max_passes=20_000)
    one = solve(p, DualCoordinate(0), tol=1e-6, max_passes=20_000)
    assert two.converged
    assert two.certificate.upper == pytest.approx(one.certificate.upper, rel=1e-5)


def test_threads_are_woken_for_the_values_that_sweeps_read(monkeypatch, rng):
    full = rng.uniform(1.0, 2.0, size=(600, 40))
    with_zeros = np.where(rng.random(full.shape) < 0.1, full, 0.0)
    y = rng.integers(0, 3, size=600).astype(np.int32)
    n_rounds = []
    monkeypatch.setattr(parallel, "_WORTH_A_THREAD", full.size * 3 / 4)
    for X in (full, with_zeros):
        p = Problem(multiclass(as_rows(X), y, 1.0 - np.eye(3), np.ones(1)), L2())
        n_rounds.append(parallel.rounds(p, DualCoordinate(0).start(p), 2))
    assert n_rounds == [2, 0]


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


def test_blas_threads_are_restored_after_overlapping_limits():
    def limits():
        return [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]

    before = limits()
    first_inside, second_inside, first_left = threading.Event(), threading.Event(), threading.Event()

    def first():
        with threads.one_blas_thread():
            first_inside.set()
            second_inside.wait()
        first_left.set()

    def second():
        first_inside.wait()
        with threads.one_blas_thread():
            second_inside.set()
            first_left.wait()

    workers = [threading.Thread(target=f) for f in (first, second)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert limits() == before


def test_nobody_is_at_work_when_an_error_is_raised():
    finished = []

    def work(k):
        if k == 0:
            raise KeyboardInterrupt
        threading.Event().wait(0.2)
        finished.append(k)

    with pytest.raises(KeyboardInterrupt):
        threads.run(work, [0, 1])
    assert finished == [1]


class _Idle:
    """An oracle that finds nothing, in no time."""

    releases_gil = True

    def rivals(self, ids, w):
        return None


def test_a_copy_of_the_weights_serves_as_many_chunks_as_shall_share_it():
    w = np.zeros(1)
    searched_at = []
    for _, copy, _ in search(_Idle(), [np.arange(1)] * 7, lambda: w, 2, sharing=3):
        searched_at.append(copy)
        w += 1.0
    assert [copy is searched_at[i - i % 3] for i, copy in enumerate(searched_at)] == [True] * 7
    # Chunks are handed out two ahead of the one that is taken in, and by then the weights have moved.
    assert [copy[0] for copy in searched_at] == [0.0] * 3 + [1.0] * 3 + [4.0]
