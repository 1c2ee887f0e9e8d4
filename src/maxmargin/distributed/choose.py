"""Which solver for a problem on shards."""

from __future__ import annotations

from typing import Any

from ..problem import Problem
from ..protocols import Solver
from ..solvers.choose import SOLVERS, interior_point_pays, refused_interior_point
from ..wording import one_of
from .ascent import ShardAscent
from .interior import ShardInterior

_OPEN = ("auto", "shard_ascent")


def choose_sharded(
    problem: Problem, name: str | Solver, *, tol: float, seed: Any = None, threads: int = 1, warm: bool = False
) -> Solver:
    """The solver of that name; a solver object is returned as it is."""
    if hasattr(name, "start") and hasattr(name, "step"):
        return name
    one_of("solver", name, sorted(SOLVERS) if problem.constraints.closed else _OPEN, " or a Solver on a cluster")
    if getattr(problem.regularizer, "pure", False):
        raise ValueError(
            f"{problem.regularizer!r} is not strongly convex, which training over shards relies on. Give the group "
            "norm some l2: GroupNorm(groups, weights, l2=0.01)."
        )
    if name == "interior_point" or (name == "auto" and problem.constraints.closed and not warm):
        solver = ShardInterior(n_threads=threads)
        if solver.handles(problem) and (name == "interior_point" or interior_point_pays(problem, tol)):
            return solver
        if name == "interior_point":
            raise refused_interior_point(problem)
    return ShardAscent(random_state=seed, n_threads=threads)
