"""Part weights: how much each class likes every part, learned with the filters fixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...data.arrays import as_rows
from ...models.closed import multiclass
from ...problem import Certificate, Problem, Record, Solution
from ...protocols import Seed
from ...regularizers import L2
from ...rounding import gamma
from ...solvers import certify, choose, solve


@dataclass(frozen=True)
class PartWeights:
    """How much each class likes every part in every region: score of class k = offset_k + Σ u_kjr · r_jr(x).

    Parameters
    ----------
    table : float array (n_classes, n_parts, n_regions)
        u.
    bias : float array (n_classes,)
    centre : float array (n_parts, n_regions)
        Responses are counted from here: a part that every image has tells nothing.
    """

    table: np.ndarray
    bias: np.ndarray
    centre: np.ndarray

    @property
    def offset(self) -> np.ndarray:
        return self.bias - self.table.reshape(len(self.table), -1) @ self.centre.ravel()

    @property
    def penalty(self) -> float:
        """½‖u‖², the bias included."""
        return squared_penalty(1.0, self.table, self.bias)[0]

    def scores(self, responses: np.ndarray) -> np.ndarray:
        """Scores of all classes, (n, n_classes)."""
        return responses.reshape(len(responses), -1) @ self.table.reshape(len(self.table), -1).T + self.offset

    def hinge(self, responses: np.ndarray, label: np.ndarray) -> np.ndarray:
        """What each image misses of the margin 1 to the best wrong class."""
        scores, images = self.scores(responses), np.arange(label.size)
        own = scores[images, label]
        scores[images, label] = -np.inf
        return np.maximum(1.0 + scores.max(axis=1) - own, 0.0)


def squared_penalty(strength: float, *weights: np.ndarray) -> tuple[float, float]:
    """½ ρ ‖w‖² of all weights, and by how much rounding may have changed it."""
    value = 0.5 * strength * float(sum((some**2).sum() for some in weights))
    return value, gamma(sum(some.size for some in weights) + 4) * value


class WeightProblem:
    """Learning part weights while the filters stay as they are: a multiclass SVM on responses (Crammer & Singer).

    Responses are its data: certificates are about these numbers, as they were computed.

    Parameters
    ----------
    responses : float array (n, n_parts, n_regions)
    label : int array (n,)
        Classes 0 … n_classes−1.
    centre : float array (n_parts, n_regions)
    budget : float array (n,) or (1,)
        C_i.
    """

    def __init__(
        self, responses: np.ndarray, label: np.ndarray, n_classes: int, centre: np.ndarray, budget: np.ndarray
    ) -> None:
        self.n_classes, self.centre = n_classes, centre
        rows = as_rows(np.ascontiguousarray((responses - centre).reshape(len(responses), -1)), bias=1.0)
        self.problem = Problem(
            multiclass(rows, label.astype(np.int32), 1.0 - np.eye(n_classes), np.atleast_1d(budget)), L2()
        )

    def solve(
        self,
        *,
        tol: float,
        max_passes: int = 1000,
        warm: np.ndarray | None = None,
        threads: int = 1,
        seed: Seed = None,
        callbacks: Sequence[Callable[[Record], object]] = (),
    ) -> Solution:
        solver = choose(self.problem, "dual_coordinate", tol=tol, seed=seed, threads=threads, warm=warm is not None)
        return solve(self.problem, solver, tol=tol, max_passes=max_passes, warm=warm, callbacks=callbacks)

    def weights(self, solution: Solution) -> PartWeights:
        table = solution.weights.reshape(-1, self.n_classes).T
        return PartWeights(
            np.ascontiguousarray(table[:, :-1].reshape(self.n_classes, *self.centre.shape)),
            table[:, -1].copy(),
            self.centre,
        )

    def certify(self, weights: PartWeights, alpha: np.ndarray | None) -> Certificate:
        """Bounds on the least objective of any part weights: above by those given, below by dual variables."""
        w = np.vstack([weights.table.reshape(self.n_classes, -1).T, weights.bias]).ravel()
        return certify(self.problem, w, alpha)
