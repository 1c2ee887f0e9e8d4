"""Data frames of pandas, polars and Arrow, none of which is imported: columns hold numbers, and no label is missing.

scikit-learn turns frames into matrices and checks the names of columns. What is said here is which column is at fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..wording import shown

_ARROW_NUMBERS = ("int", "uint", "half", "float", "double", "bool", "decimal", "null")
_TIMES = "dates or times"


def check_columns(X: Any) -> None:
    """Refuse what would fail later without saying where, or pass silently as something else than it is."""
    if isinstance(X, np.ndarray):
        if X.dtype.kind in "mM":
            raise ValueError(f"X holds {_TIMES} ({X.dtype}), not numbers. {_remedy(_TIMES)}")
        return
    if callable(getattr(X, "collect", None)) and not hasattr(X, "__array__"):
        raise ValueError(f"X is a {type(X).__name__}, a query that has not been run. Give X.collect().")
    for name, held, column in _strangers(X):
        value = _first(column)
        if value is not None and not isinstance(value, int | float | np.number | np.bool_):
            raise ValueError(f"Column {name!r} of X holds {held} such as {shown(value)}, not numbers. {_remedy(held)}")


def _remedy(held: str) -> str:
    if held == _TIMES:
        return "Turn them into numbers first, such as days since a date, hours, or the day of the week."
    return (
        "Encode it first, for example with sklearn.preprocessing.OneHotEncoder in a ColumnTransformer, or leave it out."
    )


def _strangers(X: Any) -> Iterator[tuple[str, str, Any]]:
    """(name, what it seems to hold, the column) of the columns whose type is not one of numbers."""
    if hasattr(X, "column_names") and hasattr(X, "schema"):  # Arrow
        for name, kind in zip(X.column_names, map(str, X.schema.types), strict=True):
            if not kind.startswith(_ARROW_NUMBERS):
                yield name, _TIMES if kind.startswith(("date", "time", "duration")) else "values", X[name]
    elif hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2:  # pandas
        for place, (name, dtype) in enumerate(zip(X.columns, X.dtypes, strict=True)):
            if getattr(dtype, "kind", "O") not in "biufc":
                yield name, _TIMES if getattr(dtype, "kind", "O") in "mM" else "values", X.iloc[:, place]
    elif hasattr(X, "columns") and isinstance(getattr(X, "schema", None), dict):  # polars
        for name, dtype in X.schema.items():
            if not (dtype.is_numeric() or str(dtype) in ("Boolean", "Null")):
                yield name, _TIMES if dtype.is_temporal() else "values", X[name]


def _first(column: Any) -> Any:
    """The first value that is not missing."""
    if hasattr(column, "drop_null"):  # Arrow
        return next(iter(column.drop_null().slice(0, 1).to_pylist()), None)
    there = column.drop_nulls() if hasattr(column, "drop_nulls") else column.dropna()
    return next(iter(there.head(1).to_list()), None)


def check_present(y: Any) -> None:
    """Every row has a label: none is None, NaN, NA or null."""
    if hasattr(y, "isna"):
        missing = np.asarray(y.isna())
    elif hasattr(y, "is_null"):
        missing = np.asarray(y.is_null())
    else:
        return
    if missing.any():
        at = int(np.argmax(missing.reshape(-1)))
        raise ValueError(
            f"y[{at}] is missing ({np.count_nonzero(missing)} such rows in all). Every row needs a label; drop the "
            "rows that have none."
        )


def labels(y: Any) -> Any:
    """Labels that are all there. Whole numbers and truth values that could be missing, but are not, stay what they are
    instead of turning into floats; the rest is left to scikit-learn."""
    check_present(y)
    dtype = getattr(y, "dtype", None)
    if getattr(y, "ndim", 0) == 1 and dtype is not None and not isinstance(dtype, np.dtype) and hasattr(y, "iloc"):
        kind = getattr(dtype, "kind", "O")
        if kind in "biu":
            return y.to_numpy(dtype=bool if kind == "b" else np.int64)
    return y
