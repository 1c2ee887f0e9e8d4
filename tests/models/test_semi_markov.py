"""Labelled segmentations against trying every one, and against the cone solver."""

from itertools import combinations, pairwise, product

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from compiled import equals_its_source
from hypothesis import given, settings, strategies as st
from user_models import dense, every_rival

import maxmargin as mm
from maxmargin import Problem, StructuralSVM, solve
from maxmargin.checks import check_model
from maxmargin.constraints import Searched
from maxmargin.data.sequences import Sequences
from maxmargin.kernels import semi_markov as kernels
from maxmargin.models import Chain, SemiMarkov
from maxmargin.regularizers import L2
from maxmargin.solvers import OracleAscent

EXAMPLES = settings(max_examples=60, deadline=None)
LOSSES = ("hamming", "normalized_hamming", "segments")


def segmentations(model, n):
    """Every segmentation of n tokens that is allowed, all tokens covered."""
    limits = np.broadcast_to(model.max_length, model.n_labels).copy()
    if model.outside is not None:
        limits[model.outside] = 1
    for n_cuts in range(n):
        for cuts in combinations(range(1, n), n_cuts):
            spans = list(pairwise((0, *cuts, n)))
            for labels in product(range(model.n_labels), repeat=len(spans)):
                if any(e - s > limits[k] for (s, e), k in zip(spans, labels, strict=True)):
                    continue
                if model.forbidden is None or not any(model.forbidden[a, b] for a, b in pairwise(labels)):
                    yield [(s, e, k) for (s, e), k in zip(spans, labels, strict=True)]


def _score(model, x, y, w):
    """Taken from the definition, block by block."""
    K, d, L = model.n_labels, model.n_features, int(np.max(model.max_length))
    blocks = 3 if model.boundaries else 1
    emission, rest = w[: d * blocks * K].reshape(d, blocks, K), w[d * blocks * K :]
    length = rest[: L * K].reshape(L, K) if model.lengths else np.zeros((L, K))
    transition = rest[L * K * model.lengths :].reshape(K, K) if model.transitions else np.zeros((K, K))
    total = sum(transition[a[2], b[2]] for a, b in pairwise(y))
    for s, e, k in y:
        total += sum(x[t] @ emission[:, 0, k] for t in range(s, e)) + length[e - s - 1, k]
        if model.boundaries:
            total += x[s] @ emission[:, 1, k] + x[e - 1] @ emission[:, 2, k]
    return total


def _loss(model, y, z):
    if model.cost == "segments":
        return float(len({a for a in set(y) ^ set(z) if a[2] != model.outside}))

    def tags(y):
        return [(k, t == s) for s, e, k in y for t in range(s, e)]

    wrong = sum(a != b for a, b in zip(tags(y), tags(z), strict=True))
    return wrong / y[-1][1] if model.cost == "normalized_hamming" else float(wrong)


def _shown(model, y):
    """A segmentation as the model shows it."""
    return [a for a in y if a[2] != model.outside]


def _listed(answer):
    return [tuple(row) for row in answer.tolist()]


def _filled(model, answer, n):
    """The answer with what it leaves out."""
    covered = {t for s, e, _ in answer for t in range(s, e)}
    return sorted([*answer, *((t, t + 1, model.outside) for t in range(n) if t not in covered)])


def _numbers(rng, size, whole):
    return rng.integers(-1, 2, size=size).astype(float) if whole else rng.normal(size=size)


@st.composite
def cases(draw):
    """A small model, two sequences, true segmentations and weights; often with ties."""
    K, d = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    parts = {part: draw(st.booleans()) for part in ("boundaries", "lengths", "transitions")}
    limit = rng.integers(1, 4, size=K) if draw(st.booleans()) else draw(st.integers(1, 5))
    outside = draw(st.sampled_from((None, 0, K - 1)))
    loss = draw(st.sampled_from(LOSSES if outside is None else ("hamming", "segments")))
    forbidden = rng.random((K, K)) < 0.4 if draw(st.booleans()) else None
    if forbidden is not None:
        np.fill_diagonal(forbidden, False)  # staying is allowed, so there is always an answer
    model = SemiMarkov(K, d, max_length=limit, outside=outside, loss=loss, forbidden=forbidden, **parts)
    whole = draw(st.booleans())  # small whole numbers: many segmentations have equal scores
    X = [_numbers(rng, (n, d), whole) * (rng.random((n, d)) < 0.7) for n in draw(st.sampled_from(((1, 3), (2, 4))))]
    Y = []
    for x in X:
        allowed = list(segmentations(model, len(x)))
        Y.append(_shown(model, allowed[int(rng.integers(len(allowed)))]))
    return model, X, Y, _numbers(rng, model.n_weights, whole)


