"""Schemes of segments against all sequences of labels that they allow, written out."""

from itertools import product

import pytest
from hypothesis import given, settings, strategies as st
from spelling import LETTERS, labels_of, segmentations, spelled, spellings

from maxmargin.data import convert_segments
from maxmargin.data.segments import check_scheme, fits
from maxmargin.metrics import segments

EXAMPLES = settings(max_examples=60, deadline=None)
ALL = [*LETTERS]


@pytest.mark.parametrize("scheme", ALL)
@pytest.mark.parametrize("types", [("X", "Y"), ("_",)])
def test_a_scheme_allows_what_spells_segments_and_nothing_else(scheme, types):
    labels = labels_of(scheme, types)
    for n in range(1, 4):
        legal = spellings(n, scheme, types)
        assert {y for y in product(labels, repeat=n) if fits([list(y)], scheme)} == set(legal)
        for y, found in legal.items():
            assert segments([list(y)], scheme) == segments([list(y)]) == [found]


@EXAMPLES
@given(st.data())
def test_sequences_side_by_side_do_not_touch(data):
    scheme = data.draw(st.sampled_from(ALL))
    choices = {n: list(segmentations(n)) for n in range(4)}
    found = [data.draw(st.sampled_from(choices[n])) for n in data.draw(st.lists(st.integers(0, 3), max_size=4))]
    Y = [spelled(s, max((end for _, end, _ in s), default=1), scheme) for s in found]
    assert fits(Y, scheme)
    assert segments(Y, scheme) == segments(Y) == found


@pytest.mark.parametrize("scheme", ALL)
@pytest.mark.parametrize("other", ALL)
def test_converted_labels_spell_the_same_segments(scheme, other):
    for y, found in spellings(4, scheme).items():
        assert convert_segments([y], other) == [spelled(found, 4, other)]


@EXAMPLES
@given(st.lists(st.lists(st.sampled_from(["O", "B-X", "I-X", "E-X", "S-X", "I-Y", "B", "I"]), max_size=5)))
def test_labels_that_break_their_scheme_are_mended_as_they_are_read(Y):
    for scheme in ALL:
        mended = convert_segments(Y, scheme)
        assert fits(mended, scheme)
        assert segments(mended, scheme) == segments(Y)


def test_types_may_contain_whatever_follows_the_first_hyphen():
    Y = [["B-a-b", "I-a-b", "B-städte 1", "O"]]
    assert segments(Y, "iob2") == [[(0, 2, "a-b"), (2, 3, "städte 1")]]
    assert convert_segments(Y, "bilou") == [["B-a-b", "L-a-b", "U-städte 1", "O"]]


@pytest.mark.parametrize(
    ("y", "scheme", "message"),
    [
        (["O", "I-X"], "iob2", r"Y\[1\] has 'I-X' after 'O' at token 1, .*labels of 'iob1': give that"),
        (["B-X", "I-Y"], "iob2", r"Y\[1\] has 'I-Y' after 'B-X' at token 1"),
        (["I-X", "O"], "iob2", r"Y\[1\] begins with 'I-X' at token 0"),
        (["B-X", "O"], "iob1", r"begins with 'B-X' .*labels of 'iob2'"),
        (["O", "B-X"], "iobes", r"Y\[1\] ends with 'B-X' at token 1, which segments='iobes' does not allow"),
        (["O", "I-X", "B-Y"], "iob1", r"'B-Y' after 'I-X' at token 2.*\. Convert them: .*\(Y, 'iob1'\)"),
        (["O", "E-X"], "iob2", r"Y\[1\] has the label 'E-X' at token 1, .*labels are O, B-type, I-type"),
    ],
)
def test_labels_that_break_the_scheme_are_named(y, scheme, message):
    with pytest.raises(ValueError, match=message):
        check_scheme([["O"], y], scheme)
