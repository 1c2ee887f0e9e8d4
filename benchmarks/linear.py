"""Linear SVMs side by side with LIBLINEAR and scikit-learn: time at matched quality, threads, growth, memory.

    python benchmarks/linear.py [--quick] [--only NAME] [--C 1] [--repeats 3] [--budget 30] [--resume]

Needs the data folder (see datasets.py). Each cell goes to results/linear.json as soon as it is measured;
`python benchmarks/report.py` turns that file into tables and a figure.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import memory
from matching import Optimum, fastest, reaches
from problems import PROBLEMS, Problem
from results import FOLDER, Results
from runs import Run
from worker import Worker

CS = [0.01, 1.0, 100.0]
TARGETS = [1e-2, 1e-3, 1e-4, 1e-6]
REFERENCE_TOL = 1e-8
# Tolerances of the peers, loosest first. Half-decades: on a coarser ladder a peer would overshoot a
# target and pay for passes that it did not need.
LADDER = [10 ** (-k / 2) for k in range(-1, 15)]
PEERS = ["LIBLINEAR", "scikit-learn"]
LARGEST = ["covtype", "MNIST Crammer-Singer", "news20 one-vs-rest"]
THREADED = [*LARGEST, "news20 binary", "news20 Crammer-Singer"]
SHARES = [1 / 8, 1 / 4, 1 / 2, 1.0]


class Cell:
    """One problem at one C: ours and the peers, at every target."""

    def __init__(self, worker: Worker, C: float, budget: float):
        self.worker, self.C, self.budget = worker, C, budget
        self.runs: dict[str, list[Run]] = {name: [] for name in ["maxmargin", *PEERS]}
        self.spent = dict.fromkeys(self.runs, 0.0)

    def measure(self, targets: list[float], repeats: int) -> dict[str, Any]:
        # Ours comes first, because its bounds say what the optimum is ...
        for tol in [*targets, REFERENCE_TOL]:
            if not self._first_run("maxmargin", tol).finished:
                break
        # ... and is then repeated between the peers: all share the machine's good and bad minutes.
        for target in targets:
            self._descend("LIBLINEAR", target)
            self._descend("scikit-learn", target, first=self._rung_of_liblinear(target))
            self._repeat("maxmargin", target)
        for _ in range(repeats - 1):
            for target in targets:
                for name in self.runs:
                    self._repeat(name, target)
        return {
            "problem": self.worker.problem.name,
            "C": self.C,
            "budget": self.budget,
            "targets": targets,
            "runs": {name: [run.to_json() for run in runs] for name, runs in self.runs.items()},
        }

    @property
    def optimum(self) -> Optimum:
        return Optimum.of(run for runs in self.runs.values() for run in runs)

    def _first_run(self, name: str, tol: float) -> Run:
        # A run may take the budget, and the whole ladder of a solver twice as much.
        run = self.worker.run(name, self.C, tol, min(self.budget, 2 * self.budget - self.spent[name]))
        self.spent[name] += run.seconds[0]
        self.runs[name].append(run)
        outcome = f"objective {run.primal:.10g}" if run.finished else "out of time"
        print(f"    {name:13s} tol {tol:8.2g}  {run.seconds[0]:8.3f} s  {outcome}", flush=True)
        return run

    def _descend(self, name: str, target: float, first: int = 0) -> None:
        """Tightens a peer's tolerance, from rung `first` on, until the target, its cap or its time."""
        runs = self.runs[name]
        tried = {run.tol for run in runs}
        for tol in LADDER[first:]:
            if any(reaches(run, target, self.optimum) for run in runs):
                return
            if runs and (runs[-1].capped or not runs[-1].finished):
                return
            # A tighter run takes no less time than the last one: not started where that is not left.
            if runs and self.spent[name] + runs[-1].seconds[0] > 2 * self.budget:
                return
            if tol not in tried:
                self._first_run(name, tol)

    def _rung_of_liblinear(self, target: float) -> int:
        """Where scikit-learn, the same code without the cap on passes, need not look before.

        That is where LIBLINEAR arrived, or where its cap stopped it; past the end if time stopped it.
        """
        runs = self.runs["LIBLINEAR"]
        run = fastest(runs, target, self.optimum) or runs[-1]
        return LADDER.index(run.tol) if run.finished else len(LADDER)

    def _repeat(self, name: str, target: float) -> None:
        """Times the run that won this target once more, if it is short enough to afford it."""
        run = fastest(self.runs[name], target, self.optimum)
        if run is None or min(run.seconds) > self.budget / 6:
            return
        again = self.worker.run(name, self.C, run.tol, self.budget)
        run.seconds += again.seconds
        run.cpu_seconds += again.cpu_seconds


