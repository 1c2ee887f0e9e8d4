"""F1 as the loss beside plain hinge losses with a threshold: ``python benchmarks/set_measures.py``. Prints a table.

Reads a9a, which has test rows, and w8a, every other row of which is tested, in the folder named by MAXMARGIN_DATA.
"""

import gzip
import os
import time
import warnings
from pathlib import Path

import numpy as np
from report import markdown_table
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import f1_score

import maxmargin as mm

GRID = [0.01, 0.1, 1.0, 10.0]
TOL = 1e-2


def rows(name, n_features):
    with gzip.open(Path(os.environ["MAXMARGIN_DATA"]) / f"{name}.libsvm.gz") as file:
        X, y = load_svmlight_file(file, n_features=n_features)
    return X, (y > 0).astype(int)


def best_threshold(score, y):
    """The threshold of the highest F1, and that F1."""
    order = np.argsort(-score)
    f1 = 2.0 * np.cumsum(y[order]) / (np.arange(1, y.size + 1) + y.sum())
    return score[order][f1.argmax()], f1.max()


def fitted(X, y, C, loss):
    begun = time.process_time()
    svm = mm.LinearSVC(C=C, loss=loss, tol=TOL, random_state=0).fit(X, y)
    return svm, f"{time.process_time() - begun:.2f} s"


def main():
    warnings.simplefilter("error")
    X, y = rows("w8a", 300)
    data = {
        "a9a": (*rows("a9a", 123), *rows("a9a.t", 123)),
        "w8a": (X[::2], y[::2], X[1::2], y[1::2]),
    }
    for loss in ("hinge", "f1"):
        fitted(X[::50], y[::50], 1.0, loss)  # compiles
    table = []
    for name, (X, y, test, truth) in data.items():
        for C in GRID:
            plain, seconds = fitted(X, y, C, "hinge")
            score = plain.decision_function(test)
            threshold = best_threshold(plain.decision_function(X), y)[0]
            found = [f1_score(truth, score > 0.0), f1_score(truth, score >= threshold), best_threshold(score, truth)[1]]
            whole, longer = fitted(X, y, C, "f1")
            found.append(f1_score(truth, whole.predict(test)))
            table.append([name, f"{C:g}", *(f"{value:.3f}" for value in found), seconds, longer])
            print("  ".join(table[-1]), flush=True)
    names = ["data", "C", "hinge", "threshold of the training rows", "best threshold of the test rows", "`f1`"]
    print(markdown_table([*names, "hinge", "`f1`"], table))


if __name__ == "__main__":
    main()
