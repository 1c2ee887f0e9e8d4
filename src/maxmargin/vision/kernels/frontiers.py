"""The best labelling of a narrow grid, by dynamic programming over the frontier between done and not yet done.

    maximise  Σ_r unary[r, z_r] + Σ_{r left of s} H[z_r, z_s] + Σ_{r above s} V[z_r, z_s]

Cells are visited along the shorter side, w cells wide. ``value[x]`` is the best score of all cells so far, given that
the last w of them carry the labels x = (oldest, …, newest): M^w states. The next cell, with label b, lies beside the
newest and behind the oldest, which it replaces:

    value'[x_2, …, x_w, b] = unary[b] + along[x_w, b] + max_a (value[a, x_2, …, x_w] + across[a, b])

which costs M^(w+1) for each cell. Which a was the best is found again on the way back. A grid one cell wide is a chain,
and this Viterbi's algorithm (1967).
"""

import numpy as np

from ...kernels import compiled
from .grids import grid_score


@compiled
def _forward(u, length, width, first, along, across, value):
    """``value[s]``: the frontier before step s. ``first`` names the cells in the order of the steps."""
    n_labels = u.shape[1]
    n_rest = value.shape[1] // n_labels
    value[0] = 0.0
    best = np.empty(n_labels)
    for s in range(length * width):
        before = value[s]
        after = value[s + 1]
        own = u[first[s]]
        for x in range(n_rest):
            if s < width:
                # Nothing is behind: the oldest labels stand for cells that are not there, and are all alike.
                for b in range(n_labels):
                    best[b] = before[x]
            else:
                for b in range(n_labels):
                    best[b] = before[x] + across[0, b]
                for a in range(1, n_labels):
                    behind = before[a * n_rest + x]
                    for b in range(n_labels):
                        best[b] = max(best[b], behind + across[a, b])
            at = x * n_labels
            for b in range(n_labels):
                after[at + b] = best[b] + own[b]
            if s % width > 0:
                newest = x % n_labels
                for b in range(n_labels):
                    after[at + b] += along[newest, b]


@compiled
def _backward(length, width, n_labels, first, across, value, labels):
    """Read the best labels off the frontiers."""
    n_rest = value.shape[1] // n_labels
    state = np.argmax(value[length * width])
    for s in range(length * width - 1, -1, -1):
        b = state % n_labels
        x = state // n_labels
        labels[first[s]] = b
        oldest = np.argmax(value[s, x::n_rest] + across[:, b]) if s >= width else 0
        state = oldest * n_rest + x


@compiled
def frontier_all(unary, which, rows, cols, horizontal, vertical, labels, score):
    """The best labelling of each grid, in ``labels`` (n, rows·cols), and its ``score`` (n,).

    ``unary`` is (n, rows·cols, M), ``which[i]`` names the tables of grid i in ``horizontal`` and ``vertical``
    (N, M, M).
    """
    n_labels = unary.shape[2]
    width = min(rows, cols)
    length = max(rows, cols)
    first = np.empty(rows * cols, np.int64)
    for s in range(rows * cols):
        first[s] = s if width == cols else (s % width) * cols + s // width
    value = np.empty((rows * cols + 1, n_labels**width))
    for i in range(unary.shape[0]):
        t = which[i]
        if width == cols:
            along, across = horizontal[t], vertical[t]
        else:
            along, across = vertical[t], horizontal[t]
        _forward(unary[i], length, width, first, along, across, value)
        _backward(length, width, n_labels, first, across, value, labels[i])
        score[i] = grid_score(unary[i], rows, cols, horizontal[t], vertical[t], labels[i])
