"""Which solver for which problem."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np

from ..constraints.duals_on_disk import zeros_on_disk
from ..problem import Problem
from ..protocols import Solver
from ..wording import check_object, one_of
from .block_ascent import BlockAscent
from .cutting_plane import CuttingPlane
from .dual_coordinate import DualCoordinate
from .interior_point import InteriorPoint, described
from .oracle_ascent import OracleAscent
from .proximal_ascent import ProximalAscent
from .proximal_point import ProximalPoint

_BYTES_PER_DUAL = 8
_BYTES_PER_ROW = 8  # norms and order of visits
_COPIES_OF_WEIGHTS = 6  # v, w, momentum's v, the best, those of a reading's beginning, one in passing
_POOL = 0.9  # of what is left; the rest is for what is passing through
_BLOCKS_AT_A_TIME = 4  # one in use, those read ahead, and what is kept per row of them
_BYTES_PER_POINT = 24  # of the interior point: three numbers per example, and a copy of the dual variables
_NEWTON_MATRICES = 6
_MANY_WEIGHTS = 1000  # beyond this even the matrix alone is a burden


def interior_point_pays(problem: Problem, tol: float) -> bool:
    """Whether Newton steps with their d×d matrix come cheaper than the passes that coordinate steps would need.

    A cost model in seconds, fitted to measured runs (dense and sparse, 9 to 300 features, C from 0.01 to 100).
    Newton steps: their number hardly varies, rows are costly (divisions), the matrix costs n·d². Coordinate
    steps: passes are cheap, but their number grows with √(C‖x‖²), the more so the fewer features there are, and
    squared losses, which leave no variable at a bound, need three times as many.
    """
    if problem.n_weights > _MANY_WEIGHTS or not InteriorPoint().handles(problem):
        return False
    what, d, n = described(problem), problem.n_weights, problem.constraints.n_examples
    matrix = d * d / 40e9 if what.dense else what.stored * what.stored / 2e9
    newton = (6 if what.squared else 14) * n * (0.28e-6 + matrix) * (1.0 if what.dense else 3.0)
    stiffness = what.budget * what.squared_norm
    passes = 4 + (300 if what.squared else 100) * math.sqrt(stiffness / d) * math.log10(1.0 / min(tol, 0.1)) / 3
    visit = 90e-9 + 0.6e-9 * what.stored if what.dense else 45e-9 + 1.5e-9 * what.stored
    return newton < passes * n * visit


def refused_interior_point(problem: Problem) -> ValueError:
    """What to say where the interior point was asked for and cannot take the problem."""
    return ValueError(
        "solver='interior_point' takes binary, one-vs-rest, regression and ranking problems of at most 5000 "
        f"weights with an l2 or Gaussian regularizer; this one has {described(problem).kind} "
        f"constraints, {problem.n_weights} weights and {problem.regularizer!r}. "
        "Use solver='dual_coordinate' or 'auto'."
    )


def _interior_point(problem: Problem, seed: Any, threads: int, momentum: bool, tol: float) -> Solver:
    solver = InteriorPoint(n_threads=threads)
    if not solver.handles(problem):
        raise refused_interior_point(problem)
    return solver


def _dual_coordinate(problem: Problem, seed: Any, threads: int, momentum: bool, tol: float) -> Solver:
    inner = DualCoordinate(random_state=seed, n_threads=threads, momentum=momentum)
    return ProximalPoint(inner) if getattr(problem.regularizer, "pure", False) else inner


def _auto(problem: Problem, seed: Any, threads: int, momentum: bool, tol: float) -> Solver:
    if momentum and interior_point_pays(problem, tol):
        return _interior_point(problem, seed, threads, momentum, tol)
    return _dual_coordinate(problem, seed, threads, momentum, tol)


SOLVERS: dict[str, Callable[[Problem, Any, int, bool, float], Solver]] = {
    "auto": _auto,
    "dual_coordinate": _dual_coordinate,
    "interior_point": _interior_point,
}


def choose(
    problem: Problem,
    name: str | Solver,
    *,
    tol: float = 1e-3,
    seed: Any = None,
    threads: int = 1,
    memory: int | None = None,
    warm: bool = False,
    centre: np.ndarray | None = None,
) -> Solver:
    """The solver of that name, fitted to the problem; a solver object is returned as it is.

    ``memory`` bounds the bytes of working memory beyond data and weights. Momentum needs a second copy of the
    dual variables and is given up first; below what plain steps need there is nothing left to give up. ``centre`` are
    weights to start from, for regularizers that dual variables alone do not tell the weights of.
    """
    check_object("solver", name)
    if hasattr(name, "start") and hasattr(name, "step"):
        return name
    name = str(one_of("solver", name, sorted(SOLVERS), " or a Solver"))
    if name == "auto" and warm:
        name = "dual_coordinate"  # the interior point makes no use of dual variables to start from
    momentum = True
    if memory is not None:
        duals = math.prod(problem.closed.dual_shape)
        copies = 2 if getattr(problem.regularizer, "pure", False) else 1  # the proximal point keeps the best ones
        least = _BYTES_PER_DUAL * copies * duals + _BYTES_PER_ROW * len(problem.closed.rows)
        if memory < least:
            raise ValueError(f"memory={memory} bytes is too little: this problem needs at least {least} bytes.")
        momentum = memory >= least + _BYTES_PER_DUAL * duals
    solver: Any = SOLVERS[name](problem, seed, threads, momentum, tol)
    return replace(solver, centre=centre) if hasattr(solver, "centre") else solver


def choose_blocked(
    problem: Problem,
    name: str | Solver,
    *,
    tol: float = 1e-3,
    seed: Any = None,
    threads: int = 1,
    memory: int | None = None,
    warm: bool = False,
    scratch: str | None = None,
) -> Solver:
    """The solver of that name for problems in blocks; a solver object is returned as it is.

    ``memory`` bounds weights, dual variables, the blocks in use and the pool together (half of the machine's memory
    by default). Dual variables that would take more than a quarter of it are kept in a file in ``scratch``.
    """
    check_object("solver", name)
    if hasattr(name, "start") and hasattr(name, "step"):
        return name
    name = str(one_of("solver", name, sorted(SOLVERS), " or a Solver"))
    if getattr(problem.regularizer, "pure", False):
        raise ValueError(
            f"{problem.regularizer!r} is not strongly convex, which training in blocks relies on. Give the group norm "
            "some l2: GroupNorm(groups, weights, l2=0.01)."
        )
    blocked = problem.blocked
    memory = memory if memory is not None else _half_of_the_machine()
    if name == "interior_point" or (name == "auto" and not warm and interior_point_pays(problem, tol)):
        solver = _interior_point(problem, seed, threads, True, tol)
        matrices = _NEWTON_MATRICES * threads * 8 * problem.n_weights**2
        needed = _BYTES_PER_POINT * blocked.n_examples + _BLOCKS_AT_A_TIME * blocked.largest + matrices
        if needed <= memory:
            return solver
        if name == "interior_point":
            raise ValueError(f"memory={memory} bytes is too little: solver='interior_point' needs {needed} bytes here.")
    return blocks_within(problem, memory, seed=seed, threads=threads, scratch=scratch)


def blocks_within(
    problem: Problem, memory: int | None, *, seed: Any = None, threads: int = 1, scratch: str | None = None
) -> BlockAscent:
    """The ascent over blocks that keeps to so many bytes, or to half of the machine's memory."""
    blocked = problem.blocked
    memory = memory if memory is not None else _half_of_the_machine()
    examples = math.prod(blocked.dual_shape)
    in_memory = _BYTES_PER_DUAL * examples <= memory // 4
    fixed = _COPIES_OF_WEIGHTS * 8 * problem.n_weights + _BLOCKS_AT_A_TIME * blocked.largest + blocked.n_examples
    fixed += _BYTES_PER_DUAL * examples if in_memory else 0
    least = fixed + max(blocked.largest, 2**16)
    if memory < least:
        raise ValueError(
            f"memory={memory} bytes is too little: {problem.n_weights} weights, {blocked.n_examples} examples and "
            f"blocks of up to {blocked.largest} bytes need at least {least} bytes ({math.ceil(least / 2**20)}MB)."
        )
    duals = np.zeros if in_memory else functools.partial(zeros_on_disk, folder=scratch)
    return BlockAscent(
        pool=max(least - fixed, int(_POOL * (memory - fixed))), random_state=seed, n_threads=threads, duals=duals
    )


