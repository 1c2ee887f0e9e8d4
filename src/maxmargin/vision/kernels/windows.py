"""Scores of parts that are held at given places, and what windows of the background cost."""

import numpy as np

from ...kernels import compiled


@compiled
def held_scores(scores, cost, top, left, step, at_row, at_column, out):
    """Scores of a part at places that are given, less what it costs to be there: see ``distance_transform``."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            y, x = at_row[i, j], at_column[i, j]
            dy = np.float64(y - (top + step * i))
            dx = np.float64(x - (left + step * j))
            out[i, j] = scores[y, x] - (cost[0] * dy * dy + cost[1] * dy + cost[2] * dx * dx + cost[3] * dx)


@compiled
def hinge_sum(scores, error):
    """Σ max(0, 1 + score): what the windows of a background image cost; and how many would, if scores rose by error."""
    total = 0.0
    n = 0
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            loss = 1.0 + np.float64(scores[i, j])
            total += max(0.0, loss)
            n += loss + error > 0.0
    return total, n
