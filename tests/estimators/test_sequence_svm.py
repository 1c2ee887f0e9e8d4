"""SequenceSVM as users meet it: named and numbered features, labels of any kind, and what can be read off the model."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
import reference
from generators import chains
from sklearn.base import clone
from user_models import every_rival, labellings

import maxmargin as mm
from maxmargin import SequenceSVM, StructuralSVM
from maxmargin.data.attributes import Attributes
from maxmargin.models import Chain
from maxmargin.regularizers import GaussianPrior

SENTENCES = [
    "the/DET dog/NOUN barks/VERB",
    "a/DET cat/NOUN sleeps/VERB",
    "dogs/NOUN bark/VERB",
    "the/DET old/ADJ cat/NOUN barks/VERB",
    "sleep/VERB",
    "an/DET old/ADJ old/ADJ dog/NOUN",
]


def _tokens(sentence):
    return [pair.split("/")[0] for pair in sentence.split()]


X_WORDS = [[{"word": word, "last": word[-1]} for word in _tokens(s)] for s in SENTENCES]
Y_WORDS = [[pair.split("/")[1] for pair in s.split()] for s in SENTENCES]


@pytest.fixture
def svm():
    return SequenceSVM(C=1.0, random_state=0).fit(X_WORDS, Y_WORDS)


@pytest.fixture
def numeric():
    return chains(np.random.default_rng(8), n=15, longest=4)


def _as_matrices(X):
    known = Attributes()
    encoded = known.learn(X)
    return [encoded[i] for i in range(len(encoded))]


def _found(svm, X):
    """The labels that are predicted, as lists."""
    found = svm.predict(X)
    assert found.dtype == object and found.ndim == 1
    return found.tolist()


def _same_model(a, b):
    assert np.array_equal(a.coef_, b.coef_)
    assert a.certificate_ == b.certificate_


def test_reaches_the_optimum_over_all_labellings(numeric):
    X, Y = numeric
    svm = SequenceSVM(C=0.5, tol=1e-6, bias=True, start=True, end=True, random_state=0).fit(X, Y)
    model = svm.model_
    arrays = every_rival(model, X, Y, lambda x: labellings(model, x), 0.5)
    optimum = reference.quadratic(*arrays)
    assert svm.certificate_.upper == pytest.approx(optimum.value, rel=1e-5)
    np.testing.assert_allclose(svm.coef_, optimum.weights, atol=1e-2)
    again = svm.certify(X, Y)
    assert (again.lower, again.upper) == pytest.approx((svm.certificate_.lower, svm.certificate_.upper), rel=1e-9)


def test_is_the_chain_model_of_structural_svm(numeric):
    X, Y = numeric
    ours = SequenceSVM(C=0.5, loss="normalized_hamming", end=True, random_state=0).fit(X, Y)
    theirs = StructuralSVM(Chain(loss="normalized_hamming", end=True), C=0.5, random_state=0).fit(X, Y)
    assert np.array_equal(ours.coef_, theirs.coef_)


def test_dicts_lists_matrices_and_sparse_matrices_give_the_same_model():
    named = [[{f"{k}={v}": 1 for k, v in token.items()} for token in x] for x in X_WORDS]
    listed = [[list(token) for token in x] for x in named]
    sparse = _as_matrices(named)
    dense = [x.toarray() for x in sparse]
    nested = [x.tolist() for x in dense]
    fits = [
        SequenceSVM(random_state=0).fit(X, Y_WORDS)
        for X in (X_WORDS, named, listed, sparse, dense, nested, tuple(dense))
    ]
    for other in fits[1:]:
        np.testing.assert_allclose(other.coef_, fits[0].coef_, rtol=1e-9, atol=1e-12)
    assert _found(fits[0], X_WORDS) == _found(fits[2], listed) == _found(fits[3], sparse) == _found(fits[4], dense)
    assert fits[0].feature_names_ == fits[2].feature_names_
    assert fits[3].feature_names_ == list(range(len(fits[0].feature_names_)))


WORDS = [_tokens(s) for s in SENTENCES]


def test_words_alone_are_features():
    known = SequenceSVM(random_state=0).fit([[[word] for word in x] for x in WORDS], Y_WORDS)
    plain = SequenceSVM(random_state=0).fit(WORDS, Y_WORDS)
    _same_model(plain, known)
    assert plain.feature_names_[:3] == ["the", "dog", "barks"]
    assert plain.score(WORDS, Y_WORDS) == known.score([[{word} for word in x] for x in WORDS], Y_WORDS)
    assert plain.certify(WORDS, Y_WORDS) == known.certificate_
    stream = SequenceSVM(random_state=0).partial_fit(WORDS, Y_WORDS)
    assert stream.predict_single(["the", "old", "dog", "sleeps"]) == ["DET", "ADJ", "NOUN", "VERB"]


def test_columns_and_arrays_of_words_are_sequences_of_words(tmp_path):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    same = [x[:2] for x in WORDS[:4]]
    Y = [y[:2] for y in Y_WORDS[:4]]
    expected = SequenceSVM(random_state=0).fit(same, Y)
    forms = [
        np.array(same), np.array(same, dtype=object), [np.array(x) for x in same], [list(np.array(x)) for x in same],
        [pandas.Series(x, index=[7, 3]) for x in same], pandas.Series(same, index=[4, 2, 3, 1]),
        [polars.Series(x) for x in same], tuple(map(tuple, same)),
    ]  # fmt: skip
    for X in forms:
        svm = SequenceSVM(random_state=0).fit(X, Y)
        _same_model(svm, expected)
        assert _found(svm, X) == _found(expected, same)
        assert svm.score(X, Y) == expected.score(same, Y)
    source = mm.data.open([(np.array(x), y) for x, y in zip(same, Y, strict=True)])
    assert SequenceSVM(random_state=0).fit(source).feature_names_ == expected.feature_names_
    page = expected.report(tmp_path / "page.html", [pandas.Series(["the", "zebra"])], [["DET", "DET"]])
    assert "zebra" in page.read_text()  # whose label is wrong


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_the_rows_of_a_frame_are_tokens(library):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rows = [
        {"word": word, "length": len(word), "capital": word == "a", "suffix": word[-3:] if len(word) > 3 else None}
        for x in WORDS
        for word in x
    ]
    number = np.repeat(np.arange(len(WORDS)), [len(x) for x in WORDS])
    table = pandas.DataFrame(rows, index=np.arange(len(rows))[::-1])
    X = [group for _, group in table.groupby(number)]
    if library != "pandas":
        X = [polars.from_pandas(x) if library == "polars" else polars.from_pandas(x).to_arrow() for x in X]
    listed = [[row for row, i in zip(rows, number, strict=True) if i == k] for k in range(len(WORDS))]
    expected = SequenceSVM(random_state=0).fit(listed, Y_WORDS)
    svm = SequenceSVM(random_state=0).fit(X, [np.array(y) for y in Y_WORDS])
    _same_model(svm, expected)
    assert svm.feature_names_ == expected.feature_names_
    assert _found(svm, X) == _found(expected, listed)


def test_numbers_that_are_missing_in_a_frame_are_refused():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="Sequence 0, token 1: feature 'n' has the value nan"):
        SequenceSVM().fit([pandas.DataFrame({"n": [1.0, np.nan]})], [["A", "B"]])


def test_sequences_of_which_nothing_is_known_are_warned_of(svm):
    named = SequenceSVM(random_state=0).fit([[[f"word={word}"] for word in x] for x in WORDS], Y_WORDS)
    told = r"None of the features of X was met in training; the first are \['w=the', .*such as \['word=the', 'word=dog'"
    for use in (named.predict, named.margins, lambda X: named.score(X, [Y_WORDS[0]])):
        with pytest.warns(UserWarning, match=told) as caught:
            use([[{"w": word} for word in WORDS[0]]])
        assert [one.filename for one in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        named.predict([[{"w": "the"}], [{"word": "the"}]])  # one that is known will do
        named.predict([[{}, {}]])  # nothing was said that could be unknown


def test_kinds_of_values_in_dicts():
    known = Attributes()
    token = {
        "number": 2.5, "whole": 3, "numpy": np.float32(0.5), "yes": True, "no": False, "nothing": None,
        "text": "a b", "several": ["x", "y"], "pair": ("z",), "zero": 0,
    }  # fmt: skip
    row = known.learn([[token]])[0].toarray()[0]
    values = {name: row[i] for name, i in known.names.items()}
    assert values == {
        "number": 2.5, "whole": 3.0, "numpy": 0.5, "yes": 1.0, "text=a b": 1.0, "several=x": 1.0, "several=y": 1.0,
        "pair=z": 1.0, "zero": 0.0,
    }  # fmt: skip


@pytest.mark.parametrize("value", [np.nan, np.inf, {"a": 1}, object()])
def test_values_that_are_no_features_are_refused(value):
    with pytest.raises(ValueError, match="Sequence 0, token 0: feature 'f' has"):
        SequenceSVM().fit([[{"f": value}, {"f": 1}]], [["A", "B"]])


def test_names_given_twice_count_twice():
    twice = [[["a", "a"], ["b"]], [["b"], ["a", "a"]]]
    counted = [[{"a": 2.0}, {"b": 1.0}], [{"b": 1.0}, {"a": 2.0}]]
    Y = [["A", "B"], ["B", "A"]]
    a, b = (SequenceSVM(random_state=0, tol=1e-6).fit(X, Y) for X in (twice, counted))
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)
    assert a.k_best(twice[0], 2)[1][1] == pytest.approx(b.k_best(counted[0], 2)[1][1], abs=1e-6)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (["DET", "NOUN", "VERB"], str),
        ([10, 20, 30], int),
        ([-1, 0, 7], int),
        ([0.5, 1.0, 2.0], float),
        ([False, True, True], bool),
    ],
)
def test_labels_come_back_as_they_were_given(labels, kind, numeric):
    X, Y = numeric
    named = [[labels[k] for k in y] for y in Y]
    svm = SequenceSVM(C=5.0, random_state=0).fit(X, named)
    assert svm.classes_.tolist() == sorted(set(labels))
    assert {type(label) for z in svm.predict(X) for label in z} == {kind}
    assert 0.5 < svm.score(X, named) <= 1.0
    by_hand = np.mean([a == b for y, z in zip(named, svm.predict(X), strict=True) for a, b in zip(y, z, strict=True)])
    assert svm.score(X, named) == pytest.approx(by_hand)
    arrays = [np.array(y) for y in named]
    _same_model(svm, SequenceSVM(C=5.0, random_state=0).fit(X, arrays))
    assert svm.score(X, arrays) == svm.score(X, named)


def test_features_never_seen_are_ignored(svm):
    plain = [[{"word": "the"}, {"word": "dog"}]]
    more = [[{"word": "the", "colour": "red", "size": 7}, {"word": "dog", "new": True}]]
    assert _found(svm, more) == _found(svm, plain)
    assert np.array_equal(svm.margins(more)[0], svm.margins(plain)[0])
    nothing = [[{"unknown": 1}, ["neither"]]]
    with pytest.warns(UserWarning, match="None of the features of X"):
        assert len(svm.predict(nothing)[0]) == 2


def test_prepared_sequences_give_the_same_answers(svm):
    prepared = svm.prepare(X_WORDS)
    assert _found(svm, prepared) == _found(svm, X_WORDS)
    assert svm.prepare(prepared) is prepared
    assert svm.score(prepared, Y_WORDS) == svm.score(X_WORDS, Y_WORDS)
    for a, b in zip(svm.margins(prepared), svm.margins(X_WORDS), strict=True):
        assert np.array_equal(a, b)
    assert svm.certify(prepared, Y_WORDS) == svm.certify(X_WORDS, Y_WORDS)
    other = Attributes()
    with pytest.raises(ValueError, match="sequences of 2 features, the model"):
        svm.predict(other.learn([[["a"], ["b"]]]))


def test_k_best_and_margins_tell_the_same_story(svm):
    for x in X_WORDS:
        ranked = svm.k_best(x, 4)
        assert ranked[0][0] == svm.predict_single(x)
        scores = [score for _, score in ranked]
        assert scores == sorted(scores, reverse=True)
        margins = svm.margins([x])[0]
        assert margins.shape == (len(x),)
        assert margins.min() == pytest.approx(scores[0] - scores[1], abs=1e-9)
        # The second best differs from the best at a token with the smallest margin.
        differs = [t for t in range(len(x)) if ranked[0][0][t] != ranked[1][0][t]]
        assert min(margins[differs]) == pytest.approx(margins.min(), abs=1e-9)
    assert len(svm.k_best(X_WORDS[4], 100)) == len(svm.classes_)
    for k in (0, -1, 2.5):
        with pytest.raises(ValueError, match="k must be a whole number"):
            svm.k_best(X_WORDS[0], k)


def test_top_features_are_weights_by_name(svm):
    K = len(svm.classes_)
    emission = svm.coef_[: K * len(svm.feature_names_)].reshape(-1, K)
    for k, label in enumerate(svm.classes_):
        best = svm.top_features(label, 3)
        assert [weight for _, weight in best] == sorted(emission[:, k], reverse=True)[:3]
        assert all(emission[svm.feature_names_.index(name), k] == weight for name, weight in best)
        worst = svm.top_features(label, -2)
        assert [weight for _, weight in worst] == sorted(emission[:, k])[:2]
    assert "word=the" in [name for name, _ in svm.top_features("DET", 3)]
    with pytest.raises(ValueError, match="'ADV' is not among the labels"):
        svm.top_features("ADV")


def test_transitions_are_weights_from_and_to(svm):
    table = svm.transitions_
    assert table.shape == (4, 4)
    (a, b, weight), *_ = svm.top_transitions(1)
    assert weight == table.max()
    names = svm.classes_.tolist()
    assert table[names.index(a), names.index(b)] == weight
    assert svm.top_transitions(-1)[0][2] == table.min()
    assert len(svm.top_transitions(100)) == 16
    assert table[names.index("DET"), names.index("NOUN")] > table[names.index("DET"), names.index("DET")]
    # They are what the score changes by: the same token, after other labels.
    model, w = svm.model_, svm.coef_
    x = svm.prepare([[{}, {}]])[0]
    by_path = {tuple(z): float((model.features(x, z) @ w)[0]) for z in labellings(model, np.zeros((2, 1)))}
    assert by_path[(0, 1)] == pytest.approx(table[0, 1])


def test_only_observed_transitions_are_predicted():
    svm = SequenceSVM(C=1.0, allowed_transitions="observed", random_state=0).fit(X_WORDS, Y_WORDS)
    seen = {pair for y in Y_WORDS for pair in pairwise(y)}
    confusing = [[{"word": "barks"}, {"word": "the"}, {"word": "barks"}], [{"word": "the"}, {"word": "the"}]]
    free = SequenceSVM(C=1.0, random_state=0).fit(X_WORDS, Y_WORDS)

    def pairs(model):
        return {pair for z in model.predict(confusing) for pair in pairwise(z)}

    assert pairs(svm) <= seen
    assert not pairs(free) <= seen
    for labels, _ in svm.k_best(X_WORDS[0], 50):
        assert set(pairwise(labels)) <= seen


def test_table_of_losses_is_in_the_order_of_the_sorted_labels(numeric):
    X, Y = numeric
    names = ["c", "a", "b"]  # label 0 is "c", which sorts last
    cost = np.array([[0.0, 1.0, 9.0], [2.0, 0.0, 1.0], [1.0, 5.0, 0.0]])
    svm = SequenceSVM(C=0.3, loss=cost, tol=1e-6, random_state=0).fit(X, [[names[k] for k in y] for y in Y])
    position = [2, 0, 1]
    model = Chain(3, 2, loss=cost[np.ix_(position, position)])
    arrays = every_rival(model, X, Y, lambda x: labellings(model, x), 0.3)
    assert svm.certificate_.upper == pytest.approx(reference.quadratic(*arrays).value, rel=1e-5)
    with pytest.raises(ValueError, match="needs a Hamming loss"):
        SequenceSVM(rescaling="slack", loss=cost).fit(X, Y)


@pytest.mark.parametrize(
    "settings",
    [
        {"bias": True, "start": True, "end": True, "loss": "normalized_hamming"},
        {"allowed_transitions": "observed", "rescaling": "slack"},
        {"allowed_transitions": [pair for y in Y_WORDS for pair in pairwise(y)]},
        {"loss": 1.0 - np.eye(4), "regularizer": GaussianPrior(0.0, 0.5)},
    ],
    ids=["blocks", "observed", "listed", "table"],
)
def test_round_trip_through_a_file(settings, tmp_path):
    fitted = SequenceSVM(random_state=0, **settings).fit(X_WORDS, Y_WORDS)
    fitted.save(tmp_path / "tagger.safetensors")
    loaded = mm.load(tmp_path / "tagger.safetensors")
    assert np.array_equal(loaded.coef_, fitted.coef_)
    assert loaded.classes_.tolist() == fitted.classes_.tolist()
    assert _found(loaded, X_WORDS) == _found(fitted, X_WORDS)
    assert loaded.feature_names_ == fitted.feature_names_
    assert loaded.certify(X_WORDS, Y_WORDS) == fitted.certify(X_WORDS, Y_WORDS)
    assert loaded.history_ == fitted.history_
    assert np.array_equal(loaded.transitions_, fitted.transitions_)
    assert loaded.k_best(X_WORDS[0], 3) == fitted.k_best(X_WORDS[0], 3)
    assert np.array_equal(loaded.fit(X_WORDS, Y_WORDS).coef_, fitted.coef_)


def test_unknown_label_is_named_with_its_place(svm):
    Y = [list(y) for y in Y_WORDS]
    Y[3][1] = "ADV"
    with pytest.raises(ValueError, match="Sequence 3 has the label 'ADV' at token 1"):
        svm.certify(X_WORDS, Y)
    # A label that was never learned is a wrong answer, nothing worse.
    assert svm.score(X_WORDS, Y) < svm.score(X_WORDS, Y_WORDS)


def test_data_that_does_not_fit_the_model_is_refused(svm, numeric):
    with pytest.raises(ValueError, match="must be a list with one entry per example"):
        svm.predict("the dog")
    with pytest.raises(ValueError, match="Sequence 0 has 3 tokens, but 2 labels"):
        svm.score(X_WORDS[:1], [["DET", "NOUN"]])
    numbered = SequenceSVM(random_state=0).fit(*numeric)
    with pytest.raises(ValueError, match="Sequence 0 must be a matrix"):
        numbered.predict(X_WORDS)


def test_forbidden_pairs_are_not_among_the_top_transitions():
    X = [[["a"], ["b"], ["c"]], [["b"], ["c"]]]
    Y = [["A", "B", "C"], ["B", "C"]]
    svm = SequenceSVM(allowed_transitions="observed", random_state=0).fit(X, Y)
    assert {(a, b) for a, b, _ in svm.top_transitions(9)} == {("A", "B"), ("B", "C")}
    assert svm.emissions_.shape == (3, 3)


@pytest.mark.parametrize(
    "change", [{"bias": True}, {"loss": "normalized_hamming"}, {"regularizer": GaussianPrior(0.0, 2.0)}]
)
def test_settings_of_the_problem_stay_during_a_stream(change):
    X, Y = [[["a"], ["b"]], [["b"], ["a"]]], [["A", "B"], ["B", "A"]]
    svm = SequenceSVM(random_state=0).partial_fit(X, Y)
    with pytest.raises(ValueError, match="Settings of a stream must not change"):
        svm.set_params(**change).partial_fit(X, Y)


def test_a_hot_start_with_answers_that_are_forbidden_now_is_a_cold_one():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(4, 2)) for _ in range(12)]
    Y = [np.where(x[:, 0] > 0, "A", "B").tolist() for x in X[:-1]] + [["A", "A", "A", "A"]]
    svm = SequenceSVM(C=1.0, warm_start=True, random_state=0, tol=1e-5).fit(X, Y)
    pairs = {(a, b) for y in Y for a, b in pairwise(y)} | {("A", "A")}
    again = svm.set_params(allowed_transitions=sorted(pairs)).fit(X, Y)
    cold = clone(again).fit(X, Y)
    assert again.certificate_.upper == pytest.approx(cold.certificate_.upper, rel=3e-5)


def test_tuples_as_labels_survive_a_file(tmp_path):
    X, Y = [[["a"], ["b"]]], [[("N", 1), ("V", 2)]]
    svm = SequenceSVM(random_state=0).fit(X, Y)
    svm.save(tmp_path / "tuples.safetensors")
    assert _found(mm.load(tmp_path / "tuples.safetensors"), X) == _found(svm, X) == Y


def test_weights_that_are_not_finite_are_called_so():
    svm = SequenceSVM(random_state=0).fit(WORDS, Y_WORDS)
    svm.coef_ = np.full_like(svm.coef_, np.nan)
    with pytest.raises(ValueError, match="The weights are not all finite"):
        svm.predict(WORDS)


def test_tokens_without_features_are_allowed():
    svm = SequenceSVM(C=10.0, random_state=0).fit([[[], ["b"]], [["b"], []]], [["A", "B"], ["B", "A"]])
    assert _found(svm, [[[], ["b"]]]) == [["A", "B"]]


def test_observed_transitions_add_up_over_a_stream():
    first, second = ([[["a"], ["b"]]], [["A", "B"]]), ([[["b"], ["a"]]], [["B", "A"]])
    svm = SequenceSVM(allowed_transitions="observed", random_state=0).partial_fit(*first).partial_fit(*second)
    assert {(a, b) for a, b, _ in svm.top_transitions(4)} == {("A", "B"), ("B", "A")}
    assert svm.certify([*first[0], *second[0]], [*first[1], *second[1]]).upper >= svm.certificate_.lower


def test_weights_of_three_labels_in_a_row_tell_what_pairs_cannot(tmp_path):
    """Two of a kind, then two of the other: without features, the two labels before say which one comes."""
    X = [[["first"]] * 2 + [[]] * n for n in (4, 7, 9)]
    Y = [list("aabbaabbaab")[: len(x)] for x in X]
    pairs, triples = (SequenceSVM(C=10.0, order=order, random_state=0).fit(X, Y) for order in (1, 2))
    assert triples.score(X, Y) == 1.0 > pairs.score(X, Y)
    assert triples.transitions2_.shape == (2, 2, 2) and triples.transitions_.shape == (2, 2)
    assert triples.transitions2_[0, 0, 1] > triples.transitions2_[0, 0, 0]
    with pytest.raises(AttributeError, match="order=2"):
        pairs.transitions2_  # noqa: B018
    triples.save(tmp_path / "tagger.safetensors")
    loaded = mm.load(tmp_path / "tagger.safetensors")
    assert _found(loaded, X) == _found(triples, X) == Y
    assert loaded.certify(X, Y) == triples.certify(X, Y)
    best, second = triples.k_best(X[0], 2)
    assert best[0] == Y[0]
    assert triples.margins(X)[0].min() == pytest.approx(best[1] - second[1])


def test_streams_of_second_order_keep_their_triples_when_features_come_along():
    svm = SequenceSVM(order=2, random_state=0)
    for x, y in zip(X_WORDS, Y_WORDS, strict=True):
        svm.partial_fit([x], [y], classes=sorted({label for y in Y_WORDS for label in y}))
    best = SequenceSVM(order=2, tol=1e-5, random_state=0).fit(X_WORDS, Y_WORDS).certificate_
    found = svm.certify(X_WORDS, Y_WORDS)
    assert found.lower <= best.upper and found.upper >= best.lower
