"""Linear problems that are read in chunks end where those in memory do, however they are cut, stored and solved."""

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
import source_kinds
from generators import covariance, graded, line, many_classes, partition, two_classes
from sklearn.base import clone
from thinned import rotating

import maxmargin as mm
from maxmargin import LinearSVC, LinearSVR, Problem, RankingSVM, solve
from maxmargin.constraints import Blocked
from maxmargin.data.arrays import as_rows
from maxmargin.losses import EpsilonInsensitive, SmoothedHinge, SquaredEpsilonInsensitive, SquaredHinge
from maxmargin.models import binary, multiclass, regression
from maxmargin.protocols import Chunk
from maxmargin.regularizers import L2, Bounded, GaussianPrior, GroupNorm
from maxmargin.solvers import BlockAscent, DualCoordinate
from maxmargin.solvers.certificate import lower_bound, upper_bound

TOL = 1e-5
COST = np.array([[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [4, 3, 2, 0]], float)


@dataclass(frozen=True)
class Data:
    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray | None = None
    weights: np.ndarray | None = None

    def columns(self):
        return {"labels": self.y, "groups": self.groups, "weights": self.weights}

    def arguments(self, X=None):
        """What ``fit`` and ``certify`` take when the data is in memory."""
        extra = {"groups": self.groups, "sample_weight": self.weights}
        return (self.X if X is None else X, self.y), {k: v for k, v in extra.items() if v is not None}


def _single(X):
    """Numbers that float32 holds exactly, so that every way to store them gives the same problem."""
    return X.astype(np.float32).astype(np.float64)


def _binary(weighted=False):
    rng = np.random.default_rng(11)
    X, y = two_classes(rng, n=230, d=6, noise=1.0)
    return Data(_single(X), y, weights=rng.integers(0, 4, 230).astype(float) if weighted else None)


def _classes(weighted=False):
    rng = np.random.default_rng(12)
    X, y = many_classes(rng, n=170, d=5, k=4)
    return Data(_single(X), y, weights=rng.integers(0, 4, 170).astype(float) if weighted else None)


def _numbers(weighted=False):
    rng = np.random.default_rng(13)
    X, y = line(rng, n=190, noise=0.4, offset=0.0)
    return Data(_single(X), np.round(y, 3), weights=rng.integers(0, 4, 190).astype(float) if weighted else None)


def _graded():
    rng = np.random.default_rng(14)
    X, y = graded(rng, n=150)
    return Data(_single(X), y, groups=np.sort(rng.integers(0, 20, 150)))


SETTINGS = {"C": 0.7, "tol": TOL, "random_state": 0, "solver": "dual_coordinate"}

TASKS = {
    "hinge": (LinearSVC, {}, _binary),
    "hinge, no intercept": (LinearSVC, {"fit_intercept": False}, _binary),
    "hinge, weights": (LinearSVC, {"intercept_scaling": 3.0}, lambda: _binary(True)),
    "squared hinge": (LinearSVC, {"loss": "squared_hinge"}, _binary),
    "smoothed hinge": (LinearSVC, {"loss": "smoothed_hinge"}, _binary),
    "squared hinge, weights": (LinearSVC, {"loss": "squared_hinge", "class_weight": "balanced"}, lambda: _binary(True)),
    "classes": (LinearSVC, {}, _classes),
    "classes, cost": (LinearSVC, {"cost": COST, "fit_intercept": False}, _classes),
    "classes, weights": (LinearSVC, {"class_weight": "balanced"}, lambda: _classes(True)),
    "classes, weights by name": (LinearSVC, {"class_weight": {0: 3.0, 2: 0.5}}, _classes),
    "one-vs-rest": (LinearSVC, {"multi_class": "ovr"}, _classes),
    "one-vs-rest, squared": (
        LinearSVC,
        {"multi_class": "ovr", "loss": "squared_hinge", "class_weight": "balanced"},
        lambda: _classes(True),
    ),
    "regression": (LinearSVR, {"epsilon": 0.2}, _numbers),
    "regression, squared": (
        LinearSVR,
        {"loss": "squared_epsilon_insensitive", "epsilon": 0.1, "fit_intercept": False},
        lambda: _numbers(True),
    ),
    "ranking": (RankingSVM, {"C": 0.1}, _graded),
    "ranking, squared": (RankingSVM, {"C": 0.1, "loss": "squared_hinge"}, _graded),
}


def _task(name, **settings):
    kind, own, data = TASKS[name]
    return kind(**{**SETTINGS, **own, **settings}), data()


def _agree(ours, theirs, strength=1.0, tol=TOL):
    """Two fits of one problem: true certificates overlap, and weights are as near as strong convexity has them."""
    for svm in (ours, theirs):
        assert svm.certificate_.exact
        assert svm.certificate_.relative_gap <= tol
    lower = max(ours.certificate_.lower, theirs.certificate_.lower)
    upper = min(ours.certificate_.upper, theirs.certificate_.upper)
    assert lower <= upper * (1 + 1e-9)
    # Ω(w) − Ω(w*) ≥ strength/2·‖w − w*‖²; float32 data and its rounding are the rest.
    radius = sum(np.sqrt(2 * max(svm.certificate_.upper - lower, 0.0) / strength) for svm in (ours, theirs))
    distance = np.linalg.norm(ours._table() - theirs._table())
    assert distance <= 1.01 * radius + 1e-6


def _same_bounds(a, b, rel=1e-9):
    assert a.lower == pytest.approx(b.lower, rel=rel)
    assert a.upper == pytest.approx(b.upper, rel=rel)


# The same optimum, from chunks of any size


@pytest.mark.parametrize(("name", "rows", "sparse"), rotating(TASKS, [3, 50, 1000], [False, True], times=2))
def test_chunks_of_any_size_end_where_a_fit_in_memory_does(name, rows, sparse):
    ours, data = _task(name)
    theirs, _ = _task(name)
    X = sp.csr_matrix(data.X) if sparse else data.X
    arguments, extra = data.arguments(X)
    theirs.fit(*arguments, **extra)
    source = mm.data.open(X, chunk_rows=rows, **data.columns())
    assert (len(source.offsets) == 2) == (rows == 1000)
    ours.fit(source)
    assert ours.n_features_in_ == theirs.n_features_in_
    _agree(ours, theirs)
    from_source = ours.certify(source)
    _same_bounds(from_source, ours.certificate_, rel=1e-7)
    # Pairs of a group are counted chunk by chunk, which is the order of the groups: that of memory, too.
    _same_bounds(ours.certify(*arguments, **extra), from_source)
    _same_bounds(theirs.certify(source), theirs.certify(*arguments, **extra))
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=0.1)


