"""StructuralSVM as users meet it: models of theirs and ours, the tools of scikit-learn, files, failures."""

import numpy as np
import pytest
import scipy.sparse as sp
from generators import many_classes
from sklearn.exceptions import ConvergenceWarning
from user_models import ByTrying, CountingTags, Tags, tagged

import maxmargin as mm
from maxmargin import LinearSVC, StructuralSVM
from maxmargin.models import Multiclass
from maxmargin.protocols import OracleError
from maxmargin.regularizers import Bounded, GaussianPrior


class Words(ByTrying):
    """Answers of any kind: here the text "yes" or None, about a number."""

    n_weights = 2

    def answers(self, x):
        return ("yes", None)

    def features(self, x, y):
        return [x, 1.0] if y == "yes" else [0.0, 0.0]

    def loss(self, y, y_hat):
        return float(y != y_hat)


class Shapeless(Words):
    n_weights = 0


WORDS = ([3.0, 2.5, -1.0, -2.0, 0.1], ["yes", "yes", None, None, None])


@pytest.fixture
def tags():
    return tagged(np.random.default_rng(11), n=20, noise=0.3)


def test_multiclass_agrees_with_the_closed_form_classifier(rng):
    X, y = many_classes(rng)
    ours = StructuralSVM(Multiclass(), C=0.3, tol=1e-7, random_state=0).fit(X, y)
    closed = LinearSVC(C=0.3, tol=1e-8, multi_class="crammer_singer", fit_intercept=False, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.coef_.reshape(closed.coef_.shape), closed.coef_, atol=1e-3)
    assert ours.certificate_.upper == pytest.approx(closed.certificate_.upper, rel=1e-6)
    assert np.mean(ours.predict(X) == closed.predict(X)) > 0.98
    assert all(isinstance(label, int) for label in ours.predict(X))


def test_answers_may_be_any_python_objects():
    X, Y = WORDS
    svm = StructuralSVM(Words(), C=10.0, random_state=0).fit(X, Y)
    assert svm.predict(X) == Y
    assert svm.certify(X, Y).relative_gap <= 1e-3


def test_regularizers_are_obeyed(tags):
    X, Y = tags
    svm = StructuralSVM(Tags(), regularizer=Bounded(-0.05), random_state=0).fit(X, Y)
    assert svm.coef_.min() >= -0.05
    assert StructuralSVM(Tags(), random_state=0).fit(X, Y).coef_.min() < -0.05
    mean = np.full(9, 3.0)
    close = StructuralSVM(Tags(), C=1e-6, regularizer=GaussianPrior(mean, 1.0), random_state=0).fit(X, Y)
    np.testing.assert_allclose(close.coef_, mean, atol=1e-3)


def test_failing_model_leaves_what_was_learned(tags):
    X, Y = tags
    svm = StructuralSVM(CountingTags(at=45, event=RuntimeError("out of answers")), C=5.0, tol=1e-9, random_state=0)
    with pytest.raises(OracleError, match=r"failed on example \d+: RuntimeError: out of answers") as caught:
        svm.fit(X, Y)
    assert caught.value.solution.history == svm.history_
    assert svm.n_passes_ == 2
    assert svm.coef_.any()
    best = StructuralSVM(Tags(), C=5.0, tol=1e-6, random_state=0).fit(X, Y).certificate_
    assert svm.certificate_.lower <= best.upper
    assert len(svm.predict(X)) == len(X)
    # It can go on from there.
    svm.set_params(warm_start=True, tol=1e-4).fit(X, Y)
    assert svm.history_[0].lower > 0.5 * best.upper
    assert svm.certificate_.relative_gap <= 1e-4


def test_round_trip_of_classes(rng, tmp_path):
    X, y = many_classes(rng)
    cost = np.array([[0.0, 1, 2, 1], [1, 0, 1, 1], [1, 1, 0, 3], [1, 1, 1, 0]])
    svm = StructuralSVM(Multiclass(cost=cost, rescaling="slack"), random_state=0).fit(X, y)
    svm.save(tmp_path / "classes.safetensors")
    loaded = mm.load(tmp_path / "classes.safetensors")
    assert loaded.predict(X) == svm.predict(X)
    assert loaded.certify(X, y) == svm.certify(X, y)
    assert np.array_equal(loaded.model.cost, cost)
    with pytest.raises(ValueError, match="brings its own model, a Multiclass; give none"):
        mm.load(tmp_path / "classes.safetensors", model=Multiclass())


