"""Dual variables of structured fits, as tables."""

import numpy as np
import pytest
from generators import chains
from sklearn.base import clone
from user_models import InChunks, Tags, dense, tagged

from maxmargin import MultilabelSVM, SequenceSVM, StructuralSVM, load
from maxmargin.constraints import Searched, oracle_for
from maxmargin.models import Chain

COLUMNS = ["example", "answer", "loss", "share", "slack"]


@pytest.mark.parametrize("solver", ["auto", "cutting_plane", "frank_wolfe"])
def test_weights_and_lower_bound_are_made_of_active_constraints(solver):
    X, Y = tagged(np.random.default_rng(0), n=12)
    svm = StructuralSVM(Tags(), C=0.5, tol=1e-6, solver=solver, max_passes=5000, random_state=0).fit(X, Y)
    table, model = svm.active_constraints_, Tags()
    assert list(table) == COLUMNS
    assert (table["share"] > 0.0).all()
    assert (np.bincount(table["example"], table["share"]) <= 0.5 * (1 + 1e-9)).all()
    assert (np.diff(table["example"]) >= 0).all()
    v = np.zeros(svm.coef_.size)
    slack = np.zeros(len(X))
    for i, answer, loss, share, missed in zip(*table.values(), strict=True):
        row = dense(model.features(X[i], Y[i])) - dense(model.features(X[i], answer))
        assert loss == model.loss(Y[i], answer)
        assert missed == pytest.approx(loss - row @ svm.coef_, rel=1e-6, abs=1e-9)
        v += share * row
        slack[i] = max(slack[i], missed)
    np.testing.assert_allclose(v, svm.coef_, atol=2e-3)
    assert table["loss"] @ table["share"] - 0.5 * v @ v == pytest.approx(svm.certificate_.lower, rel=1e-6)
    assert 0.5 * svm.coef_ @ svm.coef_ + 0.5 * slack.sum() == pytest.approx(svm.certificate_.upper, rel=1e-4)


def test_pandas_makes_frames_of_them_and_of_the_history():
    pandas = pytest.importorskip("pandas")
    X, Y = chains(np.random.default_rng(0), n=10)
    svm = StructuralSVM(Chain(), C=0.1, random_state=0).fit(X, Y)
    frame = pandas.DataFrame(svm.active_constraints_)
    assert frame.columns.tolist() == COLUMNS
    assert len(frame) == len(svm.active_constraints_["share"])
    history = pandas.DataFrame(svm.history_)
    assert history["lower"].iloc[-1] == svm.certificate_.lower


def test_answers_have_the_names_of_labels_and_files_keep_the_table(tmp_path):
    X, Y = chains(np.random.default_rng(0), n=10)
    svm = SequenceSVM(C=0.1, random_state=0).fit(X, [["abc"[k] for k in y] for y in Y])
    answers = svm.active_constraints_["answer"]
    assert {label for answer in answers for label in answer} <= set("abc")
    svm.save(tmp_path / "tagger.mm")
    again = load(tmp_path / "tagger.mm").active_constraints_
    for name in ("example", "loss", "share", "slack"):
        np.testing.assert_array_equal(again[name], svm.active_constraints_[name])
    assert [a.tolist() for a in again["answer"]] == [a.tolist() for a in answers]
    tags = MultilabelSVM(random_state=0).fit(np.eye(3), np.eye(3, dtype=int))
    assert all(len(answer) == 3 for answer in tags.active_constraints_["answer"])


def test_where_rows_are_not_at_hand_it_is_said():
    X, Y = chains(np.random.default_rng(0), n=10)
    svm = StructuralSVM(Chain(3, 2), C=0.1, random_state=0)
    assert not hasattr(svm, "active_constraints_")
    for other in (clone(svm).fit(InChunks(X, Y)), clone(svm).partial_fit(X, Y)):
        with pytest.raises(AttributeError, match=r"no active_constraints_: .*active\(alpha, weights\)"):
            _ = other.active_constraints_
    by_hand = Searched(oracle_for(Chain(3, 2), X, Y), np.array([0.1]))
    streamed = clone(svm).fit(InChunks(X, Y))
    found = by_hand.active(streamed._alpha, streamed.coef_)
    assert streamed.certificate_.lower == pytest.approx(
        found["loss"] @ found["share"] - 0.5 * streamed.coef_ @ streamed.coef_, rel=1e-3
    )
    refit = streamed.fit(X, Y)  # a table of an earlier fit does not stay
    assert refit.active_constraints_["share"].sum() > 0.0
    assert not hasattr(refit.fit(InChunks(X, Y)), "active_constraints_")