# The same optimum, however the data is stored


@pytest.mark.parametrize(
    ("kind", "estimator"),
    [
        (source_kinds.npy, LinearSVC()), (source_kinds.two_folders, LinearSVR()), (source_kinds.shards, LinearSVC()),
        (source_kinds.sparse_shards, LinearSVR()), (source_kinds.parquet, LinearSVC()),
        (source_kinds.text, RankingSVM()),
    ],
)  # fmt: skip
def test_data_on_disk_ends_where_a_fit_in_memory_does(kind, estimator, tmp_path):
    ours, theirs = (clone(estimator).set_params(**SETTINGS) for _ in range(2))
    # Text has groups, but no column of weights; rankings take no weights.
    extra = {"groups": source_kinds.GROUP} if kind is source_kinds.text else {"sample_weight": source_kinds.WEIGHT}
    arguments = source_kinds.X, source_kinds.Y
    theirs.fit(*arguments, **extra)
    source = kind(tmp_path, 20)
    ours.fit(source)
    _agree(ours, theirs)
    _same_bounds(ours.certify(source), ours.certificate_, rel=1e-7)
    _same_bounds(ours.certify(*arguments, **extra), ours.certificate_, rel=1e-6)


def test_dual_variables_stand_in_the_order_of_the_source(tmp_path):
    for name in ("hinge", "regression", "ranking"):
        svm, data = _task(name, tol=1e-7)
        svm.fit(mm.data.open(data.X, chunk_rows=17, **data.columns()))
        assert svm.dual_coef_.shape == (1, data.y.size)
        assert (svm.dual_coef_ @ data.X)[0] == pytest.approx(np.ravel(svm.coef_), rel=1e-3, abs=1e-3)
        assert 0 < svm.support_.size <= data.y.size


