"""What the structured estimators have in common, asked of each of them: weights, starts, files, threads, warnings."""

import pickle
import warnings

import numpy as np
import pytest
from generators import chains
from inline_transport import Inline
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from user_models import Tags, tagged

import maxmargin as mm
from maxmargin import LatentStructuralSVM, MultilabelSVM, SequenceSVM, StructuralSVM
from maxmargin.models import Chain, Ramp


def _tags():
    return tagged(np.random.default_rng(11), n=20, noise=0.3)


def _chains():
    return chains(np.random.default_rng(8), n=15, longest=4)


def _labels():
    X, Y = make_multilabel_classification(n_samples=40, n_features=6, n_classes=4, random_state=0)
    return list((X - X.mean(axis=0)) / X.std(axis=0)), list(Y)


TASKS = {
    "tags": (lambda **settings: StructuralSVM(Tags(), **settings), _tags),
    "chain": (lambda **settings: StructuralSVM(Chain(), **settings), _chains),
    "sequences": (SequenceSVM, _chains),
    "second order": (lambda **settings: SequenceSVM(order=2, start=True, **settings), _chains),
    "labels": (lambda **settings: MultilabelSVM(edges="full", **settings), _labels),
}


@pytest.fixture(params=TASKS)
def task(request):
    make, data = TASKS[request.param]
    return (lambda **settings: make(**{"C": 0.3, "random_state": 0, **settings})), *data()


def chosen(rows, which):
    return [rows[i] for i in which]


def predictions(svm, X):
    return [np.asarray(answer).tolist() for answer in svm.predict(X)]


def same_certificate(a, b, rel=1e-9):
    assert (a.lower, a.upper) == pytest.approx((b.lower, b.upper), rel=rel)


def test_the_goal_is_met_and_certify_says_the_same(task):
    make, X, Y = task
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svm = make(tol=1e-4).fit(X, Y)
    assert svm.certificate_.relative_gap <= 1e-4
    assert svm.n_passes_ == len(svm.history_)
    same_certificate(svm.certify(X, Y), svm.certificate_)


def test_sample_weights_multiply_the_price(task):
    make, X, Y = task
    weight = np.arange(len(X)) % 3
    repeated = np.repeat(np.arange(len(X)), weight)
    weighted = make(tol=1e-6).fit(X, Y, sample_weight=weight.astype(float))
    copies = make(tol=1e-6).fit(chosen(X, repeated), chosen(Y, repeated))
    assert weighted.certificate_.upper == pytest.approx(copies.certificate_.upper, rel=1e-5)
    np.testing.assert_allclose(weighted.coef_, copies.coef_, atol=0.02)
    same_certificate(weighted.certify(X, Y, sample_weight=weight.astype(float)), weighted.certificate_)
    with pytest.warns(UserWarning, match="not the rows of fit"):
        assert weighted.certify(X, Y).upper != pytest.approx(weighted.certificate_.upper, rel=1e-3)


@pytest.mark.parametrize(
    ("weight", "message"), [(-1.0, "must not be negative"), (0.0, "are zero"), (np.ones(3), "shape")]
)
def test_sample_weights_that_make_no_sense_are_refused(weight, message, task):
    make, X, Y = task
    with pytest.raises(ValueError, match=message):
        make().fit(X, Y, sample_weight=np.full(len(X), weight) if np.isscalar(weight) else weight)


def test_a_warm_start_is_done_at_once_helps_on_the_next_and_survives_other_data(task):
    make, X, Y = task
    svm = make(tol=1e-5, warm_start=True).fit(X, Y)
    cold_passes = svm.n_passes_
    assert svm.fit(X, Y).n_passes_ <= 2 < cold_passes
    first = svm.set_params(C=0.35).fit(X, Y).history_[0].lower
    cold = clone(svm).fit(X, Y)
    assert first > cold.history_[0].lower
    assert svm.certificate_.upper == pytest.approx(cold.certificate_.upper, rel=2e-5)
    for part in (slice(0, 8), slice(3, None)):
        svm.fit(X[part], Y[part])
        assert svm.certificate_.upper == pytest.approx(clone(svm).fit(X[part], Y[part]).certificate_.upper, rel=2e-5)


