"""Peak memory of a fit beyond its input, measured in a process of its own.

Run as a script by `measure`: the high-water mark of a process only ever rises, so every measurement
needs a fresh one.
"""

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace

from problems import PROBLEMS, Instance, Problem
from resident import resident_peak


def measure(problem: Problem, C: float, tol: float, limit: float) -> dict[str, float] | None:
    """Bytes beyond the input, in all and per example and class; None if the fit took too long."""
    command = [sys.executable, __file__, problem.name, repr(problem.rows or 1.0), repr(C), repr(tol)]
    try:
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout)


def _main(name: str, rows: str, C: str, tol: str) -> None:
    from ours import MaxMargin  # imported in the child only

    problem = next(p for p in PROBLEMS if p.name == name)
    share = float(rows)
    instance = Instance.of(replace(problem, rows=None if share == 1 else share))
    # Imports and compiled kernels are not the fit's memory: a slice brings them in first, by every solver
    # that takes the problem, since a slice may be given to another one than the whole.
    tiny = Instance.of(replace(problem, rows=500))
    for name in ("dual_coordinate", "interior_point"):
        with suppress(ValueError):
            warm = MaxMargin(tiny, solver=name, warm_up=False)
            warm.fit(warm.prepare(float(C), float(tol)))
    solver = MaxMargin(instance, warm_up=False)
    before = resident_peak(reset=True)
    estimator = solver.fit(solver.prepare(float(C), float(tol)))
    beyond = resident_peak() - before
    n = len(instance.y)
    per_example = beyond / (n * instance.n_vectors)
    model = instance.n_vectors * instance.X.shape[1] * 8
    print(
        json.dumps(
            {
                "n": n,
                "classes": instance.n_vectors,
                "beyond_input": beyond,
                "weights_bytes": model,
                "relative_gap": float(estimator.certificate_.relative_gap),
                "bytes_per_example_class": per_example,
                "bytes_per_example_class_without_weights": max(0, beyond - model) / (n * instance.n_vectors),
            }
        )
    )


if __name__ == "__main__":
    _main(*sys.argv[1:])
