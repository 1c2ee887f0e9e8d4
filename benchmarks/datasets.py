"""Real data sets for the linear benchmarks, read from the folder named by MAXMARGIN_DATA.

Every loader returns the training part only, as `X, y` with X in float32 (dense array or CSR matrix).
"""

import gzip
import io
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction.text import TfidfTransformer

Matrix = np.ndarray | sp.csr_matrix
Examples = tuple[Matrix, np.ndarray]


def folder() -> Path:
    """The data folder; says what to do when it is not there."""
    name = os.environ.get("MAXMARGIN_DATA")
    if not name:
        raise SystemExit(
            "The benchmarks read their data sets from the folder named by the environment variable "
            "MAXMARGIN_DATA, which is not set. Set it to the folder that holds mnist.npz, covtype.npz, "
            "news20_bydate_counts.npz, a9a.libsvm.gz, w8a.libsvm.gz, usps.npz and california_housing.npz."
        )
    path = Path(name)
    if not path.is_dir():
        raise SystemExit(f"MAXMARGIN_DATA names {name!r}, which is not a folder.")
    return path


def _arrays(name: str) -> dict[str, np.ndarray]:
    with np.load(folder() / f"{name}.npz") as archive:
        return {key: archive[key] for key in archive.files}


def _standardised(columns: np.ndarray) -> np.ndarray:
    columns = columns.astype(np.float64)
    return (columns - columns.mean(axis=0)) / columns.std(axis=0)


def _signs(positive: np.ndarray) -> np.ndarray:
    return np.where(positive, 1, -1)


@cache
def news20() -> Examples:
    """11314 texts x 46008 words, sublinear tf-idf, 20 classes."""
    z = _arrays("news20_bydate_counts")
    counts = sp.csr_matrix((z["data"].astype(np.float64), z["indices"], z["indptr"]), shape=tuple(z["shape"]))
    train = z["is_train"]
    X = TfidfTransformer(sublinear_tf=True).fit_transform(counts[train])
    return sp.csr_matrix(X, dtype=np.float32), z["y"][train].astype(np.int64)


def news20_binary() -> Examples:
    """Class 0 of news20 against the other nineteen."""
    X, y = news20()
    return X, _signs(y == 0)


def _libsvm(name: str, n_features: int) -> Examples:
    with gzip.open(folder() / f"{name}.libsvm.gz") as file:
        X, y = load_svmlight_file(io.BytesIO(file.read()), n_features=n_features)
    # The reader gives 64-bit indices; 32 bits are what SciPy itself would choose at this size.
    parts = (X.data.astype(np.float32), X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return sp.csr_matrix(parts, shape=X.shape), _signs(y > 0)


def a9a() -> Examples:
    """32561 x 123, binary features."""
    return _libsvm("a9a", 123)


def w8a() -> Examples:
    """49749 x 300, binary features; some rows are empty."""
    return _libsvm("w8a", 300)


def covtype() -> Examples:
    """581012 x 54 dense, class 2 against the rest; the ten numeric columns are standardised."""
    z = _arrays("covtype")
    rows = np.arange(len(z["y"]))
    X = np.zeros((len(rows), 54), np.float32)
    X[:, :10] = _standardised(z["num"])
    X[rows, 10 + z["wild"].astype(int)] = 1
    X[rows, 14 + z["soil"].astype(int)] = 1
    return X, _signs(z["y"] == 2)


def mnist() -> Examples:
    """60000 x 784 dense, rows of unit norm, 10 classes."""
    z = _arrays("mnist")
    X = z["X_train"].reshape(len(z["X_train"]), -1).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, z["y_train"].astype(np.int64)


def mnist_20k() -> Examples:
    """The first 20000 rows of MNIST."""
    X, y = mnist()
    return X[:20000].copy(), y[:20000].copy()


def usps() -> Examples:
    """7291 x 256 dense, 10 classes."""
    z = _arrays("usps")
    return z["X_train"], z["y_train"].astype(np.int64)


def housing() -> Examples:
    """20433 x 9 dense regression: rows with a missing value dropped, features and target standardised."""
    z = _arrays("california_housing")
    known = ~np.isnan(z["X"]).any(axis=1)
    X = _standardised(z["X"][known]).astype(np.float32)
    return X, _standardised(z["y"][known])


LOADERS: dict[str, Callable[[], Examples]] = {
    "news20": news20,
    "news20_binary": news20_binary,
    "a9a": a9a,
    "w8a": w8a,
    "covtype": covtype,
    "mnist": mnist,
    "mnist_20k": mnist_20k,
    "usps": usps,
    "housing": housing,
}


def load(name: str, rows: float | int | None = None) -> Examples:
    """Data set `name`, or a random part of it: a share (`rows` <= 1) or a number of rows."""
    X, y = LOADERS[name]()
    if rows is None or rows == 1.0:
        return X, y
    count = min(len(y), round(rows * len(y)) if rows <= 1 else int(rows))
    # Random and sorted: every class is present, and the order of the file is kept.
    chosen = np.sort(np.random.default_rng(0).permutation(len(y))[:count])
    return X[chosen], y[chosen]
