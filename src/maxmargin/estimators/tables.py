"""Tables of numbers and their labels: what is refused, where the fault is, and the remedy.

scikit-learn turns arrays and data frames into matrices; where it or NumPy cannot read one, this says why. pandas,
polars and Arrow are recognised by what they can do; none of them is imported.
"""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..constraints.oracle import count
from ..data.arrays import check_unmasked
from ..validation import shown
from .frames import TIMES, PandasColumn, PandasFrame, missing, strangers

_NUMBERS = "Every cell of this argument must be a number, or a string that spells a number"
_ENCODE = "Encode text and categories first, for example with sklearn.preprocessing.OneHotEncoder."


def check_kind(X: Any) -> None:
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
            f"X is a dict. {_NUMBERS}: make a matrix of it, one row per example, for example with pandas.DataFrame(X)."
        )
    check_unmasked("X", X)
    dtypes: Any = {"": X.dtype} if isinstance(X, np.ndarray) or sp.issparse(X) else {}
    for column, dtype in X.dtypes.items() if isinstance(X, PandasFrame) else dtypes.items():
        if dtype.kind == "c":
            place = f" in the column {column!r}" if isinstance(X, PandasFrame) else ""
            raise ValueError(
                f"Complex data not supported: X{place} is {dtype}. Give real and imaginary parts as columns."
            )


def check_columns(X: Any) -> None:
    """Refuse what would fail later without saying where, or pass silently as something else than it is."""
    if isinstance(X, np.ndarray):
        if X.dtype.kind in "mM":
            raise ValueError(f"X holds {TIMES} ({X.dtype}), not numbers. {_remedy(TIMES)}")
        return
    if callable(getattr(X, "collect", None)) and not hasattr(X, "__array__"):
        raise ValueError(f"X is a {type(X).__name__}, a query that has not been run. Give X.collect().")
    for name, held, values in strangers(X):
        for value in values:
            if value is None or isinstance(value, int | float | np.number | np.bool_):
                continue
            raise ValueError(f"Column {name!r} of X holds {held} such as {shown(value)}, not numbers. {_remedy(held)}")


def _remedy(held: str) -> str:
    if held == TIMES:
        return "Turn them into numbers first, such as days since a date, hours, or the day of the week."
    return (
        "Encode it first, for example with sklearn.preprocessing.OneHotEncoder in a ColumnTransformer, or leave it out."
    )


def check_present(y: Any) -> None:
    """Every row has a label: none is None, NaN, NA or null."""
    absent = missing(y)
    if absent.any():
        at = int(np.argmax(absent.reshape(-1)))
        raise ValueError(
            f"y[{at}] is missing ({np.count_nonzero(absent)} such rows in all). Every row needs a label; drop the "
            "rows that have none."
        )


def present_labels(y: Any) -> Any:
    """Labels that are all there. Whole numbers and truth values that could be missing, but are not, stay what they are
    instead of turning into floats; the rest is left to scikit-learn."""
    check_present(y)
    if isinstance(y, PandasColumn) and not isinstance(y.dtype, np.dtype) and y.dtype.kind in "biu":
        return y.to_numpy(dtype=bool if y.dtype.kind == "b" else np.int64)
    return y


def explained(error: Exception, X: Any, y: Any = None) -> Exception:
    """The same complaint of scikit-learn's or NumPy's in words that name the argument, the place and what to do."""
    text = str(error)
    for find in (_ragged, _wrong_dimensions, _lengths, _not_numbers, _labels):
        found = find(text, X, y)
        if found is not None:
            return (TypeError if isinstance(error, TypeError) else ValueError)(found)
    return type(error)(_advised(text)) if type(error) in (TypeError, ValueError) else error


