"""Sequences as users have them at hand: data frames, columns and arrays of words become lists of tokens.

pandas, polars and Arrow are recognised by what they can do; none of them is imported.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.sequences import Sequences


def as_sequences(X: Any) -> Any:
    """X with a list of tokens, or a matrix, for each sequence; what is one already is not copied.

    The rows of a frame are tokens: dicts of its columns, as ``Attributes`` reads them.
    """
    if _is_frame(X) or hasattr(X, "get_group"):
        groups = 'group_by("sentence", maintain_order=True)' if hasattr(X, "to_dicts") else 'groupby("sentence")'
        raise ValueError(
            f"X is one {type(X).__name__}; SequenceSVM needs a list with one frame per sequence, such as "
            f'[g[["word", "ending"]] for _, g in df.{groups}], with the columns of features only; the labels of each '
            "go into Y."
        )
    if isinstance(X, np.ndarray):
        X = X if X.dtype.kind in "biufc" else X.tolist()
    elif hasattr(X, "to_list"):  # a Series is asked by its index, not by 0, 1, 2, …
        X = X.to_list()
    if isinstance(X, Sequences) or not isinstance(X, list | tuple) or all(type(x) is list for x in X):
        return X
    return [_as_tokens(x) for x in X]


def _as_tokens(x: Any) -> Any:
    if _is_frame(x):
        return _records(x)
    if isinstance(x, np.ndarray):
        return x.tolist() if x.ndim == 1 and x.dtype.kind not in "biufc" else x
    if hasattr(x, "to_list") and getattr(x, "ndim", 1) == 1:  # a column, of words or of numbers
        values = x.to_list()
        return values if any(isinstance(value, str | dict | list) for value in values) else x
    return x


def _is_frame(x: Any) -> bool:
    if hasattr(x, "to_dicts") or (hasattr(x, "to_pylist") and hasattr(x, "column_names")):  # polars, Arrow
        return True
    return hasattr(x, "iloc") and getattr(x, "ndim", 0) == 2


def _records(frame: Any) -> list[dict[Any, Any]]:
    """The rows of a frame as dicts. What is missing is None, but for NaN among numbers, which the user has to mend."""
    if hasattr(frame, "to_dicts"):
        return frame.to_dicts()
    if hasattr(frame, "to_pylist"):
        return frame.to_pylist()
    columns = [_values(frame.iloc[:, k]) for k in range(frame.shape[1])]
    return [dict(zip(frame.columns, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: Any) -> list[Any]:
    values = column.to_list()
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return values
    return [None if missing else value for value, missing in zip(values, column.isna(), strict=True)]