# Solvers, threads, regularizers


@pytest.mark.parametrize(
    ("name", "solver", "jobs"),
    rotating(
        ["hinge, weights", "squared hinge", "one-vs-rest", "regression", "ranking"], ["auto", "interior_point"], [1, 2]
    ),
)
def test_solvers_and_threads_agree(name, solver, jobs, tmp_path):
    ours, data = _task(name, solver=solver, n_jobs=jobs)
    theirs, _ = _task(name)
    arguments, extra = data.arguments()
    theirs.fit(*arguments, **extra)
    shards = mm.data.convert(data.X, tmp_path / "set", batch_bytes=900, **data.columns())
    ours.fit(shards)
    _agree(ours, theirs)
    _same_bounds(ours.certify(shards), ours.certificate_, rel=1e-7)


def _full_prior(rng, d):
    matrix = covariance(rng, d)
    return GaussianPrior(rng.normal(size=d), matrix), 1 / max(1.0, np.linalg.eigvalsh(matrix)[-1])


REGULARIZERS = {
    "diagonal prior": lambda rng, d: (GaussianPrior(rng.normal(size=d), rng.uniform(0.3, 3.0, d)), 1 / 3.0),
    "full prior": _full_prior,
    "bounds": lambda rng, d: (Bounded(np.full(d - 1, -0.1), np.arange(d - 1)), 1.0),
    "bounded prior": lambda rng, d: (
        Bounded(0.0, [0, 2], base=GaussianPrior(rng.normal(size=d), np.full(d, 2.0))),
        0.5,
    ),
    "groups": lambda rng, d: (GroupNorm(partition(rng, d), 1.5, l2=0.4), 0.4),
}


@pytest.mark.parametrize(
    ("regularizer", "name", "rows"),
    rotating(
        REGULARIZERS, ["hinge", "squared hinge, weights", "one-vs-rest", "regression", "ranking"], [9, 90], times=3
    ),
)
def test_regularizers(name, regularizer, rows, rng):
    data = TASKS[name][2]()
    omega, strength = REGULARIZERS[regularizer](rng, data.X.shape[1])
    ours, _ = _task(name, regularizer=omega)
    theirs, _ = _task(name, regularizer=omega)
    arguments, extra = data.arguments()
    source = mm.data.open(data.X, chunk_rows=rows, **data.columns())
    _agree(ours.fit(source), theirs.fit(*arguments, **extra), strength)
    _same_bounds(ours.certify(source), ours.certify(*arguments, **extra))


@pytest.mark.parametrize("solver", ["auto", "interior_point"])
def test_pure_group_norm_in_blocks(solver, tmp_path):
    """Coordinate steps in blocks know no such regularizer, the interior point does."""
    data = _binary()
    norm = GroupNorm([[0, 1, 2], [3, 4], [5]], 1.5)
    ours, _ = _task("hinge", regularizer=norm, solver=solver)
    theirs, _ = _task("hinge", regularizer=norm)
    shards = mm.data.convert(data.X, tmp_path / "set", batch_bytes=900, **data.columns())
    ours.fit(shards)
    theirs.fit(data.X, data.y)
    for fitted in (ours, theirs):
        assert fitted.certificate_.relative_gap <= TOL
    assert ours.certificate_.lower <= theirs.certificate_.upper
    assert theirs.certificate_.lower <= ours.certificate_.upper
    _same_bounds(ours.certify(shards), ours.certificate_, rel=1e-7)


