"""Filters of parts, part weights, and both together: bounds, optima of problems written out, and turns that go down."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import reference
from hypothesis import given, settings, strategies as st
from interruptions import interrupt_at
from parts_by_hand import every_constraint, hinges, looked_up, ragged
from thinned import rotating

from maxmargin.checkpoint import CheckpointFolder
from maxmargin.problem import Problem
from maxmargin.solvers import certify, solve
from maxmargin.vision.parts.ascent import PartAscent, row_bytes
from maxmargin.vision.parts.filters import FilterBound, tied_to
from maxmargin.vision.parts.joint import JointSettings, JointTraining
from maxmargin.vision.parts.patches import Patches
from maxmargin.vision.parts.responses import Pooling, Responder, respond_all
from maxmargin.vision.parts.weights import PartWeights, WeightProblem


def some_weights(rng, n_classes, n_parts, n_regions, scale=1.0):
    table = scale * rng.normal(size=(n_classes, n_parts, n_regions))
    return PartWeights(
        table - table.mean(axis=0), 0.3 * rng.normal(size=n_classes), 0.2 * rng.normal(size=table.shape[1:])
    )


class Case:
    """A bound that touches at random filters, small enough to be written out."""

    def __init__(self, seed=0, n=6, n_views=1, grids=(1,), n_parts=2, n_classes=3, most=3, d=3, **changes):
        self.rng = rng = np.random.default_rng(seed)
        self.grids = grids
        self.patches = ragged(seed, n=n, n_views=n_views, d=d, most=most, **changes)
        self.responder = Responder(self.patches, Pooling(grids))
        self.label = np.arange(n) % n_classes
        self.weights = some_weights(rng, n_classes, n_parts, self.responder.pooling.n_regions)
        self.last = rng.normal(size=(n_parts, d))
        self.budget = rng.uniform(0.5, 2.0, n)
        self.held = respond_all(self.responder, self.last).places

    def bound(self, **changes):
        given_ = {"responder": self.responder, "weights": self.weights, "label": self.label, "budget": self.budget}
        return FilterBound(**{**given_, "held": self.held, **changes})

    def loss(self, filters):
        """The true loss, by hand."""
        responses, _ = looked_up(self.patches, filters, self.grids)
        w = self.weights
        return float(self.budget @ hinges(responses, self.label, w.table, w.bias, w.centre))

    def optimum(self, tie):
        """The least value of the bound and the penalty, by an independent solver over all combinations of places."""
        X, loss, image = every_constraint(self.patches, self.label, self.weights, self.grids, self.held)
        last = self.last.ravel()
        mean, covariance = tie / (1 + tie) * last, 1 / (1 + tie)
        return reference.quadratic(X, loss, image, self.budget, mean=mean, covariance=covariance).value

    def solved(self, tie=0.0, tol=1e-4, warm=None, callbacks=(), max_passes=4000, **solver):
        problem = Problem(self.bound(), tied_to(self.last.ravel(), tie))
        return problem, solve(
            problem, PartAscent(0, **solver), tol=tol, max_passes=max_passes, warm=warm, callbacks=callbacks
        )


SHAPES = {
    "one view": {},
    "three parts": {"n_parts": 3, "n": 5},
    "two views": {"n_views": 2, "most": 2, "n": 4},
    "regions": {"grids": (1, 2), "n": 4},
    "two classes": {"n_classes": 2},
}


# Bounds.


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(list(SHAPES)))
def test_a_bound_touches_the_loss_and_is_nowhere_below(seed, shape):
    case = Case(seed, **SHAPES[shape])
    bound = case.bound()
    assert bound.evaluate(case.last.ravel()).total == pytest.approx(case.loss(case.last), rel=1e-10, abs=1e-10)
    for scale in (0.1, 1.0, 10.0):
        w = case.last + scale * case.rng.normal(size=case.last.shape)
        assert bound.evaluate(w.ravel()).total >= case.loss(w) - 1e-9


def test_filters_are_tied_but_for_a_constant():
    last, w, tie = *np.random.default_rng(0).normal(size=(2, 5)), 7.0
    least = 0.5 * tie / (1 + tie) * last @ last
    assert tied_to(last, tie).value(w) + least == pytest.approx(0.5 * w @ w + 0.5 * tie * (w - last) @ (w - last))


# The ascent, and the optimum of the problem that is written out (Naderi Parizi, theorem 3.1).


class Brackets:
    """A callback that checks every pass."""

    def __init__(self, optimum):
        self.optimum, self.lowers, self.uppers = optimum, [], []

    def __call__(self, record):
        self.lowers.append(record.lower)
        self.uppers.append(record.upper)
        assert record.lower <= self.optimum * (1 + 1e-9) + 1e-9
        assert record.upper >= self.optimum * (1 - 1e-9) - 1e-9


@pytest.mark.parametrize(("shape", "tie", "seed"), rotating(SHAPES, [0.0, 1.0], [0, 1], times=2))
def test_the_ascent_finds_the_optimum_of_all_combinations(shape, tie, seed):
    case = Case(seed, **SHAPES[shape])
    optimum = case.optimum(tie)
    seen = Brackets(optimum)
    problem, found = case.solved(tie, callbacks=[seen])
    assert found.converged
    assert len(seen.lowers) >= 2
    assert all(after >= before - 1e-9 for before, after in pairwise(seen.lowers))  # an ascent
    assert found.certificate.lower <= optimum * (1 + 1e-9)
    assert found.certificate.upper == pytest.approx(optimum, rel=1e-4)
    w = found.weights
    assert problem.regularizer.value(w) + problem.constraints.evaluate(w).total == pytest.approx(
        found.certificate.upper
    )
    for image, budget in zip(found.alpha.images, case.budget, strict=True):
        assert (image.share >= 0.0).all()
        assert image.share.sum() <= budget * (1 + 1e-9)
    again = certify(problem, w, found.alpha)
    assert again.lower == pytest.approx(found.certificate.lower)
    assert again.upper == pytest.approx(found.certificate.upper)


@pytest.mark.parametrize(("shape", "tie", "most"), rotating(SHAPES, [0.0, 1.0], [1, 2]))
def test_the_ascent_finds_it_where_rivals_are_averaged(shape, tie, most):
    case = Case(2, **{**SHAPES[shape], "n_classes": 5, "n": 8})
    optimum = case.optimum(tie)
    one = len(case.label) * row_bytes(case.last.size, np.dtype(np.float64))
    seen, records = Brackets(optimum), []
    _, found = case.solved(tie, tol=1e-3, callbacks=[seen, records.append], memory=most * one + one // 2)
    assert found.converged
    assert found.certificate.upper == pytest.approx(optimum, rel=1.1e-3)
    assert max(record.cache_size for record in records) <= most * len(case.label)
    assert max(record.bytes for record in records) <= most * one + case.held.nbytes
    assert max(map(len, found.alpha.images)) <= most
    free = case.solved(tie, tol=1e-3)[1]
    assert max(map(len, free.alpha.images)) > 1  # so a limit of one means something


@pytest.mark.parametrize("memory", [False, True])
def test_what_another_bound_has_learned_is_a_start(memory):
    case, n = Case(7, n_classes=4, n=8), 8
    limit = {"memory": n * row_bytes(case.last.size, np.dtype(np.float64))} if memory else {}
    _, first = case.solved(1.0, tol=1e-3, **limit)
    # Other part weights, other places, smaller budgets.
    case.weights = some_weights(case.rng, 4, 2, 1)
    case.last = case.rng.normal(size=case.last.shape)
    case.held = respond_all(case.responder, case.last).places
    case.budget = 0.5 * case.budget
    bound = case.bound()
    for warm in (first.alpha, first.alpha.without_features()):
        begun = bound.begun_from(warm)
        for i, image in enumerate(begun.images):
            assert (image.share >= 0.0).all()
            assert image.share.sum() <= case.budget[i] * (1 + 1e-9)
            assert (image.rival >= 0).all()
            ids = np.full(len(image), i)
            np.testing.assert_allclose(image.loss, bound.losses(ids, image.rival))
        penalty = tied_to(case.last.ravel(), 1.0)
        linear, v, *_ = bound.totals(begun)
        assert linear - penalty.conjugate(v) <= case.optimum(1.0) + 1e-9
        _, found = case.solved(1.0, tol=1e-4, warm=warm)
        assert found.converged
        assert found.certificate.upper == pytest.approx(case.optimum(1.0), rel=1e-4)
    assert bound.begun_from(begun) is begun
    assert not begun.without_features().images[0].features.size
    _, at_once = case.solved(1.0, tol=1e-3, warm=found.alpha.without_features())
    _, cold = case.solved(1.0, tol=1e-3)
    assert len(at_once.history) <= len(cold.history)


# Part weights.


def weights_by_cone_solver(responses, label, n_classes, centre, budget):
    """The least objective of part weights, by an independent solver."""
    z = np.hstack([(responses - centre).reshape(len(responses), -1), np.ones((len(responses), 1))])
    rows, image = [], []
    for i, y in enumerate(label):
        for k in set(range(n_classes)) - {int(y)}:
            x = np.zeros((n_classes, z.shape[1]))
            x[y] += z[i]
            x[k] -= z[i]
            rows.append(x.ravel())
            image.append(i)
    return reference.quadratic(np.array(rows), np.ones(len(rows)), np.array(image), budget)


def test_part_weights_are_those_of_a_cone_solver():
    rng = np.random.default_rng(0)
    responses, label = rng.normal(size=(15, 2, 2)), np.arange(15) % 3
    budget, centre = rng.uniform(0.5, 2.0, 15), responses.mean(axis=0)
    problem = WeightProblem(responses, label, 3, centre, budget)
    found = problem.solve(tol=1e-8)
    weights = problem.weights(found)
    expected = weights_by_cone_solver(responses, label, 3, centre, budget)
    assert found.certificate.upper == pytest.approx(expected.value, rel=1e-7)
    np.testing.assert_allclose(
        np.hstack([weights.table.reshape(3, -1), weights.bias[:, None]]), expected.weights.reshape(3, -1), atol=1e-3
    )
    np.testing.assert_allclose(weights.table.sum(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(
        weights.hinge(responses, label), hinges(responses, label, weights.table, weights.bias, centre), atol=1e-12
    )
    by_hand = weights.penalty + budget @ weights.hinge(responses, label)
    assert found.certificate.upper == pytest.approx(by_hand)
    again = problem.certify(weights, found.alpha)
    assert (again.lower, again.upper) == pytest.approx((found.certificate.lower, found.certificate.upper))
    np.testing.assert_allclose(
        weights.scores(responses),
        np.einsum("njr,kjr->nk", responses - centre, weights.table) + weights.bias,
        atol=1e-12,
    )


# Joint training.


def telling(seed=0, n=24, n_classes=3, n_views=1, d=5, dtype=np.float64, much=2.0):
    """Ragged patches, of which one tells the class, unless there is much noise."""
    rng = np.random.default_rng(seed)
    patches, label = ragged(seed, n=n, n_views=n_views, d=d, dtype=dtype), np.arange(n) % n_classes
    for i, k in enumerate(label):
        for v in range(n_views):
            patches.values[rng.integers(*patches.first[i * n_views + v : i * n_views + v + 2]), k] += much
    return patches, label, 0.3 * rng.normal(size=(4, d))


def training(data, grids=(1,), budget=2.0, **more):
    patches, label, filters = data
    run = {k: more.pop(k) for k in ("callbacks", "inner_callbacks", "checkpoint") if k in more}
    chosen = JointSettings(**{"random_state": 0, "tol": 1e-3, "bound_tol": 1e-3, **more})
    responder = Responder(patches, Pooling(grids))
    budgets = np.broadcast_to(np.asarray(budget, float), label.shape)
    return JointTraining(responder, label, int(label.max()) + 1, budgets, filters, chosen, **run)


def by_hand(data, found, grids=(1,), budget=2.0):
    """O(u, w) of what was trained."""
    patches, label, _ = data
    w = found.weights
    responses, _ = looked_up(patches, found.filters, grids)
    loss = np.sum(budget * hinges(responses, label, w.table, w.bias, w.centre))
    return 0.5 * ((w.table**2).sum() + (w.bias**2).sum() + found.penalty * (found.filters**2).sum()) + loss


@pytest.mark.rounding
@pytest.mark.parametrize(("seed", "n_views", "grids"), [(0, 1, (1,)), (1, 2, (1, 2)), (2, 2, (1, 2))])
def test_the_objective_never_rises(seed, n_views, grids):
    data = telling(seed, n_views=n_views)
    budget = np.random.default_rng(seed).uniform(0.5, 3.0, 24)
    found = training(data, grids, budget, tol=1e-2, bound_tol=1e-2, max_rounds=100).run()
    history = found.history
    assert found.converged
    assert not found.interrupted
    assert [r.step for r in history[:3]] == ["weights", "filters", "weights"]
    assert [r.round for r in history] == [(k + 1) // 2 for k in range(len(history))]
    assert all(after.objective <= before.objective * (1 + 1e-9) for before, after in pairwise(history))
    assert all(after.seconds >= before.seconds for before, after in pairwise(history))
    assert history[-1].objective < 0.9 * history[0].objective
    for before, record in pairwise(history):
        assert record.lower <= record.upper * (1 + 1e-9)
        assert record.passes >= 1
        assert record.taken or record.objective == before.objective
        if record.step == "weights":
            assert record.lower <= record.objective * (1 + 1e-9)
            assert record.objective <= record.upper * (1 + 1e-9)
            assert record.rivals == record.bytes == 0
        else:  # the bound touches O before the step, and is nowhere below it
            assert record.lower <= before.objective * (1 + 1e-9)
            assert record.bytes > 0
    last = history[-1].objective
    assert last == pytest.approx(by_hand(data, found, grids, budget), rel=1e-9)
    np.testing.assert_allclose(found.weights.table.sum(axis=0), 0.0, atol=1e-9)
    ends = [r.objective for r in history if r.step == "weights"]
    assert ends[-2] - ends[-1] <= 1e-2 * ends[-2]


@pytest.mark.parametrize("stop", [None, 2, 3])
def test_the_certificate_is_of_the_filters_at_hand(stop):
    """Whether the last step was one of filters or of weights."""
    data = telling(3)
    calls = [lambda record: len(seen) >= stop] if stop else []
    found = training(data, callbacks=calls, max_rounds=4, **_watch(seen := [])).run()
    extra = 0.5 * found.penalty * float((found.filters**2).sum())
    responses, _ = looked_up(data[0], found.filters, (1,))
    optimum = weights_by_cone_solver(responses, data[1], 3, found.weights.centre, np.full(24, 2.0)).value + extra
    assert found.certificate.lower <= optimum * (1 + 1e-9)
    assert found.certificate.upper >= optimum * (1 - 1e-9)
    assert found.certificate.upper == pytest.approx(by_hand(data, found), rel=1e-9)
    assert found.certificate.upper == pytest.approx(found.history[-1].objective, rel=1e-9)
    if stop != 2:
        assert found.certificate.upper - found.certificate.lower <= 1e-3 * (found.certificate.upper - extra) + 1e-9
    assert found.interrupted == (stop is not None)


def _watch(seen):
    """Nothing: steps are counted by their inner solutions."""
    return {"inner_callbacks": [lambda record: seen.append(record) if record.number == 1 else None]}


def test_the_price_of_filters_balances_that_of_weights_at_the_beginning():
    for balance in (1.0, 4.0):
        found = training(telling(4), max_rounds=0, balance=balance).run()
        assert found.penalty * (found.filters**2).sum() == pytest.approx(2.0 * balance * found.weights.penalty)
        assert len(found.history) == 1
        assert not found.converged


def test_parts_that_tell_nothing_are_no_reason_to_fail():
    patches, label, filters = telling(5)
    for same in (Patches(np.ones_like(patches.values), patches.first, patches.windows), patches):
        start = filters if same is not patches else 0.0 * filters
        found = training((same, label, start)).run()
        assert np.isfinite(found.penalty)
        assert found.penalty > 0.0
        assert np.isfinite(found.filters).all()
        assert found.history[-1].objective == pytest.approx(by_hand((same, label, start), found), rel=1e-9)


@pytest.mark.rounding
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_less_precision_is_enough(dtype):
    data = telling(6, n_views=2, dtype=dtype)
    wide = replace(data[0], values=data[0].values.astype(float))
    goal = {"tol": 1e-2, "bound_tol": 1e-2, "max_rounds": 100}
    found = training(data, (1, 2), **goal).run()
    exact = training((wide, *data[1:]), (1, 2), **goal).run()
    assert found.converged
    assert found.history[0].objective == pytest.approx(exact.history[0].objective, rel=0.02)  # convex so far
    assert gained(found) >= 0.75 * gained(exact)  # then the loss has many valleys
    assert found.history[-1].objective == pytest.approx(by_hand(data, found, (1, 2)), rel=1e-4)


def gained(found):
    return found.history[0].objective - found.history[-1].objective


@pytest.mark.rounding
def test_threads_train_as_well_as_one():
    data = telling(7, n=90, much=6.0)
    one, two = (training(data, n_jobs=n).run() for n in (1, 2))
    assert gained(two) >= 0.75 * gained(one)  # not to the same place: the loss has many valleys
    assert two.history[-1].objective == pytest.approx(by_hand(data, two), rel=1e-9)


# Interruptions, failures, checkpoints.


def calls_of(data, method):
    """How often a method of the responder is called in three rounds."""
    with pytest.MonkeyPatch.context() as patch:
        calls = interrupt_at(patch, Responder, method, -1)
        training(data, max_rounds=3).run()
    return len(calls)


@pytest.mark.parametrize(("method", "share"), [("respond", 0.9), ("scores_at", 0.5), ("rows", 0.1)])
def test_ctrl_c_keeps_what_there_is(method, share, monkeypatch):
    data = telling(10)
    interrupt_at(monkeypatch, Responder, method, 2 + int(share * calls_of(data, method)))
    found = training(data, max_rounds=3).run()
    assert found.interrupted
    assert not found.converged
    assert found.certificate.upper == pytest.approx(by_hand(data, found), rel=1e-9)
    assert found.certificate.upper <= found.history[0].objective * (1 + 1e-9)
    assert all(after.objective <= before.objective * (1 + 1e-9) for before, after in pairwise(found.history))


def test_ctrl_c_twice_ends_all():
    data = telling(11)
    presses = []

    def press(record):
        presses.append(record)
        raise KeyboardInterrupt

    assert training(data, callbacks=[press]).run().interrupted
    with pytest.raises(KeyboardInterrupt):
        training(data, callbacks=[press]).run()
    assert len(presses) == 2


@pytest.mark.parametrize("method", ["respond", "rows"])
def test_an_error_takes_along_what_was_reached(method, monkeypatch):
    data = telling(12)
    interrupt_at(monkeypatch, Responder, method, 2 + calls_of(data, method) // 2, RuntimeError("the disk is gone"))
    with pytest.raises(RuntimeError, match="the disk is gone") as caught:
        training(data).run()
    found = caught.value.solution
    assert found.certificate.upper == pytest.approx(by_hand(data, found), rel=1e-9)
    assert found.history[-1].objective < found.history[0].objective


class Killed(BaseException):
    pass


@pytest.mark.parametrize(
    ("steps", "memory"), rotating([1, 2, 3, 4, 5], [None, 24 * row_bytes(20, np.dtype(np.float64))])
)
def test_a_run_goes_on_from_where_it_was_killed(steps, memory, tmp_path):
    data = telling(13)
    whole = training(data, memory=memory, max_rounds=3).run()
    assert len(whole.history) > 5

    def kill(record):
        if record.round * 2 + (record.step == "weights") == steps:
            raise Killed

    with CheckpointFolder(tmp_path, {}, 0.0) as folder, pytest.raises(Killed):
        training(data, memory=memory, max_rounds=3, callbacks=[kill], checkpoint=folder).run()
    seen = []
    with CheckpointFolder(tmp_path, {}, 0.0) as folder:
        resumed = training(data, memory=memory, max_rounds=3, callbacks=[seen.append], checkpoint=folder).run()
    assert [(r.round, r.step) for r in resumed.history] == [(r.round, r.step) for r in whole.history]
    assert len(seen) == len(whole.history) - steps
    np.testing.assert_allclose([r.objective for r in resumed.history], [r.objective for r in whole.history], rtol=1e-9)
    np.testing.assert_allclose(resumed.filters, whole.filters, atol=1e-9)
    assert resumed.certificate.upper == pytest.approx(whole.certificate.upper, rel=1e-9)
    assert all(after.seconds >= before.seconds for before, after in pairwise(resumed.history))
    # What has converged is done at once, and its certificate is computed anew.
    with CheckpointFolder(tmp_path, {}, 0.0) as folder:
        again = training(data, memory=memory, max_rounds=3, callbacks=[seen.append], checkpoint=folder).run()
    assert len(seen) == len(whole.history) - steps
    assert again.converged == resumed.converged == whole.converged
    assert again.history == resumed.history
    assert again.certificate == resumed.certificate


@pytest.mark.rounding
@pytest.mark.parametrize("method", ["respond", "rows"])
def test_an_interrupted_step_is_taken_anew(method, tmp_path, monkeypatch):
    """And what was reached is saved however long it is until the next saving."""
    data = telling(14)
    whole = training(data, max_rounds=4).run()
    interrupt_at(monkeypatch, Responder, method, 2 + calls_of(data, method) // 2)
    with CheckpointFolder(tmp_path, {}, 1e9) as folder:
        stopped = training(data, max_rounds=4, checkpoint=folder).run()
    assert stopped.interrupted
    with CheckpointFolder(tmp_path, {}, 1e9) as folder:
        resumed = training(data, max_rounds=4, checkpoint=folder).run()
    assert resumed.converged == whole.converged
    assert len(stopped.history) < len(resumed.history)
    np.testing.assert_allclose([r.objective for r in resumed.history], [r.objective for r in whole.history], rtol=1e-9)
