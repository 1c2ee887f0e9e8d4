"""Probabilities of SequenceSVM: of labels, labellings and segments; and that they belong to their weights."""

from itertools import combinations, product

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import maxmargin as mm
from maxmargin import SequenceSVM
from maxmargin.metrics import segments

X = [["to", "New", "York"], ["in", "York"], ["New", "York", "New", "Jersey"], ["to", "me"], ["Ann", "to", "Ann"]]
Y = [
    ["O", "B-LOC", "I-LOC"],
    ["O", "B-LOC"],
    ["B-LOC", "I-LOC", "B-LOC", "I-LOC"],
    ["O", "O"],
    ["B-PER", "O", "B-PER"],
]
NEW = ["to", "New", "Ann", "in", "York"]


def _fitted(**settings):
    return SequenceSVM(random_state=0, **settings).fit(X, Y)


@pytest.fixture(scope="module", params=[{}, {"segments": "iob2"}, {"start": True, "end": True, "bias": True}], ids=str)
def svm(request):
    return _fitted(**request.param).calibrate(X[:3], Y[:3], offsets=len(request.param) == 1)


def _listed(svm, x):
    """All labellings and their probabilities."""
    everything = [list(y) for y in product(svm.classes_.tolist(), repeat=len(x))]
    return everything, svm.sequence_proba([x] * len(everything), everything)


def test_probabilities_of_all_labellings_are_the_whole(svm):
    everything, p = _listed(svm, NEW)
    assert p.sum() == pytest.approx(1.0)
    table = svm.predict_proba([NEW])[0]
    for t, k in np.ndindex(table.shape):
        expected = sum(q for y, q in zip(everything, p, strict=True) if y[t] == svm.classes_[k])
        assert table[t, k] == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(np.log(p[p > 0]), svm.sequence_proba([NEW] * len(p), everything, log=True)[p > 0])


def test_marginals_come_as_sklearn_crfsuite_gives_them(svm):
    tables, marginals = svm.predict_proba(X), svm.predict_marginals(X)
    assert svm.predict_marginals_single(X[0]) == marginals[0]
    for table, tokens in zip(tables, marginals, strict=True):
        assert [list(token) for token in tokens] == [svm.classes_.tolist()] * len(tokens)
        np.testing.assert_array_equal(table, [list(token.values()) for token in tokens])


def test_by_default_the_predicted_labelling_is_asked_about(svm):
    np.testing.assert_array_equal(svm.sequence_proba(X), svm.sequence_proba(X, [list(y) for y in svm.predict(X)]))
    best = svm.k_best_proba(NEW, 4)
    assert [labels for labels, _ in best] == [labels for labels, _ in svm.k_best(NEW, 4)]
    assert best[0][1] == pytest.approx(svm.sequence_proba([NEW])[0])
    assert [p for _, p in best] == pytest.approx(svm.sequence_proba([NEW] * 4, [labels for labels, _ in best]).tolist())


@pytest.mark.parametrize("scheme", ["iob1", "iob2", "iobes", "bilou", "bmewo"])
def test_segments_are_read_in_all_schemes(scheme):
    Z = mm.data.convert_segments(Y, scheme)
    for settings in ({}, {"segments": scheme}):
        svm = SequenceSVM(random_state=0, **settings).fit(X, Z).calibrate(X, Z)
        x = NEW[:3]
        everything, p = _listed(svm, x)
        found = segments(everything)
        asked = [(*ends, kind) for ends in combinations(range(4), 2) for kind in ("LOC", "PER")]
        expected = [sum(p[i] for i, listed in enumerate(found) if segment in listed) for segment in asked]
        ours, none = svm.segment_proba([x, X[1]], [asked, []])
        np.testing.assert_allclose(ours, expected, atol=1e-12)
        assert none.size == 0


