"""Expected calibration error and reliability bins, from the definition."""

import numpy as np
import pytest

from maxmargin import SequenceSVM
from maxmargin.metrics import calibration_error, reliability_bins
from maxmargin.plots import reliability


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_bins_hold_all_answers_once(strategy, rng):
    p = rng.random(200)
    right = rng.random(200) < p
    bins = reliability_bins(right, p, n_bins=7, strategy=strategy)
    assert bins.size.sum() == 200
    assert (np.diff(bins.confidence) > 0.0).all()
    assert bins.confidence @ bins.size == pytest.approx(p.sum())
    assert bins.right @ bins.size == pytest.approx(right.sum())
    if strategy == "quantile":
        assert np.ptp(bins.size) <= 1
    else:
        expected = [np.sum((p >= a / 7) & (p < (a + 1) / 7)) for a in range(7)]
        np.testing.assert_array_equal(bins.size, [n for n in expected if n])


def test_error_is_the_weighted_difference(rng):
    p = rng.random(60)
    right = rng.random(60) < 0.5
    expected = 0.0
    for a in range(4):
        inside = (p >= a / 4) & (p < (a + 1) / 4)
        expected += abs(p[inside].sum() - right[inside].sum()) / 60
    assert calibration_error(right, p, n_bins=4) == pytest.approx(expected)
    order = rng.permutation(60)
    assert calibration_error(right[order], p[order], n_bins=4) == pytest.approx(expected)


def test_perfect_and_hopeless():
    assert calibration_error([True, False], [1.0, 0.0]) == 0.0
    assert calibration_error([False, True], [1.0, 0.0]) == 1.0
    assert calibration_error([True] * 4, [0.5] * 4, n_bins=1) == 0.5


def test_sequences_and_tables_are_answers_of_the_most_probable_label():
    classes = np.array(["A", "B", "C"])
    tables = [np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]), np.array([[0.2, 0.5, 0.3]])]
    Y = [["A", "B"], ["B"]]
    plain = calibration_error([True, False, True], [0.7, 0.6, 0.5])
    assert calibration_error(Y, tables, classes) == pytest.approx(plain)
    assert calibration_error(["A", "B", "B"], np.concatenate(tables), classes) == pytest.approx(plain)
    assert calibration_error([["A", "unknown"], ["B"]], tables, classes) == pytest.approx(plain)


def test_the_diagram_shows_the_bins_and_compares_models():
    right, p = [True, True, False, True], [0.2, 0.8, 0.8, 0.95]
    ax = reliability(right, p, n_bins=4, name="one")
    bins = reliability_bins(right, p, n_bins=4)
    np.testing.assert_array_equal(ax.lines[1].get_xdata(), bins.confidence)
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), bins.right)
    assert reliability(right, p, ax=ax, n_bins=4, name="two", strategy="quantile") is ax
    assert len(ax.lines) == 3
    assert [text.get_text().split(":")[0] for text in ax.get_legend().get_texts()] == ["one", "two"]


def test_an_estimator_is_no_labels():
    with pytest.raises(TypeError, match="y_true must hold labels, got SequenceSVM"):
        calibration_error(SequenceSVM(), [["a"]], ["A"])
