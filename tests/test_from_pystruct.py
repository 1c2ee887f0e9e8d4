"""Models written for PyStruct's contract, used unchanged."""

from itertools import product

import numpy as np
import pytest
import reference
from generators import chains, many_classes
from sklearn.base import clone
from user_models import every_rival

import maxmargin as mm
from maxmargin import StructuralSVM
from maxmargin.checks import check_model
from maxmargin.models import Chain, Multiclass, from_pystruct


class PystructBase:
    """What the three models share: inference by trying every answer."""

    def loss(self, y, y_hat):
        return float(np.sum(np.asarray(y) != np.asarray(y_hat)))

    def inference(self, x, w, relaxed=None, return_energy=False):
        return max(self.candidates(x), key=lambda z: w @ self.joint_feature(x, z))

    def loss_augmented_inference(self, x, y, w, relaxed=None, return_energy=False):
        return max(self.candidates(x), key=lambda z: self.loss(y, z) + w @ self.joint_feature(x, z))


class PystructClasses(PystructBase):
    size_joint_feature = None

    def initialize(self, X, Y):
        self.n_states, self.n_features = 1 + max(Y), len(X[0])
        self.size_joint_feature = self.n_states * self.n_features

    def candidates(self, x):
        return range(self.n_states)

    def joint_feature(self, x, y):
        psi = np.zeros((self.n_states, self.n_features))
        psi[y] = x
        return psi.ravel()


class PystructChain(PystructBase):
    """Unary weights by state and feature, then pairwise weights, as PyStruct lays them out."""

    def __init__(self, n_states=3, n_features=2):
        self.n_states, self.n_features = n_states, n_features

    @property
    def size_joint_feature(self):
        return self.n_states * self.n_features + self.n_states**2

    def candidates(self, x):
        return [np.array(z) for z in product(range(self.n_states), repeat=len(x))]

    def joint_feature(self, x, y):
        unary = np.zeros((self.n_states, self.n_features))
        np.add.at(unary, y, x)
        pairwise = np.zeros((self.n_states, self.n_states))
        np.add.at(pairwise, (y[:-1], y[1:]), 1.0)
        return np.concatenate([unary.ravel(), pairwise.ravel()])


class PystructGrid(PystructBase):
    """A binary picture whose neighbouring pixels agree, with the kind of inference that PyStruct's graphs name."""

    size_joint_feature = 4
    inference_method = "qpbo"

    def candidates(self, x):
        return [np.array(z).reshape(x.shape) for z in product((0, 1), repeat=x.size)]

    def joint_feature(self, x, y):
        alike = [np.sum(y[1:] == y[:-1]), np.sum(y[:, 1:] == y[:, :-1])]
        return np.array([np.sum(x * y), np.sum(y), *alike], dtype=float)


def _pictures(rng, n=6):
    X, Y = [], []
    for i in range(n):
        shape = [(2, 2), (2, 3), (3, 3)][i % 3]
        y = (np.add.outer(np.arange(shape[0]), np.arange(shape[1])) > rng.integers(0, 4)).astype(int)
        X.append(y - 0.5 + 0.7 * rng.normal(size=shape))
        Y.append(y)
    return X, Y


def test_classes_agree_with_our_own_model(rng):
    X, y = many_classes(rng, n=30, d=3, k=3)
    theirs = StructuralSVM(from_pystruct(PystructClasses()), C=0.4, tol=1e-6, random_state=0).fit(list(X), y.tolist())
    ours = StructuralSVM(Multiclass(), C=0.4, tol=1e-6, random_state=0).fit(X, y)
    assert theirs.certificate_.exact
    assert theirs.certificate_.upper == pytest.approx(ours.certificate_.upper, rel=2e-6)
    np.testing.assert_allclose(theirs.coef_, ours.coef_, atol=1e-2)
    assert theirs.score(X, y) == -np.mean(theirs.predict(X) != y)


def test_chain_agrees_with_our_own_model(rng):
    X, Y = chains(rng, n=9)
    theirs = StructuralSVM(from_pystruct(PystructChain()), C=0.4, tol=1e-6, random_state=0).fit(X, Y)
    ours = StructuralSVM(Chain(3, 2), C=0.4, tol=1e-6, random_state=0).fit(X, Y)
    assert theirs.certificate_.upper == pytest.approx(ours.certificate_.upper, rel=2e-6)
    unary = theirs.coef_[:6].reshape(3, 2)
    np.testing.assert_allclose(unary.T.ravel(), ours.coef_[:6], atol=1e-2)
    np.testing.assert_allclose(theirs.coef_[6:], ours.coef_[6:], atol=1e-2)


