"""The pool of closed problems: what belongs to an example stays with it."""

import numpy as np
import pytest
import scipy.sparse as sp
from generators import two_classes

from maxmargin.constraints.pool import Pool
from maxmargin.data.arrays import as_rows
from maxmargin.models import binary


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_norms_and_columns_of_those_that_stay(sparse, rng):
    X, y = two_classes(rng, n=12, d=3)
    X[rng.random(X.shape) < 0.3] = 0.0
    y, budget, norms = y.astype(np.int8), rng.uniform(0.5, 2.0, 12), np.square(X).sum(axis=1).astype(np.float32)
    block = binary(as_rows(sp.csr_matrix(X) if sparse else X), y, budget)
    pool = Pool(10_000)
    taken = np.array([1, 2, 5, 7, 8, 11])
    assert pool.add(block, taken, 100, norms) == taken.size
    pool.keep(np.array([1, 3, 5]))
    stayed, held = taken[[1, 3, 5]], pool.constraints()
    assert np.array_equal(pool.place, 100 + stayed)
    assert np.array_equal(pool.norms, norms[stayed])
    assert np.array_equal(held.budget, budget[stayed])
    alpha = rng.uniform(0.1, 0.5, 3) * y[stayed]
    assert held.combine(alpha) == pytest.approx(alpha @ X[stayed])
