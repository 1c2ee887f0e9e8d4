"""Shares of words with the right head and relation."""

import numpy as np
import pytest

from maxmargin.metrics import attachment_scores


def test_heads_alone_have_no_labelled_score():
    scores = attachment_scores([[2, 0], [0]], [np.array([0, 1]), np.array([0])])
    assert scores == (1 / 3, None, 3)
    assert type(scores.unlabelled) is float


def test_a_right_relation_of_a_wrong_head_does_not_count():
    truth, found = [[(2, "a"), (0, "b"), (2, "c")]], [[(3, "a"), (0, "b"), (2, "d")]]
    assert attachment_scores(truth, found) == (2 / 3, 1 / 3, 3)


@pytest.mark.parametrize(("truth", "found"), [([[0]], []), ([[0, 1]], [[0]])])
def test_trees_of_other_sentences_are_refused(truth, found):
    with pytest.raises(ValueError, match="Give"):
        attachment_scores(truth, found)
