"""What SequenceSVM tells of its weights and of its answers: every difference of scores is accounted for."""

from itertools import pairwise

import numpy as np
import pytest
from generators import chains

from maxmargin import SequenceSVM

SENTENCES = ["the dog barks", "a cat sleeps", "old dogs bark", "sleep", "the old cat"]
X = [[{"word": w, "last": w[-1]} for w in s.split()] for s in SENTENCES]
Y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"], ["ADJ", "NOUN", "VERB"], ["VERB"], ["DET", "ADJ", "NOUN"]]
NEW = [{"word": w, "last": w[-1]} for w in ["the", "old", "cat", "barks"]]


SETTINGS = [{}, {"bias": True, "start": True, "end": True}, {"allowed_transitions": "observed"}, {"order": 2}]


@pytest.fixture(scope="module", params=SETTINGS, ids=str)
def svm(request):
    return SequenceSVM(random_state=0, **request.param).fit(X, Y)


def test_weights_by_name_make_the_scores(svm):
    state, steps = svm.state_features_, svm.transition_features_
    assert 0.0 not in [*state.values(), *steps.values()]
    number = {label: k for k, label in enumerate(svm.classes_.tolist())}
    table = np.zeros_like(svm.emissions_)
    for (name, label), weight in state.items():
        table[svm.feature_names_.index(name), number[label]] = weight
    np.testing.assert_array_equal(table, svm.emissions_)
    for (a, b), weight in steps.items():
        assert weight == svm.transitions_[number[a], number[b]]
        assert svm.model_.forbidden is None or not svm.model_.forbidden[number[a], number[b]]
    if svm.order == 1 and not svm.start:
        for labels, score in svm.k_best(NEW, 3):
            said = [(f"{k}={v}", label) for token, label in zip(NEW, labels, strict=True) for k, v in token.items()]
            total = sum(state.get(pair, 0.0) for pair in said)
            assert score == pytest.approx(total + sum(steps.get(pair, 0.0) for pair in pairwise(labels)))


def test_contributions_add_up_to_the_margin(svm):
    for x in [NEW, *X]:
        told = svm.explain(x)
        assert told.labels == list(svm.predict_single(x)) == [token.label for token in told]
        assert told.score == pytest.approx(svm.k_best(x, 1)[0][1])
        np.testing.assert_allclose([token.margin for token in told], svm.margins([x])[0])
        for token in told:
            if token.runner_up is None:
                assert token.margin == np.inf
                continue
            assert sum(part.value for part in token.contributions) == pytest.approx(token.margin, abs=1e-9)
            sizes = [abs(part.value) for part in token.contributions]
            assert sizes == sorted(sizes, reverse=True)


def test_the_runner_up_is_the_best_labelling_with_another_label_there(svm):
    told = svm.explain(NEW)
    scored = {tuple(labels): score for labels, score in svm.k_best(NEW, 4**4)}
    for t, token in enumerate(told):
        others = [score for labels, score in scored.items() if labels[t] != token.label]
        if not others:
            assert (token.margin, token.runner_up, token.contributions) == (np.inf, None, ())
            continue
        rival, best = token.runner_up_labels, max(others)
        assert rival[t] == token.runner_up != token.label
        assert scored[tuple(rival)] == pytest.approx(best)


def test_random_chains_of_numbers_are_explained_too():
    rng = np.random.default_rng(5)
    X, Y = chains(rng, n=12, longest=5)
    svm = SequenceSVM(C=0.3, start=True, end=True, bias=True, random_state=0).fit(X, Y)
    for x in X:
        told = svm.explain(x)
        for token in told:
            assert sum(part.value for part in token.contributions) == pytest.approx(token.margin, abs=1e-9)
            assert {part.name for part in token.contributions if part.kind == "feature"} <= set(svm.feature_names_)
        assert len(str(told).splitlines()) == len(told) + 1


def test_the_table_has_a_line_for_each_token_and_probabilities_once_calibrated():
    svm = SequenceSVM(random_state=0).fit(X, Y)
    lines = str(svm.explain(NEW)).splitlines()
    assert [line.split()[1] for line in lines[1:]] == ["the", "old", "cat", "barks"]
    assert "runner-up" in lines[0]
    assert svm.explain(NEW)[0].probability is None
    told = svm.calibrate(X, Y).explain(NEW)
    for token, marginals in zip(told, svm.predict_marginals_single(NEW), strict=True):
        assert token.probability == marginals[token.label]
    assert "  p  " in str(told)


def test_words_and_matrices_are_shown_as_they_are():
    words = SequenceSVM(random_state=0).fit([["the", "dog"], ["dog"]], [["D", "N"], ["N"]]).explain(["the", "ox"])
    assert [token.token for token in words] == ["the", "ox"]
    one = [("D", "N"), (None, "D"), (None, "N"), ("N", None)]
    only = SequenceSVM(random_state=0, allowed_transitions=one).fit([["the", "dog"], ["ox"]], [["D", "N"], ["N"]])
    alone = only.explain(["the", "dog"])
    assert [token.runner_up for token in alone] == [None, None]
    assert [token.contributions for token in alone] == [(), ()]
    assert "inf" in str(alone)


def test_the_word_of_a_dict_is_its_first_text():
    x = [{"bias": 1.0, "first": True, "word": "the", "tag": "DT"}, {"bias": 1.0}]
    lines = str(SequenceSVM(random_state=0).fit([x], [["D", "N"]]).explain(x)).splitlines()
    assert [line.split()[1] for line in lines[1:]] == ["the", "N"], "numbers are no word"
