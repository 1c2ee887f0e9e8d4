"""All pairs of large groups, none of which is written down: sums over them follow from sorted scores."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..kernels import sorted_pairs as kernels
from ..kernels.vectors import bounded_dot
from ..problem import Rows, TotalLoss, Totals
from ..rounding import gamma
from .base import own
from .small import bounded_scores
from .sums import DualSums

_BITS = 61  # of a whole number in which sums over a group must fit
_FINEST = 50
_EACH = 6  # operations of a share: a difference of two sums, a quotient, a product; and that with a feature


class Scores(NamedTuple):
    """Scores of all rows as whole numbers ``q``, multiples of 1/``unit``; differences of two are within ``off``."""

    q: np.ndarray
    unit: float
    off: float

    def whole(self, length: float) -> int:
        """A length as a multiple of 1/``unit``."""
        return round(length * self.unit)


class Shares(NamedTuple):
    """What each row i has in the shares p_ab of all pairs: Σ_b p_ib; Σ_b p_ib − Σ_a p_ai; and in how many pairs with
    0 < p_ab < 1 it is."""

    plus: np.ndarray
    net: np.ndarray
    degree: np.ndarray


class SortedPairs:
    """w·x_a ≥ w·x_b + 1 − ξ_ab for all a, b of one group with grade_a > grade_b, and the price C of every ξ.

    Dual variables are not kept pair by pair. They follow from weights u and a width κ, one array (u, κ):

        α_ab = C·min(max((1 − u·(x_a − x_b))/κ, 0), 1)

    is feasible whatever u and κ > 0 are; κ = 0 stands for α = 0. Where u minimises Ω(u) + C Σ φ(1 − u·(x_a − x_b)) for
    the hinge smoothed by κ, these are the dual variables of that problem: its own lower bound, and the hinge's too.

    Parameters
    ----------
    rows : Rows
    order, start : int arrays
        Rows by group, and where each group begins.
    rank : int array (n_rows,)
        The grade of each row, counted from 0 inside its group.
    C : float
    """

    closed = True
    held_in = "groups"

    def __init__(self, rows: Rows, order: np.ndarray, start: np.ndarray, rank: np.ndarray, C: float) -> None:
        self.rows, self.rank, self.C = rows, rank, C
        self.n_examples, self.n_weights = len(rows), rows.n_weights
        self.dual_shape = (self.n_weights + 1,)
        self._order, self._start = order.copy(), start  # sorted anew for every search
        self._sorted: Scores | None = None

    def feasible(self, alpha: np.ndarray) -> np.ndarray:
        alpha = own(alpha, self.dual_shape)
        if not np.isfinite(alpha).all():
            raise ValueError("Dual variables must be finite.")
        alpha[-1] = max(alpha[-1], 0.0)
        return alpha

    def scores(self, w: np.ndarray, width: float = 1.0) -> Scores:
        """w·x of every row, so coarse that sums over a group with margins up to 1 + ``width`` are whole numbers."""
        score, error = bounded_scores(self.rows, w)
        return self.rounded(score, width, float(error.max()))

    def rounded(self, score: np.ndarray, width: float, error: float = 0.0) -> Scores:
        lowest = float(score.min())
        span = float(score.max()) - lowest
        longest = span + width + 4.0 + 4.0 * error
        bits = _BITS - math.ceil(math.log2(self.n_examples + 1)) - math.ceil(math.log2(longest))
        unit = 2.0 ** min(bits, _FINEST)
        q = np.rint((score - lowest) * unit).astype(np.int64)
        return Scores(q, unit, 2.02 * (error + gamma(2) * span) + 1.01 / unit)

    def evaluate(self, w: np.ndarray) -> TotalLoss:
        """A margin that is wider by what rounding may have changed in differences of scores is missed by no less."""
        scores = self.scores(w)
        missed, _, _ = self._sums(scores, math.ceil((1.0 + scores.off) * scores.unit) + 1)
        total, off = bounded_dot(missed / scores.unit, np.full(missed.size, self.C))
        return TotalLoss(total, rounding=off + gamma(4) * total)

    def totals(self, alpha: np.ndarray) -> Totals:
        u, width = np.split(self.feasible(alpha), [-1])
        sums = DualSums(self.n_weights)
        if width[0] > 0.0:
            shares = self.shares(self.scores(u, width[0]), width[0])
            sums.add_rows(self.rows, self.C * shares.net)
            sums.count(0, _EACH)
            linear, off = bounded_dot(shares.plus, np.full(shares.plus.size, self.C))
            sums.add_linear(linear, off + gamma(_EACH) * linear)
        return sums.totals()

    def coefficients(self, alpha: np.ndarray) -> np.ndarray:
        """How much of each row is in v."""
        u, width = np.split(self.feasible(alpha), [-1])
        if width[0] == 0.0:
            return np.zeros(self.n_examples)
        shares = self.shares(self.scores(u, width[0]), width[0])
        return self.C * shares.net

    def shares(self, scores: Scores, width: float) -> Shares:
        """Those that follow from these scores: differences of sums of hinges, and exact but for one quotient."""
        one, steps = scores.whole(1.0), max(scores.whole(width), 1)
        missed, full = self._sums(scores, one), self._sums(scores, one - steps)
        plus, minus, degree = (a - b for a, b in zip(missed, full, strict=True))
        return Shares(plus / steps, (plus - minus) / steps, degree)

    def curvature(self, scores: Scores, width: float, degree: np.ndarray) -> np.ndarray:
        """Σ (x_a − x_b)(x_a − x_b)ᵀ over the pairs with 0 < p_ab < 1."""
        half = np.zeros((self.n_weights, self.n_weights))
        one, steps = scores.whole(1.0), max(scores.whole(width), 1)
        arguments = self._by_score(scores)
        kernels.curvature(self.rows.arrays, *arguments, one, steps, degree, half)
        return half + half.T

    def _sums(self, scores: Scores, margin: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        plus, minus, degree = np.empty((3, self.n_examples), np.int64)
        kernels.hinge_sums(*self._by_score(scores), margin, plus, minus, degree)
        return plus, minus, degree

    def _by_score(self, scores: Scores) -> tuple[np.ndarray, ...]:
        if self._sorted is not scores:
            kernels.sort(self._order, self._start, scores.q)
            self._sorted = scores
        return self._order, self._start, self.rank, scores.q
