"""Newton steps over slots (``constraints.slots``) in array code: everything that is done once per example.

The same questions, and the same method, as ``kernels.normal_equations``, for any number of slots that share one slack.
With q of the loss (``kernels.losses``), η = ξ + q·Σα over all slots but slot 0, whose slack is ξ:

    minimise  Σ_i [C ξ + ½ q (Σα)²]      such that   s_k = w·r_k + η − l_k ≥ 0,   ξ ≥ 0

Multipliers add up to C with that of slot 0; where a loss is not bounded there is no slot 0, and Σα = η/q. Given
changes c of the products α·s, and those of scores, u = r·dw,

    dα = q' − D·(u + dη),    q' = c/s + D·(stored slack − true slack),    D = α/s
    dη = (Σ q' + what Σα is above C − Σ D u)/T,    T = Σ D

(slot 0: D divided by 1 + q·D; not bounded: 1/q in place of its D), so that dα = k − D·(u − Σ D u / T).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..constraints.slots import InteriorSlots
from ..kernels.normal_equations import FAR

_NEWTON_STEPS = 60  # on η of all examples at once: the slowest of them decides
_NEAR = 1e-13  # of η, where they end
_HELD = 1e-3  # of C: from there on a multiplier counts as off its bounds


class SlotValues(NamedTuple):
    """Multipliers and slacks of all slots, η of all examples."""

    z: np.ndarray
    x: np.ndarray
    eta: np.ndarray


class _Change(NamedTuple):
    eta: np.ndarray
    x: np.ndarray
    z: np.ndarray
    shift: np.ndarray
    """D·(u − Σ D u / T) of the multipliers."""


class SlotPoint:
    """The point of some examples: multipliers z, slacks x, and η. Slots that are not in use have z = 0 and x = 1."""

    def __init__(self, slots: InteriorSlots, point: SlotValues, alpha: np.ndarray) -> None:
        self.slots, self.alpha = slots, alpha
        self.z, self.x, self.eta = (values.reshape(-1) for values in point)
        self.live = slots.budget > 0.0
        self.budget = np.where(self.live, slots.budget, 1.0)
        self.q = slots.loss_shape.curvature / self.budget
        self.bounded = slots.loss_shape.bounded
        self.bent = self.bounded and slots.loss_shape.curvature > 0.0
        self._used = slice(None) if slots.there.all() else np.flatnonzero(slots.there)
        self._walked: _Step | None = None

    def pieces(self, n: int) -> list[SlotPoint]:
        """All in one piece: array code shares nothing out."""
        return [self]

    def share(self) -> None:
        """Dual variables that follow from the point, which has moved."""
        self._walked = None
        self.alpha[...] = self.slots.shares(self.z)

    def centre(self, w: np.ndarray, per_budget: float) -> None:
        """All products μ = ``per_budget``·C: η from Σ_k μ/(η − e_k) = C, e = l − w·r, by Newton's method.

        It comes nearer from one side, where the largest e alone is accounted for. The parabola of a bounded loss is
        left out: it moves slacks by less than its width, far from any bound.
        """
        slots, budget, q = self.slots, self.budget, self.q
        mu = per_budget * budget
        e = np.where(slots.there, slots.loss - slots.scores(w[None])[0], -np.inf)
        top = np.where(self.live, slots.maxima(e), 0.0)
        off = e - slots.spread(top)
        if self.bounded:
            room = mu / budget
        else:
            root = np.sqrt(top * top + 4.0 * mu * q)
            room = np.where(top > 0.0, 2.0 * mu * q / (top + root), 0.5 * (root - top))
        for _ in range(_NEWTON_STEPS):
            inverse = 1.0 / (slots.spread(room) - off)
            f, slope = mu * slots.sums(inverse), mu * slots.sums(inverse * inverse)
            # Bounded: on C/f − 1, which is nearly a line.
            missing = (f / budget - 1.0) * f if self.bounded else f - (top + room) / q
            change = missing / (slope + (0.0 if self.bounded else 1.0 / q))
            change = np.where(self.live, np.maximum(change, 0.0), 0.0)
            room = room + change
            if (change <= _NEAR * room).all():
                break
        self.x[:] = np.where(slots.there, slots.spread(room) - off, 1.0)
        self.z[:] = np.where(slots.there, slots.spread(mu) / self.x, 0.0)
        self.eta[:] = np.where(self.live, top + room, 0.0)
        if self.bent:
            bent = q * self.spent()
            self.eta += bent
            bent = slots.spread(bent)
            bent[slots.zero] = 0.0
            self.x += bent
        self._to_budget()
        self.share()

    def look(self, w: np.ndarray, directions: np.ndarray, mu: float) -> tuple[np.ndarray, np.ndarray]:
        step, used = self._step(w, directions, mu), self._used
        _, dx, dz, shift = step.changes[-1]
        vector = self.slots.combine((step.shift(step.aims) - shift)[None])[0]
        falls = np.minimum(dx[used] / self.x[used], dz[used] / self.z[used])
        return vector, np.array([-falls.min(initial=0.0), float(dx @ self.z + self.x @ dz), float(dx @ dz)])

    def advance(
        self, w: np.ndarray, directions: np.ndarray, mu: float, length: float, precise: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        slots = self.slots
        if len(directions):
            change = self._step(w, directions, mu).changes[-1]
            self.eta += length * change.eta
            self.x += length * change.x
            self.z += length * change.z
            self._to_budget()
            w = w + length * directions[-1]
            self.share()
        step = self._step(w, directions[:0], mu)
        unit = step.shift(slots.there.astype(np.float64), centring=True)
        vectors = slots.combine(np.stack([self.z, step.shift(step.aims), unit]))
        loss, dual = self._objectives(step.scores)
        off_bounds = slots.sums((self.z > _HELD * slots.spread(self.budget)).astype(np.float64)) > 1.0
        sums = np.array([loss, dual, float(self.x @ self.z), slots.there.sum(), off_bounds.sum()], np.float64)
        return slots.gram(step.D, step.T), vectors, sums

    def _step(self, w: np.ndarray, directions: np.ndarray, mu: float) -> _Step:
        """Along these directions from here: those that the last question was about are not walked again."""
        if self._walked is None or not np.array_equal(self._walked.w, w):
            self._walked = _Step(self, w)
        self._walked.walk(directions, mu)
        return self._walked

    def _to_budget(self) -> None:
        """Take out of multipliers what rounding has added to their sums: this point is to be feasible."""
        if self.bounded:
            self.z *= self.slots.spread(self.budget / np.where(self.live, self.slots.sums(self.z), 1.0))

    def spent(self) -> np.ndarray:
        """Σα without slot 0."""
        return self.slots.sums(self.z) - self.z[self.slots.zero]

    def _objectives(self, scores: np.ndarray) -> tuple[float, float]:
        """Σ C φ(excess), and the dual objective but for Ω*."""
        slots, kappa = self.slots, self.slots.loss_shape.curvature
        excess = slots.maxima(np.where(slots.there, slots.loss - scores, -np.inf))
        excess = np.where(self.live, np.maximum(excess, 0.0), 0.0)
        bent = np.minimum(excess, kappa) if self.bounded else excess
        loss = excess - bent + (bent * bent / (2.0 * kappa) if kappa > 0.0 else 0.0)
        spent = self.spent()
        return float(self.budget @ loss), float(slots.loss @ self.z) - 0.5 * float(self.q @ (spent * spent))


class _Step:
    """Along some directions from w: how slots answer, and what the next one aims at.

    ``aims`` are changes of products. After the affine direction it is Mehrotra's correction, after that Gondzio's.
    """

    def __init__(self, at: SlotPoint, w: np.ndarray) -> None:
        slots, z, x = at.slots, at.z, at.x
        self.at, self.w = at, w.copy()
        self.scores = slots.scores(w[None])[0]
        self.D = z / x
        self.damp = np.ones(slots.n)
        if not at.bounded:
            self.D[slots.zero] = np.where(at.live, 1.0 / at.q, 0.0)
        elif at.bent:
            self.damp = 1.0 / (1.0 + at.q * self.D[slots.zero])
            self.D[slots.zero] *= self.damp
        self.T = np.where(at.live, slots.sums(self.D), 1.0)
        self.errors = np.where(slots.there, x - (self.scores + slots.spread(at.eta) - slots.loss), 0.0)
        if at.bent:
            self.errors[slots.zero] += np.where(at.live, at.q * at.spent(), 0.0)
        above = slots.sums(z) - (at.budget if at.bounded else at.eta / at.q)
        self.above = np.where(at.live, above, 0.0)
        self.products = x * z
        self.directions, self.mu = np.zeros((0, w.size)), 0.0
        self.changes: list[_Change] = []
        self.walk(self.directions, 0.0)

    def walk(self, directions: np.ndarray, mu: float) -> None:
        """Up to the end of the last direction."""
        del self.changes[self._known(directions, mu) :]
        self.directions, self.mu = directions.copy(), mu
        self.aims = -self.products * self.at.slots.there
        for depth, direction in enumerate(directions):
            if depth == len(self.changes):
                self.changes.append(self._answer(self.at.slots.scores(direction[None])[0]))
            self._correct(depth, mu)

    def _known(self, directions: np.ndarray, mu: float) -> int:
        """How many changes stay what they are; all after the first depend on μ, too."""
        n = min(len(directions), len(self.changes))
        differ = np.flatnonzero((directions[:n] != self.directions[:n]).any(axis=1))
        alike = int(differ[0]) if differ.size else n
        return alike if mu == self.mu else min(alike, 1)

    def _correct(self, depth: int, mu: float) -> None:
        x, z, (_, dx, dz, _) = self.at.x, self.at.z, self.changes[depth]
        if depth == 0:
            self.aims = mu - self.products - dx * dz
        elif depth == 1:
            product = (x + dx) * (z + dz)
            pull = np.clip(product, mu / FAR, mu * FAR) - product
            self.aims = self.aims + np.maximum(pull, -FAR * mu)
        self.aims *= self.at.slots.there

    def _wanted(self, aims: np.ndarray, centring: bool) -> tuple[np.ndarray, np.ndarray]:
        """q' of slots, and the change of η if scores stay; for ``centring`` without what is to be corrected."""
        slots, at = self.at.slots, self.at
        wanted = aims / at.x
        above = np.zeros(slots.n)
        if not centring:
            wanted += at.z / at.x * self.errors
            above = self.above
        if at.bent:
            zero = slots.zero
            wanted[zero] = wanted[zero] * self.damp - self.D[zero] * at.q * above
        return wanted, (slots.sums(wanted) + above) / self.T

    def shift(self, aims: np.ndarray, centring: bool = False) -> np.ndarray:
        """k of dα = k − D·(u − Σ D u / T)."""
        wanted, eta = self._wanted(aims, centring)
        return wanted - self.D * self.at.slots.spread(eta)

    def _answer(self, along: np.ndarray) -> _Change:
        slots, at = self.at.slots, self.at
        wanted, deta = self._wanted(self.aims, False)
        mean = slots.sums(self.D * along) / self.T
        deta = deta - mean
        dx = np.where(slots.there, along + slots.spread(deta) - self.errors, 0.0)
        dz = np.where(slots.there, (self.aims - at.z * dx) / at.x, 0.0)
        if at.bent:
            zero = slots.zero
            dz[zero] = wanted[zero] - self.D[zero] * deta
            left = self.aims[zero] - at.x[zero] * dz[zero]
            dx[zero] = np.where(at.live, left / np.where(at.live, at.z[zero], 1.0), 0.0)
        return _Change(np.where(at.live, deta, 0.0), dx, dz, self.D * (along - slots.spread(mean)))
