"""min_count: rare features are left out, however sequences are given, as if they had been before."""

from collections import Counter

import numpy as np
import pytest

import maxmargin as mm
from maxmargin import SequenceSVM
from maxmargin.features import TokenFeatures

SENTENCES = ["the dog barks", "a cat sleeps", "old dogs bark", "sleep", "the old cat", "a dog", "the cat barks"]
WORDS = [s.split() for s in SENTENCES]
TAGS = {"the": "DET", "a": "DET", "old": "ADJ", "dog": "NOUN", "cat": "NOUN", "dogs": "NOUN"}
Y = [[TAGS.get(word, "VERB") for word in x] for x in WORDS]
DICTS = [[{"word": word, "size": len(word), "last": word[-1]} for word in x] for x in WORDS]
TEMPLATES = TokenFeatures(window=1, affixes=2)


def frequent(lists, least):
    count = Counter(name for x in lists for token in x for name in token)
    return [[[name for name in token if count[name] >= least] for token in x] for x in lists]


def source():
    return mm.data.open(list(zip(WORDS, Y, strict=True)), chunk_rows=2)


@pytest.mark.parametrize("given", ["templates", "a source", "lists"])
def test_it_is_as_if_rare_features_had_not_been_there(given):
    lists = [list(x) for x in TEMPLATES.transform(WORDS)]
    expected = SequenceSVM(random_state=0).fit(frequent(lists, 2), Y)
    svm = SequenceSVM(min_count=2, features=None if given == "lists" else TEMPLATES, random_state=0)
    data = {"templates": (WORDS, Y), "a source": (source(),), "lists": (lists, Y)}[given]
    svm.fit(*data)
    assert set(svm.feature_names_) == set(expected.feature_names_)
    assert (
        svm.certificate_.lower <= expected.certificate_.upper and expected.certificate_.lower <= svm.certificate_.upper
    )
    again = svm.certify(*data)
    assert again.lower == pytest.approx(svm.certificate_.lower) and again.upper == pytest.approx(svm.certificate_.upper)


def test_values_of_dicts_stay_with_their_features(tmp_path):
    svm = SequenceSVM(min_count=3, random_state=0).fit(DICTS, Y)
    assert svm.feature_names_ == ["word=the", "size", "last=e", "last=s", "word=cat", "last=t"]
    prepared = svm.prepare(DICTS)[0].toarray()
    np.testing.assert_array_equal(prepared[1], [0, 3, 0, 0, 0, 0])
    svm.save(tmp_path / "m.mm")
    again = mm.load(tmp_path / "m.mm")
    assert again.min_count == 3 and again.predict(DICTS).tolist() == svm.predict(DICTS).tolist()


def test_what_it_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="min_count must be a whole number of at least 1, got 0"):
        SequenceSVM(min_count=0).fit(WORDS, Y)
    with pytest.raises(ValueError, match=r"None of the \d+ features is in 100 tokens"):
        SequenceSVM(min_count=100).fit(WORDS, Y)
    with pytest.raises(ValueError, match="these are matrices"):
        SequenceSVM(min_count=2).fit([np.eye(3)], [["A", "B", "C"]])
    with pytest.raises(ValueError, match="partial_fit sees a chunk"):
        SequenceSVM(min_count=2).partial_fit(WORDS, Y)
