"""Problems of linear estimators, and of bags, for the referee of ``exact.py``.

The referee has the weights of one class after another, the intercept last.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import exact
import numpy as np
import scipy.sparse as sp
from exact import Parts, Quadratic, fractions
from exact_case import Case, Vector, common, labels, matrix, regularizer, scaled, stored

import maxmargin as mm
from maxmargin.data.arrays import as_rows
from maxmargin.models import ranking


def linear(rng: np.random.Generator) -> Case:
    kind = str(rng.choice(["binary", "squared", "smoothed", "ovr", "crammer_singer", "svr", "ranking"]))
    n, d = int(rng.integers(4, 15)), int(rng.integers(1, 6))
    X, what = matrix(rng, n, d)
    way = str(rng.choice(["fit", "fit", "fit", "source", "stream", "warm"]))
    plain = way in ("source", "stream")
    joint = ["l2", "diagonal", "bounded", "bounded prior", "boxed", "boxed prior"]
    kinds = joint if kind == "crammer_singer" else [*joint, "full", "group and l2"] if plain else ()
    ours, theirs, name = regularizer(rng, d, kinds)
    settings = common(rng) | {"regularizer": ours}
    settings["solver"] = str(rng.choice(["auto", "dual_coordinate", "interior_point"]))
    intercept = kind != "ranking" and rng.random() < 0.6
    if kind != "ranking":
        settings |= {"fit_intercept": bool(intercept)}
        settings["intercept_scaling"] = float(rng.choice([1.0, 1.0, 0.3, 1e3]))
    bias = Fraction(settings["intercept_scaling"]) if intercept else None
    made = {"svr": _regression, "ranking": _ranking}.get(kind, _classification)
    case = made(rng, kind, X, settings, bias, theirs, way)
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


def _weights(rng: np.random.Generator, n: int, way: str) -> np.ndarray | None:
    if rng.random() < 0.7 or way == "stream":
        return None
    weights = rng.uniform(0.0, 2.0, size=n) * (rng.random(n) < 0.9)
    weights[0] = 1.0
    return weights


def _margin_loss(rng: np.random.Generator, names: list[str]) -> tuple[Any, tuple[float, bool]]:
    """A loss as the estimator takes it and as the referee does."""
    name = str(rng.choice(names))
    if name != "smoothed":
        return ("hinge", (0.0, True)) if name == "hinge" else ("squared_hinge", (0.5, False))
    if rng.random() < 0.5:
        return "smoothed_hinge", (1.0, True)
    width = float(10.0 ** rng.uniform(-4, 3))
    return mm.losses.SmoothedHinge(width), (width, True)


def _classification(rng: Any, kind: str, X: Any, settings: Any, bias: Any, theirs: Any, way: str) -> Case:
    n, d = X.shape
    several = kind in ("ovr", "crammer_singer")
    K = int(rng.integers(3, 5)) if several and n >= 4 else 2
    y = labels(rng, X, K)
    sample_weight = _weights(rng, n, way)
    names = {"squared": ["squared"], "smoothed": ["smoothed"], "ovr": ["hinge", "hinge", "squared", "smoothed"]}
    settings["loss"], shape = _margin_loss(rng, names.get(kind, ["hinge"]))
    if several:
        settings["multi_class"] = kind
    if rng.random() < 0.2:
        settings["class_weight"] = {k: float(rng.uniform(0.1, 3.0)) for k in range(K)}
    cost = np.ones((K, K)) - np.eye(K)
    if kind == "crammer_singer" and rng.random() < 0.3:
        cost = np.round(rng.uniform(0.1, 5.0, size=(K, K)), 3)
        np.fill_diagonal(cost, 0.0)
        settings["cost"] = cost

    def problem(est: Any) -> Any:
        rows, width = _augmented(X, bias), d + (bias is not None)
        budget = scaled(settings["C"], sample_weight, n)
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
        problems = []
        for c in [1] if K == 2 else range(K):
            table = [[x if k == c else -x for x in row] for k, row in zip(y, rows, strict=True)]
            regularizer = _per_class(theirs, d, bias, 1)
            problems.append(exact.Rows(table, [one] * n, range(n), budget, regularizer, loss_shape=shape))
        return exact.Together(problems)

    def shares(est: Any) -> Any:
        alpha = est._known_alpha()
        if alpha is None:
            return None
        if kind == "crammer_singer":
            return np.asarray(alpha).ravel()
        positives = [1] if K == 2 else range(K)
        signs = np.array([np.where(y == c, 1, -1) for c in positives])
        return (signs * np.atleast_2d(alpha)).ravel()

    given = {"sample_weight": sample_weight}
    return Case(mm.LinearSVC(**settings), (stored(rng, X), y), problem, _flat(bias), shares, given, way)


def _regression(rng: Any, kind: str, X: Any, settings: Any, bias: Any, theirs: Any, way: str) -> Case:
    n, d = X.shape
    y = rng.normal(size=n) * 10.0 ** rng.uniform(-3, 4) + (10.0 ** rng.uniform(0, 8) if rng.random() < 0.2 else 0.0)
    if rng.random() < 0.4:
        y = (X @ rng.normal(size=d)).astype(float) * (1 + 1e-3 * rng.normal(size=n))
    squared = bool(rng.random() < 0.4)
    settings["loss"] = "squared_epsilon_insensitive" if squared else "epsilon_insensitive"
    settings["epsilon"] = float(rng.choice([0.0, 0.1, 0.1 * abs(y[0])]))
    sample_weight = _weights(rng, n, way)

    def problem(est: Any) -> exact.Rows:
        rows, margin = _augmented(X, bias), Fraction(settings["epsilon"])
        budget = scaled(settings["C"], sample_weight, n)
        table = [sign_row for row in rows for sign_row in (row, [-x for x in row])]
        loss = [sign * Fraction(t) - margin for t in y.tolist() for sign in (1, -1)]
        example = np.repeat(np.arange(n), 2).tolist()
        shape = (0.5, False) if squared else (0.0, True)
        return exact.Rows(table, loss, example, budget, _per_class(theirs, d, bias, 1), loss_shape=shape)

    def shares(est: Any) -> Any:
        beta = est._known_alpha()
        return None if beta is None else np.column_stack([np.maximum(beta, 0), np.maximum(-beta, 0)]).ravel()

    given = {"sample_weight": sample_weight}
    return Case(mm.LinearSVR(**settings), (stored(rng, X), y), problem, _flat(bias), shares, given, way)


def _ranking(rng: Any, kind: str, X: Any, settings: Any, bias: Any, theirs: Any, way: str) -> Case:
    n = X.shape[0]
    groups = np.arange(n) * 2 // n if n >= 8 and rng.random() < 0.5 else np.zeros(n, int)
    y = labels(rng, X, 3)
    settings["loss"], shape = _margin_loss(rng, ["hinge", "hinge", "squared", "smoothed"])
    pairs = ranking(as_rows(X), y.astype(float), groups, np.ones(1)).rows  # the order of the dual variables

    def problem(est: Any) -> exact.Rows:
        rows = _augmented(X, None)
        table = [
            [p - q for p, q in zip(rows[a], rows[b], strict=True)]
            for a, b in zip(pairs.plus.tolist(), pairs.minus.tolist(), strict=True)
        ]
        size = len(table)
        budget = [Fraction(settings["C"])] * size
        return exact.Rows(table, [Fraction(1)] * size, range(size), budget, theirs, loss_shape=shape)

    return Case(
        mm.RankingSVM(**settings),
        (stored(rng, X), y),
        problem,
        _flat(None),
        lambda est: est._known_alpha(),
        {"groups": groups},
        way,
    )


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
    sample_weight = _weights(rng, n, "fit")

    def problem(est: Any) -> exact.Rows:
        budget = scaled(settings["C"], sample_weight, n)
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
