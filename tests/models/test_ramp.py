"""The ramp loss as a latent problem around any model: bounded, and robust where the hinge loss is not."""

from itertools import pairwise, product

import numpy as np
import pytest
from generators import chains, many_classes
from user_models import Tags, dense, tagged

import maxmargin as mm
from maxmargin import LatentStructuralSVM, StructuralSVM
from maxmargin.latent import RandomSubset
from maxmargin.latent.structural import StructuralObjective
from maxmargin.models import Bags, Chain, Multiclass, Ramp
from maxmargin.protocols import OracleError
from maxmargin.regularizers import L2


def _by_hand(model, X, Y, answers, w, C):
    """½‖w‖² + C Σ_i [max_ŷ (w·φ(x, ŷ) + loss) − max_z w·φ(x, z)]."""
    total = 0.5 * w @ w
    for x, y in zip(X, Y, strict=True):
        scores = [w @ dense(model.features(x, z)) for z in answers(x)]
        losses = [model.loss(y, z) for z in answers(x)]
        total += C * (np.max(np.add(scores, losses)) - np.max(scores))
    return total


def _sequences(x, n_labels=3):
    return [np.array(z) for z in product(range(n_labels), repeat=len(x))]


@pytest.mark.parametrize("kind", ["classes", "chains", "tags"])
def test_objective_is_the_ramp_loss(kind, rng):
    if kind == "classes":
        X, Y = many_classes(rng, n=20, d=3, k=3)
        model, answers = Multiclass(3, 3), lambda x: range(3)
    elif kind == "chains":
        X, Y = chains(rng, n=8)
        model, answers = Chain().sized(X, Y), _sequences
    else:
        X, Y = tagged(rng)
        model, answers = Tags(), Tags().answers
    svm = LatentStructuralSVM(Ramp(model), C=0.7, random_state=0).fit(X, Y)
    assert svm.objective_ == pytest.approx(_by_hand(model, X, Y, answers, svm.coef_, 0.7), rel=1e-6)
    assert svm.objective(X, Y) == pytest.approx(svm.objective_, rel=1e-9)
    bounds = [record.bound for record in svm.history_]
    assert all(b <= a * (1 + 1e-9) for a, b in pairwise(bounds))


def test_first_bound_is_the_hinge_loss(rng):
    X, y = many_classes(rng, n=40, d=3, k=3)
    ramp = LatentStructuralSVM(Ramp(Multiclass()), C=0.7, max_bounds=1, tol=1e-6, random_state=0)
    with pytest.warns(UserWarning, match="max_bounds=1"):
        ramp.fit(X, y)
    hinge = StructuralSVM(Multiclass(), C=0.7, tol=1e-6, random_state=0).fit(X, y)
    first = ramp.history_[0]
    assert first.lower <= hinge.certificate_.upper
    assert first.bound >= hinge.certificate_.lower
    model, w = Ramp(Multiclass(3, 3)), rng.normal(size=9)
    problem = StructuralObjective(model.latent_oracle(X, y), np.array([0.7]), L2()).problem(y)
    scores = X @ w.reshape(3, 3).T
    loss = (scores + 1.0 - np.eye(3)[y]).max(axis=1) - scores[np.arange(40), y]
    assert problem.constraints.evaluate(w).total == pytest.approx(0.7 * loss.sum())


def _two_clouds(rng, n=300, flipped=0):
    """Two clouds, and some examples far out, askew, and on the wrong side."""
    y = np.arange(n) % 2
    X = 0.7 * rng.normal(size=(n, 2))
    X[:, 0] += 2 * y - 1
    X[:flipped] += np.outer(2 * y[:flipped] - 1, [12.0, -6.0])
    given = np.where(np.arange(n) < flipped, 1 - y, y)
    return np.column_stack([X, np.ones(n)]), y, given


@pytest.mark.rounding
def test_far_outliers_hurt_the_hinge_and_not_the_ramp(rng):
    X, y, given = _two_clouds(rng, flipped=10)
    hinge = StructuralSVM(Multiclass(), C=1.0, random_state=0).fit(X, given)
    ramp = LatentStructuralSVM(Ramp(Multiclass()), C=1.0, random_state=0).fit(X, given)
    clean = StructuralSVM(Multiclass(), C=1.0, random_state=0).fit(X[10:], y[10:])
    X_new, y_new, _ = _two_clouds(rng, n=2000)

    def accuracy(svm):
        return np.mean(np.asarray(svm.predict(X_new)) == y_new)

    assert accuracy(clean) > 0.9
    assert accuracy(ramp) > accuracy(clean) - 0.01
    assert accuracy(hinge) < accuracy(clean) - 0.05
    # The ramp has given up the outliers: what it fixed for them is not their label.
    assert (ramp.latent_[:10] != given[:10]).all()
    # No example pays more than the largest loss.
    assert ramp.objective_ <= 0.5 * ramp.coef_ @ ramp.coef_ + len(X)


