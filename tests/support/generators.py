"""Small random problems. Every number comes from the generator that is passed in."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from maxmargin.constraints import SharedSlack
from maxmargin.data.arrays import as_rows
from maxmargin.losses import EpsilonInsensitive, Hinge, SmoothedHinge, SquaredEpsilonInsensitive, SquaredHinge

SCALAR_LOSSES = {
    "hinge": Hinge(),
    "squared hinge": SquaredHinge(),
    "smoothed hinge": SmoothedHinge(0.5),
    "regression": EpsilonInsensitive(0.1),
    "squared regression": SquaredEpsilonInsensitive(0.1),
}


@dataclass(frozen=True)
class SharedSlackData:
    """A shared-slack problem twice: as plain arrays for the reference and as constraints for the package."""

    X: np.ndarray
    loss: np.ndarray
    example: np.ndarray
    budget: np.ndarray
    constraints: SharedSlack

    def arrays(self):
        return self.X, self.loss, self.example, self.budget


def shared_slack(rng, *, n_examples=None, n_weights=None, budgets=False, awkward=False, sparse=None):
    """``budgets``: one C per example, some zero. ``awkward``: empty rows, duplicate rows, examples without rows."""
    n = n_examples or int(rng.integers(5, 25))
    d = n_weights or int(rng.integers(2, 13))
    sizes = rng.integers(0 if awkward else 1, 6, size=n)
    sizes[0] = max(sizes[0], 1)
    first = np.concatenate([[0], np.cumsum(sizes)])
    rows = first[-1]
    X = rng.normal(size=(rows, d)) * (rng.random((rows, d)) < rng.uniform(0.3, 1.0))
    # A common direction: with pure noise the optimum would often be w = 0, which any solver finds.
    X += rng.uniform(0, 0.5) * rng.normal(size=d)
    loss = rng.uniform(0.2, 2.0, size=rows)
    if awkward:
        X[rng.random(rows) < 0.15] = 0.0
        copied = np.flatnonzero(rng.random(rows) < 0.3)
        X[copied] = X[np.maximum(copied - 1, 0)]
    if budgets:
        budget = 10.0 ** rng.uniform(-1.5, 1, size=n) * (rng.random(n) < 0.9)
    else:
        budget = np.array([10.0 ** rng.uniform(-1.5, 0.5)])
    stored = sp.csr_matrix(X) if (rng.random() < 0.5 if sparse is None else sparse) else X
    constraints = SharedSlack(as_rows(stored), loss, first, budget)
    example = np.repeat(np.arange(n), sizes)
    return SharedSlackData(X, loss, example, np.broadcast_to(budget, n).copy(), constraints)


def class_differences(X, label, cost):
    """Every difference of joint features of Crammer–Singer, weights feature by feature: rows, losses, examples."""
    example, rival = np.nonzero(np.arange(len(cost)) != label[:, None])
    sides = np.eye(len(cost))[label[example]] - np.eye(len(cost))[rival]
    return np.einsum("ij,ik->ijk", X[example], sides).reshape(example.size, -1), cost[label[example], rival], example


def partition(rng, n_weights):
    """Random groups that cover all weights once."""
    shuffled = rng.permutation(n_weights)
    cuts = np.sort(rng.choice(np.arange(1, n_weights), size=int(rng.integers(1, min(n_weights, 5))), replace=False))
    return [np.sort(g) for g in np.split(shuffled, cuts)]


def covariance(rng, n_weights):
    """A full covariance matrix that is not close to singular."""
    factor = rng.normal(size=(n_weights, n_weights))
    return factor @ factor.T / n_weights + 0.3 * np.eye(n_weights)


def two_classes(rng, n=80, d=6, noise=0.3):
    """Rows, labels −1 and 1, not quite separable."""
    X = rng.normal(size=(n, d))
    y = np.where(X @ rng.normal(size=d) + noise * rng.normal(size=n) + 0.3 > 0, 1, -1)
    return X, y


def many_classes(rng, n=90, d=5, k=4):
    centres = 1.5 * rng.normal(size=(k, d))
    y = np.arange(n) % k
    return centres[y] + rng.normal(size=(n, d)), y


def line(rng, n=80, d=5, noise=0.3, offset=0.7):
    """Rows, and numbers that are nearly a linear function of them."""
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=d) + offset + noise * rng.normal(size=n)


def graded(rng, n=50, d=5, noise=0.5, cuts=(-0.7, 0.7)):
    """Rows, and grades 0, 1 and 2 that follow a linear function of them."""
    X = rng.normal(size=(n, d))
    return X, np.digitize(X @ rng.normal(size=d) + noise * rng.normal(size=n), cuts).astype(float)


def differences(X, y, groups):
    """X[a] − X[b] of all pairs of one group of which the first has the higher grade, and the pairs."""
    n = range(y.size)
    pairs = [(a, b) for a in n for b in n if groups[a] == groups[b] and y[a] > y[b]]
    return np.array([X[a] - X[b] for a, b in pairs]), pairs


def chains(rng, n=6, n_labels=3, n_features=2, longest=3, noise=0.7):
    """Sequences whose tokens lie around the centre of their label, and whose labels rather stay than change."""
    centres = 1.5 * rng.normal(size=(n_labels, n_features))
    X, Y = [], []
    for i in range(n):
        length = 1 + i % longest
        y = [int(rng.integers(n_labels))]
        while len(y) < length:
            y.append(y[-1] if rng.random() < 0.4 else int(rng.integers(n_labels)))
        X.append(centres[y] + noise * rng.normal(size=(length, n_features)))
        Y.append(np.array(y))
    Y[0] = np.full(Y[0].size, n_labels - 1)  # so that the largest label is there
    return X, Y
