"""Which parts to use, by steps with whole matrices: all images and all classes at once.

    minimise over U, b   λ Σ_j ‖U_j‖ + ½‖b‖² + Σ_i max_k (cost[y_i, k] + s_ik − s_iy),    s = X U + b
    maximise over B      Σ_ik cost[y_i, k] B_ik − ½‖1ᵀ(B − Y)‖²    with ‖X_jᵀ(B − Y)‖ ≤ λ for every part j

where the rows of B are shares of blame (not negative, sum 1), those of Y have a one at the true class, and part j owns
the columns X_j. One step goes down in U and up in B (Chambolle and Pock, 2011, algorithm 1):

    U ← shrink(U − τ Xᵀ(B − Y)),    B ← rows of B + σ(X(2U − U_before) + cost) projected onto the simplex

with τσ‖X‖² ≤ 1, begun anew now and then from the mean of the last steps (Applegate et al., 2021), without which they
circle around the optimum for long. Coordinate steps, as other problems of this package get them, know group norms only
for rows that are written out, one for each rival of each image: of dense responses these would be gigabytes. Here a
step is two products of matrices. Shrinking leaves exact zeros, and what is zero need not be multiplied: the steps work
on a few parts, and others come in when their constraint is violated. Both bounds are of the problem with all parts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, cast

import numpy as np

from ...constraints import Classes
from ...problem import Problem
from ...solvers.solve import SolverState

# Scores of about 1 are what is wanted, so ‖U‖ is some √n/‖X‖ in the end, and shares move by some √n: steps in U should
# be longer than those in shares by some 1/‖X‖. From 2 to 8 times that the number of passes is the same.
_BALANCE = 4.0

# The steps begin anew when the gap is so small a share of what it was at the last beginning, or after so large a share
# of all steps so far (Applegate et al., 2021).
_MUCH, _LONG = 0.4, 0.36
_NEARLY = 0.8  # of λ: a part that is so near to having weights stays at hand


@dataclass(frozen=True)
class PrimalDual:
    """Settings of the primal–dual solver for weights of parts.

    The problem has ``Classes`` with dense rows and a bias, part after part and region after region, and a ``GroupNorm``
    of one strength over parts beside an ``L2`` of the intercepts.

    Parameters
    ----------
    n_regions : int
        Columns of a part.
    strength : float
        λ.
    n_steps : int
        Steps between two looks at the parts that are not being worked on.
    """

    n_regions: int
    strength: float
    n_steps: int = 20

    def start(self, problem: Problem, warm: tuple[np.ndarray, np.ndarray] | None = None) -> PrimalDualState:
        """``warm`` are weights and dual variables of a problem with another λ."""
        constraints = cast(Classes, problem.in_memory)
        rows, label, n_classes = constraints.rows, constraints.label, constraints.n_classes
        X = rows.data.reshape(rows.n_rows, rows.width)
        truth = np.arange(n_classes) == label[:, None]
        if warm is None:
            weights = np.zeros((rows.n_weights, n_classes))
            shares = ~truth / (n_classes - 1.0)
        else:
            weights = warm[0].reshape(rows.n_weights, n_classes)
            shares = warm[1].copy()
            shares[truth] = 1.0 - shares.sum(axis=1)
        state = PrimalDualState(
            X=X,
            truth=truth,
            cost=constraints.cost[label],
            bias=rows.bias,
            U=np.array(weights[:-1]),
            b=np.array(weights[-1]),
            shares=shares,
            parts=np.flatnonzero(weights[:-1].reshape(-1, self.n_regions * n_classes).any(axis=1)),
            n_constraints=constraints.n_constraints,
        )
        self._widen(state, self._bound_below(state, state.shares), anew=True)
        return state

    def step(self, problem: Problem, state: PrimalDualState) -> PrimalDualState:
        """Some steps on the parts at hand, then one look at all."""
        self._descend(state)
        state.visited = len(state.X)
        here = state.here()
        upper = self._bound_above(state, here)
        if upper < state.best:
            state.best, state.found = upper, np.concatenate([state.U.ravel(), state.b])
        steep = self._bound_below(state, here.shares)
        gap = upper - state.last_lower
        # The mean is often nearer to the optimum than what circles around it. It has fewer zeros, so it is no answer.
        mean = state.mean()
        upper = self._bound_above(state, mean)
        self._bound_below(state, mean.shares)
        gap, beginning = min((gap, here), (upper - state.last_lower, mean), key=lambda pair: pair[0])
        state.estimate = (state.best - state.lower) / max(abs(state.best), 1e-300)
        if gap <= _MUCH * state.first_gap or state.n_since >= _LONG * state.n_steps:
            state.begin(beginning, gap)
        self._widen(state, steep)
        return state

    def _bound_above(self, state: PrimalDualState, point: _Point) -> float:
        """The objective, in the precision of the rows: no certificate is made of it."""
        scores = state.work @ point.U.astype(state.work.dtype) + state.bias * point.b
        loss = float((state.cost + scores - scores[state.truth][:, None]).max(axis=1).sum())
        price = self.strength * float(norms_of_parts(point.U, self.n_regions).sum())
        return loss + price + 0.5 * float(point.b @ point.b)

    def _bound_below(self, state: PrimalDualState, shares: np.ndarray) -> np.ndarray:
        """The lower bound, from the constraints of all parts; returns their left sides."""
        blame = shares - state.truth
        steep = norms_of_parts(state.X.T @ blame.astype(state.X.dtype), self.n_regions).astype(np.float64)
        scale = min(1.0, self.strength / max(float(steep.max()), 1e-300))
        off = state.bias * scale * blame.sum(axis=0)
        state.last_lower = scale * float((state.cost * shares).sum()) - 0.5 * float(off @ off)
        if state.last_lower > state.lower:
            state.lower, state.proof = state.last_lower, shares
        return steep

    def _widen(self, state: PrimalDualState, steep: np.ndarray, anew: bool = False) -> None:
        """Parts whose constraints are violated join those at hand; some that have long been satisfied leave."""
        used = norms_of_parts(state.U, self.n_regions) > 0.0
        asked = steep > self.strength
        asked[state.parts] = False
        at_hand = np.zeros(steep.size, dtype=bool)
        at_hand[state.parts] = used[state.parts] | (steep[state.parts] > _NEARLY * self.strength)
        # The most violated first: many of the others follow from these, and are satisfied once these have weights.
        room = max(8, int(at_hand.sum()))
        worst = np.flatnonzero(asked)
        at_hand[worst[np.argsort(-steep[worst], kind="stable")[:room]]] = True
        if anew or asked.any() or at_hand.sum() < 0.7 * state.parts.size:
            state.take(np.flatnonzero(at_hand), self.n_regions)

    def _descend(self, state: PrimalDualState) -> None:
        work, truth, bias = state.work, state.truth, state.bias
        U, b, shares = state.U[state.columns], state.b, state.shares
        total = state.total
        tau, sigma = _BALANCE / state.size**2, 1.0 / _BALANCE
        blame = shares - truth
        for _ in range(self.n_steps):
            before, b_before = U, b
            U = U - tau * (work.T @ blame.astype(work.dtype))
            norms = norms_of_parts(U, self.n_regions)
            factor = np.maximum(0.0, 1.0 - tau * self.strength / np.maximum(norms, 1e-300))
            U *= np.repeat(factor, self.n_regions)[:, None]
            b = (b - tau * bias * blame.sum(axis=0)) / (1.0 + tau)
            ahead = work @ (2.0 * U - before).astype(work.dtype) + bias * (2.0 * b - b_before)
            shares = onto_simplex(shares + sigma * (ahead + state.cost))
            blame = shares - truth
            for sum_so_far, term in zip(total, (U, b, shares), strict=True):
                np.add(sum_so_far, term, out=sum_so_far)
        state.U[state.columns], state.b, state.shares = U, b, shares
        state.n_since += self.n_steps
        state.n_steps += self.n_steps


class _Point(NamedTuple):
    """Weights of the parts at hand, intercepts, shares of blame."""

    U: np.ndarray
    b: np.ndarray
    shares: np.ndarray


@dataclass
class PrimalDualState(SolverState):
    X: np.ndarray
    truth: np.ndarray
    cost: np.ndarray
    bias: float
    U: np.ndarray
    b: np.ndarray
    shares: np.ndarray
    parts: np.ndarray
    n_constraints: int
    work: np.ndarray = field(init=False)
    """The columns of the parts at hand."""
    columns: np.ndarray = field(init=False)
    size: float = 1.0
    """‖work‖, with some room."""
    best: float = np.inf
    found: np.ndarray | None = None
    """The weights that have this objective."""
    proof: np.ndarray = field(init=False)
    """Shares of the best lower bound."""
    last_lower: float = -np.inf
    n_steps: int = 0
    n_since: int = 0
    """Steps since the last beginning."""
    first_gap: float = np.inf
    total: _Point = field(init=False)
    """Sums over all points since."""

    def here(self) -> _Point:
        return _Point(self.U[self.columns], self.b, self.shares)

    def mean(self) -> _Point:
        return _Point(*(each / self.n_since for each in self.total))

    def begin(self, point: _Point, gap: float) -> None:
        """Go on from a point as if it were the first."""
        self.U[self.columns], self.b, self.shares = point
        self.first_gap, self.n_since = gap, 0
        self.total = _Point(*(np.zeros_like(a) for a in point))

    def take(self, parts: np.ndarray, n_regions: int) -> None:
        """Work on these parts from now on; no other may have weights."""
        self.parts = parts
        self.columns = (parts[:, None] * n_regions + np.arange(n_regions)).ravel()
        self.work = np.ascontiguousarray(self.X[:, self.columns])
        # ‖work‖ by power iterations. They fall short a little: 5 % more is taken, and 4/3 in τσ‖X‖² does no harm.
        z = 1.0 + 0.01 * np.cos(np.arange(len(self.work)))
        for _ in range(20):
            z = self.work @ (self.work.T @ (z / max(float(np.linalg.norm(z)), 1e-300)).astype(self.work.dtype))
        length = float(np.sqrt(np.linalg.norm(z)))
        self.size = 1.05 * max(length, abs(self.bias) * np.sqrt(len(self.work)))
        self.begin(self.here(), self.first_gap)

    @property
    def alpha(self) -> np.ndarray:
        return np.where(self.truth, 0.0, self.proof)

    @property
    def active(self) -> int:
        return int(self.parts.size)

    @property
    def nbytes(self) -> int:
        return int(self.shares.nbytes)

    def weights(self) -> np.ndarray:
        return np.concatenate([self.U.ravel(), self.b]) if self.found is None else self.found


def onto_simplex(values: np.ndarray) -> np.ndarray:
    """The nearest point to every row among those that are not negative and sum to one.

    >>> onto_simplex(np.array([[0.9, 0.5, -3.0]]))
    array([[0.7, 0.3, 0. ]])
    """
    values = values - values.max(axis=1, keepdims=True)
    falling = -np.sort(-values, axis=1)
    excess = np.cumsum(falling, axis=1) - 1.0
    kept = (falling * np.arange(1, values.shape[1] + 1) > excess).sum(axis=1)
    shift = excess[np.arange(len(values)), kept - 1] / kept
    return np.maximum(values - shift[:, None], 0.0)


def norms_of_parts(U: np.ndarray, n_regions: int) -> np.ndarray:
    """‖U_j‖ of every part."""
    return np.sqrt(np.einsum("jk,jk->j", *[U.reshape(-1, n_regions * U.shape[1])] * 2))
