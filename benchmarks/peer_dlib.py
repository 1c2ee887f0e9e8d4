"""dlib's structural SVM solver on chains: its loop is C++, its oracle is Python around a compiled search.

dlib minimises 1/2 ||w||^2 + C/n sum of the losses, hence its C is n times ours. It stops when the mean loss is known
to within `epsilon`.
"""

import time

import dlib
import numpy as np
from chain_arrays import ChainArrays, add_features, worst


class OutOfTime(Exception):
    pass


class DlibChains:
    """What dlib calls a problem: settings, joint feature vectors and the search for the worst offender.

    The weights of every round are noted with the time, to be evaluated afterwards.
    """

    be_verbose = False
    use_sparse_feature_vectors = True  # half the time of dense ones on handwritten words

    def __init__(self, arrays: ChainArrays, C: float, epsilon: float, limit: float):
        self.arrays, self.limit = arrays, limit
        self.C = C * arrays.n_examples
        self.epsilon = epsilon
        self.num_samples = arrays.n_examples
        self.num_dimensions = arrays.n_weights
        # dlib hands over its weights as a list-like object that takes a millisecond to read. One product
        # with random numbers tells whether they are still those of the call before.
        self._probe = dlib.vector(np.random.default_rng(0).standard_normal(arrays.n_weights).tolist())
        self._print = np.nan
        self._w = np.zeros(arrays.n_weights)
        self._features = np.zeros(arrays.n_weights)
        self._score, self._value = np.empty((2, arrays.longest, arrays.n_labels))
        self._path = np.empty(arrays.longest, np.int64)
        self.calls = 0
        self.rounds: list[tuple[float, int, np.ndarray]] = []

    def solve(self) -> tuple[np.ndarray, bool]:
        """The weights, and whether dlib finished in time."""
        self._clock = time.perf_counter()
        try:
            return np.array(dlib.solve_structural_svm_problem(self)), True
        except OutOfTime:
            return self._w, False

    def get_truth_joint_feature_vector(self, i: int) -> dlib.sparse_vector:
        return self._joint(i, self.arrays.y[self.arrays.offsets[i] : self.arrays.offsets[i + 1]])

    def separation_oracle(self, i: int, weights: dlib.vector) -> tuple[float, dlib.sparse_vector]:
        self._read(weights)
        self.calls += 1
        loss = worst(self.arrays, i, self._w, self._score, self._value, self._path)
        return loss, self._joint(i, self._path)

    def _read(self, weights: dlib.vector) -> None:
        told = dlib.dot(weights, self._probe)
        if told == self._print:
            return
        seconds = time.perf_counter() - self._clock
        self._print = told
        self._w = np.array(weights)
        self.rounds.append((seconds, self.calls, self._w))
        if seconds > self.limit:
            raise OutOfTime

    def _joint(self, i: int, labels: np.ndarray) -> dlib.sparse_vector:
        self._features[:] = 0.0
        add_features(self.arrays, i, labels, 1.0, self._features)
        at = np.flatnonzero(self._features)
        joint = dlib.sparse_vector()
        for pair in map(dlib.pair, at.tolist(), self._features[at].tolist()):
            joint.append(pair)
        return joint
