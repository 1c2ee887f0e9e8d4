"""Templates: the features of every token beside a plain definition, and taggers that are given words."""

from contextlib import nullcontext
from itertools import product

import numpy as np
import pytest
from compiled import nothing_compiled
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import maxmargin as mm
from maxmargin.data.attributes import Attributes, names_of
from maxmargin.features import TokenFeatures

SENTENCES = [["The", "old", "Man", "sails"], ["New", "York"], ["a"], ["U.S.", "of", "A-1984", "New", "York", "City"]]
TAGGED = [[(word, word[:1]) for word in sentence] for sentence in SENTENCES]
LABELS = [[word[-1] for word in sentence] for sentence in SENTENCES]


def plainly(sentence, t, window, affixes, lowercase, pairs):
    """The features of a word, one by one."""
    words = [word.lower() if lowercase else word for word in sentence]

    def at(k):
        return words[k] if 0 <= k < len(words) else "<s>" if k < 0 else "</s>"

    near = range(-window, window + 1)
    found = {f"word[{k}]={at(t + k)}" for k in near}
    found |= {f"word[{k}]|word[{k + 1}]={at(t + k)}|{at(t + k + 1)}" for k in (-1, 0) if pairs and window}
    for k in range(1, min(affixes, len(words[t])) + 1):
        found |= {f"prefix{k}={words[t][:k]}", f"suffix{k}={words[t][-k:]}"}
    return found


@pytest.mark.parametrize(
    ("window", "affixes", "lowercase", "pairs"), [*product((0, 2), (0, 3), (True, False), (True, False))]
)
def test_templates_are_what_they_say(window, affixes, lowercase, pairs):
    made = TokenFeatures(window, affixes, shape=False, lowercase=lowercase, pairs=pairs).transform(SENTENCES)
    assert len(made) == len(SENTENCES)
    for i, sentence in enumerate(SENTENCES):
        for t, features in enumerate(made[i]):
            assert len(features) == len(set(features))
            assert set(features) == plainly(sentence, t, window, affixes, lowercase, pairs)


def test_columns_shapes_and_gazetteers():
    templates = TokenFeatures(0, 0, gazetteers={"city": ["new york", "York City"], "none": []})
    last = templates.transform(SENTENCES)[3]
    assert last[2] == ["word[0]=a-1984", "shape=X-d"]
    assert [features[-1] for features in last[3:]] == ["in:city=B", "in:city=I", "shape=Xx"]
    tagged = TokenFeatures(1, 0, shape=False, columns=["word", "initial"]).transform(TAGGED)
    assert "initial[0]|initial[1]=N|Y" in tagged[1][0]
    runs = TokenFeatures(1, 0, columns=["word", "initial"]).transform(TAGGED)[1][0]
    assert [name for name in runs if name.count("|") == 4] == ["initial[-1]|initial[0]|initial[1]=<s>|N|Y"]
    assert (
        tagged[1]
        == TokenFeatures(1, 0, shape=False).transform([[{"word": w, "initial": w[0]} for w in s] for s in SENTENCES])[1]
    )


def test_a_tagger_takes_words(tmp_path):
    tagger = mm.SequenceSVM(features=TokenFeatures(1, 2, gazetteers={"city": ["New York"]}), random_state=0)
    tagger.fit(SENTENCES, LABELS)
    assert [list(y) for y in tagger.predict(SENTENCES)] == LABELS
    tagger.save(tmp_path / "tagger.mm")
    again = mm.load(tmp_path / "tagger.mm")
    assert again.features.get_params() == tagger.features.get_params()
    assert [list(y) for y in again.predict(SENTENCES)] == LABELS
    assert again.certify(SENTENCES, LABELS).upper == tagger.certify(SENTENCES, LABELS).upper
    piped = make_pipeline(clone(tagger.features), mm.SequenceSVM(random_state=0)).fit(SENTENCES, LABELS)
    np.testing.assert_array_equal(piped[-1].coef_, tagger.coef_)
    by_hand = mm.SequenceSVM(random_state=0).fit([tagger.features.transform([x])[0] for x in SENTENCES], LABELS)
    assert by_hand.certificate_.upper == pytest.approx(tagger.certificate_.upper, rel=1e-3)


@pytest.mark.parametrize("way", ["fitted", "loaded", "plain Python"])
@pytest.mark.parametrize(
    ("templates", "column"),
    [
        (TokenFeatures(), None),
        (TokenFeatures(1, 2, lowercase=False, triples=False, gazetteers={"city": ["New York"]}), "a"),
        (TokenFeatures(2, 0, shape=False), "a=b|c"),
        (TokenFeatures(1, 0, pairs=False), "a"),
        (TokenFeatures(0, 1, pairs=False), None),
    ],
)
def test_words_are_encoded_as_lists_of_their_names_are(templates, column, way, tmp_path):
    known = [*SENTENCES, ["a|b", "c", "x=y"], ["b|c"], [], ["word[0]=a", "|", "=", "a|b|c"]]
    new = [["a", "b|c", "unmet", "York", "a|b", "c"], [], ["Québec", "", "|", "old", "=", "A-1984"], *known]
    labels = [[len(word) for word in x] for x in known]
    if column is not None:
        known, new = ([[{"word": w, column: w[::-1]} for w in x] for x in X] for X in (known, new))
    tagger = mm.SequenceSVM(features=templates, random_state=0).fit(known, labels)
    if way == "loaded":
        tagger.save(tmp_path / "tagger.mm")
        tagger = mm.load(tmp_path / "tagger.mm")
    with nothing_compiled() if way == "plain Python" else nullcontext():
        found = tagger.prepare(new)
    expected = Attributes(tagger.feature_names_).encode([*templates.transform(new)])
    for part in ("indptr", "indices", "values", "offsets"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))


def test_streams_learn_names_as_they_come():
    tagger = mm.SequenceSVM(features=TokenFeatures(), random_state=0)
    for x, y in zip(SENTENCES, LABELS, strict=True):
        tagger.partial_fit([x], [y], classes=sorted({label for labels in LABELS for label in labels}))
    assert set(tagger.feature_names_) == set(names_of(TokenFeatures().transform(SENTENCES)))


def test_templates_are_searched():
    search = GridSearchCV(
        mm.SequenceSVM(features=TokenFeatures(), random_state=0), {"features__window": [0, 1]}, cv=2
    ).fit(SENTENCES * 2, LABELS * 2)
    assert set(search.best_params_) == {"features__window"}


@pytest.mark.parametrize(
    ("templates", "X", "said"),
    [
        (TokenFeatures(window=-1), SENTENCES, "window"),
        (TokenFeatures(affixes=1.5), SENTENCES, "affixes"),
        (TokenFeatures(shape="yes"), SENTENCES, "shape"),
        (TokenFeatures(gazetteers={"city": "Rome"}), SENTENCES, "gazetteers"),
        (TokenFeatures(), ["to be"], "Split it into words"),
        (TokenFeatures(), [["a", 3]], "Sequence 0, token 1: got 3"),
        (TokenFeatures(), [["a"], [("b", "X")]], "Sequence 1, token 0"),
        (TokenFeatures(), [[("a", "X"), ("b",)]], "Sequence 0, token 1"),
        (TokenFeatures(), [[{"word": "a", "tag": "X"}, {"word": "b"}]], "word and tag"),
        (TokenFeatures(columns=["word"]), [[("a", "X")]], "columns= names them"),
    ],
)
def test_wrong_calls(templates, X, said):
    with pytest.raises(ValueError, match=said):
        templates.transform(X)