def test_round_trip_of_a_user_model_needs_the_model(tags, tmp_path):
    X, Y = tags
    svm = StructuralSVM(Tags(), C=0.5, random_state=0).fit(X, Y)
    path = tmp_path / "tags.safetensors"
    svm.save(path)
    with pytest.raises(ValueError, match="a model of your own"):
        mm.load(path)
    with pytest.raises(ValueError, match="has 9 weights, the model given has 6"):
        mm.load(path, model=Tags(n_features=1))
    model = Tags()
    loaded = mm.load(path, model=model)
    assert loaded.model is model
    assert loaded.model_ is model
    assert loaded.predict(X) == svm.predict(X)
    assert loaded.certificate_ == svm.certificate_
    assert loaded.certify(X, Y).lower == pytest.approx(svm.certify(X, Y).lower, rel=1e-9)


def test_answers_that_are_text_are_kept(tmp_path):
    X, Y = WORDS
    svm = StructuralSVM(Words(), C=10.0, random_state=0).fit(X, Y)
    svm.save(tmp_path / "words.safetensors")
    loaded = mm.load(tmp_path / "words.safetensors", model=Words())
    assert loaded.predict(X) == Y
    assert loaded.certificate_ == svm.certificate_
    assert loaded.certify(X, Y) == svm.certify(X, Y)  # text can be kept
    assert loaded.set_params(warm_start=True).fit(X, Y).predict(X) == Y


def test_linear_models_take_no_model_from_outside(rng, tmp_path):
    X, y = many_classes(rng)
    LinearSVC(random_state=0).fit(X, y).save(tmp_path / "linear.safetensors")
    with pytest.raises(ValueError, match="takes no model"):
        mm.load(tmp_path / "linear.safetensors", model=Tags())


def test_a_model_without_weights_is_refused(tags):
    with pytest.raises(ValueError, match="n_weights must be a whole number of at least 1, got 0"):
        StructuralSVM(Shapeless()).fit(*tags)


def test_features_may_be_sparse(tags):
    X, Y = tags

    class Sparse(Tags):
        def features(self, x, y):
            return sp.csr_matrix(super().features(x, y))

        def score(self, x, y, w):
            return float(w @ Tags.features(self, x, y))

    dense = StructuralSVM(Tags(), tol=1e-6, random_state=0).fit(X, Y)
    sparse = StructuralSVM(Sparse(), tol=1e-6, random_state=0).fit(X, Y)
    assert sparse.certificate_.upper == pytest.approx(dense.certificate_.upper, rel=2e-6)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-2)


def test_a_second_interrupt_at_once_ends_the_program():
    class Impatient(Tags):
        def most_violated(self, x, y, w):
            raise KeyboardInterrupt

    X, Y = tagged(np.random.default_rng(0))
    with pytest.warns(ConvergenceWarning, match="was interrupted"):
        StructuralSVM(Impatient(), random_state=0).fit(X, Y)
    with pytest.raises(KeyboardInterrupt):
        StructuralSVM(Impatient(), random_state=0).fit(X, Y)


def test_a_loss_that_charges_the_truth_is_refused():
    class Similarity(Tags):
        def loss(self, y, y_hat):
            return 1.0 - super().loss(y, y_hat)

    X, Y = tagged(np.random.default_rng(0))
    with pytest.raises(OracleError, match="loss of the true answer itself must be 0, on example 0 it is 1"):
        StructuralSVM(Similarity(), random_state=0).fit(X, Y)


class Own:
    """An answer that no file can hold."""

    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return self.name == other.name

    __hash__ = None


class OwnAnswers(ByTrying):
    """Yes or no, said in objects of a class of one's own."""

    n_weights = 2

    def answers(self, x):
        return (Own("no"), Own("yes"))

    def features(self, x, y):
        return x * (1.0 if y.name == "yes" else -1.0)

    def loss(self, y, y_hat):
        return float(y.name != y_hat.name)


def test_answers_that_no_file_can_hold_cost_the_proof_and_nothing_else(tmp_path):
    X, Y = [np.array([1.0, 0.2]), np.array([-1.0, 0.1])], [Own("yes"), Own("no")]
    svm = StructuralSVM(OwnAnswers(), random_state=0).fit(X, Y)
    with pytest.warns(UserWarning, match="an? Own for one"):
        svm.save(tmp_path / "own.safetensors")
    loaded = mm.load(tmp_path / "own.safetensors", model=OwnAnswers())
    assert loaded.predict(X) == Y
    assert loaded.certificate_ == svm.certificate_
    again = loaded.certify(X, Y)
    assert again.upper == pytest.approx(svm.certificate_.upper)
    assert again.lower == 0.0


def test_a_search_with_the_wrong_sign_is_told_and_not_trained_silently_to_zero(rng):
    class WrongWay(Tags):
        def most_violated(self, x, y, w):
            return max(self.answers(x), key=lambda a: self.score(x, a, w) - self.loss(y, a))

    X, Y = tagged(rng, n=6)
    with pytest.warns(ConvergenceWarning, match=r"learned nothing.*check_model"):
        StructuralSVM(WrongWay(), random_state=0).fit(X, Y)
