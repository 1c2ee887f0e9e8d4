"""Searches over chains against trying every labelling."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from compiled import equals_its_source
from hypothesis import given, settings, strategies as st
from user_models import dense, is_allowed, labellings

from maxmargin.data.sequences import Sequences
from maxmargin.kernels import chains as chain_kernels, second_order, viterbi
from maxmargin.models import Chain

EXAMPLES = settings(max_examples=60, deadline=None)


def _score(model, x, y, w):
    """Taken from the definition, block by block."""
    K, d = model.n_labels, model.n_features
    emission, rest = w[: K * d].reshape(d, K), w[K * d :]
    blocks = []
    sizes = ((model.bias, K), (model.transitions, K * K), (model.start, K), (model.end, K), (model.order == 2, K**3))
    for present, size in sizes:
        blocks.append(rest[: size * present] if present else np.zeros(size))
        rest = rest[size * present :]
    assert rest.size == 0
    bias, transition, start, end, triple = blocks
    total = sum(x[t] @ emission[:, y[t]] + bias[y[t]] for t in range(len(y)))
    total += sum(transition.reshape(K, K)[a, b] for a, b in pairwise(y))
    total += sum(triple.reshape(K, K, K)[abc] for abc in zip(y, y[1:], y[2:], strict=False))
    return total + start[y[0]] + end[y[-1]]


def _loss(model, y, z):
    wrong = float(np.sum(np.asarray(y) != np.asarray(z)))
    if isinstance(model.cost, str):
        return wrong / len(y) if model.cost == "normalized_hamming" else wrong
    return float(sum(model.cost[a][b] for a, b in zip(y, z, strict=True)))


@st.composite
def cases(draw, loss=("hamming", "normalized_hamming", "table"), rescaling="margin"):
    """A small chain model, two sequences, true labels and weights; often with ties."""
    K, d = draw(st.integers(2, 3)), draw(st.integers(1, 2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    cost = draw(st.sampled_from(loss))
    if cost == "table":
        cost = rng.integers(1, 4, size=(K, K)) * (1 - np.eye(K))
    parts = {part: draw(st.booleans()) for part in ("bias", "start", "end", "transitions")}
    parts["order"] = draw(st.sampled_from((1, 2))) if parts["transitions"] and rescaling == "margin" else 1
    forbidden = rng.random((K, K)) < 0.4 if draw(st.booleans()) else None
    if forbidden is not None:
        np.fill_diagonal(forbidden, False)  # staying is allowed, so there is always an answer
    ends = {f"forbidden_{end}": rng.permutation(K) > 0 for end in ("start", "end") if draw(st.booleans())}
    if len(ends) == 2:
        ends["forbidden_end"] = ends["forbidden_start"]  # for the same reason
    model = Chain(K, d, loss=cost, forbidden=forbidden, rescaling=rescaling, **ends, **parts)
    lengths = [draw(st.integers(1, 5)), draw(st.integers(1, 4))]
    whole = draw(st.booleans())  # small whole numbers: many labellings have equal scores
    X = [_numbers(rng, (n, d), whole) * (rng.random((n, d)) < 0.7) for n in lengths]
    Y = []
    for x in X:
        allowed = list(labellings(model, x))
        Y.append(allowed[int(rng.integers(len(allowed)))])
    w = _numbers(rng, model.n_weights, whole)
    return model, X, Y, w


def _numbers(rng, size, whole):
    return rng.integers(-1, 2, size=size).astype(float) if whole else rng.normal(size=size)


def _given(model, X, sparse):
    return [sp.csr_matrix(x) for x in X] if sparse else X


@EXAMPLES
@given(case=cases())
def test_features_add_up_to_the_score(case):
    model, X, Y, w = case
    for x, y in zip(X, Y, strict=True):
        assert dense(model.features(x, y)) @ w == pytest.approx(_score(model, x, y, w), abs=1e-9)
        assert model.loss(y, y) == 0.0
        for z in labellings(model, x):
            assert model.loss(y, z) == pytest.approx(_loss(model, y, z))


@EXAMPLES
@given(case=cases(), sparse=st.booleans())
def test_prediction_is_the_best_of_all_labellings(case, sparse):
    model, X, _, w = case
    found, scores = model.scored(_given(model, X, sparse), w)
    for x, path, score in zip(X, found, scores, strict=True):
        best = max(_score(model, x, z, w) for z in labellings(model, x))
        assert score == pytest.approx(best, abs=1e-9)
        assert _score(model, x, path, w) == pytest.approx(best, abs=1e-9)
        assert is_allowed(model, path)
        assert np.array_equal(model.predict(x, w), path)


@EXAMPLES
@given(case=cases(), sparse=st.booleans())
def test_most_violated_is_the_worst_of_all_labellings(case, sparse):
    model, X, Y, w = case
    rivals = model.oracle(_given(model, X, sparse), Y).rivals(np.arange(2), w)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        truth = _score(model, x, y, w)
        worst = max(_loss(model, y, z) + _score(model, x, z, w) - truth for z in labellings(model, x))
        answer = rivals.labels[i]
        assert is_allowed(model, answer)
        assert rivals.losses[i] == pytest.approx(_loss(model, y, answer))
        assert _loss(model, y, answer) + _score(model, x, answer, w) - truth == pytest.approx(worst, abs=1e-9)


@EXAMPLES
@given(case=cases(loss=("hamming", "normalized_hamming"), rescaling="slack"), sparse=st.booleans())
def test_most_violated_with_slack_rescaling_is_the_worst_of_all_labellings(case, sparse):
    model, X, Y, w = case
    rivals = model.oracle(_given(model, X, sparse), Y).rivals(np.arange(2), w)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        truth = _score(model, x, y, w)
        worst = max(_loss(model, y, z) * (1 + _score(model, x, z, w) - truth) for z in labellings(model, x))
        answer = rivals.labels[i]
        assert is_allowed(model, answer)
        loss = _loss(model, y, answer)
        assert loss * (1 + _score(model, x, answer, w) - truth) == pytest.approx(max(worst, 0.0), abs=1e-9)


@EXAMPLES
@given(case=cases(), sparse=st.booleans())
def test_rows_of_rivals_are_feature_differences(case, sparse):
    model, X, Y, w = case
    oracle = model.oracle(_given(model, X, sparse), Y)
    found = oracle.rivals(np.array([1, 0]), w)
    for rivals in (found, oracle.planes(np.array([1, 0]), [Y[1], found.labels[1]])):
        for p, i in enumerate((1, 0)):
            difference = dense(model.features(X[i], Y[i])) - dense(model.features(X[i], rivals.labels[p]))
            np.testing.assert_allclose(_row(rivals.rows, p), difference, rtol=1e-6, atol=1e-6)


def _row(rows, p):
    out = np.zeros(rows.width)
    span = slice(rows.indptr[p], rows.indptr[p + 1])
    assert len(set(rows.indices[span])) == len(rows.indices[span])
    out[rows.indices[span]] = rows.data[span]
    return out


@EXAMPLES
@given(case=cases(), k=st.integers(1, 12), sparse=st.booleans())
def test_k_best_are_the_first_of_all_labellings_in_order(case, k, sparse):
    model, X, _, w = case
    for x in X:
        everything = sorted((_score(model, x, z, w) for z in labellings(model, x)), reverse=True)
        found = model.k_best(_given(model, [x], sparse)[0], w, k)
        assert [score for _, score in found] == pytest.approx(everything[:k], abs=1e-9)
        assert len({tuple(path) for path, _ in found}) == len(found)
        for path, score in found:
            assert is_allowed(model, path)
            assert _score(model, x, path, w) == pytest.approx(score, abs=1e-9)


@EXAMPLES
@given(case=cases(), sparse=st.booleans())
def test_token_margins_are_best_with_minus_best_without_the_label(case, sparse):
    model, X, Y, w = case
    found = model.margins(_given(model, X, sparse), w, Y)
    for x, y, margins in zip(X, Y, found, strict=True):
        scored = [(z, _score(model, x, z, w)) for z in labellings(model, x)]
        for t in range(len(y)):
            own = max(score for z, score in scored if z[t] == y[t])
            other = max((score for z, score in scored if z[t] != y[t]), default=-np.inf)
            assert margins[t] == pytest.approx(own - other, abs=1e-9)


def test_no_transition_block_still_obeys_forbidden_pairs():
    forbidden = np.array([[False, True], [False, False]])
    model = Chain(2, 1, transitions=False, forbidden=forbidden)
    w = np.array([-1.0, 1.0])
    x = np.array([[-3.0], [2.0]])  # without the rule: 0, then 1
    assert model.predict(x, w).tolist() == [0, 0]


def _arguments(model, X, Y):
    X = Sequences.of(X)
    tokens = (X.indptr, X.indices, X.values)
    length = np.diff(X.offsets)
    y = np.concatenate(Y).astype(np.int32)
    cost = 1.0 - np.eye(model.n_labels)
    return tokens, X.offsets, y, cost, 1.0 / length


def test_labels_of_second_order_that_only_the_label_before_the_last_tells_apart():
    """After two of the same the other one must come; no weights of pairs could say that."""
    model = Chain(2, 1, order=2)
    w = np.zeros(model.n_weights)
    triples = model.triple_table(w)
    triples[0, 0, 1] = triples[0, 1, 1] = triples[1, 1, 0] = triples[1, 0, 0] = 1.0
    x = np.zeros((9, 1))
    w[:2] = 0.1, 0.0
    x[0] = x[1] = 1.0
    assert model.predict(x, w).tolist() == [0, 0, 1, 1, 0, 0, 1, 1, 0]


@pytest.mark.parametrize("order", [1, 2])
def test_a_label_that_nothing_may_follow_comes_last(order, rng):
    forbidden = np.array([[False, False, False], [True, True, True], [False, False, False]])
    model = Chain(3, 2, forbidden=forbidden, order=order)
    for n in (1, 2, 3, 4):
        x, w = rng.normal(size=(n, 2)), 3.0 * rng.normal(size=model.n_weights)
        everything = sorted((_score(model, x, z, w) for z in labellings(model, x)), reverse=True)
        assert model.scored([x], w)[1][0] == pytest.approx(everything[0])
        assert [score for _, score in model.k_best(x, w, 4)] == pytest.approx(everything[:4])
        best = model.predict(x, w)
        assert model.margins([x], w, [best])[0].min() == pytest.approx(everything[0] - everything[1])


@pytest.mark.parametrize("order", [1, 2])
def test_where_nothing_is_allowed_every_question_says_so(order, rng):
    """Label 1 may end a sequence, and nothing leads there from label 0, with which it must begin."""
    model = Chain(
        2, 2, forbidden=[[0, 1], [0, 0]], forbidden_start=[False, True], forbidden_end=[True, False], order=order
    )
    w = rng.normal(size=model.n_weights)
    for n in (1, 2, 4):
        x = rng.normal(size=(n, 2))
        for ask in (
            lambda x=x: model.predict(x, w),
            lambda x=x: model.k_best(x, w, 2),
            lambda x=x, n=n: model.margins([x], w, [np.zeros(n, int)]),
        ):
            with pytest.raises(ValueError, match=f"{n} tokens, and every labelling of that length is forbidden"):
                ask()


@pytest.mark.parametrize("forbid", [False, True])
def test_kernels_of_second_order_equal_their_source(forbid, rng):
    forbidden = np.array([[False, False, True], [False] * 3, [True, False, False]]) if forbid else None
    model = Chain(3, 2, bias=True, start=True, end=True, forbidden=forbidden, order=2)
    X = [rng.normal(size=(n, 2)) * (rng.random((n, 2)) < 0.8) for n in (1, 2, 5)]
    Y = [np.array([2]), np.array([0, 1]), np.array([1, 1, 0, 0, 1])]
    w = rng.normal(size=model.n_weights)
    tokens, offsets, y, cost, scale = _arguments(model, X, Y)
    ids, first = np.array([2, 0, 1]), np.array([0, 5, 6])
    common = model._arguments(Sequences.of(X), w)
    low, high = np.empty((3, 3)), np.empty((3, 3))

    equals_its_source(second_order.spans_of, common[5], common[4][0], low, high)
    nobody, out = np.empty(0, np.int32), np.zeros(8, np.int32)
    equals_its_source(second_order.search, *common, ids, np.empty((0, 0)), np.empty(0), nobody, first, out)
    equals_its_source(second_order.search, *common, ids, cost, scale, y, first, out)
    z, ends = np.array([1, 1, 2, 0, 1, 0, 0, 0], np.int32), np.zeros(4, np.int64)
    equals_its_source(
        chain_kernels.differences, *tokens, offsets, y, 3, model.layout, ids, z, first, ends, np.empty(0, np.float64)
    )


@pytest.mark.parametrize("forbid", [False, True])
def test_kernels_equal_their_source(forbid, rng):
    forbidden = np.array([[False, False, True], [False] * 3, [True, False, False]]) if forbid else None
    model = Chain(3, 2, bias=True, start=True, end=True, forbidden=forbidden)
    X = [rng.normal(size=(n, 2)) * (rng.random((n, 2)) < 0.8) for n in (1, 3, 4)]
    Y = [np.array([2]), np.array([0, 1, 2]), np.array([1, 1, 0, 0])]
    w = rng.normal(size=model.n_weights)
    tokens, offsets, y, cost, scale = _arguments(model, X, Y)
    ids, first = np.array([2, 0]), np.array([0, 4, 5])
    common = model._arguments(Sequences.of(X), w)
    nobody, out = np.empty(0, np.int32), np.zeros(5, np.int32)

    assert equals_its_source(viterbi.longest_of, offsets, ids)[0] == 4
    equals_its_source(viterbi.search, *common, ids, np.empty((0, 0)), np.empty(0), nobody, first, out)
    equals_its_source(viterbi.search, *common, ids, cost, scale, y, first, out)
    equals_its_source(viterbi.search_slack, *common, ids, cost, scale, y, first, out)
    equals_its_source(viterbi.k_best, *common, 5)
    equals_its_source(viterbi.margins, *common, y)
    equals_its_source(chain_kernels.label_scores, *tokens, 1, 4, 3, w, model.layout[0], np.zeros((3, 3)))
    z = np.array([1, 1, 2, 0, 0], np.int32)
    equals_its_source(chain_kernels.losses, offsets, y, cost, scale, ids, z, first)
    for kind in (np.float32, np.float64):
        ends = np.zeros(3, np.int64)
        equals_its_source(
            chain_kernels.differences, *tokens, offsets, y, 3, model.layout, ids, z, first, ends, np.empty(0, kind)
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "hinge"}, "hamming"),
        ({"loss": np.ones((2, 2))}, "zeros on the diagonal"),
        ({"loss": np.zeros((2, 3))}, "got shape"),
        ({"n_labels": 3, "loss": 1.0 - np.eye(2)}, "3 × 3"),
        ({"loss": -1.0 + np.eye(2)}, "not negative"),
        ({"rescaling": "both"}, "'margin', 'slack'"),
        ({"rescaling": "slack", "loss": 1.0 - np.eye(2)}, "Hamming"),
        ({"forbidden": [True, False]}, "square"),
        ({"order": 3}, "order must be 1 or 2.*got 3.*SemiMarkov"),
        ({"order": True}, "order must be 1 or 2.*got True"),
        ({"order": 2, "transitions": False}, "leave transitions=True"),
        ({"order": 2, "rescaling": "slack"}, "give order=1"),
        ({"forbidden_start": [[True, False]]}, r"forbidden_start must .* it is an array of \(1, 2\)"),
        ({"forbidden_end": True}, "forbidden_end must say for each label"),
        ({"forbidden_end": [True, True]}, "forbidden_end must .* True for all labels, and nothing is left"),
        ({"forbidden_end": [False], "n_labels": 2}, r"forbidden_end has shape \(1,\), there are 2 labels"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Chain(**settings)


def test_data_that_does_not_fit_is_refused_by_name():
    X, Y = [np.eye(2), np.ones((3, 2))], [[0, 1], [1, 1, 0]]
    chain = Chain().sized(X, Y)
    assert (chain.n_labels, chain.n_features) == (2, 2)
    with pytest.raises(ValueError, match="does not know its sizes"):
        Chain().n_weights  # noqa: B018
    with pytest.raises(ValueError, match="whole numbers"):
        chain.oracle(X, [[0, 1], [0.5, 1, 0]])
    with pytest.raises(ValueError, match="Sequence 1 has 3 features per token, 2"):
        chain.oracle([X[0], np.ones((3, 3))], Y)
    with pytest.raises(ValueError, match="lengths differ"):
        chain.oracle(X, Y).planes(np.array([0]), [[0, 1, 1]])
    with pytest.raises(ValueError, match="forbidden has shape"):
        Chain(forbidden=np.zeros((3, 3))).sized(X, Y)
    forbids = Chain(2, 2, forbidden=[[False, False], [True, False]])
    with pytest.raises(ValueError, match="Example 1 has the labels 1, 0 at position 1"):
        forbids.oracle(X, Y)
    # From the last label of one sequence to the first of the next there is no step.
    forbids.oracle([X[0], X[0]], [[0, 1], [0, 1]])
    with pytest.raises(ValueError, match="Example 1 begins with the label 1"):
        Chain(2, 2, forbidden_start=[False, True]).oracle(X, Y)
    ends = Chain(2, 2, forbidden_end=[True, False])
    with pytest.raises(ValueError, match="Example 1 ends with the label 0"):
        ends.oracle(X, Y)
    with pytest.raises(ValueError, match="number 1 ends with the label 0, which is forbidden there"):
        ends.oracle([X[0], X[0]], [[0, 1], [0, 1]]).planes(np.array([1, 0]), [[1, 1], [1, 0]])
    with pytest.raises(ValueError, match="1 tokens, and every labelling of that length is forbidden"):
        Chain(2, 2, forbidden_start=[True, False], forbidden_end=[False, True]).predict(X[0][:1], np.zeros(8))
