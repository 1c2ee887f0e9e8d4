"""Chains and segmentations with rules for the referee of ``exact.py``: every allowed answer is written out.

What may begin, follow and end is drawn at random, numbers from 1e-12 to 1e12, C from 1e-8 to 1e8, weights of examples
may be zero, and some sequences have one token, no features or no tokens at all.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp
from exact import fractions
from exact_case import Case, Vector, common, matrix
from exact_structured import finished

import maxmargin as mm
from maxmargin.models import Chain, SemiMarkov


def tagging(rng: np.random.Generator) -> Case:
    """A problem of a chain, a SequenceSVM or a segmentation."""
    return (_chain if rng.random() < 0.6 else _segmentation)(rng)


def _settings(rng: Any) -> dict[str, Any]:
    return common(rng) | {"C": float(10.0 ** rng.uniform(-8, 8))}


def _weights(rng: Any, n: int) -> np.ndarray | None:
    if rng.random() < 0.6:
        return None
    weights = rng.uniform(0.0, 2.0, size=n) * 10.0 ** rng.uniform(-4, 4, size=n)
    weights[1:][rng.random(n - 1) < 0.3] = 0.0
    return weights


def _sequences(rng: Any, lengths: Sequence[int], d: int) -> tuple[list[Any], str]:
    table, what = matrix(rng, int(sum(lengths)), d)
    if rng.random() < 0.3:
        table = table.astype(np.float64) * 10.0 ** rng.uniform(-12, 12)
    if rng.random() < 0.1:
        table[:] = 0.0
    X = np.split(table, np.cumsum(lengths)[:-1])
    return [sp.csr_matrix(x) for x in X] if rng.random() < 0.5 else X, what


def _dense(x: Any) -> list[Vector]:
    return [fractions(row) for row in (x.toarray() if sp.issparse(x) else x)]


def _rules(rng: Any, K: int) -> dict[str, np.ndarray | None]:
    """Pairs, starts and ends that are forbidden, each table in half of the cases."""
    share = rng.choice([0.2, 0.5, 0.7])
    tables: dict[str, Any] = {"forbidden": None, "forbidden_start": None, "forbidden_end": None}
    if rng.random() < 0.5:
        tables["forbidden"] = rng.random((K, K)) < share
    for name in ("forbidden_start", "forbidden_end"):
        if rng.random() < 0.5:
            banned = tables[name] = rng.random(K) < share
            banned[rng.integers(K)] = False
    return tables


def _allowed(rules: dict[str, Any], K: int, length: int) -> list[tuple[int, ...]]:
    pairs, starts, ends = rules["forbidden"], rules["forbidden_start"], rules["forbidden_end"]
    return [
        y
        for y in itertools.product(range(K), repeat=length)
        if not (starts is not None and starts[y[0]])
        and not (ends is not None and ends[y[-1]])
        and not (pairs is not None and any(pairs[a, b] for a, b in itertools.pairwise(y)))
    ]


def _chain(rng: Any) -> Case:
    K, d = int(rng.integers(2, 4)), int(rng.integers(1, 3))
    rules: dict[str, Any] = {}
    every: dict[int, Any] = {}
    while not every or max(map(len, every.values())) < 2:
        rules = _rules(rng, K)
        every = {length: _allowed(rules, K, length) for length in range(1, 5)}
    possible = [length for length in every if every[length]]
    lengths = rng.choice(possible, size=int(rng.integers(2, 5)))
    lengths[0] = max(possible, key=lambda n: len(every[n]))  # else the optimum may be zero, and its rounding infinite
    X, what = _sequences(rng, lengths, d)
    Y = [every[n][int(rng.integers(len(every[n])))] for n in lengths.tolist()]
    order = 2 if rng.random() < 0.4 else 1
    slack = order == 1 and bool(rng.random() < 0.25)
    bias, start, end = (bool(b) for b in rng.random(3) < 0.3)
    loss: Any = str(rng.choice(["hamming", "normalized_hamming"]))
    if not slack and rng.random() < 0.3:
        loss = np.round(rng.uniform(0.1, 3.0, size=(K, K)), 3) * 10.0 ** rng.integers(-6, 7)
        np.fill_diagonal(loss, 0.0)
    seen = sorted(set().union(*Y))
    as_sequences = seen == list(range(K)) and rng.random() < 0.5
    transitions = order == 2 or as_sequences or bool(rng.random() < 0.8)
    width = K * d + K * (bias + start + end) + K * K * transitions + K**3 * (order == 2)

    def features(x: list[Vector], y: Sequence[int]) -> Vector:
        blocks = [[sum((x[t][f] for t in range(len(y)) if y[t] == k), Fraction(0)) for k in range(K)] for f in range(d)]
        if bias:
            blocks.append([Fraction(y.count(k)) for k in range(K)])
        if transitions:
            steps = list(itertools.pairwise(y))
            blocks.append([Fraction(steps.count(pair)) for pair in itertools.product(range(K), repeat=2)])
        if start:
            blocks.append([Fraction(k == y[0]) for k in range(K)])
        if end:
            blocks.append([Fraction(k == y[-1]) for k in range(K)])
        if order == 2:
            triples = list(zip(y, y[1:], y[2:], strict=False))
            blocks.append([Fraction(triples.count(three)) for three in itertools.product(range(K), repeat=3)])
        return list(itertools.chain.from_iterable(blocks))

    def cost(y: Sequence[int], z: Sequence[int]) -> Fraction:
        if not isinstance(loss, str):
            return sum((Fraction(loss[a, b]) for a, b in zip(y, z, strict=True)), Fraction(0))
        wrong = sum(a != b for a, b in zip(y, z, strict=True))
        return Fraction(wrong, len(y)) if loss == "normalized_hamming" else Fraction(wrong)

    def answers(i: int) -> list[Any]:
        x, truth = _dense(X[i]), Y[i]
        others = (z for z in every[len(truth)] if z != truth)
        return [(z, cost(truth, z), features(x, z)) for z in (truth, *others)]

    options: dict[str, Any] = {"loss": loss, "bias": bias, "start": start, "end": end, "order": order}
    options["rescaling"] = "slack" if slack else "margin"
    made: Callable[..., Any] = lambda **s: mm.StructuralSVM(  # noqa: E731
        Chain(K, d, transitions=transitions, **rules, **options), **s
    )
    if as_sequences:
        listed = None if all(rule is None for rule in rules.values()) else _listed(rules, K)
        made = lambda **s: mm.SequenceSVM(allowed_transitions=listed, **options, **s)  # noqa: E731
    what = f"{what} K={K} {lengths.tolist()} sequences={as_sequences} {options} {rules} {transitions=}"
    data = (X, [np.array(y) for y in Y])
    return finished(
        rng, "tagging", made, data, width, answers, what, slack, settings=_settings(rng),
        sample_weight=_weights(rng, len(Y)), ways=("fit", "warm", "stream", "pairs"),
    )  # fmt: skip


def _listed(rules: dict[str, Any], K: int) -> list[tuple[Any, Any]]:
    """The same rules as the pairs that are allowed."""
    pairs, starts, ends = rules["forbidden"], rules["forbidden_start"], rules["forbidden_end"]
    found: list[tuple[Any, Any]] = [(a, b) for a in range(K) for b in range(K) if pairs is None or not pairs[a, b]]
    found += [(None, k) for k in range(K) if starts is None or not starts[k]]
    return found + [(k, None) for k in range(K) if ends is None or not ends[k]]


Segments = tuple[tuple[int, int, int], ...]


def _segmentations(length: int, limits: Sequence[int], forbidden: Any) -> Iterator[Segments]:
    """All segmentations of so many tokens that are allowed."""
    if length == 0:
        yield ()
        return
    for k, limit in enumerate(limits):
        for s in range(max(0, length - limit), length):
            for before in _segmentations(s, limits, forbidden):
                if not before or forbidden is None or not forbidden[before[-1][2], k]:
                    yield (*before, (s, length, k))


def _segmentation(rng: Any) -> Case:
    K, d = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    boundaries, by_length, transitions = (bool(b) for b in rng.random(3) < 0.6)
    max_length: Any = int(rng.integers(1, 4)) if rng.random() < 0.6 else rng.integers(1, 4, size=K)
    outside = int(rng.integers(K)) if rng.random() < 0.4 else None
    longest = int(np.max(max_length))
    limits = np.broadcast_to(max_length, K).tolist()
    if outside is not None:
        limits[outside] = 1
    loss = str(rng.choice(["hamming", "segments"] + ["normalized_hamming"] * (outside is None)))
    forbidden = rng.random((K, K)) < 0.4 if rng.random() < 0.5 else None
    every = {length: list(_segmentations(length, limits, forbidden)) for length in range(1, 5)}
    if max(map(len, every.values())) < 2:
        return _segmentation(rng)
    lengths = rng.choice([length for length in every if every[length]], size=int(rng.integers(2, 5)))
    lengths[0] = max(every, key=lambda n: len(every[n]))
    X, what = _sequences(rng, lengths, d)
    truths = [every[n][int(rng.integers(len(every[n])))] for n in lengths.tolist()]
    blocks = 3 if boundaries else 1
    width = d * blocks * K + longest * K * by_length + K * K * transitions

    def features(x: list[Vector], y: Segments) -> Vector:
        phi = [Fraction(0)] * width
        for s, e, k in y:
            for f in range(d):
                parts = [sum((x[t][f] for t in range(s, e)), Fraction(0)), x[s][f], x[e - 1][f]]
                for block, part in enumerate(parts[:blocks]):
                    phi[(f * blocks + block) * K + k] += part
            if by_length:
                phi[d * blocks * K + (e - s - 1) * K + k] += 1
        if transitions:
            for (_, _, a), (_, _, b) in itertools.pairwise(y):
                phi[d * blocks * K + longest * K * by_length + a * K + b] += 1
        return phi

    def cost(y: Segments, z: Segments) -> Fraction:
        if loss == "segments":
            return Fraction(len({part for part in set(y) ^ set(z) if part[2] != outside}))
        tags = [[(k, t == s) for s, e, k in answer for t in range(s, e)] for answer in (y, z)]
        wrong = sum(a != b for a, b in zip(*tags, strict=True))
        return Fraction(wrong, len(tags[0])) if loss == "normalized_hamming" else Fraction(wrong)

    def shown(y: Segments) -> list[tuple[int, int, int]]:
        return [part for part in y if part[2] != outside]

    def answers(i: int) -> list[Any]:
        x, truth = _dense(X[i]), truths[i]
        others = (z for z in every[len(x)] if z != truth)
        return [
            (tuple(itertools.chain.from_iterable(shown(z))), cost(truth, z), features(x, z)) for z in (truth, *others)
        ]

    options: dict[str, Any] = {"max_length": max_length, "outside": outside, "loss": loss, "forbidden": forbidden}
    options |= {"boundaries": boundaries, "lengths": by_length, "transitions": transitions}
    made = lambda **s: mm.StructuralSVM(SemiMarkov(K, d, **options), **s)  # noqa: E731
    return finished(
        rng, "segmentation", made, (X, [shown(y) for y in truths]), width, answers,
        f"{what} K={K} {lengths.tolist()} {options}", settings=_settings(rng),
        sample_weight=_weights(rng, len(X)), ways=("fit", "warm", "stream", "pairs"),
    )  # fmt: skip
