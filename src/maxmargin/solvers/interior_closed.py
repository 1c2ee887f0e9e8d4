"""An interior-point method for every closed problem with few weights: classes, shared slacks, bounds, group norms.

    minimise   ½ (w − m)ᵀ P (w − m) + Σ_g λ_g ‖w_g‖ + Σ_i [C_i ξ_i + ½ e_i²/q_i]      such that   lo ≤ w ≤ hi
               r_k·w + η_i − l_k = s_k ≥ 0 for all k of i,    η_i = ξ_i + e_i,    ξ_i ≥ 0

Every example has a slot 0 with r = 0 and l = 0, whose slack is ξ; multipliers α ≥ 0 of all its slots add up to C. A
parabola (q > 0, see ``kernels.losses``) has e = q·Σα; a loss without a bound has no slot 0, and Σα = η/q. Bounds are
slacks of their own, a group norm is a second-order cone (``cones``). P may be zero on groups. Mehrotra's predictor and
corrector (1992), Gondzio's correctors (1996); slacks and ξ are eliminated one by one, and what is left is one system
of the size of w,

    H = P + Σ_k D_k (r_k − r̄)(r_k − r̄)ᵀ + barriers,      D = α/s,   r̄ = Σ D r / Σ D

Each step is plain array code, so that nothing is compiled for a small problem. The number of steps hardly depends on C
or on the scales of features: some 10 to 40. ``InteriorPoint`` is the same method for one dual variable per example and
a quadratic regularizer, in compiled loops over rows wherever they are.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from ..constraints.classes import Classes
from ..constraints.scalar import Scalar
from ..constraints.shared import SharedSlack
from ..problem import Problem
from .certificate import lower_bound
from .cones import Cones
from .slots import Slots, slots_of, stored_values
from .state import Progress
from .threads import one_blas_thread

_MOST_WEIGHTS = 3000
_MOST_VALUES = 2**26  # of rows that are written out
_STEPS = 20  # that a run takes, more or less
_STEP = 0.995  # of the way to the nearest bound
_LONG_ENOUGH = 0.95
_SHIFTS = (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-8)  # of a diagonal of ones, until a factor exists
_REFINEMENTS = 2
_OFF_CENTRE = 3.0  # how long Newton's step may be at the start, squared, in units of the number of products times μ
_PATIENCE = 12  # steps that lower neither the products by half nor the gap by a tenth
_SNAP = 0.05  # of the gap that is asked for: what weights may cost that are moved onto their bounds
_FAR = 10.0  # a product this many times too small or too large is pulled back


@dataclass(frozen=True)
class ClosedInteriorPoint:
    """Settings of the interior-point method for closed problems in memory: there are none.

    Memory: the rows as a matrix of float64, some numbers for each constraint, some matrices of the weights squared.
    """

    def handles(self, problem: Problem) -> bool:
        """Whether the problem has constraints of a known kind, all in memory, and few weights."""
        constraints: Any = problem.constraints
        if problem.n_weights > _MOST_WEIGHTS or not constraints.closed or constraints.holder != "memory":
            return False
        if isinstance(constraints, Scalar):
            one_kind = (constraints.side != 0).all() or not constraints.side.any()
            return bool(one_kind) and stored_values(constraints.rows) <= _MOST_VALUES
        if isinstance(constraints, SharedSlack):
            return len(constraints.rows) * problem.n_weights <= _MOST_VALUES
        return isinstance(constraints, Classes) and stored_values(constraints.rows) <= _MOST_VALUES

    def bytes_for(self, problem: Problem) -> int:
        """What a run needs beyond the data, about."""
        n_slots = problem.closed.n_constraints + problem.closed.n_examples
        values = n_slots * problem.n_weights if isinstance(problem.closed, SharedSlack) else 0
        return 8 * (20 * n_slots + 2 * stored_values(problem.closed.rows) + 2 * values + 6 * problem.n_weights**2)

    def seconds_for(self, problem: Problem) -> float:
        """What a run takes, by a model: the number of its steps hardly varies."""
        c, d = problem.closed, problem.n_weights
        n_slots = c.n_constraints + c.n_examples
        if isinstance(c, Classes):
            products = 0.5 * c.n_classes**2 * c.n_examples * (d / c.n_classes) ** 2
        else:
            products = n_slots * d * d
        return _STEPS * (1e-3 + 0.5e-6 * n_slots + products / 10e9 + d**3 / 20e9)

    def start(self, problem: Problem, warm: np.ndarray | None = None) -> ClosedInteriorState:
        """Begin near the central path. ``warm`` counts only as what is proved already: it lies at the bounds."""
        state = ClosedInteriorState(problem=problem, slots=slots_of(problem.closed), penalty=Penalty.of(problem))
        state.lower, state.best_alpha = lower_bound(problem), problem.closed.no_shares()
        if warm is not None:
            warm = problem.closed.feasible(warm)
            proved = lower_bound(problem, warm)
            if proved > state.lower:
                state.lower, state.best_alpha = proved, warm
        with one_blas_thread(), np.errstate(all="ignore"):
            state.begin()
        return state

    def step(self, problem: Problem, state: ClosedInteriorState) -> ClosedInteriorState:
        if not state.solved:
            with one_blas_thread(), np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore", linalg.LinAlgWarning)
                state.advance()
        return state

    def save(self, state: ClosedInteriorState, settled: bool) -> dict[str, Any] | None:
        return {"alpha": state.best_alpha} if settled else None

    def restore(self, problem: Problem, saved: dict[str, Any]) -> ClosedInteriorState:
        """From the start, which is some steps back at most, with what had been proved."""
        return self.start(problem, saved["alpha"])


class Penalty(NamedTuple):
    """A regularizer as ½ (w − m)ᵀ P (w − m), bounds and group norms; a group below zero is none."""

    precision: np.ndarray
    centre: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    group: np.ndarray
    strength: np.ndarray

    @staticmethod
    def of(problem: Problem) -> Penalty:
        n, regularizer = problem.n_weights, problem.regularizer
        pure = problem.pure
        shape = (regularizer.around(np.zeros(n), 1.0) if pure else regularizer).shape(n)  # type: ignore[attr-defined]
        if shape.covariance is not None:
            precision = linalg.inv(shape.covariance)
            precision = 0.5 * (precision + precision.T)
        else:
            precision = 1.0 / shape.filled("scale")
        group, strength = np.full(n, -1), np.zeros(0)
        if shape.group is not None and shape.threshold is not None:
            held = shape.threshold > 0.0
            number = np.where(held, np.cumsum(held) - 1, -1)
            group = number[shape.group]
            inside = group >= 0
            scale = np.zeros(int(held.sum()))
            scale[group[inside]] = precision[inside]
            strength = shape.threshold[held] * scale
        if pure:
            # What is not there with twice the proximal term either.
            twice = 1.0 / regularizer.around(np.zeros(n), 2.0).shape(n).filled("scale")  # type: ignore[attr-defined]
            precision = 2.0 * precision - twice
        return Penalty(
            precision, shape.filled("centre"), shape.filled("floor"), shape.filled("ceiling"), group, strength
        )

    def times(self, x: np.ndarray) -> np.ndarray:
        return self.precision @ x if self.precision.ndim == 2 else self.precision * x

    def inside(self, w: np.ndarray) -> np.ndarray:
        return np.clip(w, self.lower, self.upper)


class _Factor:
    """A Cholesky factor, scaled to a diagonal of ones, which is raised if need be; refinement undoes what that did."""

    def __init__(self, H: np.ndarray) -> None:
        self.unit = 1.0 / np.sqrt(np.maximum(np.diagonal(H), 1e-300))
        self.matrix = H * self.unit * self.unit[:, None]
        self.found = False
        if not np.isfinite(self.matrix).all():
            return
        for shift in _SHIFTS:
            shifted = self.matrix.copy()
            shifted[np.diag_indices_from(shifted)] += shift
            try:
                self.factor = linalg.cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
            except linalg.LinAlgError:
                continue
            self.found = True
            return

    def solve(self, right: np.ndarray) -> np.ndarray:
        right = self.unit * right
        x = linalg.cho_solve(self.factor, right, check_finite=False)
        for _ in range(_REFINEMENTS):
            x = x + linalg.cho_solve(self.factor, right - self.matrix @ x, check_finite=False)
        return self.unit * x

    def squared_length(self, right: np.ndarray) -> float:
        """rᵀ H⁻¹ r."""
        half = linalg.solve_triangular(self.factor[0], self.unit * right, lower=True, check_finite=False)
        return float(half @ half)


class _Direction(NamedTuple):
    """Changes of everything, and the fastest rate at which anything comes to its bound."""

    w: np.ndarray
    eta: np.ndarray
    x: np.ndarray
    z: np.ndarray
    t: np.ndarray
    U: np.ndarray
    rate: float


@dataclass(kw_only=True)
class ClosedInteriorState(Progress):
    """A point inside all bounds, and the best weights and dual variables so far.

    ``x`` are slacks and ``z`` their multipliers: those of the slots, then of lower and upper bounds.
    """

    problem: Problem
    slots: Slots
    penalty: Penalty
    best_alpha: Any = None
    best: np.ndarray = field(default_factory=lambda: np.empty(0))
    upper: float = np.inf
    t: np.ndarray = field(default_factory=lambda: np.empty(0))
    U: np.ndarray = field(default_factory=lambda: np.empty(0))
    solved: bool = False
    least: float = np.inf
    gap: float = np.inf
    idle: int = 0

    @property
    def alpha(self) -> Any:
        return self.best_alpha

    @property
    def active(self) -> int:
        return self.slots.n

    @property
    def n_constraints(self) -> int:
        return self.problem.closed.n_constraints

    @property
    def nbytes(self) -> int:
        return int(self.best_alpha.nbytes)

    def weights(self) -> np.ndarray:
        return self.best

    def begin(self) -> None:
        """A point near the central path, at the better of the centre and the origin."""
        slots, penalty = self.slots, self.penalty
        d, self.visited = slots.n_weights, slots.n
        self.at_lower, self.at_upper = (np.flatnonzero(np.isfinite(b)) for b in (penalty.lower, penalty.upper))
        n, nl = slots.loss.size, self.at_lower.size
        self.of_slots, self.of_lower = slice(0, n), slice(n, n + nl)
        self.of_upper = slice(n + nl, n + nl + self.at_upper.size)
        self.counts = np.ones(self.of_upper.stop, bool)
        if not slots.bounded:
            self.counts[slots.zero] = False  # without a bound there is no slot 0
        self.cones = Cones(penalty.group, penalty.strength) if penalty.strength.size else None
        self.n_products = int(self.counts.sum()) + penalty.strength.size
        candidates = [penalty.inside(penalty.centre), penalty.inside(np.zeros(d))]
        values = [self._primal(w) for w in candidates]
        start = candidates[int(np.argmin(values))]
        self.upper, self.best = min(values), start
        if not slots.n or self.upper - self.lower <= 1e-15 * abs(self.upper):
            self.solved, self.estimate = True, 0.0
            return
        mu = max(self.upper - max(self.lower, 0.0), 1e-3 * self.upper) / self.n_products
        for _ in range(12):
            self._centre(start, mu)
            factor = _Factor(self._hessian())
            if not factor.found:
                break
            off = factor.squared_length(self._residual()) / (self.n_products * mu)
            if not off > _OFF_CENTRE:
                break
            mu *= max(3.0, off / _OFF_CENTRE)
        self._met()

    def _primal(self, w: np.ndarray) -> float:
        excess = self.slots.maxima(self.slots.loss - self.slots.scores(w))
        return float(self.problem.regularizer.value(w)) + self.slots.total_loss(excess)

    def _centre(self, w: np.ndarray, mu: float) -> None:
        """Every example on the central path at w, which is moved off its bounds as far as the barrier asks for."""
        slots, penalty = self.slots, self.penalty
        self.w = w
        self._centre_examples(mu)
        if self.at_lower.size or self.at_upper.size:
            D, T = self._weights()
            curvature = np.diagonal(slots.gram(D, T)) + penalty.precision
            room = np.sqrt(mu / np.maximum(curvature, 1e-300))
            room = np.where(
                np.isfinite(penalty.lower) & np.isfinite(penalty.upper),
                np.minimum(room, 0.25 * (penalty.upper - penalty.lower)),
                room,
            )
            self.w = np.clip(w, penalty.lower + room, penalty.upper - room)
            self._centre_examples(mu)
        if self.cones is not None:
            self.t, self.U = self.cones.centred(self.w, mu)

    def _centre_examples(self, mu: float) -> None:
        """η with Σ_k μ/(η − e_k) = C, e = l − r·w: Newton's method on C/f − μ, which comes nearer from one side.

        The parabola of a bounded loss is left out: it moves slacks by less than its width, far from any bound.
        """
        slots = self.slots
        e = slots.loss - slots.scores(self.w)
        if not slots.bounded:
            e[slots.zero] = -np.inf
        top = slots.maxima(e)
        off = e - slots.spread(top)
        if slots.bounded:
            room = mu / slots.budget
            for _ in range(60):
                inverse = 1.0 / (slots.spread(room) - off)
                f = slots.sums(inverse)
                change = (mu * f - slots.budget) * f / (slots.budget * slots.sums(inverse * inverse))
                room = room + np.maximum(change, 0.0)
                if (change <= 1e-13 * room).all():
                    break
        else:
            # Σ_k μ/(η − e_k) = η/q: a falling convex function minus a rising line.
            root = np.sqrt(top * top + 4.0 * mu * slots.bend)
            room = np.where(top > 0.0, 2.0 * mu * slots.bend / (top + root), 0.5 * (root - top))
            for _ in range(60):
                inverse = 1.0 / (slots.spread(room) - off)
                missing = mu * slots.sums(inverse) - (top + room) / slots.bend
                change = missing / (mu * slots.sums(inverse * inverse) + 1.0 / slots.bend)
                room = room + np.maximum(change, 0.0)
                if (change <= 1e-13 * room).all():
                    break
        s = slots.spread(room) - off
        alpha = mu / s
        self.eta = top + room
        if slots.bounded and slots.loss_shape.curvature > 0.0:
            xi = s[slots.zero].copy()
            bent = slots.bend * (slots.budget - alpha[slots.zero])
            s += slots.spread(bent)
            s[slots.zero] = xi
            self.eta += bent
        if not slots.bounded:
            s[slots.zero], alpha[slots.zero] = 1.0, 0.0
        penalty = self.penalty
        apart = [self.w[self.at_lower] - penalty.lower[self.at_lower]]
        apart += [penalty.upper[self.at_upper] - self.w[self.at_upper]]
        self.x = np.concatenate([s, *apart])
        self.z = np.concatenate([alpha, *(mu / a for a in apart)])

    def _weights(self) -> tuple[np.ndarray, np.ndarray]:
        """D of all slots, that of slot 0 damped by the parabola, and their sums per example."""
        slots = self.slots
        D = self.z[self.of_slots] / self.x[self.of_slots]
        if not slots.bounded:
            D[slots.zero] = 1.0 / slots.bend
        elif slots.loss_shape.curvature > 0.0:
            D[slots.zero] /= 1.0 + slots.bend * D[slots.zero]
        return D, slots.sums(D)

    def _hessian(self) -> np.ndarray:
        slots, penalty = self.slots, self.penalty
        H = penalty.precision.copy() if penalty.precision.ndim == 2 else np.diag(penalty.precision)
        for at, part in ((self.at_lower, self.of_lower), (self.at_upper, self.of_upper)):
            H[at, at] += self.z[part] / self.x[part]
        if self.cones is not None:
            self.cones.place(self.t, self.w, self.U)
            self.cones.add_hessian(H)
        self.D, self.T = self._weights()
        return slots.congruent(H) + slots.gram(self.D, self.T)

    def _residual(self) -> np.ndarray:
        """The gradient of the Lagrangian in w, in coordinates u."""
        g = self.penalty.times(self.w - self.penalty.centre)
        g[self.at_lower] -= self.z[self.of_lower]
        g[self.at_upper] += self.z[self.of_upper]
        if self.cones is not None:
            g[self.cones.at] -= self.U
        return self.slots.to_u(g) - self.slots.combine_u(self.z[self.of_slots])

    def _products(self) -> float:
        total = float((self.x * self.z)[self.counts].sum())
        if self.cones is not None:
            total += float(self.t @ self.cones.lam + self.w[self.cones.at] @ self.U)
        return total

    def _met(self) -> None:
        """Bounds of this point; the best so far are kept."""
        slots, regularizer = self.slots, self.problem.regularizer
        a = self.z[self.of_slots].copy()
        a[slots.zero] = 0.0
        if slots.bounded:
            a *= slots.spread(np.minimum(1.0, slots.budget / np.maximum(slots.sums(a), 1e-300)))
        v, total = slots.combine(a), slots.sums(a)
        linear = float(slots.loss @ a) - 0.5 * float(slots.bend @ (total * total))
        scale = regularizer.dual_scale(v)
        lower = scale * linear - regularizer.conjugate(
            scale * v
        )  # scaling shrinks what a parabola takes away even more
        if lower > self.lower:
            self.lower, self.best_alpha = float(lower), slots.shares(a)
        self._offer(self.penalty.inside(self.w), 0.0)
        self._offer(self._snapped(), _SNAP * self.goal * abs(self.upper))
        self.estimate = max(self.upper - self.lower, 0.0) / max(abs(self.upper), 1e-300)
        left = self._products()
        better = left <= 0.5 * self.least or self.upper - self.lower <= 0.9 * self.gap
        self.idle = 0 if better else self.idle + 1
        self.least, self.gap = min(self.least, left), min(self.gap, self.upper - self.lower)
        self.stuck = self.idle >= _PATIENCE

    def _offer(self, w: np.ndarray, allowed: float) -> None:
        """These weights are the best so far unless others were better by more than is allowed."""
        upper = self._primal(w)
        if upper < self.upper + allowed:
            self.upper, self.best = upper, w

    def _snapped(self) -> np.ndarray:
        """The weights of the point, with those at a bound, and groups at zero, that are on their way there.

        Interior points come near, but never arrive. Zeros are what users of group norms and bounds look for.
        """
        w, penalty = self.penalty.inside(self.w), self.penalty
        for at, part, bound in (
            (self.at_lower, self.of_lower, penalty.lower),
            (self.at_upper, self.of_upper, penalty.upper),
        ):
            if at.size:
                near = at[self.x[part] / self.x[part].max() < self.z[part] / self.z[part].max()]
                w[near] = bound[near]
        if self.cones is not None:
            room = 1.0 - self.cones.norm(self.U) / self.cones.lam
            w[self.cones.at[(self.t / self.t.max() < room)[self.cones.g]]] = 0.0
        return w

    def advance(self) -> None:
        """One predictor–corrector step."""
        factor = _Factor(self._hessian())
        if not factor.found:
            self.stuck = True
            return
        x, z, cones = self.x, self.z, self.cones
        total = self._products()
        mu = total / self.n_products
        residual, rho, r_c = self._residual(), self._slack_errors(), self._budget_errors()

        def direction(c: np.ndarray, cone: tuple[np.ndarray, np.ndarray] | None) -> _Direction:
            return self._direction(factor, residual, rho, r_c, c, cone)

        affine = direction(-x * z, None if cones is None else tuple(-c for c in cones.products()))  # type: ignore[arg-type]
        length = min(1.0, 1.0 / max(affine.rate, 1e-300))
        ahead = float(((x + length * affine.x) * (z + length * affine.z))[self.counts].sum())
        if cones is not None:
            ahead += float((self.t + length * affine.t) @ cones.lam)
            ahead += float((self.w + length * affine.w)[cones.at] @ (self.U + length * affine.U))
        sigma = min(max(ahead / total, 0.0), 1.0) ** 3
        target = min(max(sigma * mu, 0.1 * self.goal * abs(self.upper) / self.n_products), mu)
        c = target - x * z - affine.x * affine.z
        cone = None
        if cones is not None:
            (p0, p1), (s0, s1) = cones.products(), cones.second_order(affine.t, affine.w, affine.U)
            cone = target - p0 - s0, -p1 - s1
        found = direction(c, cone)
        length = min(1.0, _STEP / max(found.rate, 1e-300))
        for _ in range(2):
            if length >= _LONG_ENOUGH:
                break
            aim, band = min(1.0, 1.5 * length + 0.1), max(target, 1e-3 * mu)
            product = (x + aim * found.x) * (z + aim * found.z)
            pulled = c + np.maximum(np.clip(product, band / _FAR, band * _FAR) - product, -_FAR * band)
            trial = direction(pulled, cone)
            longer = min(1.0, _STEP / max(trial.rate, 1e-300))
            if longer < length + 0.01:
                break
            found, length, c = trial, longer, pulled
        if not np.isfinite(found.w).all() or not np.isfinite(length):
            self.stuck = True
            return
        self.w, self.eta = self.w + length * found.w, self.eta + length * found.eta
        self.x, self.z = x + length * found.x, z + length * found.z
        if cones is not None:
            self.t, self.U = self.t + length * found.t, self.U + length * found.U
        self._met()

    def _slack_errors(self) -> np.ndarray:
        """Slacks as they are stored minus those that follow from w and η."""
        slots, penalty = self.slots, self.penalty
        rho = self.x.copy()
        real = slots.scores(self.w) + slots.spread(self.eta) - slots.loss
        if slots.bounded:
            real[slots.zero] = self.eta - slots.bend * self._spent()
        else:
            real[slots.zero] = self.x[slots.zero]
        rho[self.of_slots] -= real
        rho[self.of_lower] -= self.w[self.at_lower] - penalty.lower[self.at_lower]
        rho[self.of_upper] -= penalty.upper[self.at_upper] - self.w[self.at_upper]
        return rho

    def _spent(self) -> np.ndarray:
        """Σ_k α_k of each example, without slot 0."""
        a = self.z[self.of_slots].copy()
        a[self.slots.zero] = 0.0
        return self.slots.sums(a)

    def _budget_errors(self) -> np.ndarray:
        slots = self.slots
        if slots.bounded:
            return slots.sums(self.z[self.of_slots]) - slots.budget
        return self._spent() - self.eta / slots.bend

    def _direction(
        self,
        factor: _Factor,
        residual: np.ndarray,
        rho: np.ndarray,
        r_c: np.ndarray,
        c: np.ndarray,
        cone: tuple[np.ndarray, np.ndarray] | None,
    ) -> _Direction:
        """Newton's step that changes the products x·z by c, and those of the cones by ``cone``."""
        slots, x, z, zero = self.slots, self.x, self.z, self.slots.zero
        q = c / x + z / x * rho
        of_slots = q[self.of_slots].copy()
        if not slots.bounded:
            of_slots[zero] = 0.0
        elif slots.loss_shape.curvature > 0.0:
            D0 = z[zero] / x[zero]
            of_slots[zero] = (of_slots[zero] - D0 * slots.bend * r_c) / (1.0 + slots.bend * D0)
        missing = slots.sums(of_slots) + r_c
        right = np.zeros(slots.n_weights)
        right[self.at_lower] += q[self.of_lower]
        right[self.at_upper] -= q[self.of_upper]
        if cone is not None and self.cones is not None:
            right[self.cones.at] += self.cones.right(*cone)
        k = of_slots - self.D * slots.spread(missing / self.T)
        dw = slots.from_u(factor.solve(slots.to_u(right) - residual + slots.combine_u(k)))
        along = slots.scores(dw)
        deta = (missing - slots.sums(self.D * along)) / self.T
        dx = -rho
        dx[self.of_slots] += along + slots.spread(deta)
        dx[self.of_lower] += dw[self.at_lower]
        dx[self.of_upper] -= dw[self.at_upper]
        dz = (c - z * dx) / x
        if not slots.bounded:
            dx[zero] = dz[zero] = 0.0
        elif slots.loss_shape.curvature > 0.0:
            dz[zero] = of_slots[zero] - self.D[zero] * deta
            dx[zero] = (c[zero] - x[zero] * dz[zero]) / z[zero]
        dt, dU = (self.t, self.U) if self.cones is None else self.cones.back(dw)
        rate = max(float((-dx / x).max()), float((-dz[self.counts] / z[self.counts]).max()), 0.0)
        if self.cones is not None:
            rate = max(rate, self.cones.rate(dt, dw, dU))
        return _Direction(dw, deta, dx, dz, dt, dU, rate)
