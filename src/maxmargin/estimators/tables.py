"""Tables that scikit-learn or NumPy cannot read: where the fault is, and the remedy."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..constraints.oracle import count
from ..validation import shown
from .frames import PandasFrame

NUMBERS = "Every cell of this argument must be a number, or a string that spells a number"
_ENCODE = "Encode text and categories first, for example with sklearn.preprocessing.OneHotEncoder."


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
                return f"{place} is {shown(cell)}. {NUMBERS}. {_ENCODE}"
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