def test_without_prefixes_a_segment_is_a_run_of_one_label():
    svm = SequenceSVM(random_state=0).fit([["a", "b", "b"], ["b", "a"]], [[0, 1, 1], [1, 0]])
    svm.calibrate([["a", "b", "b"]], [[0, 1, 1]])
    everything, p = _listed(svm, ["a", "b", "a"])
    run = [q for y, q in zip(everything, p, strict=True) if y == [0, 1, 0]]
    tail = [q for y, q in zip(everything, p, strict=True) if y == [0, 1, 1]]
    found = svm.segment_proba([["a", "b", "a"]], [[(1, 2, 1), (1, 3, 1)]])[0]
    np.testing.assert_allclose(found, [*run, *tail])


def test_labels_that_are_ruled_out_have_no_probability():
    svm = _fitted(segments="iob2").calibrate(X, Y)
    assert svm.sequence_proba([["to", "York"]], [["O", "I-LOC"]]).tolist() == [0.0]
    assert svm.predict_marginals_single(["York"])[0]["I-LOC"] == 0.0
    with pytest.raises(ValueError, match="which segments='iob2' does not allow"):
        svm.calibrate([["to", "York"]], [["O", "I-LOC"]])
    observed = _fitted(allowed_transitions="observed")
    with pytest.raises(ValueError, match=r"Y\[1\].* ruled out, and probability 0"):
        observed.calibrate([X[0], ["to", "York"]], [Y[0], ["O", "I-LOC"]])


def test_probabilities_wait_for_calibration_and_leave_with_the_weights(svm):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        SequenceSVM().predict_proba(X)
    fresh = _fitted()
    for call in (
        lambda: fresh.predict_marginals(X),
        lambda: fresh.sequence_proba(X),
        lambda: fresh.k_best_proba(NEW),
        lambda: fresh.segment_proba(X, [[]] * len(X)),
    ):
        with pytest.raises(NotFittedError, match=r"call calibrate\(X_val, Y_val\)"):
            call()
    fresh.calibrate(X, Y, offsets=True)
    assert fresh.label_offsets_.shape == fresh.classes_.shape
    fresh.calibrate(X, Y)
    assert not hasattr(fresh, "label_offsets_")
    assert not hasattr(clone(fresh), "temperature_")
    assert not hasattr(fresh.fit(X, Y), "temperature_")
    stream = SequenceSVM(random_state=0).partial_fit(X, Y).calibrate(X, Y, offsets=True)
    assert not hasattr(stream.partial_fit(X, Y), "label_offsets_")


@pytest.mark.parametrize("offsets", [False, True])
def test_probabilities_are_saved(offsets, tmp_path):
    svm = _fitted().calibrate(X, Y, offsets=offsets)
    svm.save(tmp_path / "tagger.mm")
    loaded = mm.load(tmp_path / "tagger.mm")
    assert loaded.predict_marginals(X) == svm.predict_marginals(X)
    assert hasattr(loaded, "label_offsets_") == offsets
    svm.temperature_ = -1.0
    with pytest.raises(ValueError, match="temperature must be above 0"):
        svm.save(tmp_path / "wrong.mm")


def test_predictions_do_not_change(svm):
    plain = SequenceSVM(**svm.get_params()).fit(X, Y)
    assert list(plain.predict([NEW, *X])) == list(svm.predict([NEW, *X]))
    assert plain.k_best(NEW, 3) == svm.k_best(NEW, 3)


def test_labels_without_a_mistake_still_leave_a_doubt():
    svm = _fitted(C=10.0)
    assert svm.score(X, Y) == 1.0
    p = np.concatenate(svm.calibrate(X, Y, offsets=True).predict_proba([*X, NEW]))
    assert np.isfinite(svm.label_offsets_).all()
    assert (p > 0.0).all()
    assert (p < 1.0).all()


def test_scores_that_say_nothing_are_refused():
    svm = SequenceSVM(random_state=0).fit([["a", "b"], ["b"]], [["A", "B"], ["B"]])
    with pytest.raises(ValueError, match="no more than labels at random"):
        svm.calibrate([["b", "a"]] * 3, [["A", "A"], ["A", "A"], ["A", "B"]])
