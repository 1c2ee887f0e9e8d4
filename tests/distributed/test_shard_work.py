"""The mathematics of shards: divided regularizers, sums that workers report, examples that change hands."""

import numpy as np
import pytest
from every_regularizer import REGULARIZERS, N
from generators import many_classes, two_classes

from maxmargin.checkpoint import CheckpointFolder
from maxmargin.checks import check_regularizer
from maxmargin.constraints.pool import extracted
from maxmargin.data.arrays import as_rows
from maxmargin.distributed.shard import Beginning, Shard
from maxmargin.distributed.work import ClosedWork, Task
from maxmargin.losses import SmoothedHinge, SquaredHinge
from maxmargin.models import binary, multiclass
from maxmargin.problem import Problem
from maxmargin.regularizers import L2, Bounded, GaussianPrior
from maxmargin.regularizers.divided import Divided

STRONG = {name: r for name, r in REGULARIZERS.items() if not getattr(r, "pure", False)}


@pytest.mark.parametrize("sigma", [0.5, 1.0, 7.0])
@pytest.mark.parametrize("name", STRONG)
def test_a_divided_regularizer_is_one(name, sigma, rng):
    divided = Divided(STRONG[name], sigma)
    check_regularizer(divided, N)
    w = divided.weights(rng.normal(size=N))
    assert divided.value(w) == pytest.approx(STRONG[name].value(w) / sigma)


def _constraints(kind):
    rng = np.random.default_rng(4)
    if kind == "classes":
        X, y = many_classes(rng, n=42, d=N - 1, k=3)
        return lambda rows: multiclass(as_rows(X[rows], bias=1.0), y[rows].astype(np.int32), 1.0 - np.eye(3), C)
    X, y = two_classes(rng, n=42, d=N - 1)
    return lambda rows: binary(as_rows(X[rows], bias=1.0), y[rows].astype(np.int8), C, loss=LOSSES.get(kind))


LOSSES = {"squared": SquaredHinge(), "smoothed": SmoothedHinge(0.5)}
C = np.array([0.7])


class _Shards:
    """The parts of a problem with a worker each, and the whole of it."""

    def __init__(self, kind, regularizer, n_shards):
        make = _constraints(kind)
        self.parts = np.array_split(np.arange(42), n_shards)
        self.regularizer = regularizer
        self.whole = make(np.arange(42))
        self.works = [
            ClosedWork(Problem(make(p), regularizer), None, np.empty(0, np.int64), seed=k)
            for k, p in enumerate(self.parts)
        ]
        self.linear, self.v = 0.0, np.zeros(self.whole.n_weights)
        self.before = self.v

    def round(self, momentum=0.0, everything=True, **more):
        task = Task(sigma=float(len(self.works)), everything=everything, wanted=0.0, momentum=momentum, **more)
        if task.part == 0:
            self.before, self.v = self.v, self.v + momentum * (self.v - self.before)
        answers = [work.improve(self.v, task) for work in self.works]
        self.linear += sum(report.linear for report, _ in answers)
        self.v = self.v + sum(step for _, step in answers)
        return [report for report, _ in answers]

    def over(self, parts, momentum=0.0, **more):
        """One pass in so many rounds; the last reports, and how many examples were visited in all."""
        visited = 0
        for part in range(parts):
            reports = self.round(momentum, part=part, parts=parts, **more)
            visited += sum(report.visited for report in reports)
        return reports, visited

    @property
    def dual(self):
        return self.linear - self.regularizer.conjugate(self.v)

    def from_nothing(self):
        return self.whole.totals(np.concatenate([work.alpha for work in self.works]))[:2]


def _cases():
    rng = np.random.default_rng(11)
    diagonal = rng.uniform(0.5, 2.0, N)
    for kind in ("hinge", "squared", "smoothed"):
        for regularizer in (L2(), GaussianPrior(0.1, diagonal), Bounded(-0.1, [1]), REGULARIZERS["group-l2"]):
            yield pytest.param(kind, regularizer, id=f"{kind}-{type(regularizer).__name__}")
    yield pytest.param("hinge", REGULARIZERS["prior-full"], id="hinge-full")
    yield pytest.param("classes", L2(), id="classes")


