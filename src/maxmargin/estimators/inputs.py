"""Checks of what users hand in. Every error says what was given, what is needed and what to do."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterable, Sized
from numbers import Real
from typing import Any, TypeAlias

import joblib
import numpy as np
import scipy.sparse as sp
from joblib.parallel import get_active_backend
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from ..data.arrays import checked_sparse, first_not_finite
from ..data.errors import DataError
from ..data.sizes import as_bytes, few_threads
from ..protocols import Seed
from ..schema import is_label
from ..validation import as_float, check_unmasked, is_source, shown
from .tables import NUMBERS, check_present, check_types, explained, present_labels

Matrix: TypeAlias = ArrayLike | sp.sparray | sp.spmatrix
"""A table of numbers with one row per example: an array, a data frame, a sparse matrix."""
Column = ArrayLike | None
"""One entry for each row: labels, weights, groups."""

_NO_LABELS = "no labels"


def check_matrix(estimator: BaseEstimator, X: object, y: object = _NO_LABELS, *, reset: bool, **options: Any) -> Any:
    """X (and y, if given) in a form the kernels read: C order or CSR, float32 or float64, finite.

    float32 and float64 are kept as they are, without a copy; small integers become float32.
    """
    if is_source(X) and not hasattr(X, "shape"):
        raise ValueError(
            "A source was given where a matrix is needed. Go through its chunks: "
            "[estimator.predict(chunk.x) for chunk in source.chunks()]."
        )
    check_kind(X)
    X = checked_sparse(X) if sp.issparse(X) else X
    options = {
        "accept_sparse": "csr",
        "accept_large_sparse": True,
        "dtype": [np.float32] if _fits_float32(X) else [np.float64, np.float32],
        "order": "C",
        "ensure_all_finite": False,
        "reset": reset,
        **options,
    }
    alone = isinstance(y, str) and y == _NO_LABELS
    if not alone:
        check_there(estimator, y)
        y = y if isinstance(y, np.ndarray) else present_labels(y)
    found = _validated(estimator, X, *(() if alone else (y,)), options=options)
    _check_finite(found if alone else found[0], estimator)
    return found


def _validated(estimator: BaseEstimator, X: object, *y: Any, options: dict[str, Any]) -> Any:
    try:
        return validate_data(estimator, X, *y, **options)
    except OverflowError:
        raise ValueError(
            f"X or y holds whole numbers that no float can hold, beyond {np.finfo(float).max:.1e}. Scale them first."
        ) from None
    except (TypeError, ValueError) as error:
        raise explained(error, X) from None


def check_there(estimator: BaseEstimator, y: Any) -> None:
    """Labels must not be forgotten, and be a list of them."""
    name = type(estimator).__name__
    if y is None:
        raise ValueError(
            f"{name} requires y to be passed, but the target y is None. Give one entry for each row: fit(X, y)."
        )
    if isinstance(y, str | bytes | dict) or not (isinstance(y, Sized) or hasattr(y, "__array__")):
        raise ValueError(f"y must be a list or an array with one entry for each row of X, got {shown(y)}.")
    check_unmasked("y", y)
    if getattr(getattr(y, "dtype", None), "kind", "") == "c":
        raise ValueError(f"Complex data not supported: y is {y.dtype}. Give real numbers or names of classes.")


def _fits_float32(X: Any) -> bool:
    """Integers and booleans that float32 holds exactly."""
    dtype = getattr(X, "dtype", None)
    return isinstance(dtype, np.dtype) and dtype.kind in "bui" and dtype.itemsize <= 2


def _check_finite(X: Any, estimator: BaseEstimator) -> None:
    bad = first_not_finite(X)
    if bad is None:
        return
    row, column, value = bad
    n_bad = np.count_nonzero(~np.isfinite(X.data if sp.issparse(X) else X))
    kind = "NaN" if np.isnan(value) else "infinity (inf)"
    names = getattr(estimator, "feature_names_in_", None)
    name = "" if names is None or len(names) != X.shape[1] else f" {str(names[column])!r}"
    raise ValueError(
        f"X contains {kind} at row {row}, column {column}{name} ({n_bad} such values in all). "
        "Fill in or drop missing values first, for example with sklearn.impute.SimpleImputer."
    )


def check_kind(X: object) -> None:
    """Refuse what is no table of numbers."""
    if X is None:
        raise ValueError("X is None. Give a matrix with one row per example: an array, a data frame, a sparse matrix.")
    if isinstance(X, str | bytes | os.PathLike):
        raise ValueError(
            f"X is the text {shown(X)}, a matrix of numbers is needed. Read a file first: maxmargin.data.open(path) "
            "gives a source, which fit takes in place of X and y."
        )
    if isinstance(X, dict) and not sp.issparse(X):  # one of the sparse formats is a dict
        raise TypeError(
            f"X is a dict. {NUMBERS}: make a matrix of it, one row per example, for example with pandas.DataFrame(X)."
        )
    check_unmasked("X", X)
    if not (isinstance(X, np.ndarray) and X.dtype.kind in "fiub"):
        check_types(X)


def check_scored(estimator: BaseEstimator, X: object, y: object, sample_weight: Column = None) -> None:
    """What a score compares answers with: as many as there are rows."""
    check_is_fitted(estimator)
    check_kind(X)
    check_there(estimator, y)
    rows, answers = _num_samples(X), _num_samples(y)
    if rows != answers:
        raise ValueError(f"X has {rows} rows, y has {answers} entries. Give one entry of y for each row of X.")
    check_weights(sample_weight, X)


def check_labels(y: object, name: str = "y") -> None:
    """Labels must not mix text and numbers: NumPy would silently turn the numbers into text."""
    if not isinstance(y, np.ndarray):
        check_present(y)
    if hasattr(y, "dtype") and y.dtype != object:
        return
    values = y.tolist() if hasattr(y, "tolist") else y
    if not isinstance(values, list | tuple):
        return
    if any(value is None for value in values):
        raise ValueError(
            f"{name}[{values.index(None)}] is None. Every row needs a label; drop the rows that have none."
        )
    check_nameable(v for v in values if not isinstance(v, list | np.ndarray))  # which scikit-learn flattens, or refuses
    text = next((i for i, v in enumerate(values) if isinstance(v, str)), None)
    other = next((i for i, v in enumerate(values) if not isinstance(v, str)), None)
    if text is not None and other is not None:
        raise ValueError(
            f"{name} mixes text and other labels: {name}[{text}] is {shown(values[text])}, {name}[{other}] is "
            f"{shown(values[other])}. Make them all strings or all numbers."
        )


def check_classes(y: np.ndarray) -> None:
    """Labels name classes: text, whole numbers or booleans, not measurements, and nothing that no file can hold."""
    if y.dtype.kind not in "iubU":  # of which any may name a class
        check_nameable(y.tolist() if y.dtype == object else y[:1])
    if y.dtype.kind == "f" and (y != np.floor(y)).any():
        at = int(np.argmax(y != np.floor(y)))
        raise ValueError(
            f"Unknown label type: continuous. y[{at}] is {shown(y[at])}, which is no class label. "
            "Use LinearSVR for regression, or round y if these are classes."
        )


def check_several(estimator: BaseEstimator, classes: np.ndarray) -> None:
    """One class alone cannot be told apart."""
    if classes.size < 2:
        found = f"y has one class only: {shown(classes.tolist()[0])}" if classes.size else "got none"
        raise ValueError(f"{type(estimator).__name__} needs examples of at least 2 classes, {found}.")


def check_nameable(labels: Iterable[object]) -> None:
    """Complain of labels that a model could not be saved with, before it is trained; one of each type is looked at."""
    one_each = {type(label): label for label in labels}
    wrong = next((label for label in one_each.values() if not is_label(label)), None)
    if wrong is not None:
        raise ValueError(
            f"Labels are text, whole numbers or booleans, got {type(wrong).__name__}: {shown(wrong)}. Turn them into "
            "text, for example with [str(label) for label in y]."
        )


def check_vectors(classes: np.ndarray, coef: np.ndarray) -> None:
    """As many rows of weights as there are classes, or one for two of them."""
    if classes.size < 2 or len(coef) != (1 if classes.size == 2 else classes.size):
        raise ValueError(f"{classes.size} classes have {len(coef)} vectors of weights")


def check_numbers(y: Any, meaning: str, ids: np.ndarray | None = None) -> np.ndarray:
    """y as float64, of rows that have these numbers in their data; text must be text of numbers."""
    try:
        numbers = np.ascontiguousarray(y, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError(
            f"y must hold {meaning}, one number per row; got values such as {str(y[0])!r}. Turn them into numbers, or "
            "use LinearSVC if they name classes."
        ) from None
    if not np.isfinite(numbers).all():
        at = int(np.argmax(~np.isfinite(numbers)))
        row = at if ids is None else int(ids[at])
        message = f"y contains NaN or infinity: y[{row}] is {numbers[at]:g}. Drop the rows without a number."
        raise DataError(message, row=row)
    return numbers


def check_positive(name: str, value: object, *, zero: bool = False) -> float:
    """A finite number above zero (or not below it)."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(number := as_float(value)):
        raise ValueError(f"{name} must be a finite number, got {shown(value)}.")
    if value < 0 or (value == 0 and not zero):
        raise ValueError(f"{name} must be {'at least' if zero else 'greater than'} 0, got {shown(value)}.")
    return number


