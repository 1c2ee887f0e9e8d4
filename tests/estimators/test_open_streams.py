"""Structured problems on data that comes in chunks: from sources of any kind, under a limit of memory, as a stream."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from generators import chains, many_classes
from thinned import rotating
from user_models import CountingTags, Tags, tagged

from maxmargin import MultilabelSVM, Problem, SequenceSVM, StructuralSVM, solve
from maxmargin.constraints import Cache, Searched
from maxmargin.constraints.oracle import oracle_for
from maxmargin.constraints.sourced import Sizes, SourcedOracle, survey
from maxmargin.data.errors import DataError
from maxmargin.models import Chain, Graph, Multiclass, Multilabel
from maxmargin.protocols import Chunk, OracleError
from maxmargin.regularizers import L2, Bounded, GaussianPrior
from maxmargin.solvers import OracleAscent
from maxmargin.solvers.certificate import lower_bound


class Sequential:
    """Examples in chunks, read from the first to the last. Keeps count of what is read."""

    n_features = None

    def __init__(self, X, Y, size, weight=None):
        self.X, self.Y, self.size, self.weight = X, Y, size, weight
        self.n = X.shape[0] if hasattr(X, "shape") else len(X)
        self.passes = 0

    def __len__(self):
        return self.n

    @property
    def offsets_(self):
        return np.append(np.arange(0, self.n, self.size), self.n)

    def _chunk(self, i):
        a, b = self.offsets_[i : i + 2]
        weight = None if self.weight is None else self.weight[a:b]
        return Chunk(np.arange(a, b), self.X[a:b], self.Y[a:b], weight=weight)

    def chunks(self, order=None):
        assert order is None
        self.passes += 1
        for i in range(self.offsets_.size - 1):
            yield self._chunk(i)


class AnyOrder(Sequential):
    """The same, in any order."""

    @property
    def offsets(self):
        return self.offsets_

    def chunk(self, i):
        return self._chunk(i)

    def labels(self, i):
        return replace(self._chunk(i), x=None)

    @property
    def fingerprint(self):
        return f"{self.n} examples in chunks of {self.size}"

    def nbytes(self, i):
        return 8 * len(self._chunk(i))

    def release(self, i):
        pass

    def chunks(self, order=None):
        self.passes += 1
        for i in range(self.offsets_.size - 1) if order is None else order:
            yield self._chunk(i)


SOURCES = {"sequential": Sequential, "any order": AnyOrder}


def _chain():
    X, Y = chains(np.random.default_rng(1), n=70, longest=6, noise=1.2)
    return Chain(bias=True), X, Y


def _classes():
    X, y = many_classes(np.random.default_rng(2), n=70, d=4, k=5)
    return Multiclass(), sp.csr_matrix(X), y


def _graph():
    rng = np.random.default_rng(3)
    X, Y = chains(rng, n=70, longest=5, noise=1.2)
    trees = [(x, np.array([[int(rng.integers(t)), t] for t in range(1, len(x))]).reshape(-1, 2)) for x in X]
    return Graph(), trees, Y


def _multilabel():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(70, 4))
    Y = (X @ rng.normal(size=(4, 5)) + 1.5 * rng.normal(size=(70, 5)) > 0).astype(int)
    return Multilabel(edges="tree"), X, Y


def _tags():
    X, Y = tagged(np.random.default_rng(5), n=70, noise=1.5)
    return Tags(), X, Y


CASES = {"chain": _chain, "classes": _classes, "graph": _graph, "multilabel": _multilabel, "tags": _tags}


def _oracle(model, X, Y, size, kind="any order"):
    source = SOURCES[kind](X, Y, size)
    sizes = Sizes(model)
    layout = survey(source, sizes.add)
    return SourcedOracle(sizes.result(), source, layout)


def _agree(a, b):
    """Both certificates are true, so they overlap."""
    assert a.lower <= b.upper + 1e-9 * abs(b.upper)
    assert b.lower <= a.upper + 1e-9 * abs(a.upper)


@pytest.mark.parametrize(("name", "size", "kind"), rotating(CASES, [1, 7, 64, 70], SOURCES, times=3))
def test_fit_from_a_source_ends_where_a_fit_in_memory_does(name, size, kind):
    model, X, Y = CASES[name]()
    settings = {"C": 0.3, "tol": 1e-4, "random_state": 0}
    whole = StructuralSVM(model, **settings).fit(X, Y)
    source = SOURCES[kind](X, Y, size)
    streamed = StructuralSVM(model, **settings).fit(source)
    assert streamed.model_.n_weights == whole.model_.n_weights
    for svm in (whole, streamed):
        assert svm.certificate_.exact
        assert svm.certificate_.relative_gap <= 1e-4
    _agree(whole.certificate_, streamed.certificate_)
    again = streamed.certify(X, Y)
    assert again.lower == pytest.approx(streamed.certificate_.lower, rel=1e-6)
    assert again.upper == pytest.approx(streamed.certificate_.upper, rel=1e-6)
    from_source = streamed.certify(source)
    assert from_source.lower == pytest.approx(again.lower, rel=1e-9)
    assert from_source.upper == pytest.approx(again.upper, rel=1e-9)


def test_a_source_is_read_once_per_epoch_and_little_besides():
    model, X, Y = _chain()
    source = Sequential(X, Y, 9)
    svm = StructuralSVM(model, C=0.3, tol=1e-4, random_state=0).fit(source)
    # The survey, the epochs, the lower bound from nothing.
    assert source.passes <= svm.n_passes_ + 4


@pytest.mark.parametrize("kind", SOURCES)
def test_weights_of_a_source_are_sample_weights(kind, rng):
    model, X, Y = _chain()
    weight = rng.integers(0, 4, 70).astype(float)
    settings = {"C": 0.3, "tol": 1e-5, "random_state": 0}
    whole = StructuralSVM(model, **settings).fit(X, Y, weight)
    source = SOURCES[kind](X, Y, 9, weight)
    streamed = StructuralSVM(model, **settings).fit(source)
    _agree(whole.certificate_, streamed.certificate_)
    assert whole.certificate_.upper != pytest.approx(
        StructuralSVM(model, **settings).fit(X, Y).certificate_.upper, rel=0.01
    )
    assert streamed.certify(source).upper == pytest.approx(streamed.certificate_.upper, rel=1e-9)


@pytest.mark.parametrize(("name", "solver"), [("chain", "auto"), ("tags", "auto"), ("chain", "cutting_plane")])
def test_two_searchers_work_on_the_chunk_in_view(name, solver):
    model, X, Y = CASES[name]()
    settings = {"C": 0.3, "tol": 1e-3, "random_state": 0}
    whole = StructuralSVM(model, **settings).fit(X, Y)
    streamed = StructuralSVM(model, n_jobs=2, solver=solver, **settings).fit(AnyOrder(X, Y, 20))
    assert streamed.certificate_.relative_gap <= 1e-3
    _agree(whole.certificate_, streamed.certificate_)


# Memory


@pytest.fixture
def spills(monkeypatch):
    """How many examples were spilled, and how many shares came back."""
    counts = {"spilled": 0, "recalled": 0}
    spill, recall = Cache.spill, Cache.recall

    def counting_spill(self, chosen, *arguments, **options):
        counts["spilled"] += np.count_nonzero(chosen)
        return spill(self, chosen, *arguments, **options)

    def counting_recall(self, shares, *arguments):
        counts["recalled"] += len(shares)
        return recall(self, shares, *arguments)

    monkeypatch.setattr(Cache, "spill", counting_spill)
    monkeypatch.setattr(Cache, "recall", counting_recall)
    return counts


REGULARIZERS = {
    "l2": lambda d: L2(),
    "prior": lambda d: GaussianPrior(np.linspace(-1, 1, d), np.linspace(0.5, 2, d)),
    "bounds": lambda d: Bounded(np.where(np.arange(d) % 2, -0.05, -np.inf)),
}


# Of the memory that is used without a limit. What must be known of every example is most of it where answers are small.
SHARE = {"chain": 0.45, "classes": 0.55, "graph": 0.45, "multilabel": 0.45, "tags": 0.65}


@pytest.mark.parametrize(
    ("name", "kind", "regularizer"), rotating(CASES, ["memory", "sequential", "any order"], REGULARIZERS, times=3)
)
def test_spilled_planes_keep_every_bound_true_and_training_still_converges(name, kind, regularizer, spills):
    model, X, Y = CASES[name]()
    oracle = _oracle(model, X, Y, 7, "any order" if kind == "memory" else kind)
    whole = oracle_for(oracle.model, X, Y)
    omega = REGULARIZERS[regularizer](oracle.n_weights)
    at_hand = Problem(Searched(whole, np.array([0.3])), omega)
    free = solve(at_hand, OracleAscent(random_state=0), tol=1e-6)
    memory = int(SHARE[name] * max(record.bytes for record in free.history))
    problem = at_hand if kind == "memory" else Problem(Searched(oracle, np.array([0.3])), omega)
    solver = OracleAscent(random_state=0, memory=memory, chunk=8)
    state = solver.start(problem)
    state.goal = 1e-3
    beats = []

    def beat():
        # Whatever is away, the bound is the one that the answers alone give.
        beats.append(state.lower)
        assert state.lower == pytest.approx(lower_bound(at_hand, state.alpha), rel=1e-5, abs=1e-8)

    state.beat = beat
    for _ in range(8):
        state = solver.step(problem, state)
        assert state.nbytes <= memory
        assert state.lower <= free.certificate.upper * (1 + 1e-9)
        assert state.lower == pytest.approx(lower_bound(at_hand, state.alpha), rel=1e-5, abs=1e-8)
        used = np.bincount(state.alpha.example, state.alpha.alpha, minlength=70)
        assert (used <= 0.3 * (1 + 1e-9)).all()
    assert beats
    assert spills["spilled"]
    assert spills["recalled"]
    bounded = solve(problem, solver, tol=1e-3)
    assert bounded.converged
    _agree(bounded.certificate, free.certificate)


def test_shares_outlive_a_search_that_fails(monkeypatch):
    """Examples whose planes are away come into view, and their planes cannot be formed again."""
    model, X, Y = CASES["chain"]()
    oracle = oracle_for(model.sized(X, Y), X, Y)
    problem = Problem(Searched(oracle, np.array([0.3])), L2())
    free = solve(problem, OracleAscent(random_state=0), tol=1e-6)
    memory = int(SHARE["chain"] * max(record.bytes for record in free.history))
    solver = OracleAscent(random_state=0, memory=memory, chunk=8)
    state = solver.start(problem)
    state.goal = 1e-3
    while not len(state.cache.spilled):
        state = solver.step(problem, state)
    before = lower_bound(problem, state.alpha)

    def fails(*_):
        raise OSError("no such file")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="no such file"):
        patch.setattr(oracle, "planes", fails)
        solver._enter(problem, state, np.arange(len(Y)))
    assert lower_bound(problem, state.alpha) == pytest.approx(before, rel=1e-9)


def test_memory_too_small_for_a_chunk_says_so_and_hands_over_what_was_reached():
    model, X, Y = _chain()
    with pytest.raises(MemoryError, match="in smaller chunks") as error:
        StructuralSVM(model, C=0.3, memory=12_000, random_state=0).fit(AnyOrder(X, Y, 70))
    assert error.value.solution.certificate.lower <= 1e6


# Hot starts and checkpoints


def test_warm_start_from_a_source_is_done_at_once(rng):
    model, X, Y = _chain()
    source = AnyOrder(X, Y, 9)
    svm = StructuralSVM(model, C=0.3, tol=1e-4, warm_start=True, random_state=0).fit(source)
    cold = svm.n_passes_
    assert svm.fit(source).n_passes_ <= max(2, cold // 3)
    assert svm.set_params(C=0.4).fit(source).certificate_.relative_gap <= 1e-4


# Estimators that name things


TEXT = [
    ([{"word": "the"}, {"word": "dog"}, {"word": "barks"}], ["DET", "NOUN", "VERB"]),
    ([["word=dog"], ["word=barks", "last"]], ["NOUN", "VERB"]),
    ([{"word": "a"}, {"word": "cat"}], ["DET", "NOUN"]),
    ([{"word": "cats"}, {"word": "sleep", "length": 5}], ["NOUN", "VERB"]),
]


@pytest.mark.parametrize(("size", "allowed"), [(1, None), (3, "observed"), (12, [("DET", "NOUN"), ("NOUN", "VERB")])])
def test_sequence_svm_finds_names_and_labels_in_the_chunks(size, allowed):
    X, Y = map(list, zip(*TEXT * 3, strict=True))
    settings = {"C": 1.0, "tol": 1e-4, "allowed_transitions": allowed, "random_state": 0}
    whole = SequenceSVM(**settings).fit(X, Y)
    source = Sequential(X, Y, size)
    streamed = SequenceSVM(**settings).fit(source)
    assert streamed.classes_.tolist() == whole.classes_.tolist()
    assert streamed.feature_names_ == whole.feature_names_
    if allowed is None:
        assert streamed.model_.forbidden is None
    else:
        np.testing.assert_array_equal(streamed.model_.forbidden, whole.model_.forbidden)
    _agree(streamed.certificate_, whole.certificate_)
    assert streamed.predict(X).tolist() == whole.predict(X).tolist() == Y
    assert streamed.certify(source).upper == pytest.approx(streamed.certify(X, Y).upper, rel=1e-9)


def test_multilabel_svm_finds_the_tree_of_all_chunks():
    _, X, Y = _multilabel()
    settings = {"C": 0.3, "tol": 1e-4, "random_state": 0}
    whole = MultilabelSVM(**settings).fit(X, Y)
    source = AnyOrder(sp.csr_matrix(X), Y, 9)
    streamed = MultilabelSVM(**settings).fit(source)
    np.testing.assert_array_equal(streamed.edges_, whole.edges_)
    assert streamed.n_features_in_ == 4
    _agree(streamed.certificate_, whole.certificate_)
    assert streamed.certify(source).upper == pytest.approx(streamed.certify(X, Y).upper, rel=1e-9)


# Errors


def test_bad_chunk_is_named_before_training():
    _, X, Y = _chain()
    X[40] = np.ones((X[40].shape[0], 5))
    with pytest.raises(DataError, match=r"examples 36 to 44 of the source.*Sequence 4 has 5 features"):
        StructuralSVM(Chain()).fit(AnyOrder(X, Y, 9))
    _, X, Y = _chain()
    Y[40] = Y[40][:-1]
    with pytest.raises(DataError, match=r"examples 36 to 44 of the source.*Sequence 4 has"):
        SequenceSVM().fit(Sequential(X, [y.tolist() for y in Y], 9))
    _, X, Y = _multilabel()
    Y[40, 2] = 7
    with pytest.raises(DataError, match=r"examples 36 to 44 of the source.*row 4, column 2 is 7"):
        MultilabelSVM().fit(Sequential(X, Y, 9))


def test_chunk_that_goes_bad_later_leaves_what_was_learned():
    model, X, Y = _chain()

    class Rotten(AnyOrder):
        def chunks(self, order=None):
            for chunk in super().chunks(order):
                if self.passes == 5 and 40 in chunk.ids:
                    raise DataError("file.bin, line 7: cannot be read.")
                yield chunk

    svm = StructuralSVM(model, C=0.3, tol=1e-6, random_state=0)
    with pytest.raises(OracleError, match="line 7") as error:
        svm.fit(Rotten(X, Y, 9))
    assert error.value.solution.history
    assert svm.certify(X, Y).upper < np.inf


def test_failing_search_is_named_by_its_place_in_the_source():
    X, Y = tagged(np.random.default_rng(5), n=30)
    model = CountingTags(at=75, event=RuntimeError("boom"))
    with pytest.raises(OracleError, match=r"boom.*of the source") as error:
        StructuralSVM(model, C=0.3, tol=1e-9, random_state=0).fit(Sequential(X, Y, 10))
    assert 10 <= error.value.example < 20
    assert error.value.solution.history


def test_source_that_changes_between_passes_is_refused():
    model, X, Y = _chain()

    class Shrinking(Sequential):
        def chunks(self, order=None):
            if self.passes > 3:
                self.n = 69
            yield from super().chunks()

    with pytest.raises(OracleError, match="has changed since it was first read"):
        StructuralSVM(model, C=0.3, tol=1e-9, random_state=0).fit(Shrinking(X, Y, 9))


def test_model_whose_sizes_differ_between_chunks_says_what_to_do():
    class Bag:
        """One weight for each value that data shows."""

        n_weights = 0

        def sized(self, X, Y):
            bag = Bag()
            bag.n_weights = 1 + max(X)
            return bag

        features = loss = predict = most_violated = None

    with pytest.raises(DataError, match="joined"):
        StructuralSVM(Bag()).fit(Sequential([1, 2, 3], [1, 2, 3], 1))


@pytest.mark.parametrize("estimator", [StructuralSVM(Tags()), SequenceSVM(), MultilabelSVM()])
def test_answers_beside_a_source_and_empty_sources_are_refused(estimator):
    source = Sequential(np.zeros((3, 2)), [[0], [1], [0]], 2)
    with pytest.raises(ValueError, match="must not be given beside"):
        estimator.fit(source, [1, 2, 3])
    with pytest.raises(ValueError, match="sample_weight must not be given beside"):
        estimator.fit(source, sample_weight=np.ones(3))
    with pytest.raises(DataError, match="no examples"):
        estimator.fit(Sequential([], [], 2))


def test_weights_in_some_chunks_only_are_refused():
    class Patchy(Sequential):
        def _chunk(self, i):
            chunk = super()._chunk(i)
            return replace(chunk, weight=None) if i else chunk

    model, X, Y = _chain()
    with pytest.raises(DataError, match="1 of the 8 chunks"):
        StructuralSVM(model).fit(Patchy(X, Y, 9, np.ones(70)))


# Streams


@pytest.mark.parametrize(("size", "memory"), [(1, 40_000), (10, None), (100, None)])
def test_one_pass_over_a_stream_lands_near_the_optimum(size, memory):
    X, Y = chains(np.random.default_rng(6), n=600, longest=8)
    best = StructuralSVM(Chain(3, 2, bias=True), C=0.1, tol=1e-4).fit(X, Y).certificate_
    svm = StructuralSVM(Chain(3, 2, bias=True), C=0.1, memory=memory, random_state=0)
    for start in range(0, 600, size):
        svm.partial_fit(X[start : start + size], Y[start : start + size])
        assert memory is None or svm._stream.state.nbytes <= memory
    assert 0.7 * best.lower <= svm.certificate_.lower <= best.upper * (1 + 1e-9)
    assert svm.certify(X, Y).upper <= 1.05 * best.upper


def test_stream_of_bounded_memory_counts_only_what_it_keeps(spills):
    X, Y = chains(np.random.default_rng(6), n=400, longest=8, noise=1.2)
    free = StructuralSVM(Chain(3, 2, bias=True), C=0.1, random_state=0)
    tight = StructuralSVM(Chain(3, 2, bias=True), C=0.1, memory=20_000, random_state=0)
    for start in range(0, 400, 5):
        part = slice(start, start + 5)
        free.partial_fit(X[part], Y[part])
        tight.partial_fit(X[part], Y[part])
        assert tight._stream.state.nbytes <= 20_000
    assert spills["spilled"]
    assert not spills["recalled"]
    state = tight._stream.state
    assert state.n_seen == 400
    assert state.cache.n_examples < 200
    # What is left of the shares belongs to the examples it says, and proves less than the sums do.
    left = tight.certify(X, Y)
    assert 0 < left.lower <= tight.certificate_.lower <= free.certify(X, Y).upper
    # A lower price leaves what is frozen feasible.
    tight.set_params(C=0.05).partial_fit(X[:5], Y[:5])
    cheap = StructuralSVM(Chain(3, 2, bias=True), C=0.05).fit(X + X[:5], Y + Y[:5])
    assert tight.certificate_.lower <= cheap.certificate_.upper * (1 + 1e-9)


def test_chunk_that_fails_leaves_the_stream_as_it_was():
    X, Y = tagged(np.random.default_rng(8), n=40, noise=0.3)
    model = CountingTags()
    svm = StructuralSVM(model, C=0.5, random_state=0)
    for start in range(0, 30, 5):
        svm.partial_fit(X[start : start + 5], Y[start : start + 5])
    model.at, model.event = model.calls + 7, RuntimeError("boom")
    with pytest.raises(OracleError, match="boom"):
        svm.partial_fit(X[30:35], Y[30:35])
    assert svm._stream.state.n_seen == 30
    svm.partial_fit(X[35:], Y[35:])
    seen = [*range(30), *range(35, 40)]
    X, Y = [X[i] for i in seen], [Y[i] for i in seen]
    again = svm.certify(X, Y)
    assert again.lower == pytest.approx(svm.certificate_.lower, rel=1e-9)
    best = StructuralSVM(Tags(), C=0.5, tol=1e-6).fit(X, Y).certificate_
    assert 0.7 * best.lower <= again.lower <= best.upper * (1 + 1e-9)


def test_shares_of_a_stream_name_examples_by_their_place_in_it():
    X, Y = chains(np.random.default_rng(8), n=60, longest=5, noise=0.2)
    svm = StructuralSVM(Chain(3, 2), C=0.5, random_state=0)
    for x, y in zip(X, Y, strict=True):
        svm.partial_fit([x], [y])
    assert svm._stream.state.cache.n_examples < 60  # easy examples are not counted any more
    again = svm.certify(X, Y)
    assert again.lower == pytest.approx(svm.certificate_.lower, rel=1e-9)


def test_interrupted_pass_over_a_source_begins_anew():
    model, X, Y = _chain()
    oracle = _oracle(model, X, Y, 9)
    w = np.zeros(oracle.n_weights)
    whole = oracle.rivals(np.arange(70), w).losses
    bind, failed = oracle._bind, []

    def fail_once(i, chunk):
        if i == 4 and not failed:
            failed.append(i)
            raise KeyboardInterrupt
        bind(i, chunk)

    oracle._bind = fail_once
    with pytest.raises(KeyboardInterrupt):
        oracle.rivals(np.arange(70), w)
    np.testing.assert_array_equal(oracle.rivals(np.arange(70), w).losses, whole)
