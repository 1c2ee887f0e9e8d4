"""Checks of what users hand in. Every error says what was given, what is needed and what to do."""

from __future__ import annotations

import math
import os
from numbers import Real
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from joblib.parallel import get_active_backend
from sklearn.utils.validation import _check_sample_weight, validate_data

from ..data.sizes import as_bytes
from . import frames

_NO_LABELS = "no labels"


def check_matrix(estimator: Any, X: Any, y: Any = _NO_LABELS, *, reset: bool, **options: Any) -> Any:
    """X (and y, if given) in a form the kernels read: C order or CSR, float32 or float64, finite.

    float32 and float64 are kept as they are, without a copy; small integers become float32.
    """
    if callable(getattr(X, "chunks", None)) and not hasattr(X, "shape"):
        raise ValueError(
            "A source was given where a matrix is needed. Go through its chunks: "
            "[estimator.predict(chunk.x) for chunk in source.chunks()]."
        )
    frames.check_columns(X)
    options = {
        "accept_sparse": "csr",
        "accept_large_sparse": True,
        "dtype": [np.float32] if _fits_float32(X) else [np.float64, np.float32],
        "order": "C",
        "ensure_all_finite": False,
        "reset": reset,
        **options,
    }
    if isinstance(y, str) and y == _NO_LABELS:
        X = validate_data(estimator, X, **options)
        _check_finite(X, estimator)
        return X
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    X, y = validate_data(estimator, X, frames.labels(y), **options)
    _check_finite(X, estimator)
    return X, y


def _fits_float32(X: Any) -> bool:
    """Integers and booleans that float32 holds exactly."""
    dtype = getattr(X, "dtype", None)
    return isinstance(dtype, np.dtype) and dtype.kind in "bui" and dtype.itemsize <= 2


def _check_finite(X: Any, estimator: Any) -> None:
    values = X.data if sp.issparse(X) else X
    # One sum finds out in a fraction of the time of a test per element; overflow alone is no error.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    bad = np.flatnonzero(~np.isfinite(values.reshape(-1)))
    if bad.size == 0:
        return
    at = int(bad[0])
    if sp.issparse(X):
        row, column = int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])
    else:
        row, column = divmod(at, X.shape[1])
    value = values.reshape(-1)[at]
    kind = "NaN" if np.isnan(value) else "infinity (inf)"
    names = getattr(estimator, "feature_names_in_", None)
    named = "" if names is None else f" {names[column]!r}"
    raise ValueError(
        f"X contains {kind} at row {row}, column {column}{named} ({bad.size} such values in all). "
        "Fill in or drop missing values first, for example with sklearn.impute.SimpleImputer."
    )


def check_labels(y: Any) -> None:
    """Labels must not mix text and numbers: NumPy would silently turn the numbers into text."""
    frames.check_present(y)
    if hasattr(y, "dtype") and y.dtype != object:
        return
    values = y.tolist() if hasattr(y, "tolist") else y
    if not isinstance(values, list | tuple):
        return
    if None in values:
        raise ValueError(f"y[{values.index(None)}] is None. Every row needs a label; drop the rows that have none.")
    text = next((i for i, v in enumerate(values) if isinstance(v, str)), None)
    other = next((i for i, v in enumerate(values) if not isinstance(v, str)), None)
    if text is not None and other is not None:
        raise ValueError(
            f"y mixes text and other labels: y[{text}] is {values[text]!r}, y[{other}] is {values[other]!r}. "
            "Make them all strings or all numbers."
        )


def check_classes(y: np.ndarray) -> None:
    """Labels name classes: text, whole numbers or booleans, not measurements."""
    if y.dtype.kind == "f" and (y != np.floor(y)).any():
        at = int(np.argmax(y != np.floor(y)))
        raise ValueError(
            f"Unknown label type: continuous. y[{at}] is {y[at]!r}, which is no class label. "
            "Use LinearSVR for regression, or round y if these are classes."
        )


def check_numbers(y: Any, meaning: str) -> np.ndarray:
    """y as float64 (float32 stays); text must be text of numbers."""
    if getattr(y, "dtype", None) == np.float32:
        return np.ascontiguousarray(y)
    try:
        return np.ascontiguousarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"y must hold {meaning}, one number per row; got values such as {str(y[0])!r}.") from None


def check_positive(name: str, value: Any, *, zero: bool = False) -> float:
    """A finite number above zero (or not below it)."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}.")
    if value < 0 or (value == 0 and not zero):
        raise ValueError(f"{name} must be {'at least' if zero else 'greater than'} 0, got {value!r}.")
    return float(value)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise ValueError(f"{name} must be one of {list(choices)}, got {value!r}.")
    return value


def check_weights(sample_weight: Any, X: Any) -> np.ndarray | None:
    """Sample weights as float64, not negative, not all zero; None stays None."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if (weights < 0).any():
        at = int(np.argmax(weights < 0))
        raise ValueError(f"sample_weight must not be negative; sample_weight[{at}] is {weights[at]:g}.")
    if not weights.any():
        raise ValueError("All sample weights are zero: no example is left to learn from.")
    return weights


def check_memory(memory: Any) -> int | None:
    """Bytes, as a number or as text such as '512MB'."""
    if memory is not None and (isinstance(memory, bool) or not isinstance(memory, Real | str)):
        raise ValueError(f"memory must be a number of bytes or text such as '512MB', got {memory!r}.")
    return None if memory is None else as_bytes(memory if isinstance(memory, str) else float(memory), "memory")


def generator(random_state: Any) -> np.random.Generator:
    """Seeds and generators as they are; a RandomState, which scikit-learn hands around, gives a seed."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31)
    return np.random.default_rng(random_state)


def check_threads(n_jobs: Any) -> int:
    """n_jobs as a number of threads: −1 is all cores, −2 all but one, None what ``joblib.parallel_config`` says, or 1.

    Inside the workers of joblib, such as those of a grid search, "all cores" is the worker's share of them.
    """
    if n_jobs is None:
        return min(joblib.effective_n_jobs(None), _cores())
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise ValueError(f"n_jobs must be None or a whole number other than 0, got {n_jobs!r}.")
    return int(n_jobs) if n_jobs > 0 else max(1, _cores() + 1 + int(n_jobs))


def _cores() -> int:
    """Cores that are ours. joblib tells the processes it starts how many threads each may have, as it tells Numba."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = os.environ.get("NUMBA_NUM_THREADS", "")
    if allowed.isdigit():
        return max(1, min(cores, int(allowed)))
    in_a_worker = getattr(get_active_backend()[0], "nesting_level", None)  # of a pool of threads
    return 1 if in_a_worker else cores