@pytest.mark.parametrize("stretch", [1.0, 1.9])
@pytest.mark.parametrize(("kind", "regularizer"), list(_cases()))
def test_rounds_never_lower_the_dual_objective(kind, regularizer, stretch):
    shards = _Shards(kind, regularizer, 3 if kind == "squared" else 7)
    before = shards.dual
    for number in range(15):
        reports = shards.round(stretch=stretch if number else 1.0)
        assert shards.dual >= before - 1e-9 * (1.0 + abs(before))
        before = shards.dual
        assert sum(report.visited for report in reports) == 42
        linear, v = shards.from_nothing()
        assert shards.linear == pytest.approx(linear, abs=1e-8)
        assert np.allclose(shards.v, v, atol=1e-8)
    everything = (
        regularizer.value(regularizer.weights(shards.v)) + shards.whole.evaluate(regularizer.weights(shards.v)).total
    )
    assert everything >= before - 1e-9  # weak duality


@pytest.mark.parametrize(("kind", "regularizer"), list(_cases()))
def test_sums_hold_with_momentum(kind, regularizer):
    shards = _Shards(kind, regularizer, 3)
    for number in range(12):
        shards.round(momentum=0.0 if number < 2 else 0.6)
        linear, v = shards.from_nothing()
        assert shards.linear == pytest.approx(linear, abs=1e-8)
        assert np.allclose(shards.v, v, atol=1e-8)
        shares = np.concatenate([work.alpha for work in shards.works])
        assert np.allclose(shares, shards.whole.feasible(shares.copy()), atol=1e-12)


@pytest.mark.parametrize("parts", [2, 3, 100])
@pytest.mark.parametrize("kind", ["hinge", "squared", "classes"])
def test_a_pass_in_parts_visits_every_example_once_and_sums_hold(kind, parts):
    shards = _Shards(kind, L2(), 2)
    moving, before = 42, shards.dual
    for number in range(12):
        everything = number % 3 == 0
        reports, visited = shards.over(parts, 0.6 if number > 4 else 0.0, everything=everything)
        assert visited == (42 if everything else moving)
        moving = sum(report.active for report in reports)
        linear, v = shards.from_nothing()
        assert shards.linear == pytest.approx(linear, abs=1e-8)
        assert np.allclose(shards.v, v, atol=1e-8)
        for work, report in zip(shards.works, reports, strict=True):
            assert sorted(work._order) == list(range(21))
            assert report.active <= 21
        if number <= 4:
            assert shards.dual >= before - 1e-9
        before = shards.dual


def test_a_worker_that_begins_in_the_midst_of_a_pass_goes_on():
    """It died, and has not heard of the parts before. Whoever calls forms v anew then."""
    shards = _Shards("hinge", L2(), 2)
    shards.over(3)
    work = ClosedWork(Problem(shards.works[0].constraints, L2()), None, np.empty(0, np.int64), seed=0)
    report, step = work.improve(shards.v, Task(sigma=2.0, everything=True, wanted=0.0, part=2, parts=3))
    linear, v = work.constraints.totals(work.alpha)[:2]
    assert np.allclose(step, v, atol=1e-8)
    assert report.linear == pytest.approx(linear, abs=1e-8)
    again, _ = work.improve(shards.v + step, Task(sigma=2.0, everything=True, wanted=0.0))
    assert again.visited == 21


def test_a_worker_that_begins_anew_takes_long_steps_only_once_it_knows_its_rows():
    found = []
    for stretch in (1.0, 1.9):
        constraints = _Shards("hinge", L2(), 2).works[0].constraints
        work, v = ClosedWork(Problem(constraints, L2()), None, np.empty(0, np.int64), seed=0), np.zeros(6)
        for longer in (stretch, 1.0):
            v = v + work.improve(v, Task(sigma=2.0, everything=True, wanted=0.0, stretch=longer))[1]
        found.append(v)
    assert np.array_equal(*found)


def test_the_loss_of_a_round_is_that_of_the_v_it_began_with():
    shards = _Shards("hinge", L2(), 3)
    for _ in range(3):
        at = shards.v.copy()
        reports = shards.round(evaluate=True)
        assert sum(r.loss.total for r in reports) == pytest.approx(shards.whole.evaluate(L2().weights(at)).total)


