"""Taggers with templates on CoNLL files that are larger than their memory, and on streams of chunks."""

import numpy as np
import pytest

import maxmargin as mm
from maxmargin import SequenceSVM
from maxmargin.data import read_conll, write_conll
from maxmargin.features import TokenFeatures
from maxmargin.protocols import OracleError

MEMORY = 400_000
SETTINGS = {"C": 0.3, "tol": 1e-2, "random_state": 0, "segments": "iob2"}
LONG = "antidisestablishmentarianism-" * 6
NAMES = {"PER": ["Ada", "Grace Hopper", "Emmy Noether"], "LOC": ["Rome", "New York", "Lima"]}


def sentences(n, seed=0):
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        x, y = [], []
        for _ in range(rng.integers(8, 20)):
            kind = str(rng.choice(["O", "O", "PER", "LOC"]))
            words = [f"{LONG}{rng.integers(500)}"] if kind == "O" else str(rng.choice(NAMES[kind])).split()
            x += [(word, "NNP" if word.istitle() else "X") for word in words]
            y += ["O"] if kind == "O" else [f"B-{kind}", *[f"I-{kind}"] * (len(words) - 1)]
        X.append(x)
        Y.append(y)
    return X, Y


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    place = tmp_path_factory.mktemp("stream") / "train.conll"
    write_conll(place, *sentences(350))
    assert place.stat().st_size > MEMORY
    return place


@pytest.fixture(scope="module")
def whole(path):
    """Trained on everything at once."""
    return SequenceSVM(features=TokenFeatures(window=0, affixes=1), **SETTINGS).fit(*read_conll(path))


def agree(a, b):
    """Two certificates of one problem: no lower bound is above the other's upper bound."""
    assert a.lower <= b.upper
    assert b.lower <= a.upper


@pytest.mark.parametrize("chunk_rows", [16, 40])
def test_a_file_larger_than_memory(path, whole, chunk_rows):
    source = mm.data.open(path, chunk_rows=chunk_rows)
    svm = SequenceSVM(features=TokenFeatures(window=0, affixes=1), memory=MEMORY, **SETTINGS).fit(source)
    assert max(record.bytes for record in svm.history_) <= MEMORY
    assert svm.certificate_.relative_gap <= svm.tol
    agree(svm.certificate_, whole.certificate_)
    assert set(svm.feature_names_) == set(whole.feature_names_)
    X, Y = read_conll(path)
    for again in (svm.certify(mm.data.open(path)), svm.certify(X, Y)):
        assert again.upper == pytest.approx(svm.certificate_.upper, rel=1e-9)
        agree(again, whole.certificate_)
    held_out, labels = sentences(50, seed=1)
    assert svm.score(held_out, labels) == pytest.approx(whole.score(held_out, labels), abs=0.05)


def test_a_stream_of_chunks(path, whole, tmp_path):
    svm = SequenceSVM(features=TokenFeatures(window=0, affixes=1), memory=MEMORY, **SETTINGS)
    for chunk in mm.data.open(path, chunk_rows=10).chunks():
        svm.partial_fit(chunk.x, chunk.y, classes=whole.classes_.tolist())
    assert set(svm.feature_names_) == set(whole.feature_names_), "names are learned as they come"
    X, Y = read_conll(path)
    certificate = svm.certify(X, Y)
    agree(certificate, whole.certificate_)
    assert svm.certificate_.lower <= whole.certificate_.upper
    assert svm.score(X, y=Y) > 0.9
    svm.save(tmp_path / "m.mm")
    assert mm.load(tmp_path / "m.mm").predict(X).tolist() == svm.predict(X).tolist()


def test_too_little_memory_is_one_error_that_says_how_much_is_needed(path):
    with pytest.raises(MemoryError, match="memory=10 bytes is too little"):
        SequenceSVM(features=TokenFeatures(), memory=10, **SETTINGS).fit(mm.data.open(path))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Rome NNP", "line 3 has 2 columns"),
        ("Rome NNP I-LOC", r"bad\.conll, line 3: .*'I-LOC'"),
        ("Rome NNP LOC", r"bad\.conll, line 3: .*'LOC'"),
    ],
)
def test_errors_in_a_file_end_training_in_words(tmp_path, line, said):
    bad = tmp_path / "bad.conll"
    bad.write_text(f"Ada NNP B-PER\n\n{line}\n\nGrace NNP B-PER\nleft X O\n")
    with pytest.raises(mm.data.DataError, match=said):
        SequenceSVM(features=TokenFeatures(), **SETTINGS).fit(mm.data.open(bad))


def test_a_label_that_the_model_does_not_know_is_named(path, whole, tmp_path):
    other = tmp_path / "other.conll"
    other.write_text("Ada NNP B-PER\n\nLima NNP B-GPE\n")
    with pytest.raises(OracleError, match=r"other\.conll, line 3: Sequence 1 has the label 'B-GPE' at token 0"):
        whole.certify(mm.data.open(other))
    with pytest.raises(ValueError, match=r"Sequence 1 has the label 'B-GPE' at token 0"):
        whole.certify(*read_conll(other))


def test_labels_that_a_stream_did_not_begin_with_are_named():
    svm = SequenceSVM(random_state=0).partial_fit([["a", "b"]], [["A", "B"]])
    for more in ({"classes": ["A", "B", "C"]}, {}):
        with pytest.raises(ValueError, match="'C' was neither named nor met in the first call"):
            svm.partial_fit([["c"]], [["A" if more else "C"]], **more)
    svm.partial_fit([["c"]], [["A"]], classes=["A"])
    assert svm.classes_.tolist() == ["A", "B"]
