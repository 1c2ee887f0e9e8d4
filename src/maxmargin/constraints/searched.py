from __future__ import annotations

import numpy as np

from ..kernels import rows as row_kernels
from ..kernels.shared import project_examples
from ..problem import Loss, Planes, Rivals
from ..protocols import Oracle

_CHUNK = 512


class Searched:
    """An *open* problem: constraints too many to list, found by an oracle that searches for the worst offenders.

    Dual variables are ``Planes``. Nothing is kept here: rows are formed anew from the answers whenever bounds are
    to be certified.

    Parameters
    ----------
    oracle : Oracle
    budget : float array (n_examples,) or (1,)
        C_i.
    """

    closed = False

    def __init__(self, oracle: Oracle, budget: np.ndarray) -> None:
        self.oracle = oracle
        self.budget = np.atleast_1d(np.asarray(budget, dtype=np.float64))
        self.n_examples = oracle.n_examples
        self.n_weights = oracle.n_weights
        if self.n_weights >= 2**31:
            raise ValueError(f"At most {2**31 - 1} weights can be addressed, the model has {self.n_weights}.")
        if self.budget.size not in (1, self.n_examples) or self.budget.ndim != 1:
            raise ValueError(f"Searched: budget must have 1 or {self.n_examples} entries, got {self.budget.shape}.")
        if not (np.isfinite(self.budget).all() and (self.budget >= 0).all()):
            raise ValueError("Searched: budgets must be finite and not negative.")

    @property
    def live(self) -> np.ndarray:
        """The examples that can be searched: all, unless this is a window on a stream."""
        return getattr(self.oracle, "live", np.arange(self.n_examples))

    def no_shares(self) -> Planes:
        return Planes(np.empty(0, np.int64), [], np.empty(0))

    def feasible(self, alpha: Planes) -> Planes:
        """The nearest feasible shares, with the rows of their answers formed from the data."""
        if alpha.alpha.size and not 0 <= alpha.example.min() <= alpha.example.max() < self.n_examples:
            raise ValueError(
                f"The dual variables name examples up to {alpha.example.max()}, the data has {self.n_examples}."
            )
        order = np.argsort(alpha.example, kind="stable")
        example, shares = alpha.example[order], alpha.alpha[order].astype(np.float64)
        labels = [alpha.labels[i] for i in order.tolist()]
        first = np.searchsorted(example, np.arange(self.n_examples + 1))
        project_examples(shares, first, self.budget)
        return Planes(example, labels, shares, self.oracle.planes(example, labels))

    def combine(self, alpha: Planes) -> np.ndarray:
        v = np.zeros(self.n_weights)
        if len(alpha):
            row_kernels.combine(self._rivals(alpha).rows.arrays, alpha.alpha, v)
        return v

    def linear(self, alpha: Planes) -> float:
        return float(self._rivals(alpha).losses @ alpha.alpha) if len(alpha) else 0.0

    def _rivals(self, alpha: Planes) -> Rivals:
        return self.feasible(alpha).rivals if alpha.rivals is None else alpha.rivals  # type: ignore[return-value]

    def totals(self, alpha: Planes) -> tuple[float, np.ndarray]:
        alpha = self.feasible(alpha)
        return self.linear(alpha), self.combine(alpha)

    def evaluate(self, w: np.ndarray) -> Loss:
        total = excess = 0.0
        for start in range(0, self.n_examples, _CHUNK):
            ids = np.arange(start, min(start + _CHUNK, self.n_examples))
            rivals = self.oracle.rivals(ids, w)
            loss = self.weighted(ids, violations(rivals, w), rivals.excess)
            total += loss.total
            excess += loss.excess
        return Loss(total, excess)

    def weighted(self, ids: np.ndarray, missing: np.ndarray, excess: np.ndarray | None) -> Loss:
        """C_i·max(0, what is missing of the margin), summed over some examples."""
        budget = self.budget[ids] if self.budget.size > 1 else self.budget
        total = float((budget * np.maximum(missing, 0.0)).sum())
        if excess is None:
            return Loss(total)
        # An example of weight zero cannot be underrated, however poorly it is searched.
        return Loss(total, float(np.multiply(budget, excess, where=budget > 0.0, out=np.zeros(ids.size)).sum()))


def violations(rivals: Rivals, w: np.ndarray) -> np.ndarray:
    """l − w·row for each rival: how much of its margin is missing."""
    scores = np.empty(rivals.losses.size)
    row_kernels.scores(rivals.rows.arrays, np.ascontiguousarray(w, dtype=np.float64), scores)
    return rivals.losses - scores
