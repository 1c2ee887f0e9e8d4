"""Data frames and their columns, of pandas, polars and Arrow: recognised by what they can do; none is imported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..validation import shown

TIMES = "dates or times"
REMEDIES = {
    TIMES: "Turn them into numbers first, such as days since a date, hours, or the day of the week.",
    "values": "Encode it first, for example with sklearn.preprocessing.OneHotEncoder in a ColumnTransformer, or leave "
    "it out.",
}
_ARROW_NUMBERS = ("int", "uint", "half", "float", "double", "bool", "decimal", "null")


@runtime_checkable
class PandasFrame(Protocol):
    columns: Iterable[str]
    dtypes: Any
    iloc: Any


@runtime_checkable
class PolarsFrame(Protocol):
    def to_dicts(self) -> list[dict[str, Any]]: ...
    def get_column(self, name: str) -> Listed: ...


@runtime_checkable
class ArrowTable(Protocol):
    column_names: list[str]

    def to_pylist(self) -> list[dict[str, Any]]: ...


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
    return isinstance(x, PandasFrame | PolarsFrame | ArrowTable)


def check_columns(X: object) -> None:
    """Refuse what would fail later without saying where, or pass silently as something else than it is."""
    if callable(getattr(X, "collect", None)) and not hasattr(X, "__array__"):
        raise ValueError(f"X is a {type(X).__name__}, a query that has not been run. Give X.collect().")
    for name, held, values in _strangers(X):
        wrong = [v for v in values if v is not None and not isinstance(v, int | float | np.number | np.bool_)]
        if wrong:
            raise ValueError(
                f"Column {name!r} of X holds {held} such as {shown(wrong[0])}, not numbers. {REMEDIES[held]}"
            )


def check_present(y: object) -> None:
    """Every row has a label: none is None, NaN, NA or null."""
    absent = np.asarray(y.isna() if isinstance(y, Nullable) else y.is_null() if isinstance(y, OtherColumn) else False)
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


def _strangers(X: object) -> Iterator[tuple[str, str, list[Any]]]:
    """(name, what it seems to hold, its first value that is there) of the columns whose type is not one of numbers."""
    if isinstance(X, ArrowTable):
        table: Any = X
        for name, kind in zip(X.column_names, map(str, table.schema.types), strict=True):
            if not kind.startswith(_ARROW_NUMBERS):
                times = kind.startswith(("date", "time", "duration"))
                yield name, TIMES if times else "values", table[name].drop_null().slice(0, 1).to_pylist()
    elif isinstance(X, PandasFrame):
        for place, (name, dtype) in enumerate(zip(X.columns, X.dtypes, strict=True)):
            if dtype.kind not in "biufc":
                yield name, TIMES if dtype.kind in "mM" else "values", X.iloc[:, place].dropna().head(1).to_list()
    elif isinstance(X, PolarsFrame):
        frame: Any = X
        for name, dtype in frame.schema.items():
            if not (dtype.is_numeric() or str(dtype) in ("Boolean", "Null")):
                held = TIMES if dtype.is_temporal() else "values"
                yield name, held, frame[name].drop_nulls().head(1).to_list()


def records(frame: PandasFrame | PolarsFrame | ArrowTable) -> list[dict[Any, Any]]:
    """The rows of a frame as dicts. What is missing is None, but for NaN among numbers, which the user has to mend."""
    if isinstance(frame, PolarsFrame):
        return frame.to_dicts()
    if isinstance(frame, ArrowTable):
        return frame.to_pylist()
    columns = [_values(frame.iloc[:, k]) for k in range(len(list(frame.columns)))]
    return [dict(zip(frame.columns, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: Any) -> list[Any]:
    values = column.to_list()
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return values
    return [None if missing else value for value, missing in zip(values, column.isna(), strict=True)]
