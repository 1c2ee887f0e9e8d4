"""Reports: whole, safe, and true. How they look is for eyes."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.metrics import confusion_matrix, mean_absolute_error, r2_score
from written_pages import Reader, check_self_contained

from maxmargin import LinearSVC, LinearSVR, data, report
from maxmargin.protocols import Chunk
from maxmargin.report.tallies import Residuals, measure, to_width


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


@pytest.fixture(scope="module")
def digit_model(digits):
    X, y = digits
    return LinearSVC(C=0.1, random_state=0).fit(X[:900], y[:900])


def test_headline_is_the_certificate(digit_model):
    reader = Reader(report.page(digit_model))
    gap = 100 * digit_model.certificate_.relative_gap
    said = float(re.search(r"within ([\d.e-]+) % of the best possible", reader.words).group(1))
    assert said == pytest.approx(gap, rel=0.05)
    assert "Training ended before" not in reader.words


def test_missed_goal_is_said(digits):
    X, y = digits
    with pytest.warns(UserWarning, match="stopped after"):
        model = LinearSVC(max_passes=2, tol=1e-9, random_state=0).fit(X, y)
    assert "Training ended before the goal" in Reader(report.page(model)).words


def test_text_from_outside_is_escaped():
    X, y = load_breast_cancer(as_frame=True, return_X_y=True)
    X = (X / X.std()).rename(columns={"mean area": "<script>alert('area')</script>"})
    labels = np.where(y == 1, "<script>alert(1)</script>", '"malignant" & <b>bold</b>')
    model = LinearSVC(random_state=0).fit(X, labels)
    source = data.open(X.to_numpy(), labels=labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        page = report.page(model, source, {"title": "</title><script>alert(2)</script>", "data": "<img src=x>"})
    reader = check_self_contained(page)
    assert page.count("<script") == 1 and "<b>bold" not in page  # the one is ours
    assert "<script>alert('area')</script>" in reader.words
    assert "<img src=x>" in reader.words


def test_many_classes_are_a_list_of_mistakes_and_not_a_matrix(rng):
    centres, y = rng.normal(size=(30, 12)), rng.integers(0, 30, 900)
    X = centres[y] + 1.5 * rng.normal(size=(900, 12))
    model = LinearSVC(C=0.01, random_state=0).fit(X, y)
    reader = check_self_contained(report.page(model, data.open(X, labels=y, chunk_rows=97)))
    assert ("class", "confusion") not in reader.attributes
    table = confusion_matrix(y, model.predict(X))
    np.fill_diagonal(table, 0)
    first = next(row for i, row in enumerate(reader.rows) if reader.rows[i - 1][:1] == ["truth"])
    assert int(first[2]) == table.max() == table[int(first[0]), int(first[1])]
    assert "The first 12 of 30 classes are shown" in reader.words


def test_labels_not_met_in_training_are_told_apart(digits, digit_model):
    X, y = digits[0][900:1000], digits[1][900:1000].copy()
    y[[7, 50]] = 77
    tally, _ = measure(digit_model, data.open(X, labels=y, chunk_rows=30))
    assert (tally.unseen, tally.first_unseen) == (2, (77, 7))
    assert tally.score == np.mean(digit_model.predict(X) == y)
    words = Reader(report.page(digit_model, data.open(X, labels=y, chunk_rows=97))).words
    assert "2 rows have a label that was not in the training data (the first is 77 in row 8, where the model" in words


def test_data_without_labels_still_has_a_summary(digits, digit_model):
    reader = Reader(report.page(digit_model, data.open(sp.csr_matrix(digits[0]))))
    assert ["rows", "1 797"] in reader.rows and "Answers on" not in reader.words


def test_regression_shows_r2_and_residuals():
    X, y = load_diabetes(return_X_y=True)
    model = LinearSVR(C=100.0, epsilon=1.0, random_state=0).fit(X, y)
    reader = check_self_contained(report.page(model, data.open(X, labels=y, chunk_rows=97)))
    facts = {row[0]: row[1] for row in reader.rows if len(row) == 2}
    assert float(facts["R²"].replace("−", "-")) == pytest.approx(model.score(X, y), rel=1e-3)
    assert float(facts["mean absolute error"]) == pytest.approx(mean_absolute_error(y, model.predict(X)), rel=1e-3)
    bars = reader.curves[-1]["panels"][0]["curves"][0]["values"]
    outside = re.search(r"Outside this picture: (\d+) rows?", reader.words)
    assert sum(bars) + int(outside.group(1) if outside else 0) == y.size
    assert sum(bars) >= 0.99 * y.size


def test_one_vs_rest_is_drawn_as_the_sum_of_its_problems(digits):
    X, y = digits
    model = LinearSVC(multi_class="ovr", C=0.1, random_state=0).fit(X, y)
    rows = Reader(report.page(model)).rows
    last = [row for row in rows if len(row) == 5 and row[0] == str(model.n_passes_)][-1]
    assert float(last[3]) == pytest.approx(model.certificate_.upper, rel=1e-6)


def test_heaviest_weights_are_the_heaviest(rng):
    X = rng.normal(size=(200, 40))
    y = X @ np.where(np.arange(40) == 17, 5.0, np.where(np.arange(40) == 4, -3.0, 0.01))
    words = Reader(report.page(LinearSVR(C=10.0, random_state=0).fit(X, y))).words
    assert re.search(r"for a larger answer feature 17 .* feature 4 −[\d.]+ 40 of 40 features", words)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.floats(1e-6, 1e6))
def test_residuals_do_not_depend_on_the_chunks(seed, rows, scale):
    rng = np.random.default_rng(seed)
    y, answers = scale * rng.standard_cauchy(100), scale * rng.normal(size=100)
    tally = Residuals()
    for begin in range(0, 100, rows):
        at = slice(begin, begin + rows)
        tally.add(Chunk(np.arange(100)[at], None, y[at]), answers[at])
    assert tally.score == pytest.approx(r2_score(y, answers), rel=1e-6, abs=1e-9)
    assert tally.histogram.sum() == tally.rows == 100
    edges = np.linspace(-tally.half_width, tally.half_width, tally.histogram.size + 1)
    below = np.cumsum(tally.histogram)[[511, 1023, 1535]]
    for edge, n in zip(edges[[512, 1024, 1536]], below, strict=True):
        assert n == np.sum(y - answers < edge)


@pytest.mark.parametrize(("sparse", "width"), [(False, 2), (True, 2), (True, 3), (False, 5), (True, 5)])
def test_rows_are_cut_or_filled(sparse, width):
    X = np.arange(6.0).reshape(2, 3)
    fitted = to_width(sp.csr_matrix(X) if sparse else X, width)
    expected = np.zeros((2, width))
    expected[:, : min(3, width)] = X[:, :width]
    assert np.array_equal(fitted.toarray() if sparse else fitted, expected)


def test_one_pass_is_told_in_a_table_and_not_drawn(digit_model):
    from maxmargin.report.curves import convergence

    whole = convergence(digit_model.history_, digit_model.tol)
    alone = convergence(digit_model.history_[:1], digit_model.tol)
    assert "data-chart" in whole and "data-chart" not in alone
    assert f"{digit_model.history_[0].lower:.8g}" in alone


def test_settings_stand_out_and_objects_are_named_by_their_class():
    from maxmargin.report.page import settings

    shown = settings(LinearSVC(solver=object(), regularizer=[1.5]))
    assert "<b>object</b>" in shown and "0x" not in shown
    assert "<b>[1.5]</b>" in shown and "<td>hinge</td>" in shown


def test_what_is_no_estimator_is_refused():
    with pytest.raises(TypeError, match="an estimator of maxmargin, got 5"):
        report.page(5)
