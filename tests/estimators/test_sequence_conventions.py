"""SequenceSVM among scikit-learn's tools: argument names, cross-validation, searches, iterators, empty sequences."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.utils import get_tags

import maxmargin as mm
from maxmargin import LatentStructuralSVM, SequenceSVM, StructuralSVM
from maxmargin.callbacks import DevelopmentScore
from maxmargin.features import TokenFeatures

SENTENCES = [
    "the/DET dog/NOUN barks/VERB",
    "a/DET cat/NOUN sleeps/VERB",
    "dogs/NOUN bark/VERB",
    "the/DET old/ADJ cat/NOUN barks/VERB",
    "sleep/VERB",
    "an/DET old/ADJ old/ADJ dog/NOUN",
]
X = [[pair.split("/")[0] for pair in s.split()] for s in SENTENCES]
Y = [[pair.split("/")[1] for pair in s.split()] for s in SENTENCES]


@pytest.fixture
def svm():
    return SequenceSVM(random_state=0)


def test_answers_may_be_called_y(svm):
    expected = clone(svm).fit(X, Y)
    assert np.array_equal(svm.fit(X, y=Y).coef_, expected.coef_)
    assert np.array_equal(svm.fit(X=X, Y=Y).coef_, expected.coef_)
    assert svm.score(X, y=Y) == svm.score(X, Y)
    assert svm.certify(X, y=Y) == svm.certify(X, Y=Y)
    stream = clone(svm).partial_fit(X, y=Y)
    assert np.array_equal(stream.coef_, clone(svm).partial_fit(X, Y).coef_)
    for call in (svm.fit, svm.score, svm.certify):
        with pytest.raises(ValueError, match="two names of the same"):
            call(X, Y, y=Y)
    rows, classes = [np.array([1.0, 0.0]), np.array([0.0, 1.0])], [0, 1]
    plain = StructuralSVM(mm.models.Multiclass(), random_state=0).fit(rows, y=classes)
    assert plain.score(rows, y=classes) == plain.score(rows, classes)
    bags = [np.array([[1.0], [0.0]]), np.array([[-1.0], [0.0]])]
    latent = LatentStructuralSVM(mm.models.Bags(), random_state=0).fit(bags, y=[1, 0])
    assert latent.certify(bags, y=[1, 0]) == latent.certify(bags, [1, 0])


def test_cross_validation(svm):
    found = cross_val_predict(svm, X, Y, cv=3)
    assert [len(labels) for labels in found] == [len(labels) for labels in Y]
    for fold in range(3):
        held_out = [2 * fold, 2 * fold + 1]
        rest = [i for i in range(len(X)) if i not in held_out]
        model = clone(svm).fit([X[i] for i in rest], [Y[i] for i in rest])
        assert found[held_out].tolist() == model.predict([X[i] for i in held_out]).tolist()
    whole = make_scorer(lambda true, said: np.mean([a == b for a, b in zip(true, said, strict=True)]))
    scores = cross_val_score(svm, X, Y, cv=3, scoring=whole)
    assert scores.size == 3 and ((scores >= 0) & (scores <= 1)).all()
    assert cross_val_score(svm, X, Y, cv=2).shape == (2,)


def test_templates_and_C_are_searched():
    tagger = SequenceSVM(features=TokenFeatures(window=1), random_state=0)
    search = GridSearchCV(tagger, {"features__window": [0, 1], "features__affixes": [0, 2], "C": [0.1, 1.0]}, cv=2)
    search.fit(X, Y)
    assert search.best_params_.keys() == {"features__window", "features__affixes", "C"}
    assert search.best_estimator_.features.window == search.best_params_["features__window"]
    assert tagger.features.window == 1
    assert len(search.predict(X)) == len(X)


class Marked(BaseEstimator):
    """Features that a second pass would change."""

    def transform(self, X):
        return [[f"{word}!" for word in x] for x in X]


def test_tokens_pass_a_transformer_once(tmp_path):
    expected = SequenceSVM(random_state=0).fit(Marked().transform(X), Y)
    svm = SequenceSVM(features=Marked(), random_state=0).fit(X, Y)
    from_source = SequenceSVM(features=Marked(), random_state=0).fit(mm.data.open(lambda: zip(X, Y, strict=True)))
    for tagger in (svm, from_source, SequenceSVM(features=Marked(), random_state=0).partial_fit(X, Y)):
        assert tagger.feature_names_ == expected.feature_names_
        assert tagger.score(X, Y) == expected.score(Marked().transform(X), Y)
        assert tagger.certify(X, Y).upper == tagger.certify(mm.data.open(lambda: zip(X, Y, strict=True))).upper
    assert svm.certify(X, Y) == expected.certificate_
    svm.report(tmp_path / "page.html", X, Y)


def test_tags_say_what_input_is(svm):
    tags = get_tags(svm)
    assert not tags.input_tags.two_d_array
    assert tags.target_tags.required


def test_iterators_are_read(svm):
    expected = clone(svm).fit(X, Y)
    svm.fit(((word for word in x) for x in X), (iter(y) for y in Y))
    assert np.array_equal(svm.coef_, expected.coef_)
    assert svm.predict(map(str.split, ["the dog", "a cat"])).tolist() == expected.predict([X[0][:2], X[1][:2]]).tolist()
    assert svm.score(iter(X), iter(Y)) == expected.score(X, Y)
    assert svm.certify(iter(X), iter(Y)) == expected.certify(X, Y)
    named = SequenceSVM(features=TokenFeatures(), random_state=0).fit(iter(X), iter(Y))
    assert named.predict(iter(X)).tolist() == Y


def forms(empty):
    """Sequences as words, as words for templates, as sparse and as dense matrices; ``empty`` are inserted."""
    numbers = {word: i for i, word in enumerate(sorted({word for x in X for word in x}))}
    dense = [np.eye(len(numbers))[[numbers[word] for word in x]] for x in X]
    for templates, sequences, nothing in (
        (None, X, []),
        (TokenFeatures(window=1), X, []),
        (None, dense, np.empty((0, len(numbers)))),
        (None, dense, []),
    ):
        longer = list(sequences)
        for at in empty:
            longer.insert(at, nothing)
        yield templates, sequences, longer


def test_empty_sequences_teach_nothing_and_get_no_labels(tmp_path):
    empty = [0, 3, 8]
    longer_Y = list(Y)
    for at in empty:
        longer_Y.insert(at, [])
    full = [i for i in range(9) if i not in empty]
    weight = np.arange(1.0, 10.0)
    for templates, sequences, longer in forms(empty):
        settings = {"features": templates, "random_state": 0, "allowed_transitions": "observed"}
        expected = SequenceSVM(**settings).fit(sequences, Y, weight[full])
        svm = SequenceSVM(**settings).fit(longer, longer_Y, weight)
        assert np.array_equal(svm.coef_, expected.coef_)
        assert svm.certify(longer, longer_Y, weight) == expected.certify(sequences, Y, weight[full])
        found = svm.predict(longer)
        assert [found[i] for i in full] == expected.predict(sequences).tolist()
        assert [found[i] for i in empty] == [[], [], []]
        assert svm.score(longer, longer_Y, weight) == expected.score(sequences, Y, weight[full])
        assert [m.tolist() for m in svm.margins(longer)] == [
            expected.margins([longer[i]])[0].tolist() if i in full else [] for i in range(9)
        ]
        assert svm.predict([longer[0]]).tolist() == [[]]
        assert svm.predict_single(longer[0]) == []
        assert svm.k_best(longer[0], 3) == [([], 0.0)]
        svm.report(tmp_path / "page.html", longer, longer_Y)
        again = SequenceSVM(**settings).partial_fit(longer, longer_Y)
        assert np.array_equal(again.coef_, SequenceSVM(**settings).partial_fit(sequences, Y).coef_)
        before = again.coef_
        assert np.array_equal(again.partial_fit([longer[0]], [[]]).coef_, before)


def test_empty_sequences_have_probabilities_and_segments():
    spelled = [["B-" + label if t % 2 == 0 else "I-" + y[t - 1] for t, label in enumerate(y)] for y in Y]
    allowed = sorted({pair for y in spelled for pair in zip([None, *y], [*y, None], strict=True)}, key=str)
    svm = SequenceSVM(random_state=0, segments="iob2", allowed_transitions=allowed)
    svm.fit([[], *X, []], [[], *spelled, []]).calibrate([*X, []], [*spelled, []])
    longer = [[], X[0], []]
    assert svm.predict_segments(longer)[::2] == [[], []]
    assert svm.predict_segments(longer)[1] == svm.predict_segments([X[0]])[0]
    assert svm.sequence_proba(longer)[::2].tolist() == [1.0, 1.0]
    assert svm.sequence_proba(longer)[1] == pytest.approx(svm.sequence_proba([X[0]])[0])
    assert [len(tokens) for tokens in svm.predict_marginals(longer)] == [0, 3, 0]
    assert svm.k_best_proba([], 2) == [([], 1.0)]
    assert svm.explain([]).labels == []
    assert svm.score([[], *X], [[], *spelled]) == svm.score(X, y=spelled)


def test_labels_of_the_wrong_sequence_are_named_in_the_users_counting(svm):
    with pytest.raises(ValueError, match="Sequence 2 has 1 tokens, but 2 labels"):
        svm.fit([[], ["a"], ["b"]], [[], ["A"], ["B", "B"]])


def test_a_development_set_is_scored_on_the_way(svm):
    told = []
    dev = DevelopmentScore(X[:3], Y[:3], every=2, shown_to=told.append)
    svm.set_params(tol=1e-6).fit(X, Y, callbacks=[dev])
    assert [number for number, _ in dev.scores_] == list(range(2, svm.n_passes_ + 1, 2))
    assert len(told) == len(dev.scores_)
    assert np.array_equal(svm.coef_, clone(svm).fit(X, Y).coef_), "looks change nothing"
    single = DevelopmentScore(X[:3], Y[:3], scorer=lambda estimator, x, y: float(estimator.coef_.any()))
    clone(svm).fit(X, Y, callbacks=[single])
    assert {score for _, score in single.scores_} == {1.0}


def test_a_fit_ends_when_the_development_set_gets_no_better(svm):
    dev = DevelopmentScore(X, Y, patience=2, scorer=lambda *_: 0.5)
    with pytest.warns(UserWarning, match="was told to stop"):
        svm.set_params(tol=1e-9).fit(X, Y, callbacks=[dev])
    assert [number for number, _ in dev.scores_] == [1, 2, 3]
    assert svm.certificate_.lower <= svm.certify(X, Y).upper


def test_other_estimators_are_scored_on_the_way_where_they_solve_one_problem():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 3))
    classes = (rows[:, 0] > 0).astype(int)
    dev = DevelopmentScore(rows, classes)
    svm = mm.LinearSVC(random_state=0).fit(rows, classes, callbacks=[dev])
    assert dev.scores_ and all(score <= 1.0 for _, score in dev.scores_)
    assert dev.scores_[-1][0] == svm.n_passes_
    with pytest.raises(ValueError, match="one convex problem"):
        mm.LinearSVC(multi_class="ovr").fit(rows, np.arange(60) % 3, callbacks=[dev])


@pytest.mark.parametrize(
    "settings", [{"every": 0}, {"patience": 0}, {"scorer": "accuracy"}, {"shown_to": 5}], ids=lambda s: next(iter(s))
)
def test_wrong_settings_of_a_development_score(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        DevelopmentScore(X, Y, **settings)


def test_a_development_set_may_be_called_y_and_may_be_iterators(svm):
    whole = clone(svm).fit(X, Y).calibrate(X, Y).temperature_
    assert clone(svm).fit(X, Y).calibrate(X, y=Y).temperature_ == whole
    ruled = SequenceSVM(random_state=0, allowed_transitions="observed").fit(X, Y)
    assert ruled.calibrate(iter(X), iter(Y)).temperature_ > 0
    with pytest.raises(ValueError, match=r"Y\[1\].*is a labelling that the model never predicts"):
        ruled.calibrate(iter(X[:2]), iter([Y[0], Y[1][::-1]]))


def test_numpy_truths_are_truths():
    plain = SequenceSVM(random_state=0).fit([[{"a": True, "b": 1}, {"a": False, "b": 2}]], [["A", "B"]])
    of_numpy = SequenceSVM(random_state=0).fit([[{"a": np.True_, "b": 1}, {"a": np.False_, "b": 2}]], [["A", "B"]])
    assert np.array_equal(plain.coef_, of_numpy.coef_)


@pytest.mark.parametrize("name", [frozenset(["a"]), float("nan")])
def test_a_model_that_no_load_would_take_is_not_saved(tmp_path, name):
    svm = SequenceSVM(random_state=0).fit([[{name: 1.0}, {"b": 1.0}]], [["A", "B"]])
    with pytest.raises(ValueError, match="names of features must be text, numbers or tuples"):
        svm.save(tmp_path / "m.mm")
    assert not list(tmp_path.iterdir())