def check_budget(C: float, *weights: np.ndarray | None) -> np.ndarray:
    """C_i for every example, which is C times all these weights that there are; or one C for all."""
    C, known = check_positive("C", C), [one for one in weights if one is not None]
    if not known:
        return np.array([C])
    with np.errstate(over="ignore"):
        budget = C * functools.reduce(np.multiply, known)
        if np.isfinite(budget.sum()):
            return budget
    raise ValueError(
        f"C={shown(C)} times sample_weight and class_weight is more than numbers can hold, {np.finfo(float).max:.1e}. "
        "Only ratios of weights matter: divide them by their mean, and choose C after that."
    )


def check_weights(sample_weight: Column, X: object) -> np.ndarray | None:
    """Sample weights as float64, finite, not negative, not all zero; None stays None, one number is for all rows."""
    if sample_weight is None:
        return None
    check_unmasked("sample_weight", sample_weight)
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"sample_weight must be one number for each row, got {shown(sample_weight)}. Weights of classes go into "
            "class_weight."
        ) from None
    n = _num_samples(X)
    weights = np.full(n, weights) if weights.ndim == 0 else weights
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), one number for each row; got shape {weights.shape}.")
    if not not_negative(weights, np.arange(n)).any():
        raise ValueError("All entries of sample_weight are zero: no example is left to learn from.")
    return weights


