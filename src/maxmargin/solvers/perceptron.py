"""The averaged structured perceptron (Collins, 2002), for open problems.

    v ← v + C_i (φ(x_i, y_i) − φ(x_i, ŷ)),    ŷ = argmax over y of w·φ(x_i, y),    w = ∇Ω*(v)

It asks for no margin and minimises no objective, so there is nothing to certify. C_i only weighs examples: with ½‖w‖²
the scale of the weights changes no answer. (With another Ω it is the quasi-additive perceptron of Grove, Littlestone
and Schuurmans, 2001.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..kernels import rows as row_kernels
from ..problem import Planes, Problem
from ..protocols import Seed
from .searchers import search
from .subgradient import Averaged, batches

_LARGE = 1e8  # an oracle adds the loss to the score: at weights as long as this it decides between equal scores only


@dataclass(frozen=True)
class Perceptron:
    """Settings of the averaged structured perceptron, a solver to compare with. It certifies nothing.

    It ends with an epoch that makes no mistake, or after ``max_passes``.

    Parameters
    ----------
    random_state : int, Generator or None
        Order of visits.
    n_jobs : int
        Threads or processes that search, at weights that are a few steps old.
    """

    random_state: Seed = None
    n_jobs: int = 1

    def start(self, problem: Problem, warm: Planes | None = None) -> PerceptronState:
        """Dual variables to start from say nothing to a perceptron."""
        return PerceptronState.at_zero(problem, self.random_state)

    def save(self, state: PerceptronState, settled: bool) -> dict[str, Any] | None:
        return {"total": state.total, "mean": state.mean, "epochs": state.epochs} if settled else None

    def restore(self, problem: Problem, saved: dict[str, Any]) -> PerceptronState:
        state = self.start(problem)
        state.move(saved["total"], 0.0)
        state.total[:], state.mean[:], state.epochs = saved["total"], saved["mean"], saved["epochs"]
        return state

    def step(self, problem: Problem, state: PerceptronState) -> PerceptronState:
        """One epoch."""
        constraints = problem.searched
        n = constraints.searchable.size
        state.visited = state.mistakes = 0
        chunks = batches(constraints, state.rng, 1)
        for ids, _, rivals in search(constraints.oracle, chunks, state.large_weights, self.n_jobs):
            state.visited += 1
            if rivals.losses[0] > 0.0:
                state.mistakes += 1
                row_kernels.combine(rivals.rows.arrays, constraints.budget_of(ids), state.total)
            state.move(state.total, 1.0 / (state.epochs * n + state.visited))
        state.epochs += 1
        state.finished = state.mistakes == 0
        return state


@dataclass(kw_only=True)
class PerceptronState(Averaged):
    """The sum of all corrections."""

    certifies: ClassVar[bool] = False
    mistakes: int = 0
    n_constraints: ClassVar[int] = 0

    @property
    def active(self) -> int:
        return self.mistakes

    def large_weights(self) -> np.ndarray:
        w = self.map.weights()
        length = float(np.linalg.norm(w))
        return w * (_LARGE / length) if length > 0.0 else w

    @property
    def alpha(self) -> Planes:
        """None has a share."""
        return Planes(np.empty(0, np.int64), [], np.empty(0))

    @property
    def nbytes(self) -> int:
        return 8 * 2 * self.total.size
