"""Which parts of a pool are worth having: those that a classifier with a price on every part keeps.

    minimise over u, b   λ Σ_j ‖u_j‖ + ½‖b‖² + Σ_i max_k (1[k ≠ y_i] + s_ik − s_iy),    s_ik = b_k + Σ_j u_jk · r_ij

u_j are the weights of part j for all classes and regions, r_ij what it responds in image i, less its mean over images.
Useless parts, and those that others make up for, have no weights at all; the larger λ, the more (Naderi Parizi, chapter
3, equation 3.13, which is without b: with responses that are centred it does what centring took away, and ½‖b‖² is
small beside a loss of each of many images).
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass, field

import numpy as np

from ...data.arrays import as_rows
from ...models import multiclass
from ...problem import Problem, Solution
from ...regularizers import L2, Blocks, GroupNorm
from ...solvers import solve
from .primal_dual import PrimalDual, norms_of_parts

_RATIO = 0.7  # of one λ to the next
_LEAST = 1e-3  # of the first: who has no weights by then hardly ever gets any
_SLACK = 0.05  # more parts than asked for, as a share, that are as good as the number itself
_BISECTIONS = 8


@dataclass(frozen=True)
class Step:
    """One λ of the path: how many parts have weights, the objective and its certified relative gap, passes it took."""

    strength: float
    n_parts: int
    objective: float
    relative_gap: float
    n_passes: int


@dataclass(frozen=True)
class Selected:
    """The parts of a pool that are worth having.

    Parameters
    ----------
    parts : int array (n_parts,)
        The most important first.
    norms : float array (n_pool,)
        ‖u_j‖ of every part of the pool, exactly zero where it has no weights, at the λ that was selected by.
    strength : float
        That λ.
    path : list of Step
        Every λ that was tried, in that order.
    """

    parts: np.ndarray
    norms: np.ndarray
    strength: float
    path: list[Step] = field(repr=False)


def select_parts(
    responses: np.ndarray, label: np.ndarray, n_parts: int, *, tol: float = 1e-3, max_passes: int = 2000
) -> Selected:
    """The parts that are worth most to a classifier that has to pay for each.

    λ falls until so many parts have weights, every solution starting from the one before; then it is bisected until
    the number is met, or exceeded by 5 % at most. Of that solution, the last one with at least as many parts as asked
    for, those with the largest ‖u_j‖ are taken. Where classes can be told apart by fewer parts, however small λ is,
    the rest are those that come nearest to having weights.

    A part whose responses are all equal to those of an earlier one is not selected: the price is the same
    however weights are divided between the two.

    Parameters
    ----------
    responses : array (n_images, n_pool, n_regions), float32 or float64
        The largest response of every part of the pool in every region.
    label : int array (n_images,)
        Classes 0 … n_classes−1.
    n_parts : int
    tol : float
        Relative gap at which the solution of one λ is good enough. Where few parts have weights the objective is
        hardly less than without any, and a gap of 1e-2 can leave parts that are there by chance.
    max_passes : int
        Most passes of the solver for one λ.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(90) % 3
    >>> responses = rng.normal(size=(90, 8, 1))
    >>> responses[:, 2, 0] += 3.0 * (y == 0)
    >>> responses[:, 5, 0] += 4.0 * (y == 1)
    >>> sorted(select_parts(responses, y, 2).parts.tolist())
    [2, 5]
    """
    if not np.isfinite(responses).all():  # of huge patches
        raise ValueError("Responses must be finite, and some are not.")
    _, n_pool, n_regions = responses.shape
    label = label.astype(np.int32)
    parts = _without_copies(responses)
    if n_parts > parts.size:
        raise ValueError(
            f"{n_parts} parts were asked for, but only {parts.size} of the {n_pool} in the pool differ in their "
            "responses. Ask for fewer, or make a larger pool."
        )
    X, unit = _prepared(responses[:, parts])
    task = _Task(X, label, int(label.max()) + 1, n_regions, tol, max_passes)
    solutions = _search(task, n_parts)
    best = min((s for s in solutions if s.n_parts >= n_parts), key=lambda s: s.n_parts, default=solutions[-1])
    order = np.lexsort((-task.steepness(best.solution.alpha), -best.norms))
    norms = np.zeros(n_pool)
    norms[parts] = best.norms / unit
    path = [
        Step(s.strength * unit, s.n_parts, c.upper, c.relative_gap, len(s.solution.history))
        for s in solutions
        for c in [s.solution.certificate]
    ]
    return Selected(parts[order[:n_parts]], norms, best.strength * unit, path)


@dataclass(frozen=True)
class _Solved:
    strength: float
    norms: np.ndarray
    solution: Solution

    @property
    def n_parts(self) -> int:
        return int(np.count_nonzero(self.norms))


class _Task:
    """The problem of every λ: rows of all parts, one after the other."""

    def __init__(
        self, X: np.ndarray, label: np.ndarray, n_classes: int, n_regions: int, tol: float, max_passes: int
    ) -> None:
        self.X, self.label, self.n_classes, self.n_regions = X, label, n_classes, n_regions
        self.tol, self.max_passes = tol, max_passes
        self.constraints = multiclass(as_rows(X, bias=1.0), label, 1.0 - np.eye(n_classes), np.ones(1))
        n_weights = X.shape[1] * n_classes
        self.weights = np.arange(n_weights)
        self.groups = list(self.weights.reshape(-1, n_regions * n_classes))
        self.intercepts = n_weights + np.arange(n_classes)

    def problem(self, strength: float) -> Problem:
        return Problem(
            self.constraints,
            Blocks([(self.weights, GroupNorm(self.groups, weights=strength)), (self.intercepts, L2())]),
        )

    def solve(self, strength: float, near: _Solved | None) -> _Solved:
        warm = None if near is None else (near.solution.weights, near.solution.alpha)
        solver = PrimalDual(self.n_regions, strength)
        solution = solve(self.problem(strength), solver, tol=self.tol, max_passes=self.max_passes, warm=warm)
        if solution.interrupted:
            raise KeyboardInterrupt
        norms = norms_of_parts(solution.weights[self.weights].reshape(-1, self.n_classes), self.n_regions)
        return _Solved(strength, norms, solution)

    def steepness(self, alpha: np.ndarray) -> np.ndarray:
        """‖X_jᵀ(B − Y)‖ of every part: λ where it has weights, less where it has none."""
        blame = alpha.copy()
        blame[np.arange(len(alpha)), self.label] = -alpha.sum(axis=1)
        return norms_of_parts(self.X.T @ blame.astype(self.X.dtype), self.n_regions)

    def no_parts_above(self) -> float:
        """A λ from which on no part is worth having, if classes are equally large.

        Without weights all rivals of a class are equally near. With equal shares of blame for them this is the largest
        steepness of any part, so no constraint is violated at λ, and both bounds are n. With two classes there is no
        other way to share blame, and below this λ some part has weights.
        """
        shares = np.full((self.label.size, self.n_classes), 1.0 / (self.n_classes - 1))
        shares[np.arange(self.label.size), self.label] = 0.0
        return float(self.steepness(shares).max())


def _search(task: _Task, n_parts: int) -> list[_Solved]:
    """Falling λ until there are enough parts, then bisection until there are not too many."""
    solved: list[_Solved] = []
    first = strength = task.no_parts_above()
    if first == 0.0:
        raise ValueError("No part responds differently to different classes: there is nothing to select by.")
    while not solved or (solved[-1].n_parts < n_parts and strength > _LEAST * first):
        strength *= _RATIO
        solved.append(task.solve(strength, solved[-1] if solved else None))
    enough, too_few = solved[-1], strength / _RATIO
    for _ in range(_BISECTIONS):
        if enough.n_parts <= (1.0 + _SLACK) * n_parts:
            break
        middle = task.solve(float(np.sqrt(enough.strength * too_few)), enough)
        solved.append(middle)
        if middle.n_parts >= n_parts:
            enough = middle
        else:
            too_few = middle.strength
    _warn_of_gaps(solved, task)
    return solved


def _warn_of_gaps(solved: list[_Solved], task: _Task) -> None:
    worst = max(s.solution.certificate.relative_gap for s in solved)
    if worst > task.tol:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"The selection of parts ended at a relative gap of {worst:.1e} for some λ (goal {task.tol:.1e}) after "
            f"{task.max_passes} passes. The parts are those of the best weights found.",
            ConvergenceWarning,
            stacklevel=4,
        )


def _prepared(responses: np.ndarray) -> tuple[np.ndarray, float]:
    """Responses less their means, in units of their standard deviation, an image a row; and that unit.

    One unit for all: a part that responds more strongly is worth more.
    """
    X = responses - responses.mean(axis=0, dtype=np.float64).astype(responses.dtype)
    X = X.reshape(len(X), -1)
    unit = float(np.sqrt(np.einsum("ij,ij->i", X, X).mean(dtype=np.float64) / X.shape[1]))
    unit = unit if unit > 0.0 else 1.0
    return X / responses.dtype.type(unit), unit


def _without_copies(responses: np.ndarray) -> np.ndarray:
    """The parts that are no copies of earlier ones."""
    seen: dict[bytes, int] = {}
    for j in range(responses.shape[1]):
        seen.setdefault(hashlib.blake2b(np.ascontiguousarray(responses[:, j]).data).digest(), j)
    return np.array(list(seen.values()), dtype=np.int64)