def _given(X, sparse):
    return [sp.csr_matrix(x) for x in X] if sparse else X


@EXAMPLES
@given(case=cases())
def test_features_add_up_to_the_score_and_losses_are_their_definition(case):
    model, X, Y, w = case
    for x, y in zip(X, Y, strict=True):
        assert model.loss(y, y) == 0.0
        truth = _filled(model, y, len(x))
        for z in segmentations(model, len(x)):
            found = dense(model.features(x, _shown(model, z))) @ w
            assert found == pytest.approx(_score(model, x, z, w), abs=1e-9)
            assert model.loss(y, _shown(model, z)) == pytest.approx(_loss(model, truth, z))
            assert model.tokens(x, _shown(model, z)).tolist() == [k for s, e, k in z for _ in range(s, e)]


@EXAMPLES
@given(case=cases(), sparse=st.booleans())
def test_prediction_is_the_best_of_all_segmentations(case, sparse):
    model, X, _, w = case
    found, scores = model.scored(_given(X, sparse), w)
    for x, answer, score in zip(X, found, scores, strict=True):
        best = max(_score(model, x, z, w) for z in segmentations(model, len(x)))
        segments = _filled(model, _listed(answer), len(x))
        assert score == pytest.approx(best, abs=1e-9)
        assert _score(model, x, segments, w) == pytest.approx(best, abs=1e-9)
        assert segments in segmentations(model, len(x))
        assert np.array_equal(model.predict(x, w), answer)


@EXAMPLES
@given(case=cases(), sparse=st.booleans())
def test_most_violated_is_the_worst_of_all_segmentations(case, sparse):
    model, X, Y, w = case
    rivals = model.oracle(_given(X, sparse), Y).rivals(np.arange(2), w)
    for i, (x, shown) in enumerate(zip(X, Y, strict=True)):
        y = _filled(model, shown, len(x))
        truth = _score(model, x, y, w)
        worst = max(_loss(model, y, z) + _score(model, x, z, w) - truth for z in segmentations(model, len(x)))
        answer = _filled(model, _listed(rivals.labels[i]), len(x))
        assert answer in segmentations(model, len(x))
        assert rivals.losses[i] == pytest.approx(_loss(model, y, answer))
        assert _loss(model, y, answer) + _score(model, x, answer, w) - truth == pytest.approx(worst, abs=1e-9)


@EXAMPLES
@given(case=cases(), sparse=st.booleans())
def test_rows_of_rivals_are_feature_differences(case, sparse):
    model, X, Y, w = case
    oracle = model.oracle(_given(X, sparse), Y)
    found = oracle.rivals(np.array([1, 0]), w)
    for rivals in (found, oracle.planes(np.array([1, 0]), [Y[1], found.labels[1]])):
        for p, i in enumerate((1, 0)):
            difference = dense(model.features(X[i], Y[i])) - dense(model.features(X[i], rivals.labels[p]))
            span = slice(rivals.rows.indptr[p], rivals.rows.indptr[p + 1])
            row = np.zeros(model.n_weights)
            row[rivals.rows.indices[span]] = rivals.rows.data[span]
            assert (np.diff(rivals.rows.indices[span]) > 0).all()
            np.testing.assert_allclose(row, difference, rtol=1e-6, atol=1e-6)


