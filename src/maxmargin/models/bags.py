"""The model of bags of instances: which instance decides is a latent variable."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..constraints.store import row_sizes
from ..data.arrays import as_rows
from ..data.bags import Bags as Instances, as_bags
from ..kernels import bags as kernels
from ..problem import Rivals, Rows
from ..validation import one_of
from . import labelling
from .rounding import score_sizes, search_rounding


class Bags:
    """Classes of bags: one instance of a bag, nobody says which, decides.

        w·φ(x, y, z) = w_y·(x_z, bias),  or  w_{y,z}·(x_z, bias)  with separate states

    x is a matrix with an instance in every row (X a list of them, dense or sparse, or an array (bags, instances,
    features)), y a class 0 … n_classes−1, and the latent z the row that is looked at. With ``states="shared"``
    instances are alike: parts of an image, sentences of a text. With ``"separate"`` each has weights of its own, row z
    standing for the same thing in every bag (a rotation by a certain angle, say), and the group norm can find out which
    are needed.

    Parameters
    ----------
    n_classes, n_features : int or None
        Taken from the data by default.
    states : {"shared", "separate"}
    n_states : int or None
        Instances of a bag, at most, where states are separate; taken from the data by default.
    bias : float
        One more feature with this value; 0 for none.
    cost : array (n_classes, n_classes) or None
        Loss of answering the column where the row is true; 1 for every confusion by default.

    Examples
    --------
    >>> model = Bags(n_classes=2, n_features=1, bias=0.0)
    >>> model.predict(np.array([[1.0], [3.0]]), np.array([-1.0, 1.0]))
    (1, 1)
    """

    exact = True

    def __init__(
        self,
        n_classes: int | None = None,
        n_features: int | None = None,
        *,
        states: str = "shared",
        n_states: int | None = None,
        bias: float = 1.0,
        cost: object = None,
    ) -> None:
        labelling.check_sizes(n_classes=n_classes, n_features=n_features, n_states=n_states)
        one_of("states", states, ("shared", "separate"))
        self.n_classes = n_classes
        self.n_features = n_features
        self.state_kind = states
        self.n_states = n_states
        self.bias = labelling.check_bias(bias)
        if cost is not None:
            labelling.check_loss(cost, n_classes, "cost", ())
        self.cost = None if cost is None else np.asarray(cost, dtype=np.float64)

    def __repr__(self) -> str:
        return (
            f"Bags(n_classes={self.n_classes}, n_features={self.n_features}, states={self.state_kind!r}, "
            f"n_states={self.n_states}, bias={self.bias})"
        )

    def sized(self, X: object, Y: object) -> Bags:
        """A copy that knows its sizes: from the data, where they were not given."""
        bags = as_bags(X, self.n_features)
        sized = copy.copy(self)
        sized.n_features = bags.matrix.shape[1]
        if self.n_classes is None:
            labels = labelling.check_labels(Y, np.inf, "Y")
            sized.n_classes = 1 + int(labels.max()) if self.cost is None else len(self.cost)
        if self.n_states is None and self.state_kind == "separate":
            sized.n_states = int(bags.sizes.max())
        return sized

    def joined(self, others: Sequence[Bags]) -> Bags:
        """The model that knows the sizes of this one and others, each sized on a part of the data."""
        most = ["n_classes"] + (["n_states"] if self.state_kind == "separate" else [])
        return labelling.joined([self, *others], ["n_features"], most)

    def _sizes(self) -> tuple[int, int, int]:
        """Classes, states that have weights of their own, and weights of each."""
        K, d, S = self.n_classes, self.n_features, self.n_states if self.state_kind == "separate" else 1
        if K is None or d is None or S is None:
            raise ValueError("This model does not know its sizes: give n_classes and n_features, or use sized(X, Y).")
        return K, S, d + (self.bias != 0.0)

    @property
    def n_weights(self) -> int:
        K, S, D = self._sizes()
        return K * S * D

    @property
    def states(self) -> list[tuple[int, int]]:
        """(class, state) for every block of weights."""
        K, S, _ = self._sizes()
        return [(k, s) for k in range(K) for s in range(S)]

    @property
    def groups(self) -> list[np.ndarray]:
        """The weights of each of ``states``."""
        K, S, D = self._sizes()
        return list(np.arange(K * S * D).reshape(K * S, D))

    def _costs(self) -> np.ndarray:
        return 1.0 - np.eye(self._sizes()[0]) if self.cost is None else self.cost

    def features(self, x: object, answer: tuple[int, int]) -> np.ndarray:
        K, S, D = self._sizes()
        y, z = answer
        row = as_bags([x], self.n_features).matrix[z]
        row = row.toarray().ravel() if hasattr(row, "toarray") else row
        vector = np.zeros((K, S, D))
        vector[y, z if S > 1 else 0, : row.size] = row
        if self.bias:
            vector[y, z if S > 1 else 0, -1] = self.bias
        return vector.ravel()

    def loss(self, y: int, answer: tuple[int, int]) -> float:
        return float(self._costs()[labelling.check_labels([y], self._sizes()[0])[0], int(answer[0])])

    def predict(self, x: object, w: np.ndarray) -> tuple[int, int]:
        return self.predict_all([x], w)[0]

    def predict_all(self, X: Any, w: np.ndarray) -> list[tuple[int, int]]:
        """The best (class, instance) of every bag.

        Instances of states whose weights are all zero are not looked at: they may hold anything.
        """
        data = BagsLatent(self, X, np.zeros(len(X), np.int64), finite=False)
        answers, score = data.best(np.arange(len(X)), w, np.empty((0, 0)))
        if not np.isfinite(score).all():
            data.bags.check_finite()
        return answers

    def most_violated(self, x: object, y: int, w: np.ndarray) -> tuple[int, int]:
        return self.latent_oracle([x], [y]).best(np.zeros(1, np.int64), w, self._costs())[0][0]

    def complete(self, x: object, y: int, w: np.ndarray) -> int:
        return int(np.argmax(self.latent_scores(x, y, w)))

    def latent_scores(self, x: object, y: int, w: np.ndarray) -> np.ndarray:
        return self.latent_oracle([x], [y]).listed(w)[0]

    def latent_oracle(self, X: object, Y: object) -> BagsLatent:
        return BagsLatent(self, X, Y)


class BagsLatent:
    """The model bound to data, with all instances in one matrix."""

    def __init__(self, model: Bags, X: object, Y: Any, *, finite: bool = True) -> None:
        self.model = model
        self.K, self.S, self.D = model._sizes()
        self.bags = as_bags(X, model.n_features, finite=finite)
        self.y = labelling.check_labels(Y, self.K, "Y")
        if self.y.size != len(self.bags):
            raise ValueError(f"X has {len(self.bags)} bags, Y has {self.y.size} labels.")
        if model.state_kind == "separate" and (self.bags.sizes > self.S).any():
            i = int(np.argmax(self.bags.sizes > self.S))
            raise ValueError(f"Bag {i} has {self.bags.sizes[i]} instances, the model has weights for {self.S}.")
        self.rows = as_rows(self.bags.matrix, model.bias)
        self.n_examples, self.n_weights = len(self.bags), model.n_weights
        self._last = np.empty(0), np.empty(0), np.empty(0, np.int64)

    def bound(self, latent: object) -> BagsOracle:
        return BagsOracle(self, checked_instances(self.bags, np.arange(self.n_examples), latent))

    def truths(self, ids: np.ndarray, latent: object) -> list[tuple[int, int]]:
        return list(zip(self.y[ids].tolist(), np.asarray(latent).tolist(), strict=True))

    def complete(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scores, best = self._looked(w)
        return best.copy(), scores[self.bags.first[:-1] + best]

    def scores(self, ids: np.ndarray, latent: object, w: np.ndarray) -> np.ndarray:
        return self._looked(w)[0][self.bags.first[ids] + checked_instances(self.bags, ids, latent)]

    def listed(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._looked(w)[0], self.bags.first

    def _looked(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The scores of all instances for the labels of their bags, and the best instance of each bag."""
        w = labelling.as_weights(w, self.n_weights)
        if not np.array_equal(w, self._last[0]):  # several questions are asked about the same weights
            scores, best, first = np.empty(self.bags.first[-1]), np.empty(self.n_examples, np.int64), self.bags.first
            ids = np.arange(self.n_examples)
            kernels.look(self.rows.arrays, first, ids, self.y, w, self.alive(w), self.S, first, scores, best)
            self._last = w.copy(), scores, best
        return self._last[1], self._last[2]

    def propose(self, i: int, z: int, w: np.ndarray, rng: np.random.Generator) -> int:
        size = int(self.bags.sizes[i])
        return z if size == 1 else int((z + 1 + rng.integers(0, size - 1)) % size)

    def initial(self) -> np.ndarray:
        """The instances that are most unlike the other classes.

        All instances of a class count as examples of it, which on average they are: the difference of its mean to the
        mean of all is a first, rough weight vector, and each bag begins with the instance that it likes best.
        """
        table, (K, S) = self.bags.matrix, (self.K, self.S)
        state = np.arange(self.bags.first[-1]) - np.repeat(self.bags.first[:-1], self.bags.sizes) if S > 1 else 0
        block = np.repeat(self.y, self.bags.sizes) * S + state
        member = sp.csr_matrix((np.ones(block.size), (block, np.arange(block.size))), shape=(K * S, block.size))
        totals = member @ table
        sums = (totals.toarray() if sp.issparse(totals) else totals).reshape(K, S, -1)
        counts = np.bincount(block, minlength=K * S).reshape(K, S, 1)
        mean = sums.sum(axis=0) / np.maximum(counts.sum(axis=0), 1)
        w = np.zeros((K, S, self.D))
        w[:, :, : mean.shape[1]] = np.where(counts > 0, sums / np.maximum(counts, 1) - mean, 0.0)
        if self.model.bias:  # so that the mean scores zero
            w[:, :, -1] = -(w[:, :, : mean.shape[1]] * mean).sum(axis=2) / self.model.bias
        return self.complete(w.ravel())[0]

    def alive(self, w: np.ndarray) -> np.ndarray:
        """Which blocks of weights have one that is not zero."""
        return np.any(w.reshape(-1, self.D) != 0.0, axis=1)

    def best(self, ids: np.ndarray, w: np.ndarray, cost: np.ndarray) -> tuple[list[tuple[int, int]], np.ndarray]:
        """The best (class, instance) of some bags, costs included where there are any, and its score."""
        w = labelling.as_weights(w, self.n_weights)
        k, z, score = np.empty(ids.size, np.int64), np.empty(ids.size, np.int64), np.empty(ids.size)
        kernels.search(
            self.rows.arrays, self.bags.first, ids, self.y, cost, w, self.alive(w), self.K, self.S, k, z, score
        )
        return list(zip(k.tolist(), z.tolist(), strict=True)), score

    def search_rounding(self, ids: np.ndarray, w: np.ndarray) -> np.ndarray:
        """By how much rounding may have hidden a better answer to some bags: none scores more than this."""
        largest = np.abs(w).reshape(-1, self.D).max(axis=0)
        # All instances count, the best or not.
        size = score_sizes(self.rows, self.bags.first[ids], self.bags.first[ids + 1], largest)
        return search_rounding(size + self.model._costs().max(), self.D + 8.0)

    def differences(self, ids: np.ndarray, z: np.ndarray, answers: np.ndarray) -> Rows:
        """φ of the truths (y, z) of some bags minus φ of answers to them."""
        rows = self.rows
        first = self.bags.first[ids]
        room = int((row_sizes(rows, first + z) + row_sizes(rows, first + answers[:, 1])).sum()) + 2 * ids.size
        indptr = np.empty(ids.size + 1, np.int64)
        # Differences of two instances of float32 are no numbers of float32.
        indices, data = np.empty(max(room, 1), np.int32), np.empty(max(room, 1))
        n = kernels.differences(
            rows.arrays, self.bags.first, ids, self.y[ids], z, answers[:, 0].copy(), answers[:, 1].copy(), self.S,
            indptr, indices, data,
        )  # fmt: skip
        n = max(n, 1)  # empty ``indices`` would mean "dense"
        return Rows(indptr, indices[:n], data[:n], ids.size, self.n_weights)


