"""Random problems of all estimators, as the package is given them and as the referee of ``exact.py`` sees them.

Numbers are awkward on purpose: scales from 1e-6 to 1e6 in one matrix, C as wide, rows of zeros and rows twice, offsets
far from zero, fits that end long before they converge. Every number comes from the seed of a case.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import exact
import numpy as np
import scipy.sparse as sp
from exact import Finding, Groups, Parts, Quadratic, Referee, fractions
from generators import covariance, partition
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.data.arrays import as_rows
from maxmargin.models import Chain, Graph, Multiclass, Multilabel, ranking
from maxmargin.regularizers import Bounded, GaussianPrior, GroupNorm

Vector = list[Fraction]


@dataclass
class Case:
    """An estimator, its data, and how both look in fractions once it is fitted."""

    estimator: Any
    data: tuple[Any, ...]
    problem: Callable[[Any], exact.Rows]
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
        again = est.certify(source) if case.way == "source" else est.certify(*case.data, **case.settings)
    if hasattr(est, "latent_") and again.upper < 0.999 * est.certificate_.upper:
        return found  # certify proves the better of two bounds, and took the other
    found += [Finding(f"certify: {f.kind}", f.size, f.text) for f in referee.judge(again, case.weights(est), shares)]
    found += [Finding("certify warns", 1.0, str(w.message)) for w in told if w.category is UserWarning]
    return found + (agreement(est.certificate_, again) if case.way != "stream" else [])


def fitted(case: Case) -> tuple[Any, Any]:
    """The estimator, trained in the way of the case, and the source that it was trained from, if there was one."""
    est, (X, y, *rest) = clone(case.estimator), case.data
    if case.way == "source":
        names = {"sample_weight": "weights", "groups": "groups"}
        given = {names[k]: v for k, v in case.settings.items() if v is not None}
        source = mm.data.open(X, labels=y, chunk_rows=3, **given)
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
    cuts = [0, n // 2, n] if "groups" not in case.settings else [0, *np.flatnonzero(np.diff(case.settings["groups"])) + 1, n]
    parts = []
    for a, b in itertools.pairwise(cuts):
        extra = {k: v[a:b] for k, v in case.settings.items() if v is not None}
        if hasattr(case.estimator, "multi_class"):
            extra["classes"] = np.unique(y)
        parts.append(((X[a:b], y[a:b]), extra))
    return parts


def goal_and_warning(est: Any, told: Sequence[Any]) -> list[Finding]:
    """A fit that misses its goal warns, one that reaches it does not."""
    certificate, warned = est.certificate_, [w for w in told if issubclass(w.category, ConvergenceWarning)]
    if not np.isfinite(certificate.upper) or hasattr(est, "latent_"):
        return []
    reached = certificate.relative_gap <= est.tol
    if reached and warned and est.warm_start is False:
        return [Finding("warns although the goal is reached", certificate.relative_gap, str(warned[-1].message))]
    if not reached and not warned:
        return [Finding("no warning although the goal is missed", certificate.relative_gap, f"goal {est.tol}")]
    return []


def agreement(fit: Any, again: Any) -> list[Finding]:
    """Whether certify says what fit said, to a few units in the last place."""
    found = []
    for name in ("lower", "upper"):
        a, b = getattr(fit, name), getattr(again, name)
        if abs(a - b) > 1e-14 * max(abs(fit.upper), abs(again.upper)) and not (name == "lower" and b > a):
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
    every = ["l2"] * 4 + ["diagonal", "full", "bounded", "bounded prior", "group", "group and l2"]
    kind = str(rng.choice([k for k in every if not kinds or k in kinds]))
    mean, spread = rng.normal(size=d), 10.0 ** rng.uniform(-3, 3, size=d)
    if kind == "diagonal":
        return GaussianPrior(mean, spread), Quadratic(d, mean, spread), kind
    if kind == "full":
        table = covariance(rng, d) * 10.0 ** rng.uniform(-3, 3)
        table = (table + table.T) / 2
        return GaussianPrior(mean, table), Quadratic(d, mean, table), kind
    if kind.startswith("bounded"):
        index = np.flatnonzero(rng.random(d) < 0.6)
        lower = rng.normal(size=index.size) * 10.0 ** rng.uniform(-3, 1)
        floor: list[Any] = [None] * d
        for j, b in zip(index, lower, strict=True):
            floor[j] = b
        if kind == "bounded":
            return Bounded(lower, index), Quadratic(d, floor=floor), kind
        prior = Quadratic(d, mean, spread, floor=floor)
        return Bounded(lower, index, GaussianPrior(mean, spread)), prior, kind
    if kind.startswith("group"):
        groups = partition(rng, d) if d > 1 else [np.array([0])]
        strength = 10.0 ** rng.uniform(-2, 1, size=len(groups))
        l2 = float(10.0 ** rng.uniform(-3, 1)) if kind == "group and l2" else 0.0
        return GroupNorm(groups, strength, l2=l2), Groups(groups, strength, l2), kind
    return None, Quadratic(d), kind


# Linear estimators. The referee has the weights of one class after another, the intercept last.


def linear(rng: np.random.Generator) -> Case:
    kind = str(rng.choice(["binary", "squared", "ovr", "crammer_singer", "svr", "ranking"]))
    n, d = int(rng.integers(4, 15)), int(rng.integers(1, 6))
    X, what = matrix(rng, n, d)
    way = str(rng.choice(["fit", "fit", "fit", "source", "stream", "warm"]))
    plain = way in ("source", "stream")
    kinds = ["l2", "diagonal", "bounded", "bounded prior"] if plain and kind == "crammer_singer" else ()
    kinds = kinds or (["l2", "diagonal", "full", "bounded", "bounded prior", "group and l2"] if plain else ())
    ours, theirs, name = regularizer(rng, d, kinds)
    settings = common(rng) | {"regularizer": ours}
    scalar = kind != "crammer_singer" and name in ("l2", "diagonal", "full")
    settings["solver"] = str(rng.choice(["auto", "dual_coordinate", "interior_point"] if scalar else ["auto"]))
    intercept = kind != "ranking" and rng.random() < 0.6
    if kind != "ranking":
        settings |= {"fit_intercept": bool(intercept)}
        settings["intercept_scaling"] = float(rng.choice([1.0, 1.0, 0.3, 1e3]))
    bias = Fraction(settings["intercept_scaling"]) if intercept else None
    made = {"svr": _regression, "ranking": _ranking}.get(kind, _classification)
    case = made(rng, kind, stored(rng, X), settings, bias, theirs, way)
    case.note = f"{kind} {n}x{d} {what} {name} bias {settings.get('fit_intercept')}"
    return case


def _augmented(X: Any, bias: Fraction | None) -> list[Vector]:
    table = X.toarray() if sp.issparse(X) else X
    return [fractions(row) + ([] if bias is None else [bias]) for row in table]


def _per_class(theirs: Any, d: int, bias: Fraction | None, n_classes: int) -> Parts:
    width = d + (bias is not None)
    parts: list[Any] = [(range(k * width, k * width + d), theirs) for k in range(n_classes)]
    if bias is not None:
        parts += [([k * width + d], Quadratic(1)) for k in range(n_classes)]
    return Parts(parts)


def _flat(bias: Fraction | None) -> Callable[[Any], Vector]:
    def weights(est: Any) -> Vector:
        flat = []
        for row, b in zip(np.atleast_2d(est.coef_), np.atleast_1d(getattr(est, "intercept_", 0.0)), strict=True):
            flat += fractions(row) + ([] if bias is None else [Fraction(float(b)) / bias])
        return flat

    return weights


def _weights(rng: np.random.Generator, n: int, settings: dict[str, Any], way: str) -> np.ndarray | None:
    if rng.random() < 0.7 or way == "stream":
        return None
    weights = rng.uniform(0.0, 2.0, size=n) * (rng.random(n) < 0.9)
    weights[0] = 1.0
    return weights


def _classification(rng: Any, kind: str, X: Any, settings: Any, bias: Any, theirs: Any, way: str) -> Case:
    n, d = X.shape
    several = kind in ("ovr", "crammer_singer")
    K = int(rng.integers(3, 5)) if several and n >= 4 else 2
    y = rng.permutation(np.arange(n) % K)
    sample_weight = _weights(rng, n, settings, way)
    if way == "stream":
        y = np.arange(n) % K
    settings["loss"] = "squared_hinge" if kind == "squared" or (kind == "ovr" and rng.random() < 0.3) else "hinge"
    if several:
        settings["multi_class"] = kind
    if rng.random() < 0.2:
        settings["class_weight"] = {k: float(rng.uniform(0.1, 3.0)) for k in range(K)}
    cost = np.ones((K, K)) - np.eye(K)
    if kind == "crammer_singer" and rng.random() < 0.3:
        cost = np.round(rng.uniform(0.1, 5.0, size=(K, K)), 3)
        np.fill_diagonal(cost, 0.0)
        settings["cost"] = cost

    def problem(est: Any) -> exact.Rows:
        rows, width = _augmented(X, bias), d + (bias is not None)
        budget = [Fraction(settings["C"])] * n if sample_weight is None else _scaled(settings["C"], sample_weight)
        factors = settings.get("class_weight", {})
        budget = [c * Fraction(factors.get(int(k), 1.0)) for c, k in zip(budget, y, strict=True)]
        none, one = [Fraction(0)] * width, Fraction(1)
        table, loss, example = [], [], []
        if kind == "crammer_singer":
            for i, k in itertools.product(range(n), range(K)):
                blocks = {int(y[i]): rows[i], k: [-x for x in rows[i]]} if k != y[i] else {}
                table.append([x for c in range(K) for x in blocks.get(c, none)])
                loss.append(Fraction(cost[y[i], k]))
                example.append(i)
            return exact.Rows(table, loss, example, budget, _per_class(theirs, d, bias, K))
        positives = [1] if K == 2 else range(K)
        for c, i in itertools.product(range(len(positives)), range(n)):
            sign = 1 if y[i] == positives[c] else -1
            table.append([x for b in range(len(positives)) for x in ([sign * z for z in rows[i]] if b == c else none)])
            loss.append(one)
            example.append(c * n + i)
        squared = settings["loss"] == "squared_hinge"
        regularizer = _per_class(theirs, d, bias, len(positives))
        return exact.Rows(table, loss, example, budget * len(positives), regularizer, squared=squared)

    def shares(est: Any) -> Any:
        alpha = est._shares()
        if alpha is None:
            return None
        if kind == "crammer_singer":
            return np.asarray(alpha).ravel()
        positives = [1] if K == 2 else range(K)
        signs = np.array([np.where(y == c, 1, -1) for c in positives])
        return (signs * np.atleast_2d(alpha)).ravel()

    given = {"sample_weight": sample_weight}
    return Case(mm.LinearSVC(**settings), (X, y), problem, _flat(bias), shares, given, way)


def _scaled(C: float, weights: np.ndarray) -> Vector:
    return [Fraction(C) * w for w in fractions(weights)]


def _regression(rng: Any, kind: str, X: Any, settings: Any, bias: Any, theirs: Any, way: str) -> Case:
    n, d = X.shape
    y = rng.normal(size=n) * 10.0 ** rng.uniform(-3, 4) + (10.0 ** rng.uniform(0, 8) if rng.random() < 0.2 else 0.0)
    squared = bool(rng.random() < 0.4)
    settings["loss"] = "squared_epsilon_insensitive" if squared else "epsilon_insensitive"
    settings["epsilon"] = float(rng.choice([0.0, 0.1, 0.1 * abs(y[0])]))
    sample_weight = _weights(rng, n, settings, way)

    def problem(est: Any) -> exact.Rows:
        rows, margin = _augmented(X, bias), Fraction(settings["epsilon"])
        budget = [Fraction(settings["C"])] * n if sample_weight is None else _scaled(settings["C"], sample_weight)
        table = [sign_row for row in rows for sign_row in (row, [-x for x in row])]
        loss = [sign * Fraction(t) - margin for t in y.tolist() for sign in (1, -1)]
        example = np.repeat(np.arange(n), 2).tolist()
        return exact.Rows(table, loss, example, budget, _per_class(theirs, d, bias, 1), squared=squared)

    def shares(est: Any) -> Any:
        beta = est._shares()
        return None if beta is None else np.column_stack([np.maximum(beta, 0), np.maximum(-beta, 0)]).ravel()

    given = {"sample_weight": sample_weight}
    return Case(mm.LinearSVR(**settings), (X, y), problem, _flat(bias), shares, given, way)


def _ranking(rng: Any, kind: str, X: Any, settings: Any, bias: Any, theirs: Any, way: str) -> Case:
    n, d = X.shape
    groups = np.sort(rng.integers(0, 2, size=n)) if n >= 8 else np.zeros(n, int)
    y = np.arange(n) % 3
    squared = bool(rng.random() < 0.4)
    settings["loss"] = "squared_hinge" if squared else "hinge"
    pairs = ranking(as_rows(X), y.astype(float), groups, np.ones(1)).rows  # the order of the dual variables

    def problem(est: Any) -> exact.Rows:
        rows = _augmented(X, None)
        table = [
            [p - q for p, q in zip(rows[a], rows[b], strict=True)]
            for a, b in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)
        ]
        size = len(table)
        budget = [Fraction(settings["C"])] * size
        return exact.Rows(table, [Fraction(1)] * size, range(size), budget, theirs, squared=squared)

    return Case(
        mm.RankingSVM(**settings), (X, y), problem, _flat(None), lambda est: est._shares(), {"groups": groups}, way
    )


# Structured estimators: all answers written out.


def structured(rng: np.random.Generator) -> Case:
    kind = str(rng.choice(["multiclass", "chain", "graph", "multilabel", "own", "sequence", "multilabel svm"]))
    case = _STRUCTURED[kind](rng, kind)
    return case


def _finish(
    rng: Any,
    kind: str,
    estimator: Callable[..., Any],
    data: tuple[Any, ...],
    n_weights: int,
    answers: Callable[[int], list[tuple[Any, Fraction, Vector]]],
    what: str,
    slack: bool = False,
) -> Case:
    """The case, from the answers (label, loss, features) of each example, the true one first."""
    n = len(data[1])
    ours, theirs, name = regularizer(rng, n_weights, ["l2", "diagonal", "full", "bounded", "group", "group and l2"])
    settings = common(rng) | {"regularizer": ours}
    settings["solver"] = "auto" if name == "group" else str(rng.choice(["auto", "auto", "cutting_plane"]))
    settings["max_passes"] = min(settings["max_passes"], 40)
    sample_weight = rng.uniform(0.0, 2.0, size=n) if rng.random() < 0.2 else None
    way = str(rng.choice(["fit", "fit", "warm", "stream"]))
    if way == "stream" and (sample_weight is not None or settings["solver"] != "auto" or name == "group"):
        way = "fit"
    listed = [answers(i) for i in range(n)]
    place = {(i, label): None for i in range(n) for label, _, _ in listed[i]}
    place = {key: j for j, key in enumerate(place)}

    def problem(est: Any) -> exact.Rows:
        rows, loss, example = [], [], []
        for i, answer in itertools.chain.from_iterable(zip([i] * len(a), a, strict=True) for i, a in enumerate(listed)):
            _, margin, features = answer
            factor = margin if slack else Fraction(1)
            rows.append([factor * (p - q) for p, q in zip(listed[i][0][2], features, strict=True)])
            loss.append(margin)
            example.append(i)
        budget = [Fraction(settings["C"])] * n if sample_weight is None else _scaled(settings["C"], sample_weight)
        return exact.Rows(rows, loss, example, budget, theirs)

    def shares(est: Any) -> Any:
        alpha = est._alpha
        if alpha is None or getattr(alpha, "v", None) is not None:
            return None
        table = [Fraction(0)] * len(place)
        for i, label, share in zip(alpha.example.tolist(), alpha.labels, alpha.alpha.tolist(), strict=True):
            table[place[int(i), _key(label)]] += Fraction(share)
        return table

    given = {"sample_weight": sample_weight} if way != "stream" else {}
    case = Case(estimator(**settings), data, problem, lambda est: fractions(est.coef_), shares, given, way)
    case.longer = 20 if name == "group" else 60
    case.note = f"{kind} {n} examples, {n_weights} weights, {what} {name}"
    return case


def _key(label: Any) -> Any:
    return tuple(int(k) for k in label) if np.ndim(label) else int(label)


def _hamming(y: Sequence[int], z: Sequence[int], normalized: bool) -> Fraction:
    wrong = sum(a != b for a, b in zip(y, z, strict=True))
    return Fraction(wrong, len(y)) if normalized else Fraction(wrong)


def _truth_first(truth: Any, all_labels: Any) -> list[Any]:
    return [truth, *(z for z in all_labels if z != truth)]


def _multiclass(rng: Any, kind: str) -> Case:
    n, d, K = int(rng.integers(4, 10)), int(rng.integers(1, 4)), 3
    X, what = matrix(rng, n, d)
    y = rng.permutation(np.arange(n) % K)
    cost = np.round(rng.uniform(0.1, 3.0, size=(K, K)), 3)
    np.fill_diagonal(cost, 0.0)
    slack = bool(rng.random() < 0.4)
    model = Multiclass(K, d, cost=cost, rescaling="slack" if slack else "margin")

    def answers(i: int) -> list[Any]:
        x = fractions(X[i])
        none = [Fraction(0)] * d
        return [
            (k, Fraction(cost[y[i], k]), [v for c in range(K) for v in (x if c == k else none)])
            for k in _truth_first(int(y[i]), range(K))
        ]

    given = (stored(rng, X), y)
    return _finish(
        rng, kind, lambda **s: mm.StructuralSVM(model, **s), given, K * d, answers, f"{what} slack={slack}", slack
    )


class Own:
    """A model as users write them: classes, with a feature that depends on the class besides."""

    def __init__(self, K: int, d: int) -> None:
        self.K, self.d = K, d
        self.n_weights = K * d + 1

    def features(self, x: Any, y: int) -> np.ndarray:
        phi = np.zeros(self.n_weights)
        phi[y * self.d : (y + 1) * self.d] = x
        phi[-1] = 0.1 * y
        return phi

    def loss(self, y: int, z: int) -> float:
        return abs(y - z) / 3

    def predict(self, x: Any, w: np.ndarray) -> int:
        return max(range(self.K), key=lambda k: self.features(x, k) @ w)

    def most_violated(self, x: Any, y: int, w: np.ndarray) -> int:
        return max(range(self.K), key=lambda k: self.loss(y, k) + self.features(x, k) @ w)


def _own(rng: Any, kind: str) -> Case:
    n, d, K = int(rng.integers(4, 8)), int(rng.integers(1, 4)), 3
    X, what = matrix(rng, n, d)
    y = [int(k) for k in rng.permutation(np.arange(n) % K)]
    model = Own(K, d)

    def answers(i: int) -> list[Any]:
        return [
            (k, Fraction(model.loss(y[i], k)), fractions(model.features(X[i], k))) for k in _truth_first(y[i], range(K))
        ]

    data = (list(X), y)
    return _finish(rng, kind, lambda **s: mm.StructuralSVM(model, **s), data, model.n_weights, answers, what)


def _chain(rng: Any, kind: str) -> Case:
    n, d, K = int(rng.integers(3, 6)), int(rng.integers(1, 3)), 2
    lengths = rng.integers(1, 5, size=n)
    table, what = matrix(rng, int(lengths.sum()), d)
    X = np.split(table, np.cumsum(lengths)[:-1])
    Y = [rng.integers(K, size=t) for t in lengths]
    Y[0][0] = K - 1
    Y[1][0] = 0
    bias, start, end, normalized = (bool(b) for b in rng.random(4) < 0.3)
    slack = bool(rng.random() < 0.2)
    width = K * d + K * (bias + start + end) + K * K

    def features(x: list[Vector], y: Sequence[int]) -> Vector:
        phi = [Fraction(0)] * width
        for t, k in enumerate(y):
            for f in range(d):
                phi[f * K + k] += x[t][f]
        at = K * d
        if bias:
            for k in y:
                phi[at + k] += 1
            at += K
        for a, b in itertools.pairwise(y):
            phi[at + a * K + b] += 1
        at += K * K
        for there, k in ((start, y[0]), (end, y[-1])):
            if there:
                phi[at + k] += 1
                at += K
        return phi

    def answers(i: int) -> list[Any]:
        x, truth = [fractions(row) for row in X[i]], tuple(int(k) for k in Y[i])
        every = _truth_first(truth, itertools.product(range(K), repeat=len(truth)))
        return [(z, _hamming(truth, z, normalized), features(x, z)) for z in every]

    options = {"bias": bias, "start": start, "end": end, "loss": "normalized_hamming" if normalized else "hamming"}
    options["rescaling"] = "slack" if slack else "margin"
    made: Callable[..., Any] = lambda **s: mm.SequenceSVM(**options, **s)  # noqa: E731
    if kind == "chain":
        made = lambda **s: mm.StructuralSVM(Chain(K, d, **options), **s)  # noqa: E731
    return _finish(rng, kind, made, (X, Y), width, answers, f"{what} {options}", slack)


def _graph(rng: Any, kind: str) -> Case:
    n, d, K = int(rng.integers(3, 6)), int(rng.integers(1, 3)), 2
    sizes = rng.integers(1, 5, size=n)
    table, what = matrix(rng, int(sizes.sum()), d)
    nodes = np.split(table, np.cumsum(sizes)[:-1])
    edges = [np.array([[rng.integers(b), b] for b in range(1, s)], dtype=int).reshape(-1, 2) for s in sizes]
    bias = bool(rng.random() < 0.3)
    Y = [rng.integers(K, size=s) for s in sizes]
    Y[0][0] = K - 1
    width = K * (d + bias) + K * K

    def answers(i: int) -> list[Any]:
        x, truth = [fractions(row) for row in nodes[i]], tuple(int(k) for k in Y[i])
        found = []
        for z in _truth_first(truth, itertools.product(range(K), repeat=len(truth))):
            phi = [Fraction(0)] * width
            for v, k in enumerate(z):
                for f in range(d):
                    phi[f * K + k] += x[v][f]
                if bias:
                    phi[d * K + k] += 1
            for a, b in edges[i].tolist():
                phi[K * (d + bias) + K * z[a] + z[b]] += 1
            found.append((z, _hamming(truth, z, False), phi))
        return found

    data = (list(zip(nodes, edges, strict=True)), Y)
    model = Graph(K, d, 0, bias=bias)
    return _finish(rng, kind, lambda **s: mm.StructuralSVM(model, **s), data, width, answers, what)


def _multilabel(rng: Any, kind: str) -> Case:
    n, d, L = int(rng.integers(4, 8)), int(rng.integers(1, 3)), 3
    X, what = matrix(rng, n, d)
    Y = rng.integers(2, size=(n, L))
    bias = bool(rng.random() < 0.6)
    edges = np.array([[0, 1], [1, 2]]) if rng.random() < 0.6 else np.array([[0, 1], [1, 2], [0, 2]])
    costs = np.round(rng.uniform(0.1, 2.0, size=L), 2)
    width = L * (d + bias) + 4 * len(edges)

    def answers(i: int) -> list[Any]:
        x, truth = fractions(X[i]), tuple(int(k) for k in Y[i])
        found = []
        for z in _truth_first(truth, itertools.product((0, 1), repeat=L)):
            phi = [Fraction(0)] * width
            for label in np.flatnonzero(z).tolist():
                for f in range(d):
                    phi[f * L + label] += x[f]
                if bias:
                    phi[d * L + label] += 1
            for e, (a, b) in enumerate(edges.tolist()):
                phi[L * (d + bias) + 4 * e + 2 * z[a] + z[b]] += 1
            loss = sum((Fraction(c) for c, p, q in zip(costs.tolist(), truth, z, strict=True) if p != q), Fraction(0))
            found.append((z, loss, phi))
        return found

    made: Callable[..., Any] = lambda **s: mm.MultilabelSVM(edges=edges, loss=costs, fit_intercept=bias, **s)  # noqa: E731
    if kind == "multilabel":
        made = lambda **s: mm.StructuralSVM(Multilabel(L, d, edges=edges, loss=costs, bias=bias), **s)  # noqa: E731
    return _finish(rng, kind, made, (stored(rng, X), Y), width, answers, what)


_STRUCTURED = {
    "multiclass": _multiclass,
    "own": _own,
    "chain": _chain,
    "sequence": _chain,
    "graph": _graph,
    "multilabel": _multilabel,
    "multilabel svm": _multilabel,
}


def long_chains(rng: np.random.Generator) -> Case:
    """Whole numbers whose sums over a sequence need more than the 24 bits of a float32."""
    n, K, length = int(rng.integers(2, 5)), 2, int(rng.choice([300, 1000, 2000]))
    top = int(rng.choice([3, 1000, 32767, 32768, 100000]))
    X = [rng.integers(-top // 8, top + 1, size=(length, 1)).astype(rng.choice([np.float32, np.float64])) for _ in range(n)]
    Y = [(rng.random(length) < 0.5).astype(int) for _ in range(n)]
    settings = common(rng)
    settings["max_passes"] = min(settings["max_passes"], 10)

    def problem(est: Any) -> exact.Rows:
        return exact.Chains(X, Y, K, [Fraction(settings["C"])] * n, Quadratic(K + K * K))

    def shares(est: Any) -> Any:
        alpha = est._alpha
        return list(zip(alpha.example.tolist(), map(_key, alpha.labels), alpha.alpha.tolist(), strict=True))

    case = Case(mm.SequenceSVM(**settings), (X, Y), problem, lambda est: fractions(est.coef_), shares, {})
    case.longer = 20
    case.note = f"long {n} sequences of {length} up to {top} {X[0].dtype}"
    return case


def bags(rng: np.random.Generator) -> Case:
    """The last convex bound of a latent problem of two classes, at the instances that it fixes."""
    n, d = int(rng.integers(4, 9)), int(rng.integers(1, 4))
    sizes = rng.integers(1, 4, size=n)
    table, what = matrix(rng, int(sizes.sum()), d)
    X = np.split(table, np.cumsum(sizes)[:-1])
    y = np.arange(n) % 2
    ours, theirs, name = regularizer(rng, d)
    settings = common(rng) | {"regularizer": ours, "fit_intercept": bool(rng.random() < 0.6), "max_bounds": 6}
    settings |= {"intercept_scaling": float(rng.choice([1.0, 0.3]))}
    settings |= {"negatives": str(rng.choice(["bag", "instances"]))}
    bias = Fraction(settings["intercept_scaling"]) if settings["fit_intercept"] else None
    sample_weight = _weights(rng, n, settings, "fit")

    def problem(est: Any) -> exact.Rows:
        budget = [Fraction(settings["C"])] * n if sample_weight is None else _scaled(settings["C"], sample_weight)
        rows, example, prices = [], [], []
        for i, bag in enumerate(X):
            instances = _augmented(bag, bias)
            if y[i]:
                rows.append(instances[int(est.latent_[i])])
            else:
                rows += [[-x for x in row] for row in instances]
            count = 1 if y[i] else len(instances)
            example += [i] * count
            prices += [budget[i]] * count
        if settings["negatives"] == "instances":
            example, budget = list(range(len(rows))), prices
        return exact.Rows(rows, [Fraction(1)] * len(rows), example, budget, _per_class(theirs, d, bias, 1))

    def shares(est: Any) -> Any:
        return np.abs(est._alpha)

    given = {"sample_weight": sample_weight}
    case = Case(mm.LatentSVC(**settings), (X, y), problem, _flat(bias), shares, given)
    case.note = f"bags {n} of {d} features {what} {name}"
    return case


def case(seed: int) -> Case:
    """The problem of this number."""
    rng = np.random.default_rng(seed)
    made = rng.choice(np.array([linear, structured, bags, long_chains], dtype=object), p=[0.6, 0.3, 0.07, 0.03])
    return made(rng)
