"""A referee for certificates, in exact rational arithmetic: nothing here is shared with the package.

    minimise  Ω(w) + Σ_i C_i·φ(ξ_i),    ξ_i = max(0, max_j (l_ij − w·x_ij))

φ(ξ) = ξ²/(2κ) up to ξ = κ and ξ − κ/2 beyond; or, if it is not bounded, ξ²/(2κ) everywhere. The hinge has κ = 0.

Every number of a problem is taken as it is stored: a float is a fraction whose denominator is a power of two. Square
roots, which group norms need, are enclosed to 200 bits. So a value is a pair of fractions that it lies between.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

BITS = 200
Range = tuple[Fraction, Fraction]


def fractions(values: Any) -> list[Fraction]:
    return [Fraction(x) for x in np.asarray(values, dtype=object).ravel().tolist()]


def whole(values: Sequence[Fraction]) -> tuple[np.ndarray, int]:
    """The same numbers as integers over one denominator: Python multiplies integers fast and fractions slowly."""
    denominator = math.lcm(*(x.denominator for x in values)) if values else 1
    integers = [x.numerator * (denominator // x.denominator) for x in values]
    return np.array([*integers, None], dtype=object)[:-1], denominator  # None: numpy must not make int64 of them


def square_root(x: Fraction) -> Range:
    shift = BITS + max(0, (x.denominator.bit_length() - x.numerator.bit_length()) // 2)
    below = math.isqrt((x.numerator << (2 * shift)) // x.denominator)
    return Fraction(below, 1 << shift), Fraction(below + 1, 1 << shift)


def rounded_down(x: Fraction) -> Fraction:
    """A number of few bits just below: denominators of sums would grow with every term."""
    shift = BITS + max(0, x.denominator.bit_length() - abs(x.numerator).bit_length())
    return Fraction((x.numerator << shift) // x.denominator, 1 << shift)


def dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


# Regularizers: value Ω(w) and conjugate Ω*(v) as ranges, None for infinity; ``scale`` moves v to where Ω* is finite.


class Quadratic:
    """½ (w − mean)ᵀ covariance⁻¹ (w − mean), covariance a number, a diagonal or a matrix.

    floor ≤ w ≤ ceiling where these are not None.
    """

    def __init__(
        self,
        n: int,
        mean: Any = 0.0,
        covariance: Any = 1.0,
        floor: Sequence[Any] | None = None,
        ceiling: Sequence[Any] | None = None,
    ) -> None:
        self.mean = fractions(np.broadcast_to(mean, n))
        covariance = np.asarray(covariance)
        self.full = covariance.ndim == 2
        if self.full:
            self.table = [fractions(row) for row in covariance]
            self.inverse = inverse(self.table)
        else:
            self.spread = fractions(np.broadcast_to(covariance, n))
        self.floor, self.ceiling = (
            [None] * n if bounds is None else [None if b is None else Fraction(b) for b in bounds]
            for bounds in (floor, ceiling)
        )

    def _clipped(self, w: Sequence[Fraction]) -> list[Fraction]:
        above = [x if b is None else max(x, b) for x, b in zip(w, self.floor, strict=True)]
        return [x if b is None else min(x, b) for x, b in zip(above, self.ceiling, strict=True)]

    def value(self, w: Sequence[Fraction]) -> Range | None:
        if list(w) != self._clipped(w):
            return None
        off = [x - m for x, m in zip(w, self.mean, strict=True)]
        if self.full:
            total = dot(off, [dot(row, off) for row in self.inverse])
        else:
            total = sum((x * x / s for x, s in zip(off, self.spread, strict=True)), Fraction(0))
        return total / 2, total / 2

    def conjugate(self, v: Sequence[Fraction]) -> Range | None:
        if self.full:
            total = dot(self.mean, v) + dot(v, [dot(row, v) for row in self.table]) / 2
            return total, total
        total = Fraction(0)
        free = [m + s * x for x, m, s in zip(v, self.mean, self.spread, strict=True)]
        for x, m, s, w in zip(v, self.mean, self.spread, self._clipped(free), strict=True):
            total += w * x - (w - m) ** 2 / s / 2
        return total, total

    def scale(self, v: Sequence[Fraction]) -> Fraction:
        return Fraction(1)


class Groups:
    """Σ_p strength_p ‖w^p‖ + l2/2 ‖w‖²."""

    def __init__(self, groups: Sequence[Any], strength: Any, l2: float = 0.0) -> None:
        self.groups = [[int(j) for j in group] for group in groups]
        self.strength = fractions(np.broadcast_to(strength, len(self.groups)))
        self.l2 = Fraction(l2)

    def _norms(self, w: Sequence[Fraction]) -> list[Range]:
        return [square_root(sum((w[j] ** 2 for j in group), Fraction(0))) for group in self.groups]

    def value(self, w: Sequence[Fraction]) -> Range | None:
        norms = self._norms(w)
        square = self.l2 * dot(w, w) / 2
        return dot(self.strength, [a for a, _ in norms]) + square, dot(self.strength, [b for _, b in norms]) + square

    def conjugate(self, v: Sequence[Fraction]) -> Range | None:
        if self.l2 == 0:
            inside = all(
                sum((v[j] ** 2 for j in group), Fraction(0)) <= s * s
                for group, s in zip(self.groups, self.strength, strict=True)
            )
            return (Fraction(0), Fraction(0)) if inside else None
        ends = []
        for side in (0, 1):
            over = [max(Fraction(0), n[side] - s) for n, s in zip(self._norms(v), self.strength, strict=True)]
            ends.append(dot(over, over) / (2 * self.l2))
        return ends[0], ends[1]

    def scale(self, v: Sequence[Fraction]) -> Fraction:
        if self.l2:
            return Fraction(1)
        return min([Fraction(1), *(s / n[1] for n, s in zip(self._norms(v), self.strength, strict=True))])


def total(ranges: Sequence[Range | None]) -> Range | None:
    known = [r for r in ranges if r is not None]
    ends = [sum((r[side] for r in known), Fraction(0)) for side in (0, 1)]
    return (ends[0], ends[1]) if len(known) == len(ranges) else None


class Parts:
    """Regularizers of disjoint sets of weights."""

    def __init__(self, parts: Sequence[tuple[Sequence[int], Any]]) -> None:
        self.parts = parts

    def value(self, w: Sequence[Fraction]) -> Range | None:
        return total([r.value([w[j] for j in index]) for index, r in self.parts])

    def conjugate(self, v: Sequence[Fraction]) -> Range | None:
        return total([r.conjugate([v[j] for j in index]) for index, r in self.parts])

    def scale(self, v: Sequence[Fraction]) -> Fraction:
        return min(r.scale([v[j] for j in index]) for index, r in self.parts)


def inverse(table: list[list[Fraction]]) -> list[list[Fraction]]:
    n = len(table)
    rows = [[*row, *(Fraction(i == j) for j in range(n))] for i, row in enumerate(table)]
    for k in range(n):
        pivot = next(i for i in range(k, n) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(n):
            if i != k and rows[i][k]:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[n:] for row in rows]


# Problems: ``slacks`` of all examples at w, and what dual variables add up to.


class Rows:
    """Constraints written out. ``example[j]`` owns row j, a list of fractions, with the margin ``loss[j]``."""

    def __init__(
        self,
        rows: Sequence[Sequence[Fraction]],
        loss: Sequence[Fraction],
        example: Sequence[int],
        budget: Sequence[Fraction],
        regularizer: Any,
        *,
        loss_shape: tuple[Any, bool] = (0, True),
    ) -> None:
        flat, self.denominator = whole([x for row in rows for x in row])
        self.table = flat.reshape(len(rows), -1)
        self.loss, self.example, self.budget = list(loss), list(example), list(budget)
        self.regularizer, self.bounded = regularizer, loss_shape[1]
        self.curvature = Fraction(loss_shape[0])

    def _scores(self, table: np.ndarray, w: Sequence[Fraction]) -> list[Fraction]:
        integers, denominator = whole(w)
        return [Fraction(int(s), self.denominator * denominator) for s in table @ integers]

    def slacks(self, w: Sequence[Fraction]) -> list[Fraction]:
        slacks = [Fraction(0)] * len(self.budget)
        for i, loss, score in zip(self.example, self.loss, self._scores(self.table, w), strict=True):
            slacks[i] = max(slacks[i], loss - score)
        return slacks

    def sizes(self, w: Sequence[Fraction]) -> list[Fraction]:
        """For each example the largest l + Σ_k |x_k w_k|: what rounding errors of its slack are measured by."""
        sizes = [Fraction(0)] * len(self.budget)
        scores = self._scores(abs(self.table), [abs(x) for x in w])
        for i, loss, score in zip(self.example, self.loss, scores, strict=True):
            sizes[i] = max(sizes[i], loss + score)
        return sizes

    def planes(self, shares: Sequence[Any]) -> list[tuple[int, Fraction, Fraction, np.ndarray]]:
        """(example, margin, share, row of integers) of every share that is not zero; ``shares`` has one per row."""
        found = zip(self.example, self.loss, fractions(shares), self.table, strict=True)
        return [plane for plane in found if plane[2] != 0]

    def value(self, w: Sequence[Fraction]) -> Range | None:
        """P(w), or None where Ω is infinite."""
        omega = self.regularizer.value(w)
        if omega is None:
            return None
        total = sum((c * self._price(s) for c, s in zip(self.budget, self.slacks(w), strict=True)), Fraction(0))
        return omega[0] + total, omega[1] + total

    def bulk(self, w: Sequence[Fraction]) -> Fraction:
        """Σ_i C_i·size_i + Ω: what rounding errors of the objective are measured by."""
        total = sum((c * self._price(s) for c, s in zip(self.budget, self.sizes(w), strict=True)), Fraction(0))
        return total + self.regularizer.value(w)[1]

    def _price(self, slack: Fraction) -> Fraction:
        if self.bounded and slack > self.curvature:
            return slack - self.curvature / 2
        return slack * slack / (2 * self.curvature) if slack else slack

    def dual(self, shares: Any) -> Range:
        """D at the shares, which are first made feasible: none below zero, together at most C_i, Ω* finite."""
        planes = [p for p in self.planes(shares) if p[2] > 0]
        used = [Fraction(0)] * len(self.budget)
        for i, _, share, _ in planes:
            used[i] += share
        fits = [not self.bounded or u <= c for u, c in zip(used, self.budget, strict=True)]
        alpha = [a if fits[i] else rounded_down(a * self.budget[i] / used[i]) for i, _, a, _ in planes]
        alpha = [a if self.budget[p[0]] else Fraction(0) for a, p in zip(alpha, planes, strict=True)]
        linear = dot([p[1] for p in planes], alpha)
        if self.curvature:  # the conjugate of C·φ; nothing can be had where C is zero
            terms = (a * a / self.budget[p[0]] for a, p in zip(alpha, planes, strict=True) if a)
            linear -= self.curvature / 2 * sum(terms, Fraction(0))
        v = self._combined(planes, alpha)
        scale = self.regularizer.scale(v)
        if scale != 1:
            scale = rounded_down(scale)
        conjugate = self.regularizer.conjugate([scale * x for x in v])
        return scale * linear - conjugate[1], scale * linear - conjugate[0]

    def at_zero(self) -> Fraction:
        """D at α = 0, which needs no dual variables."""
        return -self.regularizer.conjugate([Fraction(0)] * self.table.shape[1])[0]

    def _combined(self, planes: Sequence[Any], alpha: Sequence[Fraction]) -> list[Fraction]:
        integers, denominator = whole(alpha)
        total = np.array([0] * self.table.shape[1], dtype=object)
        for a, plane in zip(integers, planes, strict=True):
            total = total + a * plane[3]
        return [Fraction(int(x), denominator * self.denominator) for x in total]


class Chains(Rows):
    """Sequences too long to write all labellings out: Viterbi in integers, Hamming loss, emissions and transitions.

    Weights are ``emission[feature, label]`` and then ``transition[from, to]``; shares are (example, labels, share).
    """

    def __init__(
        self, X: Sequence[Any], Y: Sequence[Any], n_labels: int, budget: Sequence[Fraction], regularizer: Any
    ) -> None:
        self.K, self.d = n_labels, X[0].shape[1]
        flat, self.denominator = whole(fractions(np.concatenate([np.asarray(x, dtype=object).ravel() for x in X])))
        ends = np.cumsum([0, *(x.size for x in X)])
        self.X = [flat[a:b].reshape(-1, self.d) for a, b in itertools.pairwise(ends)]
        self.Y = [[int(k) for k in y] for y in Y]
        self.table = np.empty((0, self.d * self.K + self.K**2), dtype=object)
        self.budget, self.regularizer = list(budget), regularizer
        self.curvature, self.bounded = Fraction(0), True

    def slacks(self, w: Sequence[Fraction]) -> list[Fraction]:
        integers, denominator = whole(w)
        unit = self.denominator * denominator
        emission = integers[: self.d * self.K].reshape(self.d, self.K)
        step = (integers[self.d * self.K :] * self.denominator).reshape(self.K, self.K).tolist()
        slacks = []
        for x, y in zip(self.X, self.Y, strict=True):
            at = (x @ emission).tolist()
            truth = sum(at[t][k] for t, k in enumerate(y)) + sum(step[a][b] for a, b in itertools.pairwise(y))
            best = [s + unit * (k != y[0]) for k, s in enumerate(at[0])]
            for t in range(1, len(y)):
                best = [
                    at[t][k] + unit * (k != y[t]) + max(best[j] + step[j][k] for j in range(self.K))
                    for k in range(self.K)
                ]
            slacks.append(Fraction(max(0, max(best) - truth), unit))
        return slacks

    def sizes(self, w: Sequence[Fraction]) -> list[Fraction]:
        most = max(abs(x) for x in w)
        return [2 * most * (Fraction(int(abs(x).sum()), self.denominator) + len(x)) + len(x) for x in self.X]

    def planes(self, shares: Any) -> list[tuple[int, Fraction, Fraction, np.ndarray]]:
        return [
            (i, Fraction(sum(a != b for a, b in zip(self.Y[i], z, strict=True))), Fraction(share), self._row(i, z))
            for i, z, share in shares
        ]

    def _row(self, i: int, z: Sequence[int]) -> np.ndarray:
        row = np.array([0] * self.table.shape[1], dtype=object)
        for sign, y in ((1, self.Y[i]), (-1, z)):
            label = np.asarray(y)
            for k in range(self.K):
                row[np.arange(self.d) * self.K + k] += sign * self.X[i][label == k].sum(axis=0)
            pairs = np.bincount(label[:-1] * self.K + label[1:], minlength=self.K**2)
            row[self.d * self.K :] += sign * self.denominator * pairs.astype(object)
        return row


class Together:
    """Independent problems: weights and shares are those of one after another, values add up."""

    def __init__(self, problems: Sequence[Rows]) -> None:
        self.problems = problems

    def _split(self, values: Any, sizes: Sequence[int]) -> Any:
        ends = np.cumsum([0, *sizes]).tolist()
        return zip(self.problems, (values[a:b] for a, b in itertools.pairwise(ends)), strict=True)

    def _by_weights(self, w: Sequence[Fraction]) -> Any:
        return self._split(w, [p.table.shape[1] for p in self.problems])

    def value(self, w: Sequence[Fraction]) -> Range | None:
        return total([p.value(part) for p, part in self._by_weights(w)])

    def bulk(self, w: Sequence[Fraction]) -> Fraction:
        return sum((p.bulk(part) for p, part in self._by_weights(w)), Fraction(0))

    def dual(self, shares: Any) -> Range:
        return total([p.dual(part) for p, part in self._split(shares, [len(p.loss) for p in self.problems])])  # type: ignore[return-value]

    def at_zero(self) -> Fraction:
        return sum((p.at_zero() for p in self.problems), Fraction(0))


# The verdict.


@dataclass(frozen=True)
class Finding:
    """What is wrong with a certificate, and by how much of the upper bound."""

    kind: str
    size: float
    text: str = ""

    @property
    def is_weak(self) -> bool:
        """Whether the bound is true, and only further from what it could be than rounding explains."""
        return " far " in self.kind

    def __str__(self) -> str:
        return f"{self.kind} ({self.size:.2g}) {self.text}"


FAR = Fraction(1, 10**7)  # a bound further from what its own weights or shares give than this is needlessly weak,
ROUNDING = Fraction(1, 10**12)  # unless rounding errors, in terms of the largest numbers in between, explain it
SCALED = Fraction(4, 2**52)  # what shares may lose when they are made feasible in another way than here


@dataclass
class Referee:
    """Judges certificates of one problem. What is known of the optimum: ``least`` from above, ``most`` from below."""

    problem: Rows | Together
    least: Fraction | None = None
    most: Fraction = field(default_factory=lambda: Fraction(-(10**400)))

    def learn(self, w: Sequence[Fraction] | None = None, shares: Any = None) -> None:
        """Any weights and any dual variables bound the optimum."""
        if w is not None:
            value = self.problem.value(w)
            if value is not None and (self.least is None or value[1] < self.least):
                self.least = value[1]
        if shares is not None:
            self.most = max(self.most, self.problem.dual(shares)[0])

    def judge(self, certificate: Any, w: Sequence[Fraction], shares: Any = None) -> list[Finding]:
        """All that is wrong with a certificate whose upper bound is for w, and whose lower one for the shares."""
        self.learn(w, shares)
        value = self.problem.value(w)
        if value is None:
            return [Finding("weights outside their bounds", 1.0)]
        if math.isnan(certificate.lower) or math.isnan(certificate.upper):
            return [Finding("not a number", 1.0, repr(certificate))]
        bulk = self.problem.bulk(w)
        found = self._lower(certificate, shares, bulk)
        if math.isfinite(certificate.upper):
            found += self._upper(certificate, value, bulk)
            found += _gap(certificate)
        return found

    def _lower(self, certificate: Any, shares: Any, bulk: Fraction) -> list[Finding]:
        if not math.isfinite(certificate.lower):
            return [Finding("lower is infinite", 1.0, repr(certificate))] if certificate.lower > 0 else []
        lower, found = Fraction(certificate.lower), []
        if self.least is not None and lower > self.least:
            found.append(_finding("lower above the optimum", lower - self.least, self.least))
        if shares is not None:
            own = self.problem.dual(shares)
            room = SCALED * abs(own[1])
            if lower > max(own[1], self.most) + room and lower > self.problem.at_zero():
                found.append(_finding("lower above its own dual value", lower - own[1], abs(own[1])))
            elif lower < own[0] - FAR * abs(own[0]) - ROUNDING * bulk:
                found.append(_finding("lower far below its own dual value", own[0] - lower, abs(own[0])))
        return found

    def _upper(self, certificate: Any, value: Range, bulk: Fraction) -> list[Finding]:
        upper, found = Fraction(certificate.upper), []
        if upper < self.most:
            found.append(_finding("upper below the optimum", self.most - upper, self.most))
        if upper < value[0]:
            found.append(_finding("upper below the objective", value[0] - upper, value[0]))
        elif upper > value[1] * (1 + FAR) + ROUNDING * bulk:
            found.append(_finding("upper far above the objective", upper - value[1], value[1]))
        return found


def _gap(certificate: Any) -> list[Finding]:
    lower, upper = Fraction(certificate.lower), Fraction(certificate.upper)
    found = []
    if lower > upper:
        found.append(_finding("bounds crossed", lower - upper, abs(upper)))
    else:
        gap = (upper - lower) / (abs(upper) or 1)
        if abs(Fraction(certificate.relative_gap) - gap) > Fraction(1, 10**12) * gap:
            found.append(Finding("relative_gap wrong", float(gap), f"says {certificate.relative_gap}"))
    if "relative gap 0e+00" in repr(certificate) and lower != upper:
        found.append(Finding("repr shows no gap", float(abs(upper - lower)), repr(certificate)))
    return found


def _finding(kind: str, excess: Fraction, of: Fraction) -> Finding:
    return Finding(kind, float(excess / of) if of else math.inf, f"by {float(excess):.3g} of {float(of):.6g}")