def _ragged(text: str, X: Any, y: Any) -> str | None:
    if "inhomogeneous" not in text and "setting an array element" not in text:
        return None
    for name, rows, needed in (("X", X, "Rows of a matrix must have as many numbers each"), ("y", y, "Give one label")):
        flat = isinstance(rows, list | tuple) or (isinstance(rows, np.ndarray) and rows.ndim == 1)
        sizes = [_size(row) for row in rows] if flat else []
        other = next((i for i, size in enumerate(sizes) if size != sizes[0]), None)
        if other is not None:
            return (
                f"{name} has rows of different lengths: {name}[0] has {sizes[0]}, {name}[{other}] has {sizes[other]}. "
                f"{needed}{' for each row' if name == 'y' else ''}; sequences and bags have estimators of their own, "
                "SequenceSVM and LatentSVC."
            )
    return None


def _size(row: ArrayLike) -> int:
    try:
        return np.size(row) if np.ndim(row) < 2 else -1
    except ValueError:
        return -1


def _wrong_dimensions(text: str, X: Any, y: Any) -> str | None:
    if "Expected 2D array" not in text and "Found array with dim" not in text:
        return None
    shape = np.shape(X)
    if shape == (0,):
        return "X is empty. Give at least one row."
    if len(shape) == 1:
        swapped = y is not None and np.ndim(y) == 2 and np.shape(y)[1] > 1
        return (
            f"X: Expected 2D array, got 1D array instead, of shape {shape}. Reshape your data: X.reshape(-1, 1) if it "
            "is one feature of many rows, X.reshape(1, -1) if it is one row."
            + (f" Or are X and y swapped: y has the shape {np.shape(y)}." if swapped else "")
        )
    return (
        f"X must be a matrix with one row per example, got shape {shape}. X.reshape(len(X), -1) makes one row of each "
        "entry."
        if len(shape) > 2
        else f"X must be a matrix with one row per example, got {shown(X)}."
    )


def _lengths(text: str, X: Any, y: Any) -> str | None:
    if "inconsistent numbers of samples" not in text:
        return None
    rows, labels = count(X), np.shape(y)[0]
    return (
        f"X has {rows} rows, y has {labels} entries (inconsistent numbers of samples: [{rows}, {labels}]). Give one "
        "entry of y for each row of X."
    )


def _not_numbers(text: str, X: Any, y: Any) -> str | None:
    if sp.issparse(X) or not re.search("convert string|argument must be|not compatible", text):
        return None
    columns = [str(name) for name in X.columns] if isinstance(X, PandasFrame) else []
    try:
        table = np.asarray(X, dtype=object)
    except ValueError:
        return None
    table = table.reshape(len(table), -1) if table.ndim else table.reshape(1, 1)
    for i, row in enumerate(table):
        for j, cell in enumerate(row):
            try:
                float(cell)
            except (TypeError, ValueError):
                place = f"X[{i}, {j}]" if not columns else f"Row {i} of X, column {columns[j]!r},"
                return f"{place} is {shown(cell)}. {_NUMBERS}. {_ENCODE}"
    return None


def _labels(text: str, X: Any, y: Any) -> str | None:
    if y is None:
        return None
    if "y should be a 1d array" in text:
        return f"{text.rstrip('.')}. Give one label for each row."
    if "Input y contains" in text or text.startswith("Input contains"):
        values = np.asarray(y, dtype=object).ravel()
        bad = [i for i, v in enumerate(values) if _is_missing(v)]
        if bad:
            value = "infinity" if isinstance(values[bad[0]], float) and np.isinf(values[bad[0]]) else "NaN"
            return (
                f"y contains {value} at row {bad[0]} ({len(bad)} such values in all). Drop such rows, or fill them in."
            )
    return None


def _is_missing(value: Any) -> bool:
    try:
        return not np.isfinite(float(value))
    except (TypeError, ValueError):
        return not isinstance(value, str | bytes)  # None, and what pandas says for nothing


def _advised(text: str) -> str:
    """What scikit-learn says rightly, with what to do about it."""
    if "feature names should match" in text:
        return f"{text.rstrip()}\nGive the columns of fit in the order of fit: X[estimator.feature_names_in_]."
    if re.search(r"X has \d+ features, but", text):
        return f"{text.rstrip('.')}. Give the columns that it was trained on, in the same order."
    if text.startswith("Found array with 0"):
        return f"X is empty. {text.rstrip('.')}."
    return text if text.endswith((".", "\n")) else f"{text}."
