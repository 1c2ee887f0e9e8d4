"""Bad inputs and settings that all three estimators must refuse, each with the words of its message."""

import numpy as np
import scipy.sparse as sp

N, D = 20, 3


def good():
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, D)), np.arange(N) % 2


def _spoiled(value, row=4, column=2):
    X, _ = good()
    X[row, column] = value
    return X


X, Y = good()
BAD_INPUTS = {
    "NaN": (_spoiled(np.nan), Y, r"X contains NaN at row 4, column 2 \(1 such values in all\)"),
    "infinity": (_spoiled(np.inf), Y, r"X contains infinity \(inf\) at row 4, column 2"),
    "sparse NaN": (sp.csr_matrix(_spoiled(np.nan)), Y, "X contains NaN at row 4, column 2"),
    "sparse infinity": (sp.csc_matrix(_spoiled(np.inf, 19, 1)), Y, "row 19, column 1"),
    "float32 NaN": (_spoiled(np.nan).astype(np.float32), Y, "X contains NaN at row 4, column 2"),
    "no rows": (np.empty((0, D)), np.empty(0), r"Found array with 0 sample\(s\)"),
    "no columns": (np.empty((N, 0)), Y, r"Found array with 0 feature\(s\)"),
    "no sparse rows": (sp.csr_matrix((0, D)), np.empty(0), r"Found array with 0 sample\(s\)"),
    "lengths differ": (X, Y[:-1], r"inconsistent numbers of samples: \[20, 19\]"),
    "one-dimensional": (X[:, 0], Y, "Expected 2D array, got 1D array"),
    "no labels": (X, None, "requires y to be passed, but the target y is None"),
    "NaN in labels": (X, np.where(Y, np.nan, 0.0), "y contains NaN"),
    "complex": (X + 1j, Y, "Complex data not supported"),
    "text in X": (np.full((N, D), "a"), Y, r"X\[0, 0\] is 'a'"),
}
BAD_SETTINGS = {
    "C infinite": ({"C": np.inf}, "C must be a finite number, got inf"),
    "tol zero": ({"tol": 0.0}, r"tol must be greater than 0, got 0\.0"),
    "loss": ({"loss": "log"}, "loss must be one of .* got 'log'"),
    "solver": ({"solver": "newton"}, r"solver must be one of \['auto', .*\] or a Solver, got 'newton'"),
    "memory little": ({"memory": 10, "solver": "dual_coordinate"}, "memory=10 bytes is too little: .* at least"),
}
BAD_WEIGHTS = {
    "negative": (
        np.where(np.arange(N) == 2, -3.0, 1.0),
        r"must not be negative; sample_weight\[2\] is -3",
    ),
    "zero": (np.zeros(N), "sample_weight are zero"),
    "NaN": (np.full(N, np.nan), "sample_weight contains NaN"),
    "shape": (np.ones(3), r"sample_weight must have shape .* got shape \(3,\)"),
}


def bad_regularizers():
    from maxmargin.regularizers import Bounded, GaussianPrior, GroupNorm

    return {
        "prior": (GaussianPrior(np.zeros(4)), "mean is for 4 weights, the problem has 3"),
        "bounds": (Bounded(0.0, [3]), "the weights from 0 to 2"),
        "groups": (GroupNorm([[0, 1], [2, 3]], l2=1.0), "the groups cover 4 weights, the problem has 3"),
    }
