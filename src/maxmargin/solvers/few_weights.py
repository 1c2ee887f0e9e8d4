"""Newton steps on cached constraints when weights are few and rows are long.

Graphs of many nodes have a handful of weights and rows of length 100; there coordinate steps crawl, and the interior
point takes about twenty steps. The constraints of the cache are a closed problem with shared slacks.

``solve`` here has a small loop of its own over the steps of ``InteriorPoint``. It certifies nothing: that is left to
``solvers.solve``, which runs the solver of the whole problem.
"""

from __future__ import annotations

import numpy as np

from ..constraints.shared import SharedSlack
from ..data.arrays import as_rows
from ..problem import Problem
from ..protocols import Regularizer
from ..regularizers.shape import Shape
from .interior_barrier import READS
from .interior_point import InteriorPoint

_MOST_WEIGHTS = 300
_MOST_STEPS = 60
_FAINT = 1e-7  # of C: where a share is smaller it is on its way to zero, and its constraint can be dropped


def applies(shape: Shape) -> bool:
    """Whether the weights are few, and follow from v in a way that Newton steps know."""
    return shape.n_weights <= _MOST_WEIGHTS and shape.given.keys() <= READS


def solve(
    X: np.ndarray, loss: np.ndarray, example: np.ndarray, budget: np.ndarray, regularizer: Regularizer, gap: float
) -> np.ndarray:
    """Dual variables of explicit constraints to within a duality gap.

    Parameters
    ----------
    X : array (n_constraints, n_weights)
        x_ij.
    loss : array (n_constraints,)
    example : int array (n_constraints,)
        Whose slack a constraint shares: numbers from 0 to ``len(budget) - 1``.
    budget : array (n_examples,)
        C_i.
    regularizer : Regularizer
    gap : float
    """
    order = np.argsort(example, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(example, minlength=budget.size))])
    rows = as_rows(np.ascontiguousarray(X[order]))
    problem, solver = Problem(SharedSlack(rows, loss[order], first, budget), regularizer), InteriorPoint()
    state = solver.start(problem)
    for _ in range(_MOST_STEPS):
        if state.upper - state.lower <= gap or state.stuck or state.solved:
            break
        state.goal = gap / abs(state.upper)
        state = solver.step(problem, state)
    alpha = np.empty_like(loss)
    alpha[order] = state.alpha
    return np.where(alpha > _FAINT * budget[example], alpha, 0.0)
