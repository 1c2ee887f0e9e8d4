"""Models as users write them, in plain Python: every answer is tried. And problems with all constraints written out."""

from itertools import combinations, pairwise, product

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from generators import chains, many_classes

import maxmargin as mm
from maxmargin.models import Chain, Multiclass
from maxmargin.protocols import Chunk


class ByTrying:
    """Searches of a model whose ``answers`` to an input can be listed; the first part of each is the label."""

    def score(self, x, answer, w):
        return float(w @ self.features(x, answer))

    def loss(self, y, answer):
        return float(y != answer[0])

    def predict(self, x, w):
        return max(self.answers(x), key=lambda a: self.score(x, a, w))

    def most_violated(self, x, y, w):
        return max(self.answers(x), key=lambda a: self.loss(y, a) + self.score(x, a, w))


class Tags(ByTrying):
    """Any subset of a few tags, given as a tuple of 0 and 1.

    w·φ(x, y) = Σ_k y_k w_k·x + Σ_{j<k} y_j y_k u_jk, and the loss counts wrong tags.
    """

    def __init__(self, n_tags=3, n_features=2, rescaling="margin", exact=True):
        self.n_tags = n_tags
        self.n_features = n_features
        self.rescaling = rescaling
        self.exact = exact

    @property
    def n_weights(self):
        return self.n_tags * self.n_features + self.n_tags * (self.n_tags - 1) // 2

    def answers(self, x=None):
        return list(product((0, 1), repeat=self.n_tags))

    def features(self, x, y):
        pairs = [y[j] * y[k] for j, k in combinations(range(self.n_tags), 2)]
        return np.concatenate([np.outer(y, x).ravel(), pairs])

    def loss(self, y, y_hat):
        return float(sum(a != b for a, b in zip(y, y_hat, strict=True)))

    def violation(self, x, y, z, w):
        behind = self.score(x, z, w) - self.score(x, y, w)
        return self.loss(y, z) * (1.0 + behind) if self.rescaling == "slack" else self.loss(y, z) + behind

    def most_violated(self, x, y, w):
        return max(self.answers(x), key=lambda z: self.violation(x, y, z, w))


class HalfBlindTags(Tags):
    """An approximate search: of the answers it sees only every other one, and says so."""

    def __init__(self, n_tags=3, n_features=2):
        super().__init__(n_tags, n_features, exact=False)

    def most_violated(self, x, y, w):
        return max([y, *self.answers(x)[::2]], key=lambda z: self.violation(x, y, z, w))


class ForgetfulTags(Tags):
    """Searches without the loss: the mistake that is made most often."""

    def most_violated(self, x, y, w):
        return self.predict(x, w)


class CountingTags(Tags):
    """Counts the searches, and does something else at one of them (−1: never)."""

    def __init__(self, at=-1, event=None):
        super().__init__()
        self.calls = 0
        self.at = at
        self.event = event

    def most_violated(self, x, y, w):
        self.calls += 1
        if self.calls == self.at:
            raise self.event
        return super().most_violated(x, y, w)


class Parts(ByTrying):
    """A latent model: which of a few parts are there is not told, only the class 0 or 1.

    z is a tuple of 0 and 1; w·φ(x, y, z) = Σ_k z_k w_yk x_k + Σ_k z_k z_{k+1} u_yk. A wrong class costs 1.
    """

    def __init__(self, n_parts=3, exact=True):
        self.n_parts = n_parts
        self.exact = exact

    @property
    def n_weights(self):
        return 2 * (2 * self.n_parts - 1)

    def values(self):
        return list(product((0, 1), repeat=self.n_parts))

    def features(self, x, answer):
        y, z = answer
        psi = np.zeros((2, 2 * self.n_parts - 1))
        psi[y] = np.concatenate([np.multiply(z, x), np.multiply(z[1:], z[:-1])])
        return psi.ravel()

    def answers(self, x):
        return list(product((0, 1), self.values()))

    def complete(self, x, y, w):
        return max(self.values(), key=lambda z: self.score(x, (y, z), w))

    def propose(self, x, y, z, w, rng):
        k = int(rng.integers(self.n_parts))
        return (*z[:k], 1 - z[k], *z[k + 1 :])

    def initial(self, x, y):
        return (1,) * self.n_parts


