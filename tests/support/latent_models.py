"""Models with latent variables as users write them, in plain Python, and their objectives by brute force."""

from itertools import pairwise, product

import numpy as np
from user_models import ByTrying

from maxmargin.latent.structural import StructuralObjective
from maxmargin.models.bags import Bags
from maxmargin.regularizers import L2


class Table(ByTrying):
    """Every answer has a feature vector of its own: φ(x, y, z) = x[y][z]. Labels may have any number of values."""

    def __init__(self, n_weights=3, cost=1.0, exact=True):
        self.n_weights = n_weights
        self.cost = cost
        self.exact = exact

    def answers(self, x):
        return [(y, z) for y in range(len(x)) for z in range(len(x[y]))]

    def features(self, x, answer):
        y, z = answer
        return x[y][z]

    def loss(self, y, answer):
        return self.cost * float(answer[0] != y)

    def complete(self, x, y, w):
        return int(np.argmax(x[y] @ w))

    def latent_scores(self, x, y, w):
        return x[y] @ w


class UnlistedTable:
    """The same for those who cannot list latent values, but change them."""

    exact = True

    def __init__(self, n_weights=3):
        self.n_weights = n_weights
        self._table = Table(n_weights)
        for name in ("answers", "features", "loss", "predict", "most_violated", "complete"):
            setattr(self, name, getattr(self._table, name))

    def propose(self, x, y, z, w, rng):
        return another(len(x[y]), z, rng)


def another(size, z, rng):
    """One of the other values, all equally likely."""
    return z if size == 1 else int((z + 1 + rng.integers(size - 1)) % size)


def tables(rng, n=10, n_labels=2, n_weights=3, most=4):
    """Inputs for ``Table`` and labels; every label of every input has its own number of latent values."""
    X = [[rng.normal(size=(rng.integers(1, most + 1), n_weights)) for _ in range(n_labels)] for _ in range(n)]
    return X, [int(y) for y in rng.integers(0, n_labels, n)]


class Regions(ByTrying):
    """An input is a row of regions, y says yes or no, and z labels every region: a structure that is not listed.

    w·φ(x, y, z) = y·(Σ_r w_{z_r}·x_r − u·[neighbours that differ])
    """

    n_labels = 2

    def __init__(self, n_features=2):
        self.n_features = n_features
        self.n_weights = self.n_labels * n_features + 2

    def latents(self, x):
        return list(product(range(self.n_labels), repeat=len(x)))

    def answers(self, x):
        return list(product((0, 1), self.latents(x)))

    def features(self, x, answer):
        y, z = answer
        phi = np.zeros(self.n_weights)
        for r, label in enumerate(z):
            phi[label * self.n_features : (label + 1) * self.n_features] += x[r]
        phi[-2] = -sum(a != b for a, b in pairwise(z))
        phi[-1] = 1.0
        return y * phi

    def complete(self, x, y, w):
        return max(self.latents(x), key=lambda z: w @ self.features(x, (y, z)))

    def propose(self, x, y, z, w, rng):
        r = int(rng.integers(len(z)))
        return (*z[:r], another(self.n_labels, z[r], rng), *z[r + 1 :])


def regions(rng, n=12, n_regions=3):
    """Inputs for ``Regions``; in those of label 1 some regions stand out, in one direction or the other."""
    Y = [int(i % 2) for i in range(n)]
    X = [rng.normal(size=(n_regions, 2)) for _ in range(n)]
    for x, y in zip(X, Y, strict=True):
        if y:
            x[:2] += 3.0 * np.eye(2)[rng.integers(2)]
    return X, Y


def bags(rng, n=24, size=3, d=2, n_classes=2, strength=3.0):
    """An array of bags in which one instance tells the class, and the classes."""
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, size, d))
    X[np.arange(n), rng.integers(0, size, n), y % d] += strength
    return X, y


def objective_of(model, X, Y, C=1.0, regularizer=None):
    """The objective as the estimator makes it."""
    from maxmargin.latent.plain import latent_oracle_for

    return StructuralObjective(latent_oracle_for(model, X, Y), np.atleast_1d(C), regularizer or L2())


def scores(model, x, answers, w):
    return np.array([model.features(x, a) @ w for a in answers])


def truths(model, x, y):
    """Every answer that has this label."""
    every = model.answers(x) if hasattr(model, "answers") else _bag_answers(model, x)
    return every, [a for a in every if a[0] == y]


def _bag_answers(model: Bags, x):
    return list(product(range(model.n_classes), range(x.shape[0])))


def losses_by_hand(model, X, Y, w, latent=None):
    """max (loss + score) − score of the truth, for every example: the best truth, or the one that ``latent`` fixes."""
    out = np.empty(len(Y))
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        every, allowed = truths(model, x, y)
        worst = max(model.loss(y, a) + s for a, s in zip(every, scores(model, x, every, w), strict=True))
        own = allowed if latent is None else [(y, latent[i])]
        out[i] = worst - scores(model, x, own, w).max()
    return out


def by_hand(model, X, Y, w, C=1.0, latent=None, omega=None):
    """F(w), or the value of the bound in which ``latent`` is fixed."""
    value = 0.5 * w @ w if omega is None else omega(w)
    return value + float((C * losses_by_hand(model, X, Y, w, latent)).sum())
