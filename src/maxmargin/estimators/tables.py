"""Tables as users have them: frames and columns of pandas, polars and Arrow, recognised by what they can do (none is
imported); and what to do about those that scikit-learn or NumPy cannot read."""

from __future__ import annotations

import re
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike

from ..validation import shown

NUMBERS = "Every cell of this argument must be a number, or a string that spells a number"  # as scikit-learn asks
_ENCODE = f"{NUMBERS}. Encode text and categories first, for example with sklearn.preprocessing.OneHotEncoder."
_LENGTHS = (
    "Rows of X must have as many numbers each, and y one label for each row. Sequences are for SequenceSVM, bags for "
    "LatentSVC."
)
_ADVICE = {
    "inhomogeneous|setting an array element": _LENGTHS,
    "Expected 2D array|Found array with dim": "X must be a matrix with at least one row, one row per example. Or are X "
    "and y swapped?",
    "inconsistent numbers of samples": "Give one entry of y for each row of X.",
    "convert string|argument must be|not compatible": _ENCODE,
    "y should be a 1d array": "Give one label for each row.",
    "Input y contains": "Drop such rows, or fill them in.",
    "feature names should match": "Give the columns of fit in the order of fit: X[estimator.feature_names_in_].",
    r"X has \d+ features, but": "Give the columns that it was trained on, in the same order.",
    "Found array with 0": "X is empty.",
}  # by what scikit-learn or NumPy say


@runtime_checkable
class Frame(Protocol):
    columns: Any
    shape: tuple[int, int]


@runtime_checkable
class Nullable(Protocol):
    """A column or a frame of pandas."""

    def isna(self) -> ArrayLike: ...


@runtime_checkable
class PandasColumn(Nullable, Protocol):
    dtype: Any

    def to_numpy(self, dtype: DTypeLike) -> np.ndarray: ...


@runtime_checkable
class OtherColumn(Protocol):
    """A column of polars or Arrow."""

    def is_null(self) -> ArrayLike: ...


@runtime_checkable
class Listed(Protocol):
    """A column that is asked by its index, or by 0, 1, 2, …, and gives its values as a list."""

    def to_list(self) -> list[Any]: ...


def is_frame(x: object) -> bool:
    if isinstance(x, np.ndarray | list | tuple | dict | str):
        return False  # protocols take microseconds to check, and there may be a million tokens or sentences
    return isinstance(x, Frame)


def records(frame: Any) -> list[dict[Any, Any]]:
    """The rows of a frame as dicts. What is missing is None, but for NaN among numbers, which the user has to mend."""
    for method in ("to_dicts", "to_pylist"):  # of polars, of Arrow
        if hasattr(frame, method):
            return getattr(frame, method)()
    columns = [_values(frame.iloc[:, k]) for k in range(frame.shape[1])]
    return [dict(zip(frame.columns, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: Any) -> list[Any]:
    values = column.to_list()
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return values
    return [None if missing else value for value, missing in zip(values, column.isna(), strict=True)]


def check_types(X: Any) -> None:
    """Refuse what would pass silently as numbers, or fail without a name: dates, times and complex numbers."""
    if isinstance(X, np.ndarray) or sp.issparse(X):
        columns = [("X", X.dtype)]
    elif is_frame(X):
        types = X.dtypes if hasattr(X, "dtypes") else X.schema.types
        columns = [(f"Column {name!r} of X", kind) for name, kind in zip(_names(X), types, strict=True)]
    else:
        return
    for place, dtype in columns:
        kind = getattr(dtype, "kind", "")
        if kind == "c":
            raise ValueError(
                f"Complex data not supported: {place} is {dtype}. Give real and imaginary parts as columns."
            )
        if kind in ("m", "M") or re.match("date|time|duration", str(dtype).lower()):
            raise ValueError(
                f"{place} holds dates or times ({dtype}), not numbers. Turn them into numbers first, such as days "
                "since a date, hours, or the day of the week."
            )


def _names(frame: Any) -> list[str]:
    return list(getattr(frame, "column_names", frame.columns))


def check_present(y: object) -> None:
    """Every row has a label: none is None, NaN, NA or null."""
    absent = np.asarray(y.isna() if isinstance(y, Nullable) else y.is_null() if isinstance(y, OtherColumn) else False)
    if absent.any():
        at = int(np.argmax(absent.reshape(-1)))
        raise ValueError(
            f"y[{at}] is missing ({np.count_nonzero(absent)} such rows in all). Every row needs a label; drop the "
            "rows that have none."
        )


def present_labels(y: object) -> Any:
    """Labels that are all there. Whole numbers and truth values that could be missing, but are not, stay what they are
    instead of turning into floats; the rest is left to scikit-learn."""
    check_present(y)
    if isinstance(y, PandasColumn) and not isinstance(y.dtype, np.dtype) and y.dtype.kind in "biu":
        return y.to_numpy(dtype=bool if y.dtype.kind == "b" else np.int64)
    return y


def explained(error: Exception, X: object) -> Exception:
    """The same complaint of scikit-learn's or NumPy's, with what to do about it."""
    if type(error) not in (TypeError, ValueError):
        return error
    text = str(error)
    advice = next((advice for said, advice in _ADVICE.items() if re.search(said, text)), "")
    if advice == _ENCODE:
        cell = _wrong_cell(X)
        text, advice = (cell, advice) if cell else (f"y: {text}", "Turn y into numbers.")
    elif advice == _LENGTHS:
        text = "X or y has rows of different lengths"
    return type(error)(f"{text.rstrip().rstrip('.')}. {advice}".rstrip())


def _wrong_cell(X: object) -> str | None:
    """Where the first cell is that is no number."""
    try:
        table = np.asarray(X, dtype=object)
    except ValueError:
        return None
    for i, row in enumerate(table.reshape(len(table), -1) if table.ndim else table.reshape(1, 1)):
        for j, cell in enumerate(row):
            try:
                float(cell)
            except (TypeError, ValueError):
                place = f"Row {i} of X, column {_names(X)[j]!r}," if is_frame(X) else f"X[{i}, {j}]"
                return f"{place} is {shown(cell)}"
    return None