def _half_of_the_machine() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 2**31


def choose_stream(
    problem: Problem, name: str | Solver, *, seed: Any = None, n_jobs: int = 1, memory: int | None = None
) -> OracleAscent:
    """The solver of that name, if it can learn from a stream."""
    solver = choose_open(problem, name, seed=seed, n_jobs=n_jobs, memory=memory)
    if not hasattr(solver, "absorb"):
        raise ValueError(f"partial_fit needs solver='auto' or 'oracle_ascent', got {name!r}.")
    return cast(OracleAscent, solver)


def choose_open(
    problem: Problem,
    name: str | Solver,
    *,
    seed: Any = None,
    n_jobs: int = 1,
    memory: int | None = None,
    centre: np.ndarray | None = None,
) -> Solver:
    """The solver of that name for problems whose constraints are searched for; a solver object is returned as it is.

    ``centre`` are weights to start from, for regularizers that dual variables alone do not tell the weights of.
    """
    check_object("solver", name)
    if hasattr(name, "start") and hasattr(name, "step"):
        return name
    pure = getattr(problem.regularizer, "pure", False)
    if name in ("auto", "oracle_ascent"):
        inner = OracleAscent(random_state=seed, n_jobs=n_jobs, memory=memory)
        return ProximalAscent(inner, centre=centre) if pure else inner
    if name == "cutting_plane":
        if memory is not None:
            raise ValueError("solver='cutting_plane' cannot keep to a limit of memory; use 'auto'.")
        if pure:
            raise ValueError(
                f"{problem.regularizer!r} is not strongly convex, which solver='cutting_plane' relies on. Use 'auto', "
                "or give the group norm some l2: GroupNorm(groups, weights, l2=0.01)."
            )
        return CuttingPlane(random_state=seed, n_jobs=n_jobs)
    return one_of("solver", name, ("auto", "cutting_plane", "oracle_ascent"), " or a Solver")