# What cannot be done is said


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"regularizer": GroupNorm([[0, 1, 2, 3, 4]], 1.0), "multi_class": "ovr"}, "l2=0.01"),
        ({"regularizer": GroupNorm([[0, 1, 2, 3, 4]], 1.0, l2=1.0)}, "multi_class='ovr'"),
        ({"solver": "newton"}, "'auto', 'dual_coordinate', 'interior_point'"),
        ({"memory": 1000}, "at least"),
        ({"loss": "squared_hinge"}, "Crammer"),
    ],
)
def test_settings_that_do_not_go_with_sources(settings, message):
    svm, data = _task("classes", **settings)
    with pytest.raises(ValueError, match=message):
        svm.fit(mm.data.open(data.X, labels=data.y, chunk_rows=20))


def test_sources_that_lack_something_are_refused():
    data = _binary()
    with pytest.raises(mm.data.DataError, match="no labels"):
        LinearSVC().fit(mm.data.open(data.X))
    with pytest.raises(ValueError, match="one class only"):
        LinearSVC().fit(mm.data.open(data.X, labels=np.ones(data.y.size)))
    with pytest.raises(mm.data.DataError, match="no groups"):
        RankingSVM().fit(mm.data.open(data.X, labels=data.y, chunk_rows=50))
    with pytest.raises(mm.data.DataError, match="nothing to rank"):
        RankingSVM().fit(mm.data.open(data.X, labels=data.y, groups=np.arange(data.y.size)))
    with pytest.raises(mm.data.DataError, match=r"y\[7\] is nan"):
        LinearSVR().fit(mm.data.open(data.X, labels=np.where(np.arange(data.y.size) == 7, np.nan, 1.0), chunk_rows=5))
    svm = LinearSVC().fit(mm.data.open(data.X, labels=data.y))
    with pytest.raises(ValueError, match="6"):
        svm.certify(mm.data.open(data.X[:, :5], labels=data.y))
    with pytest.raises(ValueError, match=r"y\[3\] is 5,"):
        svm.certify(mm.data.open(data.X, labels=np.where(np.arange(data.y.size) == 3, 5, data.y)))


# Memory


@pytest.fixture
def pushed_out(monkeypatch):
    """How many rows had to leave a pool that was full."""
    counted = []
    make_room = BlockAscent._make_room

    def counting(self, state, inner):
        before = len(state.pool)
        make_room(self, state, inner)
        counted.append(before - len(state.pool))
        assert np.array_equal(np.flatnonzero(state.held), np.sort(state.pool.place))

    monkeypatch.setattr(BlockAscent, "_make_room", counting)
    return counted


@pytest.mark.parametrize(
    ("name", "sparse"), rotating(["hinge", "squared hinge", "classes", "regression", "ranking"], [False, True])
)
def test_pool_that_overflows_again_and_again_does_no_harm(name, sparse, pushed_out):
    ours, data = _task(name, solver=BlockAscent(pool=3000, random_state=0))
    theirs, _ = _task(name)
    arguments, extra = data.arguments()
    X = sp.csr_matrix(data.X) if sparse else data.X
    _agree(
        ours.fit(mm.data.open(X, chunk_rows=20, **data.columns())),
        theirs.fit(*arguments, **extra),
    )
    assert sum(pushed_out) > 20