@pytest.mark.parametrize("solver", ["oracle_ascent", "cutting_plane"])
def test_grid_reaches_the_optimum_over_all_pictures(solver, rng):
    X, Y = _pictures(rng)
    model = from_pystruct(PystructGrid(), exact=True)
    svm = StructuralSVM(model, C=0.3, tol=1e-6, solver=solver, random_state=0).fit(X, Y)
    arrays = every_rival(model, X, Y, PystructGrid().candidates, 0.3)
    optimum = reference.quadratic(*arrays).value
    assert svm.certificate_.exact
    assert svm.certificate_.upper == pytest.approx(optimum, rel=1e-5)
    assert svm.certificate_.lower == pytest.approx(optimum, rel=1e-5)
    assert [z.shape for z in svm.predict(X)] == [x.shape for x in X]
    assert svm.certify(X, Y).relative_gap <= 2e-6


def test_named_inference_is_taken_for_approximate_unless_declared_exact(rng):
    X, Y = _pictures(rng)
    assert not from_pystruct(PystructGrid()).exact
    assert from_pystruct(PystructGrid(), exact=True).exact
    assert from_pystruct(PystructChain()).exact
    assert not from_pystruct(PystructChain(), exact=False).exact
    careful = StructuralSVM(from_pystruct(PystructGrid()), C=0.3, random_state=0).fit(X, Y)
    assert careful.certificate_.upper == np.inf
    assert not careful.certificate_.exact
    sure = StructuralSVM(from_pystruct(PystructGrid(), exact=True), C=0.3, tol=1e-6, random_state=0).fit(X, Y)
    assert careful.certificate_.lower <= sure.certificate_.upper
    assert careful.certificate_.lower >= 0.99 * sure.certificate_.lower


@pytest.mark.parametrize("model", [PystructChain(), PystructGrid()], ids=["chain", "grid"])
def test_adapted_models_pass_the_check(model, rng):
    X, Y = chains(rng, n=12) if isinstance(model, PystructChain) else _pictures(rng, n=9)
    # Of one size, so that the answer to one input is an answer to any other.
    X, Y = zip(*[(x, y) for x, y in zip(X, Y, strict=True) if x.shape == X[2].shape], strict=True)
    check_model(from_pystruct(model, exact=True), X, Y)


@pytest.mark.parametrize("name", ["joint_feature", "loss", "inference", "loss_augmented_inference"])
def test_missing_methods_are_named(name):
    methods = {"joint_feature", "loss", "inference", "loss_augmented_inference"} - {name}
    model = type("Partial", (), {method: lambda self, *a: 0 for method in methods})()
    with pytest.raises(ValueError, match=f"lacks {name}"):
        from_pystruct(model)


def test_missing_size_is_explained():
    class Sizeless(PystructChain):
        size_joint_feature = None

    with pytest.raises(ValueError, match=r"Sizeless has no size_joint_feature\. Set it, or define initialize"):
        StructuralSVM(from_pystruct(Sizeless())).fit([np.ones((1, 2))], [np.array([0])])


def test_clone_sizes_a_copy_and_leaves_the_model_alone(rng):
    X, y = many_classes(rng, n=20, d=3, k=3)
    svm = StructuralSVM(from_pystruct(PystructClasses()), random_state=0)
    copy = clone(svm).fit(list(X), y.tolist())
    assert copy.coef_.size == 9
    assert svm.model.model.size_joint_feature is None


def test_file_needs_the_adapted_model_again(rng, tmp_path):
    X, Y = chains(rng, n=6)
    svm = StructuralSVM(from_pystruct(PystructChain()), random_state=0).fit(X, Y)
    svm.save(tmp_path / "chain.safetensors")
    with pytest.raises(ValueError, match="a model of your own"):
        mm.load(tmp_path / "chain.safetensors")
    loaded = mm.load(tmp_path / "chain.safetensors", model=from_pystruct(PystructChain()))
    for a, b in zip(loaded.predict(X), svm.predict(X), strict=True):
        assert np.array_equal(a, b)
    assert loaded.certify(X, Y).lower == pytest.approx(svm.certificate_.lower, rel=1e-9)