def table(problem: Problem, C: float, args: argparse.Namespace) -> dict[str, Any]:
    with Worker(problem) as worker:
        return Cell(worker, C, args.budget).measure(args.targets, args.repeats)


def threads(problem: Problem, C: float, args: argparse.Namespace) -> dict[str, Any]:
    """One thread against two at gap 1e-4, in turns."""
    seconds: dict[str, list[float]] = {"maxmargin": [], "maxmargin, 2 threads": []}
    with Worker(problem) as worker:
        for _ in range(max(2, args.repeats)):
            for name, times in seconds.items():
                run = worker.run(name, C, 1e-4, args.budget)
                if not run.finished:
                    return {"problem": problem.name, "C": C, "out_of_time": name, "budget": args.budget}
                times.append(run.seconds[0])
    return {"problem": problem.name, "C": C, "tol": 1e-4, "seconds": seconds}


def growth(problem: Problem, args: argparse.Namespace) -> dict[str, Any]:
    """Seconds to gap 1e-3 at C = 1 for growing parts of the data."""
    points = []
    for share in SHARES:
        with Worker(replace(problem, rows=share)) as worker:
            runs = [worker.run("maxmargin", 1.0, 1e-3, args.budget) for _ in range(args.repeats)]
        if all(run.finished for run in runs):
            seconds = min(run.seconds[0] for run in runs)
            points.append({"share": share, "seconds": seconds, "passes": runs[0].passes})
    return {"problem": problem.name, "tol": 1e-3, "points": points}


def peak_memory(problem: Problem, args: argparse.Namespace) -> dict[str, Any]:
    got = memory.measure(problem, C=1.0, tol=1e-3, limit=args.budget + 60)
    return {"problem": problem.name} | (got or {"out_of_time": args.budget})


def plan(args: argparse.Namespace) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Every cell: its key in the results and how to measure it."""
    problems = [replace(p, rows=2000) if args.quick else p for p in PROBLEMS]
    largest = [p for p in problems if p.name in LARGEST]
    for problem in problems:
        yield f"memory/{problem.name}", lambda p=problem: peak_memory(p, args)
    for C in (1.0, 100.0):
        for problem in problems:
            if problem.name in THREADED:
                yield f"threads/{problem.name}/C={C:g}", lambda p=problem, C=C: threads(p, C, args)
    for problem in largest:
        # Parts of the data make no sense of a subset that is already small.
        if not args.quick:
            yield f"growth/{problem.name}", lambda p=problem: growth(p, args)
    for C in args.C:
        for problem in problems:
            yield f"table/{problem.name}/C={C:g}", lambda p=problem, C=C: table(p, C, args)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="2000 rows, C = 1, one repeat, loose targets")
    parser.add_argument("--only", default="", help="measure only cells whose key contains this text")
    parser.add_argument("--C", type=float, nargs="*", help="values of C (default 0.01 1 100)")
    parser.add_argument("--repeats", type=int, default=3, help="timings of each run")
    parser.add_argument("--budget", type=float, default=30, help="seconds that one run may take")
    parser.add_argument("--resume", action="store_true", help="skip cells that the results already hold")
    args = parser.parse_args()
    args.targets = TARGETS[:3] if args.quick else TARGETS
    args.C = args.C or ([1.0] if args.quick else CS)
    if args.quick:
        args.repeats, args.budget = 1, min(args.budget, 10)
    return args


def main() -> None:
    args = arguments()
    results = Results(FOLDER / ("linear-quick.json" if args.quick else "linear.json"))
    # What a fit would compile in its midst, where it goes over to another method, is no part of its time.
    subprocess.run([sys.executable, "-m", "maxmargin", "compile", "linear", "--quiet"], check=True)
    start = time.perf_counter()
    for key, measure in plan(args):
        if args.only.lower() not in key.lower() or (args.resume and key in results):
            continue
        print(f"{time.perf_counter() - start:7.1f} s  {key}", flush=True)
        results.put(key, measure())
    print(f"{time.perf_counter() - start:7.1f} s  results in {results.path.name}")


if __name__ == "__main__":
    main()
