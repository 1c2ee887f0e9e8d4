"""Matrices as rows: where zeros are left out."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.data import arrays
from maxmargin.data.arrays import as_rows, without_zeros


@pytest.mark.parametrize("some", [1, 7, 1000], ids=["a row at a time", "blocks", "at once"])
def test_rows_without_zeros_are_those_of_the_sparse_matrix(monkeypatch, some):
    monkeypatch.setattr(arrays, "_SOME", some)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(23, 5)) * (rng.random((23, 5)) < 0.3)
    X[0] = X[11] = X[22] = 0.0
    X[1, 0] = np.nan
    found, expected = without_zeros(as_rows(X, bias=2.0), most=1.0), as_rows(sp.csr_matrix(X), bias=2.0)
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert (found.n_rows, found.width, found.bias) == (23, 5, 2.0)


@pytest.mark.parametrize("share", ["of some", "of all"])
def test_rows_with_few_zeros_stay_as_they_are(monkeypatch, share):
    X = np.ones((10, 4))
    if share == "of all":
        X[0] = 0.0
        monkeypatch.setattr(arrays, "_SOME", 4)
    rows = as_rows(X)
    assert without_zeros(rows, most=0.5) is rows


def test_rows_that_are_sparse_or_empty_stay_as_they_are():
    for X in (sp.csr_matrix(np.eye(3)), np.zeros((3, 2)), np.empty((0, 3)), np.empty((3, 0))):
        rows = as_rows(X)
        assert without_zeros(rows, most=1.0) is rows
