"""What an oracle has found so far, as a closed problem: the pool of searched problems."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels import planes as kernels
from ..kernels.maps import WeightMap
from ..kernels.vectors import bounded_dot, dot
from ..problem import Planes, Rivals, Rows, TotalLoss, Totals
from ..protocols import OracleError
from ..rounding import gamma
from .answers import Spilled, joined_planes
from .base import Closed
from .small import add_rows, is_small, project, scores
from .store import placed
from .stored_planes import StoredPlanes, moved
from .sums import DualSums

_OFTEN = 4  # all planes are looked at for each chunk of examples: so many times fewer may there be


class Cache(StoredPlanes, Closed):
    """The constraints met so far, as a closed problem that the dual coordinate solver can work on.

    Where memory is short, planes of some examples are *spilled*: their rows are forgotten, their answers and shares
    are kept, and what they contribute to v and to Σ l α is remembered as one sum, so that bounds stay what they are.
    They move again once ``recall`` has been given their rows.

    Parameters
    ----------
    n_examples, n_weights : int
    budget : float array (n_examples,) or (1,)
        C_i.
    """

    by_example = False
    _kernels = kernels

    def __init__(self, n_examples: int, n_weights: int, budget: np.ndarray) -> None:
        super().__init__(n_examples, n_weights)
        self.budget = budget
        self.spilled = Spilled(n_examples)
        self.away: Totals | None = None
        """What all planes that were spilled contribute."""

    @property
    def dual_shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.slots.row.size,)

    @property
    def n_constraints(self) -> int:  # type: ignore[override]
        return int(self.slots.count.sum())

    @property
    def rows(self) -> Rows:  # type: ignore[override]
        return self.store.rows

    def kernel_arguments(self) -> tuple[Any, ...]:
        return self.store.arrays, self.slots, self.budget

    def combine(self, alpha: np.ndarray) -> np.ndarray:
        v = np.zeros(self.n_weights) if self.away is None else self.away.v.copy()
        add_rows(self.rows, self._coefficients(alpha), v)
        return v

    def linear(self, alpha: np.ndarray) -> float:
        used = self.used()
        linear = dot(self.slots.loss[used], alpha[used])
        return linear if self.away is None else linear + self.away.linear

    def feasible(self, alpha: np.ndarray) -> np.ndarray:
        alpha = np.where(self.used(), alpha, 0.0)
        project(alpha, self.slots.first, self.budget)
        return alpha

    def totals(self, alpha: np.ndarray) -> Totals:
        """What is certified of a stream, whose examples are gone: all that is known of them is here."""
        return self._with_away(self._totals(self.feasible(alpha)))

    def _with_away(self, found: Totals) -> Totals:
        sums = DualSums(self.n_weights)
        if self.away is not None:
            sums.add(self.away)
        sums.add(found)
        return sums.totals()

    def _totals(self, alpha: np.ndarray) -> Totals:
        """Of planes at hand, with what rounding may have changed in their rows."""
        sums = DualSums(self.n_weights)
        sums.add_rows(self.store.rows, self._coefficients(alpha))
        sums.add_linear(*self._bounded_linear(alpha))
        found = sums.totals()
        linear_error, v_error = gamma(4) * abs(found.linear), gamma(4) * sums.size  # of rows as they are stored
        if self.errors is not None:
            linear_error += self.errors.loss * abs(found.linear)
            v_error += float(self.errors.factor * alpha.sum()) * self.errors.scale
        return Totals(found.linear, found.v, found.linear_error + linear_error, found.v_error + v_error)

    def _coefficients(self, alpha: np.ndarray) -> np.ndarray:
        """How much each stored row counts for in v."""
        slots, used = self.slots, np.flatnonzero(self.used())
        coefficients = np.zeros(self.store.n_rows)
        np.add.at(coefficients, slots.row[used], alpha[used])
        shift = slots.shift[self._example_of(used)]
        np.add.at(coefficients, shift[shift >= 0], -alpha[used][shift >= 0])
        return coefficients

    def _bounded_linear(self, alpha: np.ndarray) -> tuple[float, float]:
        used = self.used()
        return bounded_dot(self.slots.loss[used], alpha[used])

    def evaluate(self, w: np.ndarray) -> TotalLoss:
        return TotalLoss(float((self.budget * self.worst(np.arange(self.n_examples), w)).sum()))

    def worst(self, ids: np.ndarray, w: np.ndarray) -> np.ndarray:
        """max(0, max_j (l_ij − w·x_ij)) over what is cached, for some examples."""
        if self.store.n_rows and not is_small(self.rows, _OFTEN):
            out = np.empty(ids.size)
            kernels.worst_cached(self.store.arrays, self.slots, ids, w, out)
            return out
        used, slots = np.flatnonzero(self.used()), self.slots
        example, score = self._example_of(used), np.append(scores(self.rows, w), 0.0)  # the last of no row
        worst = np.zeros(self.n_examples)
        np.maximum.at(worst, example, slots.loss[used] - (score[slots.row[used]] - score[slots.shift[example]]))
        return worst[ids]

    def check_search(
        self, ids: np.ndarray, rivals: Rivals, found: np.ndarray, known: np.ndarray, w: np.ndarray
    ) -> None:
        """An exact search can never find less than what is known already."""
        if (np.maximum(found, 0.0) >= known - 1e-5 * (1.0 + known)).all():
            return
        rows = rivals.rows
        squares = np.concatenate([[0.0], np.cumsum(np.square(rows.data, dtype=np.float64))])
        ends = np.arange(rows.n_rows + 1) * rows.width if not rows.indices.size else rows.indptr
        # Rows may be float32: what they make of a score can be off by that much. A cached plane may be a small
        # difference of large rows, once the truth has changed.
        lengths = np.sqrt(squares[ends[1:]] - squares[ends[:-1]]) + self.lengths(ids)
        scale = lengths * np.sqrt(dot(w, w))
        wrong = np.flatnonzero(np.maximum(found, 0.0) < known - 1e-5 * (1.0 + np.abs(known) + scale))
        if wrong.size:
            p = int(wrong[0])
            raise OracleError(
                f"The search contradicts itself on example {ids[p]}: its answer misses the margin by {found[p]:.6g}, "
                f"an answer found earlier by {known[p]:.6g} at the same weights. Either features, loss and "
                "most_violated do not belong together (maxmargin.checks.check_model says where), or the search is "
                "approximate (then the model must say exact = False).",
                int(ids[p]),
            )

    def fill(self, shares: Planes, rivals: Rivals, alpha: np.ndarray, weights: WeightMap) -> np.ndarray:
        """Take in shares, in the order of their examples, with their rows; returns α for the slots."""
        count = np.bincount(shares.example, minlength=self.n_examples)
        source = self.tidy(self.used(), 1 + count)
        alpha = moved(alpha, source)
        turn = np.arange(len(shares)) - np.searchsorted(shares.example, shares.example)
        for n in range(int(turn.max(initial=-1)) + 1):
            wanted = turn == n
            alpha[self._spare(shares.example[wanted])] = shares.alpha[wanted]
            self.add(shares.example, rivals, wanted, weights)
        return alpha

    def spill(self, chosen: np.ndarray, alpha: np.ndarray, *, for_ever: bool = False) -> np.ndarray:
        """Forget the planes of the chosen examples (a mask); returns α for the slots that are left.

        v and Σ l α keep what these planes contribute. Answers and shares are kept for ``recall``; where the data is
        gone ``for_ever`` nobody could, and the sums are all that is left of them.
        """
        gone = self.used() & np.repeat(chosen, np.diff(self.slots.first))
        share = np.where(gone, alpha, 0.0)
        self.away = self._with_away(self._totals(share))
        if not for_ever:
            self.spilled.put(self._shares(share))
        source = self.tidy(self.used() & ~gone, squeeze=True)
        return moved(alpha, source)

    def leave(self, shares: Planes, totals: Totals) -> None:
        """Take in shares whose planes are not at hand, but what they come to."""
        self.spilled.put(shares)
        self.away = totals

    def recall(self, shares: Planes, rivals: Rivals, alpha: np.ndarray, weights: WeightMap) -> np.ndarray:
        """Spilled shares, as ``spilled.take`` gave them out, come back with their rows; returns α for the slots."""
        sums = DualSums(self.n_weights)
        sums.add_planes(rivals, -shares.alpha)
        self.away = self._with_away(sums.totals())
        return self.fill(shares, rivals, alpha, weights)

    def recount(self, examples: np.ndarray, budget: np.ndarray | None = None) -> np.ndarray:
        source = super().recount(examples)
        if budget is not None:
            self.budget = budget
        elif self.budget.size > 1:
            self.budget = self.budget[examples]
        self.spilled = Spilled(self.n_examples)  # examples of a stream never come back: none are in it
        return source

    def rename(self, place: np.ndarray, n_weights: int) -> None:
        super().rename(place, n_weights)
        if self.away is not None:
            v, v_error = (placed(values, place, n_weights) for values in (self.away.v, self.away.v_error))
            self.away = self.away._replace(v=v, v_error=v_error)

    def scale_away(self, factor: float) -> None:
        """Shares that were spilled for ever are so many times as large now, as others have different budgets."""
        if self.away is not None:
            linear, v = factor * self.away.linear, factor * self.away.v
            linear_error = factor * self.away.linear_error + gamma(1) * abs(linear)
            self.away = Totals(linear, v, linear_error, factor * self.away.v_error + gamma(1) * np.abs(v))

    def planes(self, alpha: np.ndarray) -> Planes:
        """The planes that carry a share, spilled ones too, as dual variables that stand by themselves."""
        here = self._shares(alpha)
        if not len(self.spilled):
            return here
        return joined_planes([here, *self.spilled.all()])

    def _shares(self, alpha: np.ndarray) -> Planes:
        support = np.flatnonzero(self.used() & (alpha > 0.0))
        return Planes(self._example_of(support), [self.labels[s] for s in support.tolist()], alpha[support])

    @property
    def nbytes(self) -> int:
        return super().nbytes + (0 if self.away is None else self.away.v.nbytes) + self.spilled.nbytes