def test_limit_of_memory_bounds_the_pool_and_the_result_is_the_same(pushed_out):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(16_000, 24)).astype(np.float32)
    y = np.where(X[:, 0] + 2.0 * rng.normal(size=16_000) > 0, 1, -1)
    # Of squared losses no dual variable is at an upper bound, so that few come to rest.
    settings = {"C": 0.01, "loss": "squared_hinge", "tol": 1e-3, "random_state": 0, "solver": "dual_coordinate"}
    memory = 1_500_000
    ours = LinearSVC(memory=memory, **settings).fit(mm.data.open(X, labels=y, chunk_rows=500))
    assert sum(pushed_out) > 0
    assert all(record.bytes <= memory for record in ours.history_)
    free = LinearSVC(**settings)
    pushed_out.clear()
    _agree(ours, free.fit(mm.data.open(X, labels=y, chunk_rows=500)), tol=1e-3)
    assert not pushed_out
    _agree(ours, LinearSVC(**settings).fit(X, y), tol=1e-3)


def test_dual_variables_go_to_disk_where_they_are_most_of_the_memory():
    rng = np.random.default_rng(1)
    X, y = many_classes(rng, n=3000, d=6, k=25)
    X = X.astype(np.float32)
    settings = {"C": 0.05, "tol": 1e-3, "random_state": 0}
    source = mm.data.open(X, labels=y, chunk_rows=300)
    ours = LinearSVC(memory="1300KB", **settings).fit(source)
    assert isinstance(ours._alpha, np.memmap)
    theirs = LinearSVC(**settings).fit(X, y)
    _agree(ours, theirs, tol=1e-3)
    free = LinearSVC(**settings).fit(source)
    assert not isinstance(free._alpha, np.memmap)
    # Only the size of the pool tells the two apart, and it was large enough for both.
    _agree(ours, free, tol=1e-3)
    _same_bounds(ours.certify(X, y), ours.certificate_, rel=1e-6)


# The block solver step by step


def _blocked(data, rows, make, n_weights, columns=(), sparse=False):
    """The problem in blocks, and as a whole."""
    X = sp.csr_matrix(data.X) if sparse else data.X
    source = mm.data.open(X, labels=data.y, chunk_rows=rows)

    def block(chunk: Chunk):
        return make(as_rows(chunk.x), chunk.y)

    blocked = Blocked(source, block, n_weights, columns=columns)
    return Problem(blocked, L2()), Problem(make(as_rows(X), data.y), L2())


def _hinge(rows, loss=None, sparse=False):
    C = np.array([0.7])
    return _blocked(_binary(), rows, lambda x, y: binary(x, y.astype(np.int8), C, loss=loss), 6, sparse=sparse)


def _errors(rows, kind=EpsilonInsensitive):
    C = np.array([0.7])
    return _blocked(_numbers(), rows, lambda x, y: regression(x, y, C, loss=kind(0.2)), 5)


def _joint(rows):
    C = np.array([0.7])
    return _blocked(_classes(), rows, lambda x, y: multiclass(x, y.astype(np.int32), COST, C), 20, columns=(4,))


PROBLEMS = {
    "hinge": _hinge,
    "squared hinge": lambda rows: _hinge(rows, SquaredHinge()),
    "smoothed hinge": lambda rows: _hinge(rows, SmoothedHinge(0.5)),
    "sparse hinge": lambda rows: _hinge(rows, sparse=True),
    "errors": _errors,
    "squared errors": lambda rows: _errors(rows, SquaredEpsilonInsensitive),
    "classes": _joint,
}


