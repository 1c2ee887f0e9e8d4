"""Scores of segments against seqeval, in both of its modes, and against counts by hand."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from seqeval import scheme as their_schemes
from seqeval.metrics import accuracy_score
from seqeval.metrics.sequence_labeling import get_entities, precision_recall_fscore_support as default_mode
from seqeval.metrics.v1 import precision_recall_fscore_support as strict_mode

from maxmargin.metrics import Score, SegmentCounts, segment_scores, segments

EXAMPLES = settings(max_examples=60, deadline=None)
THEIRS = {name: getattr(their_schemes, name.upper()) for name in ("iob1", "iob2", "iobes", "bilou")}
LETTERS = {None: "BIES", "iob1": "BI", "iob2": "BI", "iobes": "BIES", "bilou": "BILU"}


@st.composite
def answered(draw, schemes=tuple(LETTERS)):
    """A scheme, true labels and answers of the same lengths, which may break the scheme."""
    scheme = draw(st.sampled_from(schemes))
    types = draw(st.sampled_from([["-X"], ["-X", "-Y"], ["", "-Y"]]))
    label = st.sampled_from(["O", *(letter + kind for letter in LETTERS[scheme] for kind in types)])
    true = draw(st.lists(st.lists(label, min_size=1, max_size=7), min_size=1, max_size=4))
    keep = draw(st.lists(st.booleans(), min_size=28, max_size=28))
    answer = [[a if keep[7 * i + t] else draw(label) for t, a in enumerate(y)] for i, y in enumerate(true)]
    return scheme, true, answer


def _theirs(scheme, true, answer, average):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of divisions by zero
        if scheme is None:
            return default_mode(true, answer, average=average)
        return strict_mode(true, answer, average=average, scheme=THEIRS[scheme])


@settings(max_examples=300, deadline=None)
@given(answered())
def test_segments_and_scores_are_those_of_seqeval(case):
    scheme, true, answer = case
    if scheme is None:
        expected = [[(start, end + 1, kind) for kind, start, end in get_entities(y)] for y in true]
    else:
        listed = their_schemes.Entities(true, THEIRS[scheme]).entities
        expected = [[(entity.start, entity.end, entity.tag) for entity in y] for y in listed]
    assert segments(true, scheme) == expected
    scores = segment_scores(true, answer, scheme)
    for average in ("micro", "macro", "weighted"):
        theirs = np.nan_to_num(np.array(_theirs(scheme, true, answer, average), float))  # of no types at all
        np.testing.assert_allclose(getattr(scores, average), theirs, atol=1e-12)
    by_type = np.array(_theirs(scheme, true, answer, None)).T
    np.testing.assert_allclose(np.array([*scores.by_type.values()]).reshape(-1, 4), by_type, atol=1e-12)
    assert scores.accuracy == pytest.approx(accuracy_score(true, answer), abs=1e-12)


@EXAMPLES
@given(answered(), st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_a_weight_counts_a_sequence_as_often(case, weights):
    scheme, true, answer = case
    weights = weights[: len(true)]
    several = [[y for y, n in zip(Y, weights, strict=True) for _ in range(n)] for Y in (true, answer)]
    weighted, plain = segment_scores(true, answer, scheme, np.array(weights)), segment_scores(*several, scheme)
    for average in ("micro", "macro", "weighted"):
        assert getattr(weighted, average) == pytest.approx(getattr(plain, average), abs=1e-12)
    assert weighted.by_type == plain.by_type and list(weighted.by_type) == sorted(plain.by_type)
    assert weighted.accuracy == pytest.approx(plain.accuracy, abs=1e-12)


@EXAMPLES
@given(answered(), answered())
def test_chunks_add_up(first, second):
    counts = SegmentCounts()
    counts.add(*first[1:])
    counts.add(*second[1:])
    together = segment_scores(first[1] + second[1], first[2] + second[2])
    assert counts.scores() == together


def test_figures_by_hand():
    true = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "O", "O", "B-ORG"], []]
    answer = [["B-PER", "I-PER", "O", "O"], ["B-LOC", "B-LOC", "O", "B-LOC"], []]
    scores = segment_scores(true, answer)
    assert scores.by_type == {
        "LOC": Score(1 / 3, 1 / 2, 2 / 5, 2),
        "ORG": Score(0.0, 0.0, 0.0, 1),
        "PER": Score(1.0, 1.0, 1.0, 1),
    }
    assert scores.micro == Score(2 / 4, 2 / 4, 4 / 8, 4)
    assert scores.macro == pytest.approx(((1 / 3 + 1) / 3, 1.5 / 3, 1.4 / 3, 4))
    assert scores.weighted == pytest.approx(((2 / 3 + 1) / 4, 2 / 4, 1.8 / 4, 4))
    assert scores.accuracy == 5 / 8
    assert str(scores).splitlines()[1].split() == ["LOC", "0.3333", "0.5000", "0.4000", "2"]
    assert [line.split()[0] for line in str(scores).splitlines()[4:]] == ["micro", "macro", "weighted", "accuracy"]


def test_without_segments_all_is_zero():
    for Y in ([], [[]], [["O", "O"]]):
        scores = segment_scores(Y, Y)
        assert scores.by_type == {} and scores.micro == scores.macro == scores.weighted == Score(0.0, 0.0, 0.0, 0)
        assert scores.accuracy == float(Y == [["O", "O"]])


def test_answers_may_be_arrays():
    true = np.empty(2, object)
    true[:] = [np.array(["B-X", "I-X"]), ["O"]]
    assert segments(true) == [[(0, 2, "X")], []]
    assert segment_scores(true, (("B-X", "O"), ("O",))).micro.f1 == 0.0
