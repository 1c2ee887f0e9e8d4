"""Linear estimators on streams: whatever is kept and however it is cut, the lower bound is true for all seen so far."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from generators import covariance, graded, line, many_classes, partition, two_classes
from hypothesis import given, settings, strategies as st
from thinned import rotating

import maxmargin as mm
from maxmargin import LinearSVC, LinearSVR, Problem, RankingSVM
from maxmargin.constraints.pool import Pool
from maxmargin.data.arrays import as_rows
from maxmargin.losses import Hinge, SmoothedHinge, SquaredHinge
from maxmargin.models import binary
from maxmargin.regularizers import L2, Bounded, GaussianPrior, GroupNorm
from maxmargin.regularizers.linearly_shifted import LinearlyShifted
from maxmargin.solvers import DualCoordinate, InteriorPoint, certify, solve, stream_ascent
from maxmargin.solvers.stream_ascent import StreamAscent

N = 600


def _binary():
    return two_classes(np.random.default_rng(1), n=N, d=6, noise=1.0)


def _sparse():
    """More weights than examples: every row tells something new."""
    rng = np.random.default_rng(2)
    X = sp.random(N, 1500, 0.01, "csr", random_state=rng, data_rvs=rng.standard_normal)
    return X, np.where(X @ rng.normal(size=1500) + 0.5 * rng.normal(size=N) > 0, 1, -1)


def _classes():
    return many_classes(np.random.default_rng(3), n=N, d=5, k=4)


def _numbers():
    return line(np.random.default_rng(4), n=N, noise=0.5, offset=0.0)


TASKS = {
    "hinge": (LinearSVC, {}, _binary),
    "squared hinge": (LinearSVC, {"loss": "squared_hinge", "fit_intercept": False}, _binary),
    "smoothed hinge": (LinearSVC, {"loss": "smoothed_hinge"}, _binary),
    "sparse hinge": (LinearSVC, {}, _sparse),
    "bounds": (LinearSVC, {"regularizer": Bounded(-0.1)}, _binary),
    "both bounds": (LinearSVC, {"regularizer": Bounded(-0.1, upper=0.1)}, _binary),
    "prior": (LinearSVC, {"regularizer": GaussianPrior(np.full(6, 0.3), np.linspace(0.5, 2, 6))}, _binary),
    "groups": (LinearSVC, {"regularizer": GroupNorm([[0, 1, 2], [3, 4, 5]], 0.5, l2=1.0)}, _binary),
    "classes": (LinearSVC, {"class_weight": {0: 2.0}}, _classes),
    "one-vs-rest": (LinearSVC, {"multi_class": "ovr"}, _classes),
    "regression": (LinearSVR, {"epsilon": 0.2}, _numbers),
    "squared regression": (LinearSVR, {"loss": "squared_epsilon_insensitive"}, _numbers),
}


def _task(name, **others):
    kind, own, data = TASKS[name]
    return kind(**{"C": 0.3, "random_state": 0, **own, **others}), *data()


def _pieces(size, n=N):
    return [slice(a, min(a + size, n)) for a in range(0, n, size)]


def _feed(svm, X, y, part):
    """One more chunk; classifiers hear of the classes each time, as scikit-learn has it."""
    return svm.partial_fit(X[part], y[part], **({"classes": np.unique(y)} if isinstance(svm, LinearSVC) else {}))


def _optimum(name, X, y, **others):
    svm, *_ = _task(name, tol=1e-6, **others)
    return svm.fit(X, y).certificate_


@pytest.mark.parametrize(("name", "size", "memory"), rotating(TASKS, [1, 7, 1000], [None, 9000], times=2))
def test_lower_bound_is_true_at_all_times_and_never_falls(name, size, memory):
    svm, X, y = _task(name, memory=memory)
    pieces = _pieces(size)
    looks = {len(pieces) // 4, len(pieces) // 2, len(pieces) - 1}
    last = -np.inf
    for i, part in enumerate(pieces):
        _feed(svm, X, y, part)
        lower = svm.certificate_.lower
        assert lower >= last - 1e-9 * abs(last)
        last = lower
        assert np.isinf(svm.certificate_.upper)
        if i in looks:
            sofar = slice(0, part.stop)
            again = svm.certify(X[sofar], y[sofar])
            assert again.lower == pytest.approx(lower, rel=1e-8)
            if np.unique(y[sofar]).size == np.unique(y).size:
                best = _optimum(name, X[sofar], y[sofar])
                assert lower <= best.upper * (1 + 1e-9)
                assert again.upper >= best.lower * (1 - 1e-9)
    frozen = sum(part.size for state in svm._stream.states for part, _ in state.frozen)
    assert (frozen > 0) == (memory is not None)
    for state in svm._stream.states:
        assert state.n_seen == N
        assert state.pool.nbytes <= (memory or 2**28)


@pytest.mark.parametrize(("name", "size"), rotating(TASKS, [7, 100]))
def test_one_pass_comes_near_the_optimum(name, size):
    svm, X, y = _task(name)
    for part in _pieces(size):
        _feed(svm, X, y, part)
    best = _optimum(name, X, y)
    reached = svm.certify(X, y)
    assert reached.upper <= 1.05 * best.upper
    assert reached.lower >= 0.9 * best.lower  # the latest examples have not been worked on together
    source = mm.data.open(X, labels=y, chunk_rows=90)
    assert svm.certify(source).upper == pytest.approx(reached.upper, rel=1e-9)
    assert svm.certify(source).lower == pytest.approx(reached.lower, rel=1e-9)


@pytest.mark.parametrize("memory", [None, 9000])
def test_weights_count(memory):
    X, y = _binary()
    weights = np.random.default_rng(0).integers(0, 4, N).astype(float)
    svm = LinearSVC(C=0.3, memory=memory, random_state=0)
    for part in _pieces(40):
        svm.partial_fit(X[part], y[part], sample_weight=weights[part])
    best = LinearSVC(C=0.3, tol=1e-6, random_state=0).fit(X, y, weights).certificate_
    assert 0.8 * best.upper <= svm.certificate_.lower <= best.upper
    assert svm.certify(X, y, weights).lower == pytest.approx(svm.certificate_.lower, rel=1e-8)


def _graded():
    return *graded(np.random.default_rng(5), n=N), np.repeat(np.arange(N // 6), 6)


@pytest.mark.parametrize(
    ("loss", "memory", "sparse"), rotating(["hinge", "squared_hinge"], [None, 8000], [False, True], times=2)
)
def test_ranking_by_groups(loss, memory, sparse):
    X, y, groups = _graded()
    X = sp.csr_matrix(X) if sparse else X
    ranker = RankingSVM(C=0.1, loss=loss, memory=memory, random_state=0)
    last = 0.0
    for part in _pieces(30):
        ranker.partial_fit(X[part], y[part], groups[part])
        assert ranker.certificate_.lower >= last * (1 - 1e-9)
        last = ranker.certificate_.lower
    assert bool(ranker._stream.states[0].frozen) == (memory is not None)
    best = RankingSVM(C=0.1, loss=loss, tol=1e-6, random_state=0).fit(X, y, groups).certificate_
    reached = ranker.certify(X, y, groups)
    assert reached.lower == pytest.approx(last, rel=1e-8)
    assert last <= best.upper * (1 + 1e-9)
    assert reached.upper <= (1.05 if memory is None else 2.0) * best.upper
    with pytest.raises(AttributeError, match="not kept of streams"):
        _ = ranker.dual_coef_


# What may not happen in a stream


def test_classes_are_those_of_the_first_chunk_or_those_given():
    X, y = _classes()
    svm = LinearSVC(random_state=0).partial_fit(X[:20], y[:20])
    assert svm.classes_.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match=r"y\[1\] is 7, a class"):
        svm.partial_fit(X[:2], [0, 7])
    svm.partial_fit(X[:2], [0, 1])  # and the stream goes on
    assert svm._stream.states[0].n_seen == 22
    with pytest.raises(ValueError, match="one class only"):
        LinearSVC().partial_fit(X[:1], y[:1])
    one_by_one = LinearSVC().partial_fit(X[:1], y[:1], classes=[0, 1, 2, 3])
    assert one_by_one.coef_.shape == (4, 5)
    words = LinearSVC().partial_fit(X[:20], np.array(list("abcd"))[y[:20]])
    with pytest.raises(ValueError, match="is 'e', a class"):
        words.partial_fit(X[:1], ["e"])


def test_settings_and_widths_must_stay_as_they_were():
    X, y = _binary()
    svm = LinearSVC(C=0.3, random_state=0).partial_fit(X[:50], y[:50])
    with pytest.raises(ValueError, match=r"C from 0\.3 to 0\.4"):
        svm.set_params(C=0.4).partial_fit(X[:50], y[:50])
    svm.set_params(C=0.3)
    with pytest.raises(ValueError, match="5 features"):
        svm.partial_fit(X[:50, :5], y[:50])
    svm.set_params(tol=1e-5, verbose=0).partial_fit(X[50:60], y[50:60])  # means, no part of the problem
    assert svm._stream.states[0].n_seen == 60


def test_streams_begin_with_new_estimators(tmp_path):
    X, y = _binary()
    fitted = LinearSVC(random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="trained by fit, or loaded"):
        fitted.partial_fit(X, y)
    assert np.array_equal(fitted.coef_, LinearSVC(random_state=0).partial_fit(X, y).coef_)
    streamed = LinearSVC(random_state=0).partial_fit(X, y)
    streamed.save(tmp_path / "svm")
    with pytest.warns(UserWarning, match="trained by fit, or loaded"):
        mm.load(tmp_path / "svm").partial_fit(X, y)
    streamed.fit(X, y)
    assert streamed.certificate_.relative_gap <= 1e-3
    with pytest.warns(UserWarning, match="trained by fit"):
        streamed.partial_fit(X, y)


def test_what_needs_all_data_or_compiled_steps_is_refused():
    X, y = _classes()
    with pytest.raises(ValueError, match="balanced"):
        LinearSVC(class_weight="balanced").partial_fit(X, y)
    with pytest.raises(ValueError, match="do not go together"):
        LinearSVC(regularizer=GroupNorm([[0, 1, 2, 3, 4]], l2=1.0)).partial_fit(X, y)


def _started(n_weights):
    """A stream whose pool has room for a few rows only."""
    solver = StreamAscent(memory=2500, random_state=0)
    rows = as_rows(np.empty((0, n_weights)))
    return solver, solver.start(Problem(binary(rows, np.empty(0, np.int8), np.ones(1)), L2()))


def _absorb(solver, state, block):
    solver.absorb([Problem(block, L2())], [state])


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), SmoothedHinge()])
def test_row_that_is_larger_than_the_pool_is_frozen_at_once(loss):
    rng = np.random.default_rng(0)
    X = sp.random(60, 400, 0.01, "lil", random_state=rng, data_rvs=rng.standard_normal)
    X[30] = rng.normal(size=400)
    X, y = X.tocsr(), np.where(np.arange(60) % 2, 1, -1).astype(np.int8)
    C = np.array([0.5])
    solver, state = _started(400)
    for part in _pieces(10, 60):
        _absorb(solver, state, binary(as_rows(X[part]), y[part], C, loss=loss))
    problem = Problem(binary(as_rows(X), y, C, loss=loss), L2())
    assert state.n_seen == 60
    assert 30 not in state.pool.place and state.last_frozen >= 30
    reached = certify(problem, state.weights(), state.shares())
    assert reached.lower == pytest.approx(state.lower, rel=1e-9)
    best = solve(problem, DualCoordinate(random_state=0), tol=1e-8).certificate
    assert state.lower <= best.upper * (1 + 1e-9)
    assert reached.upper >= best.lower * (1 - 1e-9)


def test_weights_are_those_of_a_frozen_row_where_the_pool_is_empty():
    X, y = sp.eye(10, 400, format="lil"), np.where(np.arange(10) % 2, 1, -1).astype(np.int8)
    X[9], C = 0.1, np.array([0.5])
    X = X.tocsr()
    solver, state = _started(400)
    _absorb(solver, state, binary(as_rows(X), y, C))
    before = state.weights()
    assert not len(state.pool)
    _absorb(solver, state, binary(as_rows(X[9:]), -y[9:], C))
    assert not len(state.pool) and not np.array_equal(before, state.weights())
    assert np.array_equal(state.weights(), state.map.weights())


# A regularizer around frozen examples


def test_newton_steps_on_the_pool_know_of_frozen_rows(monkeypatch):
    X, y = _binary()
    y, C = y.astype(np.int8), np.array([0.3])
    monkeypatch.setattr(stream_ascent, "interior_point_pays", lambda problem, tol: True)
    solver, state = _started(6)
    for part in _pieces(100):
        _absorb(solver, state, binary(as_rows(X[part]), y[part], C))
        seen = Problem(binary(as_rows(X[: part.stop]), y[: part.stop], C), L2())
        assert certify(seen, state.weights()).upper <= 1.1 * certify(seen, state.map.weights()).upper


def _bases(rng, d):
    return [
        L2(),
        GaussianPrior(rng.normal(size=d), rng.uniform(0.3, 3.0, d)),
        GaussianPrior(rng.normal(size=d), covariance(rng, d)),
        Bounded(-0.2, np.arange(d - 1)),
        GroupNorm(partition(rng, d), 0.7, l2=0.5),
    ]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_linearly_shifted_regularizer_is_what_it_is_defined_to_be(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 7))
    tilt, v = rng.normal(size=(2, d)) * rng.uniform(0.1, 4.0)
    for base in _bases(rng, d):
        shifted = LinearlyShifted(base, tilt)
        w = base.weights(rng.normal(size=d))  # one that is allowed
        other = base.weights(rng.normal(size=d))
        # Ω(w) − v₀·w up to a constant, and the least value is 0.
        assert shifted.value(w) - shifted.value(other) == pytest.approx(
            base.value(w) - base.value(other) - tilt @ (w - other), abs=1e-9
        )
        assert shifted.value(shifted.weights(np.zeros(d))) == pytest.approx(0.0, abs=1e-9)
        assert shifted.conjugate(np.zeros(d)) == pytest.approx(0.0, abs=1e-9)
        # Fenchel–Young: no w does better than the one that is said to attain the conjugate.
        best = shifted.weights(v)
        assert best @ v - shifted.value(best) == pytest.approx(shifted.conjugate(v), abs=1e-9)
        assert w @ v - shifted.value(w) <= shifted.conjugate(v) + 1e-9
    for base in _bases(rng, d)[:3]:  # those that Newton steps are taken under, from their arrays
        shifted = LinearlyShifted(base, tilt)
        np.testing.assert_allclose(shifted.shape(d).bind(v.copy()).weights(), shifted.weights(v), atol=1e-9)


def test_chunk_that_fails_leaves_no_trace(monkeypatch):
    X, y = _binary()
    svm = LinearSVC(C=1.0, random_state=0).partial_fit(X[:50], y[:50], classes=np.unique(y))
    before = svm.certificate_.lower

    def fail(self, state, *rest):
        raise RuntimeError("no more")

    with monkeypatch.context() as patch:
        patch.setattr(StreamAscent, "_take_in", fail)
        with pytest.raises(RuntimeError):
            svm.partial_fit(X[50:100], y[50:100])
    state = svm._stream.states[0]
    assert state.n_seen == 50
    assert state.lower == pytest.approx(before, rel=1e-9)
    svm.partial_fit(X[50:100], y[50:100])
    both = svm.certify(X[:100], y[:100])
    assert svm.certificate_.lower == pytest.approx(both.lower, rel=1e-9)
    assert both.lower <= both.upper


@pytest.mark.parametrize("newton", [False, True])
@pytest.mark.parametrize("call", [1, 2, 4])
@pytest.mark.parametrize(("owner", "work"), [(StreamAscent, "_optimize"), (StreamAscent, "_make_room"), (Pool, "add")])
def test_chunk_that_fails_in_its_midst_is_forgotten_or_counted_whole(owner, work, call, newton, monkeypatch):
    """Rows of the chunk are in the pool by then, others wait for a place there, and some may be frozen."""
    X, y = _binary()
    y, C = y.astype(np.int8), np.array([0.3])
    monkeypatch.setattr(stream_ascent, "interior_point_pays", lambda problem, tol: newton)
    solver, state = _started(6)
    _absorb(solver, state, binary(as_rows(X[:40]), y[:40], C))
    done, calls = getattr(owner, work), []

    def fails(*args):
        result = done(*args)
        calls.append(result)
        if len(calls) == call:
            raise MemoryError
        return result

    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(owner, work, fails)
        _absorb(solver, state, binary(as_rows(X[40:140]), y[40:140], C))
    frozen = any((place >= 40).any() for place, _ in state.frozen)
    assert state.n_seen == (140 if frozen else 40)
    assert (state.pool.place < state.n_seen).all()
    for n in (state.n_seen, N):
        if n == N:
            _absorb(solver, state, binary(as_rows(X[state.n_seen :]), y[state.n_seen :], C))
        seen, shares = binary(as_rows(X[:n]), y[:n], C), state.shares()
        assert state.map.v == pytest.approx(seen.combine(shares), rel=1e-9, abs=1e-12)
        assert state.lower == pytest.approx(certify(Problem(seen, L2()), state.weights(), shares).lower, rel=1e-9)
        assert state.proved() == pytest.approx(state.lower, rel=1e-9)


@pytest.mark.parametrize("newton", [False, True])
def test_chunk_that_is_interrupted_is_forgotten_or_counted_whole(newton, monkeypatch):
    X, y = _binary()
    y, C = y.astype(np.int8), np.array([0.3])
    monkeypatch.setattr(stream_ascent, "interior_point_pays", lambda problem, tol: newton)
    solver, state = _started(6)
    _absorb(solver, state, binary(as_rows(X[:40]), y[:40], C))
    inner, calls = InteriorPoint if newton else DualCoordinate, []
    step = inner.step

    def interrupted(*args):
        calls.append(step(*args))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return calls[-1]

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(inner, "step", interrupted)
        _absorb(solver, state, binary(as_rows(X[40:140]), y[40:140], C))
    assert state.n_seen == (140 if state.last_frozen >= 40 else 40)
    for n in (state.n_seen, N):
        if n == N:
            _absorb(solver, state, binary(as_rows(X[state.n_seen :]), y[state.n_seen :], C))
        seen, shares = binary(as_rows(X[:n]), y[:n], C), state.shares()
        assert state.map.v == pytest.approx(seen.combine(shares), rel=1e-9, abs=1e-12)
        assert state.proved() == pytest.approx(state.lower, rel=1e-9)


def test_chunk_counts_if_only_its_first_row_is_frozen(monkeypatch):
    X, y = sp.eye(20, 400, format="lil"), np.where(np.arange(20) % 2, 1, -1).astype(np.int8)
    X[10] = 0.1  # larger than the pool
    X, C = X.tocsr(), np.array([0.5])
    solver, state = _started(400)
    _absorb(solver, state, binary(as_rows(X[:10]), y[:10], C))
    add = Pool.add

    def fails(self, block, examples, *rest):
        if examples[0] == 1:
            raise MemoryError
        return add(self, block, examples, *rest)

    monkeypatch.setattr(Pool, "add", fails)
    with pytest.raises(MemoryError):
        _absorb(solver, state, binary(as_rows(X[10:]), y[10:], C))
    assert state.last_frozen == 10 and state.n_seen == 20


@pytest.mark.parametrize("memory", [None, "8kB"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_chunk_that_fails_in_one_class_is_learned_by_none(error, memory, monkeypatch):
    """Bounds are sums over classes, of the same examples: some would count a chunk that is given again twice."""
    X, y = _classes()
    svm = LinearSVC(multi_class="ovr", memory=memory, random_state=0).partial_fit(X[:300], y[:300])
    step, calls = StreamAscent.step, []

    def second_fails(self, problem, state):
        calls.append(state)
        if len(calls) == 2:
            raise error
        return step(self, problem, state)

    monkeypatch.setattr(StreamAscent, "step", second_fails)
    with pytest.raises(error):
        svm.partial_fit(X[300:], y[300:])
    assert len({state.n_seen for state in svm._stream.states}) == 1
    counted = svm._stream.states[0].n_seen  # nothing of it, or all where some is frozen
    assert svm.certificate_.lower <= LinearSVC(multi_class="ovr").fit(X[:counted], y[:counted]).certificate_.upper
    assert counted in (300, N)
    if counted == 300:
        svm.partial_fit(X[300:], y[300:])
    optimum = LinearSVC(multi_class="ovr").fit(X, y).certificate_.upper
    assert svm.certificate_.lower <= svm.certify(X, y).upper and svm.certificate_.lower <= optimum


def test_chunk_that_is_refused_after_fit_changes_nothing():
    X, y = _binary()
    svm = LinearSVC(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="one class only"), pytest.warns(UserWarning, match="begins anew"):
        svm.partial_fit(np.c_[X, X], np.ones(N))
    assert svm.predict(X[:5]).size == 5 and svm.n_features_in_ == X.shape[1]


def test_pickled_stream_is_small_and_goes_on():
    X, y = _binary()
    svm = LinearSVC(C=1.0, random_state=0).partial_fit(X[:50], y[:50], classes=np.unique(y))
    text = pickle.dumps(svm)
    assert len(text) < 100_000
    again = pickle.loads(text)
    for one in (svm, again):
        one.partial_fit(X[50:], y[50:])
    assert np.array_equal(svm.coef_, again.coef_)


def test_memory_for_less_than_one_row_is_refused():
    X, y = _binary()
    with pytest.raises(ValueError, match="memory is too little"):
        LinearSVC(memory=10).partial_fit(X, y)


def test_dense_and_sparse_chunks_may_follow_each_other():
    X, y = _binary()
    svm = LinearSVC(C=1.0, random_state=0)
    for start in range(0, 100, 20):
        part = X[start : start + 20]
        svm.partial_fit(sp.csr_matrix(part) if start % 40 else part, y[start : start + 20], classes=np.unique(y))
    seen = svm.certify(X[:100], y[:100])
    assert svm.certificate_.lower == pytest.approx(seen.lower, rel=1e-9)
    assert seen.relative_gap < 0.3
