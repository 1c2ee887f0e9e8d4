"""Scores of labelled grids, as all searches over them see them.

    Σ_r unary[r, z_r] + Σ_{r left of s} H[z_r, z_s] + Σ_{r above s} V[z_r, z_s]

Cells are numbered row by row. In batches, ``which[i]`` names the tables of grid i.
"""

from ...kernels import compiled


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