@pytest.mark.parametrize(("name", "pool"), rotating(PROBLEMS, [2000, 10**7]))
def test_bounds_are_true_after_every_reading_and_the_lower_one_never_falls(name, pool):
    blocked, whole = PROBLEMS[name](23)
    best = solve(whole, DualCoordinate(random_state=0), tol=1e-8).certificate
    found = solve(blocked, BlockAscent(pool=pool, random_state=0, max_inner=5), tol=1e-9, max_passes=15)
    lower = [record.lower for record in found.history]
    assert lower == pytest.approx(np.maximum.accumulate(lower), rel=1e-12)
    assert lower[-1] >= best.lower * (1 - 0.02)
    for record in found.history:
        assert record.lower <= best.upper * (1 + 1e-9)
        assert record.upper >= best.lower * (1 - 1e-9)
    np.testing.assert_array_equal(whole.constraints.feasible(found.alpha), found.alpha)
    assert found.certificate.lower == pytest.approx(lower_bound(whole, found.alpha), rel=1e-9)
    assert found.certificate.upper == pytest.approx(upper_bound(whole, found.weights).total, rel=1e-9)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_pool_reserves_no_more_than_all_rows_need(name):
    blocked, _ = PROBLEMS[name](23)
    few, many = (solve(blocked, BlockAscent(pool=pool, random_state=0), tol=1e-6) for pool in (10**7, 2**50))
    np.testing.assert_array_equal(few.alpha, many.alpha)


@pytest.mark.parametrize("name", PROBLEMS)
def test_warm_start_begins_where_the_last_run_ended(name):
    blocked, whole = PROBLEMS[name](23)
    solver = BlockAscent(random_state=0)
    first = solve(blocked, solver, tol=1e-6)
    assert first.converged
    again = solve(blocked, solver, tol=1e-6, warm=first.alpha)
    assert len(again.history) <= 3
    assert solver.start(blocked, first.alpha).lower == pytest.approx(lower_bound(whole, first.alpha), rel=1e-12)
    beyond = solver.start(blocked, 1e3 * first.alpha)  # made feasible, whatever it is
    assert beyond.lower == pytest.approx(lower_bound(whole, 1e3 * first.alpha), rel=1e-9)


def _gap(problem, solution):
    """The relative gap from weights and dual variables alone, on the problem in one piece."""
    upper = upper_bound(problem, solution.weights).total
    return (upper - lower_bound(problem, solution.alpha)) / upper


def test_blocks_without_examples_do_not_upset_the_order(rng):
    """Groups of one row make no pairs: their blocks are empty, and what is left to do never names one of them."""
    X = rng.normal(size=(120, 4))
    grade = (X[:, 0] > 0).astype(float)
    group = np.concatenate([np.repeat(np.arange(6), 10), np.arange(100, 130), np.repeat(np.arange(200, 203), 10)])
    svm = RankingSVM(C=0.3, tol=1e-6, solver="dual_coordinate", random_state=0)
    left = []

    class Watching:
        def __call__(self, record):
            pass

        def during(self, passes, done, seconds):
            left.append(done)

    source = mm.data.open(X, labels=grade, groups=group, chunk_rows=10)
    svm.fit(source, callbacks=[Watching()])
    assert svm.certificate_.relative_gap <= 1e-6
    whole = RankingSVM(C=0.3, tol=1e-6, random_state=0).fit(X, grade, groups=group).certificate_
    assert max(whole.lower, svm.certificate_.lower) <= min(whole.upper, svm.certificate_.upper) * (1 + 1e-9)
    assert max(left) == 1.0  # nothing is left over at the end of a reading


def test_same_seed_gives_the_same_bits():
    for name in ("hinge", "classes", "ranking"):
        fits = []
        for _ in range(2):
            svm, data = _task(name)
            fits.append(svm.fit(mm.data.open(data.X, chunk_rows=17, **data.columns())))
        np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)


@pytest.mark.parametrize("estimator", [LinearSVC, LinearSVR])
def test_a_chunk_may_weigh_nothing(estimator, rng):
    X, weights = rng.normal(size=(20, 3)), np.repeat([0.0, 1.0], 10)
    y = np.where(X[:, 0] > 0, 1, -1)
    svm = estimator(tol=1e-6, random_state=0).fit(mm.data.open(X, labels=y, weights=weights, chunk_rows=10))
    plain = estimator(tol=1e-6, random_state=0).fit(X[10:], y[10:])
    np.testing.assert_allclose(svm.coef_, plain.coef_, atol=1e-2)
