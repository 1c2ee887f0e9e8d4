"""The constraints that hold the weights of a structured fit where they are, as users see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..constraints.searched import active_planes, active_table
from ..problem import Planes, Problem, Solution
from .certified import Shares


class ActiveConstraints:
    """Part of the base of structured estimators."""

    _shares: Planes
    _stream: Any
    _margins: np.ndarray
    """Loss and slack of the active constraints."""

    @property
    def active_constraints_(self) -> dict[str, Any]:
        """The constraints that hold the weights where they are, as columns of a table; ``pandas.DataFrame`` takes it.

        One entry for each answer with a dual variable above zero (several, if cutting planes have found it again):
        ``example``, its number; ``answer``; the ``loss`` of that answer; its ``share``, the dual variable, those of an
        example at most C in sum; and its ``slack``, by how much it misses its margin at ``coef_``. At the optimum under
        ½‖w‖² the weights are Σ share·(φ(x, y) − φ(x, answer)), and all answers of an example have the slack of its
        worst offender. Known after a fit to data in memory.
        """
        check_is_fitted(self)
        planes = None if self._stream is not None else active_planes(self._shares)
        margins = vars(self).get("_margins", np.empty((2, 0)))
        if planes is None or len(planes) != margins.shape[1]:
            raise AttributeError(
                f"This {type(self).__name__} has no active_constraints_: they are kept where data was in the memory of "
                "one machine, not by a fit from a source or on a cluster, nor on a stream. For such data make the "
                "problem yourself: its constraints have a method active(alpha, weights)."
            )
        return active_table(replace(planes, labels=self._named_answers(planes.labels)), *margins)

    def _named_answers(self, answers: Sequence[Any]) -> list[Any]:
        """Answers as users know them."""
        return list(answers)

    def _solved(self, problem: Problem, warm: Shares, solve: Callable[[Problem, Shares], Solution]) -> Solution:
        self.__dict__.pop("_margins", None)
        solution, constraints = solve(problem, warm), problem.searched
        if not constraints.in_views and constraints.elsewhere is None:
            found = constraints.active(solution.alpha, solution.weights)
            self._margins = np.stack([found["loss"], found["slack"]])
        return solution