@pytest.mark.parametrize("kind", ["hinge", "squared", "smoothed", "classes"])
def test_examples_change_hands_and_sums_stay(kind):
    shards = _Shards(kind, L2(), 3)
    for _ in range(2):
        shards.round()
    total = shards.from_nothing()
    reports = shards.round(hand_over=400)
    assert any(report.parcel is not None for report in reports)
    linear, v = shards.from_nothing()  # without what has left
    for work, report in zip(shards.works, reports, strict=True):
        if report.parcel is None:
            continue
        block, places, alpha, _ = report.parcel
        assert not work.alpha[places].any()
        more, add, *_ = block.totals(alpha)
        linear, v = linear + more, v + add
        assert np.array_equal(block.totals(alpha)[1], extracted(work.constraints, places).totals(alpha)[1])
    assert linear == pytest.approx(shards.linear, abs=1e-8)
    assert np.allclose(v, shards.v, atol=1e-8)
    assert linear != pytest.approx(total[0], abs=1e-12)  # the round itself has moved them
    away = [np.array([]) if r.parcel is None else r.parcel[1] for r in reports]
    assert [r.visited for r in shards.round()] == [14 - places.size for places in away]
    linear, v = shards.from_nothing()
    for work, report in zip(shards.works, reports, strict=True):
        if report.parcel is not None:
            work.take_back(report.parcel[1], report.parcel[2])
    assert np.allclose(shards.from_nothing()[1], shards.v, atol=1e-8)
    assert shards.from_nothing()[0] == pytest.approx(shards.linear, abs=1e-8)
    assert sum(r.visited for r in shards.round()) == 42


def test_agreeing_brings_examples_home():
    shards = _Shards("hinge", L2(), 2)
    shards.round()
    first = shards.works[0]
    parcel = shards.round(hand_over=2000)[0].parcel
    first.agree(parcel[1][:1])  # the driver has one of them, the rest were lost
    assert not first.alpha[parcel[1][0]].any()
    np.testing.assert_array_equal(first.alpha[parcel[1][1:]], parcel[2][1:])  # as they left
    report, _ = first.improve(shards.v, Task(sigma=2.0, everything=True, wanted=0.0))
    assert report.visited == first.n_examples - 1
    assert first.alpha[parcel[1][0]] == 0.0


@pytest.mark.parametrize("kind", ["hinge", "classes"])
def test_extracted_examples_are_the_same_examples(kind, rng):
    whole = _Shards(kind, L2(), 1).whole
    chosen = np.array([3, 4, 17, 41])
    block = extracted(whole, chosen)
    w = rng.normal(size=whole.n_weights)
    alpha = whole.feasible(rng.uniform(0.0, 0.7, size=whole.dual_shape))
    only = np.zeros_like(alpha)
    only[chosen] = alpha[chosen]
    assert block.totals(alpha[chosen])[0] == pytest.approx(whole.totals(only)[0])
    assert np.allclose(block.totals(alpha[chosen])[1], whole.totals(only)[1])
    rest = extracted(whole, np.setdiff1d(np.arange(42), chosen))
    assert block.evaluate(w).total + rest.evaluate(w).total == pytest.approx(whole.evaluate(w).total)


class _Parts:
    """A recipe with two problems, of different sizes."""

    def problem(self, question):
        return Problem(_constraints("hinge")(np.arange(question)), L2())


def _beginning(folder, n, away=()):
    return Beginning(n, None, np.array(away, np.int64), 0, None, CheckpointFolder(folder / str(n), {}, every=0.0))


def test_what_has_left_is_saved_as_it_was(tmp_path):
    """A driver that dies takes examples with it: where the worker saves by itself, they have not lost their way."""
    shard = Shard(_Parts())
    shard.begin(_beginning(tmp_path, 42))
    v = np.zeros(N)
    task = Task(sigma=1.0, everything=True, wanted=0.0, hand_over=600)
    left = {}
    for _ in range(3):  # more leave each time
        report, (step,) = shard.improve(v, task)
        v = v + step
        _, places, alpha, _ = report.parcel
        left.update(zip(places.tolist(), alpha.tolist(), strict=True))
    shard.take_back(places[:1], alpha[:1])
    assert any(left.values())
    shard.save()
    shard.end("")
    again = CheckpointFolder(tmp_path / "42", {}).load()
    assert {i: again["alpha"][i] for i in left} == left

    anew = Shard(_Parts())  # a worker that starts anew while the driver has them
    assert anew.begin(_beginning(tmp_path, 42, away=sorted(left))) == 42
    assert not anew.shares()[sorted(left)].any()
    anew.save()
    assert anew.begin(_beginning(tmp_path, 7)) == 7  # and one that turns to another problem
    anew.save()
    anew.end("")
    np.testing.assert_array_equal(CheckpointFolder(tmp_path / "42", {}).load()["alpha"], again["alpha"])
    assert not CheckpointFolder(tmp_path / "7", {}).load()["alpha"].any()
