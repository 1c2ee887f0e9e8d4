"""Problems of structured estimators for the referee of ``exact.py``: all answers written out, but for long chains."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import exact
import numpy as np
from exact import Quadratic, fractions
from exact_case import Case, Vector, common, labels, matrix, regularizer, scaled, stored

import maxmargin as mm
from maxmargin.models import Chain, Graph, Multiclass, Multilabel, SemiMarkov
from maxmargin.models.fractional import WHOLE


def structured(rng: np.random.Generator) -> Case:
    kind = str(rng.choice(["multiclass", "chain", "graph", "multilabel", "own", "sequence", "multilabel svm"]))
    if kind == "chain" and rng.random() < 0.4:
        kind = "segmentation"
    return _STRUCTURED[kind](rng, kind)


def finished(
    rng: Any,
    kind: str,
    estimator: Callable[..., Any],
    data: tuple[Any, ...],
    n_weights: int,
    answers: Callable[[int], list[tuple[Any, Fraction, Vector]]],
    what: str,
    slack: bool = False,
    *,
    settings: dict[str, Any] | None = None,
    sample_weight: np.ndarray | None = None,
    ways: Sequence[str] = ("fit", "fit", "warm", "stream"),
    fractional: Callable[[int, Any], tuple[Fraction, Vector]] | None = None,
) -> Case:
    """The case, from the answers (label, loss, features) of each example, the true one first. ``fractional`` gives loss
    and features of rivals that are no answers: those that a fit has met are then part of its problem."""
    n = len(data[1])
    ours, theirs, name = regularizer(rng, n_weights, ["l2", "diagonal", "full", "bounded", "group", "group and l2"])
    if settings is None:
        settings = common(rng)
        sample_weight = rng.uniform(0.0, 2.0, size=n) if rng.random() < 0.2 else None
    settings |= {"regularizer": ours}
    settings["solver"] = "auto" if name == "group" else str(rng.choice(["auto", "auto", "cutting_plane"]))
    settings["max_passes"] = min(settings["max_passes"], 40)
    way = str(rng.choice(ways))
    if way == "stream" and (sample_weight is not None or settings["solver"] != "auto" or name == "group"):
        way = "fit"
    if way == "pairs" and sample_weight is not None:
        way = "fit"
    listed = [answers(i) for i in range(n)]
    place = {(i, label): None for i in range(n) for label, _, _ in listed[i]}
    place = {key: j for j, key in enumerate(place)}
    more: list[Any] = []

    def problem(est: Any) -> exact.Rows:
        rows, loss, example = [], [], []
        if fractional is not None:
            for i, label in zip(est._alpha.example.tolist(), map(_key, est._alpha.labels), strict=True):
                if (i, label) not in place:
                    place[i, label] = len(place)
                    more.append((i, (label, *fractional(i, label))))
        every = [(i, answer) for i, a in enumerate(listed) for answer in a]
        for i, answer in every + more:
            _, margin, features = answer
            factor = margin if slack else Fraction(1)
            rows.append([factor * (p - q) for p, q in zip(listed[i][0][2], features, strict=True)])
            loss.append(margin)
            example.append(i)
        budget = scaled(settings["C"], sample_weight, n)
        return exact.Rows(rows, loss, example, budget, theirs)

    def shares(est: Any) -> Any:
        alpha = est._alpha
        if alpha is None or getattr(alpha, "v", None) is not None:
            return None
        keys = [(int(i), _key(label)) for i, label in zip(alpha.example.tolist(), alpha.labels, strict=True)]
        if fractional is not None and not set(keys) <= set(place):
            return None  # of another fit
        table = [Fraction(0)] * len(place)
        for key, share in zip(keys, alpha.alpha.tolist(), strict=True):
            table[place[key]] += Fraction(share)
        return table

    given = {"sample_weight": sample_weight} if way in ("fit", "warm") else {}
    case = Case(estimator(**settings), data, problem, lambda est: fractions(est.coef_), shares, given, way)
    case.longer = 20 if name == "group" else 60
    case.note = f"{kind} {n} examples, {n_weights} weights, {what} {name}"
    return case


def _key(label: Any) -> Any:
    return tuple(int(k) for k in np.ravel(label)) if np.ndim(label) else int(label)


def _hamming(y: Sequence[int], z: Sequence[int], normalized: bool) -> Fraction:
    wrong = sum(a != b for a, b in zip(y, z, strict=True))
    return Fraction(wrong, len(y)) if normalized else Fraction(wrong)


def _truth_first(truth: Any, all_labels: Any) -> list[Any]:
    return [truth, *(z for z in all_labels if z != truth)]


def _multiclass(rng: Any, kind: str) -> Case:
    n, d, K = int(rng.integers(4, 10)), int(rng.integers(1, 4)), 3
    X, what = matrix(rng, n, d)
    y = labels(rng, X, K)
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
    return finished(
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
    y = [int(k) for k in labels(rng, X, K)]
    model = Own(K, d)

    def answers(i: int) -> list[Any]:
        return [
            (k, Fraction(model.loss(y[i], k)), fractions(model.features(X[i], k))) for k in _truth_first(y[i], range(K))
        ]

    data = (list(X), y)
    return finished(rng, kind, lambda **s: mm.StructuralSVM(model, **s), data, model.n_weights, answers, what)


def _chain(rng: Any, kind: str) -> Case:
    n, d, K = int(rng.integers(3, 6)), int(rng.integers(1, 3)), 2
    lengths = rng.integers(1, 5, size=n)
    table, what = matrix(rng, int(lengths.sum()), d)
    X = np.split(table, np.cumsum(lengths)[:-1])
    Y = np.split(labels(rng, table, K), np.cumsum(lengths)[:-1])
    bias, start, end, normalized = (bool(b) for b in rng.random(4) < 0.3)
    slack = bool(rng.random() < 0.2)
    order = 2 if not slack and rng.random() < 0.3 else 1
    width = K * d + K * (bias + start + end) + K * K + K**3 * (order == 2)

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
        if order == 2:
            for a, b, c in zip(y, y[1:], y[2:], strict=False):
                phi[at + (a * K + b) * K + c] += 1
        return phi

    def answers(i: int) -> list[Any]:
        x, truth = [fractions(row) for row in X[i]], tuple(int(k) for k in Y[i])
        every = _truth_first(truth, itertools.product(range(K), repeat=len(truth)))
        return [(z, _hamming(truth, z, normalized), features(x, z)) for z in every]

    options = {"bias": bias, "start": start, "end": end, "loss": "normalized_hamming" if normalized else "hamming"}
    options["order"] = order
    options["rescaling"] = "slack" if slack else "margin"
    made: Callable[..., Any] = lambda **s: mm.SequenceSVM(**options, **s)  # noqa: E731
    if kind == "chain":
        made = lambda **s: mm.StructuralSVM(Chain(K, d, **options), **s)  # noqa: E731
    return finished(rng, kind, made, (X, Y), width, answers, f"{what} {options}", slack)


def _segmentation(rng: Any, kind: str) -> Case:
    n, d, K = int(rng.integers(3, 6)), int(rng.integers(1, 3)), 2
    lengths = rng.integers(1, 5, size=n)
    table, what = matrix(rng, int(lengths.sum()), d)
    X = np.split(table, np.cumsum(lengths)[:-1])
    L, boundaries, loss = int(rng.integers(1, 4)), bool(rng.random() < 0.5), str(rng.choice(["hamming", "segments"]))
    blocks = 3 if boundaries else 1
    width = d * blocks * K + L * K + K * K

    def every(length: int) -> list[tuple[tuple[int, int, int], ...]]:
        """All segmentations of so many tokens."""
        if length == 0:
            return [()]
        last = itertools.product(range(max(0, length - L), length), range(K))
        return [(*z, (s, length, k)) for s, k in last for z in every(s)]

    def features(x: list[Vector], y: Any) -> Vector:
        phi = [Fraction(0)] * width
        for s, e, k in y:
            for f, t in itertools.product(range(d), range(s, e)):
                phi[f * blocks * K + k] += x[t][f]
                if boundaries and t == s:
                    phi[(f * blocks + 1) * K + k] += x[t][f]
                if boundaries and t == e - 1:
                    phi[(f * blocks + 2) * K + k] += x[t][f]
            phi[d * blocks * K + (e - s - 1) * K + k] += 1
        for (_, _, a), (_, _, b) in itertools.pairwise(y):
            phi[d * blocks * K + L * K + a * K + b] += 1
        return phi

    def tags(y: Any) -> Any:
        return set(y) if loss == "segments" else {(t, k, t == s) for s, e, k in y for t in range(s, e)}

    truths = [every(len(x)) for x in X]
    Y = [options[int(rng.integers(len(options)))] for options in truths]

    def answers(i: int) -> list[Any]:
        x = [fractions(row) for row in X[i]]
        found = []
        for z in _truth_first(Y[i], truths[i]):
            wrong = len(tags(Y[i]) ^ tags(z)) if loss == "segments" else len(tags(Y[i]) - tags(z))
            found.append((tuple(itertools.chain.from_iterable(z)), Fraction(wrong), features(x, z)))
        return found

    model = SemiMarkov(K, d, max_length=L, boundaries=boundaries, loss=loss)
    made = lambda **s: mm.StructuralSVM(model, **s)  # noqa: E731
    return finished(rng, kind, made, (X, [list(y) for y in Y]), width, answers, f"{what} {loss} {boundaries=}")


def _graph(rng: Any, kind: str) -> Case:
    n, d, K = int(rng.integers(3, 6)), int(rng.integers(1, 3)), 2
    sizes = rng.integers(1, 5, size=n)
    table, what = matrix(rng, int(sizes.sum()), d)
    nodes = np.split(table, np.cumsum(sizes)[:-1])
    edges = [np.array([[rng.integers(b), b] for b in range(1, s)], dtype=int).reshape(-1, 2) for s in sizes]
    if kind == "loopy":
        K = int(rng.integers(2, 4))
        edges = [
            np.concatenate([e, *([rng.permutation(s)[None, :2]] * 2 if s > 1 else [])])
            for e, s in zip(edges, sizes, strict=True)
        ]
    bias = bool(rng.random() < 0.3)
    Y = np.split(labels(rng, table, K), np.cumsum(sizes)[:-1])
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
    inference = str(rng.choice(["auto", "trws", "branch", "relaxed"])) if kind == "loopy" else "auto"
    model = Graph(K, d, 0, bias=bias, inference=inference)

    def fractional(i: int, shares: Sequence[int]) -> tuple[Fraction, Vector]:
        """Loss and features of shares of labels at nodes and of pairs at edges, parts of ``WHOLE``."""
        x, at = [fractions(row) for row in nodes[i]], len(nodes[i]) * K
        phi, loss = [Fraction(0)] * width, Fraction(0)
        for v, k in itertools.product(range(len(x)), range(K)):
            share = Fraction(shares[v * K + k], WHOLE)
            loss += share * (k != Y[i][v])
            for f in range(d):
                phi[f * K + k] += share * x[v][f]
            if bias:
                phi[d * K + k] += share
        for e, (a, b) in enumerate(edges[i].tolist()):
            pairs = np.array(shares[at + e * K * K : at + (e + 1) * K * K]).reshape(K, K)
            for end, v in ((1, a), (0, b)):
                assert pairs.sum(axis=end).tolist() == list(shares[v * K : (v + 1) * K])
            for q, share in enumerate(pairs.ravel().tolist()):
                phi[K * (d + bias) + q] += Fraction(share, WHOLE)
        return loss, phi

    made: Callable[..., Any] = lambda **s: mm.StructuralSVM(model, **s)  # noqa: E731
    return finished(rng, kind, made, data, width, answers, what, fractional=fractional)


def loopy_graphs(rng: np.random.Generator) -> Case:
    """Graphs with cycles, on which message passing is a relaxation."""
    return _graph(rng, "loopy")


def _multilabel(rng: Any, kind: str) -> Case:
    n, d, L = int(rng.integers(4, 8)), int(rng.integers(1, 3)), 3
    X, what = matrix(rng, n, d)
    Y = np.column_stack([labels(rng, X, 2) for _ in range(L)])
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
    return finished(rng, kind, made, (stored(rng, X), Y), width, answers, what)


_STRUCTURED = {
    "multiclass": _multiclass,
    "own": _own,
    "chain": _chain,
    "sequence": _chain,
    "segmentation": _segmentation,
    "graph": _graph,
    "multilabel": _multilabel,
    "multilabel svm": _multilabel,
}


def long_chains(rng: np.random.Generator) -> Case:
    """Whole numbers whose sums over a sequence need more than the 24 bits of a float32."""
    n, K, length = int(rng.integers(2, 5)), 2, int(rng.choice([300, 1000, 2000]))
    top = int(rng.choice([3, 1000, 32767, 32768, 100000]))
    X = [
        rng.integers(-top // 8, top + 1, size=(length, 1)).astype(rng.choice([np.float32, np.float64]))
        for _ in range(n)
    ]
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
