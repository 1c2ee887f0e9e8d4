"""One solver on the handwritten words: how its objective falls with time and with calls of the oracle.

Every function returns a story, a list of {seconds, calls, lower, upper}: the bounds known by then, `upper` being an
objective that was really evaluated. Compiled code is loaded before the clock starts.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from chain_arrays import ChainArrays
from sequence_data import Words, letters

import maxmargin as mm
from maxmargin.constraints import Searched
from maxmargin.models import Chain
from maxmargin.regularizers import L2
from maxmargin.solvers import choose

N_LABELS = 26
WARM_UP = 50  # words
MANY_EPOCHS = 1_000_000


@dataclass(frozen=True)
class Task:
    """Which words, and the objective 1/2 ||w||^2 + C sum of losses."""

    part: str
    loss: str
    C: float
    words: int | None = None

    def load(self) -> Words:
        return letters(self.part, self.words)

    def problem(self, words: Words) -> mm.Problem:
        """What StructuralSVM makes of a chain model and this data."""
        X, Y = words
        model = Chain(n_labels=N_LABELS, loss=self.loss).sized(X, Y)
        return mm.Problem(Searched(model.oracle(X, Y), np.array([self.C])), L2())

    def arrays(self, words: Words) -> ChainArrays:
        """The same for the peers."""
        return ChainArrays.of(*words, self.loss, N_LABELS)


def _few(words: Words) -> Words:
    X, Y = words
    return X[:WARM_UP], Y[:WARM_UP]


def run_ours(
    task: Task, tol: float, limit: float, n_jobs: int = 1, memory: int | None = None, weigh: bool = False
) -> dict[str, Any]:
    """The whole fit, from a list of pixel matrices to certified weights; `weigh` says to watch its memory."""
    words = task.load()
    few = task.problem(_few(words))
    mm.solve(few, choose(few, "auto", seed=0, threads=n_jobs), tol=1e-2)
    solver = choose(few, "auto", seed=0, threads=n_jobs, memory=memory)
    peak = _peak(weigh)
    start, cpu = time.perf_counter(), time.process_time()
    problem = task.problem(words)
    prepared = time.perf_counter() - start
    solution = mm.solve(
        problem, solver, tol=tol, max_passes=MANY_EPOCHS, callbacks=[lambda record: record.seconds > limit]
    )
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    records = solution.history
    return {
        "tol": tol,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "finished": solution.converged,
        "n": len(words[0]),
        "calls": records[-1].oracle_calls,
        "lower": solution.certificate.lower,
        "upper": solution.certificate.upper,
        "cache_bytes": max(record.bytes for record in records),
        **peak(),
        "story": [_event(prepared + r.seconds, r.oracle_calls, r.lower, r.upper) for r in records],
    }


def run_frank_wolfe(task: Task, tol: float, limit: float) -> dict[str, Any]:
    """Block-coordinate Frank-Wolfe until its own gap is `tol`. Looking at the bounds is not timed, nor counted."""
    from frank_wolfe import FrankWolfe

    words = task.load()
    FrankWolfe(task.arrays(_few(words)), task.C).epoch()
    problem = task.problem(words)
    start = time.perf_counter()
    solver = FrankWolfe(task.arrays(words), task.C)
    seconds = time.perf_counter() - start
    story: list[dict[str, Any]] = []
    upper, gap, epoch, next_look = np.inf, np.inf, 0, 1
    while gap > tol and seconds < limit:
        start = time.perf_counter()
        solver.epoch()
        seconds += time.perf_counter() - start
        epoch += 1
        if epoch >= next_look or seconds >= limit:
            lower = solver.lower()
            upper = min(upper, *(_objective(problem, w) for w in (solver.w, solver.average())))
            gap = (upper - lower) / upper
            story.append(_event(seconds, solver.calls, lower, upper))
            next_look = max(epoch + 1, round(1.1 * epoch))
    return {
        "tol": tol,
        "seconds": seconds,
        "finished": bool(gap <= tol),
        "n": len(words[0]),
        "calls": solver.calls,
        "lower": lower,
        "upper": upper,
        "cache_bytes": solver.nbytes,
        "story": story,
    }


def run_dlib(task: Task, tol: float, limit: float) -> dict[str, Any]:
    """dlib's solver with `tol` as its epsilon; the weights of its rounds are evaluated afterwards."""
    from peer_dlib import DlibChains

    words = task.load()
    DlibChains(task.arrays(_few(words)), task.C, 1.0, limit).solve()
    problem = task.problem(words)
    start = time.perf_counter()
    peer = DlibChains(task.arrays(words), task.C, tol, limit)
    prepared = time.perf_counter() - start
    w, finished = peer.solve()
    seconds = time.perf_counter() - start
    story, upper = [], np.inf
    for when, calls, weights in [*_thinned(peer.rounds), (seconds - prepared, peer.calls, w)]:
        upper = min(upper, _objective(problem, weights))
        story.append(_event(prepared + when, calls, None, upper))
    return {
        "tol": tol,
        "seconds": seconds,
        "finished": finished,
        "n": len(words[0]),
        "calls": peer.calls,
        "upper": _objective(problem, w),
        "story": story,
    }


def _objective(problem: mm.Problem, w: np.ndarray) -> float:
    return problem.regularizer.value(w) + problem.constraints.evaluate(w).total


def _event(seconds: float, calls: int, lower: float | None, upper: float) -> dict[str, Any]:
    return {
        "seconds": round(seconds, 5),
        "calls": calls,
        "lower": lower,
        "upper": float(upper) if np.isfinite(upper) else None,
    }


def _thinned(rounds: list[Any], most: int = 80) -> list[Any]:
    return rounds[:: -(-len(rounds) // most)]


def _peak(wanted: bool) -> Callable[[], dict[str, int]]:
    """Starts to watch the memory of this process; the result tells its peak, and how much of it was added since."""
    if not wanted:
        return dict
    from resident import resident_peak

    before = resident_peak(reset=True)
    return lambda: {"peak_bytes": resident_peak(), "added_bytes": resident_peak() - before}
