"""Random problems of all estimators, as the package is given them and as the referee of ``exact.py`` sees them.

Numbers are awkward on purpose: scales from 1e-6 to 1e6 in one matrix, C as wide, rows of zeros and rows twice, offsets
far from zero, fits that end long before they converge. Every number comes from the seed of a case.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import exact
import numpy as np
import scipy.sparse as sp
from exact import Finding, Groups, Quadratic, Referee, fractions
from generators import covariance, partition
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.regularizers import Bounded, GaussianPrior, GroupNorm

Vector = list[Fraction]


@dataclass
class Case:
    """An estimator, its data, and how both look in fractions once it is fitted."""

    estimator: Any
    data: tuple[Any, ...]
    problem: Callable[[Any], exact.Rows | exact.Together]
    weights: Callable[[Any], Vector]
    shares: Callable[[Any], Any]
    settings: dict[str, Any]
    way: str = "fit"
    note: str = ""
    longer: int = 300

    def __str__(self) -> str:
        return f"{self.estimator!r}, {self.way}, {self.note}"


def check(case: Case) -> list[Finding]:
    """Fit, and all that is wrong with what the fit says of itself."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        est, source = fitted(case)
    # Weights and dual variables of a second, longer fit bound the optimum as well as any.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = clone(case.estimator).set_params(tol=1e-9, max_passes=case.longer, solver="auto", warm_start=False)
        other.fit(*case.data, **case.settings)
    referee = Referee(case.problem(est))
    if not hasattr(est, "latent_") or np.array_equal(est.latent_, other.latent_):
        referee.learn(case.weights(other), case.shares(other))
    shares = case.shares(est)
    found = referee.judge(est.certificate_, case.weights(est), shares)
    found += goal_and_warning(est, told)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        again = est.certify(*case.data, **case.settings) if source is None else est.certify(source)
    if hasattr(est, "latent_") and again.upper < 0.999 * est.certificate_.upper:
        return found  # certify proves the better of two bounds, and took the other
    found += [Finding(f"certify: {f.kind}", f.size, f.text) for f in referee.judge(again, case.weights(est), shares)]
    found += [Finding("certify warns", 1.0, str(w.message)) for w in told if w.category is UserWarning]
    if case.way == "stream":
        return found
    return found + agreement(est.certificate_, again, float(referee.problem.bulk(case.weights(est))))


def fitted(case: Case) -> tuple[Any, Any]:
    """The estimator, trained in the way of the case, and the source that it was trained from, if there was one."""
    est, (X, y) = clone(case.estimator), case.data
    if case.way == "source":
        names = {"sample_weight": "weights", "groups": "groups"}
        given = {names[k]: v for k, v in case.settings.items() if v is not None}
        source = mm.data.open(X, labels=y, chunk_rows=3, **given)
        return est.fit(source), source
    if case.way == "pairs":
        source = mm.data.open(list(zip(X, y, strict=True)), chunk_rows=2)
        return est.fit(source), source
    if case.way == "stream":
        for part in pieces(case):
            est.partial_fit(*part[0], **part[1])
        return est, None
    if case.way == "warm":
        est.set_params(warm_start=True, max_passes=3, C=2 * est.C).fit(*case.data, **case.settings)
        est.set_params(max_passes=case.estimator.max_passes, C=case.estimator.C)
    return est.fit(*case.data, **case.settings), None