def checked_instances(bags: Instances, ids: np.ndarray, latent: object) -> np.ndarray:
    """Instances of some bags as whole numbers, one for each, in range."""
    z = np.asarray(latent)
    if z.shape != ids.shape or z.dtype.kind not in "iu":
        raise ValueError(
            f"There must be one instance for each of {ids.size} bags, a whole number; got {z.dtype} of shape {z.shape}."
        )
    wrong = np.flatnonzero((z < 0) | (z >= bags.sizes[ids]))
    if wrong.size:
        i = int(ids[wrong[0]])
        raise ValueError(f"Instance {z[wrong[0]]} of bag {i} does not exist: it has {bags.sizes[i]}, counted from 0.")
    return z.astype(np.int64)


class BagsOracle:
    """The bound in which bag i is of class y_i because of instance z_i."""

    releases_gil = True

    def __init__(self, data: BagsLatent, z: np.ndarray) -> None:
        self.data, self.z = data, z
        self.n_examples, self.n_weights = data.n_examples, data.n_weights
        self._cost = data.model._costs()

    def rivals(self, ids: np.ndarray, w: np.ndarray) -> Rivals:
        found = self.planes(ids, self.data.best(ids, w, self._cost)[0])
        return replace(found, rounding=partial(self.data.search_rounding, ids, w))

    def planes(self, ids: np.ndarray, labels: Sequence[object]) -> Rivals:
        answers = np.asarray(labels, dtype=np.int64).reshape(ids.size, 2)
        labelling.check_labels(answers[:, 0], self.data.K, "An answer")
        checked_instances(self.data.bags, ids, answers[:, 1])
        losses = self._cost[self.data.y[ids], answers[:, 0]]
        return Rivals(labels, self.data.differences(ids, self.z[ids], answers), losses)
