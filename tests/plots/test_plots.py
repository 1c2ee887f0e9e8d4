"""Pictures: what they show, not how it looks."""

import numpy as np
import pytest

from maxmargin import SequenceSVM
from maxmargin.plots import convergence, segmentation, transitions


@pytest.fixture(scope="module")
def tagger():
    X = [[["a"], ["b"], ["c"]], [["b"], ["c"]], [["a"], ["c"]]]
    Y = [["A", "B", "C"], ["B", "C"], ["A", "C"]]
    return SequenceSVM(allowed_transitions="observed", random_state=0).fit(X, Y)


def test_transitions_shows_the_table_with_forbidden_pairs_left_out(tagger):
    ax = transitions(tagger)
    drawn = ax.images[0].get_array()
    assert np.allclose(drawn.data, tagger.transitions_)
    assert np.array_equal(drawn.mask, tagger.model_.forbidden)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["A", "B", "C"]


def test_transitions_draws_the_strongest_labels_only(tagger):
    assert transitions(tagger, most=2).images[0].get_array().shape == (2, 2)
    with pytest.raises(ValueError, match="a fitted SequenceSVM"):
        transitions("nothing")


def test_convergence_against_oracle_calls_ends_at_their_number(tagger):
    bounds, gap = convergence(tagger, against="oracle_calls")
    assert bounds.lines[1].get_xdata()[-1] == tagger.history_[-1].oracle_calls
    assert gap.get_xlabel() == "oracle calls"
    with pytest.raises(ValueError, match="against must be"):
        convergence(tagger, against="days")


def test_segmentation_draws_labels_and_the_borders_between_them():
    labels = np.array([[0, 0, 1], [0, 1, 1]])
    ax = segmentation(labels, image=np.zeros((4, 6)), names=["a", "b"])
    assert len(ax.images) == 2
    assert len(ax.collections[0].get_segments()) == 3  # two upright borders and one level one
    with pytest.raises(ValueError, match="height × width"):
        segmentation(np.zeros((2, 2)))
