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
    "no rows": (np.empty((0, D)), np.empty(0), r"Found array with 0 sample\(s\)"),
    "no columns": (np.empty((N, 0)), Y, r"Found array with 0 feature\(s\)"),
}
BAD_SETTINGS = {
    "C infinite": ({"C": np.inf}, "C must be a finite number, got inf"),
    "tol zero": ({"tol": 0.0}, r"tol must be greater than 0, got 0\.0"),
    "memory little": ({"memory": 10, "solver": "dual_coordinate"}, "memory=10 bytes is too little: .* at least"),
}