def _signals(rng, n=8):
    """Pieces of 1 to 3 samples on one of three levels."""
    X, Y = [], []
    for _ in range(n):
        sizes, labels = rng.integers(1, 4, size=2), rng.integers(3, size=2)
        ends = np.cumsum(sizes)
        Y.append(np.column_stack([ends - sizes, ends, labels]))
        level = np.repeat(labels, sizes)
        X.append(np.column_stack([level, np.ones(level.size)]) + 0.7 * rng.normal(size=(level.size, 2)))
    return X, Y


@pytest.mark.parametrize(
    "options",
    [{}, {"loss": "segments"}, {"loss": "normalized_hamming", "boundaries": False}, {"outside": 0, "loss": "segments"}],
)
def test_agrees_with_cone_solver_over_all_segmentations(options, rng):
    X, Y = _signals(rng, n=5)
    X, Y = [x[:4] for x in X], [np.minimum(y[y[:, 0] < 4], [4, 4, 2]) for y in Y]
    if "outside" in options:
        Y = [[row for row in y.tolist() if row[2] != 0] for y in Y]
    model = SemiMarkov(3, 2, max_length=3, **options)

    def answers(x):
        return (_shown(model, z) for z in segmentations(model, len(x)))

    arrays = every_rival(model, X, Y, answers, 0.5)
    best = reference.quadratic(*arrays).value
    problem = Problem(Searched(model.oracle(X, Y), np.array([0.5])), L2())
    solution = solve(problem, OracleAscent(random_state=0), tol=3e-7, max_passes=3000)
    assert solution.converged
    slack = 1e-7 * (1.0 + best)
    assert solution.certificate.lower <= best + slack and solution.certificate.upper >= best - slack
    assert solution.certificate.upper == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("options", [{}, {"loss": "segments", "lengths": False}, {"outside": 1, "transitions": False}])
def test_the_model_is_what_the_check_of_models_asks_for(options, rng):
    X, Y = _signals(rng)
    if "outside" in options:
        Y = [[(s, e, k) for s, e, k in y.tolist() if k != 1] for y in Y]
    check_model(SemiMarkov(**options), X, Y)


def test_segments_of_one_token_are_a_chain(rng):
    """Without weights for lengths, and with one token each, segments are labels."""
    X, labels = [rng.normal(size=(n, 2)) for n in (1, 3, 4)], [[0], [0, 2, 1], [1, 1, 0, 2]]
    Y = [[(t, t + 1, k) for t, k in enumerate(y)] for y in labels]
    segments = StructuralSVM(SemiMarkov(max_length=1, boundaries=False, lengths=False), tol=1e-6, random_state=0)
    chain = StructuralSVM(Chain(), tol=1e-6, random_state=0).fit(X, labels)
    assert segments.fit(X, Y).certificate_.upper == pytest.approx(chain.certificate_.upper, rel=2e-6)
    np.testing.assert_allclose(segments.coef_, chain.coef_, atol=1e-2)


def test_lengths_are_learned(rng, tmp_path):
    """Where nothing but the length tells what a segment is: marks open segments, long ones are of label 2."""
    X, Y = [], []
    for _ in range(30):
        sizes = rng.integers(1, 5, size=4)
        ends = np.cumsum(sizes)
        opens = np.zeros((ends[-1], 1))
        opens[ends - sizes] = 1.0
        X.append(np.column_stack([opens, 1.0 - opens]))
        Y.append([(e - s, e, 1 + (s > 2)) for s, e in zip(sizes.tolist(), ends.tolist(), strict=True)])
    svm = StructuralSVM(SemiMarkov(), C=10.0, random_state=0).fit(X, Y)
    assert svm.model_.longest == max(e - s for y in Y for s, e, _ in y)
    assert [_listed(z) for z in svm.predict(X)] == Y
    assert svm.score(X, Y) == 0.0
    table = svm.model_.length_table(svm.coef_)
    assert (table[:2, 1] > table[:2, 2]).all() and (table[2:, 1] < table[2:, 2]).all()
    svm.save(tmp_path / "svm.safetensors")
    loaded = mm.load(tmp_path / "svm.safetensors")
    assert [_listed(z) for z in loaded.predict(X)] == Y
    assert loaded.certify(X, Y) == svm.certify(X, Y)
    assert repr(loaded.model_) == repr(svm.model_)


