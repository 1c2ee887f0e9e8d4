"""Linear SVMs on 1, 2, 4, ... threads of one machine, as many as it has cores.

    python benchmarks/cores.py [--most 16] [--repeats 3]

Whole fits to a certified gap of 1e-4 that took turns; minima of wall-clock seconds. The table goes to
results/cores.md. Data sets are read as linear.py reads them.
"""

import argparse
import os
import time

import numpy as np
from linear import THREADED
from ours import MaxMargin
from problems import PROBLEMS, Instance
from report import environment_text, markdown_table
from results import FOLDER, environment

_INTRODUCTION = """\
# Linear SVMs on many cores

Wall-clock seconds of whole fits to a certified gap of 1e-4 with `n_jobs` threads, and in brackets how many times faster
than on one. Fits took turns; minima. Each class of one-vs-rest is a problem of its own; one binary or Crammer–Singer
problem is given threads only where its passes have work enough for them. `python benchmarks/cores.py`.

"""


def seconds(name: str, C: float, counts: list[int], repeats: int) -> list[float]:
    """The best time of each number of threads."""
    instance = Instance.of(next(problem for problem in PROBLEMS if problem.name == name))
    fits = [MaxMargin(instance, n_jobs=n) for n in counts]
    best = np.full(len(counts), np.inf)
    for _ in range(repeats):
        for k, ours in enumerate(fits):
            estimator = ours.prepare(C, 1e-4)
            start = time.perf_counter()
            ours.fit(estimator)
            best[k] = min(best[k], time.perf_counter() - start)
    return best.tolist()


def main() -> None:
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=cores, help="the most threads (default: as many as cores)")
    parser.add_argument("--repeats", type=int, default=3, help="timings of each fit")
    args = parser.parse_args()
    counts = [2**k for k in range(args.most.bit_length())]
    rows = []
    for C in (1.0, 100.0):
        for name in THREADED:
            times = seconds(name, C, counts, args.repeats)
            gains = [f"{t:.3g} s ({times[0] / t:.1f}×)" for t in times[1:]]
            rows.append([name, f"{C:g}", f"{times[0]:.3g} s", *gains])
            print(" | ".join(rows[-1]), flush=True)
    header = ["problem", "C", *(f"n_jobs={n}" for n in counts)]
    text = _INTRODUCTION + environment_text(environment()) + "\n" + markdown_table(header, rows)
    (FOLDER / "cores.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
