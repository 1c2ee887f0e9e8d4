"""Which solver for which problem."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..problem import Problem
from ..protocols import Solver
from .dual_coordinate import DualCoordinate
from .interior_point import InteriorPoint
from .proximal_point import ProximalPoint

_BYTES_PER_DUAL = 8
_BYTES_PER_ROW = 8  # norms and order of visits


def interior_point_pays(problem: Problem) -> bool:
    """Whether Newton steps with their d×d matrix come cheaper than the passes that coordinate steps would need."""
    return False


def _interior_point(problem: Problem, seed: Any, threads: int, momentum: bool) -> Solver:
    solver = InteriorPoint(n_threads=threads)
    if not solver.handles(problem):
        raise ValueError(
            "solver='interior_point' takes binary, one-vs-rest and regression problems with an l2 or Gaussian "
            f"regularizer; this one has {type(problem.constraints).__name__} constraints and "
            f"{problem.regularizer!r}. Use solver='dual_coordinate' or 'auto'."
        )
    return solver


def _dual_coordinate(problem: Problem, seed: Any, threads: int, momentum: bool) -> Solver:
    inner = DualCoordinate(random_state=seed, n_threads=threads, momentum=momentum)
    return ProximalPoint(inner) if getattr(problem.regularizer, "pure", False) else inner


def _auto(problem: Problem, seed: Any, threads: int, momentum: bool) -> Solver:
    if momentum and interior_point_pays(problem):
        return _interior_point(problem, seed, threads, momentum)
    return _dual_coordinate(problem, seed, threads, momentum)


SOLVERS: dict[str, Callable[[Problem, Any, int, bool], Solver]] = {
    "auto": _auto,
    "dual_coordinate": _dual_coordinate,
    "interior_point": _interior_point,
}


def choose(
    problem: Problem, name: str | Solver, *, seed: Any = None, threads: int = 1, memory: int | None = None
) -> Solver:
    """The solver of that name, fitted to the problem; a solver object is returned as it is.

    ``memory`` bounds the bytes of working memory beyond data and weights. Momentum needs a second copy of the
    dual variables and is given up first; below what plain steps need there is nothing left to give up.
    """
    if hasattr(name, "start") and hasattr(name, "step"):
        return name  # type: ignore[return-value]
    if name not in SOLVERS:
        raise ValueError(f"solver must be one of {sorted(SOLVERS)} or a Solver, got {name!r}.")
    momentum = True
    if memory is not None:
        duals = math.prod(problem.constraints.dual_shape)
        least = _BYTES_PER_DUAL * duals + _BYTES_PER_ROW * len(problem.constraints.rows)
        if memory < least:
            raise ValueError(f"memory={memory} bytes is too little: this problem needs at least {least} bytes.")
        momentum = memory >= least + _BYTES_PER_DUAL * duals
    return SOLVERS[name](problem, seed, threads, momentum)
