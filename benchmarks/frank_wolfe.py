"""Block-coordinate Frank-Wolfe for structural SVMs on chains, with the package's own compiled inference.

    primal  min_w   1/2 ||w||^2 + C sum_i max_y [L_i(y) - w.psi_i(y)],   psi_i(y) = phi(x_i, y_i) - phi(x_i, y)
    dual    max     sum_i l_i - 1/2 ||sum_i w_i||^2,    (w_i, l_i) in C times the hull of all (psi_i(y), L_i(y))

Lacoste-Julien, Jaggi, Schmidt and Pletscher (2013), Algorithm 4: an example is drawn uniformly, the oracle names the
corner of its block, and an exact line search moves (w_i, l_i) towards it. The weighted average of w over the steps
("BCFW-wavg") is kept beside w. A whole epoch of n steps is one compiled call.
"""

import numpy as np
from chain_arrays import ChainArrays, add_difference, worst

from maxmargin.kernels import compiled, compiled_sum


class FrankWolfe:
    """State of the ascent: (w_i, l_i) of every example, w = sum w_i, and what the average of w needs."""

    def __init__(self, arrays: ChainArrays, C: float, random_state: int = 0):
        self.arrays, self.C = arrays, C
        self.rng = np.random.default_rng(random_state)
        self.blocks = np.zeros((arrays.n_examples, arrays.n_weights))
        self.losses = np.zeros(arrays.n_examples)
        self.w = np.zeros(arrays.n_weights)
        self.late = np.zeros(arrays.n_weights)
        self.calls = 0

    def epoch(self) -> None:
        """n steps on examples drawn with replacement."""
        n = self.arrays.n_examples
        order = self.rng.integers(n, size=n)
        longest = self.arrays.longest
        _epoch(self.arrays, self.C, order, longest, self.calls, self.blocks, self.losses, self.w, self.late)
        self.calls += n

    def average(self) -> np.ndarray:
        """2 / (k (k + 1)) sum_t t w_t over the k steps so far."""
        return self.w - self.late / _triangle(max(self.calls, 1))

    def lower(self) -> float:
        """The dual objective, w summed up from its blocks."""
        w = self.blocks.sum(axis=0)
        return float(self.losses.sum() - 0.5 * w @ w)

    @property
    def nbytes(self) -> int:
        return self.blocks.nbytes + self.losses.nbytes


@compiled
def _triangle(k):
    return 0.5 * k * (k + 1)


@compiled_sum
def _epoch(arrays, C, order, longest, done, blocks, losses, w, late):
    """One step per entry of ``order``; ``done`` steps came before.

    ``late`` is sum_t T(t-1) (change of w in step t) with T(k) = k(k+1)/2. Since step t's change is part of every
    later w, the average that weighs w_t by t is w - late / T(k): no step has to touch the average itself.
    """
    score = np.empty((longest, arrays.n_labels))
    value = np.empty((longest, arrays.n_labels))
    path = np.empty(longest, np.int64)
    direction = np.empty(w.size)
    for s in range(order.size):
        i = order[s]
        rise = C * worst(arrays, i, w, score, value, path) - losses[i]
        block = blocks[i]
        for j in range(w.size):
            direction[j] = -block[j]
        add_difference(arrays, i, path, C, direction)
        slope = rise
        square = 0.0
        for j in range(w.size):
            slope -= direction[j] * w[j]
            square += direction[j] * direction[j]
        step = min(max(slope / square, 0.0), 1.0) if square > 0.0 else 0.0
        weight = _triangle(np.float64(done + s))
        losses[i] += step * rise
        for j in range(w.size):
            change = step * direction[j]
            block[j] += change
            w[j] += change
            late[j] += weight * change