class Instances(ByTrying):
    """A latent model with listed values, ``models.Bags`` with shared states as a user would write it: z is the row of x
    that is looked at, and the last feature of each class the bias."""

    def __init__(self, n_classes=2, n_features=2, bias=1.0):
        self.n_classes, self.n_features, self.bias = n_classes, n_features, bias
        self.n_weights = n_classes * (n_features + 1)

    def answers(self, x):
        return list(product(range(self.n_classes), range(len(x))))

    def features(self, x, answer):
        y, z = answer
        phi = np.zeros((self.n_classes, self.n_features + 1))
        phi[y] = [*x[z], self.bias]
        return phi.ravel()

    def latent_scores(self, x, y, w):
        return np.array([self.score(x, (y, z), w) for z in range(len(x))])

    def complete(self, x, y, w):
        return int(np.argmax(self.latent_scores(x, y, w)))


def tagged(rng, n=8, n_tags=3, n_features=2, noise=0.8):
    """Inputs, and the tags that a noisy model would give them."""
    model = Tags(n_tags, n_features)
    X = [rng.normal(size=n_features) for _ in range(n)]
    w = 2.0 * rng.normal(size=model.n_weights)
    return X, [model.predict(x + noise * rng.normal(size=n_features), w) for x in X]


def labellings(model, x):
    """Every labelling of a chain that is allowed."""
    for z in product(range(model.n_labels), repeat=len(x)):
        if is_allowed(model, z):
            yield np.array(z)


def is_allowed(model, z):
    if model.forbidden is not None and any(model.forbidden[a, b] for a, b in pairwise(z)):
        return False
    ends = (model.forbidden_start, z[0]), (model.forbidden_end, z[-1])
    return not any(forbidden is not None and forbidden[k] for forbidden, k in ends)


def dense(features):
    return features.toarray().ravel() if sp.issparse(features) else np.asarray(features, dtype=float).ravel()


def every_rival(model, X, Y, answers, budget):
    """All constraints, as the arrays that the cone solver takes."""
    slack = getattr(model, "rescaling", "margin") == "slack"
    rows, losses, example = [], [], []
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        truth = dense(model.features(x, y))
        for z in answers(x):
            loss = model.loss(y, z)
            row = truth - dense(model.features(x, z))
            rows.append(loss * row if slack else row)
            losses.append(loss)
            example.append(i)
    budget = np.broadcast_to(np.asarray(budget, dtype=float), len(X)).copy()
    return np.array(rows), np.array(losses), np.array(example), budget


def objective(arrays, omega, w):
    """Ω(w) + Σ_i C_i max_j (l_ij − w·x_ij), by hand."""
    X, loss, example, budget = arrays
    slack = np.zeros(budget.size)
    np.maximum.at(slack, example, loss - X @ w)
    return omega(w) + float(budget @ slack)


def small_chain(rng, **settings):
    """A model, inputs, answers, and all answers to an input; likewise the next two."""
    X, Y = chains(rng)
    if settings.pop("ends", False):
        settings.update(forbidden_start=[True, False, False], forbidden_end=[False, True, False])
        for y in Y:
            y[0] = y[0] or 2
            y[-1] = 2 if y[-1] == 1 else y[-1]
    if settings.get("forbidden"):
        forbidden = np.ones((3, 3), bool)
        np.fill_diagonal(forbidden, False)
        for y in Y:
            forbidden[y[:-1], y[1:]] = False
        assert forbidden.any()
        settings["forbidden"] = forbidden
    model = Chain(3, 2, **settings)
    return model, X, Y, lambda x: labellings(model, x)


def small_multiclass(rng, **settings):
    X, y = many_classes(rng, n=12, d=3, k=4)
    return Multiclass(4, 3, **settings), X, y, lambda x: range(4)


def small_tags(rng, **settings):
    X, Y = tagged(rng)
    model = Tags(**settings)
    return model, X, Y, model.answers


def has_the_optimum_of_a_cone_solver(model, X, Y, answers, budget):
    """A fit to a small gap, and its certificate made anew, agree with all constraints written out."""
    svm = mm.StructuralSVM(model, C=budget, tol=1e-6, random_state=0).fit(X, Y)
    optimum = reference.quadratic(*every_rival(svm.model_, X, Y, answers, budget)).value
    assert svm.certificate_.exact
    assert svm.certificate_.lower <= optimum * (1 + 1e-9) and optimum <= svm.certificate_.upper * (1 + 1e-9)
    assert svm.certify(X, Y).upper == pytest.approx(optimum, rel=1e-5)


class InChunks:
    """Examples as a source, a few at a time."""

    def __init__(self, X, Y, rows=2, n_features=None):
        self.X, self.Y, self.rows, self.n_features = X, Y, rows, n_features

    def __len__(self):
        return len(self.X)

    def chunks(self):
        for a in range(0, len(self.X), self.rows):
            some = slice(a, a + self.rows)
            yield Chunk(np.arange(len(self.X))[some], self.X[some], self.Y[some])
