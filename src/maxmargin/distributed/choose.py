"""Which solver for a problem on shards: the row of the table ``solvers.choose.SOLVERS`` for workers."""

from __future__ import annotations

from ..problem import Problem
from ..protocols import Solver
from ..solvers.choose import SOLVERS, Means, able, check_strongly_convex, interior_point_pays
from .ascent import ShardAscent
from .interior import ShardInterior


def _shard_ascent(problem: Problem, means: Means) -> Solver:
    check_strongly_convex(problem, "training over shards")
    return ShardAscent(random_state=means.seed, n_threads=means.threads)


def _shard_interior(problem: Problem, means: Means) -> Solver:
    return able(ShardInterior(n_threads=means.threads), problem)


def _auto(problem: Problem, means: Means) -> Solver:
    if not means.warm and interior_point_pays(problem, means.tol):
        return _shard_interior(problem, means)
    return _shard_ascent(problem, means)


SOLVERS["workers"] = {"auto": _auto, "dual_coordinate": _shard_ascent, "interior_point": _shard_interior}
