"""Small random graphs with scores of labels, and the score of a labelling without rounding."""

from fractions import Fraction

import numpy as np


def random_problem(rng, n, k, m, shared=False, scales=(0,)):
    edges = np.array([rng.choice(n, 2, replace=False) for _ in range(m)]).reshape(-1, 2)
    size = 10.0 ** rng.choice(scales, (1 if shared else m, 1, 1))
    unary = rng.normal(size=(n, k)) * 10.0 ** rng.choice(scales, (n, 1))
    return unary, edges, size * rng.normal(size=(1 if shared else m, k, k))


def exact_score(unary, edges, tables, y):
    """Written again, slowly, without rounding."""
    total = sum(Fraction(unary[v, k]) for v, k in enumerate(y))
    shared = len(tables) == 1
    return total + sum(Fraction(tables[0 if shared else e][y[a], y[b]]) for e, (a, b) in enumerate(edges))
