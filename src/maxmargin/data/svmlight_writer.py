"""Rows written as svmlight text."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..files import replacing
from ..validation import shown
from .arrays import as_table, canonical, check_unmasked


def write_svmlight(path: Any, X: Any, y: Any, *, group: Any = None, zero_based: bool = False) -> None:
    """Write rows and labels as svmlight text that reads back to the same bits; ``.gz`` and ``.zst`` are compressed.

    Parameters
    ----------
    path : path
    X : matrix, dense or sparse
        Zeros are left out.
    y : array of numbers
    group : array of whole numbers, optional
        Written as ``qid:``.
    zero_based : bool
        Count features from 0 rather than from 1.
    """
    import pyarrow as pa

    if os.path.isdir(path):
        raise IsADirectoryError(f"{os.fspath(path)} is a folder. Give the name of a file in it.")
    for name, given in (("y", y), ("group", group)):
        check_unmasked(name, given)
    try:
        y = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"y must be numbers, one for each row: svmlight text has no other labels; got {shown(y)}."
        ) from None
    X = as_table(X, "X")
    X = canonical(X) if sp.issparse(X) else X
    groups = np.empty(0, np.int64) if group is None else np.asarray(group, dtype=np.int64)
    if y.shape != (X.shape[0],) or (group is not None and groups.shape != y.shape):
        raise ValueError(
            f"X has {X.shape[0]} rows, y is of shape {y.shape}, group of shape {groups.shape}. Give one for each row."
        )
    if groups.size and (groups.min() < 0 or groups.max() >= 10**18):
        raise ValueError("group must be whole numbers from 0 to 10^18 − 1.")
    compression = {".gz": "gzip", ".zst": "zstd"}.get(os.path.splitext(os.fspath(path))[1].lower())
    with replacing(path) as new, pa.output_stream(str(new), compression=compression) as file:
        begin = 0
        while begin < len(y):
            end = _block_end(X, begin)
            block = sp.csr_matrix(X[begin:end])
            file.write(_composed(block, y[begin:end], groups[begin:end], int(not zero_based)))
            begin = end


def _block_end(X: Any, begin: int) -> int:
    """Rows with some hundred thousand entries in all, at least one."""
    room = 1 << 18
    if not sp.issparse(X):
        return min(len(X), begin + max(1, room // max(1, X.shape[1])))
    end = int(np.searchsorted(X.indptr, X.indptr[begin] + room, side="right")) - 1
    return min(X.shape[0], max(begin + 1, min(end, begin + room)))


def _composed(X: sp.csr_matrix, y: np.ndarray, groups: np.ndarray, base: int) -> bytes:
    """Rows as lines, every number in as few digits as tell it from its neighbours."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = X.data if X.dtype in (np.float32, np.float64) else X.data.astype(np.float64)
    if not (np.isfinite(values).all() and np.isfinite(y).all()):
        raise ValueError("X or y has entries that are not finite. Fill in or drop missing values first.")

    def texts(numbers: np.ndarray) -> pa.Array:
        return pa.array(numbers).cast(pa.large_string())

    def joined(ends: np.ndarray, parts: pa.Array, by: pa.Scalar) -> pa.Array:
        return pc.binary_join(pa.LargeListArray.from_arrays(pa.array(ends.astype(np.int64)), parts), by)

    blank, colon, line_end, qid = (pa.scalar(text, pa.large_string()) for text in (" ", ":", "\n", "qid"))
    pairs = pc.binary_join_element_wise(texts(X.indices.astype(np.int64) + base), texts(values), colon)
    entries = joined(X.indptr, pairs, blank)
    entries = pc.if_else(pa.array(np.diff(X.indptr) > 0), entries, None)  # a row without any has no blank either
    columns = [texts(y), *([pc.binary_join_element_wise(qid, texts(groups), colon)] if groups.size else []), entries]
    lines = pc.binary_join_element_wise(*columns, blank, null_handling="skip")
    return joined(np.array([0, len(lines)]), lines, line_end)[0].as_buffer().to_pybytes() + b"\n"