def pieces(case: Case) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The data of a stream, in two or three chunks; what the first must know of all is told."""
    X, y = case.data
    n = len(y)
    cuts = (
        [0, n // 2, n]
        if "groups" not in case.settings
        else [0, *np.flatnonzero(np.diff(case.settings["groups"])) + 1, n]
    )
    parts = []
    for a, b in itertools.pairwise(cuts):
        extra = {k: v[a:b] for k, v in case.settings.items() if v is not None}
        if hasattr(case.estimator, "multi_class") or hasattr(case.estimator, "allowed_transitions"):
            extra["classes"] = np.unique(np.concatenate([np.atleast_1d(label) for label in y]))
        parts.append(((X[a:b], y[a:b]), extra))
    return parts


def goal_and_warning(est: Any, told: Sequence[Any]) -> list[Finding]:
    """A fit that misses its goal warns, one that reaches it does not. Relaxation is not for training to close."""
    certificate, warned = est.certificate_, [w for w in told if issubclass(w.category, ConvergenceWarning)]
    if not np.isfinite(certificate.upper) or certificate.relaxation > 0.0 or hasattr(est, "latent_"):
        return []
    reached = certificate.relative_gap <= est.tol
    if reached and warned and est.warm_start is False:
        return [Finding("warns although the goal is reached", certificate.relative_gap, str(warned[-1].message))]
    if not reached and not warned:
        return [Finding("no warning although the goal is missed", certificate.relative_gap, f"goal {est.tol}")]
    return []


def agreement(fit: Any, again: Any, bulk: float) -> list[Finding]:
    """Whether certify says what fit said, to a few units in the last place of what they are sums of. Message passing
    bounds searches better that were warm."""
    found = []
    for name in ("lower",) if fit.relaxation > 0.0 else ("lower", "upper"):
        a, b = getattr(fit, name), getattr(again, name)
        if abs(a - b) > 1e-14 * (abs(fit.upper) + bulk):
            found.append(Finding(f"certify and fit differ in {name}", abs(a - b) / abs(fit.upper or 1), f"{a!r} {b!r}"))
    return found


# What all cases draw from.


def matrix(rng: np.random.Generator, n: int, d: int) -> tuple[np.ndarray, str]:
    """A matrix with all that is awkward; and what that is."""
    kind = rng.choice(["plain", "columns", "rows", "both", "whole", "offset", "large", "small"])
    X = rng.normal(size=(n, d))
    if kind in ("columns", "both"):
        X *= 10.0 ** rng.uniform(-6, 6, size=d)
    if kind in ("rows", "both"):
        X *= 10.0 ** rng.uniform(-6 if kind == "rows" else -2, 6 if kind == "rows" else 2, size=(n, 1))
    if kind == "whole":
        X = np.rint(X * 10.0 ** rng.uniform(0, 4)).clip(-32767, 32767)
    if kind == "offset":
        X += 10.0 ** rng.uniform(2, 8)
    if kind in ("large", "small"):
        X *= 10.0 ** (rng.uniform(3, 6) * (1 if kind == "large" else -1))
    if rng.random() < 0.3:
        X[rng.random(n) < 0.2] = 0.0
    if rng.random() < 0.2:
        X[:, rng.integers(d)] = 0.0
    if rng.random() < 0.3:
        twice = rng.integers(n, size=(2, 2))
        X[twice[0]] = X[twice[1]]
    precision = rng.choice([np.float32, np.float64])
    return X.astype(precision), f"{kind} {np.dtype(precision).name}"


def labels(rng: np.random.Generator, X: np.ndarray, K: int) -> np.ndarray:
    """Labels of rows, at random or by a linear rule: where classes can be told apart, the optimum is tiny beside what
    it is the difference of. All labels occur if there are as many rows."""
    n = len(X)
    y = rng.permutation(np.arange(n) % K)
    if rng.random() < 0.5:
        order = np.argsort(X @ rng.normal(size=X.shape[1]), kind="stable")
        y[order] = np.arange(n) * K // n
    return y


def stored(rng: np.random.Generator, X: np.ndarray) -> Any:
    return sp.csr_matrix(X) if rng.random() < 0.3 else X


def common(rng: np.random.Generator) -> dict[str, Any]:
    """Settings that all estimators have."""
    return {
        "C": float(10.0 ** rng.uniform(-6, 6)) if rng.random() < 0.7 else float(10.0 ** rng.integers(-3, 3)),
        "tol": float(rng.choice([1e-3, 1e-5, 1e-8, 1e-12])),
        "max_passes": int(rng.choice([1, 2, 4, 300])) if rng.random() < 0.4 else 300,
        "random_state": int(rng.integers(100)),
    }


def regularizer(rng: np.random.Generator, d: int, kinds: Sequence[str] = ()) -> tuple[Any, Any, str]:
    """A regularizer of d weights, the same for the referee, and its name."""
    every = ["l2"] * 4 + [
        "diagonal",
        "full",
        "bounded",
        "bounded prior",
        "boxed",
        "boxed prior",
        "group",
        "group and l2",
    ]
    kind = str(rng.choice([k for k in every if not kinds or k in kinds]))
    mean, spread = rng.normal(size=d), 10.0 ** rng.uniform(-3, 3, size=d)
    if kind == "diagonal":
        return GaussianPrior(mean, spread), Quadratic(d, mean, spread), kind
    if kind == "full":
        table = covariance(rng, d) * 10.0 ** rng.uniform(-3, 3)
        table = (table + table.T) / 2
        return GaussianPrior(mean, table), Quadratic(d, mean, table), kind
    if kind.startswith(("bounded", "boxed")):
        index = np.flatnonzero(rng.random(d) < 0.6)
        lower = rng.normal(size=index.size) * 10.0 ** rng.uniform(-3, 1)
        upper = lower + rng.exponential(size=index.size) * (rng.random(index.size) < 0.8)
        floor: list[Any] = [None] * d
        ceiling: list[Any] = [None] * d
        for j, low, high in zip(index, lower, upper, strict=True):
            floor[j] = low
            ceiling[j] = high if kind.startswith("boxed") else None
        mean, spread = (mean, spread) if kind.endswith("prior") else (0.0, 1.0)
        base = GaussianPrior(mean, spread) if kind.endswith("prior") else None
        above = upper if kind.startswith("boxed") else np.inf
        return Bounded(lower, index, base, upper=above), Quadratic(d, mean, spread, floor, ceiling), kind
    if kind.startswith("group"):
        groups = partition(rng, d) if d > 1 else [np.array([0])]
        strength = 10.0 ** rng.uniform(-2, 1, size=len(groups))
        l2 = float(10.0 ** rng.uniform(-3, 1)) if kind == "group and l2" else 0.0
        return GroupNorm(groups, strength, l2=l2), Groups(groups, strength, l2), kind
    return None, Quadratic(d), kind


def scaled(C: float, weights: np.ndarray | None, n: int) -> Vector:
    """C_i, the product of C and a weight without rounding."""
    return [Fraction(C)] * n if weights is None else [Fraction(C) * w for w in fractions(weights)]
