"""Streams that are saved, loaded and gone on with."""

import numpy as np
import pytest
from generators import chains
from user_models import Tags, tagged

from maxmargin import MultilabelSVM, SequenceSVM, StructuralSVM, load
from maxmargin.models import Chain
from maxmargin.persistence import ModelFileError
from maxmargin.regularizers import GaussianPrior


def _chunks(X, Y, n=5):
    return [(X[i::n], Y[i::n]) for i in range(n)]


def _through_file(svm, path, **more):
    svm.save(path)
    return load(path, **more)


@pytest.mark.parametrize("regularizer", [None, GaussianPrior(0.1, 2.0)])
def test_a_loaded_stream_proves_what_was_proved_and_more(regularizer, tmp_path):
    X, Y = chains(np.random.default_rng(0), n=60, longest=5, noise=1.2)
    settings = {"C": 0.1, "regularizer": regularizer, "random_state": 0}
    whole = StructuralSVM(Chain(3, 2), tol=1e-4, **settings).fit(X, Y)
    svm, lower = StructuralSVM(Chain(3, 2), **settings), 0.0
    for i, chunk in enumerate(_chunks(X, Y)):
        svm = _through_file(svm.partial_fit(*chunk), tmp_path / f"{i}.mm")
        assert svm.certificate_.lower >= lower * (1 - 1e-9)
        lower = svm.certificate_.lower
    assert 0.95 * whole.certificate_.lower <= lower <= whole.certificate_.upper
    assert svm.certify(X, Y).upper <= 1.05 * whole.certificate_.upper
    assert svm.score(X, Y) >= whole.score(X, Y) - 0.1


def test_shares_under_a_smaller_C_are_scaled_down(tmp_path):
    X, Y = chains(np.random.default_rng(0), n=40, longest=5, noise=1.2)
    (first, *_, last) = _chunks(X, Y, 2)
    svm = _through_file(StructuralSVM(Chain(3, 2), C=1.0, random_state=0).partial_fit(*first), tmp_path / "a.mm")
    svm.set_params(C=0.05).partial_fit(*last)
    whole = StructuralSVM(Chain(3, 2), C=0.05, tol=1e-4, random_state=0).fit(X, Y)
    assert 0.0 < svm.certificate_.lower <= whole.certificate_.upper


def test_words_that_come_after_loading_have_weights(tmp_path):
    rng = np.random.default_rng(0)
    words = [f"{kind}{k}" for k in range(30) for kind in "ab"]

    def sentences(some):
        X = [rng.choice(some, 5).tolist() for _ in range(30)]
        return X, [[word[0] for word in x] for x in X]

    svm = SequenceSVM(C=1.0, random_state=0).partial_fit(*sentences(words[:30]), classes=["a", "b"])
    svm = _through_file(svm, tmp_path / "tagger.mm")
    before, lower = len(svm.feature_names_), svm.certificate_.lower
    svm.partial_fit(*sentences(words[30:]))
    assert len(svm.feature_names_) > before
    assert svm.certificate_.lower >= lower
    assert svm.score(*sentences(words)) > 0.95


def test_models_of_the_user_and_sets_of_labels_go_on_too(tmp_path):
    X, Y = tagged(np.random.default_rng(0), n=24)
    first, second = _chunks(X, Y, 2)
    svm = StructuralSVM(Tags(), C=0.5, random_state=0).partial_fit(*first)
    again = _through_file(svm, tmp_path / "tags.mm", model=Tags())
    lower = again.certificate_.lower
    assert again.partial_fit(*second).certificate_.lower >= lower
    assert (np.diff(np.unique(again._alpha.example)) > 0).all()
    assert again._alpha.example.min() >= 12  # of those before only sums are known
    rng = np.random.default_rng(0)
    A = rng.normal(size=(200, 3))
    labels = (A > 0).astype(int)
    tags = MultilabelSVM(random_state=0).partial_fit(A[:100], labels[:100])
    tags = _through_file(tags, tmp_path / "labels.mm").partial_fit(A[100:], labels[100:])
    assert tags.score(A, labels) > 0.8


def test_a_fit_cannot_be_gone_on_with_and_says_so(tmp_path):
    X, Y = chains(np.random.default_rng(0), n=10)
    svm = StructuralSVM(Chain(3, 2), C=0.1, random_state=0).fit(X, Y)
    for other in (svm, _through_file(svm, tmp_path / "fit.mm")):
        with pytest.raises(ValueError, match=r"was trained by fit: .*partial_fit on a new estimator"):
            other.partial_fit(X, Y)
    stream = StructuralSVM(Chain(3, 2), C=0.1, random_state=0).partial_fit(X, Y)
    again = _through_file(stream, tmp_path / "stream.mm").fit(X, Y)
    with pytest.raises(ValueError, match=r"was trained by fit"):
        again.partial_fit(X, Y)


def test_another_problem_does_not_go_on_from_the_sums(tmp_path):
    """Losses that are a tenth of what they were have a tenth of the lower bound."""
    X, Y = chains(np.random.default_rng(0), n=20)
    cheaper = Chain(3, 2, loss=0.1 * (1.0 - np.eye(3)))
    stream = StructuralSVM(Chain(3, 2), C=0.1, random_state=0).partial_fit(X, Y)
    with pytest.raises(ValueError, match="must not change between chunks: model from"):
        _through_file(stream, tmp_path / "a.mm").set_params(model=cheaper).partial_fit(X, Y)
    with pytest.raises(ValueError, match="nor in a file"):
        _through_file(stream.set_params(model=cheaper), tmp_path / "b.mm").partial_fit(X, Y)


def test_sums_that_no_stream_could_have_left_are_refused(tmp_path):
    X, Y = chains(np.random.default_rng(0), n=10)
    stream = StructuralSVM(Chain(3, 2), C=0.1, random_state=0).partial_fit(X, Y)
    path = tmp_path / "stream.mm"
    good = stream._stream.frozen()
    for wrong in ({"v": np.array([np.nan])}, {"linear": np.inf}, {"n_seen": -1}, {"more": 0}):
        stream._stream.frozen = lambda wrong=wrong: good | wrong
        with pytest.raises((ModelFileError, ValueError)):
            _through_file(stream, path)
    stream._stream.frozen = lambda: good | {"v": good["v"][:-1]}
    with pytest.raises(ValueError, match="The sums of the stream are of"):
        _through_file(stream, path).partial_fit(X, Y)