@pytest.mark.parametrize("bound", ["gmm", "gmme", RandomSubset()])
def test_random_bounds_need_no_more_than_class_scores(bound, rng):
    X, y = many_classes(rng, n=30, d=3, k=3)
    svm = LatentStructuralSVM(Ramp(Multiclass()), bound=bound, n_init=2, random_state=0).fit(X, y)
    assert svm.objective_ == pytest.approx(
        _by_hand(Multiclass(3, 3), X, y, lambda x: range(3), svm.coef_, 1.0), rel=1e-6
    )
    start = LatentStructuralSVM(Ramp(Multiclass()), bound="cccp", random_state=0).fit(X, y).history_[0]
    assert svm.objective_ <= start.bound


def test_random_answers_of_other_models_are_refused_with_a_way_out(rng):
    X, Y = chains(rng, n=6)
    with pytest.raises(ValueError, match=r"cannot draw random answers of Chain.*RandomSubset"):
        LatentStructuralSVM(Ramp(Chain()), bound="gmm", random_state=0).fit(X, Y)
    svm = LatentStructuralSVM(Ramp(Chain()), bound=RandomSubset(), random_state=0).fit(X, Y)
    assert svm.objective_ <= svm.history_[0].bound


def test_predictions_are_labels_and_the_score_is_that_of_the_inner_model(rng):
    X, Y = chains(rng, n=8)
    svm = LatentStructuralSVM(Ramp(Chain()), random_state=0).fit(X, Y)
    for x, y, z in zip(X, svm.predict(X), svm.predict_latent(X), strict=True):
        assert np.array_equal(y, svm.model_.model.predict(x, svm.coef_))
        assert np.array_equal(y, z)
    losses = [svm.model_.model.loss(y, z) for y, z in zip(Y, svm.predict(X), strict=True)]
    assert svm.score(X, Y) == pytest.approx(-np.mean(losses))


class _Nearsighted(Tags):
    """Sees only every other answer when it predicts; the truth may be among those that it does not see."""

    def predict(self, x, w):
        return max(self.answers(x)[::2], key=lambda z: self.score(x, z, w))


def test_an_approximate_inner_model_is_trained_without_a_claim(rng):
    X, Y = tagged(rng, n=12)
    svm = LatentStructuralSVM(Ramp(_Nearsighted(exact=False)), C=1.0, random_state=0).fit(X, Y)
    assert not svm.certificate_.exact and svm.certificate_.upper == np.inf
    with pytest.raises(OracleError, match="complete is not the maximiser"):
        LatentStructuralSVM(Ramp(_Nearsighted(exact=True)), C=1.0, random_state=0).fit(X, Y)


def test_a_file_brings_the_inner_model_unless_it_is_the_users(rng, tmp_path):
    X, y = many_classes(rng, n=20, d=3, k=3)
    svm = LatentStructuralSVM(Ramp(Multiclass()), random_state=0).fit(X, y)
    svm.save(tmp_path / "ramp.safetensors")
    loaded = mm.load(tmp_path / "ramp.safetensors")
    assert loaded.predict(X) == svm.predict(X)
    assert repr(loaded.model_) == repr(svm.model_)
    X, Y = tagged(rng)
    own = LatentStructuralSVM(Ramp(Tags()), random_state=0).fit(X, Y)
    own.save(tmp_path / "own.safetensors")
    with pytest.raises(ValueError, match="a model of your own"):
        mm.load(tmp_path / "own.safetensors")
    assert mm.load(tmp_path / "own.safetensors", model=Ramp(Tags())).predict(X) == own.predict(X)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Multiclass(rescaling="slack"), "Ramp needs a model with rescaling='margin', got Multiclass"),
        (Bags(), "Ramp needs a model without latent variables, got Bags"),
        (Chain, "model is the class Chain; give an object of it"),
        ("chain", "'chain' lacks features"),
    ],
    ids=["slack", "latent", "class", "text"],
)
def test_models_that_do_not_fit_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        Ramp(model)