def not_negative(weights: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Weights of rows that have these numbers in their data, if all are finite and none is below zero."""
    right = np.isfinite(weights) & (weights >= 0.0)
    if not right.all():
        at = int(np.argmin(right))
        row = int(ids[at])
        message = f"sample_weight must be finite and must not be negative; sample_weight[{row}] is {weights[at]:g}."
        raise DataError(message, row=row)
    return weights


def check_class_weight(class_weight: object, classes: np.ndarray, counts: np.ndarray) -> np.ndarray | None:
    """What ``class_weight`` multiplies C by in each class, given how much each class weighs; None stays None."""
    if class_weight is None:
        return None
    known = classes.tolist()
    if isinstance(class_weight, str) and class_weight == "balanced":
        factors = counts.sum() / (counts.size * np.maximum(counts, 1e-300))
    elif not isinstance(class_weight, dict):
        raise ValueError(
            f"class_weight must be None, 'balanced' or a dict of classes and factors such as "
            f"{{{shown(known[0])}: 2.0}}, "
            f"got {shown(class_weight)}."
        )
    else:
        unknown = [key for key in class_weight if key not in known]
        if unknown and any(key not in class_weight for key in known):  # all known: some are in other data only
            raise ValueError(
                f"class_weight has a factor for {shown(unknown[0])}, which is not among the classes of y: "
                f"{shown(known)}."
            )
        try:
            factors = np.array([class_weight.get(key, 1.0) for key in known], dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"class_weight must give a number for each class, got {shown(class_weight)}.") from None
    if not (np.isfinite(factors).all() and (factors >= 0).all() and factors.any()):
        raise ValueError(
            "class_weight must be finite, not negative, and not zero for every class; "
            f"it gives {dict(zip(known, factors.tolist(), strict=True))}."
        )
    return factors


def check_memory(memory: object) -> int | None:
    """Bytes, as a number or as text such as '512MB'."""
    if memory is not None and (isinstance(memory, bool) or not isinstance(memory, Real | str)):
        raise ValueError(f"memory must be a number of bytes or text such as '512MB', got {shown(memory)}.")
    return None if memory is None else as_bytes(memory if isinstance(memory, str) else as_float(memory), "memory")


def check_seed(random_state: object) -> None:
    """A whole number from 0 on, a generator of NumPy's, or None; nothing is drawn from it."""
    try:
        if isinstance(random_state, bool):
            raise TypeError
        isinstance(random_state, np.random.RandomState) or np.random.default_rng(random_state)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state must be None, a whole number of at least 0 or a numpy.random.Generator, got "
            f"{shown(random_state)}."
        ) from None


def generator(random_state: Seed) -> np.random.Generator:
    """Seeds and generators as they are; a RandomState, which scikit-learn hands around, gives a seed."""
    check_seed(random_state)
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31)
    return np.random.default_rng(random_state)


def check_threads(n_jobs: object) -> int:
    """n_jobs as a number of threads: −1 is all cores, −2 all but one, None what ``joblib.parallel_config`` says, or 1.

    At most 64 threads are begun, or four for each core where that is more. Inside the workers of joblib, such as those
    of a grid search, "all cores" is the worker's share of them.
    """
    if n_jobs is None:
        return min(joblib.effective_n_jobs(None), _cores())
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise ValueError(
            f"n_jobs must be None or a whole number other than 0, got {shown(n_jobs)}. 1 is one thread, -1 all cores."
        )
    return few_threads(int(n_jobs)) if n_jobs > 0 else max(1, _cores() + 1 + int(n_jobs))


def _cores() -> int:
    """Cores that are ours. joblib tells the processes it starts how many threads each may have, as it tells Numba."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = os.environ.get("NUMBA_NUM_THREADS", "")
    if allowed.isdigit():
        return max(1, min(cores, int(allowed)))
    in_a_worker = getattr(get_active_backend()[0], "nesting_level", None)  # of a pool of threads
    return 1 if in_a_worker else cores
