"""Which solver for which problem: one function, ``choose``, and one table, ``SOLVERS``."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..constraints.description import description_of
from ..constraints.duals_on_disk import zeros_on_disk
from ..problem import Problem
from ..protocols import Seed, Solver
from ..validation import check_object, lacking, one_of
from .block_ascent import BlockAscent
from .cutting_plane import CuttingPlane
from .dual_coordinate import DualCoordinate
from .frank_wolfe import FrankWolfe
from .interior_point import MOST_WEIGHTS, InteriorPoint
from .oracle_ascent import OracleAscent
from .perceptron import Perceptron
from .proximal_point import ProximalAscent, ProximalPoint
from .smoothed_newton import SmoothedNewton
from .subgradient import Subgradient
from .switching import Switching

_BYTES_PER_DUAL = 8
_BYTES_PER_ROW = 8  # norms and order of visits
_COPIES_OF_WEIGHTS = 6  # v, w, momentum's v, the best, those of a reading's beginning, one in passing
_POOL = 0.9  # of what is left; the rest is for what is passing through
_BLOCKS_AT_A_TIME = 4  # one in use, those read ahead, and what is kept per row of them
_BYTES_PER_POINT = 24  # of the interior point: three numbers per example, and a copy of the dual variables
_ARRAYS = 20  # numbers per constraint that are in use at once where steps are array code
_NEWTON_MATRICES = 6
_STEPS = 20  # of Newton, more or less
_BRIEF = 0.05  # seconds of Newton steps that are worth no thought
_TRIAL = 0.08  # of what Newton steps cost: passes that come first where there are several classes
_SECONDS_PER_PASS = 0.2e-3  # of coordinate steps, beyond its visits: Python, and small arrays
_MANY_WEIGHTS = 1000  # beyond this even the matrix alone is a burden


@dataclass(frozen=True)
class Means:
    """What a solver is given to work with.

    Parameters
    ----------
    tol : float
        The relative duality gap that will be asked for.
    seed : int, Generator or None
    threads : int
        Threads, or processes where a search is plain Python.
    memory : int or None
        Bytes. Of a problem in memory: what may be used beyond data and weights. In blocks: weights, dual variables,
        the blocks in use and the pool together, half of the machine's memory by default; dual variables that would
        take more than a quarter of it are kept in a file in ``scratch``. Of a search: what is kept of it.
    warm : bool
        Whether there are dual variables to start from, or will be for all but the first of several problems: then
        coordinate passes go first, because Newton steps make no use of them.
    centre : array or None
        Weights to start from, for regularizers that dual variables alone do not tell the weights of.
    scratch : str or None
        A folder for temporary files.
    """

    tol: float = 1e-3
    seed: Seed = None
    threads: int = 1
    memory: int | None = None
    warm: bool = False
    centre: np.ndarray | None = None
    scratch: str | None = None


def newton_seconds(problem: Problem) -> float:
    """What Newton steps with their d×d matrix come to: their number hardly varies.

    A cost model, fitted to measured runs, as is ``pass_seconds``: the same problem is always solved in the same way.
    """
    what, d, n = description_of(problem.constraints), problem.n_weights, problem.constraints.n_examples
    factor = _STEPS * d**3 / 20e9
    if what.scalar:
        matrix = d * d / 40e9 if what.dense else what.stored * what.stored / 2e9
        return (14 if what.loss.bounded else 6) * n * (0.28e-6 + matrix) * (1.0 if what.dense else 3.0) + factor
    # A product of the rows with themselves for every pair of classes, or for every constraint.
    products = 0.5 * n * d * d if what.columns > 1 else n * what.slots_per_example * d * d
    return _STEPS * (1e-3 + 0.5e-6 * n * what.slots_per_example + products / 10e9) + factor


def pass_seconds(problem: Problem) -> float:
    """What one pass of coordinate steps over all examples comes to."""
    what, n = description_of(problem.constraints), problem.constraints.n_examples
    visit = 90e-9 + 0.6e-9 * what.stored if what.dense else 45e-9 + 1.5e-9 * what.stored
    if what.columns > 1:  # classes are close to each other in memory, and most examples soon sleep
        return 0.5 * n * visit * math.sqrt(what.slots_per_example)
    return n * visit * (1.0 if what.scalar else max(what.slots_per_example - 1.0, 1.0))


def interior_point_pays(problem: Problem, tol: float) -> bool:
    """Whether Newton steps come cheaper than the passes that coordinate steps would need.

    Passes are cheap, but their number grows with √(C‖x‖²), the more so the fewer features there are. Losses without a
    bound, which leave no variable at one, need three times as many, proximal steps some ten times. (Fitted to dense and
    sparse data, 9 to 300 features, C from 0.01 to 100.)
    """
    d = problem.n_weights
    if d > _MANY_WEIGHTS or not InteriorPoint().handles(problem):
        return False
    what = description_of(problem.constraints)
    stiffness = what.budget * what.squared_norm * what.columns
    passes = 4 + (100 if what.loss.bounded else 300) * math.sqrt(stiffness / d) * math.log10(1.0 / min(tol, 0.1)) / 3
    return newton_seconds(problem) < passes * pass_seconds(problem) * (10 if problem.pure else 1)


def choose(problem: Problem, name: str | Solver = "auto", **means: Any) -> Solver:
    """The solver of that name, fitted to the problem and to the means; a solver object is returned as it is.

    ``means`` are the fields of ``Means``, by their names.
    """
    check_object("solver", name)
    if not isinstance(name, str) and not lacking(name, "start", "step"):
        return name
    table = SOLVERS[problem.constraints.held_in]
    return table[one_of("solver", name, sorted(table), " or a Solver")](problem, Means(**means))


def check_strongly_convex(problem: Problem, who: str, instead: str = "Give") -> None:
    if problem.pure:
        raise ValueError(
            f"{problem.regularizer!r} is not strongly convex, which {who} relies on. {instead} the group norm some l2: "
            "GroupNorm(groups, weights, l2=0.01)."
        )


def able(solver: InteriorPoint, problem: Problem) -> InteriorPoint:
    """The interior point that was asked for by name, if it can take the problem."""
    if not solver.handles(problem):
        raise ValueError(
            f"solver='interior_point' takes problems of at most {MOST_WEIGHTS} weights under bounds, group norms and "
            f"a quadratic, whose covariance, if full, is positive definite; this one has "
            f"{description_of(problem.constraints).kind} constraints, {problem.n_weights} weights and "
            f"{problem.regularizer!r}. Use solver='dual_coordinate' or 'auto'."
        )
    return solver


def _check_memory(memory: int | None, needed: int, need: str) -> None:
    if memory is not None and memory < needed:
        raise ValueError(f"memory={memory} bytes is too little: {need.format(needed)}.")


_STEPS_NEED = "this problem needs at least {} bytes"
_NEWTON_NEEDS = "solver='interior_point' needs {} bytes here"


def _dual_coordinate(problem: Problem, means: Means) -> DualCoordinate | ProximalPoint:
    duals = _BYTES_PER_DUAL * math.prod(problem.in_memory.dual_shape)
    copies = 2 if problem.pure else 1  # the proximal point keeps the best ones
    least = copies * duals + _BYTES_PER_ROW * len(problem.in_memory.rows)
    _check_memory(means.memory, least, _STEPS_NEED)
    momentum = means.memory is None or means.memory >= least + duals  # one more copy, which is given up first
    inner = DualCoordinate(random_state=means.seed, n_threads=means.threads, momentum=momentum)
    return ProximalPoint(inner, centre=means.centre) if problem.pure else inner


def _interior_point(problem: Problem, means: Means) -> Solver:
    solver = able(InteriorPoint(n_threads=means.threads), problem)
    _check_memory(means.memory, _newton_bytes(problem), _NEWTON_NEEDS)
    return solver


def _auto(problem: Problem, means: Means) -> Solver:
    passes, steps = _dual_coordinate(problem, means), InteriorPoint(n_threads=means.threads)
    fits = steps.handles(problem) and (means.memory is None or _newton_bytes(problem) <= means.memory)
    if not fits:
        return passes
    newton = newton_seconds(problem)
    after = newton / (_SECONDS_PER_PASS + pass_seconds(problem))
    if not means.warm and (newton <= _BRIEF or interior_point_pays(problem, means.tol)):
        # Classes that can be told apart take few passes however large C is, which their scale does not say.
        several = description_of(problem.constraints).columns > 1
        return Switching(passes, steps, _TRIAL * after if several and newton > _BRIEF else 0.0)
    return Switching(passes, steps, after)


def _newton_bytes(problem: Problem) -> int:
    """What the interior point takes beyond data in memory, about."""
    what, n, d = description_of(problem.constraints), problem.constraints.n_examples, problem.n_weights
    matrices = _NEWTON_MATRICES * 8 * d**2
    if what.scalar:
        return _BYTES_PER_POINT * n + matrices
    rows = what.slots_per_example * d if what.columns == 1 else what.stored * 2
    return int(8 * n * (_ARRAYS * what.slots_per_example + 2 * rows)) + matrices


def _block_ascent(problem: Problem, means: Means) -> BlockAscent:
    check_strongly_convex(problem, "coordinate ascent in blocks")
    return blocks_within(problem, means.memory, seed=means.seed, threads=means.threads, scratch=means.scratch)


def _interior_point_of_blocks(problem: Problem, means: Means) -> Solver:
    solver = able(InteriorPoint(n_threads=means.threads), problem)
    _check_memory(_allowed(means.memory), _interior_bytes(problem, means), _NEWTON_NEEDS)
    return solver


def _auto_for_blocks(problem: Problem, means: Means) -> Solver:
    if problem.pure:  # there are no coordinate steps in blocks for it
        wanted = InteriorPoint().handles(problem)
    else:
        wanted = not means.warm and interior_point_pays(problem, means.tol)
    if wanted and _interior_bytes(problem, means) <= _allowed(means.memory):
        return InteriorPoint(n_threads=means.threads)
    return _block_ascent(problem, means)


def _interior_bytes(problem: Problem, means: Means) -> int:
    """What the interior point takes beyond the data, where that is read in blocks."""
    matrices = _NEWTON_MATRICES * means.threads * 8 * problem.n_weights**2
    return _BYTES_PER_POINT * problem.in_blocks.n_examples + _BLOCKS_AT_A_TIME * problem.in_blocks.largest + matrices


def _oracle_ascent(problem: Problem, means: Means) -> Solver:
    inner = OracleAscent(random_state=means.seed, n_jobs=means.threads, memory=means.memory)
    return ProximalAscent(inner, centre=means.centre) if problem.pure else inner


Maker = Callable[[Problem, Means], Solver]


def _check_reference(problem: Problem, means: Means, name: str) -> None:
    """Whether a solver that is there to compare with can take the problem."""
    if means.memory is not None:
        raise ValueError(f"solver={name!r} cannot keep to a limit of memory; use 'auto'.")
    check_strongly_convex(problem, f"solver={name!r}", "Use 'auto', or give")


def _cutting_plane(problem: Problem, means: Means) -> Solver:
    _check_reference(problem, means, "cutting_plane")
    return CuttingPlane(n_jobs=means.threads)


def _one_by_one(name: str, solver: Callable[..., Solver]) -> Maker:
    """A solver that visits examples one by one, in any order."""

    def make(problem: Problem, means: Means) -> Solver:
        _check_reference(problem, means, name)
        if problem.searched.in_views or problem.searched.elsewhere is not None:
            raise ValueError(
                f"solver={name!r} visits examples one by one, in any order: they must be in the memory of this "
                "process. Use 'auto', or load the data."
            )
        return solver(random_state=means.seed, n_jobs=means.threads)

    return make


def _smoothed_newton(problem: Problem, means: Means) -> SmoothedNewton:
    return SmoothedNewton()


SOLVERS: dict[str, dict[str, Maker]] = {
    "memory": {"auto": _auto, "dual_coordinate": _dual_coordinate, "interior_point": _interior_point},
    "blocks": {
        "auto": _auto_for_blocks,
        "dual_coordinate": _block_ascent,
        "interior_point": _interior_point_of_blocks,
    },
    "oracle": {
        "auto": _oracle_ascent,
        "oracle_ascent": _oracle_ascent,
        "cutting_plane": _cutting_plane,
        "frank_wolfe": _one_by_one("frank_wolfe", FrankWolfe),
        "subgradient": _one_by_one("subgradient", Subgradient),
        "perceptron": _one_by_one("perceptron", Perceptron),
    },
    "groups": {"auto": _smoothed_newton, "newton": _smoothed_newton},
}
"""Who holds the constraints, the names that users may give there, and who makes the solver. ``distributed`` adds its
own rows."""


def blocks_within(
    problem: Problem, memory: int | None, *, seed: Seed = None, threads: int = 1, scratch: str | None = None
) -> BlockAscent:
    """The ascent over blocks that keeps to so many bytes, or to half of the machine's memory."""
    blocked = problem.in_blocks
    memory = _allowed(memory)
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


def _allowed(memory: int | None) -> int:
    """So many bytes, or half of the machine's memory."""
    if memory is not None:
        return memory
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 2**31