def test_sizes_come_from_the_data_and_add_up():
    X, Y = [np.ones((3, 2)), np.ones((4, 2))], [[(0, 3, 1)], [(0, 2, 2), (2, 4, 0)]]
    parts = [SemiMarkov().sized(X[i : i + 1], Y[i : i + 1]) for i in (0, 1)]
    both, one = parts[1].joined(parts[:1]), SemiMarkov().sized(X, Y)
    for model in (both, one):
        assert (model.n_labels, model.n_features, model.max_length) == (3, 2, 3)
    assert SemiMarkov(outside=4).sized(X, [[], []]).n_labels == 5
    wider = SemiMarkov(3, 5, max_length=3)
    w = np.arange(one.n_weights, dtype=float)
    moved = np.zeros(wider.n_weights)
    moved[one.places_in(wider)] = w
    assert np.array_equal(wider.transition_table(moved), one.transition_table(w))
    assert np.array_equal(wider.length_table(moved), one.length_table(w))
    assert np.array_equal(wider.emissions(moved)[:2], one.emissions(w))
    assert wider.places_in(wider) is None


def test_rounding_of_searches_is_allowed_for():
    """Label 1 is better than label 2 by a half, but its score is a sum in which the one is lost."""
    x, y = [np.ones((1, 3))], [[(0, 1, 0)]]
    model = SemiMarkov(3, 3, max_length=1)
    constraints = Searched(model.oracle(x, y), np.ones(1))
    for order in ([1e16, 1.0, -1e16], [1.0, 1e16, -1e16], [-1e16, 1e16, 1.0]):
        table = np.zeros((3, 3, 3))
        table[:, 0, 1], table[0, 0, 2] = order, 0.5
        found = constraints.evaluate(np.concatenate([table.ravel(), np.zeros(model.n_weights - 27)]))
        assert found.total + found.rounding >= 2.0


@pytest.mark.parametrize("loss", LOSSES)
def test_kernels_equal_their_source(loss, rng):
    model = SemiMarkov(2, 2, max_length=[2, 3], loss=loss)
    X = Sequences.of([rng.normal(size=(n, 2)) for n in (1, 4)])
    Y = model._segmentation([[(0, 1, 1)], [(0, 3, 1), (3, 4, 0)]], X.offsets)
    Z = model._segmentation([[(0, 2, 0), (2, 4, 1)], [(0, 1, 0)]], np.array([0, 4, 5]))
    w, ids, first = rng.normal(size=model.n_weights), np.array([1, 0]), np.array([0, 4, 5])
    costs = model._costs(np.diff(X.offsets))
    found = np.zeros(5, np.int32), np.zeros(5, np.int32)
    nobody = np.empty(0, np.int32)
    common = model._arguments(X, w)
    equals_its_source(kernels.search, *common, ids, *costs, *Y, first, *found)
    equals_its_source(kernels.search, *common, ids, 1, np.empty(0), -1, nobody, nobody, first, *found)
    equals_its_source(kernels.losses, X.offsets, *Y, *costs, ids, *Z, first)
    equals_its_source(kernels.segments, first, *Z, 0, np.zeros(3, np.int64))
    tokens = (X.indptr, X.indices, X.values)
    for kind in (np.float32, np.float64):
        ends = np.zeros(3, np.int64)
        answers = (ids, *Z, first, ends, np.empty(0, kind))
        equals_its_source(kernels.differences, *tokens, X.offsets, *Y, 2, model.layout, *answers)


def test_no_segmentation_is_left_where_all_need_a_forbidden_pair():
    model = SemiMarkov(2, 1, max_length=2, forbidden=np.ones((2, 2)))
    w = np.zeros(model.n_weights)
    assert _listed(model.predict(np.ones((2, 1)), w))[0][:2] == (0, 2)
    with pytest.raises(ValueError, match=r"Sequence 0 has 3 tokens.*forbidden pair"):
        model.predict(np.ones((3, 1)), w)
    w[:] = np.nan
    with pytest.raises(ValueError, match="weights are not all finite"):
        model.predict(np.ones((2, 1)), w)
