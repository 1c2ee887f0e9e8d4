"""Scores of labelled grids, as all searches over them see them.

    Σ_r unary[r, z_r] + Σ_{r left of s} H[z_r, z_s] + Σ_{r above s} V[z_r, z_s]

Cells are numbered row by row. In batches, ``which[i]`` names the tables of grid i.
"""

import numpy as np

from ...kernels import compiled


@compiled
def table_sizes(horizontal, vertical):
    """For each pair of tables: the largest size of a score in them."""
    largest = np.empty(len(horizontal))
    for i in range(len(horizontal)):
        largest[i] = max(np.abs(horizontal[i]).max(), np.abs(vertical[i]).max())
    return largest


@compiled
def allowed_only(unary, table_size, place, out):
    """Copy scores of cell r to ``out[place[r]]``, with finite ones for −∞.

    These are so low that a cell with another choice gains by it, whatever is near: four neighbours, with scores up to
    ``table_size``. Returns the largest size of a score.
    """
    largest = table_size
    n_labels = unary.shape[1]
    for r in range(unary.shape[0]):
        p = place[r]
        forbidden = False
        lowest = np.inf
        for k in range(n_labels):
            value = np.float64(unary[r, k])
            out[p, k] = value
            if value == -np.inf:
                forbidden = True
            else:
                lowest = min(lowest, value)
                largest = max(largest, abs(value))
        if forbidden:
            lowest = 0.0 if lowest == np.inf else lowest
            low = lowest - (abs(lowest) + 10.0 * table_size + 1.0)
            largest = max(largest, abs(low))
            for k in range(n_labels):
                out[p, k] = max(out[p, k], low)
    return largest


@compiled
def grid_score(unary, rows, cols, horizontal, vertical, labels):
    """The score of a labelling, summed up in float64."""
    total = 0.0
    for i in range(rows):
        for j in range(cols):
            r = i * cols + j
            k = labels[r]
            total += unary[r, k]
            if j > 0:
                total += horizontal[labels[r - 1], k]
            if i > 0:
                total += vertical[labels[r - cols], k]
    return total