def test_path_gives_every_optimum(task):
    make, X, Y = task
    for step in mm.path(make(tol=1e-5), X, Y, C=[0.1, 0.2]):
        cold = make(C=step.C, tol=1e-5).fit(X, Y)
        assert step.certificate_.upper == pytest.approx(cold.certificate_.upper, rel=2e-5)


def test_files_and_pickles_predict_and_prove_the_same(task, tmp_path):
    make, X, Y = task
    svm = make().fit(X, Y)
    svm.save(tmp_path / "model.safetensors")
    own = {"model": Tags()} if isinstance(getattr(svm, "model", None), Tags) else {}
    loaded = mm.load(tmp_path / "model.safetensors", **own)
    for other in (loaded, pickle.loads(pickle.dumps(svm))):
        assert np.array_equal(other.coef_, svm.coef_)
        assert predictions(other, X) == predictions(svm, X)
        assert other.certificate_ == svm.certificate_
        assert other.history_ == svm.history_
        same_certificate(other.certify(X, Y), svm.certificate_)
    assert np.array_equal(clone(loaded).fit(X, Y).coef_, svm.coef_)
    assert loaded.set_params(warm_start=True).fit(X, Y).n_passes_ <= 2 < svm.n_passes_


def test_same_seed_gives_the_same_bits_and_two_threads_the_same_objective(task):
    make, X, Y = task
    one, same, two = (make(tol=1e-5, n_jobs=n).fit(X, Y) for n in (None, None, 2))
    assert np.array_equal(one.coef_, same.coef_)
    assert two.certificate_.upper == pytest.approx(one.certificate_.upper, rel=2e-5)


def test_too_few_passes_warn_on_the_line_of_the_user_and_the_certificate_is_true(task):
    make, X, Y = task
    svm = make(C=5.0, tol=1e-9, max_passes=1)
    with pytest.warns(ConvergenceWarning, match=f"{type(svm).__name__} stopped after max_passes=1 ") as caught:
        svm.fit(X, Y)
    assert caught[0].filename == __file__
    best = make(C=5.0, tol=1e-5).fit(X, Y).certificate_
    assert svm.certificate_.lower <= best.upper
    assert svm.certificate_.upper >= best.lower


def test_certify_on_other_data_bounds_the_problem_of_that_data(task):
    make, X, Y = task
    svm = make(tol=1e-5).fit(X[:10], Y[:10])
    best = make(tol=1e-5).fit(X[4:], Y[4:]).certificate_
    with pytest.warns(UserWarning, match="not the rows of fit"):
        there = svm.certify(X[4:], Y[4:])
    assert there.lower <= best.upper
    assert there.upper >= best.lower


def test_progress_is_shown_on_request_only(task, capsys):
    make, X, Y = task
    svm = make(verbose=1).fit(X, Y)
    assert type(svm).__name__ in "".join(capsys.readouterr())
    make().fit(X, Y)
    assert "".join(capsys.readouterr()) == ""


def test_nothing_works_before_fit(task, tmp_path):
    make, X, Y = task
    svm = make()
    for use in (
        lambda: svm.predict(X),
        lambda: svm.score(X, Y),
        lambda: svm.certify(X, Y),
        lambda: svm.save(tmp_path / "x"),
    ):
        with pytest.raises(NotFittedError):
            use()


@pytest.mark.parametrize("svm", [StructuralSVM(Chain()), LatentStructuralSVM(Ramp(Chain()))])
def test_examples_of_a_worker_may_all_weigh_nothing(svm):
    X, Y = _chains()
    weight = (np.arange(len(X)) >= 10).astype(float)
    found = clone(svm).set_params(random_state=0).fit(X, Y, sample_weight=weight, cluster=Inline(3))
    assert found.certificate_.relative_gap <= 1e-3
    same_certificate(found.certify(X, Y, sample_weight=weight), found.certificate_, rel=1e-6)
