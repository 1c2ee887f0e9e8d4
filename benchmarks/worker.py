"""A child process that runs solvers on one problem and can be stopped when its time is up.

Compiled solvers do not listen to signals while they work, so a time budget needs a process to end.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from problems import Instance, Problem
from runs import Run, Solver, timed

GRACE = 20  # seconds for an interrupted run to hand over what it has


def _solvers() -> dict[str, Callable[[Instance], Solver]]:
    # Imported in the child only: the parent stays small and never starts a compiler or a thread pool.
    from ours import MaxMargin
    from peers import Liblinear, ScikitLearn

    return {
        "maxmargin": MaxMargin,
        "maxmargin, 2 threads": partial(MaxMargin, n_jobs=2),
        "LIBLINEAR": Liblinear,
        "scikit-learn": ScikitLearn,
    }


def _serve(problem: Problem, pipe: Connection) -> None:
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=1)
    instance = Instance.of(problem)
    available, ready = _solvers(), {}
    while True:
        name, C, tol = pipe.recv()
        if name not in ready:
            ready[name] = available[name](instance)
        solver = ready[name]
        prepared = solver.prepare(C, tol)
        pipe.send("started")
        try:
            fitted, wall, cpu = timed(solver, prepared)
        except KeyboardInterrupt:
            return
        pipe.send("finished")
        got = solver.outcome(fitted)
        pipe.send(
            Run(
                name,
                tol,
                [wall],
                [cpu],
                primal=instance.primal(got.weights, C),
                lower=got.lower,
                upper=got.upper,
                passes=got.passes,
                capped=got.capped,
                history=got.history,
            )
        )


class Worker:
    """Runs named solvers on one problem; preparation and evaluation do not count against the limit."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self._process: Any = None
        self._pipe: Any = None

    def run(self, solver: str, C: float, tol: float, limit: float) -> Run:
        if limit <= 0:
            return Run.out_of_time(solver, tol, 0.0)
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(self.problem, theirs), daemon=True)
            self._process.start()
            theirs.close()
        self._pipe.send((solver, C, tol))
        self._receive()
        if not self._pipe.poll(limit):
            return self._late(Run.out_of_time(solver, tol, limit))
        self._receive()
        return self._receive()

    def _late(self, run: Run) -> Run:
        """Stops a run; ours answers an interrupt with the bounds it has, which help to know the optimum."""
        if run.solver.startswith("maxmargin"):
            os.kill(self._process.pid, signal.SIGINT)
            try:
                if self._pipe.poll(GRACE):
                    self._pipe.recv()
                    left = self._pipe.recv()
                    return replace(run, primal=left.primal, lower=left.lower, upper=left.upper)
            except EOFError:
                pass
        self.close()
        return run

    def _receive(self) -> Any:
        try:
            return self._pipe.recv()
        except EOFError:
            self.close()
            raise RuntimeError(f"The solver process of {self.problem.name!r} died; see above.") from None

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
