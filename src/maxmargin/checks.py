"""Conformance checks for parts that users write: what the solver relies on, tested on the part itself.

Each check raises an ``AssertionError`` that says in plain words what is wrong, and returns nothing otherwise.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sized
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator

from .constraints.base import Closed
from .constraints.oracle import (
    NOTHING,
    PlainOracle,
    brings_objective,
    check_methods,
    count,
    in_their_words,
    is_nothing,
    oracle_for,
    said,
    sized,
)
from .constraints.searched import violations
from .data.arrays import as_rows
from .data.source_checks import check_given, check_width, chunks_of
from .kernels import maps
from .kernels.losses import cost
from .latent.plain import Completed, PlainLatentOracle
from .losses import shape_of
from .problem import Problem
from .protocols import Chunk, LatentModel, Loss, Model, OracleError, Regularizer, Seed, Solver, Source
from .regularizers import L2
from .solvers import certify, solve
from .solvers.certificate import lower_bound
from .validation import check_object, is_seekable, lacking, shown, whole


def check_regularizer(regularizer: Regularizer, n_weights: int, *, random_state: Seed = 0) -> None:
    """Ω, Ω* and the map v → w belong together, and the kernels' map is the same one.

    >>> from maxmargin.regularizers import GaussianPrior
    >>> check_regularizer(GaussianPrior(1.0, 2.0), n_weights=3)
    """
    check_object("regularizer", regularizer)
    whole("n_weights", n_weights)
    regularizer.shape(n_weights)  # says if it is for another number of weights
    rng = np.random.default_rng(random_state)
    for _ in range(20):
        v = rng.normal(size=n_weights) * 10.0 ** rng.uniform(-1, 1)
        w = regularizer.weights(v)
        value, conjugate = regularizer.value(w), regularizer.conjugate(v)
        scale = 1e-9 * (abs(value) + abs(conjugate) + abs(w @ v) + 1.0)
        assert abs(value + conjugate - w @ v) <= scale, (
            f"value(w) + conjugate(v) must equal w·v at w = weights(v): {value} + {conjugate} is not {w @ v}."
        )
        other = regularizer.weights(rng.normal(size=n_weights) * 10.0 ** rng.uniform(-1, 1))
        assert regularizer.value(other) + conjugate >= other @ v - scale, (
            "value(w) + conjugate(v) must be at least w·v for every w: the conjugate is too small."
        )
        shift = rng.normal(size=n_weights)
        assert (regularizer.weights(v + shift) - w) @ shift >= -scale, (
            "weights(v) must be monotone: it is the gradient of a convex function."
        )
        bound = regularizer.shape(n_weights).bind(v.copy())
        difference = np.abs(bound.weights() - w).max()
        assert difference <= 1e-9 * (1 + np.abs(w).max()), (
            f"shape().bind(v) and weights(v) differ by {difference}: kernels would solve another problem."
        )
    _check_map(regularizer, n_weights, rng)


def _check_map(regularizer: Regularizer, n_weights: int, rng: Generator) -> None:
    """The five functions of the weight map, on rows that are dense or sparse, with and without a bias."""
    shape = regularizer.shape(n_weights)
    who = f"{shape.kind.__name__}, the weight map of {shown(regularizer)}"
    for bias, sparse in ((0.0, False), (0.0, True), (2.0, False), (2.0, True)):
        width = n_weights - (bias != 0.0)
        if not width:
            continue
        x = rng.normal(size=(2, width)) * (rng.random((2, width)) < 0.7 if sparse else 1.0)
        x[:, 0] = 1.0  # no row without entries
        stored = as_rows(sp.csr_matrix(x) if sparse else x, bias)
        rows = (stored.indptr, stored.indices, stored.data, width, bias)
        full = np.column_stack([x, np.full(2, bias)])[:, :n_weights]
        v = rng.normal(size=n_weights) * 10.0 ** rng.uniform(-1, 1)
        bound = shape.bind(v.copy())
        for r in (0, 1, 0):
            step = rng.normal() * 10.0 ** rng.uniform(-1, 1)
            before = regularizer.weights(v)
            _agree(f"{who}: score", maps.stored_score(*rows, r, bound), before @ full[r])
            v = v + step * full[r]
            maps.stored_move(*rows, r, step, bound)
            _agree(f"{who}: move leaves a v that", bound.v, v)
            _agree(f"{who}: move leaves weights that", bound.weights(), regularizer.weights(v))
            metric, found = maps.stored_inner(*rows, r, r, bound), (regularizer.weights(v) - before) @ full[r] / step
            assert found <= metric + 1e-9 * (1.0 + metric), (
                f"{who}: inner must bound the curvature of Ω*; along a row it gives {metric}, weights move {found}."
            )
        own = [maps.stored_inner(*rows, a, b, bound) for a, b in ((0, 0), (1, 1), (0, 1))]
        _agree(f"{who}: difference", maps.stored_difference(*rows, 0, 1, bound), own[0] + own[1] - 2.0 * own[2])
        out = np.zeros(n_weights)
        maps.spread(*rows, 0, 3.0, bound, out)
        _agree(f"{who}: spread", full @ out, 3.0 * np.array([own[0], own[2]]))


def _agree(what: str, found: Any, expected: Any) -> None:
    difference = np.abs(found - expected).max()
    assert difference <= 1e-9 * (1.0 + np.abs(expected).max()), f"{what} is off by {difference}."


def check_loss(loss: Loss, *, random_state: Seed = 0) -> None:
    """φ, φ* and the numbers that kernels read belong together: φ is convex, free at the target, and they are its own.

    >>> from maxmargin.losses import SmoothedHinge
    >>> check_loss(SmoothedHinge(0.5))
    """
    missing = lacking(loss, "value", "conjugate", "shape")
    assert not missing, f"The loss lacks {', '.join(missing)}: see maxmargin.protocols.Loss."
    with _asserted():
        shape = shape_of(loss)
    rng = np.random.default_rng(random_state)
    scale = 4.0 * (1.0 + shape.epsilon + shape.curvature)
    missed = np.concatenate([[0.0, shape.epsilon], rng.uniform(0.0, scale, size=50)])
    value = np.asarray(loss.value(missed), dtype=np.float64)
    assert value.shape == missed.shape, f"value must give one number per entry, got shape {value.shape}."
    assert value[0] == 0.0 and (value >= 0.0).all(), "value must be zero at the target, and nowhere below zero."
    middle = loss.value(0.5 * (missed + missed[::-1]))
    slack = 1e-9 * (1.0 + value.max())
    assert (middle <= 0.5 * (value + value[::-1]) + slack).all(), "value must be convex."
    kernel = np.array([cost(m - shape.epsilon, 1.0, shape) for m in missed])
    assert np.abs(kernel - value).max() <= slack, (
        f"shape() and value differ by {np.abs(kernel - value).max()}: kernels would solve another problem."
    )
    # The slope of φ attains the conjugate; no other share exceeds it.
    step = np.maximum(missed - shape.epsilon, 0.0) / max(shape.curvature, 1e-300)
    alpha = np.minimum(step, 1.0) if shape.bounded else step
    best = loss.conjugate(alpha)
    assert np.abs(value + best - alpha * missed).max() <= slack * (1.0 + alpha.max()), (
        "value(m) + conjugate(α) must equal α·m where α is the slope of the loss at m."
    )
    other = rng.uniform(0.0, 1.0 if shape.bounded else scale, size=missed.size)
    assert (value + loss.conjugate(other) >= other * missed - slack).all(), (
        "value(m) + conjugate(α) must be at least α·m for every α: the conjugate is too small."
    )
    forbidden = np.array([-1.0, 2.0]) if shape.bounded else np.array([-1.0])
    assert np.isinf(loss.conjugate(forbidden)).all(), (
        "conjugate must be infinite below zero, and above one where the shape says that the loss is bounded."
    )


def check_source(source: Source) -> None:
    """Every reading of a source gives the same chunks, all of its examples in turn; chunks by number are these, too.

    >>> from maxmargin.data import open
    >>> check_source(open(np.eye(5), labels=np.arange(5), chunk_rows=2))
    """
    with _asserted():
        _check_source(source)


def _check_source(source: Source) -> None:
    check_given(source)
    known, n = [], 0
    for i, chunk in enumerate(chunks_of(source)):
        assert np.array_equal(chunk.ids, np.arange(n, n + len(chunk))), (
            f"ids of chunk {i} must be the positions {n} … {n + len(chunk) - 1} of its examples in the source."
        )
        if source.n_features is not None:
            check_width(source, i, chunk)
        known.append(copy.deepcopy(chunk))  # its memory is given back when the next one is taken
        n += len(chunk)
    assert n == len(source), f"The chunks have {n} examples, len(source) is {len(source)}."
    again = [_alike(chunk, first) for chunk, first in zip(source.chunks(), known, strict=False)]
    assert len(again) == len(known) and all(again), (
        "A second reading gives other examples: chunks() must begin anew each time."
    )
    if not is_seekable(source):
        return
    seekable: Any = source
    assert len(known) == len(seekable.offsets) - 1, f"There are {len(known)} chunks, offsets are {seekable.offsets}."
    for i, first in enumerate(known):
        assert _alike(seekable.chunk(i), first), f"chunk({i}) is not the chunk that chunks() gives."
        labels = seekable.labels(i)
        assert _same(labels.y, first.y) and _same(labels.ids, first.ids), f"labels({i}) are not those of chunk({i})."
        whole(f"nbytes({i})", seekable.nbytes(i), least=0)
        seekable.release(i)


@contextlib.contextmanager
def _asserted() -> Iterator[None]:
    """What estimators refuse is what a check finds wrong."""
    try:
        yield
    except ValueError as error:
        raise AssertionError(str(error)) from error


def _alike(a: Chunk, b: Chunk) -> bool:
    return all(_same(getattr(a, name), getattr(b, name)) for name in ("ids", "x", "y", "group", "weight"))


def _same(a: Any, b: Any) -> bool:
    if sp.issparse(a):
        return a.shape == b.shape and (a != b).nnz == 0
    return a is b or np.array_equal(np.asarray(a, dtype=object), np.asarray(b, dtype=object))


def check_constraints(constraints: Closed, *, random_state: Seed = 0) -> None:
    """Feasibility, linearity of ``combine``, weak duality, and sweeps that raise the dual objective.

    >>> from maxmargin.data.arrays import as_rows
    >>> from maxmargin.models import regression
    >>> check_constraints(regression(as_rows(np.eye(3)), np.arange(3.0), np.ones(1)))
    """
    if not hasattr(constraints, "dual_shape"):
        raise ValueError(f"constraints must be what maxmargin.models.binary and others make, got {shown(constraints)}.")
    rng = np.random.default_rng(random_state)
    problem = Problem(constraints, L2())
    shape = constraints.dual_shape
    for _ in range(10):
        alpha = constraints.feasible(rng.normal(size=shape) * 10.0 ** rng.uniform(-2, 1))
        again = constraints.feasible(alpha)
        assert np.allclose(again, alpha, rtol=1e-9, atol=1e-12), "feasible(feasible(alpha)) must change nothing."
        v = constraints.combine(alpha)
        assert np.allclose(constraints.combine(0.5 * alpha), 0.5 * v, rtol=1e-9, atol=1e-12), (
            "combine must be linear in alpha."
        )
        linear, v, *_ = constraints.totals(alpha)
        assert np.isclose(linear, constraints.linear(alpha)) and np.allclose(v, constraints.combine(alpha)), (
            "totals must give linear and combine of the nearest feasible point."
        )
        w = rng.normal(size=constraints.n_weights) * 10.0 ** rng.uniform(-2, 1)
        both = certify(problem, w, alpha)
        assert both.lower <= both.upper + 1e-9 * (1 + abs(both.upper)), (
            f"Weak duality fails: the dual objective {both.lower} lies above the primal {both.upper}."
        )
        weights = L2().shape(constraints.n_weights).bind(v.copy())
        norms = np.full(len(constraints.rows), -1.0, np.float32)
        order = np.arange(constraints.n_examples, dtype=np.int32)
        before, linear = certify(problem, w, alpha).lower, constraints.linear(alpha)
        _, _, change = constraints.sweep(alpha, weights, norms, order, order.size, 1, int(rng.integers(1, 2**62)))
        after = certify(problem, w, alpha).lower
        assert after >= before - 1e-9 * (1 + abs(before)), f"A sweep lowered the dual objective: {before} to {after}."
        assert np.allclose(constraints.combine(alpha), weights.v, rtol=1e-7, atol=1e-9), (
            "After a sweep v no longer equals combine(alpha)."
        )
        assert np.isclose(constraints.linear(alpha), linear + change, rtol=1e-7, atol=1e-9), (
            "The change of linear(alpha) that the sweep reports is wrong."
        )


def check_model(model: Model | LatentModel, X: Any, Y: Any, *, random_state: Seed = 0) -> None:
    """features, loss, predict and most_violated of a model belong together, on these examples.

    Weights are drawn at random, and every answer met on the way (the truths of other examples too, where they fit) is
    tried against what the model calls best and worst. A model that says ``exact = False`` may be beaten by others,
    but not by the truth.

    Of a latent model, one that has ``complete``, the same is asked with pairs (y, z) for answers; and that ``complete``
    finds the best z, that ``latent_scores`` are the scores of all z, that ``propose`` gives values that can be used,
    and that a compiled ``latent_oracle`` is worth as much as the plain methods. A model that brings its own
    ``latent_objective`` is asked whether its bounds lie above the objective and touch it where they must.

    >>> from maxmargin.models import Chain
    >>> X, Y = [np.eye(2), np.ones((3, 2))], [[0, 1], [1, 1, 0]]
    >>> check_model(Chain(), X, Y)
    """
    for name, value in (("X", X), ("Y", Y)):
        if not isinstance(value, Sized):
            raise ValueError(f"{name} must be a list with one entry per example, got {shown(value)}.")
    n_examples, n_answers = count(X), count(Y)
    assert n_examples == n_answers > 0, (
        f"There must be as many answers as inputs, and some: got {n_examples} and {n_answers}."
    )
    try:
        if not brings_objective(model):
            check_methods(model)
        whole: Any = sized(model, X, Y)
        rng = np.random.default_rng(random_state)
        if brings_objective(whole):
            _check_bounds(whole, X, Y, rng)
        elif hasattr(whole, "complete"):
            _check_latent_model(whole, X, Y, rng)
        else:
            _check_model(whole, X, Y, rng)
    except (AssertionError, OracleError, ValueError) as error:
        raise AssertionError(in_their_words(model, str(error))) from error
    except Exception as error:  # of a method that was called without naming the example
        raise AssertionError(in_their_words(model, f"A method of the model failed: {said(error)}")) from error


def _check_model(
    model: Model, X: Any, Y: Any, rng: Generator, truths: Callable[..., dict[int, list[Any]]] | None = None
) -> None:
    """``truths`` says which other answers, of equal right, are true at some weights: the best completions."""
    plain = PlainOracle(model, X, Y)
    ids = np.sort(rng.permutation(plain.n_examples)[:20])
    truth = plain.planes(ids, [Y[i] for i in ids.tolist()])
    assert np.abs(truth.rows.data).max(initial=0.0) == 0.0, "features gave two vectors for one and the same (x, y)."
    answers = {i: [Y[i], *_borrowed(plain, i, rng)] for i in ids.tolist()}
    scale = _scale(plain, answers)
    for size in (0.0, 0.1, 0.5, 1.0, 2.0, 10.0):  # where scores and losses are alike, mistakes show
        w = size * scale * rng.normal(size=plain.n_weights)
        worst = plain.rivals(ids, w)
        found = violations(worst, w)
        true = {} if truths is None else truths(answers, w)
        for p, i in enumerate(ids.tolist()):
            best = model.predict(X[i], w)
            assert not is_nothing(best, Y), f"predict gave None on example {i}. {NOTHING}"
            missing = _most_missing(plain, i, [Y[i], *true.get(i, [])], w)
            assert found[p] >= missing - _slip(missing), (
                f"most_violated on example {i} is beaten by the true answer, by {missing - found[p]:.6g}. It must "
                "maximise loss(y, ŷ) + w·features(x, ŷ), and the truth, with the best latent value if any, is a "
                "candidate with loss 0. Do search and features agree, in their signs too?"
            )
            answers[i] += [worst.labels[p], best, *true.get(i, [])]
            if not plain.exact:
                continue
            missing = _most_missing(plain, i, answers[i], w)
            assert missing <= found[p] + _slip(missing), (
                f"most_violated on example {i} is not the worst offender: its answer misses the margin by "
                f"{found[p]:.6g}, another answer of the model by {missing:.6g}. Check the loss inside the search, its "
                "sign and its scale, and that the search scores answers as features does; or say exact = False if the "
                "search is approximate."
            )
            reached, highest = _score_of(model, X[i], best, w), max(_score_of(model, X[i], y, w) for y in answers[i])
            assert highest <= reached + _slip(highest), (
                f"predict on example {i} is not the best answer: its score is {reached:.6g}, another answer of the "
                f"model has {highest:.6g}. predict must maximise w·features(x, y): do both score answers alike, with "
                "the same signs?"
            )
    fast = oracle_for(model, X, Y)
    for _ in range(3):
        w = rng.normal(size=plain.n_weights)
        ours = fast.rivals(ids, w)
        if ours.excess is None:
            _check_same("rivals", ids, violations(ours, w), violations(plain.rivals(ids, w), w))
        again = violations(plain.planes(ids, ours.labels), w)
        _check_same("the rows of rivals", ids, violations(ours, w), again)


def _borrowed(plain: PlainOracle, i: int, rng: Generator) -> list[Any]:
    """True answers of other examples of the same size: as far as one can tell, answers to this one too."""
    borrowed = []
    for j in rng.permutation(plain.n_examples)[:10].tolist():
        if _size(plain.X[j]) != _size(plain.X[i]):
            continue
        with contextlib.suppress(Exception):
            plain.planes(np.array([i]), [plain.Y[j]])
            borrowed.append(plain.Y[j])
    return borrowed


def _size(x: Any) -> Any:
    """Shape or length, part by part where there are parts."""
    if hasattr(x, "shape"):
        return tuple(x.shape)
    if isinstance(x, list | tuple):
        return tuple(_size(part) for part in x)
    return len(x) if isinstance(x, Sized) else None


def _scale(plain: PlainOracle, answers: dict[int, list[Any]]) -> float:
    """The size of weights at which differences of scores are about 1."""
    known = (plain.planes(np.full(len(some), i), some).rows.data for i, some in answers.items())
    largest = max(float(np.linalg.norm(rows)) for rows in known)
    return 1.0 / largest if largest > 1e-12 else 1.0


def _slip(value: float) -> float:
    return 1e-6 * (1.0 + abs(value))


def _most_missing(plain: PlainOracle, i: int, answers: list[Any], w: np.ndarray) -> float:
    """By how much the worst of some answers misses the margin."""
    return float(violations(plain.planes(np.full(len(answers), i), answers), w).max())


def _check_bounds(model: Any, X: Any, Y: Any, rng: Generator) -> None:
    objective = model.latent_objective(X, Y, np.ones(1), L2())

    def value(problem: Problem, w: np.ndarray) -> float:
        return objective.regularizer.value(w) + problem.constraints.evaluate(w).total

    for _ in range(10):
        w, other = rng.normal(size=(2, objective.n_weights))
        here, there = (objective.problem(objective.evaluate(u).best) for u in (w, other))
        least = value(here, w)
        gap = float(
            objective.evaluate(w).regrets(np.arange(objective.n_examples), objective.evaluate(other).best).sum()
        )
        assert value(there, w) >= least - _slip(least), (
            f"A bound lies below the one that touches: {value(there, w):.6g} and {least:.6g} at the same weights."
        )
        assert abs(value(there, w) - least - gap) <= 10.0 * _slip(least), (
            f"A bound exceeds the objective by {value(there, w) - least:.6g}, its regrets sum up to {gap:.6g}."
        )


def _check_latent_model(model: Any, X: Any, Y: Any, rng: Generator) -> None:
    plain = PlainLatentOracle(model, X, Y)
    first = plain.complete(np.zeros(plain.n_weights))[0]
    known: dict[int, list[Any]] = {i: [first[i]] for i in range(plain.n_examples)}

    def truths(answers: dict[int, list[Any]], w: np.ndarray) -> dict[int, list[Any]]:
        best, top = plain.complete(w)
        for i, met in answers.items():
            _check_latent_scores(plain, i, best[i], top[i], w, rng)
            known[i] += [*(z for y, z in met if np.array_equal(y, Y[i])), best[i]]
            if hasattr(model, "propose"):
                known[i].append(_proposed(plain, i, known[i][-1], w, rng))
            for z in known[i]:
                loss = float(model.loss(Y[i], (Y[i], z)))
                assert loss == 0.0, (
                    f"loss(y, (y, z)) must be 0 whatever the latent value: it is {loss} on example {i}, with z = {z!r}."
                )
            scores = plain.scores(np.full(len(known[i]), i), known[i], w)
            p = int(np.argmax(scores))
            assert scores[p] <= top[i] + _slip(top[i]) or not plain.exact, (
                f"complete on example {i} is not the best latent value: z = {best[i]!r} has a score of {top[i]:.6g}, "
                f"z = {known[i][p]!r} has {scores[p]:.6g}. complete must maximise w·features(x, (y, z)) over z; or say "
                "exact = False."
            )
        return {i: [(Y[i], best[i])] for i in answers}

    _check_model(Completed(model), X, plain.truths(np.arange(plain.n_examples), first), rng, truths)
    if hasattr(model, "latent_oracle"):
        _check_latent_oracle(model, plain, np.sort(rng.permutation(plain.n_examples)[:20]), first, rng)


def _score_of(model: Any, x: Any, answer: Any, w: np.ndarray) -> float:
    features = model.features(x, answer)
    return float((features @ w)[0]) if hasattr(features, "tocsr") else float(np.ravel(features) @ w)


def _check_latent_scores(
    plain: PlainLatentOracle, i: int, best: Any, top: float, w: np.ndarray, rng: Generator
) -> None:
    """One score for every latent value, that of its features; and complete is the number of the highest."""
    if not hasattr(plain.model, "latent_scores"):
        return
    listed, best = np.ravel(plain.model.latent_scores(plain.X[i], plain.Y[i], w)), int(best)
    assert 0 <= best < listed.size, (
        f"complete on example {i} gives {best!r}, but latent_scores has {listed.size} entries: where latent values are "
        "listed, a value is its number in the list."
    )
    some = rng.permutation(listed.size)[:20]
    scores = plain.scores(np.full(some.size, i), some.tolist(), w)
    wrong = np.flatnonzero(np.abs(scores - listed[some]) > 1e-4 * (1.0 + np.abs(scores)))
    assert not wrong.size, (
        f"latent_scores on example {i} says {listed[some[wrong[0]]]:.6g} for z = {some[wrong[0]]}, but "
        f"w·features(x, (y, z)) is {scores[wrong[0]]:.6g}."
    )
    assert listed.max() <= top + _slip(top), (
        f"complete on example {i} is not the best latent value: z = {best!r} has a score of {top:.6g}, the highest of "
        f"latent_scores is {listed.max():.6g}."
    )


def _proposed(plain: Any, i: int, z: Any, w: np.ndarray, rng: Generator) -> Any:
    """A change that leads to a value that can be used, and leaves the old one alone."""
    before = copy.deepcopy(z)
    there = plain.propose(i, z, w, rng)
    assert np.array_equal(before, z), f"propose on example {i} has changed the latent value that it was given."
    try:
        plain.model.features(plain.X[i], (plain.Y[i], there))
    except Exception as error:
        raise AssertionError(
            f"propose on example {i} led from {z!r} to {there!r}, of which there are no features: {error}"
        ) from error
    return there


def _check_latent_oracle(model: Any, plain: PlainLatentOracle, ids: np.ndarray, first: Any, rng: Generator) -> None:
    """A compiled search must be worth as much as the plain methods."""
    fast = model.latent_oracle(plain.X, plain.Y)
    everybody = np.arange(plain.n_examples)
    exact = plain.exact
    some = [first[i] for i in ids.tolist()]
    for _ in range(3):
        w = rng.normal(size=plain.n_weights)
        missed = partial(violations, w=w)
        best, top = fast.complete(w)
        _check_same("complete", everybody, top, plain.scores(everybody, best, w))
        if exact:  # others may begin where they have found something before
            _check_same("complete", everybody, top, plain.complete(w)[1])
        _check_same(
            "latent_oracle(X, Y).scores", everybody, fast.scores(everybody, best, w), plain.scores(everybody, best, w)
        )
        _check_same("scores", ids, fast.scores(ids, some, w), plain.scores(ids, some, w))
        listed, ours = fast.listed(w), plain.listed(w)
        if listed is not None and ours is not None:
            assert np.array_equal(listed[1], ours[1]), (
                "latent_oracle(X, Y).listed has other latent values than latent_scores."
            )
            _check_same("listed", np.repeat(everybody, np.diff(ours[1])), listed[0], ours[0])
        slow = PlainOracle(Completed(model), plain.X, plain.truths(everybody, best))
        bound = fast.bound(best)
        found = bound.rivals(ids, w)
        theirs = missed(slow.planes(ids, found.labels))
        _check_same("bound(latent).rivals", ids, missed(found), theirs)
        if exact:
            _check_same("bound(latent).rivals", ids, missed(found), missed(slow.rivals(ids, w)))
        _check_same("bound(latent).planes", ids, missed(bound.planes(ids, found.labels)), theirs)
        own = bound.planes(ids, fast.truths(ids, [best[i] for i in ids.tolist()]))
        _check_same("bound(latent).planes of the truths", ids, missed(own), np.zeros(ids.size))


def _check_same(what: str, ids: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> None:
    wrong = np.flatnonzero(~(np.abs(ours - theirs) <= 1e-4 * (1.0 + np.abs(theirs))))
    assert not wrong.size, (
        f"{what} of the compiled search and the plain methods of the model disagree on example {ids[wrong[0]]}: "
        f"{ours[wrong[0]]:.6g} against {theirs[wrong[0]]:.6g}."
    )


def check_solver(solver: Solver, problem: Problem, *, tol: float = 1e-6, max_passes: int = 5000) -> None:
    """The solver reaches the gap, its α is feasible, and the bounds it reports while running are true."""
    solution = solve(problem, solver, tol=tol, max_passes=max_passes)
    assert solution.converged, f"No relative gap of {tol} within {max_passes} passes: {solution.certificate}."
    before = lower_bound(problem, solution.alpha)
    assert np.isclose(before, solution.certificate.lower, rtol=1e-6), (
        f"The dual variables give a lower bound of {before}, the certificate says {solution.certificate.lower}."
    )
    if problem.constraints.closed:
        alpha = problem.constraints.feasible(solution.alpha)
        assert np.allclose(alpha, solution.alpha, rtol=1e-9, atol=1e-12), "The dual variables are not feasible."
    optimum = solution.certificate.upper
    for record in solution.history:
        assert record.lower <= optimum * (1 + 1e-9) + 1e-12, (
            f"Pass {record.number} claims a lower bound of {record.lower}, above the optimum {optimum}."
        )
        assert record.upper >= solution.certificate.lower * (1 - 1e-9) - 1e-12, (
            f"Pass {record.number} claims an upper bound of {record.upper}, below the optimum."
        )
